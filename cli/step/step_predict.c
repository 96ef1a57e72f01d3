/* step_predict.c: questions about the next step, and answers to them. */
#include "step/step_predict.h"

#include "base/number.h"
#include "tape/show.h"

#include <math.h>
#include <string.h>

/* The number that the next step finds and what it is called; false: it finds none, or an array. */
static bool next_number(const step_view *v, double *number, char *name, size_t size) {
    const cot__trace *tr = v->x->trace;
    step_model        next = *v->m;
    int64_t           index, node, stride[COT_MAX_NDIM];
    cot__view         value;
    char              own[128], rule[COT__TRACE_TEXT];
    if (v->m->at >= step_last(v->m)) return false;
    next.at++;
    step_phase phase = step_where(&next, &index);
    if (phase == STEP_FORWARD) {
        value = tr->nodes[index].value;
        if (tr->nodes[index].nargs == 0 || tr->nodes[index].overwritten) return false;
        cot__trace_call(tr, index, rule, sizeof rule);
        snprintf(name, size, "%.60s = %.120s", cot__trace_label(tr, index, own, sizeof own), rule);
    } else if (phase == STEP_REVERSE && v->tangents->on) {
        tangents_walk(v->tangents, index, &node, v->x);
        if (index % (1 + v->tangents->count) == 0) return false;
        tangents_read(v->tangents, v->x, node, index + 1, &value, stride);
        cot__tangent_rule(tr, node, rule, sizeof rule);
        cot__with_mark(cot__trace_label(tr, node, own, 120), COT__DOT, name, size);
        size_t used = strlen(name);
        snprintf(name + used, size - used, " = %.120s", rule);
    } else if (phase == STEP_REVERSE && tr->steps[index].add_count > 0) {
        const cot__trace_add *add = &tr->steps[index].adds[0];
        value = add->amount;
        cot__trace_filled(tr, index, 0, rule, sizeof rule);
        cot__with_bar(cot__trace_label(tr, cot__trace_find(tr, add->to), own, 120), name, size);
        size_t used = strlen(name);
        snprintf(name + used, size - used, " += %.120s", rule);
    } else
        return false;
    if (value.ndim > 0) return false;
    *number = cot__load_f64(value.data, value.dtype);
    return isfinite(*number);
}

void predict_ask(const step_view *v) {
    double number;
    char   name[256];
    if (!next_number(v, &number, name, sizeof name)) {
        step_say(v->m, false, "the next step finds no single number; go on, and try p there");
        return;
    }
    step_ask(v->m, STEP_PREDICT);
    snprintf(v->m->question, sizeof v->m->question, "%s  + - 0 or a number: ", name);
}

void predict_judge(const step_view *v) {
    double number = 0, said;
    char   name[256], shown[32], *end;
    next_number(v, &number, name, sizeof name);
    const char *text = v->m->typed + strspn(v->m->typed, " ");
    bool        sign = (*text == '+' || *text == '-') && text[1 + strspn(text + 1, " ")] == 0;
    said = sign ? (*text == '+' ? 1 : -1) : cot__read_number(text, &end);
    if (!sign && (end == text || end[strspn(end, " ")])) {
        step_say(v->m, true, "a prediction is +, - or 0, or a number, not '%.40s'", text);
        return;
    }
    bool right = sign || said == 0 ? (said > 0) - (said < 0) == (number > 0) - (number < 0)
                                   : fabs(said - number) <= fabs(number) / 20;
    v->m->asked++;
    v->m->right += right;
    cot__trace_value_text(&(cot__view){&number, COT_F64, 0, NULL, NULL}, 20, shown, sizeof shown);
    name[strcspn(name, " ")] = 0; /* without the rule */
    step_say(v->m, false, "%s %s is %s. Right so far: %d of %d.", right ? "Right:" : "Not so:", name, shown,
             v->m->right, v->m->asked);
    step_on(v->m);
}
