/* root_job.c: roots, fixed points and minima as an operation of a program. Nothing is allocated in
 * a run. A solver of the user's binds the program to this process.
 *
 *     operands  x0, θ, what F captured
 *     bodies    F of x, θ and captures, which for a minimum also gives the value whose gradient it
 *               is; ∂F/∂x v of v, x, θ and captures; for Newton's method with few unknowns also how
 *               a matrix is eliminated (elimination.c)
 *     integers  see the enum; the number is the tolerance, the pointers are the solver and its
 *               argument */
#include "backend/elements.h"
#include "diff/implicit/called.h"
#include "diff/implicit/implicit.h"
#include "diff/implicit/search.h"
#include "diff/loops/loop_job.h"
#include "ops/host_arrays.h"
#include "ops/structural.h"

#include <math.h>
#include <string.h>

/* THETA: how many θ there are. LEAST: a minimum is asked for. ITERATIONS: of the options. */
enum { THETA, LEAST, ITERATIONS, INTS };
enum { F, FORTH, MATRIX };

/* C has no pointer for both data and functions, though all machines that the library runs on do. */
static const void *address_of(cot_solver solver) {
    const void *address;
    _Static_assert(sizeof address == sizeof solver, "a function has an address like data");
    memcpy(&address, &solver, sizeof address);
    return address;
}
static cot_solver solver_of(const cot__attr *a) {
    cot_solver solver;
    memcpy(&solver, &a->pointer, sizeof solver);
    return solver;
}

/* Has it the body that eliminates a matrix? */
static bool has_matrix(const cot__attr *a, int64_t size) {
    return !a->pointer && !a->ints[LEAST] && cot__has_elimination(size, false);
}

/* ---- types ----------------------------------------------------------------------------------- */

static bool value_fits(const cot__job *j) {
    cot__view v = cot__value_view(j->body[F], j->body[F]->output[1]);
    return (cot__dtype_is_float(v.dtype) && cot__view_size(&v) == 1) ||
           cot__job_illegal(j, "what is least is not one float");
}

bool cot__root_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 1, INT32_MAX, INTS) || !cot__job_float(j, 0) || !cot__job_range(j, THETA, 0, j->n - 1) ||
        !cot__job_range(j, LEAST, 0, 1) || !cot__job_range(j, ITERATIONS, 0, INT32_MAX))
        return false;
    int64_t n = cot__view_size(&j->x[0]);
    bool    least = j->attr->ints[LEAST], matrix = has_matrix(j->attr, n);
    if (!(j->attr->number >= 0)) return cot__job_illegal(j, "a tolerance of %g", j->attr->number);
    if (j->bodies != 2 + matrix) return cot__job_illegal(j, "%d bodies, where %d belong", j->bodies, 2 + matrix);
    if (!cot__called_fits(j, j->body[F], 1, 1 + least) || (least && !value_fits(j)) ||
        !cot__called_fits(j, j->body[FORTH], 2, 1) || (matrix && !cot__elimination_fits(j, j->body[MATRIX], n)))
        return false;
    cot__type_like(z, j->x[0].dtype, &j->x[0]);
    return true;
}

bool cot__root_effect(const cot__attr *a) { return (void)a, true; }

/* ---- memory ---------------------------------------------------------------------------------- */

typedef struct holding {
    cot_allocator    al;
    cot__called      body[3];
    cot__host_arrays theta;        /* as a solver of the user's sees them */
    double          *b, *x, *work; /* of a linear system */
    void            *root, *raw;   /* the solution, and another vector in its dtype */
    void            *search;       /* memory for search.c */
    void            *memory;
    size_t           bytes;
    /* the first error of a run; it may be forgotten again */
    cot__caller      caller;
    cot_status       status;
    char             message[COT__PLACED_TEXT];
} holding;

static const int GIVEN[] = {[F] = 1, [FORTH] = 2, [MATRIX] = 2};

int64_t cot__root_workspace(const cot__job *j) {
    int64_t bytes = 0;
    for (int k = 0; k < j->bodies; k++) {
        int64_t one = cot__called_bytes(j->body[k], GIVEN[k]);
        if (one < 0) return -1;
        bytes += one;
    }
    return bytes;
}

/* Two vectors of 8 bytes an element at most, b and x of a linear system, and what solving needs. */
static bool open_memory(const cot__job *j, holding *h) {
    int64_t n = cot__view_size(&j->x[0]);
    bool    newton = !j->attr->pointer && !j->attr->ints[LEAST];
    size_t  search = cot__search_bytes(n), system = newton ? cot__system_bytes(n, false) : 0;
    size_t  vectors = 4 * (size_t)n * sizeof(double);
    bool    fits = search < SIZE_MAX && system < SIZE_MAX - search - vectors;
    h->bytes = fits ? search + system + vectors : SIZE_MAX;
    h->memory = fits ? cot__alloc(&h->al, h->bytes) : NULL;
    if (!h->memory) return cot__refuse(j->caller, COT_MEMORY, "out of memory: %zu bytes for its vectors", h->bytes);
    h->b = h->memory;
    h->x = h->b + n;
    h->root = h->x + n;
    h->raw = h->x + 2 * n;
    h->search = h->x + 3 * n;
    h->work = (double *)(void *)((char *)h->search + search);
    return true;
}

static bool open_theta(const cot__job *j, holding *h) {
    int n = (int)j->attr->ints[THETA];
    if (!j->attr->pointer) return true;
    if (!cot__host_arrays_open(&h->theta, j, n, &h->al)) return false;
    for (int k = 0; k < n; k++)
        if (!cot__host_array_like(&h->theta, j, k, &j->x[1 + k])) return false;
    return true;
}

void *cot__root_open(const cot__job *j, const cot_allocator *al) {
    holding *h = cot__alloc(al, sizeof *h);
    if (!h) return cot__refuse(j->caller, COT_MEMORY, "out of memory: %zu bytes to solve", sizeof *h), NULL;
    memset(h, 0, sizeof *h);
    h->al = *al;
    bool ok = open_memory(j, h) && open_theta(j, h);
    for (int k = 0; ok && k < j->bodies; k++) ok = cot__called_open(&h->body[k], j, j->body[k], GIVEN[k], al);
    if (ok) return h;
    cot__root_close(h);
    return NULL;
}

void cot__root_close(void *held) {
    holding      *h = held;
    cot_allocator al = h->al;
    for (int k = 0; k < 3; k++) cot__called_close(&h->body[k]);
    cot__host_arrays_close(&h->theta);
    if (h->memory) cot__free(&al, h->memory, h->bytes);
    cot__free(&al, h, sizeof *h);
}

/* ---- F, called ------------------------------------------------------------------------------- */

typedef struct working { const cot__job *j; holding *h; } working;

static void hear_error(const cot__caller *c, cot_status code, const char *text) {
    holding *h = c->to;
    if (h->status != COT_OK) return;
    h->status = code;
    snprintf(h->message, sizeof h->message, "%s", text);
}

static void forget(void *ctx) {
    holding *h = ((const working *)ctx)->h;
    h->status = COT_OK;
    h->message[0] = 0;
}

static bool call(const working *w, int which) {
    cot__called *c = &w->h->body[which];
    bool         ok = w->h->status == COT_OK && cot__called_go(c, &w->h->caller);
    if (cot__called_note(c)[0]) w->j->caller->note(w->j->caller, cot__called_note(c));
    return ok;
}

static bool call_f(const working *w, const void *x) {
    cot__called_give(&w->h->body[F], w->j, 0, x);
    return call(w, F);
}

static double residual(void *ctx, const void *x) {
    const working *w = ctx;
    double         sum = 0;
    cot__elements  e;
    if (!call_f(w, x)) return (double)NAN;
    cot__view v = cot__called_output(&w->h->body[F], 0);
    cot__elements_open(&e, w->j->backend, &v, COT_F64);
    while (cot__elements_next(&e))
        for (int k = 0; k < e.n; k++) sum += e.f64[k] * e.f64[k];
    return sqrt(sum);
}

static bool at(void *ctx, const void *x, double *f, double *gradient) {
    const working *w = ctx;
    if (!call_f(w, x)) return false;
    cot__called_read(&w->h->body[F], w->j, 0, gradient);
    cot__called_read(&w->h->body[F], w->j, 1, f);
    return true;
}

static bool bend(void *ctx, const void *x, const void *v, double *to) {
    const working *w = ctx;
    cot__called   *c = &w->h->body[FORTH];
    cot__called_give(c, w->j, 0, v);
    cot__called_give(c, w->j, 1, x);
    bool ok = call(w, FORTH);
    if (ok) cot__called_read(c, w->j, 0, to);
    return ok;
}

/* ∂F/∂x v, where x was given. */
static bool apply(void *ctx, const double *v, double *out) {
    const working *w = ctx;
    cot__called   *c = &w->h->body[FORTH];
    cot__round_all(w->h->raw, w->j->x[0].dtype, v, cot__view_size(&w->j->x[0]));
    cot__called_give(c, w->j, 0, w->h->raw);
    bool ok = call(w, FORTH);
    if (ok) cot__called_read(c, w->j, 0, out);
    return ok;
}

static bool eliminate(void *ctx, const double *m, const double *b, double *x) {
    const working *w = ctx;
    return cot__elimination_go(&w->h->body[MATRIX], w->j, &w->h->caller, m, b, x);
}

static cot_solve_options options_of(const cot__attr *a) {
    return (cot_solve_options){.tolerance = a->number, .iterations = (int)a->ints[ITERATIONS]};
}

static bool step(void *ctx, const void *x, double *to) {
    const working    *w = ctx;
    holding          *h = w->h;
    cot_dtype         dtype = w->j->x[0].dtype;
    int64_t           n = cot__view_size(&w->j->x[0]);
    cot_solve_options options = options_of(w->j->attr);
    cot__system       s = {&h->caller, COT__FOR_A_STEP, cot__search_linear(&options), dtype, n, ctx, apply, eliminate};
    if (!call_f(w, x)) return false;
    cot__called_read(&h->body[F], w->j, 0, h->b);
    cot__called_give(&h->body[FORTH], w->j, 1, x);
    if (!cot__system_solve(&s, h->b, h->x, h->work)) return false;
    cot__round_all(h->raw, dtype, h->x, n);
    for (int64_t k = 0; k < n; k++) to[k] = cot__load_f64((char *)h->raw + k * cot__dtype_size(dtype), dtype);
    return true;
}

/* The solver may change its description of the array; the numbers in x's memory count. */
static int solver(void *ctx, void *x) {
    const working  *w = ctx;
    const cot__job *j = w->j;
    cot_array       given = {.dtype = j->x[0].dtype, .shape = cot__view_extents(&j->x[0]),
                             .size = cot__view_size(&j->x[0]), .data = x};
    int             n = (int)j->attr->ints[THETA];
    for (int k = 0; k < n; k++) cot__host_array_see(&w->h->theta, j, k, &j->x[1 + k]);
    return solver_of(j->attr)(n, w->h->theta.x, &given, (void *)(uintptr_t)j->attr->pointer2);
}

/* ---- running --------------------------------------------------------------------------------- */

static void begin(const cot__job *j, holding *h) {
    char *memory = j->workspace;
    for (int k = 0; k < j->bodies; k++) memory = cot__called_begin(&h->body[k], j, memory);
    h->caller = (cot__caller){.name = j->caller->name, .to = h, .fail = hear_error, .note = j->caller->note};
    h->status = COT_OK;
    h->message[0] = 0;
}

bool cot__root_go(const cot__job *j) {
    holding    *h = j->held;
    working     w = {j, h};
    int64_t     n = cot__view_size(&j->x[0]), stride[COT_MAX_NDIM];
    cot__search s = {&h->caller, j->attr->ints[LEAST], options_of(j->attr), j->x[0].dtype, n, &w, residual, bend, step,
                     at, j->attr->pointer ? solver : NULL, &h->status, h->message, sizeof h->message, forget};
    if (n == 0) return true;
    begin(j, h);
    cot__strides(j->z.ndim, j->z.shape, stride);
    cot__view host = {h->root, j->z.dtype, j->z.ndim, j->z.shape, stride};
    j->backend->copy_out(&host, &j->x[0]);
    if (!cot__search_go(&s, h->root, h->search)) return j->caller->fail(j->caller, h->status, h->message), false;
    j->backend->copy_in(&j->z, &host);
    return true;
}

/* ---- from a tape ----------------------------------------------------------------------------- */

/* ∂F/∂x v as a function of v, x, θ and captures: a cot_fn. */
typedef struct deriving { cot_tape *t; const cot__root *q; } deriving;
static int forth(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const deriving *d = user;
    (void)n;
    d->t->mode.repeats = COT__REPEATS; /* F itself is another body, which runs before */
    return cot__root_forth(1, xs, m, ys, &(cot__near){d->t, d->q, xs[1], xs + 1});
}

static cot_var example_of(cot_tape *t, uint32_t node) {
    cot_dtype dtype = cot__dtype_at(&t->nodes[node]);
    return cot_full(t, dtype, cot__shape_at(t, node), cot__dtype_is_float(dtype));
}

/* The derivative as a body. What it captures are constants of F. */
static bool add_derivative(cot_tape *t, const cot__root *q, const uint32_t *args, cot__plain *to) {
    int      n = 1 + cot__root_operands(q);
    cot_var *examples = cot__arena(t, (size_t)n * sizeof *examples, q->name);
    if (!examples) return false;
    for (int k = 0; k < n; k++) examples[k] = example_of(t, args[k ? k - 1 : 0]);
    if (t->status != COT_OK) return false;
    const cot__region *body = cot__region_record(t, q->name, forth, &(deriving){t, q}, n, examples, 1);
    bool              *constant = body ? cot__arena(t, (size_t)body->captures + 1, q->name) : NULL;
    for (int k = 0; constant && k < body->captures; k++) {
        constant[k] = true;
        if (!(t->nodes[body->captured[k]].flags & COT__FIXED)) to->why = "its derivative reads what is not its own";
    }
    to->constant[to->bodies] = constant;
    to->body[to->bodies++] = body;
    return constant;
}

bool cot__root_plain(cot__rule *r, cot__plain *to) {
    const cot__root *q = cot__rule_attr(r)->pointer;
    cot_tape        *t = r->t;
    int64_t          n = cot__size_at(t, r->node), ints[INTS] = {q->f->n - 1, q->least, q->options.iterations};
    to->name = q->name;
    to->body[to->bodies++] = q->f;
    if (!t->mode.compiling) to->why = "the equations are played, on the tape of their body";
    if (to->why) return true;
    cot__attr *a = cot__attr_make(t, q->name, INTS, ints, 0, NULL);
    if (!a) return false;
    a->number = q->options.tolerance;
    if (q->solver) a->pointer = address_of(q->solver), a->pointer2 = q->user;
    to->attr = a;
    if (!add_derivative(t, q, cot__rule_attr(r)->args, to)) return false;
    if (has_matrix(a, n)) to->body[to->bodies++] = cot__record_elimination(t, q->name, n);
    return t->status == COT_OK;
}

/* ---- and back -------------------------------------------------------------------------------- */

cot_var cot__root_replay(cot_tape *t, const cot__program *p, uint32_t operation, const cot_var *xs,
                         cot__replayer *replay) {
    const cot__attr    *a = cot__operation_attr(p, operation);
    const char         *name = cot__copy_name(t, cot__operation_name(p, operation));
    cot__root          *q = name ? cot__arena(t, sizeof *q, name) : NULL;
    int                 n = 1 + (int)a->ints[THETA];
    uint32_t           *index = q ? cot__arena(t, (size_t)n * sizeof *index, name) : NULL;
    cot__replaying_body body = {t, p->body[p->operation[operation].body + F], xs + n, replay};
    if (!index) return INVALID(t);
    for (int k = 0; k < n; k++) index[k] = cot__index(xs[k]);
    *q = (cot__root){.name = name, .least = a->ints[LEAST], .solver = a->pointer ? solver_of(a) : NULL,
                     .user = (void *)(uintptr_t)a->pointer2, .options = options_of(a)};
    q->f = cot__record_again(&body, name, NULL, n, xs, 1 + q->least);
    return q->f ? cot__root_record(t, q, index) : INVALID(t);
}
