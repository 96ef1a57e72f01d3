/* code_sweep.c: the sweep written out: every step's additions as statements of C. */
#include "trace/code_calls.h"

#include "diff/engine/kept_adjoints.h"
#include "ops/array/array.h"
#include "ops/structural.h"
#include "rules/elementwise_ids.h"
#include "rules/elementwise_table.h"
#include "rules/structural_ids.h"
#include "tape/scope.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_plain(const cot__trace_node *n) {
    bool source = n->op == OP_leaf || n->op == OP_constant;
    return n->value.ndim == 0 && (n->value.dtype == COT_F64 || n->value.dtype == COT_BOOL) &&
           (source || n->op < OP_structural);
}

/* ---- one operation as an expression ---------------------------------------------------------- */

enum { NAMED = 3 }; /* operands of an elementwise operation */

typedef struct named {
    char        text[NAMED + 2][COT__C_NAME];
    double      number[NAMED];
    cot__c_tree tree;
} named;

/* A plain value at this point, for what depends on it. */
static double plain_value(const cot__trace_node *n) {
    return is_plain(n) && !n->overwritten ? cot__load_f64(n->value.data, n->value.dtype) : NAN;
}

/* The names of an elementwise node's operands, of itself and of its adjoint. */
static const cot__c_tree *names_of(const cot__trace *tr, int64_t node, bool calls, named *to) {
    const cot__trace_node *n = &tr->nodes[node];
    to->tree = (cot__c_tree){.calls = calls};
    for (int k = 0; k < n->nargs && k < NAMED; k++) {
        int64_t from = n->args[k] == COT__NONE ? -1 : cot__trace_find(tr, n->args[k]);
        bool    plain = from < 0 || (tr->nodes[from].op == OP_constant && is_plain(&tr->nodes[from]));
        if (plain) {
            const cot__view *v = from < 0 ? NULL : &tr->nodes[from].value;
            to->number[k] = v ? cot__load_f64(v->data, v->dtype) : n->number;
            to->tree.number[k] = &to->number[k];
        } else {
            to->tree.operand[k] = cot__c_name(tr, from, to->text[k]);
            to->tree.at[k] = plain_value(&tr->nodes[from]);
        }
    }
    to->tree.at_result = plain_value(n);
    to->tree.at_adjoint = NAN;
    to->tree.result = cot__c_name(tr, node, to->text[NAMED]);
    snprintf(to->text[NAMED + 1], COT__C_NAME, "%.180s_bar", to->tree.result);
    to->tree.adjoint = to->text[NAMED + 1];
    return &to->tree;
}

static bool fits(const cot__text *x) { return x->used + 1 < x->size; }

/* ---- what is written to ---------------------------------------------------------------------- */

/* What a rule gives to an operand: `from` to all of it, to a slice, at positions along an axis, or
 * at positions of each row. */
typedef struct given {
    enum { ALL, SLICE, SCATTER, ALONG } how;
    int      operand, axis;
    uint32_t from, index;
    int64_t  slice[4];
} given;

typedef struct sweep_code {
    cot__sweep        sweep; /* first, because rules see it as their driver */
    const cot__trace *tr;
    cot__code_lines  *lines;
    bool              calls;
    bool              uses[OP_elementwise_count]; /* functions that plain C calls */
    double            adjoint; /* of the step, in plain C */
    const char       *stopped; /* the operation that cannot be said */
    /* of the rule that runs: its node, what it records from `first` on, and the next temporary */
    int64_t           node;
    uint32_t          first, adjoints; /* as many of these are the adjoints of its results */
    char            **text; /* of each recorded node */
    int               temporaries;
    given             given[64];
    int               given_count;
} sweep_code;

static void put_line(sweep_code *c, const char *text, int64_t node, bool back) {
    if (c->lines) c->lines->line(c->lines, text, node, back);
}

static void bar_of(const sweep_code *c, int64_t node, char *buf) {
    char name[COT__C_NAME];
    snprintf(buf, COT__C_NAME, "%.180s_bar", cot__c_name(c->tr, node, name));
}

/* What the node of the step is, behind its first addition. */
static void put_made(const sweep_code *c, cot__text *x) {
    named names;
    cot__put(x, "  /* "), cot__put(x, names_of(c->tr, c->node, false, &names)->result), cot__put(x, " = ");
    cot__c_tree_put(x, &names.tree, cot__elementwise_table[c->tr->nodes[c->node].op].value);
    cot__put(x, " */");
}

static void put_addition(sweep_code *c, int64_t to, const char *amount, const char *form, bool whole,
                         bool first) {
    char bar[COT__C_NAME], line[3 * COT__C_TEXT];
    bar_of(c, to, bar);
    cot__text x = cot__text_buffer(line, sizeof line);
    if (!c->calls) cot__putf(&x, "    %s += ", bar), cot__put(&x, amount);
    else if (whole) cot__putf(&x, "    %s = ", bar), cot__put(&x, amount);
    else if (form) cot__putf(&x, "    %s = cot_scatter_add(%s, ", bar, bar), cot__put(&x, form);
    else cot__putf(&x, "    %s = cot_add(%s, ", bar, bar), cot__put(&x, amount), cot__put(&x, ")");
    cot__put(&x, ";");
    if (first && !c->calls) put_made(c, &x);
    put_line(c, line, c->node, true);
}

/* ---- elementwise ----------------------------------------------------------------------------- */

static void elementwise_step(sweep_code *c) {
    const cot__trace_node       *n = &c->tr->nodes[c->node];
    const cot__elementwise_info *e = &cot__elementwise_table[n->op];
    named                        names;
    bool                         first = true;
    names_of(c->tr, c->node, c->calls, &names);
    names.tree.at_adjoint = c->adjoint;
    names.tree.uses = c->uses;
    for (int k = 0; k < e->arity; k++) {
        int64_t to = n->args[k] == COT__NONE ? -1 : cot__trace_find(c->tr, n->args[k]);
        if (to < 0 || !e->partial[k] || !c->tr->nodes[to].active) continue;
        char      amount[COT__C_TEXT];
        cot__text x = cot__text_buffer(amount, sizeof amount);
        if (!cot__c_tree_put(&x, &names.tree, e->partial[k]) || !fits(&x)) c->stopped = e->name;
        else put_addition(c, to, amount, NULL, false, first);
        first = false;
    }
}

/* ---- rules in recorded operations ------------------------------------------------------------ */

static void note(cot__rule *r, int k, cot_var v, given how) {
    sweep_code *c = r->driver;
    if (r->t->status != COT_OK || !cot__rule_wants(r, k)) return;
    if (cot__is_number(v)) v = cot_constant(r->t, cot__number_value(v));
    if (v.id == UINT64_MAX || c->given_count == COUNTOF(c->given)) {
        c->stopped = r->op->name;
        return;
    }
    how.operand = k;
    how.from = cot__index(v);
    c->given[c->given_count++] = how;
}

static void give_all(cot__rule *r, int k, cot_var v) { note(r, k, v, (given){.how = ALL}); }

static void give_slice(cot__rule *r, int k, cot_var v, const int64_t slice[4]) {
    given how = {.how = SLICE, .axis = (int)slice[0]};
    memcpy(how.slice, slice, sizeof how.slice);
    note(r, k, v, how);
}

static void give_scatter(cot__rule *r, int k, cot_var v, cot_var index, int axis, bool along) {
    sweep_code *c = r->driver;
    if (index.id == UINT64_MAX) c->stopped = r->op->name;
    else note(r, k, v, (given){.how = along ? ALONG : SCATTER, .axis = axis, .index = cot__index(index)});
}

/* What a node is in the code of the rule: a name, or an expression that is used once. */
static const char *text_of(const sweep_code *c, uint32_t id, char *buf) {
    if (id >= c->first) return c->text[id - c->first];
    int64_t   node = cot__trace_find(c->tr, id);
    cot__text x = cot__text_buffer(buf, COT__C_TEXT);
    if (node < 0 || cot__c_has_no_line(c->tr->t, id)) return cot__c_result_name(c->tr, id, buf);
    const cot__trace_node *n = &c->tr->nodes[node];
    if (n->op == OP_constant && n->value.ndim == 0) cot__c_source_put(&x, c->tr->t, id, NULL);
    else cot__c_name(c->tr, node, buf);
    return buf;
}

/* The expression of a recorded node, in memory of its own. NULL: it cannot be said. */
static char *recorded_text(sweep_code *c, uint32_t id) {
    const cot_tape  *t = c->tr->t;
    const cot__node *n = &t->nodes[id];
    int              nargs = cot__nargs(n);
    const char     **operand = calloc((size_t)nargs + 1, sizeof *operand);
    char            *buffers = malloc(((size_t)nargs + 1) * COT__C_TEXT), *out = malloc(COT__C_TEXT);
    bool             ok = operand && buffers && out;
    if (!ok) c->stopped = cot__code_no_memory;
    cot__text        x = cot__text_buffer(out, out ? COT__C_TEXT : 0);
    for (int k = 0; ok && k < nargs; k++) {
        char    *buf = buffers + (size_t)k * COT__C_TEXT;
        uint32_t arg = cot__arg(n, k);
        operand[k] = arg == COT__NONE ? cot__c_number(n->extra.number, buf) : text_of(c, arg, buf);
        ok = operand[k] != NULL;
    }
    if (ok && n->op == OP_constant)
        ok = cot__size_at(t, id) <= COT__C_FEW && cot__c_source_put(&x, t, id, NULL);
    else ok = ok && cot__c_call_put(&x, t, id, operand);
    if (!ok || !fits(&x)) {
        if (!c->stopped) c->stopped = cot__op_name(t, id);
        free(out);
        out = NULL;
    }
    free(operand);
    free(buffers);
    return out;
}

static int uses_of(const sweep_code *c, uint32_t id) {
    const cot_tape *t = c->tr->t;
    int             uses = 0;
    for (uint32_t i = id + 1; i < t->count; i++)
        for (int k = 0; k < cot__nargs(&t->nodes[i]); k++) uses += cot__arg(&t->nodes[i], k) == id;
    for (int k = 0; k < c->given_count; k++)
        uses += (c->given[k].from == id) + (c->given[k].how >= SCATTER && c->given[k].index == id);
    return uses;
}

/* A node that is used twice, or is long, gets a name. */
static void name_recorded(sweep_code *c, uint32_t id, int uses) {
    char **text = &c->text[id - c->first];
    if (uses < 2 && strlen(*text) < 100) return;
    char  line[COT__C_TEXT + 64], *name = malloc(32);
    if (!name) {
        c->stopped = cot__code_no_memory;
        return;
    }
    snprintf(name, 32, "part%d", ++c->temporaries);
    snprintf(line, sizeof line, "    cot_var %s = %s;", name, *text);
    put_line(c, line, c->node, true);
    free(*text);
    *text = name;
}

static void put_given(sweep_code *c, const given *g, bool first) {
    char    from[COT__C_TEXT], index[COT__C_TEXT], form[2 * COT__C_TEXT + 128];
    int64_t to = cot__trace_find(c->tr, c->tr->nodes[c->node].args[g->operand]);
    const char *amount = text_of(c, g->from, from), *at = g->how >= SCATTER ? text_of(c, g->index, index) : "";
    if (to < 0 || !amount || !at) {
        c->stopped = cot__op_name(c->tr->t, c->tr->nodes[c->node].id);
        return;
    }
    long long s[3] = {g->slice[1], g->slice[1] + g->slice[2] * g->slice[3], g->slice[3]};
    if (g->how == SLICE)
        snprintf(form, sizeof form, "cot_arange(t, COT_I64, %lld, %lld, %lld), %s, %d)", s[0], s[1], s[2], amount,
                 g->axis);
    else if (g->how == SCATTER)
        snprintf(form, sizeof form, "%s, %s, %d)", at, amount, g->axis);
    if (g->how == ALONG) {
        cot__text x = cot__text_buffer(form, sizeof form);
        cot_shape shape = cot__shape_at(c->tr->t, c->tr->nodes[to].id);
        int       axis = g->axis < 0 ? g->axis + shape.ndim : g->axis;
        char      bar[COT__C_NAME];
        bar_of(c, to, bar);
        cot__c_along_put(&x, &(cot__c_along){bar, at, amount, shape, axis, c->tr->nodes[to].value.dtype});
    }
    put_addition(c, to, g->how == ALONG ? form : amount, g->how == SLICE || g->how == SCATTER ? form : NULL,
                 g->how == ALONG, first);
}

/* Says what the rule has recorded. */
static void put_recorded(sweep_code *c) {
    uint32_t count = (uint32_t)c->tr->t->count - c->first;
    for (uint32_t i = c->adjoints; i < count && !c->stopped; i++) {
        int uses = uses_of(c, c->first + i);
        if (uses == 0) continue;
        if (!(c->text[i] = recorded_text(c, c->first + i))) return;
        name_recorded(c, c->first + i, uses);
    }
    for (int k = 0; k < c->given_count && !c->stopped; k++) put_given(c, &c->given[k], k == 0);
}

enum { MOST_RESULTS = 8 };

/* An adjoint of ones for each result that has one; what is recorded from then on is the rule's. */
static void open_adjoints(sweep_code *c, cot__rule *r, cot_var *more) {
    cot_tape *t = c->tr->t;
    int       results = cot__results_at(t, r->node);
    r->g = cot_ones(t, cot__dtype_at(&t->nodes[r->node]), cot__shape_at(t, r->node));
    for (int k = 1; k < MOST_RESULTS; k++) more[k - 1] = INVALID(t);
    for (int k = 1; k < results && k < MOST_RESULTS; k++) {
        uint32_t id = r->node + (uint32_t)k;
        int64_t  node = cot__trace_find(c->tr, id);
        if (node < 0 || !c->tr->nodes[node].active) continue;
        more[k - 1] = cot_ones(t, cot__dtype_at(&t->nodes[id]), cot__shape_at(t, id));
    }
    c->adjoints = (uint32_t)t->count - c->first;
    if (results > MOST_RESULTS) c->stopped = r->op->name;
}

/* The names of those adjoints, then what the rule has recorded. */
static void say_recorded(sweep_code *c) {
    cot_tape *t = c->tr->t;
    uint32_t  count = (uint32_t)t->count - c->first, at = 0;
    if (c->stopped) return;
    c->text = calloc((size_t)count + 1, sizeof *c->text);
    for (int k = 0; c->text && at < c->adjoints; k++) {
        int64_t node = cot__trace_find(c->tr, c->tr->nodes[c->node].id + (uint32_t)k);
        if (k > 0 && (node < 0 || !c->tr->nodes[node].active)) continue;
        if (!(c->text[at] = malloc(COT__C_NAME))) break;
        bar_of(c, node, c->text[at++]);
    }
    if (c->text && at == c->adjoints) put_recorded(c);
    else c->stopped = cot__code_no_memory;
    for (uint32_t i = 0; c->text && i < count; i++) free(c->text[i]);
    free(c->text);
    c->text = NULL;
}

/* ---- rules that only the library has --------------------------------------------------------- */

/* The operation once more, on leaves with the values of its operands, and its rule by cot_vjp. */
static void put_rule(sweep_code *c) {
    const cot__trace_node *n = &c->tr->nodes[c->node];
    const char            *operand[MOST_RESULTS];
    char                   names[MOST_RESULTS][COT__C_TEXT], line[2 * COT__C_TEXT], amount[COT__C_NAME];
    int                    leaves = 0, of[MOST_RESULTS], part = c->temporaries + 1;
    cot__text              x = cot__text_buffer(line, sizeof line);
    c->stopped = cot__op_of(n->op)->name;
    if (c->adjoints != 1 || n->nargs > MOST_RESULTS) return;
    cot__putf(&x, "    cot_var part%d[] = {", part);
    for (int k = 0; k < n->nargs; k++) {
        const char *name = text_of(c, n->args[k], names[k]);
        int64_t     from = cot__trace_find(c->tr, n->args[k]);
        operand[k] = name;
        if (from < 0 || !name || !c->tr->nodes[from].active || cot__op_of(n->op)->inactive >> k & 1) continue;
        cot__putf(&x, leaves ? ", cot_leaf(%s)" : "cot_leaf(%s)", name);
        snprintf(names[k], sizeof names[k], "part%d[%d]", part, leaves);
        operand[k] = names[k], of[leaves++] = k;
    }
    cot__putf(&x, "}, part%d[%d];", part + 1, leaves);
    if (!leaves) return;
    put_line(c, line, c->node, true);
    x = cot__text_buffer(line, sizeof line);
    cot__put(&x, "    cot_vjp(");
    if (!cot__c_call_put(&x, c->tr->t, n->id, operand)) return;
    bar_of(c, c->node, amount);
    cot__put(&x, ", "), cot__put(&x, amount);
    cot__putf(&x, ", %d, part%d, part%d);  /* the rule of %s is the library's */", leaves, part, part + 1,
              cot__op_of(n->op)->name);
    if (!fits(&x)) return;
    put_line(c, line, c->node, true);
    c->temporaries += 2;
    c->stopped = NULL;
    for (int k = 0; k < leaves; k++) {
        snprintf(amount, sizeof amount, "part%d[%d]", part + 1, k);
        put_addition(c, cot__trace_find(c->tr, n->args[of[k]]), amount, NULL, false, false);
    }
}

/* ---- rules that are a formula ---------------------------------------------------------------- */

static bool put_formula(sweep_code *c) {
    const cot__trace_node *n = &c->tr->nodes[c->node];
    char                   amount[COT__C_TEXT], bar[COT__C_NAME];
    cot__text              x = cot__text_buffer(amount, sizeof amount);
    bar_of(c, c->node, bar);
    if (!cot__c_formula_put(&x, c->tr->t, n->id, bar) || !fits(&x)) return false;
    put_addition(c, cot__trace_find(c->tr, n->args[0]), amount, NULL, false, false);
    return true;
}

static void structural_step(sweep_code *c) {
    cot_tape              *t = c->tr->t;
    const cot__trace_node *n = &c->tr->nodes[c->node];
    const cot__op         *op = cot__op_of(n->op);
    cot_var                more[MOST_RESULTS];
    cot__rule              r = {.t = t, .node = n->id, .op = op, .driver = c, .gs = more,
                                .give = give_all, .give_slice = give_slice, .give_scatter = give_scatter};
    c->first = (uint32_t)t->count;
    c->given_count = 0;
    if (put_formula(c)) return;
    cot_mark   m = cot__mark(t);
    cot__scope scope = cot__scope_open(t, 0);
    open_adjoints(c, &r, more);
    if (t->status == COT_OK && !c->stopped) cot__run_vjp(&r);
    if (t->status != COT_OK) c->stopped = cot__code_no_memory;
    /* first to nobody: what cannot be said in full is said in another way */
    cot__code_lines *lines = c->lines;
    int              temporaries = c->temporaries;
    c->lines = NULL;
    say_recorded(c);
    c->lines = lines;
    if (lines) c->temporaries = temporaries;
    if (!c->stopped && lines) say_recorded(c);
    else if (c->stopped && c->stopped != cot__code_no_memory) put_rule(c);
    cot__scope_close(t, &scope);
    cot__rewind(t, m);
    if (t->status != COT_OK) cot_tape_clear_error(t);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Can the forward pass and all partials be said in plain C? */
static bool all_plain(const cot__trace *tr) {
    bool seen[OP_elementwise_count] = {false};
    for (int64_t i = 0; i < tr->node_count; i++) {
        int op = tr->nodes[i].op;
        if (!is_plain(&tr->nodes[i])) return false;
        if (op >= OP_structural || seen[op]) continue;
        if (!cot__c_plain(op)) return false;
        seen[op] = true;
    }
    return tr->seed.ndim == 0;
}

/* The forward pass with doubles. */
static void put_forward(sweep_code *c) {
    const cot__trace *tr = c->tr;
    char              line[COT__C_TEXT], name[COT__C_NAME], number[COT__C_NAME];
    for (int64_t i = 0; i < tr->node_count; i++) {
        const cot__trace_node *n = &tr->nodes[i];
        cot__text              x = cot__text_buffer(line, sizeof line);
        named                  names;
        if (n->op == OP_constant && !n->name) continue;
        cot__putf(&x, "    double %s = ", cot__c_name(tr, i, name));
        if (n->op < OP_structural) {
            names_of(tr, i, false, &names);
            names.tree.uses = c->uses;
            cot__c_tree_put(&x, &names.tree, cot__elementwise_table[n->op].value);
        } else
            cot__put(&x, cot__c_number(cot__load_f64(n->value.data, n->value.dtype), number));
        cot__put(&x, ";");
        put_line(c, line, i, false);
    }
}

static void put_bars(sweep_code *c) {
    char line[2 * COT__C_NAME + 64], name[COT__C_NAME];
    for (int64_t i = 0; i < c->tr->node_count; i++) {
        if (!c->tr->nodes[i].active) continue;
        cot__c_name(c->tr, i, name);
        if (c->calls) snprintf(line, sizeof line, "    cot_var %.180s_bar = cot_full_like(%.180s, 0.0);", name, name);
        else snprintf(line, sizeof line, "    double %.180s_bar = 0.0;", name);
        put_line(c, line, -1, true);
    }
}

static void put_seed(sweep_code *c) {
    const cot__trace *tr = c->tr;
    char              line[COT__C_TEXT + 256], bar[COT__C_NAME], number[COT__C_NAME];
    bar_of(c, tr->output, bar);
    if (tr->seed.ndim == 0) {
        const char *seed = cot__c_number(cot__load_f64(tr->seed.data, tr->seed.dtype), number);
        if (c->calls) snprintf(line, sizeof line, "    %.180s = cot_add(%.180s, %s);", bar, bar, seed);
        else snprintf(line, sizeof line, "    %s = %s;", bar, seed);
    } else
        snprintf(line, sizeof line, "    %.180s = seed;", bar);
    put_line(c, line, -1, true);
}

static void put_result(sweep_code *c, int64_t node, const char *bar) {
    char line[3 * COT__C_NAME], name[COT__C_NAME];
    cot__c_name(c->tr, node, name);
    if (c->calls) snprintf(line, sizeof line, "    show(\"%.180s%s\", %.180s%s);", name, bar, name, bar);
    else snprintf(line, sizeof line, "    printf(\"%.180s%s = %%.17g\\n\", %.180s%s);", name, bar, name, bar);
    put_line(c, line, -1, true);
}

static void put_results(sweep_code *c) {
    put_result(c, c->tr->output, "");
    for (int64_t i = 0; i < c->tr->node_count; i++)
        if (c->tr->nodes[i].op == OP_leaf && c->tr->nodes[i].active) put_result(c, i, "_bar");
}

static void put_steps(sweep_code *c) {
    const cot__trace *tr = c->tr;
    for (int64_t i = 0; i < tr->step_count && !c->stopped; i++) {
        cot__kind kind = cot__op_of(tr->nodes[c->node = tr->steps[i].node].op)->kind;
        c->adjoint = c->calls ? NAN : cot__load_f64(tr->steps[i].adjoint.data, tr->steps[i].adjoint.dtype);
        /* the adjoint of a further result is read by the rule of its operation */
        if (kind == KIND_SOURCE || kind == KIND_PICK) continue;
        if (tr->nodes[c->node].op < OP_structural) elementwise_step(c);
        else structural_step(c);
    }
}

/* The functions that libm lacks, found by writing the sweep to nobody. */
static void put_helpers(sweep_code *c, cot__code_lines *lines) {
    c->lines = NULL;
    put_forward(c);
    put_steps(c);
    c->lines = lines;
    for (int op = 0; op < OP_elementwise_count && !c->stopped; op++)
        if (c->uses[op] && cot__c_helper(op)) put_line(c, cot__c_helper(op), -1, false);
}

const char *cot__code_sweep(const cot__trace *tr, cot__code_lines *lines) {
    sweep_code c = {.sweep = {.t = tr->t}, .tr = tr, .lines = lines, .calls = !all_plain(tr)};
    if (tr->step_count == 0) return NULL;
    if (c.calls) {
        put_line(&c, "static void by_hand(cot_tape *t) {", -1, false);
        if ((c.stopped = cot__code_forward(tr, lines))) return c.stopped;
    } else {
        put_helpers(&c, lines);
        put_line(&c, "static void by_hand(void) {", -1, false);
        put_forward(&c);
    }
    put_bars(&c);
    put_seed(&c);
    put_steps(&c);
    if (c.stopped) return c.stopped;
    put_results(&c);
    put_line(&c, "}", -1, true);
    return NULL;
}
