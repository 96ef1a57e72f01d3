/* summary.c: a table of the layers of a net: what each gives, its parameters, what it costs.
 *
 * The net runs as in cot_params_init, so that nothing needs to be made before, and nothing stays:
 * no statistic is updated, no key is needed. Layers report when they open and close. */
#include "nn/nn.h"

#include "base/text.h"
#include "ops/costs.h"
#include "ops/structural.h"

#include <string.h>

enum { LONGEST_NAME = 48, OUTPUT = 26, COUNT = 46, OPERATIONS = 60, BYTES = 75 };

typedef struct row {
    char      name[LONGEST_NAME];
    cot_shape shape;
    int64_t   parameters;
    double    operations;
    int64_t   bytes;
} row;

struct cot__summary_rows {
    row     *all;
    uint32_t count, capacity, from; /* from: the first node of the layer that is open */
    int64_t  bytes_before, asked;   /* asked: elements of parameters since it opened, each once */
    int64_t  drawn;                 /* bytes of initial numbers, since the beginning */
};

/* Of what was recorded from a node on. An elementwise operation counts one for each element. */
static double operations_since(const cot_tape *t, uint32_t from) {
    double sum = 0;
    for (uint32_t i = from; i < t->count; i++)
        sum += t->nodes[i].op < OP_structural ? (double)cot__size_at(t, i) : cot__cost_of_value(t, i);
    return sum;
}

void cot__summary_open(cot_params *p) {
    struct cot__summary_rows *r = p->rows;
    r->from = p->on->count, r->bytes_before = cot_tape_storage_bytes(p->on), r->asked = 0;
}

void cot__summary_asked(cot_params *p, cot__entry *e, int64_t size, int64_t drawn) {
    p->rows->bytes_before += drawn, p->rows->drawn += drawn;
    if (!e->told) p->rows->asked += size;
    e->told = true;
}

void cot__summary_close(cot_params *p, cot_var y) {
    struct cot__summary_rows *r = p->rows;
    if (r->count == r->capacity) {
        uint32_t n    = 2 * r->capacity + 16;
        row     *more = cot__resize(&p->al, r->all, r->capacity * sizeof *more, n * sizeof *more);
        if (!more) {
            cot__fail(p->on, COT_MEMORY, "[params_summary] out of memory: %zu bytes for the table", n * sizeof *more);
            return;
        }
        r->all = more, r->capacity = n;
    }
    row *a        = &r->all[r->count++];
    *a            = (row){.shape = cot_shape_of(y), .parameters = r->asked};
    a->operations = operations_since(p->on, r->from);
    a->bytes      = cot_tape_storage_bytes(p->on) - r->bytes_before;
    int n         = p->level[p->depth] - 1; /* without the last dot */
    snprintf(a->name, sizeof a->name, "%.*s", n, p->path);
}

static void put_row(cot__text *x, const row *a, const char *name) {
    char shape[COT__SHAPE_TEXT];
    cot__put(x, name);
    cot__tab(x, OUTPUT);
    cot__put(x, cot__shape_text(a->shape.ndim, a->shape.dim, shape));
    cot__tab(x, COUNT);
    cot__putf(x, "%lld", (long long)a->parameters);
    cot__tab(x, OPERATIONS);
    cot__putf(x, "%.0f", a->operations);
    cot__tab(x, BYTES);
    cot__putf(x, "%lld\n", (long long)a->bytes);
}

static void print(const struct cot__summary_rows *r, row all, FILE *out) {
    cot__text x    = cot__text_file(out);
    row       rest = {.shape = all.shape, .operations = all.operations, .bytes = all.bytes};
    cot__put(&x, "layer");
    cot__tab(&x, OUTPUT), cot__put(&x, "output");
    cot__tab(&x, COUNT), cot__put(&x, "parameters");
    cot__tab(&x, OPERATIONS), cot__put(&x, "operations");
    cot__tab(&x, BYTES), cot__put(&x, "bytes\n");
    for (uint32_t k = 0; k < r->count; k++) {
        put_row(&x, &r->all[k], r->all[k].name);
        rest.operations -= r->all[k].operations, rest.bytes -= r->all[k].bytes;
        all.parameters += r->all[k].parameters;
    }
    put_row(&x, &rest, "(between layers)");
    put_row(&x, &all, "in all");
}

cot_status cot_params_summary(cot_params *p, cot_net net, cot_var x, FILE *out) {
    if (!p) return cot__status_of(1, &x);
    cot_tape *t = cot__usable(p->tape);
    if (!t || !cot__params_may_learn(p, "params_summary", net, x)) return p->tape->status;
    if (!out)
        return cot__fail(t, COT_VALUE, "[params_summary] there is no file; the table is written to one"), t->status;
    struct cot__summary_rows rows   = {0};
    cot_mark                 start  = cot_tape_mark(t);
    uint32_t                 before = p->count, first = t->count;
    int64_t                  bytes = cot_tape_storage_bytes(t);
    for (uint32_t k = 0; k < p->count; k++) p->entry[k].told = false;
    p->rows = &rows;
    cot_var y;
    cot__params_learn(p, "params_summary", net, x, &y);
    p->rows   = NULL;
    row all   = {.shape = cot_shape_of(y), .operations = operations_since(t, first)};
    all.bytes = cot_tape_storage_bytes(t) - bytes - rows.drawn;
    if (t->status == COT_OK) print(&rows, all, out);
    cot__params_forget(p, start, before);
    cot__free(&p->al, rows.all, rows.capacity * sizeof *rows.all);
    return t->status;
}
