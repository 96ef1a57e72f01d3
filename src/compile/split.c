/* split.c: see split.h. One walk up finds what depends on a seed, one walk down what each half
 * needs, and two walks up build them. */
#include "compile/split.h"

#include "program/build.h"

#include <string.h>

/* What is known of a value. */
enum {
    LATE     = 1, /* it depends on a seed */
    FORWARD  = 2, /* the forward program needs it */
    BACKWARD = 4, /* the backward program needs it */
    RESIDUAL = 8, /* the forward program gives it to the backward one */
    RESULT   = 16, /* it is a result, too: so it is not given twice */
};

typedef struct splitting {
    const cot__program *p;
    uint32_t            inputs, results;
    uint8_t            *is;     /* of each value */
    uint32_t           *value;  /* of each value: its number in the program that is built */
    uint32_t           *x;      /* operands of one operation */
    uint32_t            most;
    bool                ran;    /* the forward program gives its results and nothing else */
    const cot__caller  *caller;
} splitting;

static uint32_t result_of(const splitting *s, uint32_t k, int i) { return s->p->operation[k].result + (uint32_t)i; }

static uint8_t any_result(const splitting *s, uint32_t k) {
    uint8_t any = 0;
    for (int i = 0; i < s->p->operation[k].results; i++) any |= s->is[result_of(s, k, i)];
    return any;
}

static void mark_results(splitting *s, uint32_t k, uint8_t mark) {
    for (int i = 0; i < s->p->operation[k].results; i++) s->is[result_of(s, k, i)] |= mark;
}

static void mark_operands(splitting *s, uint32_t k, uint8_t mark) {
    const uint32_t *x = cot__operation_operand(s->p, k);
    for (int i = 0; i < cot__operation_operands(s->p, k); i++)
        if (x[i] != COT__NO_VALUE) s->is[x[i]] |= mark;
}

/* ---- what depends on a seed ------------------------------------------------------------------ */

static void find_late(splitting *s) {
    for (uint32_t i = s->inputs; i < s->p->inputs; i++) s->is[s->p->input[i]] |= LATE;
    for (uint32_t k = 0; k < s->p->operations; k++) {
        const uint32_t *x = cot__operation_operand(s->p, k);
        uint8_t         late = 0;
        for (int i = 0; i < cot__operation_operands(s->p, k); i++)
            if (x[i] != COT__NO_VALUE) late |= s->is[x[i]] & LATE;
        mark_results(s, k, late);
    }
}

/* ---- what each half needs -------------------------------------------------------------------- */

/* Is the result of operation k a view of its operand, wherever that lies? */
static bool is_view(const splitting *s, uint32_t k) {
    int op = s->p->operation[k].op;
    return op >= OP_structural && cot__op_of(op)->view && s->p->operation[k].results == 1;
}

/* Is it made again in the backward program, rather than stored: a view, or arithmetic that only
 * the derivative reads (1 - z² of a tanh)? Functions (an exponential) are stored. After the forward
 * program ran, all that is no result. */
static bool is_made_again(const splitting *s, uint32_t k) {
    int op = s->p->operation[k].op;
    for (int i = 0; s->ran && i < s->p->operation[k].results; i++)
        if ((s->is[result_of(s, k, i)] & (BACKWARD | RESULT)) == BACKWARD) return true;
    if (s->ran) return false;
    if (op >= OP_structural) return is_view(s, k);
    return cot__elementwise_table[op].class == ARITH && !(any_result(s, k) & FORWARD);
}

static void need_operands(splitting *s, uint32_t k) {
    uint8_t any = any_result(s, k), effect = cot__operation_has_effect(s->p, k) ? FORWARD | BACKWARD : 0;
    if (any & LATE) {
        if ((any | effect) & BACKWARD) mark_operands(s, k, BACKWARD);
        return;
    }
    if ((any & BACKWARD) && is_made_again(s, k)) mark_operands(s, k, BACKWARD);
    else if (any & BACKWARD)
        for (int i = 0; i < s->p->operation[k].results; i++)
            if (s->is[result_of(s, k, i)] & BACKWARD) s->is[result_of(s, k, i)] |= RESIDUAL | FORWARD;
    if ((any_result(s, k) | effect) & FORWARD) mark_operands(s, k, FORWARD);
}

static void find_needs(splitting *s) {
    for (uint32_t k = 0; k < s->p->outputs; k++)
        s->is[s->p->output[k]] |= k < s->results ? FORWARD | RESULT : BACKWARD;
    for (uint32_t k = s->p->operations; k-- > 0;) need_operands(s, k);
}

/* Does operation k run in the forward program, or in the backward one? Some views do in both. */
static bool runs_forward(const splitting *s, uint32_t k) {
    uint8_t any = any_result(s, k);
    return !(any & LATE) && ((any & FORWARD) || cot__operation_has_effect(s->p, k));
}
static bool runs_backward(const splitting *s, uint32_t k) {
    uint8_t any = any_result(s, k);
    if (any & LATE) return (any & BACKWARD) || cot__operation_has_effect(s->p, k);
    return (any & BACKWARD) && is_made_again(s, k);
}

/* ---- building -------------------------------------------------------------------------------- */

static void copy_input(splitting *s, cot__builder *b, uint32_t v) {
    cot__type type = cot__value_type(s->p, v);
    s->value[v] = cot__build_input(b, &type);
}

static void copy_constants(splitting *s, cot__builder *b, uint8_t half) {
    for (uint32_t k = 0; k < s->p->constants; k++) {
        uint32_t  v = s->p->constant[k].value;
        cot__type type = cot__value_type(s->p, v);
        cot__view x = cot__value_view(s->p, v);
        void     *elements;
        if (!(s->is[v] & half)) continue;
        s->value[v] = cot__build_constant(b, &type, &elements);
        if (s->value[v] == COT__NO_VALUE) return;
        memcpy(elements, cot__constant_elements(s->p, k), (size_t)(cot__view_size(&x) * cot__dtype_size(x.dtype)));
    }
}

static void copy_operation(splitting *s, cot__builder *b, uint32_t k) {
    cot__type   asked;
    cot__append o = cot__operation_again(s->p, k, s->value, s->x, &asked);
    uint32_t    z = cot__build_operation(b, &o);
    for (int i = 0; i < s->p->operation[k].results; i++)
        s->value[result_of(s, k, i)] = z == COT__NO_VALUE ? z : z + (uint32_t)i;
}

static cot__program *build_forward(splitting *s) {
    cot__builder b;
    cot__builder_open(&b, &s->p->al, s->caller);
    for (uint32_t i = 0; i < s->inputs; i++) copy_input(s, &b, s->p->input[i]);
    copy_constants(s, &b, FORWARD);
    for (uint32_t k = 0; k < s->p->operations && !b.failed; k++)
        if (runs_forward(s, k)) copy_operation(s, &b, k);
    for (uint32_t k = 0; k < s->results; k++) cot__build_output(&b, s->value[s->p->output[k]]);
    for (uint32_t v = 0; v < s->p->values && !b.failed; v++)
        if ((s->is[v] & (RESIDUAL | RESULT)) == RESIDUAL) cot__build_output(&b, s->value[v]);
    return cot__builder_close(&b);
}

/* Values are numbered in the order of results and residuals, and so are the inputs here. */
static cot__program *build_backward(splitting *s) {
    cot__builder b;
    cot__builder_open(&b, &s->p->al, s->caller);
    for (uint32_t i = 0; i < s->inputs; i++)
        if (s->is[s->p->input[i]] & BACKWARD) copy_input(s, &b, s->p->input[i]);
    for (uint32_t v = 0; v < s->p->values && !b.failed; v++)
        if (s->is[v] & RESIDUAL) copy_input(s, &b, v);
    for (uint32_t i = s->inputs; i < s->p->inputs; i++) copy_input(s, &b, s->p->input[i]);
    copy_constants(s, &b, BACKWARD);
    for (uint32_t k = 0; k < s->p->operations && !b.failed; k++)
        if (runs_backward(s, k)) copy_operation(s, &b, k);
    for (uint32_t k = s->results; k < s->p->outputs; k++) cot__build_output(&b, s->value[s->p->output[k]]);
    return cot__builder_close(&b);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* The result that a value is. */
static uint32_t as_result(const splitting *s, uint32_t v) {
    uint32_t k = 0;
    while (s->p->output[k] != v) k++;
    return k;
}

/* What the backward program reads, in the order of its inputs. */
static bool list_saved(splitting *s, cot__split *out) {
    uint32_t residuals = 0, at = 0;
    for (uint32_t v = 0; v < s->p->values; v++) residuals += (s->is[v] & RESIDUAL) != 0;
    for (uint32_t i = 0; i < s->inputs; i++) out->count += (s->is[s->p->input[i]] & BACKWARD) != 0;
    out->count += residuals;
    out->inputs = s->inputs;
    out->saved = cot__alloc(&s->p->al, out->count * sizeof *out->saved);
    if (!out->saved) return false;
    for (uint32_t i = 0; i < s->inputs; i++)
        if (s->is[s->p->input[i]] & BACKWARD) out->saved[at++] = i;
    for (uint32_t v = 0, k = s->results; v < s->p->values; v++)
        if (s->is[v] & RESIDUAL) out->saved[at++] = s->inputs + (s->is[v] & RESULT ? as_result(s, v) : k++);
    return true;
}

static int64_t count_recomputed(const splitting *s) {
    int64_t bytes = 0;
    for (uint32_t k = 0; k < s->p->operations; k++) {
        cot__view z = cot__value_view(s->p, s->p->operation[k].result);
        if (!(any_result(s, k) & LATE) && runs_backward(s, k) && !is_view(s, k))
            bytes = cot__size_add(bytes, cot__view_size(&z) * cot__dtype_size(z.dtype));
    }
    return bytes;
}

static bool open_lists(splitting *s) {
    for (uint32_t k = 0; k < s->p->operations; k++) {
        uint32_t n = (uint32_t)cot__operation_operands(s->p, k);
        if (n > s->most) s->most = n;
    }
    s->is = cot__alloc(&s->p->al, s->p->values);
    s->value = cot__alloc(&s->p->al, s->p->values * sizeof *s->value);
    s->x = cot__alloc(&s->p->al, s->most * sizeof *s->x);
    if (s->is) memset(s->is, 0, s->p->values);
    return s->is && s->value && s->x;
}

bool cot__split_open(cot__split *out, const cot__program *joint, uint32_t inputs, uint32_t results, bool ran,
                     const cot__caller *caller) {
    splitting s = {.p = joint, .inputs = inputs, .results = results, .ran = ran, .caller = caller};
    bool      ok = open_lists(&s);
    *out = (cot__split){0};
    if (ok) {
        find_late(&s);
        find_needs(&s);
        ok = list_saved(&s, out);
        out->recomputed = count_recomputed(&s);
    }
    if (!ok) cot__refuse(caller, COT_MEMORY, "out of memory: a program of %u operations", joint->operations);
    if (ok && !ran) out->forward = build_forward(&s);
    if (ok && (ran || out->forward)) out->backward = build_backward(&s);
    cot__free(&joint->al, s.is, joint->values);
    cot__free(&joint->al, s.value, joint->values * sizeof *s.value);
    cot__free(&joint->al, s.x, s.most * sizeof *s.x);
    if (out->backward) return true;
    cot__split_close(out, &joint->al);
    return false;
}

void cot__split_close(cot__split *s, const cot_allocator *al) {
    cot__program_release(s->forward);
    cot__program_release(s->backward);
    cot__free(al, s->saved, s->count * sizeof *s->saved);
    *s = (cot__split){0};
}
