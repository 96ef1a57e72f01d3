/* Distillation: a large network that has learned, the teacher, shows a small one what it thinks of
 * each point, and the student never sees a label. The teacher runs in evaluation, so its dropout is
 * off, and between cot_no_grad_open and cot_no_grad_close: nothing is kept for a way back, and no
 * gradient reaches it. */
#include <cotangent.h>
#include <stdio.h>

enum { POINTS = 500, STEPS = 300, CLASSES = 3 };
/* softens the probabilities, so that the smaller ones tell something too */
static const double temperature = 2;

static cot_var teacher_net(cot_params *p, cot_var x) {
    x = cot_nn_dropout(p, "drop", cot_relu(cot_nn_dense(p, "fc1", x, 64)), 0.2);
    return cot_nn_dense(p, "fc3", cot_relu(cot_nn_dense(p, "fc2", x, 64)), CLASSES);
}

static cot_var student_net(cot_params *p, cot_var x) {
    return cot_nn_dense(p, "fc2", cot_tanh(cot_nn_dense(p, "fc1", x, 12)), CLASSES);
}

/* How much of the classes that a net finds in evaluation are these, in percent. */
static double agreement(cot_params *p, cot_net net, cot_var x, cot_var classes) {
    cot_tape *t    = cot_params_tape(p);
    cot_mark  mark = cot_tape_mark(t);
    cot_params_train(p, false);
    cot_var same = cot_equal(cot_argmax(net(p, x), COT_AXES(1)), classes);
    double  part = cot_value(cot_mean(cot_cast(same, COT_F64), COT_ALL));
    cot_params_train(p, true);
    cot_tape_rewind(t, mark);
    return 100 * part;
}

static cot_var what_teacher_thinks(cot_params *teacher, cot_var x) {
    cot_params_train(teacher, false);
    cot_no_grad_open(cot_params_tape(teacher));
    cot_var soft = cot_softmax(cot_div(teacher_net(teacher, x), temperature), -1);
    cot_no_grad_close(cot_params_tape(teacher));
    return soft;
}

/* STEPS steps; teacher NULL: on the labels. */
static void train(cot_params *p, cot_net net, cot_params *teacher, cot_var x, cot_var labels) {
    cot_tape  *t    = cot_params_tape(p);
    cot_optim *adam = cot_optim_create(p, &(cot_optim_options){.kind = COT_ADAM, .rate = 0.01});
    cot_mark   mark = cot_tape_mark(t);
    for (int step = 0; step < STEPS; step++) {
        cot_params_set_key(p, cot_key_at(cot_key_of(3), cot_integer(step)));
        cot_var logits = net(p, x), loss;
        cot_var thinks = cot_log_softmax(cot_div(logits, temperature), -1);
        if (teacher) loss = cot_kl_div(thinks, what_teacher_thinks(teacher, x));
        else loss = cot_softmax_cross_entropy(logits, labels);
        cot_backward(loss);
        cot_optim_step(adam);
        cot_tape_zero_grads(t);
        cot_tape_rewind(t, mark);
    }
    cot_optim_destroy(adam);
}

int main(void) {
    cot_tape   *t       = cot_tape_create(NULL);
    cot_params *teacher = cot_params_create(t), *student = cot_params_create(t);
    cot_var     x       = cot_normal(t, cot_key_of(1), COT_F32, COT_SHAPE(POINTS, 2));
    /* a disc, and two rings around it, of about as many points each */
    cot_var r2     = cot_sum(cot_square(x), COT_AXES(1));
    cot_var labels = cot_add(cot_cast(cot_greater(r2, 0.81), COT_I64), cot_cast(cot_greater(r2, 2.2), COT_I64));
    cot_params_init(teacher, teacher_net, x, cot_key_of(10));
    cot_params_init(student, student_net, x, cot_key_of(11));

    train(teacher, teacher_net, NULL, x, labels);
    double knows = agreement(teacher, teacher_net, x, labels), before = agreement(student, student_net, x, labels);
    train(student, student_net, teacher, x, labels);
    double learned = agreement(student, student_net, x, labels), still = agreement(teacher, teacher_net, x, labels);
    printf("the teacher, 4 547 weights, places %.1f %% of the points in the right ring\n", knows);
    printf("the student, 75 weights: %.1f %% before, %.1f %% after it was shown what the teacher thinks\n", before,
           learned);
    int wrong = cot_tape_status(t) != COT_OK || knows < 95 || learned < 90 || before > 60 || still != knows;
    if (wrong) fprintf(stderr, "a result is off. %s\n", cot_tape_message(t));
    cot_params_destroy(student);
    cot_params_destroy(teacher);
    cot_tape_destroy(t);
    return wrong;
}
