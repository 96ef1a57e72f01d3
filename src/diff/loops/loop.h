/* loop.h: loops, conditions and checkpoints as one operation on the tape: a body that is played
 * some number of times.
 *
 *     inputs of a body     constants, [count], carried values, a slice of each xs
 *     results of a body    carried values, then the values that this step gives out
 *     operands of a node   [choice], constants, carried values, xs, captures of the bodies (and of
 *                          the test)
 *     results of a node    the last carried values, then the values that the steps gave out,
 *                          stacked; on the tape floats stand before others (cot__loop_order)
 *
 * A condition is a loop of one step with two bodies and a choice. A checkpoint is a loop of one
 * step with one body. Captures are constants that the body did not list. Adjoints of constants and
 * of captures add up over the steps.
 *
 * May call: base, rules, backend, program, tape, ops, the engine, batches, functions. Must not
 * touch: slots and adjoints of the sweep that plays a loop. */
#ifndef COT_LOOP_H
#define COT_LOOP_H

#include "diff/engine/sweep.h"
#include "diff/loops/loop_way.h"
#include "program/run.h"
#include "tape/lower.h"

/* The batch of a cot_vmap that ran as a program (vmap_program.c). */
typedef struct cot__vmapped {
    const cot__region *one;   /* the body of one element; its inputs, then its captures … */
    const bool        *given; /* … have the batch as axis 0 where this says so */
    int64_t            extent;
    bool               told; /* runs that the tape knows are for operands that lie as these do */
} cot__vmapped;

typedef struct cot__loop {
    const char        *name;         /* "scan", for messages */
    /* body[1] is played where the choice is false. NULL: there is no choice */
    const cot__region *body[2];
    /* of a cot_while: should the loop go on? Its inputs are the carried values. NULL: the length is
     * known */
    const cot__region *test;
    int                consts, carry, nxs, nys;
    bool               counts;       /* the number of the step is an input */
    bool               reverse;      /* the steps run from the last slice of xs to the first */
    bool               once;         /* one step whose results are not stacked */
    int64_t            first;        /* the number of step 0 */
    int64_t            length;       /* of a cot_while: the most steps allowed, 0: any number */
    /* how many states may be kept for the way back, beside the initial values and the last state */
    int                states;
    const char        *spill;        /* a folder for kept states; NULL: they stay in memory */
    /* the user has set `states` or `spill`: a recorded gradient outside of bodies keeps the
     * bound */
    bool               asked;
    /* the user's derivatives, used instead of those of the body. NULL: none */
    const cot_fn_rules *rules;
    void              *user;         /* the argument `user` of `rules` */
    /* the recorded gradient is one operation that keeps `states`, not a loop over all states */
    bool               bounded;
    /* this loop was derived from one that found its length by running, so the length may differ at
     * another point */
    bool               open;
    /* body[0] is a program alone, that of this batch; NULL: bodies have nodes. Nothing has a
     * derivative through it */
    const cot__vmapped *vmapped;
} cot__loop;

/* The number of the first operand of each group. */
static inline int cot__loop_chosen(const cot__loop *l) { return l->body[1] != NULL; }
static inline int cot__loop_first_const(const cot__loop *l) { return cot__loop_chosen(l); }
static inline int cot__loop_first_carry(const cot__loop *l) { return cot__loop_first_const(l) + l->consts; }
static inline int cot__loop_first_xs(const cot__loop *l) { return cot__loop_first_carry(l) + l->carry; }
static inline int cot__loop_first_capture(const cot__loop *l) { return cot__loop_first_xs(l) + l->nxs; }
static inline int cot__loop_operands(const cot__loop *l) {
    return cot__loop_first_capture(l) + l->body[0]->captures + (l->body[1] ? l->body[1]->captures : 0) +
        (l->test ? l->test->captures : 0);
}
/* Can operand k have an adjoint? Nothing depends smoothly on a choice, nor on what a test reads. */
static inline bool cot__loop_has_adjoint(const cot__loop *l, int k) {
    return k >= cot__loop_chosen(l) && k < cot__loop_operands(l) - (l->test ? l->test->captures : 0);
}

cot__form cot__loop_form(const cot__loop *l);
/* The body of all elements of a batch, recorded once more for who wants its operations. NULL after
 * an error. */
const cot__region *cot__vmapped_body(cot_tape *t, const cot__vmapped *b, const uint32_t *args);
/* A body that is to be played for a batch, with values for its inputs, then for its captures. */
typedef struct cot__mapping {
    const cot__region *r;
    const cot_var     *values;
    const bool        *given; /* which of them have the batch as axis 0 */
    bool              *is;    /* which results have it */
    int64_t            extent;
} cot__mapping;
static inline int cot__mapping_values(const cot__region *r) { return r->n + r->captures; }

/* Nothing has a derivative. *done: it ran as a program, and ys and b->is are set. False: there is
 * an error on the tape. */
bool cot__vmap_as_program(cot_tape *t, cot__mapping *b, cot_var *ys, bool *done);

/* The record of one run of a loop, for the way back: its length and the kept states, lowest step
 * first. The initial values are not kept, because they are operands of the node. This struct lives
 * in the arena, the states in storages of the tape. */
typedef struct cot__kept {
    int64_t step;
    int     level; /* in cot__keep_online: how often this entry was moved on to a later step */
    bool    stored;
    union {
        void    *state; /* in memory, or … */
        uint64_t at;    /* … `stored`: where it lies in the store, with the checksum `sum` */
    };
    uint64_t sum;
} cot__kept;
typedef struct cot__loop_run {
    const cot__backend *backend;
    int64_t    length;
    /* kept: states in use, at the beginning of `at`.
     *   spare: entries behind them whose memory can be used again.
     *   room: how many states there may be, beside the last one. */
    int        kept, spare, room;
    int        capacity;          /* of `at`, which grows */
    cot__kept *at;                /* NULL: no state is to be kept */
    cot__store *store;            /* where states lie; NULL: in memory */
    bool       refused;           /* the tape's folder takes no more: others lie in memory */
    /* unused room in the storage made last for states, in memory or in the store, and its bytes */
    char      *free;
    uint64_t   free_at;
    size_t     left;
    char      *all;               /* the state before each step; NULL: not all are kept */
    int64_t    again;             /* steps that reverse sweeps have run again so far */
} cot__loop_run;

/* A run in progress. A step whose values alone are wanted is a run of the body's program where
 * there is one, and played otherwise: recorded, read and forgotten. */
typedef struct cot__stepper {
    cot_tape           *t;
    const cot__loop    *loop;
    const cot__region  *body;
    cot__player         player, test;
    const uint32_t     *args;    /* operands of the node */
    cot__steps          steps;   /* the states, and the runs of the programs */
    const cot__program *program, *test_program; /* NULL: it is played */
    cot__view          *view;    /* the operands as they lay when the nodes were here: */
    const cot__node    *nodes;
    cot_var            *out;     /* the body->m results of a step that was played */
    bool                usual[2]; /* the inputs of the runs lie as those of other loops do */
    void               *lists, *memory, *memory_of_next;
    size_t              list_bytes, memory_bytes;
} cot__stepper;

bool cot__stepper_open(cot__stepper *s, cot_tape *t, const cot__loop *l, const uint32_t *args);
void cot__stepper_close(cot__stepper *s);
/* May so many steps be taken? Those that a file claims are counted while it is loaded. False after
 * setting the error. */
bool cot__take_steps(cot_tape *t, int64_t steps);
static inline bool cot__is_loading(const cot_tape *t) { return t->steps_left != INT64_MAX; }
/* The first state: the values of the carried operands. */
void cot__state_first(cot__stepper *s);
/* Plays step k (counted in the order of running) from the state; the results are in s->out. `as` is
 * OP_constant, or OP_parameter for nodes that a sweep can reach. The caller rewinds what the step
 * has recorded. `inputs`, if given, receives the nodes of the carried values and slices. */
bool cot__loop_step(cot__stepper *s, int64_t k, int64_t length, int as, uint32_t *inputs);
/* Takes the carried results of a step that was played as the next state. False: no memory. */
bool cot__state_next(cot__stepper *s);
/* Step k for its values alone, to the next state. y: where stacked values go that it gives out;
 * NULL: they are not wanted. */
bool cot__stepper_go(cot__stepper *s, const cot__view *y, int64_t k, int64_t length);
/* Gives `ok` back. If it is false, the error on the tape happened in step k, there or back: adds
 * that to its text. */
bool cot__step_went(const cot__stepper *s, int64_t k, int64_t length, bool ok);
/* Does the test of a cot_while say that it goes on? */
bool cot__stepper_test(cot__stepper *s, bool *go);
/* What a run has noted and refused goes to the tape. */
bool cot__run_heard(cot_tape *t, const cot__run *run, bool ok);
/* Finds the programs of a stepper's bodies; and gives back their runs. */
bool cot__stepper_lower(cot__stepper *s);
void cot__stepper_end_runs(cot__stepper *s);
/* The same in two parts: one step as a run of the body's program, and the test. */
bool cot__stepper_run(cot__stepper *s, const cot__view *y, int64_t k, int64_t length);
bool cot__stepper_run_test(cot__stepper *s, bool *go);
/* Some steps at once behind the first, see cot__steps_go_along. False: nothing was done. */
bool cot__stepper_run_along(cot__stepper *s, const cot__view *y, int64_t k, int64_t n, int64_t length, size_t apart);
/* What messages call the bodies of a condition. */
static inline const char *cot__branch(int which) { return which ? "otherwise branch" : "then branch"; }

/* Records a loop on operands and gives its results one by one: the carried values, then the values
 * that the steps gave out. */
cot_status cot__loop_record(cot_tape *t, cot__loop *l, const uint32_t *args, cot_var *results);
/* Records a loop that has results and gives its node. */
cot_var cot__loop_node(cot_tape *t, const cot__loop *l, const uint32_t *args);
/* How many results a loop has, and how many of them are floats. */
static inline int cot__loop_results(const cot__loop *l) { return l->carry + l->nys; }
int               cot__loop_floats(const cot_tape *t, const cot__loop *l);
/* Result j of the loop is result at[j] of its node: floats stand first, in their order, as the
 * first result of a node is a float if any is. So float result f of the loop is result f of the
 * node. */
void cot__loop_order(const cot_tape *t, const cot__loop *l, int *at);
/* Dtype and shape of result j of a loop. Values that steps gave out are stacked, unless l->once. */
cot_dtype cot__loop_result(const cot_tape *t, const cot__loop *l, int64_t length, int j, cot_shape *shape);
/* The adjoint of each result of the loop, as its rule sees them; invalid where none has arrived,
 * and for a result that is no float. */
void cot__loop_adjoints(const cot__rule *r, const cot__loop *l, cot_var *gs);

/* The operation without a tape, in a program (loop_job.c). */
int     cot__loop_job_results(const cot__job *j);
bool    cot__loop_job_infer(const cot__job *j, cot__type *z);
int64_t cot__loop_job_workspace(const cot__job *j);
void   *cot__loop_job_open(const cot__job *j, const cot_allocator *al);
bool    cot__loop_job_go(const cot__job *j);
void    cot__loop_job_close(void *held);
bool    cot__loop_job_effect(const cot__attr *a);
bool    cot__loop_plain(cot__rule *r, cot__plain *to);
int     cot__loop_adjoint_job_results(const cot__job *j);
bool    cot__loop_adjoint_job_infer(const cot__job *j, cot__type *z);
int64_t cot__loop_adjoint_job_workspace(const cot__job *j);
void   *cot__loop_adjoint_job_open(const cot__job *j, const cot_allocator *al);
bool    cot__loop_adjoint_job_go(const cot__job *j);
void    cot__loop_adjoint_job_close(void *held);
/* Records a loop of a program on a tape: its bodies by `replay`. Gives its node. */
cot_var cot__loop_replay(cot_tape *t, const cot__program *p, uint32_t operation, const cot_var *xs,
                         cot__replayer *replay);
/* The same for the way back through one; its results go to `out`. */
bool cot__loop_adjoint_replay(cot_tape *t, const cot__program *p, uint32_t operation, const cot_var *xs,
                              cot__replayer *replay, cot_var *out);

/* See cot__op.depends. */
uint8_t cot__loop_depends(const struct cot__places *p, uint32_t node);

/* By operand: does a result that has an adjoint (gs, see cot__loop_adjoints) depend on it? The
 * others have none, in no step. In the arena; NULL after setting the error. */
bool *cot__loop_reached(cot_tape *t, const cot__loop *l, const cot_var *gs);

/* The rules of a loop whose derivatives the user gave. */
void cot__loop_given_vjp(cot__rule *r);
void cot__loop_given_jvp(cot__rule *r);

/* The way back in numbers, under the bound on states; and the way back as recorded operations. */
void cot__loop_reverse_numbers(cot__rule *r);
void cot__loop_reverse_recorded(cot__rule *r);
/* The way back as one operation, which finds the length of the loop when it is played. */
void cot__loop_reverse_as_operation(cot__rule *r);
/* The recorded way back as a function. The loop has `length` steps and operands x, its results have
 * adjoints gs (see cot__loop_adjoints). The adjoints of wanted operands go to `bars`. */
bool cot__loop_back(cot_tape *t, const cot__loop *l, int64_t length, const cot_var *x, const bool *wanted,
                    const cot_var *gs, cot_var *bars);
/* The way back through one step as a body of its own. Its inputs: [count], the adjoints of carried
 * floats, of wanted constants and captures so far, the carried values before the step, slices of
 * xs, and of the adjoints gs that there are of values given out. Its results: the adjoints of
 * carried floats before the step, of wanted constants and captures, of wanted slices. */
cot__region *cot__loop_back_step(cot_tape *t, const cot__loop *l, int which, const cot_var *x, const bool *wanted,
                                 const cot_var *gs);
/* Steps back as runs of its program (loop_back_program.c). */
typedef struct cot__way_back {
    cot__stepper        *s;
    cot__storage *const *bar;   /* the adjoint of each operand; NULL: not wanted */
    const cot_var       *g;     /* of each result; INVALID: it has none */
    cot__program        *program;
    cot__run            *run;   /* NULL: steps are played, or recorded and swept instead */
    uint64_t             known; /* its number among the programs that the tape knows; 0: none */
    const int32_t       *from;  /* what each capture of the step's body is (loop_back_program.c) */
    bool                 usual; /* all inputs are row-major */
    /* however short the way is: in a sweep a scalar is added to 0, here -0 stays -0; and where
     * there is no run, this body is played */
    bool                 always;
    const cot__region   *played;
    cot__way             way;
} cot__way_back;
/* Makes the run, after the first three fields and `always` were set, of a program that the tape
 * knows. False: it knows none, or there is an error. */
bool cot__way_find(cot__way_back *w, int64_t length);
/* Makes the run where a way of so many steps is worth it and the program can be made. False: there
 * is an error on the tape. */
bool cot__way_open(cot__way_back *w, int64_t length);
bool cot__way_step(cot__way_back *w, int64_t at);
void cot__way_close(cot__way_back *w);
/* Records the way back as a loop, for a node of the operation. A loop of unknown length counts as
 * one step: that suffices to find which values can depend on which. Gives one var for each result
 * of the node; NULL after setting the error. */
cot_var *cot__loop_adjoint_as_loops(cot_tape *t, uint32_t node);
void cot__loop_forward(cot__rule *r);
/* The loop together with its tangents. Operands x move by dx, where an invalid dx means not at all.
 * The results are the carried values, the tangents of float carried values, and the tangents of the
 * float values that are given out. */
cot_status cot__loop_with_tangents(cot_tape *t, const cot__loop *l, int64_t length, const cot_var *x, const cot_var *dx,
                                   cot_var *results);
/* The loop on a batch of operands: see cot__op.batch. */
cot_var cot__loop_batch(cot__rule *r, const cot__batch *b, cot_var *xs);
/* Must the elements of a batch of this loop go one after the other? */
bool cot__loop_goes_one_by_one(const cot__loop *l, int64_t extent);

/* The loop of all elements of a batch: see loop_wide.c. */
typedef struct cot__wide {
    cot_tape        *t;
    const cot__loop *l;      /* the loop of one element */
    int64_t          extent; /* of the batch */
    const cot_var   *x;      /* the operands */
    const bool      *given;  /* which operands have the batch in front */
    /* which operands of the new loop have the batch: those of `given`, and more carried values */
    bool            *is;
    /* elements end at different steps: the last carried value is a mask of those that go on */
    bool             masked;
    int              which;  /* which of the two bodies is recorded or played */
    cot__loop       *loop;   /* the new loop */
    uint32_t        *args;
} cot__wide;
/* Fills in the other fields from the first five. */
bool cot__widen(cot__wide *w);
/* Plays the old body on inputs xs of the new one. `mask` is the carried mask, or invalid without
 * one. */
bool cot__wide_play(cot__wide *w, const cot_var *xs, cot_var mask, cot_var *ys);

/* The folder for so many states of these bytes: the one that the loop's options name, or that of
 * the tape's, where they would take much of its limit. NULL: they stay in memory. */
const char *cot__states_folder(const cot_tape *t, const cot__loop *l, int64_t states, size_t bytes);
/* Keeps the state before step k at the end of the list, which has room. False after an error. There
 * is no tape and no loop (NULL) where the list, and memory at `free`, suffice for all states. */
bool cot__keep_state(cot_tape *t, const cot__loop *l, cot__loop_run *run, int64_t k, const void *state, size_t bytes);
/* The same for a loop of unknown length. Kept states are moved on while the loop runs. With s kept
 * states, no step will have run more than r times, its first run included, for up to C(s + r, s)
 * steps (the rule of Wang, Moin and Iaccarino). */
bool cot__keep_online(cot_tape *t, const cot__loop *l, cot__loop_run *run, int64_t k, const void *state, size_t bytes);
/* A loop of known length keeps the states with which the optimal way back begins; *next is the step
 * whose state is kept next, at first 0. */
bool cot__keep_planned(cot_tape *t, const cot__loop *l, cot__loop_run *run, const cot__steps *s, int64_t k,
                       int64_t *next);
/* Takes the steps to the state before step k; go(to, -1) takes them to the first state, go(to, k)
 * does step k. */
typedef bool cot__go_on(void *to, int64_t k);
bool cot__reach(cot_tape *t, const cot__loop *l, cot__loop_run *run, cot__steps *s, int64_t k, cot__go_on *go,
                void *to);
/* The loop shall run from step k, whose state is at hand, to step `last`. Returns the next step
 * whose state should be kept, or -1. */
int64_t cot__next_kept(const cot__loop_run *run, int64_t k, int64_t last);

#endif
