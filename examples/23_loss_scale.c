/* Training in f16: gradients smaller than its least number, 6e-8, become zero, and a net whose
 * gradients are that small learns nothing. Times 65536 they are numbers again: the loss is scaled,
 * the gradients are divided by the scale before the step, and where the scale was too large (a
 * gradient is infinite) the step is left out and the scale halved. bf16 has the range of f32 and
 * learns without. Parameters are f32 in all four runs. */
#include <cotangent.h>
#include <stdio.h>

enum { ROWS = 256, IN = 8, STEPS = 200 };

/* Deep enough, and its result small: so are the gradients of its parameters. */
static cot_var net(cot_params *p, cot_var x) {
    x = cot_tanh(cot_nn_dense(p, "fc1", x, 32));
    x = cot_tanh(cot_nn_dense(p, "fc2", x, 32));
    return cot_mul(cot_nn_dense(p, "out", x, 1), 1e-3);
}

static void train(const char *name, cot_dtype dtype, bool scaled) {
    cot_tape      *t = cot_tape_create(NULL);
    cot_params    *p = cot_params_create(t);
    cot_loss_scale s = {.scale = 0x1p40, .interval = 50};
    cot_var        x = cot_normal(t, cot_key_of(1), COT_F32, COT_SHAPE(ROWS, IN));
    cot_var        y = cot_mul(cot_sin(cot_sum(x, COT_KEEP(1))), 1e-3);
    cot_params_set_precision(p, "*", dtype);
    cot_params_init(p, net, x, cot_key_of(0));
    cot_optim *o     = cot_optim_create(p, &(cot_optim_options){.kind = COT_ADAMW, .rate = 1e-2});
    cot_mark   mark  = cot_tape_mark(t);
    double     first = 0, last = 0;
    for (int step = 0; step < STEPS; step++) {
        cot_tape_set_precision(t, (cot_precision){.compute = dtype}); /* the loss in f32 */
        cot_var loss = cot_mse(net(p, x), y);
        last         = cot_value(loss);
        if (step == 0) first = last;
        cot_backward(scaled ? cot_loss_scaled(&s, loss) : loss);
        if (!scaled || cot_unscale_grads(p, &s)) cot_optim_step(o);
        cot_tape_zero_grads(t);
        cot_tape_rewind(t, mark);
    }
    printf("%-12s the loss %s", name, last < first / 4 ? "falls" : last == first ? "stays as it was" : "moves");
    if (scaled) printf("; steps that overflowed: %s", s.skipped > 0 ? "some, left out" : "none");
    printf("\n");
    cot_optim_destroy(o);
    cot_params_destroy(p);
    cot_tape_destroy(t);
}

int main(void) {
    train("f32", COT_F32, false);
    train("f16", COT_F16, false);
    train("f16, scaled", COT_F16, true);
    train("bf16", COT_BF16, false);
    return 0;
}
