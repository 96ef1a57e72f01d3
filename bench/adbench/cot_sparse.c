/* Style `sparse`: BA as one function from all parameters (11 n + 3 m + p) to all errors (3 p). The
 * library finds the entries of its Jacobian, and how few sweeps give them. The plan is made once,
 * before the timing. */
#include "cot_common.h"

#include <stdlib.h>
#include <string.h>

#include "cot_ba_tensor.inc"

struct ba_sparse {
    struct ab_cot   *s;
    cot_var          params, obs[2], feat[2], still;
    cot_sparse_plan *plan;
    size_t          *place; /* of each entry in the layout of problems.h */
    double          *values;
};

static void ba_close(void *state) {
    struct ba_sparse *b = state;
    cot_sparse_plan_destroy(b->plan);
    if (b->s)
        ab_cot_close(b->s);
    free(b->place);
    free(b->values);
    free(b);
}

/* The camera and the point of each observation, its features, and the cameras that are not
 * rotated. */
static bool ba_constants(struct ba_sparse *b) {
    const struct ab_ba *a = &b->s->in->u.ba;
    int64_t            *index = malloc((size_t)a->p * sizeof *index);
    double             *number = malloc((size_t)a->p * sizeof *number);
    bool                some = false;
    for (int k = 0; index && number && k < 2; k++) {
        for (int i = 0; i < a->p; i++) {
            index[i] = a->obs[i][k];
            number[i] = a->feats[i][k];
        }
        b->obs[k] = cot_data(b->s->tape, COT_I64, COT_SHAPE(a->p), index);
        b->feat[k] = cot_data(b->s->tape, COT_F64, COT_SHAPE(a->p), number);
    }
    for (int i = 0; index && number && i < a->p; i++) {
        const double *r = a->cams[a->obs[i][0]];
        number[i] = r[0] == 0 && r[1] == 0 && r[2] == 0;
        some |= number[i] != 0;
    }
    if (some)
        b->still = cot_data(b->s->tape, COT_F64, COT_SHAPE(a->p), number);
    const bool ok = index && number;
    free(index);
    free(number);
    return ok;
}

/* All errors in the order of the reference: two for each observation, then the weights'. */
static cot_var ba_record(const struct ba_sparse *b) {
    const struct ab_ba *a = &b->s->in->u.ba;
    const int64_t       cams = (int64_t)AB_CAM * a->n, points = cams + 3 * (int64_t)a->m;
    cot_var cam = cot_take(cot_reshape(cot_slice(b->params, 0, 0, cams, 1), COT_SHAPE(a->n, AB_CAM)), b->obs[0], 0);
    cot_var point = cot_take(cot_reshape(cot_slice(b->params, 0, cams, points, 1), COT_SHAPE(a->m, 3)), b->obs[1], 0);
    cot_var x[BA_LEAVES], err[BA_ERRORS];
    for (int j = 0; j < AB_CAM; j++)
        x[j] = cot_index(cam, 1, j);
    for (int j = 0; j < 3; j++)
        x[BA_X + j] = cot_index(point, 1, j);
    x[BA_W] = x[AB_BA_ROW] = cot_slice(b->params, 0, points, points + a->p, 1);
    record_observations(x, b->feat, b->still, err);
    cot_var both = cot_reshape(cot_stack(2, err, 1), COT_SHAPE(2 * (int64_t)a->p));
    return cot_concat(2, (cot_var[]){both, err[2]}, 0);
}

/* The layout has 15 entries in each row. The pattern has fewer: an error does not depend on the
 * other coordinate of the image centre. */
static bool ba_places(struct ba_sparse *b) {
    const struct ab_ba   *a = &b->s->in->u.ba;
    const cot_sparse_info i = cot_sparse_plan_info(b->plan);
    const int64_t         cams = (int64_t)AB_CAM * a->n, points = cams + 3 * (int64_t)a->m, p = a->p;
    b->place = malloc(((size_t)i.nnz + 1) * sizeof *b->place);
    b->values = malloc(((size_t)i.nnz + 1) * sizeof *b->values);
    if (!b->place || !b->values)
        return false;
    for (int64_t r = 0; r < i.rows; r++)
        for (int64_t e = i.row_start[r]; e < i.row_start[r + 1]; e++) {
            const int64_t c = i.col[e];
            const int64_t k = c < cams ? c % AB_CAM : c < points ? AB_CAM + (c - cams) % 3 : AB_BA_ROW - 1;
            b->place[e] = (size_t)(r < 2 * p ? AB_BA_ROW * r + k : 2 * AB_BA_ROW * p + r - 2 * p);
        }
    return true;
}

static void *ba_open(const struct ab_instance *in, struct ab_error *error) {
    struct ba_sparse *b = calloc(1, sizeof *b);
    if (!b || !(b->s = ab_cot_create(in, 0, 0, error))) {
        free(b);
        return NULL;
    }
    b->params = cot_tensor(b->s->tape, COT_F64, COT_SHAPE((int64_t)in->param_count), in->params);
    bool ok = ba_constants(b) || ab_fail(error, "not enough memory");
    b->s->start = cot_tape_mark(b->s->tape);
    if (ok) {
        cot_var y = ba_record(b);
        b->plan = cot_sparse_jacobian_plan(1, &y, 1, &b->params, COT_AUTO);
        ok        = b->plan ? ba_places(b) || ab_fail(error, "not enough memory")
                            : ab_fail(error, "%s", cot_tape_message(b->s->tape));
        cot_tape_rewind(b->s->tape, b->s->start);
    }
    if (ok)
        return b;
    ba_close(b);
    return NULL;
}

static bool ba_run(void *state, double *values, struct ab_error *error) {
    struct ba_sparse *b = state;
    cot_var           y = ba_record(b);
    const int64_t     nnz = cot_sparse_plan_info(b->plan).nnz;
    cot_sparse_jacobian(b->plan, 1, &y, 1, &b->params, b->values);
    memset(values, 0, b->s->in->derivative_count * sizeof *values);
    for (int64_t e = 0; e < nnz; e++)
        values[b->place[e]] = b->values[e];
    return ab_cot_finish(b->s, error);
}

static size_t ba_peak_bytes(const void *state) {
    const struct ba_sparse *b = state;
    return ab_cot_peak_bytes(b->s) + (size_t)cot_sparse_plan_info(b->plan).nnz * (sizeof *b->place + sizeof *b->values);
}

const struct ab_method ab_methods_sparse[] = {
    {AB_BA, "sparse", ba_open, ba_run, ba_peak_bytes, ba_close},
    {AB_BAFULL, "sparse", ba_open, ba_run, ba_peak_bytes, ba_close},
    {.style = NULL},
};
