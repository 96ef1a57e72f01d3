/* run.c: runs the steps of a program, in one loop. */
#include "expr/lex.h"
#include "expr/program.h"
#include "tape/tape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct spans {
    cot__expr_span *list;
    int64_t         n, room, first; /* first: length of the tape before the run */
    bool            wanted;
} spans;

/* Notes that the nodes recorded by this step came from its part of the text. */
static bool note(spans *s, const cot__evaluation *r) {
    int64_t now = cot_tape_length(r->t) - s->first;
    if (!s->wanted || now <= s->n) {
        if (now < s->n) s->n = now > 0 ? now : 0;
        return true;
    }
    if (now > s->room) {
        int64_t         room = now + now / 2 + 16;
        cot__expr_span *grown = realloc(s->list, (size_t)room * sizeof *grown);
        if (!grown) return cot__expr_short_of_memory(r->error);
        s->list = grown;
        s->room = room;
    }
    cot__expr_span span = {.start = r->step->start, .stop = r->step->stop};
    if (r->odd) span.odd_start = r->e->steps[r->odd - 1].start, span.odd_stop = r->e->steps[r->odd - 1].stop;
    while (s->n < now) s->list[s->n++] = span;
    return true;
}

static bool is_odd(const cot__item *x) { return x->kind == ITEM_NUMBER && !isfinite(x->as.number); }

/* What numbers make of numbers is not recorded: a number says itself where it stopped being
 * finite. */
static void see_operands(cot__evaluation *r, int n, const cot__item *given) {
    for (int k = 0; k < n && !r->odd; k++)
        if (is_odd(&given[k])) r->odd = given[k].n;
}
static void see_result(const cot__evaluation *r, cot__item *z) {
    if (is_odd(z)) z->n = r->odd ? r->odd : 1 + (int)(r->step - r->e->steps);
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool unknown(cot__evaluation *r, const cot__name *name, int n, const cot__expr_input *inputs) {
    enum { MOST = 1500 };
    static const char *const others[] = {"pi",      "inf",   "nan",   "float64", "float32", "bfloat16",
                                         "float16", "int64", "int32", "uint8",   "bool"};
    const char *among[MOST], *near;
    char        signature[400];
    int         count = 0;
    const cot__callee *f = cot__find_callee(name->text, name->length);
    if (f)
        return cot__evaluation_fail(r, "'%s' is a function, called with (): %s", name->text,
                                    cot__signature(f, signature, sizeof signature));
    for (int i = 0; i < n && count < MOST - 500; i++)
        if (inputs[i].name) among[count++] = inputs[i].name;
    for (size_t i = 0; i < r->e->name_count && count < MOST - 400; i++)
        if (r->e->names[i].assigned) among[count++] = r->e->names[i].text;
    for (int i = 0; i < cot__callee_count && count < MOST - COUNTOF(others); i++) among[count++] = cot__callees[i].name;
    for (int i = 0; i < COUNTOF(others); i++) among[count++] = others[i];
    near = cot__nearest(name->text, count, among);
    if (near) return cot__evaluation_fail(r, "unknown name '%.60s'; did you mean '%s'?", name->text, near);
    return cot__evaluation_fail(r, "unknown name '%.60s'; give it a value, as in %.60s=2", name->text, name->text);
}

/* Puts the given values into the slots of their names. Of two values for one name the first is
 * taken. */
static void fill(const cot__expr *e, cot__item *slots, int n, const cot__expr_input *inputs) {
    memset(slots, 0, (e->name_count + 1) * sizeof *slots);
    for (int i = 0; i < n; i++) {
        int k = inputs[i].name ? cot__expr_name(e, inputs[i].name, strlen(inputs[i].name)) : -1;
        if (k >= 0 && slots[k].kind == ITEM_UNSET) 
            slots[k] = inputs[i].matrix ? (cot__item){.kind = ITEM_SPARSE, .as.matrix = inputs[i].matrix}
                                        : cot__item_var(inputs[i].value);
    }
}

/* The name of an input is taken once. */
static void count_inputs(const cot__expr *e, int *stores, int n, const cot__expr_input *inputs) {
    memset(stores, 0, (e->name_count + 1) * sizeof *stores);
    for (int i = 0; i < n; i++) {
        int k = inputs[i].name ? cot__expr_name(e, inputs[i].name, strlen(inputs[i].name)) : -1;
        if (k >= 0) stores[k] = 1;
    }
}

static bool load(cot__evaluation *r, cot__item *slots, int n, const cot__expr_input *inputs, cot__item *out) {
    const cot__name *name = &r->e->names[r->step->n];
    cot__item       *slot = &slots[r->step->n];
    if (slot->kind == ITEM_UNSET && !cot__known_name(name->text, name->length, slot))
        return unknown(r, name, n, inputs);
    if (slot->kind == ITEM_SPARSE && slot->as.matrix->values.tape != r->t)
        return cot__evaluation_fail(r, "the value of '%.60s' is on another tape", name->text);
    if (slot->kind == ITEM_VAR && slot->as.var.tape != r->t) {
        if ((uintptr_t)slot->as.var.tape == 1 || (uintptr_t)slot->as.var.tape == 2)
            return cot__evaluation_fail(r, "the value of '%.60s' is a plain number; inputs are vars of the tape",
                                        name->text);
        return cot__evaluation_fail(r, "the value of '%.60s' is on another tape", name->text);
    }
    *out = *slot;
    return true;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool collect(cot__evaluation *r, cot__item_kind kind, int n, const cot__item *from, cot__item *out) {
    cot__item *items = cot__store_take(&r->pool, (size_t)(n + 1) * sizeof *items);
    if (!items) return cot__expr_short_of_memory(r->error);
    memcpy(items, from, (size_t)n * sizeof *items);
    *out = (cot__item){.kind = kind, .n = n, .as.items = items};
    return true;
}

/* Pushes the parts of a tuple, or of an array along its first axis. */
static bool unpack(cot__evaluation *r, cot__item *top) {
    int  n = r->step->n;
    char words[100];
    if (cot__is_sequence(top) && top->n == n) {
        memcpy(top + 1, top->as.items, (size_t)n * sizeof *top);
        return true;
    }
    if (top->kind == ITEM_VAR) {
        cot_shape s = cot_shape_of(top->as.var);
        if (s.ndim > 0 && s.dim[0] == n) {
            for (int i = 0; i < n; i++)
                if (!cot__checked(r, (cot_index)(top->as.var, 0, i), &top[1 + i])) return false;
            return true;
        }
    }
    return cot__evaluation_fail(r, "%d name%s for %s", n, n == 1 ? "" : "s", cot__item_words(top, words, sizeof words));
}

typedef struct machine {
    cot__item             *slots, *stack;
    int                   *stores; /* by name: values that it was given to; NULL: not counted */
    int                    inputs;
    const cot__expr_input *input;
} machine;

/* The value of `a = x*y` is called a, if nothing else calls it: an input keeps its name, and so
 * does the value of b in `a = b`. A name that is used again counts: a, a₂, a₃. */
static bool name_value(cot__evaluation *r, machine *m, int64_t first, const cot__item *x) {
    const cot__name *name = &r->e->names[r->step->n];
    char             called[80], digits[16];
    if (!m->stores || x->kind != ITEM_VAR || (int64_t)cot__index(x->as.var) < first ||
        cot__name_of(r->t, cot__index(x->as.var)))
        return true;
    int n = ++m->stores[r->step->n];
    snprintf(called, sizeof called, "%.30s", name->text);
    snprintf(digits, sizeof digits, "%d", n);
    for (const char *d = digits; n > 1 && *d; d++)
        snprintf(called + strlen(called), 4, "%s", (char[]){'\xe2', '\x82', (char)('\x80' + (*d - '0')), 0});
    return cot_is_valid(cot_name(x->as.var, called)) || cot__evaluation_tape_failed(r);
}

static bool loop(cot__evaluation *r, machine *m, spans *sp, cot__item *result) {
    const cot__expr_step *s = r->e->steps, *end = s + r->e->count;
    cot__item       *top = m->stack - 1, z = {.kind = ITEM_UNSET};
    for (; s < end; s++) {
        bool ok = true, truth;
        r->step = s;
        r->odd = 0;
        switch ((cot__expr_step_kind)s->kind) {
        case STEP_PUSH: *++top = s->as.item; break;
        case STEP_LOAD: ok = load(r, m->slots, m->inputs, m->input, ++top); break;
        case STEP_STORE:
            m->slots[s->n] = *top;
            ok = name_value(r, m, sp->first, top);
            break;
        case STEP_UNPACK:
            ok = unpack(r, top);
            top += s->n;
            break;
        case STEP_DROP: top--; break;
        case STEP_UNARY:
            see_operands(r, 1, top);
            ok = cot__operate_unary(r, s->what, top, &z);
            see_result(r, &z);
            *top = z;
            break;
        case STEP_BINARY:
            see_operands(r, 2, top - 1);
            ok = cot__operate_binary(r, s->what, top - 1, top, &z);
            see_result(r, &z);
            *--top = z;
            break;
        case STEP_COMPARE:
            ok = cot__operate_compare(r, s->what, top - 1, top, &z);
            *--top = z;
            break;
        case STEP_COMPARE_ON:
            ok = cot__operate_compare(r, s->what, top - 1, top, &z);
            top[-1] = z;
            break;
        case STEP_BOTH:
            ok = cot__operate_both(r, top - 1, top, &z);
            *--top = z;
            break;
        case STEP_NOT:
            ok = cot__operate_truth(r, "'not'", "logical_not(x)", top, &truth);
            if (ok) *top = cot__item_bool(!truth);
            break;
        case STEP_JUMP: s += s->n; break;
        case STEP_CHOOSE:
            ok = cot__operate_truth(r, "the condition of 'if'", "where(condition, a, b)", top--, &truth);
            if (ok && !truth) s += s->n;
            break;
        case STEP_AND:
        case STEP_OR: {
            bool both = s->kind == STEP_AND;
            ok = cot__operate_truth(r, both ? "'and'" : "'or'", both ? "logical_and(x, y)" : "logical_or(x, y)", top,
                                    &truth);
            if (ok && truth != both)
                s += s->n;
            else
                top--;
            break;
        }
        case STEP_LIST:
        case STEP_TUPLE:
            ok = collect(r, s->kind == STEP_LIST ? ITEM_LIST : ITEM_TUPLE, s->n, top + 1 - s->n, &z);
            top -= s->n;
            *++top = z;
            break;
        case STEP_SLICE:
            ok = collect(r, ITEM_SLICE, 3, top - 2, &z);
            top -= 2;
            *top = z;
            break;
        case STEP_INDEX:
            ok = cot__operate_index(r, top - s->n, s->n, top + 1 - s->n, &z);
            top -= s->n;
            *top = z;
            break;
        case STEP_ATTRIBUTE:
            ok = cot__operate_attribute(r, top, s->as.item.as.text, &z);
            *top = z;
            break;
        case STEP_CALL:
            see_operands(r, s->n, top + 1 - s->n);
            ok = cot__operate_call(r, top + 1 - s->n, &z);
            see_result(r, &z);
            top -= s->n;
            *++top = z;
            break;
        }
        if (!ok || !note(sp, r)) return false;
    }
    *result = *top;
    return true;
}

static bool finish(cot__evaluation *r, spans *sp, cot_dtype real, const cot__item *x, cot_var *out) {
    char words[100];
    if (x->kind == ITEM_TUPLE)
        return cot__evaluation_fail_at(
            r, r->step->start, r->step->stop,
            "the result is %s; an array is written [a, b]; or choose one, as in (…)[0], or name them: a, b = …",
            cot__item_words(x, words, sizeof words));
    if (!cot__is_plain(x) && x->kind != ITEM_VAR && x->kind != ITEM_LIST)
        return cot__evaluation_fail_at(r, r->step->start, r->step->stop, "the result is %s, not a number or an array%s",
                                       cot__item_words(x, words, sizeof words),
                                       x->kind == ITEM_SPARSE ? "; to_dense(…) makes an array of it" : "");
    if (real == COT_DTYPE_COUNT || (x->kind != ITEM_INTEGER && x->kind != ITEM_NUMBER))
        return cot__to_var(r, x, out) && note(sp, r);
    *out = (cot_full)(r->t, real, COT_SCALAR, cot__plain_value(x));
    return (cot_is_valid(*out) || cot__evaluation_tape_failed(r)) && note(sp, r);
}

cot_var cot__expr_run(const cot__expr *e, cot_tape *t, int n, const cot__expr_input *inputs, cot__expr_error *error,
                      cot__expr_span **out, int64_t *span_count) {
    return cot__expr_run_as(e, t, COT_DTYPE_COUNT, n, inputs, error, out, span_count);
}

cot_var cot__expr_run_as(const cot__expr *e, cot_tape *t, cot_dtype real, int n, const cot__expr_input *inputs,
                         cot__expr_error *error, cot__expr_span **out, int64_t *span_count) {
    cot__expr_error unused;
    cot_var         result = COT_NONE;
    if (!error) error = &unused;
    *error = (cot__expr_error){0};
    if (out) *out = NULL;
    if (span_count) *span_count = 0;
    if (!e || cot_tape_status(t) != COT_OK) {
        error->status = e ? cot_tape_status(t) : COT_VALUE;
        snprintf(error->message, sizeof error->message, "%s",
                 !e  ? "no program is given"
                 : t ? cot_tape_message(t)
                     : "memory is short");
        return result;
    }
    cot__evaluation  r = {.e = e, .t = t, .pool = {.al = e->pool.al}, .error = error};
    spans     sp = {.first = cot_tape_length(t), .wanted = out && span_count};
    machine   m = {.inputs = n, .input = inputs};
    cot__item value;
    m.slots = cot__store_take(&r.pool, (e->name_count + 1) * sizeof *m.slots);
    m.stack = cot__store_take(&r.pool, (e->height + 1) * sizeof *m.stack);
    if (sp.wanted) m.stores = cot__store_take(&r.pool, (e->name_count + 1) * sizeof *m.stores);
    if (m.stores) count_inputs(e, m.stores, n, inputs);
    if (m.slots) fill(e, m.slots, n, inputs);
    bool ok = m.slots && m.stack ? loop(&r, &m, &sp, &value) && finish(&r, &sp, real, &value, &result)
                                 : cot__expr_short_of_memory(error);
    cot__store_free(&r.pool);
    if (ok && sp.wanted) {
        *out = sp.list;
        *span_count = sp.n;
    } else {
        free(sp.list);
    }
    return ok ? result : COT_NONE;
}
