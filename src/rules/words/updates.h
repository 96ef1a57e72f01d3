/* updates.h: the arithmetic of the updates of optimisers, once, for the kernel that writes to
 * leaves (backend/cpu/nn/update.c) and for the recorded form of programs (optim/record.c).
 *
 * The includer defines the words: ADD, SUB, MUL, DIV, SQRT, and POSITIVE, which is its operand, or
 * 0 where that is negative. Each rounds once, in the type of the weights, so both have the same
 * bits. Factors are made in f64 and rounded to that type once. Which formulas an optimiser takes,
 * and in which order, its comment in cotangent_optim.h says. */
#ifndef COT_UPDATES_H
#define COT_UPDATES_H

/* A gradient with the decay of weights in it (L2). */
#define COT__DECAYED(g, decay, w) ADD(g, MUL(decay, w))
/* A moving average: keep is β, gain 1 - β. */
#define COT__AVERAGED(keep, old, gain, x) ADD(MUL(keep, old), MUL(gain, x))
/* A velocity after a gradient g; of Nesterov's momentum also the direction, with the new one. */
#define COT__PUSHED(momentum, velocity, g) ADD(MUL(momentum, velocity), g)
#define COT__DESCENDED(w, rate, direction) SUB(w, MUL(rate, direction))
/* The variance of gradients with the mean m and the mean square v, which rounding may have made
 * negative. */
#define COT__CENTRED(v, m) POSITIVE(SUB(v, MUL(m, m)))
#define COT__WHITENED(g, v, eps) DIV(g, ADD(SQRT(v), eps))
/* Adam's: rate and spread have the corrections of both moments in them. */
#define COT__ADAPTED(keep, w, rate, m, v, spread, eps)                                                                 \
    SUB(MUL(keep, w), DIV(MUL(rate, m), ADD(MUL(SQRT(v), spread), eps)))

/* Factors of a step, in f64, with one word more, POW. */
#define COT__KEPT(rate, decay) SUB(1.0, MUL(rate, decay))
#define COT__CORRECTED(rate, b1, step) DIV(rate, SUB(1.0, POW(b1, step)))
/* How much too small sqrt(v) is at this step. With eps_hat the rate has this factor, and sqrt(v)
 * the factor 1; else sqrt(v) has the spread. */
#define COT__SHORT(b2, step) SQRT(SUB(1.0, POW(b2, step)))
#define COT__SPREAD(b2, step) DIV(1.0, COT__SHORT(b2, step))

#endif
