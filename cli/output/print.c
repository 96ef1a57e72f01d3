/* print.c: prints arrays as nested lists in aligned columns. An array that is printed in full can
 * be read again as a value. */
#include "output/print.h"

#include <string.h>

#include "trace/trace.h"

/* WHOLE: the most elements that are all shown. EDGE: rows and columns shown at each edge of a
 * larger array */
enum { WHOLE = 1000, EDGE = 3 };

typedef struct page {
    FILE            *out;
    const cot_array *a;
    int              width;  /* of the terminal */
    int              indent; /* column of the first bracket */
    int              column; /* the present column */
    int              widest; /* width of the widest element */
    bool             elided;
} page;

static const char *element(const page *p, int64_t at, char *buf) {
    if (p->a->dtype == COT_BOOL) return ((const uint8_t *)p->a->data)[at] ? "True" : "False";
    return cot__element_text((const char *)p->a->data + (size_t)at * cot__dtype_size(p->a->dtype), p->a->dtype, buf);
}

/* The next index along an axis. In a large array it jumps from the first edge to the last one. */
static int64_t next(const page *p, int64_t i, int64_t extent, bool *gap) {
    *gap = p->elided && i == EDGE - 1 && extent > 2 * EDGE;
    return *gap ? extent - EDGE : i + 1;
}

static void measure(page *p, int axis, int64_t at) {
    char buf[32];
    if (axis == p->a->shape.ndim) {
        int n = (int)strlen(element(p, at, buf));
        if (n > p->widest) p->widest = n;
        return;
    }
    int64_t extent = p->a->shape.dim[axis];
    bool    gap;
    for (int64_t i = 0; i < extent; i = next(p, i, extent, &gap)) measure(p, axis + 1, at * extent + i);
}

static void new_line(page *p, int column) {
    fprintf(p->out, "\n%*s", column, "");
    p->column = column;
}

static void put(page *p, const char *s) {
    fputs(s, p->out);
    p->column += cot__columns(s);
}

static void row(page *p, int64_t at, int64_t extent) {
    char buf[32];
    int  start = p->column;
    bool gap = false;
    for (int64_t i = 0; i < extent;) {
        if (i > 0) {
            put(p, ",");
            if (p->column + 2 + p->widest > p->width && p->column > start) new_line(p, start);
            else put(p, " ");
        }
        if (gap) {
            put(p, "…,");
            if (p->column + 2 + p->widest > p->width) new_line(p, start);
            else put(p, " ");
        }
        const char *text = element(p, at + i, buf);
        fprintf(p->out, "%*s%s", p->widest - (int)strlen(text), "", text);
        p->column += p->widest;
        i = next(p, i, extent, &gap);
    }
}

static void block(page *p, int axis, int64_t at) {
    int64_t extent = p->a->shape.dim[axis];
    int     last = p->a->shape.ndim - 1;
    bool    gap = false;
    put(p, "[");
    if (axis == last) row(p, at * extent, extent);
    for (int64_t i = 0; axis < last && i < extent;) {
        if (i > 0) {
            put(p, ",");
            /* empty lines between matrices */
            for (int k = axis + 1; k < last; k++) fputs("\n", p->out);
            new_line(p, p->indent + axis + 1);
        }
        if (gap) {
            put(p, "…,");
            new_line(p, p->indent + axis + 1);
        }
        block(p, axis + 1, at * extent + i);
        i = next(p, i, extent, &gap);
    }
    put(p, "]");
}

const char *shape_text(cot_shape shape, char *buf) {
    size_t used = (size_t)sprintf(buf, "(");
    for (int k = 0; k < shape.ndim; k++)
        used += (size_t)sprintf(buf + used, "%s%lld", k ? ", " : "", (long long)shape.dim[k]);
    strcpy(buf + used, shape.ndim == 1 ? ",)" : ")");
    return buf;
}

static void value(FILE *out, look how, int indent, const cot_array *a) {
    char buf[32], shape[400];
    page p = {.out = out, .a = a, .width = how.width, .indent = indent, .column = indent, .elided = a->size > WHOLE};
    if (a->shape.ndim == 0) {
        fprintf(out, "%s\n", element(&p, 0, buf));
        return;
    }
    shape_text(a->shape, shape);
    if (a->size == 0) {
        fprintf(out, "[] of shape %s\n", shape);
        return;
    }
    measure(&p, 0, 0);
    block(&p, 0, 0);
    if (p.elided) fprintf(out, "  shape %s", shape);
    fputs("\n", out);
}

void print_values(FILE *out, look how, int n, const labelled *values) {
    int widest = 0;
    for (int k = 0; k < n; k++) {
        int w = cot__columns(values[k].label);
        if (w > widest) widest = w;
    }
    for (int k = 0; k < n; k++) {
        if (widest)
            fprintf(out, "%s%s%s%*s = ", how.colour ? "\033[1;36m" : "", values[k].label, how.colour ? "\033[0m" : "",
                    widest - cot__columns(values[k].label), "");
        value(out, how, widest ? widest + 3 : 0, values[k].value);
    }
}

void print_json(cot__json *j, const cot_array *a) {
    int64_t stride[COT_MAX_NDIM] = {0};
    cot__strides(a->shape.ndim, a->shape.dim, stride);
    cot__json_view(j, &(cot__view){a->data, a->dtype, a->shape.ndim, a->shape.dim, stride});
}
