/* along.h: many runs of one row of scalar instructions, one after the other, as the steps of a loop
 * over numbers are: what waits for no other run is done for several of them at a time. */
#ifndef COT_PROGRAM_ALONG_H
#define COT_PROGRAM_ALONG_H

#include "program/scalars/scalars.h"

/* A word that a run reads into a slot, or writes from one: where it lies for the first run, and how
 * far it moves from run to run. */
typedef struct cot__word { char *at; int64_t step; uint32_t slot; } cot__word;
/* Inputs of such runs, and outputs. */
enum { COT__MOST_WORDS = 48 };

/* What it keeps from call to call, so many bytes with zeros at first: lists, and room for
 * values. */
typedef struct cot__along cot__along;
size_t cot__along_bytes(void);

/* n runs of a linked list, with the bits of n runs one by one. The list and the slots are those of
 * all calls. Slots that are neither read into nor written by an instruction hold constants; all
 * others are not touched. Outputs do not overlap each other. False: nothing was done, for it would
 * not pay, or the list is too long, or some run reads what another one writes in a way that is not
 * known here. */
bool cot__along_go(cot__along *a, const cot__scalar *list, const cot__slot *slots, int64_t n, const cot__word *in,
                   uint32_t inputs, const cot__word *out, uint32_t outputs);

#endif
