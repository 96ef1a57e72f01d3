/* program.h: what a parsed text is, shared by the files of src/expr and by nobody else.
 *
 * A program is a list of steps for a machine with a stack: operands are pushed, an operation takes
 * them from the top and pushes its result. So running is one loop, and nothing recurses over what
 * was typed; only the parser does, by brackets and prefixes, to a fixed depth. */
#ifndef COT_EXPR_PROGRAM_H
#define COT_EXPR_PROGRAM_H

#include "base/base.h"
#include "expr/expr.h"
#include "ops/nothing.h" /* expressions record no node for what has nothing to do */

/* ---- memory: a store that is freed as a whole ------------------------------------------------ */

typedef struct cot__store {
    cot_allocator           al;
    struct cot__store_chunk *chunks;
} cot__store;

void *cot__store_take(cot__store *p, size_t bytes); /* NULL when memory is short */
char *cot__store_text(cot__store *p, const char *text, size_t length);
void  cot__store_free(cot__store *p);

/* ---- functions that can be called ------------------------------------------------------------ */

/* What a parameter takes. */
typedef enum cot__takes {
    TAKES_VAR,      /* an array or a number */
    TAKES_MAYBE,    /* the same, or None */
    TAKES_VARS,     /* a list of them */
    TAKES_REST,     /* the positional arguments that are left */
    TAKES_AXES,     /* None, an integer, or a list of integers */
    TAKES_SHAPE,    /* a list of integers, or one */
    TAKES_DTYPE,    /* float64, f32, … */
    TAKES_FLAG,     /* True or False */
    TAKES_INT,      /* an int; None, where `none` says what that means */
    TAKES_INTEGER,  /* an int64_t; likewise */
    TAKES_REAL,     /* a double; likewise */
    TAKES_THREE,    /* an integer for each spatial axis, or one for all */
    TAKES_TABLE,    /* integers: one, a list, or a list of lists */
    TAKES_KEY,      /* an integer: the seed */
    TAKES_TEXT,     /* a string */
    TAKES_ORDER     /* of a norm: None, 'fro' or a number */
} cot__takes;

typedef struct cot__parameter {
    const char *name;
    cot__takes  takes;
    const char *fallback; /* as written; NULL: must be given */
    int64_t     none;     /* what None stands for, where has_none */
    /* flattens: None makes a vector of the first argument, as NumPy's axis=None */
    bool        has_none, flattens;
} cot__parameter;

/* Integers as they were written: axes=2, axes=(1, 0), pad_width=[[1, 1], [0, 2]]. */
typedef struct cot__table {
    int     ndim, dim[2];
    int64_t at[2 * COT_MAX_NDIM]; /* row-major */
} cot__table;

typedef struct cot__order {
    enum { ORDER_NONE, ORDER_FROBENIUS, ORDER_GIVEN } kind;
    double p;
} cot__order;

/* An argument, ready for C. */
typedef union cot__argument {
    cot_var   var;
    cot_axes  axes;
    cot_shape shape;
    cot_dtype dtype;
    bool      flag;
    int64_t   integer;
    double    number;
    int64_t   three[3];
    cot__table table;
    cot__order order;
    cot_key   key;
    const char *text;
    struct {
        int            n;
        const cot_var *xs;
    } list;
} cot__argument;

enum { COT__MOST_PARAMETERS = 12, COT__MOST_RESULTS = 64 };

typedef struct cot__invocation {
    cot_tape     *tape;
    cot__argument arg[COT__MOST_PARAMETERS];
    bool          whole; /* numbers given for doubles were all integers */
    int           results;
    cot_var       result[COT__MOST_RESULTS];
} cot__invocation;

/* A function: calls the one of the library with the arguments, and leaves the results. An error is
 * on the tape. */
typedef struct cot__callee {
    const char           *name;
    int                   n;
    const cot__parameter *parameter;
    void (*call)(cot__invocation *c);
    bool elementwise, tuple; /* tuple: its results are several */
    int  mixes;              /* so many leading operands may be plain numbers, if one is not */
    /* of the library, or of by_hand.c; another name than `name` where that is an alias */
    const char *function;
} cot__callee;

/* Generated, in order of names: tools/gen_expr_calls.c. */
extern const cot__callee cot__callees[];
extern const int         cot__callee_count;

const cot__callee *cot__find_callee(const char *name, size_t length);
/* "sum(x, axis=None, keepdims=False)" */
const char *cot__signature(const cot__callee *f, char *buf, size_t size);

/* ---- values while a program runs ------------------------------------------------------------- */

typedef enum cot__item_kind {
    ITEM_UNSET,
    ITEM_NONE,
    ITEM_BOOL,
    ITEM_INTEGER,
    ITEM_NUMBER,
    ITEM_VAR,
    ITEM_TEXT,
    ITEM_LIST,
    ITEM_TUPLE,
    ITEM_SLICE,
    ITEM_ELLIPSIS,
    ITEM_DTYPE
} cot__item_kind;

typedef struct cot__item {
    cot__item_kind kind;
    int            n; /* of lists, tuples; a slice has three */
    union {
        int64_t                 integer; /* also BOOL and DTYPE */
        double                  number;
        cot_var                 var;
        const char             *text;
        const struct cot__item *items;
    } as;
} cot__item;

/* ---- steps ----------------------------------------------------------------------------------- */

typedef enum cot__expr_step_kind {
    STEP_PUSH,     /* a literal: item */
    STEP_LOAD,     /* name n */
    STEP_STORE,    /* the top, which stays, to name n */
    STEP_UNPACK,   /* the top, a tuple of n, stays; its parts are pushed, the last on top */
    STEP_DROP,     /* the top */
    STEP_UNARY,    /* what: '-' '+' or STEP_NOT */
    STEP_BINARY,   /* what: an operator */
    STEP_COMPARE,  /* what: an operator */
    STEP_COMPARE_ON, /* the same of a chain: the second operand stays on top */
    STEP_BOTH,     /* two results of a chain become one */
    STEP_NOT,
    STEP_JUMP,     /* n steps further on */
    STEP_CHOOSE,   /* takes the top, and jumps n steps if it is false */
    STEP_AND,      /* leaves the top and jumps n steps if it is false, else takes it */
    STEP_OR,       /* … if it is true */
    STEP_LIST,     /* of n */
    STEP_TUPLE,
    STEP_SLICE,    /* of three */
    STEP_INDEX,    /* n items, and what they index below them */
    STEP_ATTRIBUTE, /* item.as.text */
    STEP_CALL
} cot__expr_step_kind;

/* Where an argument stands in the text, and which parameter it is. */
typedef struct cot__given {
    uint32_t start, stop;
    int      parameter;
} cot__given;

typedef struct cot__expr_step {
    uint8_t  kind;
    int      what, n;
    uint32_t start, stop; /* what the step computes */
    uint32_t at, at_stop; /* what is to blame when it fails: the operator, the function's name */
    union {
        cot__item item;
        struct {
            const cot__callee *callee;
            const cot__given  *given; /* n of them */
        } call;
    } as;
} cot__expr_step;

typedef struct cot__name {
    const char *text;
    uint32_t    length, hash;
    bool        assigned, required;
    int         order; /* among the required ones */
} cot__name;

struct cot__expr {
    cot__store    pool;
    cot__expr_step   *steps;
    size_t       count, room;
    cot__name   *names;
    size_t       name_count, name_room;
    uint32_t    *table; /* hash table of names: index + 1 */
    size_t       table_room;
    const char **required;
    int          required_count;
    size_t       height; /* of the stack, at most */
    char        *text;   /* a copy, for the places of errors */
    size_t       length;
};

/* ---- errors ---------------------------------------------------------------------------------- */

/* Fills *error with the place [start, stop) of the text and a sentence; returns false. */
bool cot__expr_fail(cot__expr_error *error, const char *text, size_t length, size_t start, size_t stop,
                    const char *format, ...) __attribute__((format(printf, 6, 7)));
bool cot__expr_short_of_memory(cot__expr_error *error);

/* ---- running --------------------------------------------------------------------------------- */

typedef struct cot__evaluation {
    const cot__expr *e;
    cot_tape        *t;
    cot__store        pool;
    cot__expr_error *error;
    const cot__expr_step *step; /* the one that runs */
} cot__evaluation;

/* All of these return false with the error filled. */
/* blames the step's `at` */
bool cot__evaluation_fail(cot__evaluation *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool cot__evaluation_fail_at(cot__evaluation *r, size_t start, size_t stop, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bool cot__evaluation_tape_failed(cot__evaluation *r); /* the sentence of the tape */
bool cot__checked(cot__evaluation *r, cot_var x, cot__item *out); /* a result of the library */

bool cot__operate_unary(cot__evaluation *r, int what, const cot__item *x, cot__item *out);
bool cot__operate_binary(cot__evaluation *r, int what, const cot__item *x, const cot__item *y, cot__item *out);
bool cot__operate_compare(cot__evaluation *r, int what, const cot__item *x, const cot__item *y, cot__item *out);
bool cot__operate_both(cot__evaluation *r, const cot__item *x, const cot__item *y, cot__item *out);
bool cot__operate_truth(cot__evaluation *r, const char *where, const char *instead, const cot__item *x, bool *out);
bool cot__operate_call(cot__evaluation *r, const cot__item *given, cot__item *out);
bool cot__operate_index(cot__evaluation *r, const cot__item *x, int n, const cot__item *items, cot__item *out);
bool cot__operate_attribute(cot__evaluation *r, const cot__item *x, const char *name, cot__item *out);

/* ---- conversions (convert.c) ----------------------------------------------------------------- */

bool        cot__is_plain(const cot__item *x); /* a number or a bool of the text, not of the tape */
double      cot__plain_value(const cot__item *x);
cot_var     cot__plain_operand(const cot__item *x); /* cot_number or cot_integer */
/* "a string", "an array of shape (2,3)" */
const char *cot__item_words(const cot__item *x, char *buf, size_t size);
/* on the tape, numbers as constants */
bool        cot__to_var(cot__evaluation *r, const cot__item *x, cot_var *out);
/* numbers stay weak */
bool        cot__to_operand(cot__evaluation *r, const cot__item *x, cot_var *out);
/* Integers known when the expression runs: plain ones, or an integer scalar on the tape. */
bool cot__as_integer(const cot__item *x, int64_t *out);
/* A dtype by name. */
bool cot__dtype_named(const char *name, size_t length, cot_dtype *out);
/* pi, e, inf, nan, or a dtype. */
bool cot__known_name(const char *name, size_t length, cot__item *out);

static inline cot__item cot__item_var(cot_var x) { return (cot__item){.kind = ITEM_VAR, .as.var = x}; }
static inline cot__item cot__item_number(double x) { return (cot__item){.kind = ITEM_NUMBER, .as.number = x}; }
static inline cot__item cot__item_integer(int64_t x) { return (cot__item){.kind = ITEM_INTEGER, .as.integer = x}; }
static inline cot__item cot__item_bool(bool x) { return (cot__item){.kind = ITEM_BOOL, .as.integer = x}; }
static inline bool      cot__is_sequence(const cot__item *x) { return x->kind == ITEM_LIST || x->kind == ITEM_TUPLE; }

#endif
