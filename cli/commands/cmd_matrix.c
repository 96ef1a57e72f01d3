/* cmd_matrix.c: cotangent jac and hess: all derivatives of all elements, in blocks by input; sparse
 * ones are in cmd_sparse.c. */
#include "commands/commands.h"

#include <stdlib.h>
#include <string.h>

#include "problem/directions.h"
#include "problem/expression.h"
#include "problem/results.h"
#include "problem/values.h"

/* Most inputs of a Hessian, which has a block for each pair. */
enum { MOST_INPUTS = 999 };

static bool joined_shape(cot_shape a, cot_shape b, cot_shape *out, failure *f) {
    *out = a;
    if (a.ndim + b.ndim > COT_MAX_NDIM)
        return failure_set(f, EXIT_RUN, "limit", "a block of %d + %d axes; at most %d can be shown", a.ndim, b.ndim,
                           COT_MAX_NDIM);
    memcpy(out->dim + a.ndim, b.dim, (size_t)b.ndim * sizeof *b.dim);
    out->ndim += b.ndim;
    return true;
}

static double *matrix_for(const char *op, int64_t rows, int64_t columns, failure *f) {
    if (columns > 0 && rows > MATRIX_MOST / columns) {
        failure_set(
            f, EXIT_RUN, "limit",
            "[%s] the matrix has %lld × %lld elements; at most %d are made. Use products (vjp, jvp, hvp), or --wrt for "
            "fewer inputs",
            op, (long long)rows, (long long)columns, MATRIX_MOST);
        return NULL;
    }
    double *m = malloc(((size_t)(rows * columns) + 1) * sizeof *m);
    if (!m) failure_memory(f);
    return m;
}

/* The blocks of a matrix, a line each: derivatives of y, or of the gradient by one input, by
 * another input. */
typedef struct blocks {
    int        count;
    cot_array *arrays;
    labelled  *lines;
} blocks;

static bool blocks_make(blocks *b, int most, failure *f) {
    b->count = 0;
    b->arrays = calloc((size_t)most + 1, sizeof *b->arrays);
    b->lines = calloc((size_t)most + 1, sizeof *b->lines);
    return (b->arrays && b->lines) || failure_memory(f);
}

static void blocks_free(blocks *b) {
    for (int k = 0; b->arrays && k < b->count; k++) free(b->arrays[k].data);
    free(b->arrays);
    free(b->lines);
}

/* Takes the value first; then the caller adds blocks. */
static bool blocks_value(blocks *b, const problem *p, failure *f) {
    if (!value_of_var(p->y, &b->arrays[0], f)) return false;
    b->lines[0] = (labelled){"value", &b->arrays[0]};
    b->count = 1;
    return true;
}

static void say_mode(FILE *out, look how, const char *mode, int64_t sweeps, const char *why) {
    fprintf(out, "%smode: %s, %lld sweep%s%s%s\n", how.colour ? "\033[2m" : "", mode, (long long)sweeps,
            sweeps == 1 ? "" : "s", why, how.colour ? "\033[0m" : "");
}

static void open_json(cot__json *j, const cot_array *value, const char *mode, const char *key) {
    cot__json_open(j, '{');
    cot__json_key(j, "value");
    print_json(j, value);
    cot__json_key(j, "mode");
    cot__json_string(j, mode);
    cot__json_key(j, key);
    cot__json_open(j, '{');
}

static void close_json(cot__json *j, const problem *p, FILE *out) {
    cot__json_close(j, '}');
    result_note(p, out, j);
    cot__json_close(j, '}');
    fputs("\n", out);
}

static bool print_jacobian(const problem *p, FILE *out, look how, cot_mode mode, const double *matrix, int n,
                           problem_input *const *of, failure *f) {
    blocks  b;
    int64_t rows = cot_size(p->y), left = 0;
    bool    fine = blocks_make(&b, n + 1, f) && blocks_value(&b, p, f);
    for (int k = 0; fine && k < n; k++) {
        const cot_array *x = &of[k]->value;
        cot_array       *a = &b.arrays[b.count];
        cot_shape        shape;
        fine = joined_shape(b.arrays[0].shape, x->shape, &shape, f) &&
               result_block(a, x->dtype, shape, matrix, p->wanted_size, 0, rows, left, x->size, f);
        if (!fine) break;
        snprintf(b.lines[b.count].label, sizeof b.lines->label, "d/d%.80s", of[k]->name);
        b.lines[b.count++].value = a;
        left += x->size;
    }
    const char *name = mode == COT_REVERSE ? "reverse" : "forward";
    if (fine && p->o->json) {
        cot__json j = cot__json_to(out);
        open_json(&j, &b.arrays[0], name, "jacobian");
        for (int k = 0; k < n; k++) {
            cot__json_key(&j, of[k]->name);
            print_json(&j, &b.arrays[k + 1]);
        }
        close_json(&j, p, out);
    } else if (fine) {
        char why[128];
        snprintf(why, sizeof why, " (outputs %lld, inputs %lld)", (long long)rows, (long long)p->wanted_size);
        print_values(out, how, b.count, b.lines);
        say_mode(out, how, name, mode == COT_REVERSE ? rows : p->wanted_size, why);
        result_note(p, out, NULL);
    }
    blocks_free(&b);
    return fine;
}

int run_jac(const options *o, FILE *out, look how, failure *f) {
    problem         p;
    double         *matrix = NULL;
    problem_input **wanted = NULL;
    int             n;
    bool            ready = problem_for_derivatives(&p, o, f);
    if (ready && o->sparse) {
        sparse_jacobian_print(&p, out, how, f);
    } else if (ready) {
        int64_t  rows = cot_size(p.y);
        cot_mode mode = o->mode != COT_AUTO ? o->mode : rows <= p.wanted_size ? COT_REVERSE : COT_FORWARD;
        matrix = matrix_for("jac", rows, p.wanted_size, f);
        wanted = matrix ? result_wanted(&p, &n, f) : NULL;
        if (wanted &&
            directions_jacobian("jac", p.t, mode, 1, &p.y, rows, p.wanted_count, p.wanted, p.wanted_size, matrix, f))
            print_jacobian(&p, out, how, mode, matrix, n, wanted, f);
    }
    free(matrix);
    free(wanted);
    problem_close(&p);
    return EXIT_FINE;
}

static bool print_hessian(const problem *p, FILE *out, look how, const char *mode, const double *matrix, int n,
                          problem_input *const *of, failure *f) {
    blocks  b;
    int64_t top = 0;
    bool    fine = blocks_make(&b, n * n + 1, f) && blocks_value(&b, p, f);
    for (int r = 0; fine && r < n; top += of[r++]->value.size) {
        int64_t left = 0;
        for (int c = 0; fine && c < n; left += of[c++]->value.size) {
            const cot_array *x = &of[r]->value, *y = &of[c]->value;
            cot_array       *a = &b.arrays[b.count];
            cot_shape        shape;
            fine = joined_shape(x->shape, y->shape, &shape, f) &&
                   result_block(a, x->dtype, shape, matrix, p->wanted_size, top, x->size, left, y->size, f);
            if (!fine) break;
            snprintf(b.lines[b.count].label, sizeof b.lines->label, "d²/d%.38s d%.38s", of[r]->name, of[c]->name);
            b.lines[b.count++].value = a;
        }
    }
    if (fine && p->o->json) {
        cot__json j = cot__json_to(out);
        open_json(&j, &b.arrays[0], mode, "hessian");
        for (int r = 0; r < n; r++) {
            cot__json_key(&j, of[r]->name);
            cot__json_open(&j, '{');
            for (int c = 0; c < n; c++) {
                cot__json_key(&j, of[c]->name);
                print_json(&j, &b.arrays[1 + r * n + c]);
            }
            cot__json_close(&j, '}');
        }
        close_json(&j, p, out);
    } else if (fine) {
        print_values(out, how, b.count, b.lines);
        say_mode(out, how, mode, p->wanted_size, " (one for each element of the inputs)");
        result_note(p, out, NULL);
    }
    blocks_free(&b);
    return fine;
}

/* Records the gradient. Its Jacobian is square, so both modes take as many sweeps, but forward
 * sweeps carry less. */
static bool hessian(problem *p, cot_mode mode, double *matrix, failure *f) {
    cot_var *gradient = malloc(((size_t)p->wanted_count + 1) * sizeof *gradient);
    if (!gradient) return failure_memory(f);
    bool fine = cot_grad_of(p->y, p->wanted_count, p->wanted, gradient) == COT_OK || tape_failure(p->t, f);
    fine = fine && directions_jacobian("hess", p->t, mode, p->wanted_count, gradient, p->wanted_size, p->wanted_count,
                                       p->wanted, p->wanted_size, matrix, f);
    free(gradient);
    return fine;
}

int run_hess(const options *o, FILE *out, look how, failure *f) {
    problem         p;
    double         *matrix = NULL;
    problem_input **wanted = NULL;
    int             n;
    char            shape[400];
    cot_mode        mode = o->mode == COT_AUTO ? COT_FORWARD : o->mode;
    if (problem_for_derivatives(&p, o, f)) {
        if (cot_size(p.y) != 1)
            failure_set(f, EXIT_USAGE, "shape",
                        "[hess] the value has shape %s; only a value of one element has a Hessian",
                        shape_text(cot_shape_of(p.y), shape));
        else if (o->sparse)
            sparse_hessian_print(&p, out, how, f);
        else if (p.wanted_count > MOST_INPUTS)
            failure_set(f, EXIT_RUN, "limit", "[hess] %d inputs; at most %d at a time. Use hvp, or --wrt for fewer",
                        p.wanted_count, MOST_INPUTS);
        else
            matrix = matrix_for("hess", p.wanted_size, p.wanted_size, f);
        wanted = matrix ? result_wanted(&p, &n, f) : NULL;
        if (wanted && hessian(&p, mode, matrix, f))
            print_hessian(&p, out, how, mode == COT_FORWARD ? "forward over reverse" : "reverse over reverse", matrix,
                          n, wanted, f);
    }
    free(matrix);
    free(wanted);
    problem_close(&p);
    return EXIT_FINE;
}
