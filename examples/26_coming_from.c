/* The ten things of docs/coming-from.md, one call each, and below them the differences that
 * surprise. The numbers are small and whole, so every result is exact. */
#include <cotangent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static int wrong;

/* Prints n numbers and compares them with those that a formula by hand gives. */
static void show(const char *what, int n, const double *got, const double *expected) {
    printf("%-28s", what);
    for (int k = 0; k < n; k++) printf(" %g", got[k]);
    printf("\n");
    wrong |= memcmp(got, expected, (size_t)n * sizeof *got) != 0;
}

/* A name and whether it is so. */
static void say(const char *what, int is_so) {
    printf("%-28s %s\n", what, is_so ? "yes" : "no");
    wrong |= !is_so;
}

/* Sweeps back from y, shows the gradient of x, which has two elements, and forgets it. */
static void gradient(const char *what, cot_var y, cot_var x, double first, double second) {
    double g[2] = {NAN, NAN};
    cot_backward(y);
    cot_read_grad(x, g, 2);
    show(what, 2, g, (double[]){first, second});
    cot_zero_grad(x);
}

/* Functions of vars, as the calls below take them. The first is the sum of x³. */
static int cubes(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_sum(cot_mul(xs[0], cot_square(xs[0])), COT_ALL);
    return 0;
}

static int same(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_mul(1.0, xs[0]);
    return 0;
}

static int turn_round(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *ybars, cot_var *xbars,
                      void *user) {
    (void)n, (void)xs, (void)m, (void)ys, (void)user;
    xbars[0] = cot_neg(ybars[0]);
    return 0;
}

/* (w · row)² of one row. */
static int loss_of_row(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_square(cot_sum(cot_mul(xs[0], xs[1]), COT_ALL));
    return 0;
}

static int gradient_of_row(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var grads[2]; /* by w and by the row */
    (void)m;
    if (cot_value_and_grad(loss_of_row, user, n, xs, NULL, grads) != COT_OK) return 1;
    ys[0] = grads[0];
    return 0;
}

/* A step of cot_fori reads its number and the carried value. */
static int twice(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_mul(2.0, xs[1]);
    return 0;
}

static void ten_things(cot_tape *t) {
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2}), y;
    double  matrix[4];

    y = cot_sum(cot_mul(x, cot_square(x)), COT_ALL);
    gradient("1 a gradient", y, x, 3, 12);
    cot_var dx;
    cot_value_and_grad(cubes, NULL, 1, &x, &y, &dx);
    cot_read(dx, matrix, 2);
    show("  of a function", 2, matrix, (double[]){3, 12});

    cot_var squares = cot_square(x);
    cot_jacobian(1, &squares, 1, &x, COT_AUTO, matrix);
    show("2 a Jacobian", 4, matrix, (double[]){2, 0, 0, 4});
    cot_hessian(y, 1, &x, matrix);
    show("  a Hessian", 4, matrix, (double[]){6, 0, 0, 12});

    gradient("3 a stopped gradient", cot_sum(cot_mul(x, cot_stop_gradient(x)), COT_ALL), x, 1, 2);

    cot_no_grad_open(t);
    cot_var passive = cot_square(x);
    cot_no_grad_close(t);
    say("4 no gradient inside", !cot_requires_grad(passive));

    cot_var h = cot_mul(3.0, x);
    cot_mul_into(&h, 2.0);
    cot_update_slice(&h, 0, 0, 1, 1, 5.0);
    gradient("5 writes in place", cot_sum(h, COT_ALL), x, 0, 6);

    static const cot_fn_rules reversed = {.name = "reversed", .vjp = turn_round};
    cot_custom_fn(&reversed, same, NULL, 1, &x, 1, &y);
    gradient("6 a rule of one's own", cot_sum(y, COT_ALL), x, -1, -1);

    cot_jit *fast = cot_jit_create(cubes, NULL, NULL);
    cot_jit_call(fast, 1, &x, 1, &y);
    gradient("7 a compiled function", y, x, 3, 12);
    cot_jit_destroy(fast);

    cot_var rows = cot_data(t, COT_F64, COT_SHAPE(2, 2), (double[]){1, 0, 1, 1}), each;
    cot_vmap(gradient_of_row, NULL, 2, (cot_var[]){x, rows}, (int[]){COT_NOT_BATCHED, 0}, 1, &each, NULL);
    cot_read(each, matrix, 4);
    show("8 a gradient for each row", 4, matrix, (double[]){2, 0, 6, 6});

    cot_fori(twice, NULL, 0, 10, 1, &x, &y, NULL);
    gradient("9 a loop of ten steps", cot_sum(y, COT_ALL), x, 1024, 1024);

    cot_checkpoint(cubes, NULL, 1, &x, 1, &y);
    gradient("10 computed again, not kept", y, x, 3, 12);
}

static void differences(cot_tape *t) {
    cot_var  x    = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){0, 1});
    cot_mark mark = cot_tape_mark(t);

    /* the gradient of a branch that was not taken is 0, whatever its partial is */
    gradient("a strong zero", cot_sum(cot_where(cot_greater(x, 0.0), cot_log(x), 0.0), COT_ALL), x, 0, 1);
    gradient("clamp at its bounds", cot_sum(cot_clamp(x, 0.0, 1.0), COT_ALL), x, 0, 0);

    cot_var whole = cot_data(t, COT_I64, COT_SHAPE(2), (int64_t[]){1, 2});
    cot_var small = cot_data(t, COT_F32, COT_SHAPE(2), (float[]){1, 2});
    say("i64 and f32 meet in f32", cot_dtype_of(cot_add(whole, small)) == COT_F32);
    say("a number changes no dtype", cot_dtype_of(cot_mul(0.1, small)) == COT_F32);

    double first[2], second[2];
    cot_read(cot_normal(t, cot_key_of(7), COT_F64, COT_SHAPE(2)), first, 2);
    cot_read(cot_normal(t, cot_key_of(7), COT_F64, COT_SHAPE(2)), second, 2);
    say("one key, the same numbers", memcmp(first, second, sizeof first) == 0);

    /* a view of what was written over is stale: it does not show the new numbers */
    cot_var h = cot_mul(3.0, x), view = cot_slice(h, 0, 0, 1, 1);
    cot_mul_into(&h, 2.0);
    say("an old view is stale", cot_read(view, first, 1) == COT_STALE);

    /* that error sticks: the tape does nothing more, until it is cleared or rewound */
    say("nothing runs after an error", !cot_is_valid(cot_square(x)));
    cot_tape_rewind(t, mark);
    say("a rewind forgets the error", cot_tape_status(t) == COT_OK);
    say("and what was recorded", !cot_is_valid(h));

    /* exp had kept its result for the way back */
    cot_var e = cot_exp(x);
    cot_mul_into(&e, 2.0);
    say("a spoiled value is an error", cot_backward(cot_sum(e, COT_ALL)) == COT_STALE);
    cot_tape_rewind(t, mark);
}

int main(void) {
    cot_tape *t = cot_tape_create(NULL);
    ten_things(t);
    differences(t);
    wrong |= cot_tape_status(t) != COT_OK;
    if (wrong) fprintf(stderr, "a result is off. %s\n", cot_tape_message(t));
    cot_tape_destroy(t);
    return wrong;
}
