/* The version of the library that is running. A program may have been compiled with the header of
 * another version. */
#include "cotangent.h"

#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)

const char *cot_version(void) {
    return TEXT(COT_VERSION_MAJOR) "." TEXT(COT_VERSION_MINOR) "." TEXT(COT_VERSION_PATCH);
}
