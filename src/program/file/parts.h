/* parts.h: what a program file is made of, found before anything is written: the program and its
 * bodies, each once and behind its own bodies, and for each of them the tables of what its
 * operations refer to, in the order of first use. */
#ifndef COT_PROGRAM_PARTS_H
#define COT_PROGRAM_PARTS_H

#include "program/memory/entries.h"
#include "program/file/file.h"

/* Keys in the order in which they were first asked for. */
typedef struct cot__order {
    cot__entries found;
    uint32_t    *key;
    uint32_t     count, room;
} cot__order;

typedef struct cot__file_part {
    const cot__program *p;
    cot__order          op, type, label, text; /* text: by where it begins in p->text */
    uint64_t            bytes;                 /* of the part in the file, behind its head */
    /* Operations, those of bodies wherever they are used; a body may be used by many. */
    uint64_t            weight;
} cot__file_part;

typedef struct cot__file_parts {
    const cot__caller *caller;
    cot_allocator      al;
    cot__file_part    *part; /* the last is the program itself */
    uint32_t           count, room;
    uint64_t           operations; /* of all parts, each counted once */
    cot__entries       found;
} cot__file_parts;

/* Sizes in bytes. */
enum { COT__FILE_HEAD = 24, COT__PART_HEAD = 12, COT__FILE_SUM = 8 };
/* What a file and a part begin with. */
#define COT__FILE_MAGIC "COTPROG\n"
#define COT__PART_TAG "PROG"

/* What an entry of a part makes, and what follows its operands. */
enum { COT__ENTRY_INPUT, COT__ENTRY_CONSTANT, COT__ENTRY_OPERATION };
enum { COT__EXTRA_NONE, COT__EXTRA_NUMBER, COT__EXTRA_ATTRIBUTES };

/* Finds the parts of a legal program, and how long they are. False after telling the caller; to be
 * closed in any case. */
bool cot__file_parts_open(cot__file_parts *f, const cot__program *p, const cot__caller *caller);
void cot__file_parts_close(cot__file_parts *f);
/* Bytes of the whole file. */
uint64_t cot__file_parts_bytes(const cot__file_parts *f);
/* Writes the whole file. False: not all bytes were taken. */
bool cot__file_parts_write(const cot__file_parts *f, cot__write_bytes *write, void *to);

/* The number of a key that was asked for before. */
uint32_t cot__order_find(const cot__order *o, uint32_t key);
/* The number of the part of a body. */
uint32_t cot__part_number(const cot__file_parts *f, const cot__program *p);

/* Goes through the inputs, constants and operations of a program in the order in which they were
 * built. */
typedef struct cot__walk { uint32_t value, operation; } cot__walk;
/* What comes next, a COT__ENTRY_…, and its number among its kind; negative: no more. */
static inline int cot__walk_on(const cot__program *p, cot__walk *w, uint32_t *number) {
    if (w->operation < p->operations && (w->value == p->values || p->operation[w->operation].result <= w->value)) {
        *number = w->operation++;
        w->value += p->operation[*number].results;
        return COT__ENTRY_OPERATION;
    }
    if (w->value == p->values) return -1;
    *number = cot__value_maker(p, w->value);
    return cot__value_origin(p, w->value++) == COT__FROM_INPUT ? COT__ENTRY_INPUT : COT__ENTRY_CONSTANT;
}

/* n elements, row-major, as they stand in files; where bytes are only counted they are not read. */
void cot__sink_elements(cot__sink *to, cot_dtype dtype, int64_t n, const void *elements);

/* Writes one part, or counts its bytes. */
void cot__part_write(const cot__file_parts *f, const cot__file_part *part, cot__sink *to);

#endif
