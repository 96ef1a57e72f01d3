/* linear_solve_job.c: linear_solve as an operation of a program. Nothing is allocated in a run.
 *
 *     bodies    A, whose first input is the vector, then its captures; for few unknowns also how a
 *               matrix is eliminated: (M, b) -> x with Mᵀ x = b, in f64
 *     integers  see the enum; the number is the tolerance */
#include "diff/implicit/called.h"
#include "diff/implicit/implicit.h"
#include "diff/implicit/search.h"
#include "diff/loops/loop_job.h"
#include "ops/structural.h"

#include <string.h>

/* ITERATIONS: of the options. FACTS: what is known of A, or-ed. WANTED: 1: the derivative of a
 * solution. */
enum { ITERATIONS, FACTS, WANTED, INTS };
enum { LINEAR = 1, POSITIVE_DEFINITE = 2 };

static bool is_positive_definite(const cot__attr *a) { return (a->ints[FACTS] & POSITIVE_DEFINITE) != 0; }

/* ---- types ----------------------------------------------------------------------------------- */

bool cot__linear_solve_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 1, INT32_MAX, INTS) || !cot__job_float(j, 0) ||
        !cot__job_range(j, ITERATIONS, 0, INT32_MAX) || !cot__job_range(j, FACTS, 0, 3) ||
        !cot__job_range(j, WANTED, 0, 1))
        return false;
    int64_t n = cot__view_size(&j->x[0]);
    bool    eliminates = cot__has_elimination(n, is_positive_definite(j->attr));
    int     bodies = 1 + eliminates;
    if (!(j->attr->number >= 0)) return cot__job_illegal(j, "a tolerance of %g", j->attr->number);
    if (j->bodies != bodies) return cot__job_illegal(j, "%d bodies, where %d belong", j->bodies, bodies);
    if (!cot__called_fits(j, j->body[0], 1, 1)) return false;
    if (eliminates && !cot__elimination_fits(j, j->body[1], n)) return false;
    cot__type_like(z, j->x[0].dtype, &j->x[0]);
    return true;
}

bool cot__linear_solve_effect(const cot__attr *a) { return (void)a, true; }

/* ---- memory ---------------------------------------------------------------------------------- */

typedef struct holding {
    cot_allocator al;
    cot__called   a, matrix;
    double       *b, *x, *work;
    void         *raw; /* a vector in its own dtype */
    void         *memory;
    size_t        bytes;
    bool          proven;
} holding;

int64_t cot__linear_solve_workspace(const cot__job *j) {
    int64_t vector = cot__called_bytes(j->body[0], 1), matrix = j->bodies > 1 ? cot__called_bytes(j->body[1], 2) : 0;
    return vector < 0 || matrix < 0 ? -1 : vector + matrix;
}

/* b, x, a vector in its dtype (of 8 bytes at most), and what the solver needs. */
static bool open_memory(const cot__job *j, holding *h) {
    int64_t n = cot__view_size(&j->x[0]);
    size_t  work = cot__system_bytes(n, is_positive_definite(j->attr)), vectors = 3 * (size_t)n * sizeof(double);
    h->bytes = work == SIZE_MAX ? SIZE_MAX : work + vectors;
    h->memory = work == SIZE_MAX ? NULL : cot__alloc(&h->al, h->bytes);
    if (!h->memory) return cot__refuse(j->caller, COT_MEMORY, "out of memory: %zu bytes for its vectors", h->bytes);
    h->b = h->memory;
    h->x = h->b + n;
    h->raw = h->x + n;
    h->work = h->x + 2 * n;
    return true;
}

void *cot__linear_solve_open(const cot__job *j, const cot_allocator *al) {
    holding *h = cot__alloc(al, sizeof *h);
    if (!h) return cot__refuse(j->caller, COT_MEMORY, "out of memory: %zu bytes to solve", sizeof *h), NULL;
    *h = (holding){.al = *al, .proven = j->attr->ints[FACTS] & LINEAR};
    if (open_memory(j, h) && cot__called_open(&h->a, j, j->body[0], 1, al) &&
        (j->bodies < 2 || cot__called_open(&h->matrix, j, j->body[1], 2, al)))
        return h;
    cot__linear_solve_close(h);
    return NULL;
}

void cot__linear_solve_close(void *held) {
    holding      *h = held;
    cot_allocator al = h->al;
    cot__called_close(&h->a);
    cot__called_close(&h->matrix);
    if (h->memory) cot__free(&al, h->memory, h->bytes);
    cot__free(&al, h, sizeof *h);
}

/* ---- running --------------------------------------------------------------------------------- */

typedef struct working { const cot__job *j; holding *h; } working;

static bool apply(void *ctx, const double *v, double *out) {
    const working  *w = ctx;
    const cot__job *j = w->j;
    cot__called    *a = &w->h->a;
    cot__round_all(w->h->raw, j->x[0].dtype, v, cot__view_size(&j->x[0]));
    cot__called_give(a, j, 0, w->h->raw);
    bool ok = cot__called_go(a, j->caller);
    if (cot__called_note(a)[0]) j->caller->note(j->caller, cot__called_note(a));
    if (ok) cot__called_read(a, j, 0, out);
    return ok;
}

static bool eliminate(void *ctx, const double *m, const double *b, double *x) {
    const working *w = ctx;
    return cot__elimination_go(&w->h->matrix, w->j, w->j->caller, m, b, x);
}

static cot_solve_options options_of(const cot__attr *a) {
    return (cot_solve_options){.tolerance = a->number, .iterations = (int)a->ints[ITERATIONS],
                               .positive_definite = is_positive_definite(a)};
}

bool cot__linear_solve_go(const cot__job *j) {
    holding    *h = j->held;
    working     w = {j, h};
    int64_t     n = cot__view_size(&j->x[0]);
    cot__system s = {j->caller, j->attr->ints[WANTED] ? COT__FOR_A_DERIVATIVE : NULL,
                     options_of(j->attr), j->x[0].dtype, n, &w, apply, eliminate};
    if (n == 0) return true;
    char *memory = cot__called_begin(&h->a, j, j->workspace);
    if (j->bodies > 1) cot__called_begin(&h->matrix, j, memory);
    cot__fetch_f64(j, &j->x[0], h->b);
    if (!cot__system_solve(&s, h->b, h->x, h->work)) return false;
    if (!h->proven && !(h->proven = cot__system_is_linear(&s, h->x, h->work))) return false;
    cot__view from = j->z;
    from.data = h->x, from.dtype = COT_F64;
    j->backend->copy_in(&j->z, &from);
    return true;
}

/* ---- from a tape ----------------------------------------------------------------------------- */

bool cot__linear_solve_plain(cot__rule *r, cot__plain *to) {
    const cot__linsolve *l = cot__rule_attr(r)->pointer;
    cot_tape            *t = r->t;
    int64_t              n = cot__size_at(t, r->node);
    bool                 positive = l->options.positive_definite;
    int64_t              facts = (l->proven ? LINEAR : 0) | (positive ? POSITIVE_DEFINITE : 0);
    int64_t              ints[INTS] = {l->options.iterations, facts, l->wanted != NULL};
    to->name = l->name;
    to->body[to->bodies++] = l->a;
    if (!t->mode.compiling) to->why = "it plays the operator again and again, on the tape of its body";
    if (to->why) return true;
    cot__attr *a = cot__attr_make(t, l->name, INTS, ints, 0, NULL);
    if (a) a->number = l->options.tolerance;
    to->attr = a;
    if (a && cot__has_elimination(n, positive)) to->body[to->bodies++] = cot__record_elimination(t, l->name, n);
    return t->status == COT_OK;
}

/* ---- and back -------------------------------------------------------------------------------- */

cot_var cot__linear_solve_replay(cot_tape *t, const cot__program *p, uint32_t operation, const cot_var *xs,
                                 cot__replayer *replay) {
    const cot__attr    *a = cot__operation_attr(p, operation);
    const char         *name = cot__copy_name(t, cot__operation_name(p, operation));
    cot__linsolve      *l = name ? cot__arena(t, sizeof *l, name) : NULL;
    cot__replaying_body body = {t, p->body[p->operation[operation].body], xs + 1, replay};
    if (!l) return INVALID(t);
    *l = (cot__linsolve){.name = name, .wanted = a->ints[WANTED] ? COT__FOR_A_DERIVATIVE : NULL,
                         .proven = a->ints[FACTS] & LINEAR, .options = options_of(a)};
    l->a = cot__record_again(&body, name, NULL, 1, xs, 1);
    return l->a ? cot__linear_solve_record(t, l, xs[0]) : INVALID(t);
}
