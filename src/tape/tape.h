/* tape.h: the inside of a tape, for the files that write or read one: nodes, tensors, recording,
 * rules.
 *
 * Invariants (cot_tape_check verifies them):
 *   - nodes are in the order in which they ran; the operands of a node have smaller indices;
 *   - an operation with several results is one node for each: its own, which holds result 0, and
 *     directly behind it a pick for each further one, whose operand is that node;
 *   - a 0-d value lives inside its node in its own dtype, and anything else is a cot__tensor on a
 *     counted storage; on a device that says so, 0-d values are cot__tensors of rank 0, too;
 *   - a node is never changed after it was recorded, except a source by cot_assign and a leaf by
 *     gradients;
 *   - nothing recursive ever walks a tape.
 *
 * May call: base, job, rules, backend, program. Must not touch: derivatives; a record says what an
 * operation is. */
#ifndef COT_TAPE_H
#define COT_TAPE_H

#include "base/base.h"
#include "base/cache.h"
#include "base/file/mapped.h"
#include "base/file/store.h"
#include "backend/backend.h"
#include "rules/rules.h"

#include <string.h>

/* ---- storage and tensors --------------------------------------------------------------------- */

/* How the elements of a constant are made, where they are not the user's: random numbers. It is
 * the beginning of what the function needs besides. */
typedef struct cot__made_so {
    void (*give)(const struct cot__made_so *g, const cot__backend *b, const cot__view *z);
} cot__made_so;

typedef struct cot__storage {
    int64_t  refs;
    const cot__backend *backend; /* the device on which its elements lie */
    size_t   bytes;              /* payload */
    void    *data;               /* 64-byte aligned, except borrowed memory */
    uint32_t version;            /* bumped by every write after the first */
    /* the first node whose rule saved this storage's value (see cot__has_saver) */
    uint32_t saver;
    uint32_t saver_version;      /* the version that the saver saved; UINT32_MAX: none */
    /* the last node that wrote in place, UINT32_MAX: none (or outside: cot_touch, cot_assign) */
    uint32_t writer;
    bool     borrowed;
    bool     aside;              /* a leaf's or a gradient: it does not count (cot__cache.aside) */
    /* of its references: those for which it will be a leaf's gradient. When no others are left it
     * is set aside */
    uint32_t gradients;
    /* 1 + its number among the storages that waiting work touches; 0: none does (src/pending) */
    uint32_t touched;
    /* its elements are not there: waiting work writes them, or they are those of an example */
    bool     unready;
    uint8_t  scoped;             /* while a scope closes: may it go? (closed.c) */
    uint8_t  example;            /* 1 + the dtype of an example (examples.h); 0: it is none */

    /* src/memory: on a tape with a limit the elements may be dropped, and made again when somebody
     * looks */
    void    *block;   /* the allocation that `data` lies in; NULL: it is in that of the header */
    /* no elements: data is NULL, unless they are on their way from the store */
    bool     dropped;
    bool     replays, moves; /* in the present search: it may be dropped, or go to the store */
    uint32_t pins;    /* who computes with it while others are made again */
    uint32_t maker;   /* the operation whose result it is, and will be again; COT__NONE: none */
    const cot__made_so *given; /* of a constant: how it is made; NULL: it cannot be */
    uint64_t read_at; /* the tape's clock when its elements were asked for last … */
    uint64_t used_at; /* … or were made */
    double   cost;    /* of making it again, once it was asked for; 0 before */
    double   before, behind; /* the same for what is dropped that it is made from, or serves */
    /* The node that it is the value of, whatever was written to it since: who reads it comes
     * through cot__look. COT__NONE: somebody else may hold its address. */
    uint32_t   owner;
    uint32_t   stored_version; /* what lies in `stored` is the value of this version */
    cot__extent stored;        /* in the spill folder; store NULL: it is not there */
    /* its elements as bf16 (pack.c), for rules alone; NULL: it is not packed. Then f32 elements
     * are there only while somebody computes with them: `dropped` says whether. */
    uint16_t   *packed;
    struct cot__storage *next_wide; /* the next of those that are there */
} cot__storage;

/* Shape, strides and place of a tensor value. Lives in the tape's arena. */
typedef struct cot__tensor {
    cot__storage *storage;
    int64_t       offset; /* in elements */
    int64_t       size;   /* number of elements */
    uint32_t      version;/* of the storage when this value was made */
    int32_t       ndim;   /* 0 only where the backend keeps 0-d values (cot__scalars_in_nodes) */
    int64_t       dims[]; /* ndim extents, then ndim strides */
} cot__tensor;

/* ---- nodes ----------------------------------------------------------------------------------- */

/* no operand; for an elementwise operand: the number in `extra.number` */
#define COT__NONE UINT32_MAX

enum {
    COT__ACTIVE  = 1,  /* depends on a leaf: gets an adjoint */
    COT__NARY    = 2,  /* operands are in extra.attr->args, not in a and b */
    COT__HAS_GRAD = 4, /* leaf: extra holds a gradient; so of a value whose gradient is retained */
    /* the same bit of any other, in a body: a derivative recorded it, see mode.repeats. So
     * COT__HAS_GRAD is asked of leaves and with COT__RETAIN alone, which takes this away */
    COT__REPEATS = 4,
    COT__RETAIN  = 8,  /* cot_retain_grad */
    COT__NAMED   = 16,
    COT__IN_PLACE = 32, /* its storage was donated by operand a */
    COT__WANTED  = 64, /* while a sweep runs: its adjoint or tangent is asked for */
    COT__FIXED   = 128 /* in a body that is over: its value is the same at every step, and kept */
};

/* This bit of `stamp` is set in nodes of a body that is over. No var has it. */
#define COT__BODY_STAMP UINT32_C(0x80000000)
/* The largest stamp: with three bits more (cot__assigner) it still fits and is not COT__NONE. */
#define COT__LAST_STAMP (UINT32_MAX / COT__ASSIGNERS - 1)

#define COT__TENSOR 0x80u /* in `kind`: value.tensor; otherwise a 0-d value in its node */

typedef union cot__value {
    double       f64;
    float        f32;
    uint16_t     half;
    int64_t      i64;
    int32_t      i32;
    uint8_t      u8;
    cot__tensor *tensor;
} cot__value;

typedef struct cot__node {
    uint16_t op;
    uint8_t  kind;  /* dtype, with COT__TENSOR for tensors; 0 is an f64 scalar */
    uint8_t  flags;
    uint32_t stamp;
    /* operands; for a source the time of its last assignment: index, and stamp *
     * COT__ASSIGNERS + cot__assigner */
    uint32_t a, b;
    union {
        double        number; /* elementwise: the immediate; leaf in its node: its gradient */
        uint32_t      c;      /* elementwise with three operands */
        cot__attr    *attr;   /* structural */
        /* tensor leaf: its gradient, row-major in the leaf's dtype, or NULL */
        cot__storage *grad;
    } extra;
    cot__value value;
} cot__node;

/* op, kind, flags and stamp of a node as one word, for the hot paths: one load answers several
 * questions. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define COT__HEADS 1
#define COT__HEAD_KIND (UINT64_C(0xff) << 16)
#define COT__HEAD_FLAGS(flags) ((uint64_t)(flags) << 24)
static inline uint64_t cot__head(const cot__node *n) {
    uint64_t head;
    __builtin_memcpy(&head, n, sizeof head);
    return head;
}
#else
#define COT__HEADS 0
#endif

typedef char cot__node_is_32_bytes[sizeof(cot__node) == 32 ? 1 : -1];

/* Is the node in a body that is over? Such a node is played again, under other numbers, and never
 * swept itself. */
static inline bool cot__in_body(const cot__node *n) { return (n->stamp & COT__BODY_STAMP) != 0; }

/* The functions that write to leaves and constants for good. */
typedef enum cot__assigner {
    COT__ASSIGN, COT__ASSIGN_DATA, COT__SGD_STEP, COT__ADAMW_STEP, COT__OPTIM_STEP, COT__OPTIM_SWAP, COT__ASSIGNERS = 8
} cot__assigner;

/* Was this leaf or constant ever assigned? (Before that b is 0 in a leaf, COT__NONE in a
 * constant.) */
static inline bool cot__was_assigned(const cot__node *n) {
    return (n->op == OP_leaf || n->op == OP_constant) && n->b != COT__NONE && n->b != 0;
}

/* ---- the tape -------------------------------------------------------------------------------- */

/* Memory that a function took for itself when there were `from` nodes and gave back when there were
 * `to`, COT__NONE while it has it; with what others had then it made at_once. */
typedef struct cot__scratch_note {
    size_t   bytes, at_once;
    uint32_t from, to;
} cot__scratch_note;

/* A growing array of plain data. Large ones reserve address space once and never move. */
typedef struct cot__array {
    void  *data;
    size_t bytes;    /* allocated */
    bool   reserved; /* by mmap: `bytes` of address space, touched as needed */
    cot__mapped *mapped; /* it lies in a file, of which `bytes` are in use; NULL: in memory */
} cot__array;

typedef struct cot__chunk {
    struct cot__chunk *prev;
    size_t             size, used;
    double             align[]; /* payload */
} cot__chunk;

/* closed: a scope has closed over the value, so nobody gets a var of it any more */
typedef struct cot__named { uint32_t node; bool closed; const char *name; } cot__named;
/* nodes first … next run */
typedef struct cot__site_run { uint32_t first; const cot_site *site; } cot__site_run;
typedef struct cot__retained { uint32_t node; double scalar; cot__storage *tensor; } cot__retained;

/* Elementwise work that waits until somebody looks (src/pending). */
typedef struct cot__pending cot__pending;
/* The elements of s, which were dropped, are made again (src/memory). False after setting the
 * error. */
bool cot__make_again(const cot_tape *t, cot__storage *s);
/* Work that writes s is done. */
void cot__pending_ready(const cot_tape *t, cot__storage *s);
/* After nodes were forgotten: what waits is done, unless a sweep is under way. */
void cot__pending_rewound(cot_tape *t);
void cot__pending_forget(cot_tape *t); /* drops it: nobody will look */
/* s has no owner any more. True: the work that touches it keeps it, until it is done. */
bool cot__pending_keeps(cot_tape *t, cot__storage *s);

/* On whose behalf a tape records (scope.h saves these and gives them back). */
typedef struct cot__modes {
    /* the custom operation one of whose functions runs; NULL: none. Then no sweep may begin, … */
    const char *inside;
    /* the operation whose body is being recorded; NULL: none. Then values from here on cannot be
     * read, … */
    const char *body;
    uint32_t    inside_from; /* … and nothing before this node be forgotten */
    /* … nor what is older be written in place or forgotten (of nested bodies: the outermost) */
    uint32_t    body_from;
    int         no_grad; /* how many no-grad scopes are open */
    /* the bodies that are being recorded are all cot_vmap's: each is played for a batch, at once */
    bool        batch;
    /* while patterns are found: an example that is no position fails, and all that the branch could
     * reach counts */
    bool        strict_positions;
    /* what is recorded becomes a program that holds no address of the user's, and whose random
     * numbers differ from run to run */
    bool        compiling;
    bool        leaf;      /* the result that is opened is a leaf's: it does not count */
    bool        verifying; /* a compiled function is recorded again, by the same rules */
    /* COT__REPEATS, or 0: what is recorded belongs to a derivative, whose function was recorded
     * before it. What it checks in the data has been checked there, so a body keeps of it what its
     * results need (region.c) */
    uint8_t     repeats;
} cot__modes;

/* Scopes of the user's, open and closed (closed.h). */
enum { COT__DEEPEST_SCOPE = 16, COT__SCOPE_NAME = 32 };
typedef struct cot__open_scope {
    uint32_t    from, storages, names; /* the first node, storage and name of it */
    uint32_t    stamp;          /* the tape's when it was opened */
    /* leaves and constants that were assigned since are among nodes low … high - 1 */
    uint32_t    low, high;
    bool        packs;          /* cot_precision.saved has been COT_BF16 since */
    const char *body;           /* the body that was recorded when it was opened */
    char        name[COT__SCOPE_NAME];
} cot__open_scope;
typedef struct cot__closed {
    uint32_t from, to, stamp; /* its nodes from … to - 1 have this stamp */
    char     name[COT__SCOPE_NAME];
} cot__closed;

typedef struct cot__kept_object {
    void *object;
    void (*release)(void *object);
} cot__kept_object;

struct cot_tape {
    /* touched by every operation */
    cot__node *nodes;
    uint32_t   count;
    /* capacity while all is well, 0 after an error: one comparison checks both. Always 0 where 0-d
     * values do not live in nodes: then no fast path is taken */
    uint32_t   fast_limit;
    /* Laid out like the head of a node, so that one load gives each in its place (where
     * COT__HEADS). */
    union {
        struct { uint32_t no_op, stamp; }; /* 0; changes at every public rewind */
        uint64_t stamp_head;
    };
    union {
        /* 0; COT__ACTIVE, or 0 inside a no-grad scope */
        struct { uint8_t no_op_kind[3], active_mask; };
        uint32_t active_head;
    };

    uint32_t      capacity;
    uint32_t      most_nodes; /* that a rewind has found */
    cot__array    node_memory;
    cot_allocator al;       /* hands out of the cache, which counts what is in use */
    const cot__backend *backend; /* the device of its storages: everything is computed there */
    cot_status    status;
    /* from this node on there are only f64 scalars that the scalar sweeps know */
    uint32_t      scalars_from;
    /* the nodes before this one are older than the last cot_assign, and no others are */
    uint32_t      assigned_at;
    cot__chunk   *arena; /* the current chunk */
    cot__cache    cache;
    cot__modes    mode;
    cot_precision precision; /* of what the user calls (ops/precision.h) */

    /* tape.c: what the tape was made with */
    struct {
        bool    strict;
        bool    smooth; /* sweeps refuse points where a convention would have to be applied */
        int64_t sparse_limit; /* entries of a plan; 0: the default */
        int64_t load_steps;   /* of loops in a file; 0: the default */
    } options;
    /* diff/loops: steps that loops may still take while a file is loaded; INT64_MAX: any number */
    int64_t steps_left;

    /* tape.c: the first error, and the first note. The counts tell whether one is older than a
     * mark. */
    struct {
        uint32_t count;
        bool     placed; /* the source line of the error is known, or never will be */
        char     message[512];
    } errors;
    struct {
        uint32_t count;
        char     first[512]; /* "" when there is none */
    } notes;

    /* memory.c: storages in order of creation, one reference each */
    struct {
        cot__storage **list;
        uint32_t       count, capacity;
        int64_t        bytes; /* payload of all */
        /* one 0, repeated, in place of examples of positions that are none; NULL before the
         * first */
        cot__storage  *zero;
    } storages;
    /* memory.c: objects that are let go with what was recorded after them: programs of bodies, and
     * programs that were called */
    struct {
        cot__kept_object *list;
        uint32_t          count, capacity;
    } kept;
    struct {
        int             depth;
        cot__open_scope open[COT__DEEPEST_SCOPE];
        cot__closed    *closed;
        uint32_t        count, capacity;
    } scopes;
    /* lower.c: programs of bodies like those that were recorded before; NULL: none yet */
    struct cot__known *known;
    /* leaf_gradients.c: tensor leaves, in order, which own gradients, and the gradients that were
     * retained */
    struct {
        uint32_t *list;
        uint32_t  count, capacity;
    } leaves;
    struct {
        cot__retained *list;
        uint32_t       count, capacity;
    } retained;
    /* tape.c: what the user calls values, and where in the source they were recorded */
    struct {
        cot__named *list;
        uint32_t    count, capacity;
        /* they are not in the order of their nodes: a value was named late, or twice */
        bool        mixed;
    } names;
    /* called.c: while a text is written, how many of each kind there are before some of the nodes;
     * NULL: not counted */
    struct {
        uint32_t *number;
        uint32_t  count, depth; /* depth: texts that are written, one inside the other */
    } called;
    struct {
        cot__site_run *list;
        uint32_t       count, capacity;
    } sites;

    /* diff/engine: the sweep that is under way */
    struct {
        cot__array  adjoints; /* slots: all zero between sweeps */
        size_t      zeroed, most_zeroed; /* bytes; most: before what a trim gave back */
        /* scalar leaves that the running backward has reached: their adjoints stay in their slots
         * until the sweep has succeeded */
        uint32_t   *arrived;
        uint32_t    arrived_count, arrived_capacity;
        /* for messages: the function whose derivative is under way, the outermost; NULL: none */
        const char *asked;
    } sweep;

    /* src/pending: work that waits */
    struct {
        /* how many sweeps are under way, one inside the other: while one is, any elementwise work
         * may wait */
        int           sweeps;
        bool          at_once; /* nothing may wait: see cot__pending_pause */
        cot__pending *work;    /* NULL: nothing has waited yet */
        uint32_t patients;     /* operations that wait to be asked (patient.c) */
    } pending;

    /* src/memory: values are dropped so that a limit holds (memory.h) */
    struct {
        bool     on;          /* values may be dropped: their elements have memory of their own */
        uint32_t dropped;     /* how many storages have no elements now */
        int      holds;       /* somebody computes with elements though an operation is over */
        uint64_t clock;       /* counts operations, recorded or swept */
        uint64_t pinned_from; /* what was read since is being computed with */
        /* a sweep in numbers has passed these nodes: it will not read their values again */
        uint32_t passed_from, passed_to;
        int64_t  replayed;    /* operations that were done again */
        cot__store *store;    /* the spill folder of the options; NULL: none */
        cot__store *stores;   /* this one, and those of loops, by their folders */
        int64_t  brought;     /* values that were read back from it */
        bool     dropping;    /* while room is made: what needs memory for that finds none */
        uint64_t next_behind; /* before this time nothing more is written behind */
        bool     remakes;     /* there was a limit: values may know the operation that makes them */
        uint32_t packed;      /* values that are kept as bf16 */
        cot__storage *wide;   /* those of them whose elements are there; NULL: none */
        /* lists that lie in files of the spill folder (lists.c), and how many bytes of such a list
         * are to be in memory at once */
        cot__mapped *mapped;
        size_t       window;
        bool         list_refused; /* a list found no room, which a spill folder would have */
        /* what functions took for themselves while they recorded, in order (scratch.c) */
        struct {
            cot__scratch_note *list;
            uint32_t           count, capacity;
            size_t             open; /* what they have now */
        } scratch;
        /* where the elements of a value seem to lie that could not be made again: one zero */
        double   nothing[2];
    } memory;

    /* diff/engine/smooth.c */
    struct {
        struct cot__findings *look; /* while cot_report sweeps: what it has found so far */
    } kinks;
};

#define VAR(t, index) ((cot_var){(t), ((uint64_t)(t)->nodes[index].stamp << 32) | (index)})
#define INVALID(t) ((cot_var){(t), UINT64_MAX})
static inline uint32_t cot__index(cot_var x) { return (uint32_t)x.id; }
static inline bool     cot__is_number(cot_var x) { return (uintptr_t)x.tape == 1 || (uintptr_t)x.tape == 2; }
static inline double   cot__number_value(cot_var x) {
    union { uint64_t u; double d; } bits = {x.id};
    return (uintptr_t)x.tape == 2 ? (double)(int64_t)x.id : bits.d;
}
static inline cot_dtype cot__dtype_at(const cot__node *n) { return (cot_dtype)(n->kind & 0x7f); }
/* Does the value lie on a storage? */
static inline bool      cot__is_tensor(const cot__node *n) { return (n->kind & COT__TENSOR) != 0; }
/* Has it axes? A 0-d value has none, wherever it lies. */
static inline bool cot__has_axes(const cot__node *n) { return cot__is_tensor(n) && n->value.tensor->ndim > 0; }
/* Do 0-d values live in their nodes? Otherwise they are tensors of rank 0 on the device. */
static inline bool cot__scalars_in_nodes(const cot_tape *t) { return t->backend->scalars_in_nodes; }

/* Do the scalar sweeps know this operation? (The three operations over lists of scalars stand
 * together in ops.def.) */
static inline bool cot__in_switch(const cot__node *n) {
    return n->op < OP_structural || (n->op >= OP_sum_of && n->op <= OP_logsumexp_of);
}
static inline bool cot__sweeps_know(const cot__node *n) {
    return cot__in_switch(n) || n->op == OP_leaf || n->op == OP_constant;
}
/* May a sweep over f64 scalars meet this node: as one of them, or as one that it passes over? */
static inline bool cot__is_swept_scalar(const cot__node *n) {
    return !(n->flags & COT__ACTIVE) || (n->kind == COT_F64 && cot__sweeps_know(n));
}

#define COT__MAX_NODES (UINT32_MAX - 16)
/* Room for one more node, or for n more; false after setting the error. */
bool cot__room(cot_tape *t, const char *op);
bool cot__room_for(cot_tape *t, const char *op, uint32_t n);

/* Operands of a node, number immediates (COT__NONE) included. */
int      cot__nargs(const cot__node *n);
uint32_t cot__arg(const cot__node *n, int k);

/* The node of the operation that node i is a result of: i itself, unless it is a pick. Result k of
 * that operation is node cot__operation_at + k. */
static inline uint32_t cot__operation_at(const cot_tape *t, uint32_t i) {
    return t->nodes[i].op == OP_pick ? t->nodes[i].a : i;
}
/* How many results the operation of node i has: i is not a pick. */
static inline int cot__results_at(const cot_tape *t, uint32_t i) {
    uint32_t end = i + 1;
    while (end < t->count && t->nodes[end].op == OP_pick) end++;
    return (int)(end - i);
}
/* Result k of the operation that z is result 0 of. Invalid if z is. */
static inline cot_var cot__result_of(cot_var z, int k) {
    return z.id == UINT64_MAX ? z : VAR(z.tape, cot__index(z) + (uint32_t)k);
}

/* Which values the rule of a node will read, given which of its operands are active. */
uint32_t cot__saved_mask(const cot_tape *t, uint32_t node);
/* Is there a living node whose rule reads the value that storage s had at `version`? It is
 * s->saver: what a rewind forgot, or another node at its index, does not count. */
bool cot__has_saver(const cot_tape *t, const cot__storage *s, uint32_t version);
void cot__note_saves(cot_tape *t, uint32_t node);
/* cot_detach under the name of the function that was called. */
cot_var cot__detach(const char *op, cot_var x);
/* The function that assigned a leaf or constant, "cot_sgd_step". */
const char *cot__assigner_name(const cot__node *n);
/* How messages name the write that made v stale, the first after it where that is known. */
typedef enum cot__writer { COT__IN_PLACE_WRITE, COT__ASSIGNMENT, COT__OUTSIDE_WRITE, COT__REWOUND_WRITE } cot__writer;
cot__writer cot__describe_writer(const cot_tape *t, const cot__tensor *v, char *buf, size_t size);

/* Puts the first error on the tape and returns an invalid var. The text is "[op] fact, fact;
 * rule". */
cot_var cot__fail(cot_tape *t, cot_status code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Names the function that was called, for messages about what its sweeps find and about memory that
 * is short; of functions that call each other, the outermost. Give what it returns to cot__asked
 * when done. */
static inline const char *cot__ask(cot_tape *t, const char *op) {
    const char *before = t->sweep.asked;
    if (!before) t->sweep.asked = op;
    return before;
}
static inline void cot__asked(cot_tape *t, const char *before) { t->sweep.asked = before; }

/* Puts the first note on the tape: something about the data that a user should know, while
 * everything goes on. "[op] fact; consequence". */
void cot__note(cot_tape *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The invalid var that an operation on these vars returns, on the tape of the first that has
 * one. */
cot_var cot__invalid(int n, const cot_var *xs);
/* The status of the tape that these vars are on, failed or not; COT_VAR when they are on none,
 * COT_VALUE when n is negative. */
cot_status cot__status_of(int n, const cot_var *xs);
/* Checks that x is a live value of t (or sets the error "[op] the WHICH operand …") and gives its
 * index. */
bool cot__operand(cot_tape *t, cot_var x, const char *op, const char *which, uint32_t *index);
/* The tape that an operation on these vars records on: the first real one; NULL when there is none
 * or it has failed. */
cot_tape *cot__tape_of(int n, const cot_var *xs);
/* The same for a function that starts from the ys, which `what` names ("y", "ys"). If the ys are
 * missing or on no tape, it puts that error on the tape of the others, if those have one, and
 * returns NULL. */
cot_tape *cot__tape_beside(const char *op, const char *what, int m, const cot_var *ys, int n, const cot_var *others);
/* Is there a list of n places or values? Otherwise sets the error "[op] the list of n WHAT is
 * NULL". */
bool cot__list_given(cot_tape *t, const char *op, const char *what, int n, const void *list);
/* t, or NULL when it is NULL or has failed. */
cot_tape *cot__usable(cot_tape *t);
/* One operand of a structural operation: its tape and index, with all checks done. A plain number
 * is recorded as a constant of t's (needs another operand to know the tape: pass it in `t`; NULL
 * otherwise). Returns NULL after a failure. */
cot_tape *cot__enter(cot_tape *t, cot_var x, const char *op, const char *which, uint32_t *index);
/* The same for element k of a list: "list[k]as" names it, a text that is made for a message
 * alone. */
cot_tape *cot__enter_listed(cot_tape *t, cot_var x, const char *op, const char *list, int k, const char *as,
                            uint32_t *index);

/* Shape and strides of a 0-d value, and strides that show one element as many. */
extern const int64_t cot__no_axes[1], cot__no_strides[COT_MAX_NDIM];
/* The zero that stands for elements that could not be made again. */
void *cot__nothing(const cot_tape *t);

/* A value as an operand or the result of work that may wait (src/pending): where its elements are,
 * or will be. Who reads or writes elements takes cot__look instead. storage NULL: a number, a 0-d
 * value in its node, or memory that is not the tape's, on which no work waits. */
typedef struct cot__bound { cot__view view; cot__storage *storage; } cot__bound;

/* Dtype, shape and strides of node i; no elements. */
static inline cot__view cot__layout_at(const cot_tape *t, uint32_t i) {
    const cot__node   *n = &t->nodes[i];
    const cot__tensor *v = n->value.tensor;
    if (!cot__is_tensor(n)) return (cot__view){NULL, cot__dtype_at(n), 0, cot__no_axes, cot__no_axes};
    return (cot__view){NULL, cot__dtype_at(n), v->ndim, v->dims, v->dims + v->ndim};
}
static inline cot__bound cot__bound_at(const cot_tape *t, uint32_t i) {
    cot__node *n = &t->nodes[i];
    cot__bound b = {cot__layout_at(t, i), NULL};
    if (!cot__is_tensor(n)) return b.view.data = &n->value, b;
    b.storage = n->value.tensor->storage;
    b.storage->read_at = t->memory.clock;
    if (UNLIKELY(b.storage->dropped) && !cot__make_again(t, b.storage)) {
        b.view.data = cot__nothing(t); /* the error is on the tape; whoever reads finds zeros */
        b.view.stride = cot__no_strides;
        return b;
    }
    b.view.data = (char *)b.storage->data + n->value.tensor->offset * cot__dtype_size(b.view.dtype);
    return b;
}
/* The elements of node i: work that writes them and waits is done first. Valid until the next node
 * is pushed. Who writes them settles the storage first (cot__pending_settle). */
static inline cot__view cot__look(const cot_tape *t, uint32_t i) {
    cot__bound b = cot__bound_at(t, i);
    if (UNLIKELY(b.storage && b.storage->unready)) cot__pending_ready(t, b.storage);
    return b.view;
}
cot_shape cot__shape_at(const cot_tape *t, uint32_t i);
bool      cot__has_shape(const cot_tape *t, uint32_t i, const cot_shape *s);
int       cot__ndim_at(const cot_tape *t, uint32_t i);
int64_t   cot__size_at(const cot_tape *t, uint32_t i);
size_t    cot__bytes_at(const cot_tape *t, uint32_t i); /* of its elements side by side */
/* cot__shape_text (job/job.h) of node i. */
const char *cot__shape_text_at(const cot_tape *t, uint32_t i, char *buf);

/* ---- recording ------------------------------------------------------------------------------- */

/* A result under construction: cot__result_open makes room for it, the kernel writes through view,
 * cot__result_push records it. */
typedef struct cot__result {
    cot__view    view;
    cot__value   scalar;  /* where a 0-d result goes that will live in its node */
    cot__tensor *tensor;
} cot__result;
bool    cot__result_open(cot_tape *t, cot__result *r, const char *op, cot_dtype dtype, int ndim, const int64_t *shape);
/* The same for a shape that was checked, or that another value has; it has `size` elements. */
bool    cot__result_open_sized(cot_tape *t, cot__result *r, const char *op, cot_dtype dtype, int ndim,
                               const int64_t *shape, int64_t size);
/* Operands as in the node: args[0..n). Activity follows from the operands, the op's record and
 * no-grad scopes. attr may be NULL. */
cot_var cot__result_push(cot_tape *t, cot__result *r, int op, int n, const uint32_t *args, cot__attr *attr);
/* The same for an operation with m results, r[0 … m), of which the first is a float if any is: all
 * nodes or none. The var is that of result 0. */
cot_var cot__results_push(cot_tape *t, int m, cot__result *r, int op, int n, const uint32_t *args, cot__attr *attr);

/* A result that is a view of operand `of`: same storage, other shape and strides. A 0-d view copies
 * the one element; a view of a 0-d value gets a storage of one element. So 0-d values share memory
 * with nothing, on any device. offset counts elements from the operand's first. */
cot_var cot__push_view(cot_tape *t, int op, uint32_t of, int ndim, const int64_t *shape, const int64_t *stride,
                       int64_t offset, cot__attr *attr);
/* The same for a type that was checked, with the name that messages use. */
cot_var cot__push_view_as(cot_tape *t, const char *name, int op, uint32_t of, const cot__type *z, const int64_t *stride,
                          int64_t offset, cot__attr *attr);

/* A result on a storage that the tape already keeps; stride NULL: row-major. */
cot_var cot__push_storage(cot_tape *t, int op, cot__storage *s, cot_dtype dtype, int ndim, const int64_t *shape,
                          const int64_t *stride, int64_t offset, int n, const uint32_t *args);
/* Number of elements of a shape, or -1 after setting the error (negative extents, too large). */
int64_t cot__checked_size(cot_tape *t, const char *op, cot_dtype dtype, int ndim, const int64_t *shape);
/* Does node i have a value that may be read? Not while the body it belongs to is recorded: sets the
 * error, which ends with what to do instead. */
bool cot__has_values(cot_tape *t, const char *op, uint32_t i, const char *instead);
/* Copies a view out, row-major; n must match. */
cot_status cot__read_view(cot_tape *t, const char *op, const cot__view *v, cot_dtype dtype, void *out, int64_t n);

/* Arena memory that a rewind frees; NULL after setting the error. */
void      *cot__arena(cot_tape *t, size_t bytes, const char *op);
cot__attr *cot__attr_make(cot_tape *t, const char *op, int nints, const int64_t *ints, int nargs, const uint32_t *args);

/* ---- values that may be dropped (src/memory) ------------------------------------------------- */

/* What the options and the environment say of the limit; an error goes to the tape. */
void cot__memory_begin(cot_tape *t, const cot_options *options);
/* The constant z can be made again so: keeps `bytes` of what *g begins. Returns z. */
cot_var cot__note_made_so(cot_tape *t, cot_var z, const cot__made_so *g, size_t bytes);
/* An operation is over: what it computed with may be dropped again. */
void cot__memory_next(cot_tape *t);
static inline void cot__memory_tick(cot_tape *t) {
    if (UNLIKELY(t->memory.on)) cot__memory_next(t);
}
/* Memory that a function takes for itself while it records, and gives back before it returns. NULL,
 * and no error is set, where there is none (memory/scratch.c). */
void *cot__scratch_open(cot_tape *t, size_t bytes);
void  cot__scratch_close(cot_tape *t, void *p, size_t bytes);
/* What happens between these two calls takes memory of its own, and gives it back. */
typedef struct cot__scratch_seen { size_t seen, used; } cot__scratch_seen;
cot__scratch_seen cot__scratch_watch(cot_tape *t);
void              cot__scratch_watched(cot_tape *t, cot__scratch_seen before);
/* Nodes were forgotten, and what was taken between them. again: whoever did will take it again for
 * the node that comes next, which plays a body, say. */
void cot__scratch_rewound(cot_tape *t, bool again);
/* A sweep goes to node i: what it will read next is read from the store. */
void cot__memory_ahead(cot_tape *t, uint32_t i);
/* The elements of s are about to be written: nobody reads them any more for the store. */
void cot__memory_settle(cot__storage *s);
/* Does what waits if `bytes` more would pass the limit: it holds memory, and touched values cannot
 * be dropped. */
void cot__memory_expect(cot_tape *t, size_t bytes);
/* Storage s is about to be written in place: what is made from its present elements is made
 * first. False after setting the error. */
bool cot__memory_before_write(cot_tape *t, cot__storage *s);
/* May values be dropped now, and made again from others? */
bool cot__limited(const cot_tape *t);
/* Is a scope that is opened now to have its values packed, where nobody but rules reads them? */
static inline bool cot__packs(const cot_tape *t) { return t->precision.saved == COT_BF16 && !t->cache.limit; }
/* The f32 elements of s are kept as bf16 from now on; where that cannot be, they stay. */
void cot__pack(cot_tape *t, cot__storage *s);
/* s goes, or is written: so does what it holds as bf16. */
void cot__pack_end(cot_tape *t, cot__storage *s);
/* One more reference on storage s, whose elements are there from now on. False after setting the
 * error. */
bool cot__storage_share(cot_tape *t, cot__storage *s);
/* Memory for the elements of s, and its end: s has a header of its own. */
bool cot__payload_create(cot_tape *t, cot__storage *s);
void cot__payload_drop(cot_tape *t, cot__storage *s);

/* Internal marks: like the public ones, but the stamp stays. */
cot_mark cot__mark(cot_tape *t);
void     cot__rewind(cot_tape *t, cot_mark m);
/* The tape's next stamp, after a rewind: vars that it has forgotten are recognised. */
void cot__next_stamp(cot_tape *t);
/* How many nodes are older than the assignment that source n remembers. */
uint32_t cot__older_nodes(const cot_tape *t, const cot__node *n);

/* The device of new tapes, the CPU. A variable only for the tests: it must not show in any
 * result. */
extern const cot__backend *cot__new_tape_backend;

/* refs 1, contents undefined */
cot__storage *cot__storage_create(cot_tape *t, size_t bytes, const char *op);
/* The same for a leaf or a gradient, which does not count to what the tape has in use; and a
 * storage becomes one that does not. */
cot__storage *cot__storage_create_aside(cot_tape *t, size_t bytes, const char *op);
void          cot__storage_set_aside(cot_tape *t, cot__storage *s);
/* Memory of the tape's device for a while, without a storage; NULL, and no error is set, when there
 * is none. */
void *cot__device_alloc(cot_tape *t, size_t bytes);
void  cot__device_free(cot_tape *t, void *memory, size_t bytes);
/* The store of a folder, the same each time; NULL after setting the error. */
cot__store *cot__store_of(cot_tape *t, const char *folder, const char *op);
void        cot__stores_close(cot_tape *t); /* no storage is left that lies in one */
/* An extent of the store of a folder, for what shall not stay in memory: `bytes`, or fewer where
 * there is no room for them, but at least `least`. The storage has no elements. */
cot__storage *cot__storage_in_store(cot_tape *t, size_t bytes, size_t least, const char *folder, const char *op);
cot__storage *cot__storage_wrap(cot_tape *t, void *memory, size_t bytes, const char *op);
void          cot__storage_release(cot_tape *t, cot__storage *s);
/* Takes over the caller's reference; the tape's list frees it at rewind. */
bool cot__storage_keep(cot_tape *t, cot__storage *s, const char *op);

/* The tape keeps an object until it is rewound to before now, or destroyed, and then releases it.
 * False after setting the error. */
bool cot__tape_keep(cot_tape *t, void *object, void (*release)(void *object), const char *op);
/* Lets go all objects after the first `count`. */
void cot__release_kept(cot_tape *t, uint32_t count);

/* Growing arrays of the tape: room for one more element. False after setting the error. */
enum { COT__GROWS_FROM = 16, COT__FIRST_NODES = 64 };
bool cot__grow(cot_tape *t, void **data, uint32_t *capacity, uint32_t count, size_t element, const char *op);

/* ---- long lists (src/memory/lists.c) --------------------------------------------------------- */

/* Lists that have an entry for each node, or for many: where a limit and a spill folder are, those
 * that are long lie in files of the folder. */
bool cot__array_reserve(cot_tape *t, cot__array *a, size_t bytes); /* no error is set */
void cot__array_free(cot_tape *t, cot__array *a);
/* Like cot__resize; NULL, and no error is set, where memory is short. */
void *cot__list_resize(cot_tape *t, void *list, size_t old_size, size_t new_size);
void  cot__list_end(cot_tape *t, void *list, size_t bytes);
static inline void cot__list_free(cot_tape *t, void *list, size_t bytes) {
    if (UNLIKELY(t->memory.mapped)) cot__list_end(t, list, bytes);
    else cot__free(&t->al, list, bytes);
}
/* A list of zeros. */
void *cot__list_new(cot_tape *t, size_t bytes);
static inline void *cot__list_zeros(cot_tape *t, size_t bytes) {
    void *list = UNLIKELY(t->memory.store) ? cot__list_new(t, bytes) : cot__alloc(&t->al, bytes);
    return list && !t->memory.store ? memset(list, 0, bytes) : list;
}
/* cot__grow for a list that cot__list_free frees. */
bool  cot__list_grow(cot_tape *t, void **data, uint32_t *capacity, uint32_t count, size_t element, const char *op);
/* Nodes were forgotten: recording meets the ends of windows again. */
void cot__lists_rewound(cot_tape *t);
/* Gives back what nodes and slots have and do not use, where that is much and nobody works on the
 * tape. */
void cot__lists_trim(cot_tape *t);
/* The limit has changed: lists that are now too long go to files. */
void cot__lists_limited(cot_tape *t);
/* Whoever walks over the tape has passed a window: what lies in files leaves the memory. Anybody
 * may say so at any time. */
void cot__lists_go(cot_tape *t);
static inline void cot__lists_leave(cot_tape *t) {
    if (UNLIKELY(t->memory.mapped)) cot__lists_go(t);
}
/* Entries of a window, for walks: the nodes between two calls of cot__lists_leave. Where no list
 * lies in a file: more than there are. */
static inline int64_t cot__window(const cot_tape *t) {
    return LIKELY(!t->memory.mapped) ? INT64_MAX / 2 : (int64_t)(t->memory.window / sizeof(cot__node));
}
/* A walk over all nodes, up or down, has come to node i. What can be read stays. */
void cot__lists_at(const cot_tape *t, uint32_t i);
static inline void cot__lists_walk(const cot_tape *t, uint32_t i) {
    if (UNLIKELY(t->memory.mapped)) cot__lists_at(t, i);
}
/* Zeroes `bytes` of a list. */
void cot__list_wipe(cot_tape *t, void *at, size_t bytes);
static inline void cot__list_clear(cot_tape *t, void *at, size_t bytes) {
    if (UNLIKELY(t->memory.mapped)) cot__list_wipe(t, at, bytes);
    else memset(at, 0, bytes);
}

const char     *cot__name_of(const cot_tape *t, uint32_t node); /* NULL: none */
const cot_site *cot__site_of(const cot_tape *t, uint32_t node); /* NULL: unknown */
/* "mul": the name of a node's operation; a custom operation goes by its own. */
const char *cot__op_name(const cot_tape *t, uint32_t node);
/* "mul (%12 "h", train.c:42)": how messages name a node. */
const char *cot__describe(const cot_tape *t, uint32_t node, char *buf, size_t size);

/* Elementwise operation on any mix of scalars, tensors and numbers: promotes, broadcasts, runs,
 * records. */
cot_var cot__elementwise(int op, int n, const cot_var *xs);

/* Records the operation of an existing node, with its attributes and numbers, on other operands: as
 * many as the node has; where the node has a number (COT__NONE), what stands in xs is not read. A
 * source is given back as it is; an operation in place is done on a copy. Of an operation with
 * several results this is its node, which picks follow; so a pick is found behind its operand. */
cot_var cot__reapply(cot_tape *t, uint32_t node, const cot_var *xs);

/* The same for a batch; without an operand that has it, the same as cot__reapply. xs may be
 * changed. Further results go to `more`, which may be NULL where there are none; the node is not a
 * pick. */
cot_var cot__reapply_batched(cot_tape *t, uint32_t node, const cot__batch *b, cot_var *xs, cot_var *more);
/* The usual cot__op.batch: every operand gets the batch in front, the axes among the attributes
 * move by one, and apply does the rest. */
cot_var cot__batch_shift(cot__rule *r, const cot__batch *b, cot_var *xs);

/* Is this code of an attribute that of a list? */
static inline bool cot__attr_is_list(char code) { return code == 'l' || code == 'p' || code == 'b'; }

/* ---- rules ----------------------------------------------------------------------------------- */

/* What a rule of a structural operation sees. It reads operands and result as vars, records
 * operations on them, and gives its contributions; the driver decides whether what it recorded
 * stays (cot_grad_of) or is forgotten (cot_backward). */
struct cot__rule {
    cot_tape       *t;
    uint32_t        node;
    const cot__op  *op;
    /* vjp: the adjoint of the result, with its shape and dtype. Of an operation with several
     * results: see cot__rule_g, by which rules read these */
    cot_var         g;
    const cot_var  *gs;       /* of results 1, 2, …; NULL: none has arrived */
    const cot_var  *tangents; /* jvp: of each operand; invalid where an operand does not move */
    cot_var         tangent;  /* jvp: what the rule returns */
    /* of results 1, 2, …: jvp, their tangents; batch, these results. NULL: nobody asks */
    cot_var        *more;
    void           *driver;
    void (*give)(cot__rule *r, int k, cot_var v);                       /* see cot__give */
    void (*give_slice)(cot__rule *r, int k, cot_var v, const int64_t slice[4]);
    void (*give_scatter)(cot__rule *r, int k, cot_var v, cot_var index, int axis, bool along);
    const cot__attr *attr;   /* apply: attributes instead of the node's; NULL: the node's */
    /* apply: the shape of the result instead of the node's, where apply asks; NULL: the node's */
    const cot_shape *result;
};

static inline const cot__node *cot__rule_node(const cot__rule *r) { return &r->t->nodes[r->node]; }
static inline const cot__attr *cot__rule_attr(const cot__rule *r) {
    return r->attr ? r->attr : r->t->nodes[r->node].extra.attr;
}
/* For which function the node looks at positions. */
static inline cot__asker cot__rule_asker(const cot__rule *r) { return cot__asker_in(r->op, cot__rule_attr(r)); }
static inline cot_shape cot__rule_result(const cot__rule *r) {
    return r->result ? *r->result : cot__shape_at(r->t, r->node);
}
static inline uint32_t         cot__rule_arg(const cot__rule *r, int k) { return cot__arg(&r->t->nodes[r->node], k); }
static inline cot_shape cot__rule_shape(const cot__rule *r, int k) { return cot__shape_at(r->t, cot__rule_arg(r, k)); }
/* Operand k and the result as vars. Reading an overwritten one sets the error that names both
 * operations. */
cot_var cot__rule_x(cot__rule *r, int k);
cot_var cot__rule_z(cot__rule *r);
/* The same for result k. */
cot_var cot__rule_result_of(cot__rule *r, int k);
/* vjp of an operation with several results: the adjoint of result k. Invalid: none has arrived, so
 * it is zero. */
static inline cot_var cot__rule_g(const cot__rule *r, int k) {
    return k == 0 ? r->g : r->gs ? r->gs[k - 1] : INVALID(r->t);
}
/* jvp: the tangent of result k is v. */
static inline void cot__rule_tangent(cot__rule *r, int k, cot_var v) {
    if (k == 0) r->tangent = v;
    else if (r->more) r->more[k - 1] = v;
}
/* Is an adjoint of operand k asked for? */
bool cot__rule_wants(const cot__rule *r, int k);
/* Adds v (shaped like operand k) to the adjoint of operand k. */
static inline void cot__give(cot__rule *r, int k, cot_var v) { r->give(r, k, v); }
/* vjp, in a sweep: was operand k made by the elementwise operation `op` right before this node,
 * does nobody else add to its adjoint, and does nobody ask for that? Then *under is the rule of
 * `op`, for a rule that does the work of both: it gives to the operand of *under. All that both
 * rules read, and the results of this node, still have their values. */
bool cot__rule_past(const cot__rule *r, int k, int op, cot__rule *under);
/* Adds v to the part x[start:stop:step] (slice = axis, start, stop, step; normalised) of the
 * adjoint: no padding is made. */
static inline void cot__give_slice(cot__rule *r, int k, cot_var v, const int64_t slice[4]) {
    r->give_slice(r, k, v, slice);
}
/* Adds v into the positions `index` along `axis` of the adjoint (along: as in take_along_axis, else
 * as in take). */
static inline void cot__give_scatter(cot__rule *r, int k, cot_var v, cot_var index, int axis, bool along) {
    r->give_scatter(r, k, v, index, axis, along);
}
/* One direction of a rule from the other: J·v along r->tangents from a vjp; contributions Jᵀ·g,
 * given to r, from a jvp. */
cot_var cot__transpose_vjp(cot__rule *r, void (*vjp)(cot__rule *r));
void    cot__transpose_jvp(cot__rule *r, void (*jvp)(cot__rule *r));

#endif
