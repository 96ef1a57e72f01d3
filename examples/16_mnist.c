/* Handwritten digits told apart by a convolutional network: 16_mnist DIR, a folder with MNIST's
 * test set: 9,000 to train, 1,000 to test. docs/training.md has the same program in PyTorch. */
#include <cotangent.h>
#include <stdio.h>

enum { ALL = 10000, TRAIN = 9000, TEST = ALL - TRAIN, PIXELS = 784, EPOCHS = 3 };

static float   images[ALL * PIXELS];
static int64_t labels[ALL];

static bool read_idx(const char *folder, const char *name, int64_t size, cot_dtype dtype, void *to) {
    char path[1000];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    cot_file *f    = cot_file_open(path, NULL);
    bool      fine = cot_file_size(f, 0) == size && cot_file_read(f, 0, dtype, to) == COT_OK;
    if (!fine) printf("%s does not hold MNIST's test set. %s\n", path, cot_file_message(f));
    cot_file_close(f);
    return fine;
}

static cot_var net(cot_params *p, cot_var x) {
    x = cot_div(x, 255.0);
    x = cot_relu(cot_nn_conv(p, "conv1", x, 16, COT_SHAPE(5, 5), true, COT_CONV(.padding = {2, 2})));
    x = cot_max_pool2d(x, COT_POOL(.window = {2, 2}));
    x = cot_relu(cot_nn_conv(p, "conv2", x, 32, COT_SHAPE(5, 5), true, COT_CONV(.padding = {2, 2})));
    x = cot_max_pool2d(x, COT_POOL(.window = {2, 2}));
    return cot_nn_dense(p, "fc", cot_reshape(x, COT_SHAPE(cot_shape_of(x).dim[0], 7 * 7 * 32)), 10);
}

int main(int n, char **arguments) {
    const char *folder = n > 1 ? arguments[1] : "mnist";
    if (!read_idx(folder, "t10k-images-idx3-ubyte.gz", ALL * PIXELS, COT_F32, images)) return 0;
    if (!read_idx(folder, "t10k-labels-idx1-ubyte.gz", ALL, COT_I64, labels)) return 0;
    cot_tape   *t      = cot_tape_create(NULL);
    cot_params *p      = cot_params_create(t);
    cot_var     test   = cot_wrap(t, COT_F32, COT_SHAPE(TEST, 1, 28, 28), images + TRAIN * PIXELS);
    cot_array   rows[] = {{COT_F32, COT_SHAPE(TRAIN, 1, 28, 28), TRAIN * PIXELS, images},
                          {COT_I64, COT_SHAPE(TRAIN), TRAIN, labels}};
    cot_params_init(p, net, test, cot_key_of(0));
    cot_optim  *adamw  = cot_optim_create(p, &(cot_optim_options){.kind = COT_ADAMW, .rate = 3e-3, .decay = 0.01});
    cot_loader *loader = cot_loader_create(
        2, rows, &(cot_loader_options){.batch = 64, .shuffle = true, .key = cot_key_of(1), .epochs = EPOCHS});
    cot_mark    mark   = cot_tape_mark(t);
    for (const cot_array *b; (b = cot_loader_next(loader)); cot_tape_rewind(t, mark)) {
        cot_var x = cot_wrap(t, COT_F32, b[0].shape, b[0].data), y = cot_wrap(t, COT_I64, b[1].shape, b[1].data);
        cot_backward(cot_softmax_cross_entropy(net(p, x), y));
        if (cot_optim_step(adamw) != COT_OK) break; /* a rewind clears the error */
        cot_tape_zero_grads(t);
    }
    cot_var truth = cot_wrap(t, COT_I64, COT_SHAPE(TEST), labels + TRAIN);
    cot_var right = cot_equal(cot_argmax(net(p, test), COT_AXES(1)), truth);
    printf("test accuracy %.1f %%\n", 100 * cot_value(cot_mean(cot_cast(right, COT_F64), COT_ALL)));
    int wrong = cot_tape_status(t) != COT_OK || cot_loader_status(loader) != COT_OK;
    if (wrong) fprintf(stderr, "%s%s\n", cot_tape_message(t), cot_loader_message(loader));
    cot_loader_destroy(loader);
    cot_optim_destroy(adamw);
    cot_params_destroy(p);
    cot_tape_destroy(t);
    return wrong;
}
