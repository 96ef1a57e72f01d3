/* step_graph.c: rails for the uses of nodes, and rows of them. A rail is free again below the last
 * use of its node. */
#include "step/step_graph.h"

#include <stdlib.h>
#include <string.h>

static void find_last(step_graph *g, const cot__trace *tr) {
    for (int64_t i = 0; i < tr->node_count; i++) {
        g->last[i] = i;
        for (int k = 0; k < tr->nodes[i].nargs; k++) {
            int64_t from = tr->nodes[i].args[k] == COT__NONE ? -1 : cot__trace_find(tr, tr->nodes[i].args[k]);
            if (from >= 0) g->last[from] = i;
        }
    }
}

static void lay_rails(step_graph *g, int64_t nodes) {
    int64_t busy[GRAPH_RAILS];
    for (int r = 0; r < GRAPH_RAILS; r++) busy[r] = -1;
    for (int64_t i = 0; i < nodes; i++) {
        g->rail[i] = -1;
        for (int r = 0; r < GRAPH_RAILS && g->last[i] > i && g->rail[i] < 0; r++)
            if (busy[r] < i) g->rail[i] = (int8_t)r, busy[r] = g->last[i];
        if (g->rail[i] >= g->rails) g->rails = g->rail[i] + 1;
    }
    int64_t at = 0;
    for (int r = 0; r < GRAPH_RAILS; r++) {
        g->first[r] = at;
        for (int64_t i = 0; i < nodes; i++)
            if (g->rail[i] == r) g->order[at++] = i;
    }
    g->first[GRAPH_RAILS] = at;
}

bool graph_open(step_graph *g, const cot__trace *tr, failure *f) {
    size_t n = (size_t)tr->node_count + 1;
    *g = (step_graph){.last = malloc(n * sizeof *g->last), .rail = malloc(n), .order = malloc(n * sizeof *g->order)};
    if (!g->last || !g->rail || !g->order) return failure_memory(f);
    find_last(g, tr);
    lay_rails(g, tr->node_count);
    return true;
}

void graph_close(step_graph *g) {
    free(g->last);
    free(g->rail);
    free(g->order);
    *g = (step_graph){0};
}

int graph_width(const step_graph *g) { return 2 + 2 * g->rails; }

/* The node whose rail r passes, begins or ends in this row, or -1. */
static int64_t on_rail(const step_graph *g, int r, int64_t row) {
    int64_t lo = g->first[r], hi = g->first[r + 1];
    while (lo < hi) { /* finds the first that begins below the row */
        int64_t mid = lo + (hi - lo) / 2;
        if (g->order[mid] <= row) lo = mid + 1;
        else hi = mid;
    }
    int64_t node = lo > g->first[r] ? g->order[lo - 1] : -1;
    return node >= 0 && g->last[node] >= row ? node : -1;
}

static bool reads(const cot__trace *tr, int64_t node, int64_t operand) {
    for (int k = 0; node >= 0 && k < tr->nodes[node].nargs; k++)
        if (tr->nodes[node].args[k] == tr->nodes[operand].id) return true;
    return false;
}

/* One rail in a row: from above or not, to below or not, joined to the dot of the row or not, with
 * more of the row's line to the right or not. */
static const char *joint(bool above, bool below, bool joined, bool on) {
    if (!joined) return above && below ? "│" : on ? "─" : " ";
    if (above && below) return on ? "┼" : "┤";
    return above ? (on ? "┴" : "╯") : on ? "┬" : "╮";
}

void graph_row(const step_graph *g, const cot__trace *tr, int64_t row, int64_t current, step_ink ink, bool back,
               step_line *l) {
    int64_t node[GRAPH_RAILS];
    bool    joined[GRAPH_RAILS];
    int     end = -1; /* how far the line of the row goes */
    for (int r = 0; r < g->rails; r++) {
        node[r] = on_rail(g, r, row);
        joined[r] = node[r] == row || (node[r] >= 0 && reads(tr, row, node[r]));
        if (joined[r]) end = r;
    }
    bool own = row == current;
    step_put(l, own ? ink : INK_PLAIN, 1, "●");
    for (int r = 0; r < g->rails; r++) {
        /* the arrow stands behind the dot: values arrive, adjoints leave */
        bool        head = own && r == 0 && tr->nodes[row].nargs > 0 && end >= 0;
        const char *line = head ? (back ? "▸" : "◂") : r <= end ? "─" : " ";
        bool        above = node[r] >= 0 && node[r] < row, below = node[r] >= 0 && g->last[node[r]] > row;
        /* the rail of an operand is lit from its row to the one that reads it */
        bool        lit = node[r] >= 0 && current >= row && node[r] <= row && reads(tr, current, node[r]);
        step_put(l, own ? ink : INK_FAINT, 1, line);
        step_put(l, lit ? ink : INK_FAINT, 1, joint(above, below, joined[r], r < end));
    }
}
