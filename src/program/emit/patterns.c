/* patterns.c: outputs that hold the entries of sparse matrices: where these stand, as constant
 * arrays beside the function. They are the only things in a file, besides the function, that others
 * can name. */
#include "program/emit/writer.h"
#include "base/number.h"

#include <string.h>

static const cot_sparse_info *pattern_of(const cot__writer *w, uint32_t k) {
    return w->o->patterns ? w->o->patterns[k] : NULL;
}

bool cot__patterns_fit(const cot__writer *w) {
    for (uint32_t k = 0; k < w->p->outputs; k++) {
        const cot_sparse_info *s = pattern_of(w, k);
        cot__view                v = cot__value_view(w->p, w->p->output[k]);
        if (!s) continue;
        if (s->nnz != cot__view_size(&v))
            return cot__refuse(w->caller, COT_SHAPE, "output %u has %lld elements, but a pattern of %lld entries", k,
                               (long long)cot__view_size(&v), (long long)s->nnz);
        if (s->nnz > INT32_MAX)
            return cot__refuse(w->caller, COT_LIMIT, "a pattern of %lld entries; at most %d are exported",
                               (long long)s->nnz, INT32_MAX);
    }
    return true;
}

static void own_name(const char *const *outputs, uint32_t k, char *name, size_t size) {
    char number[16];
    cot__format(number, sizeof number, "y%u", k);
    cot__emit_name(outputs && outputs[k] ? outputs[k] : number, name, size);
}

void cot__emit_pattern_name(const char *const *outputs, uint32_t k, char name[COT__PATTERN_NAME]) {
    char   other[COT__PATTERN_NAME - 12];
    size_t n;
    own_name(outputs, k, name, sizeof other);
    n = strlen(name);
    for (uint32_t before = 0; before < k; before++) {
        own_name(outputs, before, other, sizeof other);
        if (strcmp(name, other) != 0) continue;
        cot__format(name + n, COT__PATTERN_NAME - n, "_%u", k);
        return;
    }
}

static void put_array_head(cot__writer *w, uint32_t k, const char *what, int64_t n) {
    char name[COT__PATTERN_NAME];
    cot__emit_pattern_name(w->o->outputs, k, name);
    cot__putf(w->to, "const int32_t %s_%s_%s[%lld]", cot__function_name(w), name, what, (long long)(n ? n : 1));
}

void cot__declare_patterns(cot__writer *w) {
    for (uint32_t k = 0; k < w->p->outputs; k++) {
        const cot_sparse_info *s = pattern_of(w, k);
        if (!s) continue;
        cot__putf(w->to,
                  "\n/* %s: the %lld entries of a matrix (%lld,%lld) that can be other than zero, row by row: those of "
                  "row i\n * are row_start[i] to row_start[i + 1] - 1, and col holds their columns, ascending. */\n",
                  cot__output_name(w, k), (long long)s->nnz, (long long)s->rows, (long long)s->cols);
        cot__put(w->to, "extern ");
        put_array_head(w, k, "row_start", s->rows + 1);
        cot__put(w->to, ";\nextern ");
        put_array_head(w, k, "col", s->nnz);
        cot__put(w->to, ";\n");
    }
}

static void put_number(cot__writer *w, int64_t at, int64_t number) {
    cot__putf(w->to, "%s%lld", at == 0 ? "" : w->to->column > 100 ? ",\n    " : ", ", (long long)number);
}

void cot__put_patterns(cot__writer *w) {
    for (uint32_t k = 0; k < w->p->outputs; k++) {
        const cot_sparse_info *s = pattern_of(w, k);
        if (!s) continue;
        put_array_head(w, k, "row_start", s->rows + 1);
        cot__put(w->to, " = {");
        for (int64_t i = 0; i <= s->rows; i++) put_number(w, i, s->row_start[i]);
        cot__put(w->to, "};\n");
        put_array_head(w, k, "col", s->nnz);
        cot__put(w->to, " = {");
        for (int64_t i = 0; i < s->nnz; i++) put_number(w, i, s->col[i]);
        cot__put(w->to, s->nnz ? "};\n\n" : "0};\n\n");
    }
}
