/* json_values.c: values of any dtype and shape as JSON: in full or, when they are large, as a
 * summary. */
#include "trace/json/json.h"

#include "backend/cpu/table/cpu.h"
#include "diff/engine/kept_adjoints.h"

/* Writes one element; offset counts elements from the first. */
static void element(cot__json *j, const cot__view *v, int64_t offset) {
    char        buf[32];
    uint64_t    p = 0;
    cot_dtype   dtype = v->dtype;
    cot__view   one = cot__view_at(v, offset);
    cot__cpu_backend.copy_out(&(cot__view){&p, dtype, 0, NULL, NULL}, &one);
    const char *text = cot__element_text(&p, dtype, buf);
    if (j->comma) fputc(',', j->out);
    j->comma = true;
    bool odd = cot__dtype_is_float(dtype) && !isfinite(cot__load_f64(&p, dtype));
    fprintf(j->out, odd ? "\"%s\"" : "%s", text);
}

/* The number of empty lists that an array without elements would print: the product of the extents
 * before its first axis of extent 0. */
static int64_t lists_of(const cot__view *v) {
    int64_t n = 1;
    for (int k = 0; k < v->ndim && v->shape[k] > 0; k++) n *= v->shape[k];
    return n;
}

/* Counts through the axes like an odometer, so deep nesting needs no deep calls. An axis of extent
 * 0 ends the nesting: "[[],[]]". If that would be more empty lists than a summary has numbers, one
 * list stands for all: "[]". */
void cot__json_view(cot__json *j, const cot__view *v) {
    int64_t     at[COT_MAX_NDIM] = {0};
    int64_t     p = 0;
    int         axis = 0;
    if (v->ndim == 0) {
        element(j, v, 0);
        return;
    }
    cot__json_open(j, '[');
    if (cot__count(v->ndim, v->shape) == 0 && lists_of(v) > COT__JSON_ALL) {
        cot__json_close(j, ']');
        return;
    }
    /* A list of axis `axis` is open, and at[axis] of its items are written. */
    for (;;) {
        if (at[axis] == v->shape[axis]) {
            cot__json_close(j, ']');
            p -= at[axis] * v->stride[axis];
            at[axis] = 0;
            if (axis-- == 0) return;
            at[axis]++;
            p += v->stride[axis];
        } else if (axis + 1 < v->ndim) {
            cot__json_open(j, '[');
            axis++;
        } else {
            element(j, v, p);
            at[axis]++;
            p += v->stride[axis];
        }
    }
}

/* ---- the picture of a large one -------------------------------------------------------------- */

typedef struct summary { double min, max, sum; int64_t finite; } summary;

static summary summarise(const cot__view *v) {
    summary     s = {.min = INFINITY, .max = -INFINITY};
    cot__reader r;
    cot__reader_open(&r, &cot__cpu_backend, v);
    while (r.at < r.size) {
        double x = cot__reader_next(&r);
        if (!isfinite(x)) continue;
        s.min = x < s.min ? x : s.min;
        s.max = x > s.max ? x : s.max;
        s.sum += x;
        s.finite++;
    }
    return s;
}

static void statistic(cot__json *j, const char *key, const summary *s, double v) {
    cot__json_key(j, key);
    cot__json_number(j, s->finite ? v : (double)NAN);
}

/* Block means, one row of blocks after the other. The sum of a block with an element that is not
 * finite is not finite either, so the block shows it. A mean over the other elements would hide
 * it. */
static void grid(cot__json *j, const cot__view *v, int64_t rows, int64_t columns) {
    int64_t tall = rows < COT__JSON_GRID ? rows : COT__JSON_GRID,
            wide = columns < COT__JSON_GRID ? columns : COT__JSON_GRID;
    cot__reader r;
    cot__reader_open(&r, &cot__cpu_backend, v);
    cot__json_open(j, '[');
    for (int64_t band = 0, i = 0; band < tall; band++) {
        double  sum[COT__JSON_GRID] = {0};
        int64_t count[COT__JSON_GRID] = {0};
        for (; i < rows && i * tall / rows == band; i++)
            for (int64_t k = 0; k < columns; k++)
                sum[k * wide / columns] += cot__reader_next(&r), count[k * wide / columns]++;
        cot__json_open(j, '[');
        for (int64_t k = 0; k < wide; k++) cot__json_number(j, sum[k] / (double)count[k]);
        cot__json_close(j, ']');
    }
    cot__json_close(j, ']');
}

void cot__json_tensor(cot__json *j, const cot__view *v) {
    int64_t count = cot__count(v->ndim, v->shape);
    if (count <= COT__JSON_ALL) {
        cot__json_view(j, v);
        return;
    }
    int64_t columns = v->shape[v->ndim - 1];
    summary s = summarise(v);
    cot__json_open(j, '{');
    cot__json_key(j, "elided"), cot__json_bool(j, true);
    cot__json_key(j, "count"), cot__json_integer(j, count);
    statistic(j, "min", &s, s.min);
    statistic(j, "max", &s, s.max);
    statistic(j, "mean", &s, s.sum / (double)s.finite);
    cot__json_key(j, "grid");
    grid(j, v, count / columns, columns);
    cot__json_close(j, '}');
}
