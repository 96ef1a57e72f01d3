/* elements.c: elements of values, and numbers, as C expressions. */
#include "program/emit/writer.h"
#include "backend/runs.h"
#include "base/element.h"
#include "base/number.h"

#include <string.h>

const char *cot__emit_type(cot_dtype d) {
    switch (d) {
    case COT_F64: return "double";
    case COT_F32: return "float";
    case COT_I64: return "int64_t";
    case COT_I32: return "int32_t";
    case COT_U8:
    case COT_BOOL: return "uint8_t";
    case COT_F16:
    case COT_BF16: return "uint16_t"; /* the bits; see passes/halves.c */
    default: return NULL;
    }
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* The shortest digits that read back as v. */
static void put_float(cot__text *to, double v, bool single) {
    char digits[48];
    if (isnan(v)) cot__put(to, single ? "NAN" : "(double)NAN");
    else if (isinf(v)) cot__putf(to, "(%s%sINFINITY)", v < 0 ? "-" : "", single ? "" : "(double)");
    else {
        for (int n = 1; n <= 17; n++) {
            cot__format(digits, sizeof digits, "%.*g", n, v);
            if (single ? cot__read_float(digits) == (float)v : cot__read_number(digits, NULL) == v) break;
        }
        bool minus = signbit(v);
        cot__putf(to, "%s%s%s%s%s", minus ? "(" : "", digits, strpbrk(digits, ".e") ? "" : ".0", single ? "f" : "",
                  minus ? ")" : "");
    }
}

void cot__put_i64(cot__text *to, int64_t v) {
    if (v == INT64_MIN) cot__put(to, "(-INT64_C(9223372036854775807) - 1)");
    else cot__putf(to, v < 0 ? "(-INT64_C(%lld))" : "INT64_C(%lld)", v < 0 ? -(long long)v : (long long)v);
}

void cot__emit_literal(cot__text *to, cot_dtype d, const void *element) {
    uint16_t half;
    if (d == COT_F16 || d == COT_BF16) memcpy(&half, element, sizeof half), cot__putf(to, "0x%04x", half);
    else if (cot__dtype_is_float(d)) put_float(to, cot__load_f64(element, d), d == COT_F32);
    else if (d == COT_I64) cot__put_i64(to, cot__load_i64(element, d));
    else if (d == COT_I32 && cot__load_i64(element, d) == INT32_MIN) cot__put(to, "INT32_MIN");
    else cot__putf(to, "%lld", (long long)cot__load_i64(element, d));
}

/* In an initialiser the types are known: whole numbers need no more than their digits. */
void cot__put_initial(cot__text *to, cot_dtype d, const void *element) {
    double v    = cot__dtype_is_float(d) ? cot__load_f64(element, d) : 0;
    bool   most = d == COT_I64 && cot__load_i64(element, d) == INT64_MIN;
    if (d == COT_F16 || d == COT_BF16) cot__emit_literal(to, d, element);
    else if (cot__dtype_is_float(d) ? !(fabs(v) < 1e6 && v == floor(v)) || (v == 0 && signbit(v)) : most)
        cot__emit_literal(to, d, element);
    else if (cot__dtype_is_float(d)) cot__putf(to, "%d", (int)v);
    else cot__putf(to, "%lld", (long long)cot__load_i64(element, d));
}

/* ---- places ---------------------------------------------------------------------------------- */

static void put_term(cot__writer *w, int64_t stride, const char *index, bool *first) {
    bool wraps = strchr(index, ' ') != NULL && stride != 1;
    cot__put(w->to, *first ? (stride < 0 ? "-" : "") : (stride < 0 ? " - " : " + "));
    if (stride != 1 && stride != -1) cot__putf(w->to, "%lld * ", stride < 0 ? -(long long)stride : (long long)stride);
    cot__putf(w->to, wraps ? "(%s)" : "%s", index);
    *first = false;
}

/* Without a place at[0], a negative stride would stand first: so the offset does. */
static void put_place(cot__writer *w, const cot__view *v, int64_t offset, const cot__at_index *at) {
    bool first = true, any = false;
    for (int k = 0; k < v->ndim; k++) any |= at->axis[k] && v->stride[k] != 0 && v->shape[k] != 1;
    if (offset != 0 || !any) cot__putf(w->to, "%lld", (long long)offset), first = false;
    for (int k = 0; k < v->ndim; k++)
        if (at->axis[k] && v->stride[k] != 0 && v->shape[k] != 1) put_term(w, v->stride[k], at->axis[k], &first);
}

static bool is_pointed(const cot__writer *w, uint32_t value) { return w->pointed && w->pointed[value]; }

static int64_t offset_of(const cot__writer *w, uint32_t value) {
    const cot__layout *l = &w->layout;
    if (l->plan.root[value] == value || is_pointed(w, value)) return 0;
    return l->plan.place[value] / cot__dtype_size(cot__value_view(l->p, value).dtype);
}

/* Is it a variable in the loop that is being printed? So are patches in one that is shifted. */
static bool is_local(const cot__writer *w, uint32_t root, const cot__at_index *at) {
    if (!w->loop || cot__value_origin(w->p, root) != COT__FROM_OPERATION) return false;
    uint32_t k = cot__value_maker(w->p, root);
    bool in_loop = cot__is_in_loop(&w->layout, k) || (at->shifted && cot__is_patch(w->p, k));
    return w->layout.block[k] == w->loop && in_loop;
}

static void put_bracketed(cot__writer *w, uint32_t value, const cot__at_index *at) {
    cot__view v = cot__plan_view(&w->layout.plan, value);
    int64_t   offset = offset_of(w, value);
    cot__put(w->to, "[");
    if (!at->flat || cot__repeats(&v)) put_place(w, &v, offset, at);
    else if (offset + at->shift) cot__putf(w->to, "%lld + %s", (long long)(offset + at->shift), at->flat);
    else cot__put(w->to, at->flat);
    cot__put(w->to, "]");
}

void cot__put_local(cot__writer *w, uint32_t value, int64_t shift) {
    cot__putf(w->to, "v_%u", cot__number_of(w, value));
    if (shift) cot__putf(w->to, "_%c%lld", shift < 0 ? 'm' : 'p', (long long)(shift < 0 ? -shift : shift));
}

void cot__put_element(cot__writer *w, uint32_t value, const cot__at_index *at) {
    uint32_t root = cot__root_of(&w->layout, value);
    if (is_local(w, root, at)) cot__put_local(w, root, at->shifted ? at->shift + offset_of(w, value) : 0);
    else {
        cot__put_name(w, is_pointed(w, value) ? value : root);
        if (w->layout.home[root] != COT__AT_NAME) put_bracketed(w, value, at);
    }
}

void cot__put_result(cot__writer *w, uint32_t value, const cot__at_index *at) {
    cot__put_name(w, value);
    if (w->layout.home[value] != COT__AT_NAME) put_bracketed(w, value, at);
}

void cot__put_operand(cot__writer *w, uint32_t k, int i, const cot__at_index *at, cot_dtype as) {
    uint32_t value = cot__operation_operand(w->p, k)[i];
    if (value == COT__NO_VALUE) {
        double number = cot__operation_number(w->p, k);
        int64_t element = 0; /* room for any */
        cot__store_f64(&element, as, number);
        cot__emit_literal(w->to, as, &element);
        return;
    }
    if (cot__value_view(w->p, value).dtype != as) cot__putf(w->to, "(%s)", cot__emit_type(as));
    cot__put_element(w, value, at);
}
