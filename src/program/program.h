/* program.h: programs: recorded work as data that can be checked, printed, planned and run, again
 * and again, without a tape.
 *
 * What the folder does: a program is a list of operations on values of known dtype and shape. It is
 * self-contained: no tape, no address of the user's. It is immutable once it is built, counted, and
 * may be shared by threads. build.h makes one, plan.h lays out its memory, run.h runs it.
 *
 * The grammar (cot__program_check holds a program to it, docs/architecture/program.md tells it):
 *
 *   program    inputs, constants, operations, outputs
 *   value      made once: an input, a constant, or a result of an operation. Values are numbered in
 *              the order in which they are made. Each has a type that a value can have
 *   constant   has as many elements as its type says, row-major
 *   operation  has an operation number that exists and is no source, operands, attributes, results
 *              and bodies. Its record can run without a tape
 *   operand    a value that was made before the operation; or, once in an elementwise operation of
 *              two operands, its plain number
 *   results    follow each other in numbering, and have the types that the record infers
 *   body       a program, nested at most COT__PROGRAM_DEPTH deep, where the record takes bodies
 *   output     a value; one value may be given out several times
 *
 * An operation has an effect if its record checks data or tells what it found, or if one of its
 * bodies has one; and a loop that may never end has. It stays though nobody reads its results, and
 * effects happen in the order of the operations: the first one that fails is the one that the run
 * reports.
 *
 * A program may have millions of operations on scalars: a value takes 8 bytes and an operation 24
 * beside its operands. Nothing here recurses over operations.
 *
 * May call: base, job, rules, backend. Must not touch: tapes, nodes, storages, memory of the
 * user's. */
#ifndef COT_PROGRAM_H
#define COT_PROGRAM_H

#include "base/text.h"
#include "job/job.h"
#include "rules/record.h"

#include <stdatomic.h>

enum { COT__PROGRAM_DEPTH = 64 };
/* In place of a number of a value or of something else: none. As an operand: the plain number. */
#define COT__NO_VALUE UINT32_MAX
/* There are fewer values, and fewer operations, than this. */
#define COT__PROGRAM_MOST (UINT32_C(1) << 30)

typedef enum cot__origin { COT__FROM_OPERATION, COT__FROM_INPUT, COT__FROM_CONSTANT } cot__origin;

typedef struct cot__program_value {
    uint32_t type;
    /* the cot__origin in the two highest bits, then the number of the operation, the input or the
     * constant that makes it */
    uint32_t from;
} cot__program_value;

/* Each type stands once in the table. */
typedef struct cot__program_type {
    uint16_t dtype, ndim;
    uint32_t at; /* in `extent`: the extents, then the row-major strides */
} cot__program_type;

typedef struct cot__program_constant {
    uint32_t value;
    uint64_t at; /* of its first byte in `data`; a multiple of 64, or of 8 if it is small */
} cot__program_constant;

typedef struct cot__operation {
    uint16_t op;
    uint16_t results; /* how many */
    uint32_t result;  /* the first, after which the others follow */
    /* Where its operands and its bodies begin in `operand` and `body`; they end where those of the
     * next operation begin. */
    uint32_t operand, body;
    /* Elementwise: which of `number` is its plain number. Structural: where its attributes begin in
     * `attr`. COT__NO_VALUE: it has none. */
    uint32_t extra;
    uint32_t label;
} cot__operation;

/* What messages call an operation, and where it was recorded. */
typedef struct cot__label {
    uint32_t name, file; /* in `text`; file 0, the empty text: not known */
    int32_t  line;
} cot__label;

typedef struct cot__program {
    atomic_uint   refs;
    cot_allocator al;
    uint32_t      depth; /* 1 + the depth of the deepest body */
    bool          effects; /* some operation has one */
    bool          bound;   /* it holds addresses of the user's, or a body does */
    /* how many there are */
    uint32_t      inputs, constants, values, operations, outputs;
    uint32_t      types, extents, operands, numbers, attr_words, bodies, labels, text_bytes;
    uint64_t      data_bytes, data_room;

    uint32_t              *input; /* their values */
    cot__program_constant *constant;
    cot__program_value    *value;
    cot__operation        *operation; /* and one more that ends the lists of the last */
    uint32_t              *output;
    cot__program_type     *type;
    int64_t               *extent; /* never empty: 0-d values have no extents, but a place */
    uint32_t              *operand;
    double                *number;
    /* cot__attr of structural operations, without operands and pointers */
    uint64_t              *attr;
    struct cot__program  **body;
    cot__label            *label;
    char                  *text;
    char                  *data; /* 64-byte aligned elements of the constants, in host memory */
    void                  *data_block; /* data_room bytes */
} cot__program;

/* Is there such an operation, elementwise or structural? */
bool cot__operation_exists(int op);

/* One more owner, and one less: the last frees it. NULL is fine. */
cot__program *cot__program_share(const cot__program *p);
void          cot__program_release(const cot__program *p);
/* Bytes of memory that it takes, without its bodies. */
size_t cot__program_bytes(const cot__program *p);

/* The first rule of the grammar that is broken, as a sentence. Trusts the counts and that the lists
 * are as long as they say, and nothing else. */
bool cot__program_check(const cot__program *p, cot__text *why);
/* One line for each input, constant, operation and output:
 *   %3 = matmul(%0, %1) f32 (64,128)    bodies follow their operation, indented */
void cot__program_print(const cot__program *p, cot__text *to);

/* ---- reading one ----------------------------------------------------------------------------- */

static inline cot__origin cot__value_origin(const cot__program *p, uint32_t value) {
    return (cot__origin)(p->value[value].from >> 30);
}
/* The number of the operation, input or constant that makes a value. */
static inline uint32_t cot__value_maker(const cot__program *p, uint32_t value) {
    return p->value[value].from & (COT__PROGRAM_MOST - 1);
}
/* A row-major view of a value without elements; its shape and strides live as long as the
 * program. */
static inline cot__view cot__value_view(const cot__program *p, uint32_t value) {
    const cot__program_type *t = &p->type[p->value[value].type];
    const int64_t           *extent = p->extent + t->at;
    return (cot__view){NULL, (cot_dtype)t->dtype, t->ndim, extent, extent + t->ndim};
}
static inline cot__type cot__value_type(const cot__program *p, uint32_t value) {
    cot__view v = cot__value_view(p, value);
    cot__type z;
    cot__type_like(&z, v.dtype, &v);
    return z;
}
static inline int cot__operation_operands(const cot__program *p, uint32_t k) {
    return (int)(p->operation[k + 1].operand - p->operation[k].operand);
}
static inline const uint32_t *cot__operation_operand(const cot__program *p, uint32_t k) {
    return cot__behind(p->operand, p->operation[k].operand);
}
static inline int cot__operation_bodies(const cot__program *p, uint32_t k) {
    return (int)(p->operation[k + 1].body - p->operation[k].body);
}
static inline const cot__attr *cot__operation_attr(const cot__program *p, uint32_t k) {
    const cot__operation *o = &p->operation[k];
    bool                  none = o->op < OP_structural || o->extra == COT__NO_VALUE;
    return none ? NULL : (const cot__attr *)(const void *)(p->attr + o->extra);
}
/* Of an elementwise operation that has one. */
static inline double cot__operation_number(const cot__program *p, uint32_t k) {
    return p->number[p->operation[k].extra];
}
static inline const char *cot__operation_name(const cot__program *p, uint32_t k) {
    return p->text + p->label[p->operation[k].label].name;
}
/* Must it run though nobody reads its results? */
static inline bool cot__operation_has_effect(const cot__program *p, uint32_t k) {
    if (p->operation[k].op < OP_structural) return false;
    bool has = cot__acts(cot__op_of(p->operation[k].op), cot__operation_attr(p, k));
    for (uint32_t b = p->operation[k].body; b < p->operation[k + 1].body; b++) has |= p->body[b]->effects;
    return has;
}
/* Is it a copy of what may lie in a file meanwhile (program/limit)? Where there is no file it is a
 * copy like any other. */
#define COT__FETCHES 1.0 /* the number among its attributes */
bool cot__is_fetch(const cot__program *p, uint32_t k);
static inline const void *cot__constant_elements(const cot__program *p, uint32_t constant) {
    return p->data + p->constant[constant].at;
}

/* A job of operation k as infer sees it: views of types, in x, which has room for all operands.
 * *number is where its plain number is put, in the computing dtype. Every operand must exist. */
void cot__operation_job(const cot__program *p, uint32_t k, const cot__caller *caller, cot__view *x, void *number,
                        cot__job *j);

#endif
