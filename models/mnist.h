/* mnist.h: a small convolutional network for digits of 28 × 28 pixels:
 *
 *     convolution 16 @ 5×5, relu, largest of 2×2, convolution 32 @ 5×5, relu, largest of 2×2, dense 10 */
#ifndef MODELS_MNIST_H
#define MODELS_MNIST_H

#include <cotangent.h>

/* (B, 1, 28, 28) -> logits (B, 10) */
cot_var mnist_net(cot_params *p, cot_var x);

#endif
