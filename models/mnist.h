/* mnist.h: a small convolutional network for digits of 28 × 28 pixels,
 *
 *     convolution 16 @ 5×5, relu, largest of 2×2, convolution 32 @ 5×5, relu, largest of 2×2, dense
 *
 * and the digits from files in IDX format, gzipped or not. */
#ifndef MODELS_MNIST_H
#define MODELS_MNIST_H

#include <cotangent.h>

enum { MNIST_SIDE = 28, MNIST_PIXELS = 784 };

/* (B, 1, 28, 28) -> logits (B, 10) */
cot_var mnist_net(cot_params *p, cot_var x);

/* What trains it, but for the rate. */
extern const cot_optim_options mnist_optim;

typedef struct mnist_digits {
    int64_t  n;
    float   *pixels; /* (n, 1, 28, 28), 0 … 1 */
    int64_t *labels; /* (n) */
} mnist_digits;

/* The files SET-images-idx3-ubyte and SET-labels-idx1-ubyte of a folder, set being "train" or
 * "t10k". 0, or 1 and a sentence; call mnist_free in both cases. */
int  mnist_read(mnist_digits *d, const char *folder, const char *set, char *why, size_t room);
void mnist_free(mnist_digits *d);

#endif
