/* lists.h: the lists of a program as data, for code that treats all of them alike. */
#ifndef COT_PROGRAM_LISTS_H
#define COT_PROGRAM_LISTS_H

#include "program/program.h"

#include <string.h>

/* Each list, and how many entries it has. */
#define COT__LISTS(_)                                                                                                  \
    _(input, inputs) _(constant, constants) _(value, values) _(operation, operations) _(output, outputs)               \
    _(type, types) _(extent, extents) _(operand, operands) _(number, numbers) _(attr, attr_words)                      \
    _(body, bodies) _(label, labels) _(text, text_bytes)

#define COT__LIST_NUMBER(field, count) COT__LIST_##field,
enum { COT__LISTS(COT__LIST_NUMBER) COT__LIST_COUNT };

/* Where the list and the number of its entries are in a program, and the bytes of an entry. */
typedef struct cot__list_info { size_t field, count, size; } cot__list_info;
extern const cot__list_info cot__list_table[COT__LIST_COUNT];

/* Pointers of all types look alike, and are copied as bytes. */
static inline void *cot__list_get(const cot__program *p, int list) {
    void *data;
    memcpy(&data, (const char *)p + cot__list_table[list].field, sizeof data);
    return data;
}
static inline void cot__list_set(cot__program *p, int list, void *data) {
    memcpy((char *)p + cot__list_table[list].field, &data, sizeof data);
}
/* Entries: of operations one more, which ends the lists of the last. */
static inline uint64_t cot__list_length(const cot__program *p, int list) {
    uint32_t count = *(const uint32_t *)(const void *)((const char *)p + cot__list_table[list].count);
    return (uint64_t)count + (list == COT__LIST_operation);
}

#endif
