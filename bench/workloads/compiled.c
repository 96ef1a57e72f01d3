/* compiled.c: some of the workloads as programs: the step is compiled once and run on plain
 * arrays. */
#include "workloads/compiled.h"

void *compiled_take(compiled *c, void *array) {
    c->array[c->arrays++] = array;
    return array;
}

static void stop(const char *message) {
    fprintf(stderr, "%s\n", message);
    exit(1);
}

compiled *compiled_make(cot_fn f, void *user, int n, const cot_type *types, int m) {
    return compiled_make_with(f, user, n, types, m, NULL);
}

compiled *compiled_make_with(cot_fn f, void *user, int n, const cot_type *types, int m,
                             const cot_compile_options *options) {
    compiled *c = must(calloc(1, sizeof *c));
    double start = now();
    c->p = must(cot_compile(f, user, n, types, m, options));
    c->compile_s = now() - start;
    if (getenv("BENCH_REPORT")) cot_program_report(c->p, stderr);
    if (cot_program_native(c->p, true) == COT_NATIVE_DROPPED) /* COTANGENT_NATIVE=1 asks for it */
        fprintf(stderr, "workloads: no native code: %s\n", cot_program_native_message(c->p));
    c->r = must(cot_run_create(c->p));
    if (cot_run_status(c->r) != COT_OK) stop(cot_run_message(c->r));
    return c;
}

double compiled_step(void *state) {
    compiled *c = state;
    c->step++;
    if (c->before) c->before(c);
    if (cot_program_run(c->r, c->in, c->out) != COT_OK) stop(cot_run_message(c->r));
    return c->result(c);
}

void compiled_destroy(void *state) {
    compiled *c = state;
    cot_run_destroy(c->r);
    cot_program_destroy(c->p);
    for (int k = 0; k < c->arrays; k++) free(c->array[k]);
    free(c);
}

double compiled_seconds(const void *state) { return ((const compiled *)state)->compile_s; }

double        compiled_first_float(const compiled *c) { return (double)*(const float *)c->out[0]; }
static double first_double(const compiled *c) { return *(const double *)c->out[0]; }

int compiled_asked(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const asked *a = user;
    cot_var      grads[MOST];
    (void)m;
    if (a->goal == VALUE) return a->loss(n, xs, 1, ys, a->user);
    if (cot_value_and_grad(a->loss, a->user, n, xs, &ys[0], grads) != COT_OK) return 1;
    for (int k = 0; k < a->parameters; k++)
        ys[1 + k] = a->goal == DESCENT ? cot_sub(xs[k], cot_mul(0.01, grads[k])) : grads[k];
    return 0;
}

static size_t bytes_of(cot_type type) {
    size_t n = sizeof(float);
    for (int i = 0; i < type.shape.ndim; i++) n *= (size_t)type.shape.dim[i];
    return n;
}

void compiled_outputs(compiled *c, const asked *a, const cot_type *types) {
    c->out[0] = compiled_take(c, must(malloc(sizeof(float))));
    for (int k = 0; k + 1 < outputs_of(a); k++)
        c->out[1 + k] = a->goal == DESCENT ? (void *)(uintptr_t)c->in[k]
                                           : compiled_take(c, must(malloc(bytes_of(types[k]))));
    c->result = compiled_first_float;
}

/* ---- dense layers: loss, gradients, the parameters after a step ------------------------------ */

enum { LAYERS = 3, PARAMETERS = 2 * LAYERS };

/* xs: weights, biases, inputs, targets */
static int layers(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var h = xs[PARAMETERS];
    (void)n, (void)m;
    for (int i = 0; i < LAYERS; i++) {
        h = cot_add(cot_matmul(h, xs[i]), xs[LAYERS + i]);
        if (i + 1 < LAYERS) h = cot_relu(h);
    }
    ys[0] = *(bool *)user ? cot_mse(h, xs[PARAMETERS + 1]) : cot_softmax_cross_entropy(h, xs[PARAMETERS + 1]);
    return 0;
}

static compiled *make_layers(int64_t batch, const int64_t *size, bool squared, loss_goal goal) {
    asked    a = {layers, &squared, PARAMETERS, goal};
    cot_type types[PARAMETERS + 2];
    for (int i = 0; i < LAYERS; i++) {
        types[i] = (cot_type){COT_F32, COT_SHAPE(size[i], size[i + 1])};
        types[LAYERS + i] = (cot_type){COT_F32, COT_SHAPE(size[i + 1])};
    }
    types[PARAMETERS] = (cot_type){COT_F32, COT_SHAPE(batch, size[0])};
    types[PARAMETERS + 1] = squared ? (cot_type){COT_F32, COT_SHAPE(batch, size[LAYERS])}
                                    : (cot_type){COT_I64, COT_SHAPE(batch)};
    compiled *c = compiled_make(compiled_asked, &a, PARAMETERS + 2, types, outputs_of(&a));
    for (int i = 0; i < LAYERS; i++) {
        c->in[i] = compiled_take(c, uniform_f32(10 + (uint64_t)i, size[i] * size[i + 1], 1 / sqrt((double)size[i])));
        c->in[LAYERS + i] = compiled_take(c, must(calloc((size_t)size[i + 1], sizeof(float))));
    }
    c->in[PARAMETERS] = compiled_take(c, uniform_f32(1, batch * size[0], 1));
    if (squared) c->in[PARAMETERS + 1] = compiled_take(c, uniform_f32(2, batch * size[LAYERS], 1));
    else {
        int64_t *label = compiled_take(c, must(malloc((size_t)batch * sizeof *label)));
        for (int64_t i = 0; i < batch; i++) label[i] = i % size[LAYERS];
        c->in[PARAMETERS + 1] = label;
    }
    compiled_outputs(c, &a, types);
    return c;
}

static void *make_small(loss_goal goal) { return make_layers(16, (int64_t[]){10, 32, 32, 1}, true, goal); }
static void *make_mlp(loss_goal goal) { return make_layers(128, (int64_t[]){784, 512, 512, 10}, false, goal); }
static void *make_wide(loss_goal goal) { return make_layers(512, (int64_t[]){1024, 4096, 4096, 1000}, false, goal); }

MAKES(small, make_small)
MAKES(mlp, make_mlp)
MAKES(wide, make_wide)

/* ---- elementwise: value and gradient --------------------------------------------------------- */

enum { ELEMENTS = 1 << SIZED(22, 18) };

static int waves(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var x = xs[0], a = cot_mul(cot_tanh(x), cot_exp(cot_neg(cot_mul(x, x))));
    (void)n, (void)m, (void)user;
    ys[0] = cot_sum(cot_add(a, cot_mul(cot_sin(x), cot_sigmoid(x))), COT_ALL);
    return 0;
}
static void *make_waves(loss_goal goal) {
    cot_type  type = {COT_F32, COT_SHAPE(ELEMENTS)};
    asked     a = {waves, NULL, 1, goal};
    compiled *c = compiled_make(compiled_asked, &a, 1, &type, outputs_of(&a));
    c->in[0] = compiled_take(c, uniform_f32(7, ELEMENTS, 3));
    compiled_outputs(c, &a, &type);
    return c;
}
static void *waves_make(void) { return make_waves(GRADIENTS); }
static void *waves_value(void) { return make_waves(VALUE); }

/* ---- rosenbrock_hvp: forward over reverse ---------------------------------------------------- */

enum { ROSENBROCK = 100000 };

static int valley(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var head = cot_slice(xs[0], 0, 0, -1, 1), tail = cot_slice(xs[0], 0, 1, COT_END, 1);
    cot_var a = cot_mul(100.0, cot_square(cot_sub(tail, cot_square(head)))), b = cot_square(cot_sub(1.0, head));
    (void)n, (void)m, (void)user;
    ys[0] = cot_sum(cot_add(a, b), COT_ALL);
    return 0;
}
static int slope_of_valley(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)m;
    return cot_value_and_grad(valley, user, n, xs, NULL, &ys[0]) != COT_OK;
}
static int bend_of_valley(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var slope;
    (void)n, (void)m;
    if (cot_fn_jvp(slope_of_valley, user, 1, xs, &xs[1], 1, &slope, &ys[1]) != COT_OK) return 1;
    ys[0] = cot_sum(ys[1], COT_ALL);
    return 0;
}

static void *valley_make(void) {
    cot_type  types[2] = {{COT_F64, COT_SHAPE(ROSENBROCK)}, {COT_F64, COT_SHAPE(ROSENBROCK)}};
    compiled *c = compiled_make(bend_of_valley, NULL, 2, types, 2);
    c->in[0] = compiled_take(c, uniform_f64(8, ROSENBROCK, 1));
    c->in[1] = compiled_take(c, uniform_f64(9, ROSENBROCK, 1));
    c->out[0] = compiled_take(c, must(malloc(sizeof(double))));
    c->out[1] = compiled_take(c, must(malloc(ROSENBROCK * sizeof(double))));
    c->result = first_double;
    return c;
}

/* ---- jac_tall: the whole Jacobian ------------------------------------------------------------ */

enum { INPUTS = 8, HIDDEN = 256, OUTPUTS = 1024 };

/* xs: x, W1, W2 */
static int bent(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const cot_var *w = user;
    (void)n, (void)m;
    ys[0] = cot_tanh(cot_matmul(w[2], cot_tanh(cot_matmul(w[1], xs[0]))));
    return 0;
}
static int jacobian_of_bent(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var y;
    (void)n, (void)m, (void)user;
    if (cot_fn_jacobian(bent, (void *)(uintptr_t)xs, 1, xs, 1, &y, COT_AUTO, &ys[1]) != COT_OK) return 1;
    ys[0] = cot_sum(ys[1], COT_ALL);
    return 0;
}

static void *bent_make(void) {
    cot_type  types[3] = {{COT_F64, COT_SHAPE(INPUTS)}, {COT_F64, COT_SHAPE(HIDDEN, INPUTS)},
                          {COT_F64, COT_SHAPE(OUTPUTS, HIDDEN)}};
    compiled *c = compiled_make(jacobian_of_bent, NULL, 3, types, 2);
    c->in[0] = compiled_take(c, uniform_f64(20, INPUTS, 1));
    c->in[1] = compiled_take(c, uniform_f64(21, HIDDEN * INPUTS, 0.3));
    c->in[2] = compiled_take(c, uniform_f64(22, OUTPUTS * HIDDEN, 0.06));
    c->out[0] = compiled_take(c, must(malloc(sizeof(double))));
    c->out[1] = compiled_take(c, must(malloc(OUTPUTS * INPUTS * sizeof(double))));
    c->result = first_double;
    return c;
}

/* ---- chain: a thousand scalar steps ---------------------------------------------------------- */

static int logistic(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var x = xs[0];
    (void)n, (void)m, (void)user;
    for (int k = 0; k < 1000; k++) x = cot_mul(cot_mul(xs[1], x), cot_sub(1.0, x));
    ys[0] = x;
    return 0;
}
static int slope_of_logistic(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var value;
    (void)m;
    return cot_value_and_grad(logistic, user, n, xs, &value, ys) != COT_OK;
}

static void *logistic_make(void) {
    static double at[2] = {0.3, 3.7};
    cot_type      types[2] = {{COT_F64, COT_SCALAR}, {COT_F64, COT_SCALAR}};
    compiled     *c = compiled_make(slope_of_logistic, NULL, 2, types, 2);
    c->in[0] = &at[0], c->in[1] = &at[1];
    c->out[0] = compiled_take(c, must(malloc(sizeof(double))));
    c->out[1] = compiled_take(c, must(malloc(sizeof(double))));
    c->result = first_double;
    return c;
}

const workload compiled_workloads[14] = {
    TRAINED("mlp_small", small, 0.270273, 3e-6),
    TRAINED("mlp", mlp, 2.302103, 1e-6),
    TRAINED("mlp_wide", wide, 6.907989, 1e-6),
    COMPILED("jac_tall", "f64", bent_make, 4.41506599338597, 1e-12),
    COMPILED("elementwise", "f32", waves_make, 852839.9, SIZED(1e-6, 0)),
    COMPILED("elementwise_function", "f32", waves_value, 852839.9, SIZED(1e-6, 0)),
    COMPILED("rosenbrock_hvp", "f64", valley_make, 299794.59591440, 1e-12),
    COMPILED("chain", "f64", logistic_make, -1.8429505840e+146, 1e-10),
};
