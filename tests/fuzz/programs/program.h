/* program.h: random programs that are read from bytes, run in several ways, and compared.
 *
 * A program is a head of HEAD bytes and steps of STEP bytes each. The first byte of a step says
 * which call it makes, and the others decide its operands and parameters; every string of bytes
 * is a program. A step whose first byte is NO_STEP does nothing, so a program stays the same
 * program when steps are taken out of it: that is how the minimiser works, and why a step always
 * fills its own place.
 *
 * The files: choose.c turns bytes into decisions; frame.c keeps values and writes the listing;
 * step_*.c make the calls, one family each, and steps.c is their table; outcome.c keeps what a
 * run gave; derive.c differentiates the result in every mode; ways.c is the table of ways to
 * run; trial.c runs one program in all of them and gives the verdict. fuzz_program.c is the
 * target for libFuzzer, and random_programs.c a program that draws programs from seeds,
 * minimises and prints them. */
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
    MOST_ELEMENTS = 2000
};

/* What the first byte of the head asks for. */
enum {
    WILD       = 1, /* operands and parameters that do not fit, too */
    SPECIAL    = 2, /* infinities, NaN, zeros of both signs and subnormal numbers among the data */
    STRICT     = 4, /* cot_options.strict */
    /* cot_options.smooth; only where SMOOTH_TOO is set as well, as it refuses much */
    SMOOTH     = 8,
    SMOOTH_TOO = 16,
    MIXED      = 32, /* leaves of all float dtypes, and not of f64 alone */
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
    char     wrong[600]; /* what this run alone has shown to be wrong; "" while there is nothing */
    /* … where rounding counts: that is believed of a stable tangent alone, see trial.c */
    bool     rounded;
    double   tangent, scale;
} outcome;

void outcome_free(outcome *o);
/* Opens a section; numbers that are added go to the last one. */
void outcome_open(outcome *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
void outcome_add(outcome *o, double number);
/* A status, and its message as numbers; the error is cleared. True: there was none. */
bool outcome_status(outcome *o, cot_tape *t);
/* The elements of x, or the error that reading them is. */
bool outcome_value(outcome *o, cot_var x);
void outcome_text(outcome *o, const char *text);
/* The first fault that a run finds in itself stays. */
void outcome_wrong(outcome *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same, of numbers that only need to agree in half of their digits. */
void outcome_far(outcome *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes the first difference to `why`; any two NaN are the same number. False: there is none. */
/* zeros_alike: zeros of both signs are the same. */
bool outcome_differs(const outcome *a, const outcome *b, bool zeros_alike, char *why, size_t size);

/* ---- ways.c ---------------------------------------------------------------------------------- */

/* A way to run. The first row is the reference, with which the others must agree in every bit. */
typedef struct way {
    const char *name;
    int         threads;
    int64_t     grain;            /* 0: as it is */
    /* elementwise work waits, in the shortest blocks, its memory full of NaN */
    bool        work_waits;
    bool        products_wait;    /* products of a column and a row wait, likewise */
    /* directions go in batches wherever they may; zeros may change their sign */
    bool        batches;
    /* one of them, which the head chooses: any error is fine, a crash or leak is not */
    bool        allocations_fail;
} way;
extern const way ways[];
extern const int way_count;
void             way_set(const way *w);
void             way_unset(void);

/* ---- frames: the values a step can use ------------------------------------------------------- */

typedef struct value {
    cot_var var;
    int     name; /* as in v3; -1: none */
    int     step; /* that made it */
} value;

typedef struct memory { /* counts what the tape holds, and fails the allocation number fail_at */
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
    /* leaves are multiplied by 1 and so much; 0 but for judging how stable a result is */
    double         shake;
    uint8_t        flags;
    int            names;
    value          leaf[MOST_LEAVES];
    int            leaves;
    bool           narrow; /* a bf16 or f16 value has a gradient: recorded rules round more often */
    bool           single; /* an f32 value has one: half of fewer digits */
    bool           ill;    /* an operation whose derivative may be as large as it likes */
    /* a loop and the like: its recorded derivative is another loop, with other rounding */
    bool           bodies;
    bool           marked;
    cot_mark       mark;
    int            marked_names, marked_leaves;
    void          *lent[16]; /* memory of cot_wrap */
    int            lends;
} run;

typedef struct frame {
    run                *run;
    const struct frame *outer; /* of a body: what it may capture */
    value               at[MOST_VALUES];
    int                 count;
    int                 depth;
    int                 stop;   /* its steps end here */
    int                 now;    /* the step that runs, */
    int                 next;   /* and the one after it */
    bool                failed; /* a step of a body failed, so the body does */
} frame;

/* Decisions of one step. Behind its last byte they go on as a mixture of all of them. */
typedef struct chooser {
    const uint8_t *byte;
    int            at;
    uint64_t       mixed;
    int            step; /* its number */
} chooser;

chooser   chooser_of(const program *p, int step);
unsigned  choose(chooser *c, unsigned n); /* 0 … n - 1 */
bool      chance(chooser *c, unsigned one_in);
bool      wild(const frame *f, chooser *c); /* shall this decision be a bad one? */
double    choose_number(const frame *f, chooser *c);
int64_t   choose_extent(chooser *c);
cot_shape choose_shape(chooser *c, int most_axes);
cot_axes  choose_axes(const frame *f, chooser *c, value x);
/* negative ones too; beyond 1: of a new axis */
int       choose_axis(const frame *f, chooser *c, value x, int beyond);
cot_dtype choose_dtype(chooser *c);
cot_dtype choose_float(chooser *c, bool mixed);

/* ---- frame.c --------------------------------------------------------------------------------- */

typedef bool (*test)(value x, value beside);
/* A value of the frame, or of those around it, that passes the test; none has the name -1. */
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
bool    is_alike(value x, value beside);   /* of the shape and dtype of the other */
bool    broadcasts(value x, value beside);
bool    is_small(value x, value beside); /* up to 64 elements */
int     rank(value x);
int64_t extent(value x, int axis); /* negative axes count from the end */
bool    is_float_dtype(cot_dtype d);

/* Writes the call that comes now to the listing. */
void say(frame *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Keeps a result, or what went wrong, and says so in the listing. */
value put(frame *f, cot_var x);
/* Keeps the status of a call that gives nothing else. */
void put_status(frame *f);
/* x in the shape and dtype of `like`, and bounded. */
cot_var fit(cot_var x, cot_var like);

/* Texts for the listing; each lives until some further ones have been made. */
const char *name_of(value x);
const char *shape_text(cot_shape s);
const char *axes_text(cot_axes a);
const char *number_text(double x);

/* ---- steps ----------------------------------------------------------------------------------- */

/* Runs step k in a frame and returns the step that comes after it: a body takes several. */
int step_run(frame *f, int k);

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
                                X(linear_solve) X(root) X(fixed_point) X(minimize)
#define DECLARE_STEP(name) STEP_FUNCTION(name);
STEPS(DECLARE_STEP)
#undef DECLARE_STEP

/* Up to four of the steps behind this one as the body of a transformation. The frame goes on
 * behind them. */
typedef struct body {
    frame *outer;
    int    from, to;
    int    counter;     /* 1: the first input counts steps, and comes back one larger */
    /* result k looks like input first_input + k; else it is whatever came last */
    bool   like_inputs;
    int    first_input;
} body;
body body_of(frame *f, chooser *c);
int  body_play(int n, const cot_var *xs, int m, cot_var *ys, void *user);

/* ---- derive.c, trial.c ----------------------------------------------------------------------- */

/* Values and derivatives of all modes at the end of a program, with the judgements that one run
 * allows. */
void derive(frame *f);

/* Runs a program one way. */
void run_program(const program *p, const way *w, outcome *o, double shake, FILE *listing);
/* How much programs really do, counted in the first way: what the generator is worth. */
typedef struct tally {
    int64_t programs, values, errors, gradients, judged, sparse;
} tally;
extern tally total;
/* Runs it in all ways; false, and what is wrong, when something is. */
bool trial(const program *p, char *why, size_t size);

#endif
