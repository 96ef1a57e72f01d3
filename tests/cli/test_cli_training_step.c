/* ctest: timeout=300 */
/* test_cli_training_step.c: `compile --model DIR --training-step`: C without the library takes the
 * steps of the library, with the same bits. */
#include "support/cli_test.h"

#include <cotangent.h>

#include "models/gpt.h"
#include "models/mnist.h"

enum { STEPS = 4, BATCH = 2 };
static const double rates[STEPS] = {1e-3, 3e-3, 2e-3, 5e-4};

/* Reads weights, then x and targets of each step; takes the steps; writes loss, gradient, weights,
 * m and v of each. N, X, T: elements; D: the type of x. */
static const char *const main_c =
    "#include \"step.h\"\n"
    "#include <stdio.h>\n"
    "#include <string.h>\n"
    "static float w[N], m[N], v[N], g[N], nw[N], nm[N], nv[N], loss;\n"
    "static D x[X];\n"
    "static int64_t y[T];\n"
    "static double work[STEP_WORKSPACE / 8 + 1];\n"
    "int main(void) {\n"
    "    const double rates[] = {1e-3, 3e-3, 2e-3, 5e-4};\n"
    "    if (fread(w, sizeof w, 1, stdin) != 1) return 1;\n"
    /* there is no step 0, no such class and no such token; a pixel may be negative */
    "    if (!step(w, m, v, 1e-3, 0, x, y, &loss, g, nw, nm, nv, work)) return 3;\n"
    "    y[0] = -1;\n"
    "    if (!step(w, m, v, 1e-3, 1, x, y, &loss, g, nw, nm, nv, work)) return 4;\n"
    "    y[0] = 0;\n"
    "    x[0] = (D)-1;\n"
    "    if ((D)0.5 == 0 && !step(w, m, v, 1e-3, 1, x, y, &loss, g, nw, nm, nv, work)) return 5;\n"
    "    for (int k = 0; k < 4; k++) {\n"
    "        if (fread(x, sizeof x, 1, stdin) != 1 || fread(y, sizeof y, 1, stdin) != 1) return 1;\n"
    "        if (step(w, m, v, rates[k], k + 1, x, y, &loss, g, nw, nm, nv, work)) return 2;\n"
    "        memcpy(w, nw, sizeof w), memcpy(m, nm, sizeof m), memcpy(v, nv, sizeof v);\n"
    "        fwrite(&loss, sizeof loss, 1, stdout), fwrite(g, sizeof g, 1, stdout);\n"
    "        fwrite(w, sizeof w, 1, stdout), fwrite(m, sizeof m, 1, stdout), fwrite(v, sizeof v, 1, stdout);\n"
    "    }\n"
    "    return 0;\n"
    "}\n";

static FILE *open_here(const char *name, const char *mode) {
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, mode);
    assert_non_null(f);
    return f;
}

/* The elements of all parameters, or of their gradients, one after the other. */
static int64_t flat(cot_params *p, bool gradient, float *to) {
    int64_t n = 0;
    for (int k = 0; k < cot_params_count(p); k++) {
        cot_var w = cot_params_at(p, k).var;
        double *d = malloc((size_t)cot_size(w) * sizeof *d);
        assert_non_null(d);
        assert_int_equal(gradient ? cot_read_grad(w, d, cot_size(w)) : cot_read(w, d, cot_size(w)), COT_OK);
        for (int64_t i = 0; i < cot_size(w); i++) to[n++] = (float)d[i];
        free(d);
    }
    return n;
}
static int64_t flat_states(const cot_optim *o, const char *end, float *to) {
    int64_t n = 0;
    for (int k = 0; k < cot_optim_states(o); k++) {
        const char *name;
        cot_array   a = cot_optim_state(o, k, &name);
        if (strcmp(name + strlen(name) - strlen(end), end) != 0) continue;
        memcpy(to + n, a.data, (size_t)a.size * sizeof *to);
        n += a.size;
    }
    return n;
}

typedef struct model {
    const char *name;
    cot_params *p;
    cot_optim  *adam;
    double      clip;
    cot_type    data, targets;
    int64_t     classes;
    cot_var (*loss)(cot_params *p, cot_var x, cot_var y);
} model;

static cot_var mnist_loss(cot_params *p, cot_var x, cot_var y) {
    return cot_softmax_cross_entropy(mnist_net(p, x), y);
}

static int64_t size_of(const cot_type *t) {
    int64_t n = 1;
    for (int k = 0; k < t->shape.ndim; k++) n *= t->shape.dim[k];
    return n;
}

/* Numbers without a pattern. */
static void fill_batch(const model *m, int step, void *x, int64_t *y) {
    for (int64_t i = 0; i < size_of(&m->data); i++) {
        int64_t mixed = (i * 7919 + step * 104729 + i * i % 97) % 1000;
        if (m->data.dtype == COT_F32) ((float *)x)[i] = (float)mixed / 1000;
        else ((int64_t *)x)[i] = mixed % m->classes;
    }
    for (int64_t i = 0; i < size_of(&m->targets); i++) y[i] = (i * 31 + step * 17) % m->classes;
}

static void compare_part(const model *m, int step, const char *what, int64_t n, const float *want, const float *got) {
    for (int64_t i = 0; i < n; i++)
        if (memcmp(want + i, got + i, sizeof *want) != 0)
            fail_msg("%s: step %d: %s[%lld] is %.9g in C, %.9g by the library", m->name, step + 1, what, (long long)i,
                     (double)got[i], (double)want[i]);
}

static void steps_agree(model *m) {
    cot_tape *t = cot_params_tape(m->p);
    int64_t   n = 0, nx = size_of(&m->data), ny = size_of(&m->targets);
    char      path[300], why[400], line[600];
    for (int k = 0; k < cot_params_count(m->p); k++) n += cot_size(cot_params_at(m->p, k).var);
    float   *want = malloc((size_t)n * sizeof *want), *got = malloc((size_t)n * sizeof *got);
    int64_t *y = malloc((size_t)ny * sizeof *y);
    void    *x = malloc((size_t)nx * sizeof(int64_t));
    size_t   each = m->data.dtype == COT_F32 ? sizeof(float) : sizeof(int64_t);
    assert_true(want && got && y && x);

    const cot_text_pair pairs[] = {{"model", m->name}, {"heads", "2"}};
    snprintf(line, sizeof line, "rm -rf %s; mkdir %s", m->name, m->name);
    runs(line);
    snprintf(path, sizeof path, "%s/%s/model.safetensors", folder, m->name);
    if (cot_params_save(m->p, path, &(cot_save_options){.pairs = 2, .texts = pairs}, why, sizeof why))
        fail_msg("%s", why);
    FILE *f = open_here("main.c", "w");
    fputs(main_c, f), fclose(f);
    f = open_here("in", "wb");
    flat(m->p, false, want);
    fwrite(want, sizeof *want, (size_t)n, f);
    for (int step = 0; step < STEPS; step++) {
        fill_batch(m, step, x, y);
        fwrite(x, each, (size_t)nx, f), fwrite(y, sizeof *y, (size_t)ny, f);
    }
    fclose(f);
    snprintf(line, sizeof line,
             "cotangent compile --model %s --training-step --batch %d -o step.c && "
             "gcc -O1 -std=gnu99 -Wall -Wextra -Werror -DN=%lld -DX=%lld -DT=%lld -DD=%s main.c step.c -lm -o step && "
             "./step < in > out",
             m->name, BATCH, (long long)n, (long long)nx, (long long)ny,
             m->data.dtype == COT_F32 ? "float" : "int64_t");
    runs(line);

    f = open_here("out", "rb");
    cot_mark mark = cot_tape_mark(t);
    for (int step = 0; step < STEPS; step++) {
        float loss = 0, theirs = 0;
        fill_batch(m, step, x, y);
        cot_params_set_key(m->p, cot_key_at(cot_key_of(0), cot_integer(step + 1)));
        cot_optim_set_rate(m->adam, rates[step]);
        cot_var l = m->loss(m->p, cot_data(t, m->data.dtype, m->data.shape, x),
                            cot_data(t, COT_I64, m->targets.shape, y));
        loss = (float)cot_value(l);
        cot_backward(l);
        if (m->clip > 0) cot_clip_grad_norm(m->p, m->clip);
        assert_int_equal(cot_optim_step(m->adam), COT_OK);
        assert_int_equal(fread(&theirs, sizeof theirs, 1, f), 1);
        compare_part(m, step, "loss", 1, &loss, &theirs);
        for (int part = 0; part < 4; part++) {
            static const char *const names[] = {"gradient", "weights", "m", "v"};
            static const char *const ends[] = {"", "", ".m", ".v"};
            int64_t count = part < 2 ? flat(m->p, part == 0, want) : flat_states(m->adam, ends[part], want);
            assert_int_equal(count, n);
            assert_int_equal(fread(got, sizeof *got, (size_t)n, f), n);
            compare_part(m, step, names[part], n, want, got);
        }
        cot_tape_zero_grads(t);
        cot_tape_rewind(t, mark);
    }
    assert_int_equal(fgetc(f), EOF);
    fclose(f);
    free(want), free(got), free(x), free(y);
}

static void close_model(model *m) {
    cot_tape *t = cot_params_tape(m->p);
    if (cot_tape_status(t)) fail_msg("%s", cot_tape_message(t));
    cot_optim_destroy(m->adam);
    cot_params_destroy(m->p);
    cot_tape_destroy(t);
}

static cot_optim *optimiser(cot_params *p, cot_optim_options o) {
    o.rate = 1e-3;
    cot_optim *adam = cot_optim_create(p, &o);
    assert_non_null(adam);
    return adam;
}

static void steps_of_mnist_have_the_bits_of_the_library(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    model     m = {.name = "mnist", .p = cot_params_create(t), .classes = 10, .loss = mnist_loss,
                   .data = {COT_F32, COT_SHAPE(BATCH, 1, MNIST_SIDE, MNIST_SIDE)},
                   .targets = {COT_I64, COT_SHAPE(BATCH)}};
    cot_params_init(m.p, mnist_net, cot_full(t, COT_F32, COT_SHAPE(1, 1, MNIST_SIDE, MNIST_SIDE), 0), cot_key_of(3));
    m.adam = optimiser(m.p, mnist_optim);
    steps_agree(&m);
    close_model(&m);
}

/* Attention is exported as matrix products and a softmax: the library takes that form here too. The
 * layer's own has the same loss, up to some hundred roundings of 6e-8. */
static void steps_of_gpt_have_the_bits_of_the_library(void **state) {
    (void)state;
    gpt       net = {.vocabulary = 12, .context = 6, .layers = 2, .heads = 2, .width = 8};
    cot_tape *t = cot_tape_create(NULL);
    model     m = {.name = "gpt", .p = cot_params_create(t), .classes = 12, .loss = gpt_loss, .clip = GPT_CLIP,
                   .data = {COT_I64, COT_SHAPE(BATCH, 6)}, .targets = {COT_I64, COT_SHAPE(BATCH, 6)}};
    int64_t   ids[BATCH * 6] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};
    cot_params_set_user(m.p, &net);
    cot_params_init(m.p, gpt_net, cot_full(t, COT_I64, COT_SHAPE(1, 1), 0), cot_key_of(3));
    cot_params_set_key(m.p, cot_key_of(0));
    cot_mark mark = cot_tape_mark(t);
    cot_var  x = cot_data(t, COT_I64, m.data.shape, ids);
    double   layer = cot_value(gpt_loss(m.p, x, x));
    net.plain = true;
    assert_true(fabs(cot_value(gpt_loss(m.p, x, x)) - layer) <= 1e-5 * layer);
    cot_backward(gpt_loss(m.p, x, x));
    assert_true(cot_clip_grad_norm(m.p, INFINITY) > GPT_CLIP); /* so that clipping does something */
    cot_tape_zero_grads(t);
    cot_tape_rewind(t, mark);
    m.adam = optimiser(m.p, gpt_optim(m.p));
    steps_agree(&m);
    close_model(&m);
}

/* With the model of mnist that is in the folder. */
/* The model of mnist/ with a NaN among its weights, in broken/. */
static void break_a_weight(void) {
    enum { MOST = 32 };
    char        path[300], why[300];
    const char *names[MOST];
    cot_array   arrays[MOST];
    snprintf(path, sizeof path, "%s/mnist/model.safetensors", folder);
    cot_file *in = cot_file_open(path, NULL);
    int       n = cot_file_count(in);
    assert_true(n > 0 && n <= MOST);
    for (int k = 0; k < n; k++) {
        names[k] = cot_file_name(in, k);
        arrays[k] = (cot_array){COT_F32, cot_file_shape(in, k), cot_file_size(in, k), NULL};
        arrays[k].data = malloc((size_t)arrays[k].size * sizeof(float));
        assert_non_null(arrays[k].data);
        assert_int_equal(cot_file_read(in, k, COT_F32, arrays[k].data), COT_OK);
    }
    *(float *)arrays[0].data = NAN;
    runs("mkdir broken");
    snprintf(path, sizeof path, "%s/broken/model.safetensors", folder);
    const cot_text_pair kind = {"model", "mnist"};
    assert_int_equal(
        cot_file_save(path, n, names, arrays, &(cot_save_options){.pairs = 1, .texts = &kind}, why, sizeof why),
        COT_OK);
    for (int k = 0; k < n; k++) free(arrays[k].data);
    cot_file_close(in);
}

static void a_prediction_that_is_no_number_is_told(void **state) {
    static float pixels[2 * MNIST_PIXELS];
    const char  *name = "x";
    char         path[300], why[300];
    (void)state;
    pixels[MNIST_PIXELS + 5] = NAN;
    snprintf(path, sizeof path, "%s/nan.npy", folder);
    cot_array two = {COT_F32, COT_SHAPE(2, MNIST_SIDE, MNIST_SIDE), 2 * MNIST_PIXELS, pixels};
    assert_int_equal(cot_file_save(path, 1, &name, &two, NULL, why, sizeof why), COT_OK);
    fails("cotangent predict mnist nan.npy", 3,
          "[predict] pixel 5 of picture 1 in nan.npy is nan; numbers are from 0 to 1, integers from 0 to 255", "");
    pixels[MNIST_PIXELS + 5] = 1.5f;
    assert_int_equal(cot_file_save(path, 1, &name, &two, NULL, why, sizeof why), COT_OK);
    fails("cotangent predict mnist nan.npy", 3,
          "[predict] pixel 5 of picture 1 in nan.npy is 1.5; numbers are from 0 to 1, integers from 0 to 255", "");
    pixels[MNIST_PIXELS + 5] = 1;
    assert_int_equal(cot_file_save(path, 1, &name, &two, NULL, why, sizeof why), COT_OK);
    runs("cotangent predict mnist nan.npy");
    break_a_weight();
    fails("cotangent predict broken nan.npy", 1,
          "[predict] the probability of picture 0 is nan; broken/model.safetensors or the input holds what is no "
          "finite number",
          "");
}

static void what_is_wrong_is_said(void **state) {
    (void)state;
    fails("cotangent compile --training-step x*y x=1 y=2", 2, "--training-step and --batch are of compile --model DIR",
          "");
    runs("rm -rf g3; cotangent train gcn --quiet --steps 2 --checkpoint g3");
    fails("cotangent compile --model g3 --training-step", 3,
          "g3/model.safetensors is a model of gcn; compile --model takes mnist or gpt", "");
    fails("cotangent compile --model mnist --batch 3", 2, "--batch is of the step that trains a model, --training-step",
          "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_of_mnist_have_the_bits_of_the_library),
        cmocka_unit_test(steps_of_gpt_have_the_bits_of_the_library),
        cmocka_unit_test(a_prediction_that_is_no_number_is_told),
        cmocka_unit_test(what_is_wrong_is_said),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
