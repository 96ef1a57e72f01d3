/* show.c: nodes and values as text. Nothing here changes a tape or allocates. */
#include "tape/show.h"

#include "backend/elements.h"

#include <string.h>

/* ---- elements -------------------------------------------------------------------------------- */

const char *cot__place(const cot__view *v, int64_t index, char *buf) {
    int64_t   at[COT_MAX_NDIM];
    cot__text x = cot__text_buffer(buf, COT__SHAPE_TEXT);
    for (int k = v->ndim - 1; k >= 0; k--) at[k] = index % v->shape[k], index /= v->shape[k];
    for (int k = 0; k < v->ndim; k++) cot__putf(&x, k ? ",%lld" : "[%lld", (long long)at[k]);
    if (v->ndim) cot__put(&x, "]");
    return buf;
}

void cot__show_element(cot__text *x, const cot__backend *b, const cot__view *v, int64_t index) {
    if (v->dtype == COT_BOOL)
        cot__put(x, cot__element_i64(b, v, index) ? "true" : "false");
    else if (cot__dtype_is_float(v->dtype))
        cot__put_number(x, cot__element_f64(b, v, index));
    else
        cot__putf(x, "%lld", (long long)cot__element_i64(b, v, index));
}

/* ---- values ---------------------------------------------------------------------------------- */

enum { FEW = 8 }; /* elements that are shown one by one */

static void show_few(cot__text *x, const cot__backend *b, const cot__view *v, int64_t size) {
    for (int64_t i = 0; i < size; i++) {
        int64_t inner = 1;
        int     edges = 0; /* rows that begin, and as many end, at this element */
        for (int k = v->ndim - 1; k >= 0 && i % (inner *= v->shape[k]) == 0; k--) edges++;
        if (i) cot__put(x, " ");
        for (int k = 0; k < edges; k++) cot__put(x, "[");
        cot__show_element(x, b, v, i);
        inner = 1, edges = 0;
        for (int k = v->ndim - 1; k >= 0 && (i + 1) % (inner *= v->shape[k]) == 0; k--) edges++;
        for (int k = 0; k < edges; k++) cot__put(x, "]");
    }
}

/* The extremes of the finite elements; one element that a broadcast repeats is looked at once. */
static void show_range(cot__text *x, const cot__backend *b, const cot__view *all) {
    double        lo = INFINITY, hi = -INFINITY;
    int64_t       odd = 0, shape[COT_MAX_NDIM];
    cot__elements e;
    for (int k = 0; k < all->ndim; k++) shape[k] = all->stride[k] == 0 ? 1 : all->shape[k];
    cot__view v = {all->data, all->dtype, all->ndim, shape, all->stride};
    cot__elements_open(&e, b, &v, COT_F64);
    while (cot__elements_next(&e))
        for (int k = 0; k < e.n; k++) {
            if (!isfinite(e.f64[k])) {
                odd++;
                continue;
            }
            lo = e.f64[k] < lo ? e.f64[k] : lo;
            hi = e.f64[k] > hi ? e.f64[k] : hi;
        }
    if (odd == e.size) {
        cot__put(x, "no finite element");
        return;
    }
    cot__put_number(x, lo);
    if (lo == hi) cot__put(x, odd ? "" : " everywhere");
    else cot__put(x, " … "), cot__put_number(x, hi);
    if (odd) cot__putf(x, ", %lld not finite", (long long)(odd * (cot__count(all->ndim, all->shape) / e.size)));
}

void cot__show_values(cot__text *x, const cot__backend *b, const cot__view *v) {
    int64_t size = cot__count(v->ndim, v->shape);
    if (v->ndim == 0)
        cot__show_element(x, b, v, 0);
    else if (size == 0)
        cot__put(x, "[]");
    else if (size <= FEW)
        show_few(x, b, v, size);
    else
        show_range(x, b, v);
}

static bool in_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The operand that the word is the name of; 3: the result; -1: none of them. */
static int operand_called(const cot__node *n, const char *word, size_t length) {
    int  count = cot__nargs(n), nargs = count < 3 ? count : 3;
    char buf[16];
    for (int k = 0; k < nargs; k++) {
        const char *name = cot__operand_letter(n->op, k, count, buf);
        if (strlen(name) == length && strncmp(name, word, length) == 0) return k;
    }
    return length == 1 && *word == 'z' ? 3 : -1;
}

const char *cot__filled_bar(const cot_tape *t, uint32_t node, const char *formula, const char *bar, char *buf,
                            size_t size) {
    const cot__node *n = &t->nodes[node];
    cot__text        x = cot__text_buffer(buf, size);
    char             called[COT__CALLED_TEXT];
    for (size_t length; *formula; formula += length) {
        for (length = 0; in_word(formula[length]);) length++;
        int      k = operand_called(n, formula, length);
        uint32_t a = k < 0 ? COT__NONE : k < 3 ? cot__arg(n, k) : node;
        if (bar && length == 1 && *formula == 'g') {
            cot__put(&x, bar);
        } else if (k < 0) {
            length += !length;
            for (size_t i = 0; i < length; i++) cot__put(&x, (char[]){formula[i], 0});
        } else if (a == COT__NONE)
            cot__put_number(&x, n->extra.number);
        else
            cot__put(&x, cot__called(t, a, called));
    }
    return buf;
}

const char *cot__filled(const cot_tape *t, uint32_t node, const char *formula, char *buf, size_t size) {
    return cot__filled_bar(t, node, formula, NULL, buf, size);
}

void cot__show_value(cot__text *x, const cot_tape *t, uint32_t node) {
    cot__view v = cot__look(t, node);
    if (cot__in_body(&t->nodes[node]))
        cot__put(x, "(in a body)");
    else if (cot__is_stale(&t->nodes[node]))
        cot__put(x, "(overwritten)");
    else
        cot__show_values(x, t->backend, &v);
}

/* ---- operations ------------------------------------------------------------------------------ */

/* One attribute: `name` and its code, see cot__op.attrs. Returns how many integers it took. */
static uint32_t show_attribute(cot__text *x, const char *name, int length, char code, const cot__attr *a, uint32_t at) {
    int64_t v = at < a->nints ? a->ints[at] : 0;
    if ((code == 'f' && !v) || (code == 'u' && v == 1)) return 1;
    cot__putf(x, ", %.*s", length, name);
    if (code == 'f' && v == 1) return 1;
    cot__put(x, "=");
    if (code == 'n') {
        cot__put_number(x, a->number);
        return 0;
    }
    if (cot__attr_is_list(code)) {
        for (uint32_t k = at; k < a->nints; k++) cot__putf(x, k > at ? ",%lld" : "%lld", (long long)a->ints[k]);
        return a->nints - at;
    }
    if (code != 'm') {
        cot__putf(x, "%lld", (long long)v);
        return 1;
    }
    const char *comma = "";
    for (int k = 0; k < COT_MAX_NDIM; k++)
        if (v >> k & 1) cot__putf(x, "%s%d", comma, k), comma = ",";
    return 1;
}

static void show_attributes(cot__text *x, const cot__op *op, const cot__attr *a) {
    uint32_t at = 0;
    for (const char *p = op->attrs ? op->attrs : "ints:l"; *p;) {
        const char *colon = strchr(p, ':');
        at += show_attribute(x, p, (int)(colon - p), colon[1], a, at);
        for (p = colon + 2; *p == ' ';) p++;
    }
}

void cot__show_operation(cot__text *x, const cot_tape *t, uint32_t node) {
    char             called[COT__CALLED_TEXT];
    const cot__node *n = &t->nodes[node];
    const cot__op   *op = cot__op_of(n->op);
    const cot__attr *a = n->op >= OP_structural && op->kind != KIND_SOURCE ? n->extra.attr : NULL;
    bool             call = a && a->nints > 0;
    if (n->op == OP_pick) {
        cot__putf(x, "pick %u of %s", node - n->a, cot__called(t, n->a, called));
        return;
    }
    cot__put(x, cot__op_name(t, node));
    for (int k = 0, count = cot__nargs(n); k < count; k++) {
        uint32_t arg = cot__arg(n, k);
        cot__put(x, !call ? " " : k ? ", " : "(");
        if (arg == COT__NONE)
            cot__put_number(x, n->extra.number);
        else
            cot__put(x, cot__called(t, arg, called));
    }
    if (!call) return;
    show_attributes(x, op, a);
    cot__put(x, ")");
}

void cot__show_type(cot__text *x, const cot_tape *t, uint32_t node) {
    char text[COT__SHAPE_TEXT];
    cot__put(x, cot__dtype_name(cot__dtype_at(&t->nodes[node])));
    if (cot__has_axes(&t->nodes[node])) cot__put(x, cot__shape_text_at(t, node, text));
}

/* ---- lines ----------------------------------------------------------------------------------- */

enum { TYPE_COLUMN = 24, VALUE_COLUMN = 38 };

void cot__show_node(cot__text *x, const cot_tape *t, uint32_t node) {
    char called[COT__CALLED_TEXT];
    cot__put(x, cot__called(t, node, called));
    cot__put(x, " = ");
    cot__show_operation(x, t, node);
    cot__tab(x, TYPE_COLUMN);
    cot__show_type(x, t, node);
    cot__tab(x, VALUE_COLUMN);
    cot__show_value(x, t, node);
}

void cot__show_origin(cot__text *x, const cot_tape *t, uint32_t node) {
    const char     *name = cot__is_called_by_name(t, node) ? NULL : cot__name_of(t, node);
    const cot_site *site = cot__site_of(t, node);
    if (name) {
        cot__tab(x, COT__ORIGIN_COLUMN);
        cot__put(x, "\"");
        cot__put(x, name);
        cot__put(x, "\"");
    }
    if (!site) return;
    const char *slash = strrchr(site->file, '/');
    cot__tab(x, COT__ORIGIN_COLUMN);
    cot__put(x, slash ? slash + 1 : site->file);
    cot__putf(x, ":%d", site->line);
}
