/* per_example: compares the gradients of every example of a batch, by cot_vmap, with the plain
 * gradient; and a batch of cot_while with the loops one by one.
 *
 * The gradients are measured as arrays, and in their two most common uses: the norm for each
 * example, and the mean of all after clipping these norms; these two also as compiled programs. For
 * 128 examples of an MLP with 0.67 million weights the arrays are 342 MB: no program that returns
 * them can be faster than memory takes them. So the same run measures this floor: memset over as
 * much warm memory, with as many threads. Norms and means need no arrays. Times are the least of
 * several samples, all taking turns. Memory is the largest resident size of the process after a
 * first round of each, in that order. This is not a test: speed is measured, not asserted. */
#include <cotangent.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { LAYERS = 3, MOST_THREADS = 64, MOST_BATCH = 128 };

typedef struct mlp {
    cot_tape *t;
    cot_mark  start;
    cot_var   x, target, p[2 * LAYERS]; /* weights, then biases */
    int64_t   batch;
    bool      squared;
    /* the norms, and norms and clipped means, as programs; inputs: x, target, p */
    cot_run    *run[2];
    const void *in[2 + 2 * LAYERS];
    void       *out[1 + 2 * LAYERS];
} mlp;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static mlp make(int64_t batch, const int64_t *sizes, bool squared) {
    mlp     m = {.t = cot_tape_create(NULL), .batch = batch, .squared = squared};
    cot_key key = cot_key_of(1);
    m.x = cot_uniform(m.t, cot_key_fold(key, 0), COT_F32, COT_SHAPE(batch, sizes[0]), -1, 1);
    m.target =
        squared ? cot_uniform(m.t, cot_key_fold(key, 1), COT_F32, COT_SHAPE(batch, sizes[LAYERS]), -1, 1)
                : cot_cast(cot_uniform(m.t, cot_key_fold(key, 1), COT_F32, COT_SHAPE(batch), 0, (double)sizes[LAYERS]),
                           COT_I64);
    for (int i = 0; i < LAYERS; i++) {
        double scale = 1 / sqrt((double)sizes[i]);
        m.p[i]          = cot_leaf(cot_uniform(m.t, cot_key_fold(key, (uint64_t)(2 + i)), COT_F32,
                                               COT_SHAPE(sizes[i], sizes[i + 1]), -scale, scale));
        m.p[LAYERS + i] = cot_tensor(m.t, COT_F32, COT_SHAPE(sizes[i + 1]), NULL);
    }
    m.start = cot_tape_mark(m.t);
    return m;
}

static cot_var network(const mlp *m, cot_var h) {
    for (int i = 0; i < LAYERS; i++) {
        h = cot_add(cot_matmul(h, m->p[i]), m->p[LAYERS + i]);
        if (i + 1 < LAYERS) h = cot_relu(h);
    }
    return h;
}

static cot_var loss_of(const mlp *m, cot_var x, cot_var target) {
    return m->squared ? cot_mse(network(m, x), target) : cot_softmax_cross_entropy(network(m, x), target);
}

static void plain(mlp *m) { cot_backward(loss_of(m, m->x, m->target)); }

/* ---- each ------------------------------------------------------------------------------------ */

static int one_example(int n, const cot_var *xs, int count, cot_var *ys, void *user) {
    mlp *m = user;
    (void)n;
    return cot_grad_of(loss_of(m, xs[0], xs[1]), count, m->p, ys) == COT_OK ? 0 : 1;
}

static void each(mlp *m, cot_var ys[2 * LAYERS]) {
    cot_vmap(one_example, m, 2, (cot_var[]){m->x, m->target}, NULL, 2 * LAYERS, ys, NULL);
}

/* The arrays: reading one element makes the library write all of them. */
static void arrays(mlp *m) {
    cot_var ys[2 * LAYERS];
    double  first;
    each(m, ys);
    for (int k = 0; k < 2 * LAYERS; k++) cot_read(cot_slice(cot_reshape(ys[k], COT_SHAPE(-1)), 0, 0, 1, 1), &first, 1);
}

/* (batch,): the sum of the squares of all gradients of an example. */
static cot_var squares_of(const cot_var ys[2 * LAYERS]) {
    cot_var sum = COT_NONE;
    for (int k = 0; k < 2 * LAYERS; k++) {
        cot_axes rest = k < LAYERS ? COT_AXES(1, 2) : COT_AXES(1);
        cot_var  one = cot_sum(cot_square(ys[k]), rest);
        sum = k ? cot_add(sum, one) : one;
    }
    return sum;
}

static void norms(mlp *m) {
    cot_var ys[2 * LAYERS];
    double  out[MOST_BATCH];
    each(m, ys);
    cot_read(cot_sqrt(squares_of(ys)), out, m->batch);
}

/* The means of the gradients after those with a norm above 1 were scaled to 1, as in private
 * training. */
static void clip(const mlp *m, const cot_var ys[2 * LAYERS], cot_var norm, cot_var means[2 * LAYERS]) {
    cot_var scale = cot_minimum(1, cot_div(1, norm));
    for (int k = 0; k < 2 * LAYERS; k++) {
        cot_shape lead = {k < LAYERS ? 3 : 2, {m->batch, 1, 1}};
        means[k] = cot_mean(cot_mul(cot_reshape(scale, lead), ys[k]), COT_AXES(0));
    }
}

static void clipped(mlp *m) {
    cot_var ys[2 * LAYERS], means[2 * LAYERS];
    double  first;
    each(m, ys);
    clip(m, ys, cot_sqrt(squares_of(ys)), means);
    for (int k = 0; k < 2 * LAYERS; k++)
        cot_read(cot_slice(cot_reshape(means[k], COT_SHAPE(-1)), 0, 0, 1, 1), &first, 1);
}

/* ---- as programs ----------------------------------------------------------------------------- */

/* The norms, and if they are asked for the clipped means. */
static int norms_and_means(int n, const cot_var *xs, int count, cot_var *ys, void *user) {
    mlp     m = *(const mlp *)user;
    cot_var gradients[2 * LAYERS];
    (void)n;
    m.x = xs[0];
    m.target = xs[1];
    for (int k = 0; k < 2 * LAYERS; k++) m.p[k] = xs[2 + k];
    each(&m, gradients);
    ys[0] = cot_sqrt(squares_of(gradients));
    if (count > 1) clip(&m, gradients, ys[0], ys + 1);
    return 0;
}

/* Of an array of f32, or of whole numbers. */
static void *elements_of(cot_var x) {
    int64_t n = cot_size(x);
    double *from = malloc((size_t)n * sizeof *from);
    void   *to = malloc((size_t)n * 8);
    cot_read(x, from, n);
    for (int64_t i = 0; i < n; i++)
        if (cot_dtype_of(x) == COT_F32) ((float *)to)[i] = (float)from[i];
        else ((int64_t *)to)[i] = (int64_t)from[i];
    free(from);
    return to;
}

static bool make_programs(mlp *m) {
    cot_var  all[2 + 2 * LAYERS] = {m->x, m->target};
    cot_type types[2 + 2 * LAYERS];
    for (int k = 0; k < 2 * LAYERS; k++) all[2 + k] = m->p[k];
    for (int k = 0; k < 2 + 2 * LAYERS; k++) {
        types[k] = (cot_type){cot_dtype_of(all[k]), cot_shape_of(all[k])};
        m->in[k] = elements_of(all[k]);
    }
    m->out[0] = malloc((size_t)m->batch * sizeof(float));
    for (int k = 0; k < 2 * LAYERS; k++) m->out[1 + k] = malloc((size_t)cot_size(m->p[k]) * sizeof(float));
    for (int w = 0; w < 2; w++) {
        cot_program *p = cot_compile(norms_and_means, m, 2 + 2 * LAYERS, types, w ? 1 + 2 * LAYERS : 1, NULL);
        m->run[w] = cot_run_create(p);
        bool well = m->run[w] && cot_program_status(p) == COT_OK;
        if (!well) printf("%s\n", cot_program_message(p));
        cot_program_destroy(p);
        if (!well) return false;
    }
    return true;
}

static void forget_programs(mlp *m) {
    for (int w = 0; w < 2; w++) cot_run_destroy(m->run[w]);
    for (int k = 0; k < 2 + 2 * LAYERS; k++) free((void *)(uintptr_t)m->in[k]);
    for (int k = 0; k < 1 + 2 * LAYERS; k++) free(m->out[k]);
}

static void compiled_norms(mlp *m) { cot_program_run(m->run[0], m->in, m->out); }
static void compiled_clipped(mlp *m) { cot_program_run(m->run[1], m->in, m->out); }

/* ---- the floor ------------------------------------------------------------------------------- */

typedef struct share { char *from; size_t bytes; } share;
static void *write_share(void *s) { return memset(((share *)s)->from, 1, ((share *)s)->bytes); }

static void write_once(char *memory, size_t bytes, int threads) {
    pthread_t thread[MOST_THREADS];
    share     s[MOST_THREADS];
    int       begun = 1;
    s[0] = (share){memory, bytes / (size_t)threads};
    for (int k = 1; k < threads; k++)
        s[k] = (share){memory + bytes / (size_t)threads * (size_t)k, bytes / (size_t)threads};
    while (begun < threads && pthread_create(&thread[begun], NULL, write_share, &s[begun]) == 0) begun++;
    write_share(&s[0]);
    for (int k = begun; k < threads; k++) write_share(&s[k]);
    for (int k = 1; k < begun; k++) pthread_join(thread[k], NULL);
}

/* ---- taking turns ---------------------------------------------------------------------------- */

static double timed(mlp *m, void (*step)(mlp *)) {
    double start = now();
    step(m);
    double took = now() - start;
    cot_tape_zero_grads(m->t);
    cot_tape_rewind(m->t, m->start);
    return took;
}

/* The largest resident size of the process, in MB. */
static double resident(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_maxrss * 1024e-6;
}

enum { PLAIN, NORMS, CLIPPED, COMPILED_NORMS, COMPILED_CLIPPED, ARRAYS, WAYS };
static void (*const way[WAYS])(mlp *) = {plain, norms, clipped, compiled_norms, compiled_clipped, arrays};

/* Only the workload `mlp` has a target. */
static const char *verdict(bool held, double ratio) {
    return !held ? "" : ratio <= 2 ? ", target <= 2 met" : ", target <= 2 MISSED";
}

static bool measure(const char *name, mlp m, bool held, int samples) {
    double took[WAYS], memory_at[WAYS], floor = INFINITY;
    size_t bytes = 0;
    bool   ok = make_programs(&m);
    for (int w = 0; w < WAYS && ok; w++) {
        timed(&m, way[w]);
        took[w] = INFINITY;
        memory_at[w] = resident();
    }
    int threads = cot_threads() < MOST_THREADS ? cot_threads() : MOST_THREADS;
    for (int k = 0; k < 2 * LAYERS; k++) bytes += (size_t)(m.batch * cot_size(m.p[k])) * sizeof(float);
    char *memory = malloc(bytes);
    for (int k = 0; k < samples + 2 && memory && ok; k++) {
        for (int w = 0; w < WAYS; w++) {
            double t = timed(&m, way[w]);
            if (k >= 2) took[w] = fmin(took[w], t); /* in the first rounds memory was cold */
        }
        double start = now();
        write_once(memory, bytes, threads);
        if (k >= 2) floor = fmin(floor, now() - start);
    }
    ok = ok && memory && cot_tape_status(m.t) == COT_OK;
    if (!ok) printf("%s: %s\n", name, memory ? cot_tape_message(m.t) : "out of memory");
    else {
        double gradient = took[PLAIN], *t = took;
        printf("%-10s gradient %9.4f ms, %.0f MB resident\n", name, 1e3 * gradient, memory_at[PLAIN]);
        printf("  of each example, norms        %9.4f ms   / gradient %5.2f%s   %.0f MB resident\n", 1e3 * t[NORMS],
               t[NORMS] / gradient, verdict(held, t[NORMS] / gradient), memory_at[NORMS]);
        printf("  of each example, clipped mean %9.4f ms   / gradient %5.2f   %.0f MB resident\n", 1e3 * t[CLIPPED],
               t[CLIPPED] / gradient, memory_at[CLIPPED]);
        for (int w = COMPILED_NORMS; w <= COMPILED_CLIPPED; w++)
            printf("  compiled, %s       %9.4f ms   / gradient %5.2f   %.0f MB resident   / recorded %5.2f\n",
                   w == COMPILED_NORMS ? "norms       " : "clipped mean", 1e3 * t[w], t[w] / gradient, memory_at[w],
                   t[w] / t[w - 2]);
        printf("  of each example, arrays       %9.4f ms   / gradient %5.2f%s   %.0f MB resident   / writing their "
               "%.1f MB once (%.4f ms) %5.2f\n",
               1e3 * t[ARRAYS], t[ARRAYS] / gradient, verdict(held, t[ARRAYS] / gradient), memory_at[ARRAYS],
               1e-6 * (double)bytes, 1e3 * floor, t[ARRAYS] / floor);
    }
    fflush(stdout);
    free(memory);
    forget_programs(&m);
    cot_tape_destroy(m.t);
    return ok;
}

/* ---- a cot_while for each example ------------------------------------------------------------ */

enum { LOOPS = 1000 };

static int goes_on(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_greater(xs[0], 0.01);
    return 0;
}
static int shrinks(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    ys[0] = cot_mul(xs[0], cot_sub(1.0, cot_mul(*(cot_var *)user, cot_cos(xs[0]))));
    return 0;
}
static int shrunk(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    return cot_while(goes_on, shrinks, user, 1, xs, ys, NULL) == COT_OK ? 0 : 1;
}

/* Value and gradient of 1000 loops of 0 to 122 steps, 92 on average. */
static bool measure_loops(int samples) {
    double    best[2] = {INFINITY, INFINITY}, sum[2] = {0};
    cot_tape *t = cot_tape_create(NULL);
    cot_var   rate  = cot_scalar(t, 0.04),
            x       = cot_leaf(cot_div(cot_add(cot_arange(t, COT_F64, 0, LOOPS, 1), 1.0), (double)LOOPS));
    cot_mark  start = cot_tape_mark(t);
    for (int k = 0; k < samples; k++)
        for (int one_by_one = 0; one_by_one < 2; one_by_one++) {
            double  from = now();
            cot_var y[LOOPS];
            if (!one_by_one) cot_vmap(shrunk, &rate, 1, &x, NULL, 1, y, NULL);
            for (int i = 0; i < LOOPS && one_by_one; i++) {
                cot_var element = cot_index(x, 0, i);
                shrunk(1, &element, 1, &y[i], &rate);
            }
            cot_backward(cot_sum(one_by_one ? cot_stack(LOOPS, y, 0) : y[0], COT_ALL));
            sum[one_by_one] = cot_grad_value(rate);
            best[one_by_one] = fmin(best[one_by_one], now() - from);
            cot_tape_zero_grads(t);
            cot_tape_rewind(t, start);
        }
    bool ok = cot_tape_status(t) == COT_OK && fabs(sum[0] - sum[1]) <= 1e-9 * fabs(sum[1]);
    if (!ok) printf("while: %s\n", cot_tape_status(t) == COT_OK ? "the two gradients differ" : cot_tape_message(t));
    else
        printf("while      %d loops together, with gradient %9.4f ms   one by one %9.4f ms   / together %6.1f\n", LOOPS,
               1e3 * best[0], 1e3 * best[1], best[1] / best[0]);
    cot_tape_destroy(t);
    return ok;
}

int main(int argc, char **argv) {
    int samples = argc > 1 ? atoi(argv[1]) : 20;
    if (samples < 1) {
        fprintf(stderr, "usage: per_example [SAMPLES]\n");
        return 2;
    }
    bool ok = measure("mlp", make(128, (int64_t[]){784, 512, 512, 10}, false), true, samples);
    ok &= measure("mlp_small", make(16, (int64_t[]){10, 32, 32, 1}, true), false, 50 * samples);
    ok &= measure_loops(samples < 5 ? samples : 5);
    return ok ? 0 : 1;
}
