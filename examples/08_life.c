/* The life of values: overwritten, forgotten, detached; and how C's own loops and branches
 * differentiate. With COT_SOURCE_LINES defined before the include, messages name the lines of this
 * file. */
#define COT_SOURCE_LINES
#include <cotangent.h>
#include <math.h>
#include <stdio.h>

static int differs(double got, double want) { return !(fabs(got - want) < 1e-9); }

/* y = x² has the derivative 2x, which needs x on the way back. If x has been overwritten by then
 * there is no right answer, and the tape says so instead of giving a wrong one. */
static int overwritten(cot_tape *t) {
    cot_mark mark = cot_tape_mark(t);
    cot_var  x    = cot_name(cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){1, 2, 3}), "x");
    cot_var  y    = cot_square(x);
    cot_mul_into(&x, 10.0);
    cot_backward(cot_sum(y, COT_ALL));
    printf("Overwritten before its derivative was taken: %s\n  %s\n", cot_status_name(cot_tape_status(t)),
           cot_tape_message(t));
    int wrong = cot_tape_status(t) != COT_STALE;
    cot_tape_rewind(t, mark); /* forgets the values since the mark, and the error with them */

    /* A product of its own leaves x alone. */
    x           = cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){1, 2, 3});
    y           = cot_square(x);
    cot_var ten = cot_mul(x, 10.0);
    cot_backward(cot_sum(y, COT_ALL));
    double grad[3], tens[3];
    cot_read_grad(x, grad, 3);
    cot_read(ten, tens, 3);
    printf("  with a new value instead: 10x = [%g, %g, %g], dy/dx = [%g, %g, %g]\n", tens[0], tens[1], tens[2], grad[0],
           grad[1], grad[2]);
    for (int i = 0; i < 3; i++) wrong |= differs(grad[i], 2 * (i + 1));
    return wrong;
}

/* A var from before a rewind is recognised, even where the tape has grown to the same place. */
static int forgotten(cot_tape *t) {
    cot_var  x    = cot_scalar(t, 2.0);
    cot_mark mark = cot_tape_mark(t);
    cot_var  old  = cot_exp(x);
    cot_tape_rewind(t, mark);
    cot_sin(x);

    mark = cot_tape_mark(t);
    cot_mul(old, 3.0);
    printf("\nUsed after a rewind: %s\n  %s\n", cot_status_name(cot_tape_status(t)), cot_tape_message(t));
    int wrong = cot_tape_status(t) != COT_VAR;
    cot_tape_rewind(t, mark);
    return wrong;
}

/* A student learns to answer as the teacher does. The teacher's answers are detached: they count as
 * given numbers, so that no gradient reaches the teacher, who would otherwise move towards the
 * student as well. */
static int teacher_and_student(cot_tape *t) {
    enum { PUPILS = 8, FACTS = 3, STEPS = 200 };
    double facts[PUPILS * FACTS], learned[FACTS], blame[FACTS];
    for (int i = 0; i < PUPILS * FACTS; i++) facts[i] = sin(i * i + 1.0);
    cot_var  x       = cot_data(t, COT_F64, COT_SHAPE(PUPILS, FACTS), facts);
    cot_var  teacher = cot_tensor(t, COT_F64, COT_SHAPE(FACTS), (double[]){1.0, -2.0, 0.5});
    cot_var  student = cot_tensor(t, COT_F64, COT_SHAPE(FACTS), NULL);
    cot_var  both[2] = {teacher, student};
    cot_mark mark    = cot_tape_mark(t);

    printf("\nTeacher and student\n");
    for (int step = 0; step <= STEPS; step++) {
        cot_var answers = cot_detach(cot_tanh(cot_matmul(x, teacher)));
        cot_var loss    = cot_mse(cot_tanh(cot_matmul(x, student)), answers);
        cot_backward(loss);
        if (step % 50 == 0) printf("  step %3d  loss %.6f\n", step, cot_value(loss));
        cot_read_grad(teacher, blame, FACTS);
        cot_sgd_step(2, both, 1.0);
        cot_tape_zero_grads(t);
        cot_tape_rewind(t, mark);
    }
    cot_read(student, learned, FACTS);
    printf("  the student holds [%.2f, %.2f, %.2f]; the teacher's gradient is [%g, %g, %g]\n", learned[0], learned[1],
           learned[2], blame[0], blame[1], blame[2]);
    int wrong = !(fabs(learned[0] - 1) + fabs(learned[1] + 2) + fabs(learned[2] - 0.5) < 0.05);
    for (int i = 0; i < FACTS; i++) wrong |= blame[i] != 0;

    /* Between no_grad_open and no_grad_close nothing needs a gradient, and nothing is saved for
     * one: for use without learning. */
    cot_no_grad_open(t);
    cot_var used = cot_tanh(cot_matmul(x, student));
    cot_no_grad_close(t);
    cot_var studied = cot_tanh(cot_matmul(x, student));
    printf("  requires a gradient: recorded with no_grad %s, without %s\n", cot_requires_grad(used) ? "yes" : "no",
           cot_requires_grad(studied) ? "yes" : "no");
    return wrong || cot_requires_grad(used) || !cot_requires_grad(studied);
}

/* A loop: the square root by Heron's method, as many rounds as it takes. The tape holds the rounds
 * that ran. */
static cot_var heron(cot_var a, int *rounds) {
    cot_var root = a;
    for (*rounds = 0; *rounds < 50 && fabs(cot_value(root) * cot_value(root) - cot_value(a)) > 1e-12; ++*rounds)
        root = cot_mul(0.5, cot_add(root, cot_div(a, root)));
    return root;
}

/* A branch: Huber's loss, square near 0 and straight beyond. The tape holds the branch that was
 * taken. */
static cot_var huber(cot_var r) {
    if (fabs(cot_value(r)) <= 1) return cot_mul(0.5, cot_square(r));
    return cot_sub(cot_abs(r), 0.5);
}

static int loop_and_branch(cot_tape *t) {
    int     rounds;
    cot_var a = cot_scalar(t, 2.0), root = heron(a, &rounds);
    cot_backward(root);
    printf("\nA loop: sqrt(2) = %.6f after %d rounds, derivative %.6f\n", cot_value(root), rounds, cot_grad_value(a));
    int wrong = differs(cot_value(root), sqrt(2)) || differs(cot_grad_value(a), 0.5 / sqrt(2));

    cot_var near = cot_scalar(t, 0.5), far = cot_scalar(t, -3.0), h_near = huber(near), h_far = huber(far);
    cot_backward(h_near);
    cot_backward(h_far);
    printf("A branch: huber(0.5) = %.4f, derivative %.4f\n", cot_value(h_near), cot_grad_value(near));
    printf("          huber(-3)  = %.4f, derivative %.4f\n", cot_value(h_far), cot_grad_value(far));
    return wrong || differs(cot_value(h_near), 0.125) || differs(cot_grad_value(near), 0.5) ||
           differs(cot_value(h_far), 2.5) || differs(cot_grad_value(far), -1);
}

int main(void) {
    cot_tape *t     = cot_tape_create(NULL);
    int       wrong = overwritten(t);
    wrong |= forgotten(t);
    wrong |= teacher_and_student(t);
    wrong |= loop_and_branch(t);
    wrong |= cot_tape_status(t) != COT_OK;
    if (wrong) fprintf(stderr, "a result is off. %s\n", cot_tape_message(t));
    cot_tape_destroy(t);
    return wrong;
}
