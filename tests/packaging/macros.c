/* Every public macro in C; see macros.h. */
#include "macros.h"
