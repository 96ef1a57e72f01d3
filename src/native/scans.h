/* scans.h: loops, conditions and checkpoints whose bodies are work on 0-d values, as C. */
#ifndef COT_NATIVE_SCANS_H
#define COT_NATIVE_SCANS_H

#include "native/parts/choose.h"
#include "program/emit/writer.h"

/* Prints operation k, of kind COT__AS_SCAN. Values of its bodies have numbers from `number` on.
 * False after telling the caller that there is no memory. */
bool cot__native_put_scan(cot__writer *w, uint32_t k, uint32_t number);

#endif
