/* A picture as a function of what is in it.
 *
 * A hard disc has no useful derivative: a pixel is inside or outside. A soft one covers a pixel by
 * sigmoid((radius - distance) / softness), and then the difference between two pictures says in
 * which direction to move and grow the disc. Here a disc finds the place and the size of another
 * one that it overlaps by a corner only. */
#include <cotangent.h>
#include <math.h>
#include <stdio.h>

enum { SIDE = 24, STEPS = 120 };

/* disc (3): centre and radius, in pixels -> (SIDE, SIDE), from 0 outside to 1 inside. */
static cot_var render(cot_var disc) {
    cot_tape *t = cot_tape_of(disc);
    cot_var   along = cot_arange(t, COT_F64, 0, SIDE, 1);
    cot_var   x = cot_sub(along, cot_index(disc, 0, 0)), y = cot_sub(along, cot_index(disc, 0, 1));
    cot_var   distance = cot_hypot(cot_reshape(y, COT_SHAPE(SIDE, 1)), x);
    return cot_sigmoid(cot_div(cot_sub(cot_index(disc, 0, 2), distance), 0.8));
}

static void show(const char *what, cot_var picture) {
    static const char shade[] = " .:-=+*#%@";
    double            pixel[SIDE * SIDE];
    cot_read(picture, pixel, SIDE * SIDE);
    printf("%s\n", what);
    for (int i = 0; i < SIDE; i += 2) { /* a character is twice as high as wide */
        putchar('|');
        for (int j = 0; j < SIDE; j++) putchar(shade[(int)(4.99 * (pixel[i * SIDE + j] + pixel[(i + 1) * SIDE + j]))]);
        printf("|\n");
    }
}

int main(void) {
    const double wanted[3] = {15, 14, 5}, first[3] = {7, 8, 3};
    double       m[3] = {0}, v[3] = {0}, got[3];
    void        *ms[] = {m}, *vs[] = {v};
    cot_tape    *t = cot_tape_create(NULL);
    cot_var      target = render(cot_data(t, COT_F64, COT_SHAPE(3), wanted));
    cot_var      disc = cot_tensor(t, COT_F64, COT_SHAPE(3), first);
    show("The picture", target);
    show("The first guess", render(disc));

    cot_mark mark = cot_tape_mark(t);
    for (int step = 1; step <= STEPS; step++, cot_tape_rewind(t, mark)) {
        cot_var loss = cot_mean(cot_square(cot_sub(render(disc), target)), COT_ALL);
        cot_zero_grad(disc);
        cot_backward(loss);
        if (step == 1 || step % 40 == 0) printf("step %3d   mean squared difference %.4f\n", step, cot_value(loss));
        cot_adamw_step(1, &disc, ms, vs, (cot_adamw){.step = step, .rate = 0.2});
    }
    show("What was found", render(disc));

    cot_read(disc, got, 3);
    printf("centre (%.1f, %.1f), radius %.1f\n", got[0], got[1], got[2]);
    int wrong = cot_tape_status(t) != COT_OK;
    for (int k = 0; k < 3; k++) wrong |= !(fabs(got[k] - wanted[k]) < 0.05);
    if (wrong) fprintf(stderr, "the disc was not found. %s\n", cot_tape_message(t));
    cot_tape_destroy(t);
    return wrong;
}
