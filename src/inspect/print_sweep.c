/* print_sweep.c: prints both sweeps of a derivative: the tape from top to bottom, then the adjoints
 * from the last node to the first, with the rule of each node and the amounts it adds to its
 * operands. */
#include "diff/engine/kept_adjoints.h"
#include "tape/show.h"

#include <string.h>

/* Writes " x̄ += v̄₂·cos(x) = 0.707107" for each operand that gets an amount. */
static void show_elementwise(cot__text *x, cot_tape *t, uint32_t i, const cot__view *g) {
    const cot__elementwise_info *e = &cot__elementwise_table[t->nodes[i].op];
    char formula[COT__FORMULA_TEXT], filled[COT__FILLED_TEXT], called[COT__CALLED_TEXT], to_bar[COT__CALLED_TEXT + 2],
        bar[COT__CALLED_TEXT + 2];
    cot__with_bar(cot__called(t, i, called), bar, sizeof bar);
    for (int k = 0; k < e->arity; k++) {
        uint32_t  to = cot__arg(&t->nodes[i], k);
        cot__view out;
        int64_t   stride[COT_MAX_NDIM];
        if (to == COT__NONE || !e->partial[k] || !(t->nodes[to].flags & COT__ACTIVE)) continue;
        cot__putf(x, "    %s += ", cot__with_bar(cot__called(t, to, called), to_bar, sizeof to_bar));
        cot__formula(t->nodes[i].op, e->partial[k], formula, sizeof formula);
        cot__put(x, cot__filled_bar(t, i, formula, bar, filled, sizeof filled));
        void *data = cot__contribution(t, i, k, g, &out, stride);
        cot__put(x, " = ");
        if (data)
            cot__show_values(x, t->backend, &out);
        else
            cot__put(x, "(out of memory)");
        cot__put(x, "\n");
        cot__contribution_free(t, data, &out);
    }
}

/* The formula of a record reads "value; adjoints". */
static void show_structural(cot__text *x, const cot__op *op) {
    const char *rule = op->formula ? strstr(op->formula, "; ") : NULL;
    if (!rule) return;
    cot__put(x, "    ");
    cot__put(x, rule + 2);
    cot__put(x, "\n");
}

static void show_step(cot__text *x, cot_tape *t, uint32_t i, const cot__view *g) {
    const cot__op *op = cot__op_of(t->nodes[i].op);
    cot__show_node(x, t, i);
    cot__tab(x, COT__ORIGIN_COLUMN);
    cot__put(x, "adjoint ");
    cot__show_values(x, t->backend, g);
    if (cot__name_of(t, i) && !cot__is_called_by_name(t, i))
        cot__put(x, "  \""), cot__put(x, cot__name_of(t, i)), cot__put(x, "\"");
    cot__put(x, "\n");
    if (op->kind == KIND_SOURCE) return;
    if (t->nodes[i].op < OP_structural)
        show_elementwise(x, t, i, g);
    else
        show_structural(x, op);
}

static void show_sweep(cot__text *x, cot_tape *t, uint32_t y) {
    cot__kept_adjoints w;
    cot__view          g;
    char               called[COT__CALLED_TEXT];
    cot__putf(x, "\nreverse sweep from %s\n", cot__called(t, y, called));
    if (!cot__has_values(t, "print_sweep", y, "sweep from a result outside")) {
        cot__putf(x, "error: %s\n", t->errors.message);
        return;
    }
    if (!(t->nodes[y].flags & COT__ACTIVE))
        cot__putf(x, "%s depends on no leaf: there is nothing to sweep\n", called);
    else if (!cot__kept_adjoints_open(&w, t, y, NULL)) {
        cot__put(x, "error: ");
        cot__put(x, w.why);
        cot__put(x, "\n");
        cot__kept_adjoints_close(&w);
    } else {
        cot__calling_open(t);
        for (uint32_t k = 0; k < w.sweep.arrival_count; k++) {
            uint32_t i = w.sweep.arrivals[k].node;
            if (cot__kept_adjoint(&w, i, &g)) show_step(x, t, i, &g);
        }
        cot__calling_close(t);
        cot__kept_adjoints_close(&w);
    }
}

void cot_tape_print_sweep(cot_var y, FILE *out) {
    if (!out) return;
    cot_tape *t = cot__is_number(y) ? NULL : y.tape;
    if (cot__is_number(y)) {
        fputs("error: y is a plain number, not a value on a tape\n", out);
        return;
    }
    cot_tape_print(t, out);
    if (cot_tape_status(t) != COT_OK) return;
    cot__text x = cot__text_file(out);
    if (cot_is_valid(y))
        show_sweep(&x, t, cot__index(y));
    else
        cot__put(&x, "error: y is invalid or was forgotten by a rewind\n");
}
