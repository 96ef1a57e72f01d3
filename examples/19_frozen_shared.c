/* Shared and frozen parameters. The same name is the same parameters: an encoder that is called for
 * two points has one set of weights, whose gradient is the sum over both calls. What is frozen gets
 * no gradient, and no optimiser moves it: here the encoder stays while a new head is trained on top
 * of it. */
#include <cotangent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PAIRS = 64, IN = 6, WIDTH = 24, WEIGHTS = IN * WIDTH };

static cot_var encode(cot_params *p, const char *name, cot_var x) { return cot_tanh(cot_nn_dense(p, name, x, WIDTH)); }

static cot_var half(cot_var x, int k) { return cot_index(x, 1, k); }

/* x (pairs, 2, in) -> how far the codes of both are apart */
static cot_var distance(cot_params *p, cot_var x) {
    return cot_mean(cot_square(cot_sub(encode(p, "encoder", half(x, 0)), encode(p, "encoder", half(x, 1)))), COT_ALL);
}

/* The same by two encoders. */
static cot_var distance_of_two(cot_params *p, cot_var x) {
    return cot_mean(cot_square(cot_sub(encode(p, "left", half(x, 0)), encode(p, "right", half(x, 1)))), COT_ALL);
}

/* Which of the two has the larger sum? The head is new, the encoder the one that there is. */
static cot_var which(cot_params *p, cot_var x) {
    cot_var both = cot_sub(encode(p, "encoder", half(x, 0)), encode(p, "encoder", half(x, 1)));
    return cot_nn_dense(p, "head", both, 2);
}

static void gradient(cot_params *p, const char *name, double *to) {
    cot_read_grad(cot_params_get(p, name), to, WEIGHTS);
}

static int shared(cot_params *p, cot_var x) {
    cot_tape *t = cot_params_tape(p);
    double    once[WEIGHTS], left[WEIGHTS], right[WEIGHTS], worst = 0;
    cot_params_init(p, distance, x, cot_key_of(1));
    cot_params_init(p, distance_of_two, x, cot_key_of(1));
    cot_assign(cot_params_get(p, "left.weight"), cot_params_get(p, "encoder.weight"));
    cot_assign(cot_params_get(p, "right.weight"), cot_params_get(p, "encoder.weight"));
    cot_assign(cot_params_get(p, "left.bias"), cot_params_get(p, "encoder.bias"));
    cot_assign(cot_params_get(p, "right.bias"), cot_params_get(p, "encoder.bias"));
    cot_backward(cot_add(distance(p, x), distance_of_two(p, x)));
    gradient(p, "encoder.weight", once);
    gradient(p, "left.weight", left);
    gradient(p, "right.weight", right);
    for (int k = 0; k < WEIGHTS; k++) worst = fmax(worst, fabs(once[k] - left[k] - right[k]));
    cot_tape_zero_grads(t);
    printf("one encoder called twice: its gradient is the sum of those of two encoders%s\n",
           worst < 1e-15 ? "" : ": NOT so");
    return !(worst < 1e-15);
}

static int frozen(cot_params *p, cot_var x) {
    cot_tape *t = cot_params_tape(p);
    double    before[WEIGHTS], after[WEIGHTS], loss = 0;
    int       all, trained;
    cot_params_init(p, which, x, cot_key_of(2));
    cot_params_vars(p, &all);
    cot_params_freeze(p, "*", true);
    cot_params_freeze(p, "head.*", false);
    cot_params_vars(p, &trained);
    cot_read(cot_params_get(p, "encoder.weight"), before, WEIGHTS);
    cot_var    sums   = cot_sum(x, COT_AXES(2));
    cot_var    labels = cot_cast(cot_greater(half(sums, 1), half(sums, 0)), COT_I64);
    cot_optim *adam   = cot_optim_create(p, &(cot_optim_options){.kind = COT_ADAM, .rate = 0.02});
    cot_mark   mark   = cot_tape_mark(t);
    printf("parameters: %d, of which %d are trained\n", all, trained);
    for (int step = 0; step <= 200; step++) {
        cot_var l = cot_softmax_cross_entropy(which(p, x), labels);
        loss      = cot_value(l);
        if (step % 100 == 0) printf("  step %3d  loss %.4f\n", step, loss);
        cot_backward(l);
        cot_optim_step(adam);
        cot_tape_zero_grads(t);
        cot_tape_rewind(t, mark);
    }
    cot_read(cot_params_get(p, "encoder.weight"), after, WEIGHTS);
    bool stays = memcmp(before, after, sizeof before) == 0;
    printf("the frozen encoder is %s\n", stays ? "what it was, to the bit" : "NOT what it was");
    cot_optim_destroy(adam);
    return !stays || !(loss < 0.2) || trained != 2;
}

int main(void) {
    cot_tape   *t     = cot_tape_create(NULL);
    cot_params *p     = cot_params_create(t);
    cot_var     x     = cot_normal(t, cot_key_of(0), COT_F64, COT_SHAPE(PAIRS, 2, IN));
    int         wrong = shared(p, x) | frozen(p, x);
    wrong |= cot_tape_status(t) != COT_OK;
    if (wrong) fprintf(stderr, "a result is off. %s\n", cot_tape_message(t));
    cot_params_destroy(p);
    cot_tape_destroy(t);
    return wrong;
}
