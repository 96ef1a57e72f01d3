/* A small network, trained: 10-32-32-1 with ReLU between, mean squared error on a batch of 16.
 *
 * The parameters are leaves at the beginning of the tape. A training step records the network after
 * a mark, sweeps back, moves the parameters against their gradients and rewinds: the tape never
 * grows, and the parameters keep their new values. */
#include <cotangent.h>
#include <math.h>
#include <stdio.h>

enum { BATCH = 16, LAYERS = 3, PARAMETERS = 2 * LAYERS, STEPS = 300 };
static const int width[LAYERS + 1] = {10, 32, 32, 1};

/* Numbers between -scale and scale, the same on every machine: element i comes from hashing (seed,
 * i). */
static const float *uniform(unsigned seed, int n, double scale) {
    static float out[32 * 32];
    for (int i = 0; i < n; i++) {
        uint64_t z = (((uint64_t)seed << 32) + (uint64_t)i + 1) * 0x9E3779B97F4A7C15u;
        z          = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z          = (z ^ z >> 27) * 0x94D049BB133111EBu;
        z ^= z >> 31;
        out[i] = (float)((2 * ((double)(z >> 11) / 9007199254740992.0) - 1) * scale);
    }
    return out;
}

/* (16, 10) -> (16, 1). p holds W and b of each layer in turn. */
static cot_var network(const cot_var *p, cot_var x) {
    for (int i = 0; i < LAYERS; i++) {
        x = cot_add(cot_matmul(x, p[2 * i]), p[2 * i + 1]); /* b is broadcast over the batch */
        if (i + 1 < LAYERS) x = cot_relu(x);
    }
    return x;
}

static double norm_of_gradient(cot_tape *t, cot_var x) {
    cot_mark mark = cot_tape_mark(t);
    double   norm = cot_value(cot_norm(cot_grad(x), 2, COT_ALL));
    cot_tape_rewind(t, mark);
    return norm;
}

int main(void) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   p[PARAMETERS];
    for (int i = 0; i < LAYERS; i++) {
        int in = width[i], out = width[i + 1];
        p[2 * i]     = cot_tensor(t, COT_F32, COT_SHAPE(in, out), uniform(10 + (unsigned)i, in * out, 1 / sqrt(in)));
        p[2 * i + 1] = cot_tensor(t, COT_F32, COT_SHAPE(out), NULL); /* zeros */
    }
    cot_var  x      = cot_data(t, COT_F32, COT_SHAPE(BATCH, 10), uniform(1, BATCH * 10, 1));
    cot_var  target = cot_data(t, COT_F32, COT_SHAPE(BATCH, 1), uniform(2, BATCH, 1));
    cot_mark mark   = cot_tape_mark(t);

    double first = 0, last = 0;
    for (int step = 0; step <= STEPS && cot_tape_status(t) == COT_OK; step++) {
        cot_var loss = cot_mse(network(p, x), target);
        cot_backward(loss);
        last = cot_value(loss);
        if (step == 0) {
            first = last;
            printf("loss at the start %.6f; norms of its gradients:\n", first);
            for (int i = 0; i < PARAMETERS; i++)
                printf("  d/d%c%d  %.4f\n", i % 2 ? 'b' : 'W', i / 2 + 1, norm_of_gradient(t, p[i]));
            printf("training:\n");
        }
        if (step % (STEPS / 10) == 0) {
            printf("  step %3d  loss %.4f  ", step, last);
            for (int bar = (int)(50 * last / first + 0.5); bar > 0; bar--) putchar('#');
            putchar('\n');
        }
        cot_sgd_step(PARAMETERS, p, 0.05);
        cot_tape_zero_grads(t);
        cot_tape_rewind(t, mark); /* forgets the step, not what it did to the parameters */
    }

    /* The loss at the start is known from other programs with the same numbers. */
    int wrong = cot_tape_status(t) != COT_OK || !(fabs(first - 0.270273) < 1e-6) || !(last < first / 10);
    if (wrong) fprintf(stderr, "a result is off. %s\n", cot_tape_message(t));
    cot_tape_destroy(t);
    return wrong;
}
