/* models.h: three deep nets, as they are written without a thought of memory, each with a loss: a
 * stack of dense layers, a convolutional net of 16 layers, a GPT of 12 blocks. */
#ifndef BENCH_MEMORY_MODELS_H
#define BENCH_MEMORY_MODELS_H

#include <cotangent.h>
#include <cotangent_nn.h>

typedef struct model {
    const char *name, *about;
    cot_net     net;
    cot_var (*input)(cot_tape *t);
    cot_var (*loss)(cot_var y, cot_var x);
} model;

enum { MODELS = 3 };
extern const model models[MODELS];

#endif
