/* forecast.c: walks a tape up and down and counts bytes. */
#include "trace/cost/forecast.h"

#include "base/number.h"
#include "diff/products/products.h"
#include "memory/memory.h"
#include "ops/costs.h"
#include "trace/cost/cost_rules.h"
#include "trace/lines/grid.h"

#include <stdlib.h>
#include <string.h>

/* ---- rows ------------------------------------------------------------------------------------ */

static cot__forecast_row *row_of(cot__forecast *f, const char *op, const char *name) {
    for (int64_t k = 0; k < f->row_count; k++) {
        const char *other = f->rows[k].name;
        if (f->rows[k].op == op && (name == other || (name && other && strcmp(name, other) == 0))) return &f->rows[k];
    }
    if (f->row_count == f->row_room) {
        int64_t            room = 2 * f->row_room + 16;
        cot__forecast_row *more = realloc(f->rows, (size_t)room * sizeof *more);
        if (!more) return NULL;
        f->rows = more, f->row_room = room;
    }
    f->rows[f->row_count] = (cot__forecast_row){.op = op, .name = name};
    return &f->rows[f->row_count++];
}

static bool is_source(const cot__node *n) { return n->op == OP_parameter || cot__op_of(n->op)->kind == KIND_SOURCE; }

static double cost_of(const cot_tape *t, uint32_t i) {
    return t->nodes[i].op < OP_structural ? (double)cot__size_at(t, i) : cot__cost_of_value(t, i);
}

/* The value of node i, the first on its storage; `reader`: the first node whose rule reads it. */
static bool add_row(cot__forecast *f, const cot_tape *t, uint32_t i, uint32_t reader) {
    const cot__node   *n = &t->nodes[i];
    int64_t            bytes = cot__bytes_at(t, i);
    cot__forecast_row *to = row_of(f, cot__op_of(n->op)->name, cot__name_of(t, i));
    if (!to) return false;
    to->count++, to->bytes += bytes, to->again += is_source(n) ? 0 : cost_of(t, i);
    to->source = is_source(n);
    if (reader != COT__NONE) {
        const char *name = cot__op_of(t->nodes[reader].op)->name;
        to->saved += bytes;
        to->readers |= to->reader && to->reader != name;
        to->reader = name;
    }
    f->stored += bytes;
    if (to->source) f->sources += bytes;
    else if (reader == COT__NONE) f->unread += bytes;
    else f->saved += bytes, f->cheap += n->op < OP_structural ? bytes : 0;
    return true;
}

static int larger_first(const void *a, const void *b) {
    const cot__forecast_row *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : strcmp(x->op, y->op);
}

/* ---- the two walks --------------------------------------------------------------------------- */

typedef struct walk {
    cot_tape *t;
    uint32_t  end;    /* the nodes before this one */
    uint32_t *owner;  /* the node whose memory holds the value */
    uint32_t *reader; /* of an owner: the first node whose rule reads it; COT__NONE: none */
    double   *adjoint; /* bytes of the adjoint that a node has now */
    bool     *arrived; /* does it have one? */
    bool     *given;   /* of an owner: it is the example of a parameter */
} walk;

static bool is_leaf(const cot__node *n) { return n->op == OP_leaf || n->op == OP_parameter; }

/* Does the memory of node i count? That of leaves does not, nor what the user has lent. */
static bool counts(const cot_tape *t, uint32_t i) {
    const cot__node *n = &t->nodes[i];
    return !is_leaf(n) && !cot__in_body(n) && cot__has_axes(n) &&
        !n->value.tensor->storage->borrowed;
}

/* The node whose storage parameter i has; it stands before it. */
static uint32_t parameter_of(const walk *w, uint32_t i) {
    const cot__node *n = &w->t->nodes[i];
    for (uint32_t k = i; cot__is_tensor(n) && k-- > 0;)
        if (cot__is_tensor(&w->t->nodes[k]) && w->t->nodes[k].value.tensor->storage == n->value.tensor->storage)
            return k;
    return i;
}

static void find_readers(walk *w) {
    for (uint32_t i = 0; i < w->end; i++) {
        const cot__node *n = &w->t->nodes[i];
        uint32_t         with, mask = cot__in_body(n) ? 0 : cot__values_read(w->t, i);
        w->reader[i] = COT__NONE;
        w->owner[i] = cot__shares_storage(w->t, i, &with) ? w->owner[with] : i;
        if (n->op == OP_parameter) w->given[parameter_of(w, i)] = true;
        for (int k = 0, count = mask ? cot__nargs(n) : 0; k < count; k++) {
            uint32_t a = cot__arg(n, k);
            if (a != COT__NONE && cot__saves_operand(mask, k) && w->reader[w->owner[a]] == COT__NONE)
                w->reader[w->owner[a]] = i;
        }
        if ((mask & COT__SAVES_Z) && w->reader[w->owner[i]] == COT__NONE) w->reader[w->owner[i]] = i;
    }
}

static void at_step(cot__forecast *f, const walk *w, uint32_t i, double bytes) {
    f->bytes[f->steps] = bytes;
    f->op[f->steps] = cot__op_of(w->t->nodes[i].op)->name;
    if (bytes > f->peak) f->peak = bytes, f->peak_at = f->steps;
    f->points = ++f->steps;
}

/* Values are made and stay. Leaves and constants do not count, nor do bodies. */
static bool walk_up(cot__forecast *f, const walk *w, double *live) {
    for (uint32_t i = 0; i < w->end; i++) {
        const cot__node *n = &w->t->nodes[i];
        if (w->owner[i] == i && cot__has_axes(n) && !cot__in_body(n) && !w->given[i]) {
            if (!add_row(f, w->t, i, w->reader[i])) return false;
            if (counts(w->t, i)) *live += (double)cot__bytes_at(w->t, i);
        }
        at_step(f, w, i, *live);
    }
    return true;
}

static bool passes(const cot_tape *t, const cot__node *n, int k) {
    uint32_t a = cot__arg(n, k), inactive = cot__op_of(n->op)->inactive;
    return a != COT__NONE && (t->nodes[a].flags & COT__ACTIVE) && !(k < 32 && inactive >> k & 1);
}

static void walk_down(cot__forecast *f, walk *w, uint32_t y, double live) {
    cot_tape *t = w->t;
    w->adjoint[y] = (double)cot__bytes_at(t, y);
    w->arrived[y] = true;
    live += w->adjoint[y];
    for (uint32_t i = y + 1; i-- > 0;) {
        const cot__node *n = &t->nodes[i];
        bool             swept = w->arrived[i] && (n->flags & COT__ACTIVE) && !is_source(n);
        for (int k = 0, count = swept ? cot__nargs(n) : 0; k < count; k++) {
            uint32_t a = passes(t, n, k) ? cot__arg(n, k) : COT__NONE;
            if (a == COT__NONE || w->arrived[a]) continue;
            w->arrived[a] = true;
            /* the adjoint of a view that has all elements once is a view of an adjoint */
            bool moves = w->owner[i] != i && cot__bytes_at(t, a) == cot__bytes_at(t, i);
            if (is_leaf(&t->nodes[a])) continue; /* a gradient does not count */
            w->adjoint[a] = moves ? w->adjoint[i] : (double)cot__bytes_at(t, a);
            if (moves) w->adjoint[i] = 0;
            else live += w->adjoint[a];
        }
        at_step(f, w, i, live);
        if (swept) live -= w->adjoint[i];
    }
}

static void say_when(cot__forecast *f, const walk *w, uint32_t y) {
    int64_t  up = w->end;
    uint32_t i = f->peak_at < up ? (uint32_t)f->peak_at : y - (uint32_t)(f->peak_at - up);
    char     it[120];
    snprintf(f->when, sizeof f->when, "%s %s", f->peak_at < up ? "when it records" : "on the way back, at",
             cot__describe(w->t, i, it, sizeof it));
}

bool cot__forecast_of(cot__forecast *f, cot_var y) {
    uint32_t at;
    *f = (cot__forecast){0};
    cot_tape *t = cot__tape_of(1, &y);
    if (!t || !cot__operand(t, y, "memory", "", &at)) return false;
    size_t n = (size_t)at + 1;
    walk   w = {.t = t, .end = at + 1};
    w.owner = malloc(2 * n * sizeof *w.owner);
    w.adjoint = calloc(n, sizeof *w.adjoint + 2);
    f->bytes = malloc(2 * n * sizeof *f->bytes);
    f->op = malloc(2 * n * sizeof *f->op);
    bool   ok = w.owner && w.adjoint && f->bytes && f->op;
    double live = 0;
    if (ok) {
        w.reader = w.owner + n;
        w.arrived = (bool *)(w.adjoint + n), w.given = w.arrived + n;
        find_readers(&w);
        ok = walk_up(f, &w, &live);
    }
    if (ok) {
        if (t->nodes[at].flags & COT__ACTIVE) walk_down(f, &w, at, live);
        say_when(f, &w, at);
        qsort(f->rows, (size_t)f->row_count, sizeof *f->rows, larger_first);
    }
    free(w.owner);
    free(w.adjoint);
    return ok;
}

/* The command sweeps by products, whose lists count, too. */
static int64_t kept_by_product(const cot_tape *t, uint32_t y) {
    int leaves = 0;
    for (uint32_t i = 0; i <= y; i++) leaves += is_leaf(&t->nodes[i]);
    return (int64_t)cot__product_keeps(1, leaves);
}

bool cot__forecast_least(cot__forecast *f, cot_var y) {
    uint32_t  at;
    int64_t   whole = 0, least = -1;
    cot_tape *t = cot__tape_of(1, &y);
    if (t && cot__operand(t, y, "memory", "", &at)) least = cot__enough(t, at, &whole);
    int64_t more = least > 0 ? kept_by_product(t, at) : 0;
    f->whole = (double)(whole ? whole + more : 0), f->least = (double)(least + more);
    return least >= 0;
}

/* ---- more blocks ----------------------------------------------------------------------------- */

/* v becomes what it is with more blocks; `was`: with one less. False: no int64_t holds it. */
static bool grow(int64_t *v, int64_t was, int64_t times) {
    int64_t more;
    return !__builtin_mul_overflow(*v - was, times, &more) && !__builtin_add_overflow(*v, more, v);
}

static bool stretch_rows(cot__forecast *f, const cot__forecast *less, int64_t times) {
    bool fit = true;
    for (int64_t k = 0; k < f->row_count; k++) {
        cot__forecast_row *r = &f->rows[k];
        for (int64_t i = 0; i < less->row_count; i++) {
            const cot__forecast_row *was = &less->rows[i];
            if (was->op != r->op || was->name != r->name) continue;
            fit = fit && grow(&r->count, was->count, times) && grow(&r->bytes, was->bytes, times) &&
                  grow(&r->saved, was->saved, times);
            r->again += (double)times * (r->again - was->again);
            break;
        }
    }
    qsort(f->rows, (size_t)f->row_count, sizeof *f->rows, larger_first);
    return fit;
}

static bool stretch_sums(cot__forecast *f, const cot__forecast *less, int64_t times) {
    return grow(&f->stored, less->stored, times) && grow(&f->sources, less->sources, times) &&
           grow(&f->saved, less->saved, times) && grow(&f->cheap, less->cheap, times) &&
           grow(&f->unread, less->unread, times);
}

enum { OF_NODE = 1024, MARGIN = 32 }; /* a node with its shapes, attributes and storage */

/* However many blocks there are, one at a time is made again, from values that are dropped
 * themselves; so only lists grow. The rest grows by as much with each block. */
void cot__forecast_deepen(cot__forecast *f, const cot__forecast *some, const cot__forecast *less, int64_t times) {
    double nodes = (double)(some->steps - less->steps) / 2;
    f->whole = some->whole + (double)times * (some->whole - less->whole);
    f->least = some->least + some->least / MARGIN + (double)times * nodes * OF_NODE;
}

/* Bytes at point i of f as they are with more blocks, and its step. Points are counted from the
 * nearer end of each way, where the same is done however many blocks there are. */
static double stretched(const cot__forecast *f, const cot__forecast *less, int64_t times, int64_t i, double *place) {
    int64_t n = f->steps / 2, was = less->steps / 2, back = i >= n, at = i - back * n;
    bool    end = at >= n / 2;
    double  before = less->bytes[back * was + (end ? was - (n - at) : at)];
    *place = (double)i + (double)times * (double)((n - was) * (back + end));
    return f->bytes[i] + (double)times * (f->bytes[i] - before);
}

static void stretch_points(cot__forecast *f, const cot__forecast *less, int64_t times, double *place) {
    f->peak = 0;
    for (int64_t i = 0, at = 0; i < f->points; i++) {
        f->bytes[i] = stretched(f, less, times, i, &place[i]);
        if (f->bytes[i] <= f->peak) continue;
        f->peak = f->bytes[at = i];
        f->peak_at = (int64_t)place[i];
        snprintf(f->when, sizeof f->when, "%s %s", at < f->steps / 2 ? "when it records" : "on the way back, at",
                 f->op[at]);
    }
}

bool cot__forecast_stretch(cot__forecast *f, const cot__forecast *less, int64_t times, bool *fits) {
    int64_t steps = f->steps;
    cot__forecast_deepen(f, f, less, times);
    *fits = grow(&steps, less->steps, times);
    f->place = malloc((size_t)f->points * sizeof *f->place);
    if (!f->place || !*fits) return f->place != NULL;
    stretch_points(f, less, times, f->place);
    f->steps = steps;
    *fits = f->peak < 0x1p63 && f->whole < 0x1p63 && stretch_sums(f, less, times) && stretch_rows(f, less, times);
    return true;
}

void cot__forecast_free(cot__forecast *f) {
    free(f->bytes);
    free(f->place);
    free(f->op);
    free(f->rows);
    *f = (cot__forecast){0};
}

/* ---- showing --------------------------------------------------------------------------------- */

const char *cot__bytes_text(double bytes, char *buf) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    int                      k = 0;
    while (bytes >= 1024 && k < 5) bytes /= 1024, k++;
    cot__format(buf, 32, k ? "%.2f %s" : "%.0f %s", bytes, units[k]);
    return buf;
}

static void put_row(cot__grid *g, const cot__forecast_row *r) {
    char text[128];
    snprintf(text, sizeof text, r->name ? "%s \"%.24s\"" : "%s", r->op, r->name);
    cot__grid_put(g, NULL, text);
    cot__grid_integer(g, r->count);
    cot__grid_put(g, NULL, cot__bytes_text((double)r->bytes, text));
    cot__grid_put(g, NULL, r->saved ? cot__bytes_text((double)r->saved, text) : "-");
    cot__format(text, sizeof text, "%.3g", r->again);
    cot__grid_put(g, NULL, r->source ? "" : text);
    snprintf(text, sizeof text, "%s%s", r->reader ? r->reader : "", r->readers ? ", …" : "");
    cot__grid_put(g, NULL, text);
}

bool cot__forecast_table(FILE *out, const cot__forecast *f) {
    static const char *const heads[] = {"values", "count", "stored", "saved", "again", "read by the rule of"};
    char                     a[32], b[32], c[32], d[32];
    cot__grid g = {.columns = 6, .column = {COT__LEFT, COT__RIGHT, COT__RIGHT, COT__RIGHT, COT__RIGHT, COT__LEFT}};
    for (int k = 0; k < COUNTOF(heads); k++) cot__grid_put(&g, NULL, heads[k]);
    for (int64_t k = 0; k < f->row_count; k++) put_row(&g, &f->rows[k]);
    if (!cot__grid_print(out, &g)) return false;
    fprintf(out, "\n%s beside leaves and constants: %s that rules read (%s elementwise, cheap to make again), %s "
                 "that none reads\n",
            cot__bytes_text((double)(f->stored - f->sources), a), cot__bytes_text((double)f->saved, b),
            cot__bytes_text((double)f->cheap, c), cot__bytes_text((double)f->unread, d));
    fprintf(out, "the most at once: %s, %s\n", cot__bytes_text(f->peak, a), f->when);
    if (f->whole > 0)
        fprintf(out, "with the tape's lists, what rules make on their way and what kernels need: %s\n",
                cot__bytes_text(f->whole, a));
    if (f->least > 0 && f->least < (f->whole > 0 ? f->whole : f->peak))
        fprintf(out, "a memory limit of %s is enough, with values computed again\n", cot__bytes_text(f->least, a));
    return true;
}

static void put_integer(cot__json *j, const char *key, int64_t v) { cot__json_key(j, key), cot__json_integer(j, v); }

void cot__forecast_json(cot__json *j, const cot__forecast *f) {
    put_integer(j, "stored", f->stored), put_integer(j, "sources", f->sources), put_integer(j, "saved", f->saved);
    put_integer(j, "cheap", f->cheap), put_integer(j, "unread", f->unread), put_integer(j, "peak", (int64_t)f->peak);
    put_integer(j, "whole", (int64_t)f->whole), put_integer(j, "least", (int64_t)f->least);
    put_integer(j, "peak_at", f->peak_at), put_integer(j, "steps", f->steps);
    cot__json_key(j, "when"), cot__json_string(j, f->when);
    cot__json_key(j, "values");
    cot__json_open(j, '[');
    for (int64_t k = 0; k < f->row_count; k++) {
        const cot__forecast_row *r = &f->rows[k];
        cot__json_open(j, '{');
        cot__json_key(j, "op"), cot__json_string(j, r->op);
        cot__json_key(j, "name"), cot__json_string(j, r->name);
        put_integer(j, "count", r->count), put_integer(j, "bytes", r->bytes), put_integer(j, "saved", r->saved);
        cot__json_key(j, "again"), cot__json_number(j, r->again);
        cot__json_key(j, "reader"), cot__json_string(j, r->reader);
        cot__json_close(j, '}');
    }
    cot__json_close(j, ']');
}
