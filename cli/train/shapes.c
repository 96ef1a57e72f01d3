/* shapes.c: gpt, mnist and expressions recorded on examples, whose elements nobody computes; the
 * memory of their tape is reserved and never touched. */
#include "train/shapes.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "models/mnist.h"
#include "nn/nn.h"
#include "ops/structural.h"
#include "tape/examples.h"

enum { DIGITS = 10 };

static cot_var example(cot_tape *t, cot_dtype dtype, cot_shape shape) {
    cot__result r;
    if (!cot__constant_open(t, &r, "full", dtype, &shape)) return COT_NONE;
    cot__result_is_example(t, &r);
    return cot__constant_push(t, &r);
}

/* ---- models ---------------------------------------------------------------------------------- */

/* The loss on examples; invalid after a failure. */
static cot_var record(cot_params *p, shapes *m) {
    cot_tape *t = cot_params_tape(p);
    int64_t   rows = m->is_gpt ? m->batch * m->net.context : m->batch, classes = m->is_gpt ? m->net.vocabulary : DIGITS;
    cot_var   x = m->is_gpt ? example(t, COT_I64, COT_SHAPE(m->batch, m->net.context))
                            : example(t, COT_F32, COT_SHAPE(m->batch, 1, MNIST_SIDE, MNIST_SIDE));
    cot_var   y;
    cot_params_set_user(p, &m->net);
    if (m->precision != COT_F32) {
        cot_tape_set_precision(t, (cot_precision){.compute = m->precision});
        cot_params_set_precision(p, "*", m->precision);
    }
    if (!cot__params_learn(p, "memory", m->is_gpt ? gpt_net : mnist_net, x, &y)) return COT_NONE;
    cot_var labels = example(t, COT_I64, COT_SHAPE(rows));
    return cot_softmax_cross_entropy(cot_reshape(y, COT_SHAPE(rows, classes)), labels);
}

bool shapes_forecast(const shapes *of, bool least, cot__forecast *a, int64_t *parameters, failure *f) {
    shapes      m = *of;
    cot_tape   *t = cot_tape_create(&(cot_options){.allocator = {cot__reserve, NULL}});
    cot_params *p = cot_params_create(t);
    if (!p) {
        cot_tape_destroy(t);
        return failure_memory(f);
    }
    t->mode.compiling = true;
    cot_tape_set_memory_limit(t, 0); /* one of the environment is for tapes that compute */
    cot_var loss = record(p, &m);
    *parameters = 0;
    for (uint32_t k = 0; k < p->count; k++)
        *parameters += cot__count(p->entry[k].wish.shape.ndim, p->entry[k].wish.shape.dim);
    bool fine = cot_tape_status(t) == COT_OK;
    if (!fine && cot_tape_status(t) != COT_MEMORY) failure_said(f, EXIT_RUN, "run", "%s", cot_tape_message(t));
    else if (!(fine = fine && cot__forecast_of(a, loss) && (!least || cot__forecast_least(a, loss)))) failure_memory(f);
    /* rows of the forecast point to names of the tape: models give none */
    cot_params_destroy(p);
    cot_tape_destroy(t);
    return fine;
}

/* Some blocks are recorded, however many there are: of more than MANY the others add as much as one
 * of them does. FEW: enough that the middle of the net is inside of a block like all others; more
 * are not rehearsed, which would take long. */
enum { MANY = 200, FEW = 8 };

bool shapes_forecast_layers(const shapes *m, cot__forecast *a, int64_t *parameters, failure *f) {
    cot__forecast less = {0}, few = {0};
    int64_t       fewer, all, more = m->net.layers - FEW;
    bool          fits = true, whole = m->net.layers <= MANY;
    shapes        some = *m;
    if (!m->is_gpt || more <= 0) return shapes_forecast(m, true, a, parameters, f);
    some.net.layers = FEW - 1;
    bool fine = shapes_forecast(&some, true, &less, &fewer, f);
    some.net.layers = FEW;
    fine = fine && shapes_forecast(&some, true, whole ? &few : a, parameters, f);
    if (fine && whole) {
        fine = shapes_forecast(m, false, a, &all, f);
        cot__forecast_deepen(a, &few, &less, more);
        cot__forecast_free(&few);
    } else if (fine && !cot__forecast_stretch(a, &less, more, &fits)) fine = failure_memory(f);
    if (fine && !fits)
        fine = failure_set(f, EXIT_RUN, "run",
                           "[memory] a step of %lld blocks takes more than 2^63 - 1 bytes; ask for fewer, or a smaller "
                           "--width",
                           (long long)m->net.layers);
    /* their bytes are among the sources, so they are fewer */
    if (fine) *parameters += more * (*parameters - fewer);
    cot__forecast_free(&less);
    return fine;
}

/* ---- expressions ----------------------------------------------------------------------------- */

/* An expression is recorded on examples of its inputs. What a mask selects of them (x[x > 0]) is
 * all, as far as shapes tell. Where the operations themselves depend on values (a if b else c),
 * somebody looks at an example or is refused one: then the values are read and recorded, unless
 * they are many. */

/* Floats with axes are examples; all others are as they were given. */
static cot_var input(cot_tape *t, const problem_input *x, bool leaf) {
    const cot_array *v = &x->value;
    cot__result      r;
    if (v->data) return leaf ? cot_tensor(t, v->dtype, v->shape, v->data) : cot_data(t, v->dtype, v->shape, v->data);
    t->mode.leaf = leaf;
    bool open = cot__constant_open(t, &r, "memory", v->dtype, &v->shape);
    t->mode.leaf = false;
    if (!open) return COT_NONE;
    cot__result_is_example(t, &r);
    cot_var z = cot__result_push(t, &r, leaf ? OP_leaf : OP_constant, 0, NULL, NULL);
    if (leaf && !cot__failed(z)) { /* never assigned, and without a gradient */
        cot__node *n = &t->nodes[cot__index(z)];
        n->a = n->b = 0;
        n->extra.grad = NULL;
    }
    return z;
}

static cot_tape *open_tape(void) {
    cot_tape *t = cot_tape_create(&(cot_options){.allocator = {cot__reserve, NULL}});
    if (!t) return NULL;
    t->mode.compiling = true;
    cot_tape_set_memory_limit(t, 0); /* one of the environment is for tapes that compute */
    return t;
}

/* Has nobody looked? What is looked at is an example no longer. */
static bool is_untouched(const problem *p) {
    for (int k = 0; k < p->n; k++)
        if (!p->inputs[k].value.data && !cot__is_example(p->t, cot__index(p->inputs[k].var))) return false;
    for (uint32_t i = 0; i < p->t->count; i++) {
        const cot__node *n = &p->t->nodes[i];
        bool             from = false;
        for (int k = 0; cot__is_tensor(n) && k < cot__nargs(n); k++)
            from = from || (cot__arg(n, k) != COT__NONE && cot__is_example(p->t, cot__arg(n, k)));
        if (from && !cot__is_example(p->t, i)) return false;
    }
    return true;
}

static bool selects(const problem *p) {
    for (uint32_t i = 0; i < p->t->count; i++) {
        const cot__node *n = &p->t->nodes[i];
        bool             counts = strcmp(cot__op_of(n->op)->name, "nonzero") == 0 && n->extra.attr->ints[0] < 0;
        if (counts && cot__is_example(p->t, cot__arg(n, 0))) return true;
    }
    return false;
}

enum { COMPUTED = 1 << 30 }; /* bytes of inputs with which an expression is still computed */

static double bytes_of_examples(const problem *p) {
    double sum = 0;
    for (int k = 0; k < p->n; k++) {
        const cot_array *v = &p->inputs[k].value;
        if (!v->data) sum += (double)v->size * cot__dtype_size(v->dtype);
    }
    return sum;
}

bool shapes_of_expression(problem *p, const options *o, bool *all_selected, failure *f) {
    static const problem_way by_shapes = {open_tape, input};
    failure                  unsaid = {0};
    char                     text[32];
    *all_selected = false;
    if (problem_for_derivatives_in(p, o, &by_shapes, &unsaid) && is_untouched(p))
        return *all_selected = selects(p), true;
    if (strcmp(unsaid.code, "memory") == 0) return *f = unsaid, false;
    double bytes = bytes_of_examples(p);
    if (bytes > COMPUTED) {
        if (unsaid.status == EXIT_FINE)
            failure_set(&unsaid, EXIT_RUN, "run", "[memory] an operation reads values, which are not known");
        size_t used = strlen(unsaid.message);
        snprintf(unsaid.message + used, sizeof unsaid.message - used,
                 " (from shapes alone: with inputs of %s nothing is computed)", cot__bytes_text(bytes, text));
        return *f = unsaid, false;
    }
    problem_close(p);
    return problem_for_derivatives(p, o, f);
}
