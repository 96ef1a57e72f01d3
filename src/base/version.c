/* The library's version, as the build knows it. */
#include "cotangent.h"

const char *cot_version(void) { return COT_VERSION_STRING; }
