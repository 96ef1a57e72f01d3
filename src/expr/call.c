/* call.c: a call when it runs. Each argument becomes a value of the type that the library's
 * function takes, or an error that names the parameter. */
#include "expr/program.h"

#include "base/number.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct call {
    cot__evaluation             *r;
    const cot__callee    *f;
    const cot__parameter *parameter;
    uint32_t              start, stop; /* the present argument in the text */
    /* plain numbers stay numbers: they take the dtype of the other operands */
    bool                  weak;
} call;

static bool wrong(const call *c, const cot__item *x, const char *wanted) {
    char words[100];
    return cot__evaluation_fail_at(c->r, c->start, c->stop, "[%s] %s must be %s, not %s%s", c->f->name,
                                   c->parameter->name, wanted, cot__item_words(x, words, sizeof words),
                                   x->kind == ITEM_SPARSE ? "; to_dense(…) makes an array of it, .data its entries"
                                                          : "");
}

/* A default value, from its text in the table. */
static cot__item fallback(const char *text) {
    cot_dtype dtype;
    if (strcmp(text, "None") == 0) return (cot__item){.kind = ITEM_NONE};
    if (strcmp(text, "True") == 0) return cot__item_bool(true);
    if (strcmp(text, "False") == 0) return cot__item_bool(false);
    if (cot__dtype_named(text, strlen(text), &dtype)) return (cot__item){.kind = ITEM_DTYPE, .as.integer = dtype};
    if (text[0] == '\'') return (cot__item){.kind = ITEM_TEXT, .as.text = text};
    if (strpbrk(text, ".e")) return cot__item_number(cot__read_number(text, NULL));
    return cot__item_integer(strtoll(text, NULL, 10));
}

/* ---- single values --------------------------------------------------------------------------- */

static bool to_var(const call *c, const cot__item *x, bool weak, cot_var *out) {
    if (!cot__is_plain(x) && x->kind != ITEM_VAR && !cot__is_sequence(x)) return wrong(c, x, "a number or an array");
    return weak ? cot__to_operand(c->r, x, out) : cot__to_var(c->r, x, out);
}

static bool to_int(const call *c, const cot__item *x, const char *wanted, int64_t *out) {
    if (!cot__as_integer(x, out) || x->kind == ITEM_BOOL) return wrong(c, x, wanted);
    return true;
}

/* Does x fit a parameter that is a C int? A number that does not fit is shown as it was written.
 * Cut to an int, another number would stand in the library's message. */
static bool is_int(const call *c, int64_t x) {
    if (x <= INT_MAX && x >= -INT_MAX) return true;
    return cot__evaluation_fail_at(c->r, c->start, c->stop, "[%s] %s is %lld; it must lie between %d and %d",
                                   c->f->name, c->parameter->name, (long long)x, -INT_MAX, INT_MAX);
}

/* For a parameter that is a double: an integer beyond 2^53 may have no exact double, and is refused
 * rather than changed in silence. */
static bool to_exact(const call *c, int64_t x, double *out) {
    *out = (double)x;
    if (*out < 0x1p63 && (int64_t)*out == x) return true;
    return cot__evaluation_fail_at(
        c->r, c->start, c->stop,
        "[%s] %s is %lld, which becomes %.0f as a floating-point number; add the rest to the result", c->f->name,
        c->parameter->name, (long long)x, *out);
}

static bool to_real(const call *c, const cot__item *x, double *out) {
    if (x->kind == ITEM_INTEGER) return to_exact(c, x->as.integer, out);
    if (cot__is_plain(x)) {
        *out = cot__plain_value(x);
        return true;
    }
    if (x->kind != ITEM_VAR || cot_size(x->as.var) != 1 || cot__has_no_number(x->as.var))
        return wrong(c, x, "a number");
    if (cot_requires_grad(x->as.var))
        return cot__evaluation_fail_at(
            c->r, c->start, c->stop,
            "[%s] %s is a fixed number here: no derivative flows through it; write detach(…) if that is meant",
            c->f->name, c->parameter->name);
    if (cot_dtype_of(x->as.var) == COT_I64) return to_exact(c, cot_value_i64(x->as.var), out);
    *out = cot_value(x->as.var);
    return true;
}

static bool to_flag(const call *c, const cot__item *x, bool *out) {
    int64_t i;
    if (!cot__as_integer(x, &i) || (i != 0 && i != 1)) return wrong(c, x, "True or False");
    *out = i == 1;
    return true;
}

static bool to_dtype(const call *c, const cot__item *x, cot_dtype *out) {
    if (x->kind == ITEM_DTYPE) {
        *out = (cot_dtype)x->as.integer;
        return true;
    }
    if (x->kind == ITEM_TEXT && cot__dtype_named(x->as.text, strlen(x->as.text), out)) return true;
    if (x->kind == ITEM_NONE && c->parameter->fallback && strcmp(c->parameter->fallback, "None") == 0) {
        *out = COT_DTYPE_COUNT;
        return true;
    }
    return wrong(c, x, "a dtype (float64, float32, bfloat16, float16, int64, int32, uint8 or bool)");
}

static bool to_text(const call *c, const cot__item *x, const char **out) {
    if (x->kind != ITEM_TEXT) return wrong(c, x, "a string");
    *out = x->as.text;
    if (x->as.text[0] != '\'') return true;
    /* a default stands in quotes */
    char *copy = cot__store_text(&c->r->pool, x->as.text + 1, strlen(x->as.text) - 2);
    *out = copy;
    return copy ? true : cot__expr_short_of_memory(c->r->error);
}

static bool to_order(const call *c, const cot__item *x, cot__order *out) {
    *out = (cot__order){.kind = x->kind == ITEM_NONE   ? ORDER_NONE
                                : x->kind == ITEM_TEXT ? ORDER_FROBENIUS
                                                       : ORDER_GIVEN,
                        .p    = 2};
    if (x->kind == ITEM_TEXT && strcmp(x->as.text, "nuc") == 0)
        return cot__evaluation_fail_at(c->r, c->start, c->stop, "[norm] ord='nuc' is not here; write sum(svdvals(x))");
    if (x->kind == ITEM_NONE || (x->kind == ITEM_TEXT && strcmp(x->as.text, "fro") == 0)) return true;
    if (x->kind == ITEM_TEXT) return wrong(c, x, "a number, inf, 'fro' or None");
    return to_real(c, x, &out->p);
}

/* ---- several --------------------------------------------------------------------------------- */

/* Integers: one, a list, or an array of them. *n is at most `most`. */
static bool to_integers(const call *c, const cot__item *x, const char *wanted, int most, int *n, int64_t *out) {
    if (cot__as_integer(x, out) && x->kind != ITEM_BOOL) {
        *n = 1;
        return true;
    }
    if (x->kind == ITEM_VAR && cot_shape_of(x->as.var).ndim == 1 && !cot__dtype_is_float(cot_dtype_of(x->as.var))) {
        if (cot_size(x->as.var) > most || cot__has_no_number(x->as.var)) return wrong(c, x, wanted);
        *n = (int)cot_size(x->as.var);
        return cot_read_as(x->as.var, COT_I64, out, *n) == COT_OK || cot__evaluation_tape_failed(c->r);
    }
    if (!cot__is_sequence(x)) return wrong(c, x, wanted);
    if (x->n > most)
        return cot__evaluation_fail_at(c->r, c->start, c->stop, "[%s] %s has %d entries; at most %d are possible",
                                       c->f->name, c->parameter->name, x->n, most);
    *n = x->n;
    for (int i = 0; i < x->n; i++)
        if (!to_int(c, &x->as.items[i], wanted, &out[i])) return false;
    return true;
}

/* max and min take several numbers, as in Python. */
static bool is_largest(const cot__callee *f) {
    return strcmp(f->function, "max") == 0 || strcmp(f->function, "min") == 0;
}
static bool two_numbers(const call *c, const cot__item *x) {
    bool largest = c->f->function[1] == 'a';
    if (x->kind == ITEM_INTEGER)
        return cot__evaluation_fail_at(c->r, c->start, c->stop,
                                       "[%s] this is the axis, and a single number has none; the %s of two is %s(x, y)",
                                       c->f->name, largest ? "larger" : "smaller", largest ? "maximum" : "minimum");
    return wrong(c, x,
                 largest ? "an integer (the larger of two is maximum(x, y))"
                         : "an integer (the smaller of two is minimum(x, y))");
}

static bool to_axes(const call *c, const cot__item *x, cot_axes *out) {
    int64_t list[COT_MAX_NDIM];
    *out = (cot_axes){.n = -1};
    if (x->kind == ITEM_NONE) return true;
    if (is_largest(c->f) && (x->kind == ITEM_VAR || x->kind == ITEM_NUMBER)) return two_numbers(c, x);
    if (!to_integers(c, x, "an integer, a list of integers or None", COT_MAX_NDIM, &out->n, list)) return false;
    for (int i = 0; i < out->n; i++) {
        if (!is_int(c, list[i])) return false;
        out->axis[i] = (int)list[i];
    }
    return true;
}

static bool to_shape(const call *c, const cot__item *x, cot_shape *out) {
    *out = (cot_shape){.ndim = 0};
    return to_integers(c, x, "a list of integers", COT_MAX_NDIM, &out->ndim, out->dim);
}

/* One integer for each spatial axis (conv2d has two), or one for all. */
static bool to_three(const call *c, const cot__item *x, int64_t *out) {
    int n, axes = c->f->name[strlen(c->f->name) - 2] - '0';
    out[0] = out[1] = out[2] = 0;
    if (!to_integers(c, x, "an integer, or a list with one for each spatial axis", axes, &n, out)) return false;
    for (int i = 1; i < axes && !cot__is_sequence(x) && x->kind != ITEM_VAR; i++) out[i] = out[0];
    return true;
}

static bool to_table(const call *c, const cot__item *x, cot__table *out) {
    static const char wanted[] = "an integer, a list of integers, or a list of lists of them";
    *out = (cot__table){.ndim = 0};
    if (!cot__is_sequence(x)) return to_int(c, x, wanted, &out->at[0]);
    bool nested = x->n > 0 && cot__is_sequence(&x->as.items[0]);
    out->ndim = nested ? 2 : 1;
    out->dim[0] = x->n;
    out->dim[1] = nested ? x->as.items[0].n : 1;
    if (x->n > COT_MAX_NDIM || out->dim[1] > COT_MAX_NDIM || x->n * out->dim[1] > COUNTOF(out->at))
        return wrong(c, x, "a shorter list");
    for (int i = 0; i < x->n; i++) {
        const cot__item *row = &x->as.items[i];
        if (nested != cot__is_sequence(row) || (nested && row->n != out->dim[1])) return wrong(c, x, wanted);
        for (int k = 0; k < out->dim[1]; k++) {
            int64_t *at = &out->at[i * out->dim[1] + k];
            if (!to_int(c, nested ? &row->as.items[k] : row, wanted, at)) return false;
            if (!is_int(c, *at)) return false;
        }
    }
    return true;
}

static bool to_vars(const call *c, const cot__item *x, cot__argument *out) {
    if (!cot__is_sequence(x)) return wrong(c, x, "a list of arrays, as in [a, b]");
    if (x->n == 0)
        return cot__evaluation_fail_at(c->r, c->start, c->stop, "[%s] %s is empty; at least one is needed", c->f->name,
                                       c->parameter->name);
    cot_var *xs = cot__store_take(&c->r->pool, (size_t)x->n * sizeof *xs);
    if (!xs) return cot__expr_short_of_memory(c->r->error);
    for (int i = 0; i < x->n; i++)
        if (!to_var(c, &x->as.items[i], false, &xs[i])) return false;
    out->list.n = x->n;
    out->list.xs = xs;
    return true;
}

/* ---- the call -------------------------------------------------------------------------------- */

static bool to_none(const call *c, cot__argument *out) {
    const cot__parameter *p = c->parameter;
    memset(out, 0, sizeof *out);
    switch (p->takes) {
    case TAKES_REAL: out->number = (double)p->none; break;
    case TAKES_THREE: out->three[0] = out->three[1] = out->three[2] = p->none; break;
    default: out->integer = p->none; break;
    }
    return true;
}

static bool argument(const call *c, const cot__item *x, cot__invocation *v, cot__argument *out) {
    int64_t i;
    if (x->kind == ITEM_NONE && c->parameter->has_none) return to_none(c, out);
    switch (c->parameter->takes) {
    case TAKES_VAR: return to_var(c, x, c->weak, &out->var);
    case TAKES_MAYBE:
        if (x->kind == ITEM_NONE) {
            out->var = COT_NONE;
            return true;
        }
        return to_var(c, x, false, &out->var);
    case TAKES_REST:
    case TAKES_VARS: return to_vars(c, x, out);
    case TAKES_AXES:
        if (is_largest(c->f) && x->kind == ITEM_INTEGER && cot_shape_of(v->arg[0].var).ndim == 0)
            return two_numbers(c, x);
        return to_axes(c, x, &out->axes);
    case TAKES_SHAPE: return to_shape(c, x, &out->shape);
    case TAKES_DTYPE: return to_dtype(c, x, &out->dtype);
    case TAKES_FLAG: return to_flag(c, x, &out->flag);
    case TAKES_INT: return to_int(c, x, "an integer", &out->integer) && is_int(c, out->integer);
    case TAKES_INTEGER: return to_int(c, x, "an integer", &out->integer);
    case TAKES_REAL:
        if (x->kind == ITEM_NUMBER || (x->kind == ITEM_VAR && cot__dtype_is_float(cot_dtype_of(x->as.var))))
            v->whole = false;
        return to_real(c, x, &out->number);
    case TAKES_THREE: return to_three(c, x, out->three);
    case TAKES_TABLE: return to_table(c, x, &out->table);
    case TAKES_KEY:
        if (!to_int(c, x, "an integer, the seed", &i)) return false;
        out->key = cot_key_of((uint64_t)i);
        return true;
    case TAKES_TEXT: return to_text(c, x, &out->text);
    case TAKES_ORDER: return to_order(c, x, &out->order);
    }
    return false;
}

/* The remaining positional arguments, as one list. */
static bool rest(cot__evaluation *r, const cot__item *given, int at, cot__item *out) {
    const cot__expr_step *s = r->step;
    cot__item       *items = cot__store_take(&r->pool, (size_t)(s->n + 1) * sizeof *items);
    if (!items) return cot__expr_short_of_memory(r->error);
    *out = (cot__item){.kind = ITEM_LIST, .n = 0, .as.items = items};
    for (int i = 0; i < s->n; i++)
        if (s->as.call.given[i].parameter == at) items[out->n++] = given[i];
    return true;
}

static bool arguments(cot__evaluation *r, const cot__item *given, cot__invocation *v) {
    const cot__expr_step *s = r->step;
    call             c = {.r = r, .f = s->as.call.callee};
    bool             mixed = c.f->elementwise;
    v->whole = true;
    for (int i = 0; i < s->n; i++) mixed = mixed || !cot__is_plain(&given[i]);
    for (int at = 0; at < c.f->n; at++) {
        cot__item x = {.kind = ITEM_UNSET};
        c.parameter = &c.f->parameter[at];
        c.weak = mixed && at < c.f->mixes;
        c.start = s->at;
        c.stop = s->at_stop;
        if (c.parameter->takes == TAKES_REST) {
            if (!rest(r, given, at, &x)) return false;
        } else {
            for (int i = 0; i < s->n; i++)
                if (s->as.call.given[i].parameter == at) {
                    x = given[i];
                    c.start = s->as.call.given[i].start;
                    c.stop = s->as.call.given[i].stop;
                }
            if (x.kind == ITEM_UNSET) x = fallback(c.parameter->fallback);
        }
        if (!argument(&c, &x, v, &v->arg[at])) return false;
        if (c.parameter->flattens && x.kind == ITEM_NONE) {
            v->arg[0].var = (cot_reshape)(v->arg[0].var, COT_SHAPE(-1));
            if (!cot_is_valid(v->arg[0].var)) return cot__evaluation_tape_failed(r);
        }
    }
    return true;
}

/* A function of plain numbers gives a plain number, so that sqrt(2)*x has the dtype of x. The nodes
 * that it recorded are rewound. */
static bool fold(cot__evaluation *r, const cot__item *given, cot__item *out) {
    cot_mark        mark = cot_tape_mark(r->t);
    cot__invocation v = {.tape = r->t};
    if (!arguments(r, given, &v)) return false;
    for (int i = 0; i < r->step->as.call.callee->n; i++) {
        cot_var  x = v.arg[i].var;
        cot__item item = (uintptr_t)x.tape == 2 ? cot__item_integer((int64_t)x.id) : cot__item_number(0);
        if ((uintptr_t)x.tape == 1) memcpy(&item.as.number, &x.id, sizeof item.as.number);
        if (!cot__to_var(r, &item, &v.arg[i].var)) return false;
    }
    r->step->as.call.callee->call(&v);
    cot_var z = v.result[0];
    if (!cot_is_valid(z)) return cot__evaluation_tape_failed(r);
    cot_dtype dtype = cot_dtype_of(z);
    *out = dtype == COT_BOOL              ? cot__item_bool(cot_value(z) != 0)
           : cot__dtype_is_float(dtype)   ? cot__item_number(cot_value(z))
                                          : cot__item_integer(cot_value_i64(z));
    cot_tape_rewind(r->t, mark);
    return true;
}

bool cot__operate_call(cot__evaluation *r, const cot__item *given, cot__item *out) {
    const cot__expr_step   *s = r->step;
    const cot__callee *f = s->as.call.callee;
    cot__invocation    v;
    bool               plain = f->elementwise, taken = false;
    for (int i = 0; i < s->n; i++) plain = plain && cot__is_plain(&given[i]);
    if (plain) return fold(r, given, out);
    for (int i = 0; i < s->n && !taken; i++)
        if (given[i].kind == ITEM_SPARSE && !cot__operate_sparse_call(r, given, out, &taken)) return false;
    if (taken) return true;
    memset(&v, 0, sizeof v);
    v.tape = r->t;
    if (!arguments(r, given, &v)) return false;
    f->call(&v);
    if (cot_tape_status(r->t) != COT_OK || v.results < 1) return cot__evaluation_tape_failed(r);
    if (!f->tuple) return cot__checked(r, v.result[0], out);
    cot__item *items = cot__store_take(&r->pool, (size_t)v.results * sizeof *items);
    if (!items) return cot__expr_short_of_memory(r->error);
    for (int i = 0; i < v.results; i++)
        if (!cot__checked(r, v.result[i], &items[i])) return false;
    *out = (cot__item){.kind = ITEM_TUPLE, .n = v.results, .as.items = items};
    return true;
}
