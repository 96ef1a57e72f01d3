/* custom.c: placeholder record, to be completed. */
#include "tape/tape.h"
const cot__op cot__op_custom = {.name = "custom", .kind = KIND_GENERIC};
