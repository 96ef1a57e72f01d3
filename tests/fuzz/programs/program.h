/* program.h: random programs that are read from bytes, run in several ways, and compared.
 *
 * A program is a head of HEAD bytes and steps of STEP bytes each. The first byte of a step says
 * which call it makes, and the others decide its operands and parameters; every string of bytes is
 * a program. A step whose first byte is NO_STEP does nothing, so a program stays the same program
 * when steps are taken out of it. That is how the minimiser works, and why a step always fills its
 * own place.
 *
 *   choose.c            turns bytes into decisions
 *   frame.c             keeps values and writes the listing
 *   step_*.c, steps.c   make the calls, one family each; steps.c is their table
 *   outcome.c           keeps the results of a run
 *   derive.c            differentiates the result in every mode
 *   through_file.c      saves its tape and loads it
 *   as_function.c       runs it again as a function of its leaves, and compiled
 *   ways.c              is the table of ways to run
 *   trial.c             runs one program in all ways and gives the verdict
 *   fuzz_program.c      is the target for libFuzzer
 *   random_programs.c   draws programs from seeds, minimises and prints them */
#ifndef COT_FUZZ_PROGRAM_H
#define COT_FUZZ_PROGRAM_H

#include <cotangent.h>

enum {
    HEAD          = 8,
    STEP          = 12,
    NO_STEP       = 255,
    MOST_STEPS    = 48,
    MOST_VALUES   = 80,
    MOST_LEAVES   = 6,
    MOST_DEPTH    = 3,
    MOST_ELEMENTS = 2000,
    MOST_INPUTS   = 4096 /* elements of all leaves by which a loss is differentiated */
};

/* Bits of the first byte of the head. */
enum {
    WILD       = 1, /* also operands and parameters that do not fit */
    SPECIAL    = 2, /* infinities, NaN, zeros of both signs and subnormal numbers among the data */
    STRICT     = 4, /* cot_options.strict */
    /* cot_options.smooth; only if SMOOTH_TOO is set as well, because it refuses much */
    SMOOTH     = 8,
    SMOOTH_TOO = 16,
    MIXED      = 32, /* leaves of all float dtypes, not only of f64 */
    HEAD_FLAGS = 63
};

typedef struct program {
    const uint8_t *bytes;
    size_t         size;
} program;

uint8_t program_head(const program *p, int k); /* 0 behind the end */
int     program_steps(const program *p);

/* ---- outcome.c: what a run gave, as numbers under names -------------------------------------- */

typedef struct section {
    char    name[64];
    int64_t from, count;
} section;

typedef struct outcome {
    double  *number;
    int64_t  count, room;
    section *part;
    int      parts, part_room;
    char     wrong[600]; /* an error that this run alone has shown; "": none */
    /* the error may be rounding: it counts only if the tangent is stable, see trial.c */
    bool     rounded;
    double   tangent, scale;
    /* a leaf, a constant or wrapped memory was written: dropped values may be stale then */
    bool     writes_sources;
} outcome;

void outcome_free(outcome *o);
/* Opens a section; numbers that are added go to the last one. */
void outcome_open(outcome *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
void outcome_add(outcome *o, double number);
/* A status, and its message as numbers; the error is cleared. True: there was none. */
bool outcome_status(outcome *o, cot_tape *t);
/* Adds the elements of x, or the error of reading them. */
bool outcome_value(outcome *o, cot_var x);
void outcome_text(outcome *o, const char *text);
/* Notes an error that a run finds in itself. The first one stays. */
void outcome_wrong(outcome *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same, for numbers that only need to agree in half of their digits. */
void outcome_far(outcome *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes the first difference to `why`; any two NaN are the same number. False: there is none.
 * zeros_alike: zeros of both signs are the same. codes_alone: of errors the codes are compared,
 * and words for people not at all. */
bool outcome_differs(const outcome *a, const outcome *b, bool zeros_alike, bool codes_alone, char *why, size_t size);

/* ---- ways.c ---------------------------------------------------------------------------------- */

/* A way to run. The first row is the reference, with which the others must agree in every bit;
 * those that have other bits by right agree with the first of their kind. */
typedef struct way {
    const char *name;
    int         threads;
    int64_t     grain;            /* 0: unchanged */
    /* elementwise work waits, and is done in the shortest blocks, its memory full of NaN */
    bool        work_waits;
    bool        products_wait;    /* the same for products of a column and a row */
    /* directions are batched wherever possible; zeros may change their sign */
    bool        batches;
    /* cot_vmap is a program wherever no derivative is asked for; errors may name other nodes */
    bool        batches_run;
    bool        batches_again; /* or wherever it is met again */
    /* one allocation, which the head chooses, fails: any error is fine, a crash or leak is not */
    bool        allocations_fail;
    /* values are dropped as soon as an operation is over, as under a memory limit */
    bool        drops;
    bool        spills; /* the same, to a file */
    /* programs of bodies keep as little as they can, and compute the rest again */
    bool        again;
    /* what rules alone read is kept as bf16 (cot_precision.saved): some steps at a time are done in
     * a scope, which keeps half of what they made */
    bool        saves;
    bool        fast; /* cot_options.fast */
} way;
extern const way ways[];
extern const int way_count;
void             way_set(const way *w);
void             way_unset(void);

/* ---- frames: the values a step can use ------------------------------------------------------- */

typedef struct value {
    cot_var var;
    int     name; /* the number in "v3"; -1: none */
    int     step; /* the step that made it */
} value;

/* counts the bytes that the tape holds, and fails allocation number fail_at */
typedef struct memory {
    size_t  used;
    int64_t calls, fail_at; /* 0: none fails */
} memory;

typedef struct run {
    cot_tape      *tape;
    const program *program;
    const way     *way;
    outcome       *out;
    FILE          *listing; /* NULL: none */
    memory         memory;
    /* leaves are multiplied by 1 + shake; 0 except to judge how stable a result is */
    double         shake;
    uint8_t        flags;
    int            names;
    value          leaf[MOST_LEAVES];
    int            leaves;
    const cot_var *given;  /* as a function: its inputs, in place of leaves; NULL: none */
    int            errors; /* of steps that have failed */
    bool           narrow; /* a bf16 or f16 value has a gradient: recorded rules round more often */
    bool           single; /* an f32 value has a gradient: half of fewer digits */
    bool           ill;    /* an operation whose derivative is not bounded */
    /* there is a loop or the like: its recorded derivative is another loop, with other rounding */
    bool           bodies;
    bool           marked;
    cot_mark       mark;
    int            marked_names, marked_leaves;
    void          *lent[16]; /* memory of cot_wrap */
    int            lends;
} run;

typedef struct frame {
    run                *run;
    const struct frame *outer; /* for a body: the values that it may capture */
    value               at[MOST_VALUES];
    int                 count;
    int                 depth;
    int                 stop;   /* its steps end here */
    int                 now;    /* the step that runs, */
    int                 next;   /* and the one after it */
    bool                failed; /* a step of a body failed, so the body does */
} frame;

/* Decisions of one step. Behind its last byte they are mixed from all of its bytes. */
typedef struct chooser {
    const uint8_t *byte;
    int            at;
    uint64_t       mixed;
    int            step; /* its number */
} chooser;

chooser   chooser_of(const program *p, int step);
unsigned  choose(chooser *c, unsigned n); /* 0 … n - 1 */
bool      chance(chooser *c, unsigned one_in);
/* should this decision be a bad one? */
bool      wild(const frame *f, chooser *c);
double    choose_number(const frame *f, chooser *c);
int64_t   choose_extent(chooser *c);
cot_shape choose_shape(chooser *c, int most_axes);
cot_axes  choose_axes(const frame *f, chooser *c, value x);
/* also negative axes; beyond 1: the axis may be a new one */
int       choose_axis(const frame *f, chooser *c, value x, int beyond);
cot_dtype choose_dtype(chooser *c);
cot_dtype choose_float(chooser *c, bool mixed);

/* ---- frame.c --------------------------------------------------------------------------------- */

typedef bool (*test)(value x, value beside);
/* A value of this frame, or of the frames around it, that passes the test. If there is none, its
 * name is -1. */
value              pick(const frame *f, chooser *c, test passes, value beside);
value              any_of(const frame *f, chooser *c);
value              float_of(const frame *f, chooser *c); /* a float with elements */
extern const value no_value;

bool    is_any(value x, value beside);
bool    is_float(value x, value beside);
bool    is_integer(value x, value beside);
bool    is_vector(value x, value beside); /* a float of one axis */
bool    has_axes(value x, value beside);
bool    has_matrix(value x, value beside); /* a float of at least two axes */
/* has the shape and dtype of the other */
bool    is_alike(value x, value beside);
bool    broadcasts(value x, value beside);
bool    is_small(value x, value beside); /* up to 64 elements */
int     rank(value x);
int64_t extent(value x, int axis); /* negative axes count from the end */
bool    is_float_dtype(cot_dtype d);

/* Writes the next call to the listing. */
void say(frame *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Keeps a result, or its error, and writes it to the listing. */
value put(frame *f, cot_var x);
/* Keeps the status of a call without a result. */
void put_status(frame *f);
/* x in the shape and dtype of `like`, with bounded values. */
cot_var fit(cot_var x, cot_var like);

/* Texts for the listing. Each stays valid until some more have been made. */
const char *name_of(value x);
const char *shape_text(cot_shape s);
const char *axes_text(cot_axes a);
const char *number_text(double x);

/* ---- steps ----------------------------------------------------------------------------------- */

/* Runs step k in a frame and returns the step after it. A body takes several steps. */
int step_run(frame *f, int k);
/* May it be done in a scope? Not if it makes a leaf, a mark, or rewinds. */
bool step_may_be_scoped(const frame *f, int k);

#define STEP_FUNCTION(name) void step_##name(frame *f, chooser *c)
#define STEPS(X)                                                                                                       \
    X(leaf)                                                                                                            \
    X(data) X(wrap) X(create) X(number) X(unary) X(binary) X(binary_number) X(ternary) X(cast) X(reduce) X(norm)       \
        X(cumulative) X(softmax) X(scalars) X(order) X(reshape) X(permute) X(broadcast) X(slice) X(axes_of_one)        \
            X(join) X(pad) X(arrange) X(matrix_part) X(take) X(scatter) X(select) X(gather) X(one_hot) X(matmul)       \
                X(products) X(einsum) X(fourier) X(solve) X(factor) X(loss) X(normalize) X(attention) X(conv) X(pool)  \
                    X(embedding) X(random) X(dropout) X(into) X(update_slice) X(assign) X(touch) X(mark) X(rewind)     \
                        X(look) X(detach) X(backward) X(gradient) X(tangent) X(function_form) X(taylor) X(custom)      \
                            X(custom_rules) X(checkpoint) X(scan) X(fori) X(loop_while) X(cond) X(vmap)                \
                                X(linear_solve) X(root) X(fixed_point) X(minimize) X(sparse)
#define DECLARE_STEP(name) STEP_FUNCTION(name);
STEPS(DECLARE_STEP)
#undef DECLARE_STEP

/* Makes up to four of the next steps the body of a transformation. The frame goes on behind
 * them. */
typedef struct body {
    frame *outer;
    int    from, to;
    int    counter;     /* 1: the first input counts steps, and comes back one larger */
    /* result k has the shape and dtype of input first_input + k; else it is the last value */
    bool   like_inputs;
    int    first_input;
} body;
body body_of(frame *f, chooser *c);
int  body_play(int n, const cot_var *xs, int m, cot_var *ys, void *user);

/* ---- derive.c, through_file.c, trial.c ------------------------------------------------------- */

/* Computes values and derivatives of all modes at the end of a program, with the checks that one
 * run allows. */
void derive(frame *f);

/* Saves the tape and loads it: is the loss the same, and are its gradients by the n leaves xs? NULL
 * gradient: there is none. */
void through_file(run *r, cot_var loss, int n, const cot_var *xs, const double *gradient);

/* The sums of the last few floats of a frame, each with a factor of its own; how many these are. */
cot_var loss_of_frame(const frame *f, int *used);

/* The program once more as a function of its n leaves xs, which have `size` elements: has its
 * gradient the bits of the recorded one, and has it them when it is compiled? */
void as_function(run *r, int n, const cot_var *xs, int64_t size, const double *recorded, bool swept);

/* Runs a program one way. */
void run_program(const program *p, const way *w, outcome *o, double shake, FILE *listing);
/* Counts how much programs really do, in the first way: this shows what the generator is worth. */
typedef struct tally {
    int64_t programs, values, errors, gradients, judged, sparse, files, functions, compiled;
} tally;
extern tally total;
/* Runs a program in all ways. False, with the reason in `why`, if something is wrong. */
bool trial(const program *p, char *why, size_t size);

#endif
