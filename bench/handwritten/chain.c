/* chain.c: the logistic map and its two derivatives, by one loop forward and one back. Compiled
 * without fast-math: the map is chaotic, so the order of its products is part of its definition. */
#include "handwritten/handwritten.h"

enum { STEPS = 1000 };

typedef struct chain { double x[STEPS + 1], by_x0, by_r; } chain;

static void *chain_make(void) { return must(calloc(1, sizeof(chain))); }

static double chain_step(void *state) {
    chain *c = state;
    double x = 0.3, r = 3.7, g = 1, by_r = 0;
    for (int k = 0; k < STEPS; k++) {
        c->x[k] = x;
        x = r * x * (1 - x);
    }
    c->x[STEPS] = x;
    for (int k = STEPS - 1; k >= 0; k--) {
        double rx = r * c->x[k], g_rx = g * (1 - c->x[k]);
        by_r += g_rx * c->x[k];
        g = g_rx * r - g * rx;
    }
    c->by_x0 = g, c->by_r = by_r;
    return g;
}

const workload chain_by_hand = {"chain", "f64", chain_make, chain_step, free, -1.8429505840e+146, 1e-10, NULL};
