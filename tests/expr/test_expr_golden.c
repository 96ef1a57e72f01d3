/* ctest: timeout=120 */
/* Compares whole expressions with Python: jax.numpy has run the same texts, values and gradients
 * (tests/golden/expr.txt, made by make_golden.py).
 *
 * The lines below a result are its scale: how far one unit in every intermediate, and in the
 * inputs, moves it. Two computations that round as the hardware does, in any order, differ by a few
 * of these units; 8 are allowed, as in test_golden.c. */
#include "expr/expr.h"
#include "support/tape_test.h"

#include <ctype.h>
#include <float.h>

enum { MOST_VALUES = 64, MOST_INPUTS = 8, UNITS = 8 };

typedef struct array {
    char      name[16];
    cot_dtype dtype;
    cot_shape shape;
    int       n;
    double    value[MOST_VALUES], scale[MOST_VALUES];
    bool      constant;
} array;

typedef struct golden {
    char  text[400];
    int   inputs, grads;
    array in[MOST_INPUTS], grad[MOST_INPUTS], out;
    double ct[MOST_VALUES];
    int   cts;
} golden;

/* ---- reading --------------------------------------------------------------------------------- */

static int values(const char *s, double *out) {
    int n = 0;
    for (char *end; s && *s && *s != '\n'; s = end) {
        double v = strtod(s, &end);
        if (end == s) break;
        assert_true(n < MOST_VALUES);
        out[n++] = v;
    }
    return n;
}

static cot_dtype dtype_named(const char *name, size_t n) {
    for (int d = 0; d < COT_DTYPE_COUNT; d++)
        if (strlen(cot_dtype_name((cot_dtype)d)) == n && memcmp(cot_dtype_name((cot_dtype)d), name, n) == 0)
            return (cot_dtype)d;
    fail_msg("no dtype %.*s", (int)n, name);
    return COT_F64;
}

/* "f64 2,3 : 1 2 …" */
static void typed(const char *s, array *a) {
    size_t n = strcspn(s, " ");
    a->dtype = dtype_named(s, n);
    s += n + 1;
    a->shape = (cot_shape){.ndim = 0};
    while (isdigit((unsigned char)*s)) {
        char *end;
        a->shape.dim[a->shape.ndim++] = strtoll(s, &end, 10);
        s = *end == ',' ? end + 1 : end;
    }
    a->n = values(strchr(s, ':') + 1, a->value);
}

static void unescape(const char *s, char *out) {
    for (; *s && *s != '\n'; s++) {
        if (*s == '\\' && s[1]) {
            s++;
            *out++ = *s == 'n' ? '\n' : *s;
        } else {
            *out++ = *s;
        }
    }
    *out = 0;
}

static const char *named(const char *s, array *a) {
    size_t n = strcspn(s, " ");
    assert_true(n < sizeof a->name);
    memcpy(a->name, s, n);
    a->name[n] = 0;
    return s + n + 1;
}

static bool read_case(FILE *f, golden *g) {
    char   line[4000];
    array *last = NULL;
    memset(g, 0, sizeof *g);
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "text ", 5) == 0) {
            assert_true(strlen(line) < sizeof g->text);
            unescape(line + 5, g->text);
        } else if (strncmp(line, "in ", 3) == 0 || strncmp(line, "const ", 6) == 0) {
            array *a = &g->in[g->inputs++];
            a->constant = line[0] == 'c';
            typed(named(line + (a->constant ? 6 : 3), a), a);
        } else if (strncmp(line, "out ", 4) == 0) {
            typed(line + 4, last = &g->out);
        } else if (strncmp(line, "ct ", 3) == 0) {
            g->cts = values(strchr(line, ':') + 1, g->ct);
        } else if (strncmp(line, "grad ", 5) == 0) {
            last = &g->grad[g->grads++];
            last->n = values(strchr(named(line + 5, last), ':') + 1, last->value);
        } else if (line[0] == '~') {
            assert_int_equal(values(strchr(line, ':') + 1, last->scale), last->n);
        } else if (strncmp(line, "end", 3) == 0) {
            return true;
        } else {
            assert_true(line[0] == '#' || strncmp(line, "case ", 5) == 0);
        }
    }
    return false;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static double unit_of(cot_dtype d) { return d == COT_F32 ? FLT_EPSILON / 2.0 : DBL_EPSILON / 2; }

static void compare(const golden *g, const char *what, const array *want, const double *got, cot_dtype dtype) {
    for (int k = 0; k < want->n; k++) {
        double a = got[k], b = want->value[k];
        if (isnan(b) ? isnan(a) : isinf(b) ? a == b : fabs(a - b) <= UNITS * unit_of(dtype) * want->scale[k]) continue;
        fail_msg("%s\n  %s[%d] is %.17g, JAX says %.17g, scale %g", g->text, what, k, a, b, want->scale[k]);
    }
}

static cot_var input(cot_tape *t, const array *a) {
    int64_t whole[MOST_VALUES];
    if (!a->constant) return cot_tensor(t, a->dtype, a->shape, a->value);
    for (int k = 0; k < a->n; k++) whole[k] = (int64_t)a->value[k];
    return cot_data(t, a->dtype, a->shape, whole);
}

static void check(const golden *g) {
    cot_tape       *t = cot_tape_create(NULL);
    cot__expr_input in[MOST_INPUTS];
    cot__expr_error error;
    double          got[MOST_VALUES];
    for (int k = 0; k < g->inputs; k++) in[k] = (cot__expr_input){g->in[k].name, input(t, &g->in[k]), NULL};
    cot__expr *e = cot__expr_parse(g->text, strlen(g->text), &error);
    cot_var    z = e ? cot__expr_run(e, t, g->inputs, in, &error, NULL, NULL) : COT_NONE;
    if (!cot_is_valid(z)) fail_msg("%s\n  column %d: %s", g->text, error.column, error.message);
    if (cot_dtype_of(z) != g->out.dtype)
        fail_msg("%s\n  is %s, JAX says %s", g->text, cot_dtype_name(cot_dtype_of(z)), cot_dtype_name(g->out.dtype));
    cot_shape s = cot_shape_of(z);
    if (s.ndim != g->out.shape.ndim || memcmp(s.dim, g->out.shape.dim, (size_t)s.ndim * sizeof *s.dim))
        fail_msg("%s\n  has another shape", g->text);
    assert_int_equal(cot_read(z, got, g->out.n), COT_OK);
    compare(g, "value", &g->out, got, g->out.dtype);
    if (g->grads && cot_requires_grad(z)) {
        cot_var ct = g->out.dtype == COT_F32 ? cot_cast(cot_data(t, COT_F64, s, g->ct), COT_F32)
                                             : cot_data(t, COT_F64, s, g->ct);
        assert_int_equal(cot_backward_seeded(z, ct), COT_OK);
    }
    for (int k = 0; k < g->grads; k++)
        for (int i = 0; i < g->inputs; i++) {
            if (strcmp(g->grad[k].name, g->in[i].name)) continue;
            assert_int_equal(cot_read_grad(in[i].value, got, g->grad[k].n), COT_OK);
            compare(g, g->grad[k].name, &g->grad[k], got, g->out.dtype);
        }
    cot__expr_free(e);
    cot_tape_destroy(t);
}

static void the_same_text_gives_the_same_numbers_as_python(void **state) {
    (void)state;
    static golden g;
    int           n = 0, with_grads = 0;
    FILE *f = fopen(COT_SOURCE_FOLDER "/tests/golden/expr.txt", "r");
    assert_non_null(f);
    for (; read_case(f, &g); n++) {
        check(&g);
        with_grads += g.grads > 0;
    }
    fclose(f);
    assert_true(n > 100 && with_grads > 60);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_text_gives_the_same_numbers_as_python)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
