/* The version of the library that is running, which need not be that of the header a program was
 * compiled with. */
#include "cotangent.h"

#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)

const char *cot_version(void) {
    return TEXT(COT_VERSION_MAJOR) "." TEXT(COT_VERSION_MINOR) "." TEXT(COT_VERSION_PATCH);
}
