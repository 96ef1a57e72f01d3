/* step_change.c: a change is tried; if the expression cannot take it, the old value is put back. */
#include "step/step_change.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "problem/values.h"

enum { NAMES = 64, ROOM = 400 };

static problem_input *find(problem *p, const char *name, failure *why) {
    const char *names[NAMES];
    char        list[ROOM] = "";
    size_t      used = 0;
    int         n = 0;
    for (int k = 0; k < p->n; k++)
        if (strcmp(p->inputs[k].name, name) == 0) return &p->inputs[k];
    if (p->n == 0) {
        failure_usage(why, "the expression has no inputs to change");
        return NULL;
    }
    for (; n < p->n && n < NAMES; n++) {
        names[n] = p->inputs[n].name;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%.60s", n ? ", " : "", names[n]);
    }
    const char *near = *name ? cot__nearest(name, n, names) : NULL;
    if (near)
        failure_usage(why, "there is no input %.60s; did you mean %s?", name, near);
    else if (*name)
        failure_usage(why, "there is no input %.60s; there is %s", name, list);
    else
        failure_usage(why, "write name = value, with a name of %s", list);
    return NULL;
}

/* The name and, behind the =, the value. */
static problem_input *take_apart(problem *p, const char *text, const char **value, failure *why) {
    char        name[ROOM];
    const char *equals = strchr(text, '=');
    text += strspn(text, " \t");
    size_t length = equals && equals > text ? (size_t)(equals - text) : 0;
    while (length > 0 && strchr(" \t", text[length - 1])) length--;
    snprintf(name, sizeof name, "%.*s", length < ROOM ? (int)length : ROOM - 1, text);
    *value = equals ? equals + 1 : NULL;
    return find(p, name, why);
}

static bool may_be_wanted(const problem *p, problem_input *in, failure *why) {
    bool is_float = cot__dtype_is_float(in->value.dtype);
    if (!p->o->wrt) in->wanted = is_float;
    if (!in->wanted || is_float) return true;
    return failure_usage(why, "--wrt: %s is %s, and only floats have derivatives", in->name,
                         cot_dtype_name(in->value.dtype));
}

bool step_change(traced *x, const char *text, failure *why, failure *f) {
    const char    *value;
    problem_input *in = take_apart(&x->p, text, &value, why);
    if (!in) return false;
    problem_input old = *in;
    if (!value_read(in->name, value, x->p.o->dtype, &in->value, why)) {
        in->value = old.value;
        return false;
    }
    bool fits = may_be_wanted(&x->p, in, why);
    if (fits && traced_again(x, why)) {
        free(old.value.data);
        return true;
    }
    free(in->value.data);
    in->value = old.value;
    in->wanted = old.wanted;
    if (fits) traced_again(x, f);
    return false;
}
