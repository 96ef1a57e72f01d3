/* values.c: reads values from text. Constant expressions run on a tape of their own. */
#include "problem/values.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "problem/expression.h"
#include "io/data_file.h"
#include "problem/uniform.h"

bool value_of_var(cot_var x, cot_array *a, failure *f) {
    if (!array_allocate(a, cot_dtype_of(x), cot_shape_of(x), f)) return false;
    if (cot_read_as(x, a->dtype, a->data, a->size) == COT_OK) return true;
    free(a->data);
    a->data = NULL;
    return tape_failure(x.tape, f);
}

/* Puts `who`, the argument that the value is for, before the message. */
static bool about(const char *who, failure *f) {
    char message[sizeof f->message];
    memcpy(message, f->message, sizeof message);
    snprintf(f->message, sizeof f->message, "%.80s: %.1100s", who, message);
    /* the column is one of the value, not of the expression; the caret shows it */
    f->column = 0;
    return false;
}

static bool in_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Does the text call a function? Without a call whole numbers are just numbers, x=2. The result of
 * a call with an integer dtype, such as cast([0,2], i64), is meant to be integer. */
static bool has_call(const char *text, size_t length) {
    static const char *const words[] = {"and", "or", "not", "if", "else", "in"};
    for (size_t i = 0; i < length; i++) {
        if (text[i] != '(') continue;
        size_t end = i, start;
        while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == '\t')) end--;
        for (start = end; start > 0 && in_word(text[start - 1]); start--) {
        }
        if (start == end) continue;
        bool keyword = false;
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            keyword = keyword || (strlen(words[k]) == end - start && memcmp(words[k], text + start, end - start) == 0);
        if (!keyword) return true;
    }
    return false;
}

static bool from_expression(const char *text, size_t length, cot_dtype real, cot_array *a, failure *f) {
    cot__expr_error    error = {0};
    const char *const *names;
    cot__expr         *e = cot__expr_parse(text, length, &error);
    if (!e) return expression_failure(&error, text, length, f);
    bool fine = false;
    if (cot__expr_names(e, &names) > 0) {
        failure_usage(f, "a value is made of numbers, and %s is a name", names[0]);
        cot__expr_free(e);
        return false;
    }
    cot_tape *t = cot_tape_create(NULL);
    cot_no_grad_open(t);
    cot_var y = cot__expr_run(e, t, 0, NULL, &error, NULL, NULL);
    if (!t)
        failure_memory(f);
    else if (!cot_is_valid(y))
        expression_failure(&error, text, length, f);
    else
        fine =
            value_of_var(cot__dtype_is_float(cot_dtype_of(y)) || (cot_dtype_of(y) == COT_I64 && !has_call(text, length))
                             ? cot_cast(y, real)
                             : y,
                         a, f);
    cot_tape_destroy(t);
    cot__expr_free(e);
    return fine;
}

/* Skips spaces and the character c. NULL when c is not there. */
static const char *past(const char *p, char c) {
    if (!p) return NULL;
    while (*p == ' ' || *p == '\t') p++;
    return *p == c ? p + 1 : NULL;
}

static const char *past_natural(const char *p, uint64_t *out) {
    if (!p) return NULL;
    while (*p == ' ' || *p == '\t') p++;
    if (*p < '0' || *p > '9') return NULL;
    for (*out = 0; *p >= '0' && *p <= '9'; p++) {
        if (*out > (INT64_MAX - 9) / 10) return NULL;
        *out = 10 * *out + (uint64_t)(*p - '0');
    }
    return p;
}

/* [2, 3], [4], [] */
static const char *past_shape(const char *p, cot_shape *shape) {
    *shape = (cot_shape){0};
    p      = past(p, '[');
    for (uint64_t d; p && !past(p, ']');) {
        if (shape->ndim == COT_MAX_NDIM || !(p = past_natural(p, &d))) return NULL;
        shape->dim[shape->ndim++] = (int64_t)d;
        if (past(p, ','))
            p = past(p, ',');
        else if (!past(p, ']'))
            return NULL;
    }
    return past(p, ']');
}

/* uniform(seed, [shape], scale), its scale from here to *end; NULL: it is written otherwise. */
static const char *uniform_parts(const char *text, uint64_t *seed, cot_shape *shape, const char **end) {
    *seed             = 0;
    const char *p     = past_shape(past(past_natural(past(text + strlen("uniform"), '('), seed), ','), shape);
    const char *scale = past(p, ',');
    *end              = text + strlen(text);
    while (*end > text && strchr(" \t\n\v\f\r", (*end)[-1])) (*end)--;
    return !scale || (*end)[-1] != ')' || *end - 1 <= scale || *seed > UINT32_MAX ? NULL : scale;
}

/* The scale is a constant expression of its own. */
static bool uniform_scale(const char *scale, const char *end, double *s, failure *f) {
    cot_array factor;
    if (!from_expression(scale, (size_t)(end - 1 - scale), COT_F64, &factor, f)) return false;
    bool fine = factor.size == 1 && (factor.dtype == COT_F64 || factor.dtype == COT_I64);
    if (fine)
        *s = factor.dtype == COT_F64 ? *(double *)factor.data : (double)*(int64_t *)factor.data;
    else
        failure_usage(f, "the scale of uniform is one number");
    free(factor.data);
    return fine;
}

static bool from_uniform(const char *text, cot_dtype real, cot_array *a, failure *f) {
    uint64_t    seed;
    cot_shape   shape;
    const char *end, *scale = uniform_parts(text, &seed, &shape, &end);
    if (!scale)
        return failure_usage(
            f, "uniform is written uniform(seed, [extents], scale), with a whole seed from 0 to 4294967295: "
               "uniform(1, [128, 784], 0.5)");
    double s = 0;
    if (!uniform_scale(scale, end, &s, f) || !array_allocate(a, real, shape, f)) return false;
    for (int64_t i = 0; i < a->size; i++) {
        double v = uniform_at(seed, (uint64_t)i, s);
        if (real == COT_F64)
            ((double *)a->data)[i] = v;
        else
            ((float *)a->data)[i] = (float)v;
    }
    return true;
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool open_file(cot__source *s, const char *path, failure *f) {
    cot__trouble trouble = {0};
    cot__source_open(s, path, NULL, &trouble);
    return failure_of_trouble(f, &trouble);
}

/* Behind the ending of a file's name, at its end or before a colon; NULL: there is none. */
static const char *behind_ending(const char *name, const char *ending) {
    size_t n = strlen(ending);
    for (const char *p = name; (p = strstr(p, ending)); p++)
        if (p[n] == ':' || p[n] == 0) return p + n;
    return NULL;
}

/* A whole .npz file: a sparse matrix. */
static bool from_matrix(const char *path, cot_dtype real, cot_array *a, sparse_input *m, failure *f) {
    if (m) return sparse_input_read(path, real, a, m, f);
    return failure_usage(f, "%.200s holds a sparse matrix, and an array is needed here", path);
}

/* path.npy, path.npz:key, path.safetensors:key, path.npz of a sparse matrix */
static bool from_file(const char *name, cot_dtype real, cot_array *a, sparse_input *m, failure *f) {
    cot__source s;
    if (ends_with(name, ".npy")) {
        if (!open_file(&s, name, f)) return false;
        bool fine = npy_read(&s, real, a, f);
        cot__source_close(&s);
        return fine;
    }
    const char *found = behind_ending(name, ".safetensors");
    bool        zip   = !found;
    if (!found) found = behind_ending(name, ".npz");
    if (!found) return failure_usage(f, "@%.200s is neither a .npy file nor .npz:KEY nor .safetensors:KEY", name);
    char *path = malloc((size_t)(found - name) + 1);
    if (!path) return failure_memory(f);
    memcpy(path, name, (size_t)(found - name));
    path[found - name] = 0;
    bool fine = open_file(&s, path, f), is_matrix = false;
    if (fine) {
        if (zip && !*found) fine = sparse_input_is(&s, &is_matrix, f);
        if (fine && !is_matrix)
            fine = (zip ? npz_read : safetensors_read)(&s, *found ? found + 1 : NULL, real, a, f);
        cot__source_close(&s);
    }
    if (is_matrix) fine = from_matrix(path, real, a, m, f);
    free(path);
    return fine;
}

/* The name of a file without the @ would be read as an expression without sense. This reports the
 * missing @ instead. */
static bool hint_of_file(const char *text, failure *f) {
    static const char *const others[] = {".csv", ".tsv", ".txt", ".dat", ".json"};
    bool                     there    = cot__source_exists(text),
         ours = ends_with(text, ".npy") || strstr(text, ".safetensors") || strstr(text, ".npz"), file = there || ours;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) file = file || ends_with(text, others[k]);
    if (!file || f->status != EXIT_USAGE) return false;
    *f = (failure){0};
    if (!ours)
        return failure_usage(
            f, "%.200s is the name of a file, and values are read from .npy, .npz and .safetensors files: @FILE.npy",
            text);
    return failure_usage(f, "%.200s is the name of a file%s; files are given with an @: @%.200s", text,
                         there || strchr(text, ':') ? "" : " (and there is none)", text);
}

/* Is it "uniform" and then, after spaces, a parenthesis? */
static bool is_uniform(const char *text) { return strncmp(text, "uniform", 7) == 0 && past(text + 7, '(') != NULL; }

bool value_shape(const char *text, cot_dtype real, cot_array *a) {
    uint64_t    seed, bytes;
    double      s;
    const char *end, *scale;
    failure     unsaid = {0}; /* who reads the value says it */
    while (*text == ' ') text++;
    *a = (cot_array){.dtype = real};
    return is_uniform(text) && (scale = uniform_parts(text, &seed, &a->shape, &end)) &&
           uniform_scale(scale, end, &s, &unsaid) && a->shape.ndim > 0 &&
           cot__elements_count(&a->shape, (int)cot__dtype_size(real), &a->size, &bytes) && a->size > 0;
}

bool value_read(const char *who, const char *text, cot_dtype real, cot_array *a, failure *f) {
    return value_or_matrix_read(who, text, real, a, NULL, f);
}

bool value_or_matrix_read(const char *who, const char *text, cot_dtype real, cot_array *a, sparse_input *m,
                          failure *f) {
    *a = (cot_array){0};
    while (*text == ' ') text++;
    bool fine;
    if (*text == 0)
        fine = failure_usage(f, "there is no value");
    else if (*text == '@')
        fine = from_file(text + 1, real, a, m, f);
    else if (is_uniform(text))
        fine = from_uniform(text, real, a, f);
    else
        fine = from_expression(text, strlen(text), real, a, f) || hint_of_file(text, f);
    return fine || about(who, f);
}
