/* region.h: bodies: parts of a tape that are recorded once and played again on other values, by
 * loops, conditions, vmap and checkpoints.
 *
 * A body is recorded on example values, between two indices of the tape. Its inputs are nodes of
 * their own (OP_parameter); values from before that it uses are captured. While it is recorded no
 * value can be read, because it stands for every step. When the body closes, its nodes get a stamp
 * that no var of the user's has, so none of them can be used outside, and its values are freed. The
 * rest is a program: the nodes that the results depend on and those with an effect, with each
 * operand as a place in a list of values. */
#ifndef COT_REGION_H
#define COT_REGION_H

#include "tape/tape.h"

typedef struct cot__region {
    const char     *name;     /* of the operation whose body it is */
    uint32_t        first, end;
    int             n, captures, m;
    /* number of its values that are the same in every step: constants, and values computed from
     * constants alone */
    uint32_t        fixed;
    const uint32_t *captured; /* nodes before `first` that the body uses */
    const uint32_t *constant; /* nodes of the fixed values */
    /* the m results as nodes, for their shapes and dtypes. NULL: it is a program alone, without
     * nodes (lower.h) */
    const uint32_t *out;
    uint32_t        steps;
    const uint32_t *node;     /* the nodes to play, in order */
    /* the operands of these nodes, one after the other; then the m results */
    const uint64_t *ref;
    bool            effects; /* some of them have one */
    /* made when it is asked for (lower.h); NULL: not yet, or it cannot be made */
    struct cot__program *program;
    uint64_t        known;      /* its number among the programs that the tape knows; 0: none */
    bool            needs_tape; /* it cannot */
} cot__region;

/* A ref is a place among the values (inputs, captures, fixed, then one for each step), or this
 * number: the immediate of an elementwise node, which cot__reapply knows. */
#define COT__REF_NUMBER UINT64_MAX

/* Records f on inputs like the examples (values of t). NULL after an error. The region lives in the
 * arena; f and user are not used again. */
cot__region *cot__region_record(cot_tape *t, const char *op, cot_fn f, void *user, int n, const cot_var *examples,
                                int m);
/* The same for one of several functions that an operation takes: errors name it, "test". */
cot__region *cot__region_record_part(cot_tape *t, const char *op, const char *part, cot_fn f, void *user, int n,
                                     const cot_var *examples, int m);
/* The operation whose bodies are played for a batch, and in no other way: "vmap". */
extern const char cot__vmap_name[];
/* A function that becomes a program; it is recorded as on a tape. */
extern const char cot__compile_name[];
/* Adds to the error on the tape where it happened, " (in the test of [while])", if there is an
 * error and it is not one of memory. */
void cot__error_in(cot_tape *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for the one function that an operation has called, " (in the body of [root])", unless
 * the sentence names that operation already. */
void cot__error_in_function(cot_tape *t, const char *part, const char *op);

/* Is there a function, and are there as many values as said? Otherwise sets the error. */
bool cot__check_lists(cot_tape *t, const char *op, int n, const cot_var *xs, int m, const cot_var *ys);
bool cot__check_call(cot_tape *t, const char *op, cot_fn f, int n, const cot_var *xs, int m, const cot_var *ys);
/* Has the function set all ys, which were INVALID(t) before it ran? Otherwise sets the error. */
bool cot__check_set(cot_tape *t, const char *op, const char *function, int m, const cot_var *ys);

/* A program that is being played. Set value[0 … n) and value[n … n + captures), then play: the m
 * results go to out. The fixed values behind them are set already. */
typedef struct cot__player {
    cot_tape          *t;
    const cot__region *region;
    cot_var           *value;
    size_t             bytes;
} cot__player;
bool cot__player_open(cot__player *p, cot_tape *t, const char *op, const cot__region *region);
void cot__player_close(cot__player *p);
bool cot__play(cot__player *p, cot_var *out);
/* A node `watch` of a body is played on operands xs: does what it watches sit on no kink? False
 * after setting the error, in the name of `op`. (In diff/engine/smooth.c: the tape knows no
 * kinks.) */
bool cot__play_watch(cot_tape *t, const char *op, uint32_t watch, const cot_var *xs);
/* Plays a body once, on values for its inputs and captures. */
bool cot__play_once(cot_tape *t, const char *op, const cot__region *region, const cot_var *values, cot_var *out);
/* The active_mask under which a node is played. A node that was recorded without a gradient, in a
 * no-grad scope of the body, is played without one. */
static inline uint8_t cot__replay_mask(const cot_tape *t, uint32_t node, uint8_t mask) {
    return mask & t->nodes[node].flags & COT__ACTIVE;
}

/* Nodes from … to - 1 were recorded as examples for a body that is over now: they belong to it. */
void cot__examples_over(cot_tape *t, uint32_t from, uint32_t to);

/* A new input node with the value of node x (shared, not copied). It is active if its dtype has
 * derivatives. */
cot_var cot__parameter(cot_tape *t, uint32_t x);

/* True if no body is being recorded; otherwise sets the error. */
bool cot__outside_bodies(cot_tape *t, const char *op);

#endif
