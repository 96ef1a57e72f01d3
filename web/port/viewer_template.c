/* viewer_template.c: the module is the engine of a page and holds no page itself: `trace --html`
 * writes the bare trace here. */
#include "output/viewer.h"

const char *viewer_template(void) { return VIEWER_MARK; }
