/* trace_json.c: a trace as the one JSON object that `cotangent trace --json` prints and the viewer
 * reads. */
#include "trace/trace.h"

#include "diff/engine/kept_adjoints.h"
#include "ops/elementwise/elementwise.h"
#include "trace/code.h"
#include "trace/tangents.h"

#include <stdlib.h>
#include <string.h>

static void string_key(cot__json *j, const char *key, const char *value) {
    cot__json_key(j, key);
    cot__json_string(j, value);
}

static void write_args(cot__json *j, const cot__trace_node *n) {
    cot__json_key(j, "args");
    cot__json_open(j, '[');
    for (int k = 0; k < n->nargs; k++)
        if (n->args[k] == COT__NONE)
            cot__json_null(j);
        else
            cot__json_integer(j, n->args[k]);
    cot__json_close(j, ']');
    cot__json_key(j, "numbers");
    cot__json_open(j, '[');
    bool any = false;
    for (int k = 0; k < n->nargs; k++) any |= n->args[k] == COT__NONE;
    /* numbers[k] is the operand where args[k] is null */
    for (int k = 0; k < n->nargs && any; k++)
        if (n->args[k] == COT__NONE)
            cot__json_number(j, n->number);
        else
            cot__json_null(j);
    cot__json_close(j, ']');
}

static void write_node(cot__json *j, const cot__trace *tr, int64_t i) {
    const cot__trace_node *n = &tr->nodes[i];
    char                   buf[COT__TRACE_TEXT];
    const char            *saved;
    cot__json_open(j, '{');
    cot__json_key(j, "id"), cot__json_integer(j, n->id);
    string_key(j, "op", cot__op_name(tr->t, n->id));
    write_args(j, n);
    cot__json_key(j, "operands");
    cot__json_open(j, '[');
    for (int k = 0; k < n->nargs; k++) cot__json_string(j, cot__trace_operand(tr, i, k, buf, sizeof buf));
    cot__json_close(j, ']');
    string_key(j, "call", cot__trace_call(tr, i, buf, sizeof buf));
    string_key(j, "formula", cot__trace_formula(tr, i, buf, sizeof buf));
    string_key(j, "name", n->name);
    string_key(j, "label", n->label);
    string_key(j, "dtype", cot__dtype_name(n->value.dtype));
    cot__json_key(j, "shape");
    cot__json_open(j, '[');
    for (int k = 0; k < n->value.ndim; k++) cot__json_integer(j, n->value.shape[k]);
    cot__json_close(j, ']');
    cot__json_key(j, "value");
    if (n->overwritten)
        cot__json_null(j);
    else
        cot__json_tensor(j, &n->value);
    cot__json_key(j, "active"), cot__json_bool(j, n->active);
    cot__json_key(j, "saves");
    cot__json_open(j, '[');
    for (int k = 0; (saved = cot__trace_saved(tr, i, k, buf, sizeof buf)); k++) cot__json_string(j, saved);
    cot__json_close(j, ']');
    /* the saved values again, as ids: operands, and the node itself */
    cot__json_key(j, "keeps");
    cot__json_open(j, '[');
    for (int k = 0; k < n->nargs; k++)
        if (cot__saves_operand(n->saves, k) && n->args[k] != COT__NONE) cot__json_integer(j, n->args[k]);
    if (n->saves & COT__SAVES_Z) cot__json_integer(j, n->id);
    cot__json_close(j, ']');
    cot__json_key(j, "span");
    if (n->span[0] < 0)
        cot__json_null(j);
    else {
        cot__json_open(j, '[');
        cot__json_integer(j, n->span[0]), cot__json_integer(j, n->span[1]);
        cot__json_close(j, ']');
    }
    cot__json_key(j, "flops"), cot__json_integer(j, n->flops);
    cot__json_key(j, "bytes"), cot__json_integer(j, n->bytes);
    cot__json_close(j, '}');
}

static void write_step(cot__json *j, const cot__trace *tr, int64_t i) {
    const cot__trace_step *s = &tr->steps[i];
    char                   buf[COT__TRACE_TEXT];
    cot__json_open(j, '{');
    cot__json_key(j, "node"), cot__json_integer(j, tr->nodes[s->node].id);
    cot__json_key(j, "adjoint"), cot__json_tensor(j, &s->adjoint);
    cot__json_key(j, "adds");
    cot__json_open(j, '[');
    for (int k = 0; k < s->add_count; k++) {
        cot__json_open(j, '{');
        cot__json_key(j, "to"), cot__json_integer(j, s->adds[k].to);
        string_key(j, "rule", cot__trace_rule(tr, i, k, buf, sizeof buf));
        string_key(j, "filled", cot__trace_filled(tr, i, k, buf, sizeof buf));
        cot__json_key(j, "amount"), cot__json_tensor(j, &s->adds[k].amount);
        cot__json_key(j, "sum"), cot__json_tensor(j, &s->adds[k].sum);
        cot__json_close(j, '}');
    }
    cot__json_close(j, ']');
    cot__json_close(j, '}');
}

/* The gradient by an input: its adjoint, or zeros if none arrived. */
static void write_gradient(cot__json *j, const cot__trace *tr, cot_var input) {
    static const int64_t still[COT_MAX_NDIM];
    static double        zero[2];
    int64_t              node = cot__trace_find(tr, cot__index(input));
    cot__view            value = tr->nodes[node].value, g;
    if (!cot__trace_adjoint(tr, node, &g)) g = (cot__view){zero, value.dtype, value.ndim, value.shape, still};
    cot__json_view(j, &g);
}

/* Does anything arrive at the input? If not, its adjoint is 0, and the sweep has no step for it. */
static bool arrives(const cot__trace *tr, cot_var input) {
    cot__view g;
    return cot__trace_adjoint(tr, cot__trace_find(tr, cot__index(input)), &g);
}

/* The constants that the text uses and nobody has given: they could be inputs too. */
static void write_constants(cot__json *j, const cot__trace *tr, int n, const cot__trace_input *inputs) {
    const char *name[COT__EXPR_CONSTANTS];
    double      value[COT__EXPR_CONSTANTS];
    cot__json_key(j, "constants");
    cot__json_open(j, '[');
    for (int k = 0, count = tr->expr ? cot__expr_constants(tr->expr, name, value) : 0; k < count; k++) {
        bool given = false;
        for (int i = 0; i < n; i++) given = given || strcmp(inputs[i].name, name[k]) == 0;
        if (given) continue;
        cot__json_open(j, '{');
        string_key(j, "name", name[k]);
        cot__json_key(j, "value"), cot__json_number(j, value[k]);
        cot__json_close(j, '}');
    }
    cot__json_close(j, ']');
}

static void write_inputs(cot__json *j, const cot__trace *tr, int n, const cot__trace_input *inputs) {
    cot__json_key(j, "inputs");
    cot__json_open(j, '[');
    for (int k = 0; k < n; k++) {
        cot__json_open(j, '{');
        string_key(j, "name", inputs[k].name);
        cot__json_key(j, "node"), cot__json_integer(j, cot__index(inputs[k].value));
        cot__json_key(j, "arrives"), cot__json_bool(j, arrives(tr, inputs[k].value));
        cot__json_close(j, '}');
    }
    cot__json_close(j, ']');
}

/* A view of doubles in a row-major array, with its strides. */
static void write_tangent(cot__json *j, cot__view v) {
    int64_t stride[COT_MAX_NDIM];
    if (!v.stride) cot__strides(v.ndim, v.shape, stride), v.stride = stride;
    cot__json_tensor(j, &v);
}

/* What came through operand k: of an elementwise node by its rule; all, if it came through no
 * other; null: not known apart. */
static void write_part(cot__json *j, const cot__tangents *w, int walk, int64_t node, int k, bool only) {
    const cot__trace_node *n = &w->trace->nodes[node];
    cot_tape              *t = w->trace->t;
    cot__view              g = cot__tangent(w, walk, cot__trace_find(w->trace, n->args[k])), out;
    int64_t                own[COT_MAX_NDIM], stride[COT_MAX_NDIM];
    char                   buf[COT__TRACE_TEXT];
    bool                   rule = n->op < OP_structural && cot__on_host(t->backend);
    if (!g.stride) cot__strides(g.ndim, g.shape, own), g.stride = own;
    cot__json_open(j, '{');
    cot__json_key(j, "from"), cot__json_integer(j, n->args[k]);
    string_key(j, "filled", rule ? cot__tangent_filled(w->trace, node, k, buf, sizeof buf) : NULL);
    void *data = rule ? cot__contribution(t, n->id, k, &g, &out, stride) : NULL;
    cot__json_key(j, "amount");
    if (data) cot__json_tensor(j, &out);
    else if (only) write_tangent(j, cot__tangent(w, walk, node));
    else cot__json_null(j);
    if (data) cot__contribution_free(t, data, &out);
    cot__json_close(j, '}');
}

/* Does a tangent come through operand k? */
static bool passes(const cot__trace *tr, const cot__trace_node *n, int k) {
    int64_t from = n->args[k] == COT__NONE ? -1 : cot__trace_find(tr, n->args[k]);
    return from >= 0 && tr->nodes[from].active &&
           (n->op >= OP_structural || cot__elementwise_table[n->op].partial[k]);
}

static void write_moved(cot__json *j, const cot__tangents *w, int walk, int64_t node) {
    const cot__trace_node *n = &w->trace->nodes[node];
    cot__json_open(j, '{');
    cot__json_key(j, "node"), cot__json_integer(j, n->id);
    cot__json_key(j, "tangent"), write_tangent(j, cot__tangent(w, walk, node));
    cot__json_key(j, "parts");
    cot__json_open(j, '[');
    int moved = 0;
    for (int k = 0; k < n->nargs; k++) moved += passes(w->trace, n, k);
    for (int k = 0; k < n->nargs; k++)
        if (passes(w->trace, n, k)) write_part(j, w, walk, node, k, moved == 1);
    cot__json_close(j, ']');
    cot__json_close(j, '}');
}

/* Forward mode: for each number of the inputs, "x" or "x[2]", how everything moves when it moves by
 * one, the inputs too; where they are many, for each input, when all of it moves by ones. */
static bool write_tangents(cot__json *j, const cot__trace *tr, int n, const cot__trace_input *inputs) {
    cot__tangents w;
    cot__json_key(j, "tangents");
    cot__json_open(j, '{');
    if (cot__tangents_open(&w, tr, n, inputs)) {
        for (int walk = 0; walk < w.walks; walk++) {
            cot__json_key(j, w.walk[walk].name);
            cot__json_open(j, '[');
            for (int64_t i = 0; i < tr->node_count; i++)
                if (w.at[i] >= 0 || (tr->nodes[i].active && tr->nodes[i].nargs == 0))
                    write_moved(j, &w, walk, i);
            cot__json_close(j, ']');
        }
        cot__tangents_close(&w);
    }
    cot__json_close(j, '}');
    return !w.no_memory;
}

enum { MOST_CODE = 2000 }; /* nodes */

typedef struct json_lines {
    cot__code_lines   lines;
    cot__json        *j;
    const cot__trace *trace;
} json_lines;

static void write_line(cot__code_lines *to, const char *text, int64_t node, bool back) {
    json_lines *l = (json_lines *)(void *)to;
    cot__json_open(l->j, '{');
    string_key(l->j, "text", text);
    cot__json_key(l->j, "node");
    if (node < 0) cot__json_null(l->j);
    else cot__json_integer(l->j, l->trace->nodes[node].id);
    cot__json_key(l->j, "back"), cot__json_bool(l->j, back);
    cot__json_close(l->j, '}');
}

/* The code beside the picture: the program and the sweep, a line each; "missing": the operation
 * that ends the lines, for which there is no public function. Nobody reads a tape of many thousand
 * lines in step: of such a one there are none. */
static bool write_code(cot__json *j, const cot__trace *tr) {
    static const struct {
        const char *key, *(*write)(const cot__trace *tr, cot__code_lines *lines);
    } part[] = {{"program", cot__code_program}, {"sweep", cot__code_sweep}};
    json_lines  to = {{write_line}, j, tr};
    const char *missing[2] = {NULL};
    cot__json_key(j, "code");
    cot__json_open(j, '{');
    for (int k = 0; k < 2; k++) {
        cot__json_key(j, part[k].key);
        cot__json_open(j, '[');
        if (tr->node_count <= MOST_CODE) missing[k] = part[k].write(tr, &to.lines);
        cot__json_close(j, ']');
    }
    cot__json_key(j, "missing"), cot__json_string(j, missing[0] ? missing[0] : missing[1]);
    cot__json_close(j, '}');
    return missing[0] != cot__code_no_memory && missing[1] != cot__code_no_memory;
}

char *cot__whole_text(int (*tell)(cot_var y, char *out, size_t size), cot_var y, int *found) {
    for (size_t size = 1 << 14;; size *= 2) {
        char *text = malloc(size);
        *found = text ? tell(y, text, size) : -1;
        /* four bytes to spare: the text was not cut, not even inside a character */
        if (*found >= 0 && strlen(text) < size - 4) return text;
        free(text);
        if (*found < 0) return NULL;
    }
}

/* Where the derivative rests on a convention: the text of cot_report, one string for each line. */
static bool write_report(cot__json *j, const cot__trace *tr) {
    int   found = 0;
    char *text = tr->why[0] ? NULL : cot__whole_text(cot_report, VAR(tr->t, tr->nodes[tr->output].id), &found);
    if (found < 0) return false;
    cot__json_key(j, "report");
    cot__json_open(j, '[');
    for (const char *line = text; found > 0 && *line;) {
        size_t n = strcspn(line, "\n");
        cot__json_string_n(j, line, n);
        line += n + (line[n] == '\n');
    }
    cot__json_close(j, ']');
    free(text);
    return true;
}

bool cot__trace_json(cot__json *j, const cot__trace *tr, const char *expression, cot_dtype dtype, int n,
                     const cot__trace_input *inputs) {
    cot__json_open(j, '{');
    cot__json_key(j, "value"), cot__json_view(j, &tr->nodes[tr->output].value);
    cot__json_key(j, "grad");
    cot__json_open(j, '{');
    for (int k = 0; k < n; k++)
        if (inputs[k].wanted) cot__json_key(j, inputs[k].name), write_gradient(j, tr, inputs[k].value);
    cot__json_close(j, '}');
    string_key(j, "expression", expression);
    string_key(j, "dtype", cot__dtype_name(dtype));
    cot__json_key(j, "seed"), cot__json_tensor(j, &tr->seed);
    write_inputs(j, tr, n, inputs);
    write_constants(j, tr, n, inputs);
    cot__json_key(j, "output"), cot__json_integer(j, tr->nodes[tr->output].id);
    cot__json_key(j, "nodes");
    cot__json_open(j, '[');
    for (int64_t i = 0; i < tr->node_count; i++) write_node(j, tr, i);
    cot__json_close(j, ']');
    cot__json_key(j, "sweep");
    cot__json_open(j, '[');
    for (int64_t i = 0; i < tr->step_count; i++) write_step(j, tr, i);
    cot__json_close(j, ']');
    bool whole = write_tangents(j, tr, n, inputs);
    cot__json_key(j, "cost");
    cot__cost_json(j, &tr->cost);
    whole = whole && write_code(j, tr) && write_report(j, tr);
    cot__json_close(j, '}');
    return whole;
}
