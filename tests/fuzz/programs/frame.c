/* frame.c: the values that steps can use, the tests that choose among them, and the listing of
 * calls. */
#include "program.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

const value no_value = {{NULL, 0}, -1, -1};

/* ---- what a value is good for ---------------------------------------------------------------- */

int     rank(value x) { return cot_shape_of(x.var).ndim; }
int64_t extent(value x, int axis) {
    cot_shape s = cot_shape_of(x.var);
    if (axis < 0) axis += s.ndim;
    return axis >= 0 && axis < s.ndim ? s.dim[axis] : 1;
}
bool is_float_dtype(cot_dtype d) { return d <= COT_F16; }

bool is_any(value x, value beside) {
    (void)x, (void)beside;
    return true;
}
bool is_float(value x, value beside) {
    (void)beside;
    return is_float_dtype(cot_dtype_of(x.var));
}
bool is_integer(value x, value beside) { return !is_float(x, beside); }
bool is_vector(value x, value beside) { return is_float(x, beside) && rank(x) == 1; }
bool has_axes(value x, value beside) {
    (void)beside;
    return rank(x) > 0;
}
bool has_matrix(value x, value beside) { return is_float(x, beside) && rank(x) >= 2; }
bool is_small(value x, value beside) { return is_float(x, beside) && cot_size(x.var) <= 64; }

bool is_alike(value x, value beside) {
    cot_shape a = cot_shape_of(x.var), b = cot_shape_of(beside.var);
    if (a.ndim != b.ndim || cot_dtype_of(x.var) != cot_dtype_of(beside.var)) return false;
    for (int i = 0; i < a.ndim; i++)
        if (a.dim[i] != b.dim[i]) return false;
    return true;
}

bool broadcasts(value x, value beside) {
    int64_t size = 1;
    int     n    = rank(x) > rank(beside) ? rank(x) : rank(beside);
    for (int k = 1; k <= n; k++) {
        int64_t a = k > rank(x) ? 1 : extent(x, -k), b = k > rank(beside) ? 1 : extent(beside, -k);
        if (a != b && a != 1 && b != 1) return false;
        size *= a == 1 ? b : a;
    }
    return size <= MOST_ELEMENTS;
}

/* ---- picking --------------------------------------------------------------------------------- */

/* Value number i of a frame and of the frames around it, the newest first. */
static value nth(const frame *f, int i) {
    for (; f; f = f->outer) {
        if (i < f->count) return f->at[f->count - 1 - i];
        i -= f->count;
    }
    return no_value;
}

/* A step is chosen, and then the newest value that is not newer than it and fits; so the choice
 * stays as it is when the minimiser takes out a step that made another value. */
value pick(const frame *f, chooser *c, test passes, value beside) {
    int n = 0, from = 0, made_by = (int)choose(c, (unsigned)c->step + 1);
    for (const frame *g = f; g; g = g->outer) n += g->count;
    if (wild(f, c)) passes = is_any;
    while (from < n && nth(f, from).step > made_by) from++;
    for (int i = 0; i < n; i++) {
        value x = nth(f, (from + i) % n);
        if (x.name >= 0 && cot_is_valid(x.var) && passes(x, beside)) return x;
    }
    return no_value;
}

value any_of(const frame *f, chooser *c) { return pick(f, c, is_any, no_value); }

value float_of(const frame *f, chooser *c) { return pick(f, c, is_float, no_value); }

/* ---- the listing ----------------------------------------------------------------------------- */

static char *text_room(size_t *size) {
    static char ring[16][200];
    static int  at;
    *size       = sizeof *ring;
    at          = (at + 1) % 16;
    ring[at][0] = 0;
    return ring[at];
}

const char *name_of(value x) {
    size_t size;
    char  *text = text_room(&size);
    if (x.name < 0)
        snprintf(text, size, "COT_NONE");
    else
        snprintf(text, size, "v%d", x.name);
    return text;
}

const char *number_text(double x) {
    size_t size;
    char  *text = text_room(&size);
    snprintf(text, size, "%.17g", x);
    return text;
}

const char *shape_text(cot_shape s) {
    size_t size;
    char  *text = text_room(&size);
    int    n    = snprintf(text, size, s.ndim ? "COT_SHAPE(" : "COT_SCALAR");
    for (int i = 0; i < s.ndim && i < COT_MAX_NDIM; i++)
        n += snprintf(text + n, size - (size_t)n, "%lld%s", (long long)s.dim[i], i + 1 < s.ndim ? ", " : ")");
    return text;
}

const char *axes_text(cot_axes a) {
    size_t size;
    char  *text = text_room(&size);
    int    n    = snprintf(text, size,
                     a.n < 0      ? a.keepdims ? "COT_KEEP_ALL" : "COT_ALL"
                           : a.keepdims ? "COT_KEEP("
                                        : "COT_AXES(");
    for (int i = 0; i < a.n && i < COT_MAX_NDIM; i++)
        n += snprintf(text + n, size - (size_t)n, "%d%s", a.axis[i], i + 1 < a.n ? ", " : ")");
    return text;
}

static void indent(const frame *f) { fprintf(f->run->listing, "%*s", 4 * (f->depth + 1), ""); }

void say(frame *f, const char *format, ...) {
    if (!f->run->listing) return;
    va_list args;
    va_start(args, format);
    indent(f);
    vfprintf(f->run->listing, format, args);
    fputs("\n", f->run->listing);
    fflush(f->run->listing); /* the call that comes next may be the last one */
    va_end(args);
}

/* ---- results --------------------------------------------------------------------------------- */

static bool tape_is_fine(frame *f) {
    bool fine = cot_tape_status(f->run->tape) == COT_OK;
    if (f->run->way == ways) *(fine ? &total.values : &total.errors) += 1;
    if (fine) return true;
    f->run->errors++;
    if (f->run->listing) {
        indent(f);
        fprintf(f->run->listing, "    error: %s\n", cot_tape_message(f->run->tape));
    }
    if (f->depth > 0)
        f->failed = true; /* the error belongs to whoever called the body */
    else
        outcome_status(f->run->out, f->run->tape);
    return false;
}

void put_status(frame *f) {
    if (f->depth == 0) outcome_open(f->run->out, "status");
    tape_is_fine(f);
}

value put(frame *f, cot_var x) {
    run  *r = f->run;
    value v = {x, r->names++, f->now};
    if (f->depth == 0) outcome_open(r->out, "status of v%d", v.name);
    if (!tape_is_fine(f)) return no_value;
    if (!cot_is_valid(x)) {
        /* some results may be invalid by right: of integers there is no gradient */
        if (r->listing) indent(f), fprintf(r->listing, "    v%d: no value\n", v.name);
        return no_value;
    }
    cot_dtype d = cot_dtype_of(x);
    if (r->listing) {
        indent(f);
        fprintf(r->listing, "    = v%d   %s %s%s\n", v.name, cot_dtype_name(d), shape_text(cot_shape_of(x)),
                cot_requires_grad(x) ? "" : "   constant");
    }
    if (cot_requires_grad(x)) {
        r->narrow = r->narrow || d == COT_BF16 || d == COT_F16;
        r->single = r->single || d == COT_F32;
    }
    if (cot_size(x) > MOST_ELEMENTS || f->count == MOST_VALUES) return no_value;
    return f->at[f->count++] = v;
}

cot_var fit(cot_var x, cot_var like) {
    value a = {x, 0, 0}, b = {like, 0, 0};
    x     = cot_cast(x, cot_dtype_of(like));
    a.var = x;
    if (!is_alike(a, b)) x = cot_broadcast_to(cot_sum(x, (cot_axes){-1, false, {0}}), cot_shape_of(like));
    if (!is_float_dtype(cot_dtype_of(like))) return x;
    return cot_mul(cot_sin(x), cot_number(0.75));
}
