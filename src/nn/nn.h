/* nn.h: the inside of parameters, and what a layer is made with.
 *
 * A layer opens its name, asks for its parameters, records operations of the public library, and
 * closes:
 *
 *     if (!cot__layer_open(p, "nn_dense", name, x)) return cot__layer_none(p, x);
 *     cot_var w = cot__layer_get(p, "weight", ...);
 *     return cot__layer_close(p, cot_matmul(x, w));
 *
 * Invariant: looking a name up allocates nothing, and what is pushed is popped again whatever
 * failed in between.
 *
 * May call: all below, the public operations among it. Must not touch: nodes, kernels. */
#ifndef COT_NN_LAYERS_H
#define COT_NN_LAYERS_H

#include "tape/tape.h"

#include <cotangent.h>

enum { COT__LONGEST_PATH = 255, COT__DEEPEST_PATH = 32 };

/* What a layer asks for. The fans are 0 where the layer's own way needs none. */
typedef struct cot__wish {
    const char *name;
    cot_shape   shape;
    cot_dtype   dtype;
    bool        statistic;
    cot_init    how;
    double      fan_in, fan_out;
    int64_t     zero_row; /* 1 + a row that begins as zeros; 0: none */
} cot__wish;

typedef struct cot__entry {
    uint64_t  hash;
    size_t    length; /* of the name */
    cot_var   leaf;
    cot_var   bound; /* what layers use while parameters are bound; no tape: none */
    cot__wish wish;  /* wish.name is the full name, and p's */
    bool      frozen;
    bool      told; /* its elements are in the summary already */
    int       group;
} cot__entry;

/* A rule of cot_params_init_with. */
typedef struct cot__init_rule {
    char    *pattern;
    cot_init how;
} cot__init_rule;

/* A rule of cot_params_set_precision. */
typedef struct cot__precision_rule {
    char     *pattern;
    cot_dtype dtype;
} cot__precision_rule;

/* The lines of cot_params_summary. */
struct cot__summary_rows;

struct cot_params {
    cot_tape                 *tape;
    cot_allocator             al; /* of the system or the tape's options: not the cache */
    cot_tape                 *on; /* that of the bound vars, or `tape` */
    void                     *user;
    cot__entry               *entry;
    const char              **names; /* entry[k].wish.name, as cot__nearest wants them */
    cot_var                  *vars;  /* of cot_params_vars */
    uint32_t                 *slot;  /* 2 · capacity, by hash: k + 1; 0 is free */
    uint32_t                  count, capacity, trained;
    cot__init_rule           *rule;
    uint32_t                  rules, rule_capacity;
    cot__precision_rule      *precision;
    uint32_t                  precisions, precision_capacity;
    cot_dtype                 narrow; /* of the open layer: COT_BF16, COT_F16, or any other: none */
    bool                      training, making, bound, has_key, has_dtype;
    cot_dtype                 dtype;
    cot_key                   key, init_key;
    const char               *op;                           /* the open layer, for messages */
    uint16_t                  level[COT__DEEPEST_PATH + 1]; /* letters of the path, of each depth */
    uint32_t                  next;                         /* the entry after the one found last */
    /* may exceed DEEPEST: then an error was set, and pops count down again */
    int                       depth;
    char                      path[COT__LONGEST_PATH + 1];
    struct cot__summary_rows *rows; /* where a summary collects; NULL: none is made */
};

/* The tape that p's layers record on; NULL when it has failed. */
static inline cot_tape *cot__params_on(const cot_params *p) { return cot__usable(p->on); }

/* Opens a layer: checks p, name and x, and pushes the name. x becomes what the layer computes in
 * (cot_params_set_precision). False after setting the error. */
bool cot__layer_open(cot_params *p, const char *op, const char *name, cot_var *x);
/* x in what the layer that is open computes in. */
cot_var cot__layer_narrowed(const cot_params *p, cot_var x);
/* What a layer that did not open returns. */
cot_var cot__layer_none(const cot_params *p, cot_var x);
/* The parameter `wish`, found or made. */
cot_var cot__layer_get(cot_params *p, const cot__wish *wish);
/* Pops the name and returns y. */
cot_var cot__layer_close(cot_params *p, cot_var y);
/* The dtype of parameters for an input like x. */
cot_dtype cot__params_dtype(const cot_params *p, cot_var x);

/* The same for a vector of n that begins in its own way. */
cot_var cot__layer_vector(cot_params *p, const char *name, int64_t n, cot_var like, cot_init_kind how);
/* The step's key for the layer that is open. */
cot_key cot__layer_key(cot_params *p);
/* The hash of the name of the layer that is open. */
uint64_t cot__layer_hash(const cot_params *p);
/* Has x at least this many axes? Otherwise sets the error. */
bool cot__layer_axes(cot_params *p, cot_var x, int least);
/* x @ weight + bias (NULL: none), of the layer that is open. */
cot_var cot__layer_dense(cot_params *p, const char *weight, const char *bias, cot_var x, int64_t units);

/* Initial numbers of an entry, as a constant on t. */
cot_var cot__initial(cot_tape *t, const cot_params *p, const cot__entry *e);

/* May a net be run to learn of its parameters? Otherwise sets the error. */
bool cot__params_may_learn(cot_params *p, const char *op, cot_net net, cot_var x);
/* Runs it: names that are new become entries. False after an error. */
bool cot__params_learn(cot_params *p, const char *op, cot_net net, cot_var x, cot_var *y);
/* Forgets what was recorded since, and the entries from `count` on; an error stays. */
void cot__params_forget(cot_params *p, cot_mark start, uint32_t count);

/* Where a summary is made: a layer opens, asks for a parameter, closes. drawn: bytes of initial
 * numbers, which are not the layer's. */
void cot__summary_open(cot_params *p);
void cot__summary_asked(cot_params *p, cot__entry *e, int64_t size, int64_t drawn);
void cot__summary_close(cot_params *p, cot_var y);

/* Forgets the entries from `count` on. */
void cot__params_drop(cot_params *p, uint32_t count);
/* Makes the list of trained leaves anew. */
void cot__params_list(cot_params *p);
/* The way of a rule whose pattern matches, or `how`. */
cot_init cot__params_how(const cot_params *p, const char *name, cot_init how);

#endif
