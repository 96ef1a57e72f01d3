/* loop.h: loops, conditions and checkpoints as one operation on the tape: a body that is played
 * some number of times.
 *
 *     inputs of a body     constants, [count], carried values, a slice of each xs
 *     its results          carried values, what this step gives out
 *     operands of a node   [choice], constants, carried values, xs, captures of the bodies (and of
 *                          the test)
 *     its value            one flat array: the last carried values, then what the steps gave out,
 *                          stacked
 *
 * A condition is a loop of one step with two bodies and a choice; a checkpoint is one with one
 * body. Captures are constants that the body did not list: both get adjoints that add up over the
 * steps.
 *
 * May call: base, rules, backend, tape, ops, the engine, batches, functions. Must not touch:
 * slots and adjoints of the sweep that plays a loop. */
#ifndef COT_LOOP_H
#define COT_LOOP_H

#include "diff/engine/sweep.h"
#include "tape/region.h"

typedef struct cot__loop {
    const char        *name;         /* "scan", for messages */
    /* the second is played where the choice is false; NULL: there is no choice */
    const cot__region *body[2];
    /* while: go on? Its inputs are the carried values. NULL: the length is known */
    const cot__region *test;
    int                consts, carry, nxs, nys;
    bool               counts;       /* the number of the step is an input */
    bool               reverse;      /* from the last step to the first */
    bool               once;         /* one step whose results are not stacked */
    int64_t            first;        /* the number of step 0 */
    int64_t            length;       /* while: the most steps allowed, 0: any number */
    /* how many may be kept for the way back, besides the initial values and the last state */
    int                states;
    const char        *spill;        /* a folder for them; NULL: memory */
    /* the user has set one of the two: a recorded gradient outside of bodies keeps the bound */
    bool               asked;
    /* derivatives of the user's instead of the body's own; NULL: none */
    const cot_fn_rules *rules;
    void              *user;         /* for those */
    /* its recorded gradient is one operation that keeps `states`, not a loop over all states */
    bool               bounded;
    /* derived from a loop that found its length by running: elsewhere it may be another */
    bool               open;
} cot__loop;

/* Places of the operands. */
static inline int cot__loop_chosen(const cot__loop *l) { return l->body[1] != NULL; }
static inline int cot__loop_first_const(const cot__loop *l) { return cot__loop_chosen(l); }
static inline int cot__loop_first_carry(const cot__loop *l) { return cot__loop_first_const(l) + l->consts; }
static inline int cot__loop_first_xs(const cot__loop *l) { return cot__loop_first_carry(l) + l->carry; }
static inline int cot__loop_first_capture(const cot__loop *l) { return cot__loop_first_xs(l) + l->nxs; }
static inline int cot__loop_operands(const cot__loop *l) {
    return cot__loop_first_capture(l) + l->body[0]->captures + (l->body[1] ? l->body[1]->captures : 0) +
        (l->test ? l->test->captures : 0);
}

/* What one run of a loop leaves for the way back: how long it was, and kept states, lowest step
 * first; the initial values are the node's operands. Lives in the arena; the states in storages of
 * the tape. */
typedef struct cot__kept {
    int64_t step;
    int     level; /* online: how often it has moved on in place of a state before it */
    void   *state;
} cot__kept;
typedef struct cot__loop_run {
    int64_t    length;
    /* states in use, memory of former ones behind them in `at`, and how many there may be (besides
     * the last) */
    int        kept, spare, room;
    int        capacity;          /* of `at`, which grows */
    cot__kept *at;                /* NULL: none are to be kept */
    /* memory for further states in the last storage made for them, and how many bytes */
    char      *free;
    size_t     left;
    int64_t    again;             /* steps that reverse sweeps have run again so far */
} cot__loop_run;

/* A run in progress. */
typedef struct cot__stepper {
    cot_tape          *t;
    const cot__loop   *loop;
    const cot__region *body;
    cot__player        player, test;
    const uint32_t    *args;    /* operands of the node */
    int                choice;  /* which body plays */
    size_t             bytes;   /* of a state */
    size_t            *offset;  /* of each carried value in it */
    /* a second state, for results that lie in the first; NULL: not needed so far */
    void              *spare;
    cot_var           *out;     /* body->m results of the last step */
} cot__stepper;

bool cot__stepper_open(cot__stepper *s, cot_tape *t, const cot__loop *l, const uint32_t *args);
void cot__stepper_close(cot__stepper *s);
/* The first state: the operands' values. */
void cot__state_first(cot__stepper *s, void *state);
/* Plays step k (counted in the order of running) from a state; results are in s->out. `as` is
 * OP_constant, or OP_parameter for nodes that a sweep can reach. What it recorded is the caller's
 * to forget. inputs, if given, receives the nodes of the carried values and slices. */
bool cot__loop_step(cot__stepper *s, const void *state, int64_t k, int64_t length, int as, uint32_t *inputs);
/* The carried results of the last step; false: out of memory. */
bool cot__state_next(cot__stepper *s, void *state);
/* States lie on the tape's device. A copy of one; and one that was kept, brought back. */
void cot__state_copy(const cot_tape *t, void *to, const void *from, size_t bytes);
void cot__state_back(const cot_tape *t, const cot__loop *l, void *state, const void *from, size_t bytes);

/* What messages call the bodies of a condition. */
static inline const char *cot__branch(int which) { return which ? "otherwise branch" : "then branch"; }

/* Records a loop on operands and gives its value apart: the carried values, then what was given
 * out. examples: in the order of the body's inputs. */
cot_status cot__loop_record(cot_tape *t, cot__loop *l, const uint32_t *args, cot_var *results);
/* Its flat value alone. */
cot_var cot__loop_value(cot_tape *t, const cot__loop *l, const uint32_t *args);
/* Where each result begins in the flat value; the number of its elements, or -1 after an error. */
int64_t cot__loop_places(cot_tape *t, const cot__loop *l, int64_t length, cot_dtype dtype, int64_t *place);
/* Dtype and shape of result j of a node's loop, stacked where it is. */
cot_dtype cot__loop_result(cot_tape *t, const cot__loop *l, int64_t length, int j, cot_shape *shape);

/* The results of a flat value or of its adjoint, in their own shapes and dtypes; and the tangent of
 * the flat value from those of its float results. */
void    cot__loop_apart(cot_tape *t, const cot__loop *l, int64_t length, cot_var flat, cot_var *results);
cot_var cot__loop_flatten(cot_tape *t, const cot__loop *l, int64_t length, cot_dtype dtype, const cot_var *tangents);

/* See cot__op.depends. */
uint8_t cot__loop_depends(const struct cot__places *p, uint32_t node);

/* The rules that the user gave. */
void cot__loop_given_vjp(cot__rule *r);
void cot__loop_given_jvp(cot__rule *r);

/* The two ways back: in numbers, under the bound on states, and recorded. */
void cot__loop_reverse_numbers(cot__rule *r);
void cot__loop_reverse_recorded(cot__rule *r);
/* The way back as one operation, which finds out how long the loop is when it is played. */
void cot__loop_reverse_as_operation(cot__rule *r);
/* The recorded one, as a function: adjoints of the wanted operands x of a loop of so many steps,
 * whose flat value has adjoint g. */
bool cot__loop_back(cot_tape *t, const cot__loop *l, int64_t length, const cot_var *x, const bool *wanted, cot_var g,
                    cot_var *bars);
/* Records that for the value of a node of the operation, of one step where the length is not known:
 * what can depend on what. */
cot_var cot__loop_adjoint_as_loops(cot_tape *t, uint32_t node);
void cot__loop_forward(cot__rule *r);
/* The loop on operands x that move by dx (invalid: not at all), with its tangents: results are the
 * carried values, tangents of those that are floats, and tangents of what is given out. */
cot_status cot__loop_with_tangents(cot_tape *t, const cot__loop *l, int64_t length, const cot_var *x, const cot_var *dx,
                                   cot_var *results);
/* The loop for a batch: see cot__op.batch. */
cot_var cot__loop_batch(cot__rule *r, const cot__batch *b, cot_var *xs);
/* Must the elements of a batch of this loop go one after the other? */
bool cot__loop_goes_one_by_one(const cot__loop *l, int64_t extent);

/* The loop of all elements of a batch: see loop_wide.c. */
typedef struct cot__wide {
    cot_tape        *t;
    const cot__loop *l;      /* of one element */
    int64_t          extent; /* of the batch */
    const cot_var   *x;      /* the operands */
    const bool      *given;  /* which operands have the batch in front */
    /* which operands of the new loop have it: some more of the carried values */
    bool            *is;
    /* elements end at different steps: a mask of those that go on is carried too, the last one */
    bool             masked;
    int              which;  /* body */
    cot__loop       *loop;   /* the new one, and its operands */
    uint32_t        *args;
} cot__wide;
bool cot__widen(cot__wide *w); /* from the first five: the others */
/* Plays the old body on inputs xs of the new one; mask: see above, or invalid. */
bool cot__wide_play(cot__wide *w, const cot_var *xs, cot_var mask, cot_var *ys);

/* Keeps the state before step k at the end of the list, which has room. False after an error. */
bool cot__keep_state(cot_tape *t, const cot__loop *l, cot__loop_run *run, int64_t k, const void *state, size_t bytes);
/* The same while it is not known how long the loop will run: states move on as it does, so that
 * with s of them no step will have been run more than r times, the first included, for up to C(s +
 * r, s) steps (Wang, Moin and Iaccarino's rule). */
bool cot__keep_online(cot_tape *t, const cot__loop *l, cot__loop_run *run, int64_t k, const void *state, size_t bytes);
/* Running from step k, whose state is at hand, to step `last`: the next step whose state should be
 * kept, or -1. */
int64_t cot__next_kept(const cot__loop_run *run, int64_t k, int64_t last);

#endif
