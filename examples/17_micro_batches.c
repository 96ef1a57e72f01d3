/* A large batch in small parts: gradients of leaves add up until they are zeroed, so the gradients
 * of 16 micro-batches of 64 rows, each loss divided by 16, are those of one batch of 1024, to
 * rounding. The tape only ever holds one micro-batch. */
#include <cotangent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 1024, PARTS = 16, PART = ROWS / PARTS, IN = 64, WIDTH = 256 };

static cot_var net(cot_params *p, cot_var x) {
    for (int k = 0; k < 4; k++) {
        cot_params_push_number(p, k);
        x = cot_tanh(cot_nn_dense(p, "fc", x, WIDTH));
        cot_params_pop(p);
    }
    return cot_nn_dense(p, "head", x, 10);
}

/* The loss of `rows` rows from `from` on, in parts of the whole, swept back; the storage that it
 * took is left in *bytes. */
static double one(cot_params *p, cot_var data, cot_var labels, int64_t from, int64_t rows, int64_t *bytes) {
    cot_tape *t     = cot_params_tape(p);
    cot_mark  mark  = cot_tape_mark(t);
    int64_t   least = cot_tape_storage_bytes(t);
    cot_var   x = cot_slice(data, 0, from, from + rows, 1), y = cot_slice(labels, 0, from, from + rows, 1);
    cot_var   loss  = cot_mul(cot_softmax_cross_entropy(net(p, x), y), (double)rows / ROWS);
    double    value = cot_value(loss);
    *bytes          = cot_tape_storage_bytes(t) - least;
    cot_backward(loss);
    cot_tape_rewind(t, mark);
    return value;
}

/* All gradients in a row, and then none. */
static int64_t take_gradients(cot_params *p, double *to) {
    int            n;
    const cot_var *w    = cot_params_vars(p, &n);
    int64_t        used = 0;
    for (int k = 0; k < n; k++) {
        int64_t size = cot_size(w[k]);
        cot_read_grad(w[k], to + used, size);
        used += size;
    }
    cot_tape_zero_grads(cot_params_tape(p));
    return used;
}

int main(void) {
    static double whole[IN * WIDTH + 4 * WIDTH * WIDTH], parts[IN * WIDTH + 4 * WIDTH * WIDTH];
    static int64_t label[ROWS];
    for (int k = 0; k < ROWS; k++) label[k] = k % 10;
    cot_tape   *t      = cot_tape_create(NULL);
    cot_params *p      = cot_params_create(t);
    cot_var     data   = cot_normal(t, cot_key_of(1), COT_F64, COT_SHAPE(ROWS, IN));
    cot_var     labels = cot_data(t, COT_I64, COT_SHAPE(ROWS), label);
    int64_t     large, small = 0;
    cot_params_init(p, net, data, cot_key_of(0));

    double  loss = one(p, data, labels, 0, ROWS, &large), sum = 0, worst = 0, norm = 0;
    int64_t n    = take_gradients(p, whole);
    for (int k = 0; k < PARTS; k++) sum += one(p, data, labels, k * PART, PART, &small);
    take_gradients(p, parts);
    for (int64_t k = 0; k < n; k++) {
        norm  = hypot(norm, whole[k]);
        worst = fmax(worst, fabs(whole[k] - parts[k]));
    }
    bool same = fabs(loss - sum) < 1e-14 * PARTS && worst < 1e-14 * norm * PARTS, less = large >= (PARTS - 1) * small;
    printf("%lld gradients, loss %.6f\n", (long long)n, loss);
    printf("one batch of %d, and %d of %d added up: %s\n", ROWS, PARTS, PART,
           same ? "the same to rounding" : "NOT the same");
    printf("the tape of the large one holds %.0f times as much\n", (double)large / (double)small);
    int wrong = cot_tape_status(t) != COT_OK || !same || !less || !(norm > 0);
    if (wrong) fprintf(stderr, "a result is off: %g of %g. %s\n", worst, norm, cot_tape_message(t));
    cot_params_destroy(p);
    cot_tape_destroy(t);
    return wrong;
}
