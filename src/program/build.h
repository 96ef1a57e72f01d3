/* build.h: building a program, one input, constant, operation and output after the other.
 *
 *     cot__builder b;
 *     cot__builder_open(&b, al, caller);
 *     uint32_t x = cot__build_input(&b, &type), z = cot__build_operation(&b, &(cot__append){…});
 *     cot__build_output(&b, z);
 *     cot__program *p = cot__builder_close(&b);
 *
 * What is illegal is refused, and the caller is told why, once. From then on nothing is built, and
 * the program is NULL. */
#ifndef COT_PROGRAM_BUILD_H
#define COT_PROGRAM_BUILD_H

#include "program/memory/entries.h"
#include "program/program.h"

#include <string.h>

/* ---- the lists of a program as data, for code that treats all of them alike ------------------ */

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

/* ---- building -------------------------------------------------------------------------------- */

typedef struct cot__builder {
    cot__program *p; /* NULL: there was no memory for it */
    cot__caller   caller;
    bool          failed;
    uint64_t      room[COT__LIST_COUNT]; /* elements that there is memory for */
    cot__entries  types, labels, texts;
} cot__builder;

/* An operation to append. */
typedef struct cot__append {
    int                  op, n;
    const uint32_t      *x;      /* n operands; COT__NO_VALUE: the number */
    double               number;
    /* copied, without operands, and without pointers unless the record binds; NULL: none */
    const cot__attr     *attr;
    const cot__type     *asked;  /* what infer reads of the results' types; NULL: nothing */
    const char          *name;   /* how messages call it */
    const char          *file;   /* where it was recorded; NULL: not known */
    int                  line;
    int                  bodies;
    cot__program *const *body;   /* shared */
} cot__append;

void cot__builder_open(cot__builder *b, const cot_allocator *al, const cot__caller *caller);
/* The program, or NULL if something was refused. */
cot__program *cot__builder_close(cot__builder *b);

/* These return the number of a value, the first one where there are several; or COT__NO_VALUE. */
uint32_t cot__build_input(cot__builder *b, const cot__type *type);
/* *elements is where the caller writes them, row-major, before it builds anything else. */
uint32_t cot__build_constant(cot__builder *b, const cot__type *type, void **elements);
uint32_t cot__build_operation(cot__builder *b, const cot__append *o);
void     cot__build_output(cot__builder *b, uint32_t value);

/* Operation k of a program, to be appended to another one: `value` has the new number of each old
 * value, x takes the operands and *asked the type that infer may read. */
cot__append cot__operation_again(const cot__program *p, uint32_t k, const uint32_t *value, uint32_t *x,
                                 cot__type *asked);

#endif
