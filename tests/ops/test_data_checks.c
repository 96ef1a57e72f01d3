/* What an operation asks of the elements of its operands, it asks in every way of doing it: what is
 * refused on a tape, is refused in the same sentence for a batch, whichever operands have one, in a
 * batch of batches, in compiled functions and beside derivatives; and whether or not anybody reads
 * the result. An operation whose record has a `check` needs a case here. */
/* ctest: timeout=120 */
#include "rules/structural_ids.h"
#include "ops/structural.h"
#include "support/body_test.h"
#include "support/support.h"
#include "support/tape_test.h"

#include <cotangent_nn.h>
#include <cotangent_program.h>
#include <cotangent_transform.h>

enum { MOST_INPUTS = 4, MOST = 12, EXTENT = 3, OUTER = 2, TEXT = 600 };

/* ---- the cases ------------------------------------------------------------------------------- */

typedef struct operand {
    cot_dtype dtype;
    cot_shape shape;
    double    good[MOST], bad[MOST]; /* bad: of the operand that is `wrong` */
} operand;

typedef struct test_case {
    const char *name;
    cot_fn      f;
    int         n, wrong;
    operand     in[MOST_INPUTS];
} test_case;

#define ONE(name, value) BODY(name) { UNUSED; ys[0] = value; return cot_is_valid(ys[0]) ? 0 : 1; }

static const cot_cross_entropy_options smooth = {.smoothing = 0.25},
                                       some = {.smoothing = 0.25, .ignore = true, .ignored = -100};
static cot_key key_on(cot_tape *t) {
    return cot_key_at(cot_key_of(7), cot_data(t, COT_I64, COT_SCALAR, (int64_t[]){3}));
}

ONE(f_take, cot_take(xs[0], xs[1], 0))
ONE(f_take_last, cot_take(xs[0], xs[1], -1))
ONE(f_embedding, cot_embedding(xs[0], xs[1], 1))
ONE(f_along, cot_take_along_axis(xs[0], xs[1], 1))
ONE(f_scatter_add, cot_scatter_add(xs[0], xs[1], xs[2], 0))
ONE(f_scatter_add_last, cot_scatter_add(xs[0], xs[1], xs[2], 1))
ONE(f_scatter, cot_scatter(xs[0], xs[1], xs[2], 0))
ONE(f_scatter_last, cot_scatter(xs[0], xs[1], xs[2], 1))
ONE(f_along_back, cot__scatter_add_along_for(COT__FOR_SCATTER_ADD_ALONG, xs[0], xs[1], xs[2], 1))
ONE(f_gather, cot_gather(xs[0], xs[1]))
ONE(f_one_hot, cot_one_hot(xs[0], 3, COT_F64))
ONE(f_sorted, cot_cast(cot_searchsorted(xs[0], xs[1], false), COT_F64))
ONE(f_nll, cot_nll(cot_log_softmax(xs[0], -1), xs[1]))
ONE(f_cross_entropy, cot_cross_entropy(cot_softmax(xs[0], -1), xs[1]))
ONE(f_logits, cot_softmax_cross_entropy(xs[0], xs[1]))
ONE(f_smooth, cot_nn_cross_entropy(xs[0], xs[1], &smooth))
ONE(f_some, cot_nn_cross_entropy(xs[0], xs[1], &some))
ONE(f_categorical, cot_categorical(key_on(xs[0].tape), xs[0], 1))
ONE(f_bernoulli, cot_cast(cot_bernoulli(xs[0].tape, key_on(xs[0].tape), xs[0], COT_SHAPE(2, 3)), COT_F64))

#define X {COT_F64, {2, {3, 2}}, {0, 1, 10, 11, 20, 21}, {0}}
#define ROWS {COT_F64, {2, {2, 3}}, {0, 1, 10, 11, 20, 21}, {0}}
#define LABELS(...) {COT_I64, {1, {2}}, {0, 2}, {__VA_ARGS__}}

static const test_case cases[] = {
    {"take", f_take, 2, 1, {X, {COT_I64, {1, {3}}, {0, 2, -3}, {0, -4, 0}}}},
    {"take, above", f_take, 2, 1, {X, {COT_I64, {1, {3}}, {0, 2, -3}, {0, 1, 3}}}},
    {"take, one", f_take, 2, 1, {X, {COT_I32, {0, {0}}, {2}, {3}}}},
    {"take, matrix", f_take_last, 2, 1, {X, {COT_I64, {2, {2, 2}}, {0, 1, -1, -2}, {0, 1, 2, 0}}}},
    {"embedding", f_embedding, 2, 1, {X, {COT_I64, {1, {3}}, {0, 1, -3}, {0, -4, 0}}}},
    {"take_along_axis", f_along, 2, 1, {ROWS, {COT_I64, {2, {2, 2}}, {0, 2, -1, -3}, {0, 1, 3, 0}}}},
    {"scatter_add", f_scatter_add, 3, 1,
     {X, {COT_I64, {1, {2}}, {2, -3}, {0, -4}}, {COT_F64, {2, {2, 2}}, {1, 2, 3, 4}, {0}}}},
    {"scatter_add, last", f_scatter_add_last, 3, 1,
     {X, {COT_I64, {1, {2}}, {1, -2}, {0, 2}}, {COT_F64, {2, {3, 2}}, {1, 2, 3, 4, 5, 6}, {0}}}},
    {"scatter", f_scatter, 3, 1,
     {X, {COT_I64, {1, {2}}, {2, -3}, {0, 3}}, {COT_F64, {2, {2, 2}}, {1, 2, 3, 4}, {0}}}},
    {"scatter, last", f_scatter_last, 3, 1,
     {X, {COT_I64, {1, {2}}, {1, -2}, {0, -3}}, {COT_F64, {2, {3, 2}}, {1, 2, 3, 4, 5, 6}, {0}}}},
    {"scatter_add_along", f_along_back, 3, 1,
     {ROWS, {COT_I64, {2, {2, 2}}, {0, 2, -1, -3}, {0, 1, 3, 0}}, {COT_F64, {2, {2, 2}}, {1, 2, 3, 4}, {0}}}},
    {"gather", f_gather, 2, 1, {X, {COT_I64, {2, {2, 2}}, {0, 1, -1, -2}, {0, 1, 2, 2}}}},
    {"gather, rows", f_gather, 2, 1, {X, {COT_I64, {2, {2, 1}}, {0, -3}, {0, -4}}}},
    {"one_hot", f_one_hot, 1, 0, {{COT_I64, {1, {3}}, {0, 2, -3}, {0, 3, 0}}}},
    {"searchsorted", f_sorted, 2, 0, {{COT_F64, {1, {3}}, {1, 2, 3}, {1, 3, 2}}, {COT_F64, {1, {2}}, {0, 9}, {0}}}},
    {"nll, below", f_nll, 2, 1, {ROWS, LABELS(0, -1)}},
    {"nll, above", f_nll, 2, 1, {ROWS, LABELS(0, 3)}},
    {"cross_entropy, below", f_cross_entropy, 2, 1, {ROWS, LABELS(-1, 0)}},
    {"cross_entropy, above", f_cross_entropy, 2, 1, {ROWS, LABELS(0, 3)}},
    {"softmax_cross_entropy, below", f_logits, 2, 1, {ROWS, LABELS(0, -3)}},
    {"softmax_cross_entropy, above", f_logits, 2, 1, {ROWS, LABELS(3, 0)}},
    {"nn_cross_entropy, below", f_smooth, 2, 1, {ROWS, LABELS(0, -1)}},
    {"nn_cross_entropy, above", f_smooth, 2, 1, {ROWS, LABELS(0, 3)}},
    {"nn_cross_entropy, not ignored", f_some, 2, 1, {ROWS, {COT_I64, {1, {2}}, {-100, 2}, {-100, -1}}}},
    {"bernoulli", f_bernoulli, 1, 0, {{COT_F64, {1, {3}}, {0, 0.5, 1}, {0.5, 1.5, 0}}}},
    {"bernoulli, below", f_bernoulli, 1, 0, {{COT_F32, {1, {3}}, {0, 0.5, 1}, {0.5, 0, -0.25}}}},
    {"bernoulli, NaN", f_bernoulli, 1, 0, {{COT_F64, {0, {0}}, {0.5}, {NAN}}}},
};

/* ---- its operands ---------------------------------------------------------------------------- */

/* How many examples stand in front of an operand, of which the last is bad: 1, a batch, or a batch
 * of batches. */
static int64_t examples(unsigned subset, int k, bool twice) {
    return subset >> k & 1 ? twice ? OUTER * EXTENT : EXTENT : 1;
}

static cot_shape shape_with(const operand *o, unsigned subset, int k, bool twice) {
    cot_shape s = {0};
    if (subset >> k & 1 && twice) s.dim[s.ndim++] = OUTER;
    if (subset >> k & 1) s.dim[s.ndim++] = EXTENT;
    for (int i = 0; i < o->shape.ndim; i++) s.dim[s.ndim++] = o->shape.dim[i];
    return s;
}

typedef union elements { double f64[OUTER * EXTENT * MOST]; float f32[1]; int64_t i64[1]; int32_t i32[1]; } elements;

static void fill(elements *to, const test_case *c, int k, int64_t count, bool bad) {
    const operand *o = &c->in[k];
    int64_t        size = cot__count(o->shape.ndim, o->shape.dim);
    for (int64_t e = 0; e < count; e++)
        for (int64_t i = 0; i < size; i++) {
            double v = bad && k == c->wrong && e == count - 1 ? o->bad[i] : o->good[i];
            cot__store_f64((char *)to + (e * size + i) * cot__dtype_size(o->dtype), o->dtype, v);
        }
}

/* ---- the ways -------------------------------------------------------------------------------- */

/* The result, the gradient of a loss that reads it, or of one that does not: then nothing but the
 * way back is left. */
enum { VALUE, CURVED, LINEAR, WAYS };
typedef struct way { const test_case *c; unsigned subset; bool twice; int gradient, unread; } way;

static cot_var loss_of(cot_var y) { return cot_sum(cot_mul(y, cot_add(y, 1.0)), COT_ALL); }

/* The gradient of the loss by the floats instead of the result. */
BODY(itself) {
    const way *w = user;
    cot_var    x[MOST_INPUTS], y, g[MOST_INPUTS];
    int        floats = 0;
    if (!w->gradient) return w->c->f(n, xs, m, ys, NULL);
    if (w->c->f(n, xs, 1, &y, NULL)) return 1;
    for (int k = 0; k < n; k++)
        if (cot__dtype_is_float(w->c->in[k].dtype)) x[floats++] = xs[k];
    if (cot_grad_of(w->gradient == CURVED ? loss_of(y) : cot_sum(y, COT_ALL), floats, x, g) != COT_OK) return 1;
    ys[0] = loss_of(g[0]);
    for (int k = 1; k < floats; k++) ys[0] = cot_add(ys[0], loss_of(g[k]));
    return 0;
}

static int mapped(cot_fn f, const way *w, int n, const cot_var *xs, int m, cot_var *ys) {
    int axes[MOST_INPUTS];
    for (int k = 0; k < n; k++) axes[k] = k < w->c->n && w->subset >> k & 1 ? 0 : COT_NOT_BATCHED;
    return cot_vmap(f, (void *)(uintptr_t)w, n, xs, axes, m, ys, NULL) != COT_OK;
}
BODY(batched) { return mapped(itself, user, n, xs, m, ys); }
BODY(batched_twice) { return mapped(batched, user, n, xs, m, ys); }

/* Where an operation stands whose result nobody reads; 0: somebody does. */
enum { HERE = 1, SCANNED, TESTED, LOOPED, CHOSEN, CHECKPOINTED, RULED, NESTED, PLACES };
static const char *const places[PLACES] = {"", "in the function", "in a scan", "in the test of a while",
                                           "in a while", "in a condition", "in a checkpoint",
                                           "in a function with rules", "in a scan in a checkpoint"};
/* One of the operations, and whether another error comes before it or after. Its operands come
 * from outside of a body as inputs, so that they are examples there. */
enum { ALONE, BEFORE_IT, AFTER_IT };
typedef struct unread { const way *w; int order; } unread;

/* Position 99 of 3, which somebody reads. */
static cot_var another_error(cot_var s) {
    cot_var at = cot_add(cot_cast(cot_mul(s, 0.0), COT_I64), 99);
    return cot_sum(cot_one_hot(at, 3, COT_F64), COT_ALL);
}

/* s², of the last input, and what nobody reads beside it. */
static cot_var beside(const unread *u, int n, const cot_var *xs) {
    cot_var y, s = xs[n - 1], z = cot_mul(s, s);
    if (u->order == BEFORE_IT) z = cot_add(z, another_error(s));
    if (u->w->c->f(n - 1, xs, 1, &y, NULL)) return y;
    return u->order == AFTER_IT ? cot_add(z, another_error(s)) : z;
}

/* Bodies give back the other inputs, to be those of the next step. */
static int gives(int n, const cot_var *xs, int m, cot_var *ys, cot_var y) {
    for (int k = 0; k < m - 1; k++) ys[k] = xs[k];
    return (void)n, ys[m - 1] = y, 0;
}
BODY(step_beside) { return gives(n, xs, m, ys, beside(user, n, xs)); }
BODY(step_alone) { return (void)user, gives(n, xs, m, ys, cot_mul(xs[n - 1], xs[n - 1])); }
BODY(goes_on) { return (void)m, (void)user, ys[0] = cot_less(xs[n - 1], 5.0), 0; }
BODY(goes_on_beside) { return (void)m, ys[0] = cot_less(beside(user, n, xs), 20.0), 0; }
static int square_vjp(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *ybars, cot_var *xbars,
                      void *user) {
    (void)ys, (void)user;
    xbars[n - 1] = cot_mul(cot_mul(xs[n - 1], 2.0), ybars[m - 1]);
    return 0;
}
static const cot_fn_rules square_rules = {.vjp = square_vjp};
BODY(scanned) {
    (void)m;
    return cot_scan(step_beside, user, 2, n, xs, 0, NULL, ys, 0, NULL, NULL) != COT_OK;
}

static cot_var placed(unread *u, int n, const cot_var *xs) {
    cot_var y[MOST_INPUTS] = {xs[0], xs[0], xs[0], xs[0]}, choice = cot_greater(xs[n - 1], 0.0);
    switch (u->w->unread) {
    case HERE: return beside(u, n, xs);
    case SCANNED: scanned(n, xs, n, y, u); break;
    case TESTED: cot_while(goes_on_beside, step_alone, u, n, xs, y, NULL); break;
    case LOOPED: cot_while(goes_on, step_beside, u, n, xs, y, NULL); break;
    case CHOSEN: cot_cond(choice, step_beside, step_alone, u, n, xs, n, y); break;
    case CHECKPOINTED: cot_checkpoint(step_beside, u, n, xs, n, y); break;
    case RULED: cot_custom_fn(&square_rules, step_beside, u, n, xs, n, y); break;
    case NESTED: cot_checkpoint(scanned, u, n, xs, n, y); break;
    }
    return y[n - 1];
}

/* What is read comes from one more input, or is a gradient by that. */
static int unread_as(const way *w, int n, const cot_var *xs, cot_var *ys, int order) {
    unread u = {w, order};
    ys[0] = placed(&u, n, xs);
    if (!cot_is_valid(ys[0])) return 1;
    return w->gradient ? cot_grad_of(ys[0], 1, &xs[n - 1], ys) != COT_OK : 0;
}

BODY(unread_itself) { return (void)m, unread_as(user, n, xs, ys, ALONE); }
BODY(unread_after) { return (void)m, unread_as(user, n, xs, ys, BEFORE_IT); }
BODY(unread_before) { return (void)m, unread_as(user, n, xs, ys, AFTER_IT); }
BODY(unread_batched) { return mapped(unread_itself, user, n, xs, m, ys); }
BODY(unread_batched_twice) { return mapped(unread_batched, user, n, xs, m, ys); }

static cot_fn done_by(const way *w) {
    if (!w->unread) return !w->subset ? itself : w->twice ? batched_twice : batched;
    return !w->subset ? unread_itself : w->twice ? unread_batched_twice : unread_batched;
}

/* That of searchsorted is 0, whatever the data are. */
static bool has_derivative(const test_case *c) {
    for (int k = 0; k < c->n && c->f != f_sorted; k++)
        if (k != c->wrong && cot__dtype_is_float(c->in[k].dtype)) return true;
    return false;
}

static bool seen[OP_count];

/* What the tape, or the run of the program, says: "" for nothing. */
static void on_tape_by(cot_fn f, const way *w, bool bad, char said[TEXT], char noted[TEXT]) {
    const test_case *c = w->c;
    cot_tape        *t = cot_tape_create(NULL);
    cot_var          xs[MOST_INPUTS], y;
    xs[c->n] = cot_scalar(t, 1.5);
    for (int k = 0; k < c->n; k++) {
        elements  e;
        cot_shape s = shape_with(&c->in[k], w->subset, k, w->twice);
        fill(&e, c, k, examples(w->subset, k, w->twice), bad);
        xs[k] = (cot__dtype_is_float(c->in[k].dtype) ? cot_tensor : cot_data)(t, c->in[k].dtype, s, &e);
    }
    f(c->n + (w->unread > 0), xs, 1, &y, (void *)(uintptr_t)w);
    for (uint32_t i = 0; i < t->count; i++) seen[t->nodes[i].op] = true;
    snprintf(said, TEXT, "%s", cot_tape_message(t));
    snprintf(noted, TEXT, "%s", cot_tape_note(t));
    cot_tape_destroy(t);
}

static void on_tape(const way *w, bool bad, char said[TEXT], char noted[TEXT]) {
    on_tape_by(done_by(w), w, bad, said, noted);
}

static void in_program_by(cot_fn f, const way *w, bool bad, bool verify, char said[TEXT], char noted[TEXT]) {
    static double    to[OUTER * EXTENT * 64];
    const test_case *c = w->c;
    double           s = 1.5;
    elements         e[MOST_INPUTS];
    cot_type         types[MOST_INPUTS];
    const void      *in[MOST_INPUTS];
    for (int k = 0; k < c->n; k++) {
        types[k] = (cot_type){c->in[k].dtype, shape_with(&c->in[k], w->subset, k, w->twice)};
        fill(&e[k], c, k, examples(w->subset, k, w->twice), bad);
        in[k] = &e[k];
    }
    types[c->n] = (cot_type){COT_F64, COT_SCALAR}, in[c->n] = &s;
    cot_compile_options o = {.verify = verify};
    cot_program        *p = cot_compile(f, (void *)(uintptr_t)w, c->n + (w->unread > 0), types, 1, &o);
    cot_run            *r = cot_run_create(p);
    cot_program_run(r, in, (void *[]){to});
    snprintf(said, TEXT, "%s", cot_run_message(r));
    snprintf(noted, TEXT, "%s", cot_run_note(r));
    cot_run_destroy(r);
    cot_program_destroy(p);
}

static void in_program(const way *w, bool bad, bool verify, char said[TEXT], char noted[TEXT]) {
    in_program_by(done_by(w), w, bad, verify, said, noted);
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* Without the places, which are those of the whole batch: "[1,2]", "element 3", "choice 1 of 2". */
static void without_places(char *s) {
    char *to = s;
    for (const char *p = s; *p;) {
        size_t length = *p == '[' ? 1 + strspn(p + 1, "0123456789,") : 0;
        if (length && p[length] == ']') p += length + 1;
        else if (strncmp(p, "element ", 8) == 0) p += 8, p += strspn(p, "0123456789");
        else if (strncmp(p, "choice ", 7) == 0) p += 7, p += strspn(p, "0123456789 of");
        else *to++ = *p++;
    }
    *to = 0;
}

static const char *const derivatives[WAYS] = {"", ", gradient", ", linear gradient"};

static void compare(const way *w, const char *how, const char *want, char *said, const char *fine) {
    char which[TEXT];
    snprintf(which, sizeof which, "%s, batched %u%s%s, %s%s%s", w->c->name, w->subset, w->twice ? ", twice" : "",
             derivatives[w->gradient], how, w->unread ? ", unread " : "", places[w->unread]);
    TEST_CHECK(!*fine, "%s: good data are refused: %s", which, fine);
    without_places(said);
    TEST_CHECK(strstr(said, want), "%s: %s", which, *said ? said : "bad data are not refused");
}

static void refused_alike(const way *w, const char *want) {
    char said[TEXT], fine[TEXT], none[TEXT];
    on_tape(w, true, said, none), on_tape(w, false, fine, none);
    compare(w, "on a tape", want, said, fine);
    in_program(w, true, false, said, none), in_program(w, false, false, fine, none);
    compare(w, "compiled", want, said, fine);
    if (w->twice || w->gradient) return;
    in_program(w, true, true, said, none), in_program(w, false, true, fine, none);
    compare(w, "verified", want, said, fine);
}

static void bad_data_are_refused_in_every_way(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(cases); i++) {
        const test_case *c = &cases[i];
        char             want[TEXT], none[TEXT];
        on_tape(&(way){.c = c}, true, want, none);
        TEST_CHECK(*want, "%s: bad data are not refused", c->name);
        without_places(want);
        for (unsigned subset = 0; subset < 1u << c->n; subset++)
            for (int gradient = VALUE; gradient < (has_derivative(c) ? WAYS : CURVED); gradient++)
                for (int twice = 0; twice <= (subset > 0); twice++)
                    refused_alike(&(way){c, subset, twice, gradient, 0}, want);
    }
    test_verdict();
}

/* What refuses nothing, and notes that its result means nothing. */
static const test_case choices[] = {
    {"categorical, NaN", f_categorical, 1, 0, {{COT_F64, {2, {2, 2}}, {0, 0.5, 1, 2}, {0, 0.5, NAN, 2}}}},
    {"categorical, -inf", f_categorical, 1, 0,
     {{COT_F32, {2, {2, 2}}, {0, -INFINITY, 1, 2}, {-INFINITY, -INFINITY, 1, 2}}}},
};

static void what_is_noted_is_noted_in_every_way(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(choices); i++) {
        way  w = {.c = &choices[i]};
        char want[TEXT], said[TEXT], fine[TEXT], none[TEXT];
        on_tape(&w, true, none, want);
        TEST_CHECK(*want && !*none, "%s: nothing is noted: %s", w.c->name, none);
        without_places(want);
        for (w.subset = 0; w.subset < 2; w.subset++)
            for (int twice = 0; twice <= (int)w.subset; twice++) {
                w.twice = twice;
                on_tape(&w, true, none, said), on_tape(&w, false, none, fine);
                compare(&w, "on a tape", want, said, fine);
                in_program(&w, true, false, none, said), in_program(&w, false, false, none, fine);
                compare(&w, "compiled", want, said, fine);
            }
    }
    test_verdict();
}

static void unread_alike(way *w, const char *want) {
    char said[TEXT], fine[TEXT], none[TEXT], noted[TEXT], none_noted[TEXT];
    bool notes = w->c == &choices[0] || w->c == &choices[1];
    on_tape(w, true, said, noted), on_tape(w, false, fine, none_noted);
    compare(w, "on a tape", want, notes ? noted : said, notes ? none_noted : fine);
    TEST_CHECK(!notes || !*said, "%s is refused: %s", w->c->name, said);
    in_program(w, true, false, said, noted), in_program(w, false, false, none, none_noted);
    compare(w, "compiled", want, notes ? noted : said, notes ? none_noted : none);
}

static void unread_at_every_place(const test_case *c, bool notes) {
    char want[TEXT], none[TEXT];
    on_tape(&(way){.c = c}, true, notes ? none : want, notes ? want : none);
    without_places(want);
    for (int place = HERE; place < PLACES; place++)
        for (unsigned subset = 0; subset < 1u << c->n; subset++)
            for (int gradient = VALUE; gradient <= CURVED; gradient++)
                for (int twice = 0; twice <= (subset > 0); twice++)
                    unread_alike(&(way){c, subset, twice, gradient, place}, want);
}

static void bad_data_are_refused_though_nobody_reads_the_result(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(cases); i++) unread_at_every_place(&cases[i], false);
    test_verdict();
}

static void what_nobody_reads_is_noted_too(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(choices); i++) unread_at_every_place(&choices[i], true);
    test_verdict();
}

/* One of them is of a result that nobody reads. */
static void of_two_errors_the_first_is_told(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(cases); i++)
        for (int place = HERE; place < PLACES; place++)
            for (int gradient = VALUE; gradient <= CURVED; gradient++) {
                way         w = {.c = &cases[i], .gradient = gradient, .unread = place};
                char        want[TEXT], said[TEXT], none[TEXT];
                const char *other = "[one_hot] indices is 99";
                on_tape(&(way){.c = w.c}, true, want, none);
                without_places(want);
                on_tape_by(unread_before, &w, true, said, none), compare(&w, "on a tape, first", want, said, "");
                in_program_by(unread_before, &w, true, false, said, none);
                compare(&w, "compiled, first", want, said, "");
                /* of an example this looks at the order already while a body is recorded */
                if (w.c->f != f_sorted || place == HERE)
                    on_tape_by(unread_after, &w, true, said, none), compare(&w, "on a tape, second", other, said, "");
                in_program_by(unread_after, &w, true, false, said, none);
                compare(&w, "compiled, second", other, said, "");
            }
    test_verdict();
}

/* What is watched is asked by tests/inspect/test_report.c. */
static void every_check_has_a_case(void **state) {
    (void)state;
    for (int op = OP_structural; op < OP_count; op++)
        TEST_CHECK(!cot__op_of(op)->check || seen[op] || op == OP_watch, "%s checks data; it needs a case here",
                   cot__op_of(op)->name);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_data_are_refused_in_every_way),
        cmocka_unit_test(what_is_noted_is_noted_in_every_way),
        cmocka_unit_test(bad_data_are_refused_though_nobody_reads_the_result),
        cmocka_unit_test(what_nobody_reads_is_noted_too),
        cmocka_unit_test(of_two_errors_the_first_is_told),
        cmocka_unit_test(every_check_has_a_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
