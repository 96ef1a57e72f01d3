/* mnist.c: the network, and its digits from files. */
#include "mnist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cot_var mnist_net(cot_params *p, cot_var x) {
    for (int k = 0; k < 2; k++) {
        x = cot_nn_conv(p, k ? "conv2" : "conv1", x, k ? 32 : 16, COT_SHAPE(5, 5), true, COT_CONV(.padding = {2, 2}));
        x = cot_max_pool2d(cot_relu(x), COT_POOL(.window = {2, 2}));
    }
    int64_t images = cot_shape_of(x).dim[0];
    return cot_nn_dense(p, "fc", cot_reshape(x, COT_SHAPE(images, 7 * 7 * 32)), 10);
}

const cot_optim_options mnist_optim = {.kind = COT_ADAMW, .decay = 0.05};

void mnist_free(mnist_digits *d) {
    free(d->pixels);
    free(d->labels);
    memset(d, 0, sizeof *d);
}

/* The file of this name, or with .gz behind it. NULL: neither is there. */
static cot_file *open_either(const char *folder, const char *name, char *why, size_t room) {
    char      path[4096];
    cot_file *f = NULL;
    for (int packed = 0; packed < 2; packed++) {
        snprintf(path, sizeof path, "%s/%s%s", folder, name, packed ? ".gz" : "");
        cot_file_close(f);
        f = cot_file_open(path, NULL);
        if (f && cot_file_status(f) == COT_OK) return f;
    }
    snprintf(why, room, "%s", f ? cot_file_message(f) : "out of memory");
    cot_file_close(f);
    return NULL;
}

int mnist_read(mnist_digits *d, const char *folder, const char *set, char *why, size_t room) {
    char name[64];
    *d = (mnist_digits){0};
    snprintf(name, sizeof name, "%s-images-idx3-ubyte", set);
    cot_file *images = open_either(folder, name, why, room);
    snprintf(name, sizeof name, "%s-labels-idx1-ubyte", set);
    cot_file *labels = images ? open_either(folder, name, why, room) : NULL;
    cot_shape s = cot_file_shape(images, 0);
    int       wrong = !images || !labels;
    d->n = s.ndim == 3 ? s.dim[0] : 0;
    bool fits = s.ndim == 3 && s.dim[1] == MNIST_SIDE && s.dim[2] == MNIST_SIDE && cot_file_size(labels, 0) == d->n;
    if (!wrong && !fits) {
        snprintf(why, room, "%s: %lld images and %lld labels of %s; there must be as many of both, of 28 x 28 pixels",
                 folder, (long long)d->n, (long long)cot_file_size(labels, 0), set);
        wrong = 1;
    }
    if (!wrong) {
        d->pixels = malloc((size_t)(d->n + 1) * MNIST_PIXELS * sizeof *d->pixels);
        d->labels = malloc((size_t)(d->n + 1) * sizeof *d->labels);
        wrong = !d->pixels || !d->labels;
        if (wrong) snprintf(why, room, "out of memory for %lld images", (long long)d->n);
    }
    if (!wrong && (cot_file_read(images, 0, COT_F32, d->pixels) || cot_file_read(labels, 0, COT_I64, d->labels))) {
        snprintf(why, room, "%s", cot_file_message(cot_file_status(images) ? images : labels));
        wrong = 1;
    }
    for (int64_t k = 0; !wrong && k < d->n * MNIST_PIXELS; k++) d->pixels[k] /= 255;
    for (int64_t k = 0; !wrong && k < d->n; k++)
        if (d->labels[k] > 9) {
            snprintf(why, room, "%s: label %lld is %lld; digits are 0 … 9", folder, (long long)k,
                     (long long)d->labels[k]);
            wrong = 1;
        }
    cot_file_close(images);
    cot_file_close(labels);
    return wrong;
}
