/* step_draw.c: the layout of the screen. */
#include "step/step_draw.h"

#include <string.h>

/* Rows of each part. A small screen first loses the marks, then the panel, then the heads. The row
 * of the step and the last line stay. */
typedef struct layout { int title, marks, head, table, panel, status; } layout;

static layout arrange(int rows, int64_t nodes) {
    layout y = {.status = rows > 1, .title = rows > 2, .head = rows > 5, .marks = rows > 11};
    int    rest = rows - y.status - y.title - y.head - y.marks;
    int    panel = rows >= 20 ? 9 : rows >= 14 ? 6 : rows >= 8 ? 4 : 0;
    y.table = rest - panel;
    /* a short tape leaves more room for the panel */
    if (y.table > nodes && panel) y.table = (int)nodes;
    y.panel = rest - y.table;
    return y;
}

static step_line start_line(const step_view *v, FILE *out, int *row) {
    fprintf(out, "\033[%d;1H", ++*row);
    return (step_line){out, v->colour, v->columns};
}

/* A full line needs no erasing. Behind its last column the cursor still stands on that column, and
 * would erase it. */
static void end_line(const step_line *l) {
    if (l->left > 0) fputs("\033[K", l->out);
}

int64_t step_node(const step_view *v) {
    int64_t           index, node;
    const cot__trace *tr = v->x->trace;
    switch (step_where(v->m, &index)) {
    case STEP_FORWARD: return index;
    case STEP_SEED: return tr->output;
    case STEP_REVERSE:
        if (!v->tangents->on) return tr->steps[index].node;
        tangents_walk(v->tangents, index, &node, v->x);
        return node;
    case STEP_END: break;
    }
    return -1;
}

static bool sweeping(const step_view *v) { return v->m->at > v->m->nodes; }

static step_ink phase_ink(const step_view *v) {
    return !sweeping(v) ? INK_FORWARD : v->tangents->on ? INK_TANGENT : INK_REVERSE;
}

/* ---- the expression -------------------------------------------------------------------------- */

enum { WINDOW = 2048 };

/* Where the shown part of the expression begins: at its beginning, or a little before the part that
 * the step computes. */
static size_t window_start(const step_view *v, const int64_t *span) {
    const char *text = v->x->p.text;
    if (!span || span[1] <= v->columns) return 0;
    int64_t start = span[0] - v->columns / 3;
    if (start <= 0) return 0;
    while (start < span[0] && (text[start] & 0xc0) == 0x80) start++;
    return (size_t)start;
}

static int columns_between(const char *text, size_t from, size_t to) {
    char clean[WINDOW];
    return cot__columns(step_clean(text + from, to - from, clean, sizeof clean));
}

static void draw_title(const step_view *v, FILE *out, size_t start, int *row) {
    step_line l = start_line(v, out, row);
    char      clean[WINDOW];
    if (start) step_put(&l, INK_FAINT, 1, "…");
    step_put(&l, INK_BOLD, l.left, step_clean(v->x->p.text + start, v->x->p.length - start, clean, sizeof clean));
    end_line(&l);
}

/* Draws ^~~~ below the part of the expression that the step computes. */
static void draw_marks(const step_view *v, FILE *out, const int64_t *span, size_t start, int *row) {
    step_line l = start_line(v, out, row);
    if (span) {
        int indent = columns_between(v->x->p.text, start, (size_t)span[0]) + (start > 0);
        int length = columns_between(v->x->p.text, (size_t)span[0], (size_t)span[1]);
        for (; indent > 0 && l.left > 0; indent--) step_put(&l, INK_PLAIN, 1, " ");
        for (int k = 0; k < length && l.left > 0; k++) step_put(&l, phase_ink(v), 1, k ? "~" : "^");
    }
    end_line(&l);
}

/* ---- the tape -------------------------------------------------------------------------------- */

typedef struct widths { int node, call, value, adjoint; } widths;

/* The graph stands beside the tape where there is room for both. */
static int beside(const step_view *v) { return v->columns >= 84 + graph_width(v->graph) ? graph_width(v->graph) : 0; }

static widths table_widths(const step_view *v) {
    int    columns = v->columns - (beside(v) ? beside(v) + 2 : 0);
    widths w = {.node = columns >= 60 ? 10 : 6};
    int    rest = columns - 2 - w.node - 6;
    w.call = rest * 2 / 5;
    w.value = rest * 3 / 10;
    w.adjoint = rest - w.call - w.value;
    return w;
}

static void draw_head(const step_view *v, FILE *out, int *row) {
    step_line l = start_line(v, out, row);
    widths    w = table_widths(v);
    step_put(&l, INK_PLAIN, 2, "  ");
    step_cell(&l, INK_BOLD, w.node, "node");
    step_cell(&l, INK_BOLD, w.call, "operation");
    step_cell(&l, INK_BOLD, w.value, "value");
    bool      more = sweeping(v) && v->m->steps;
    if (beside(v)) step_cell(&l, INK_BOLD, w.adjoint, !more ? "" : v->tangents->on ? "tangent" : "adjoint");
    else if (more) step_put(&l, INK_BOLD, w.adjoint, v->tangents->on ? "tangent" : "adjoint");
    if (beside(v)) step_put(&l, INK_BOLD, l.left, "graph");
    end_line(&l);
}

/* Has this step added something to the node? */
static bool receives(const step_view *v, int64_t node) {
    int64_t index;
    if (step_where(v->m, &index) != STEP_REVERSE || v->tangents->on) return false;
    int64_t at = v->registers->first[node], end = v->registers->first[node + 1];
    while (at < end) { /* additions to a node are in the order of the sweep */
        int64_t mid = at + (end - at) / 2;
        if (v->registers->step[mid] == index) return true;
        if (v->registers->step[mid] < index) at = mid + 1;
        else end = mid;
    }
    return false;
}

static const char *adjoint_text(const step_view *v, int64_t node, int width, char *buf, size_t size) {
    cot__view sum;
    int64_t   swept = step_swept(v->m), stride[COT_MAX_NDIM];
    buf[0] = 0;
    if (v->tangents->on) {
        if (tangents_read(v->tangents, v->x, node, swept, &sum, stride)) cot__trace_value_text(&sum, width, buf, size);
        return buf;
    }
    if (swept < 0 || v->registers->step_of[node] < 0) return buf;
    if (registers_read(v->registers, v->x->trace, node, swept, &sum)) cot__trace_value_text(&sum, width, buf, size);
    else snprintf(buf, size, "0");
    return buf;
}

static void draw_node(const step_view *v, FILE *out, int64_t node, int *row) {
    const cot__trace      *tr = v->x->trace;
    const cot__trace_node *n = &tr->nodes[node];
    step_line              l = start_line(v, out, row);
    widths                 w = table_widths(v);
    char                   text[COT__TRACE_TEXT];
    bool                   current = node == step_node(v), known = node < step_revealed(v->m), gets = receives(v, node);
    step_put(&l, phase_ink(v), 2, current ? "> " : gets ? "+ " : "  ");
    snprintf(text, sizeof text, "%s", n->label);
    step_cell(&l, current ? phase_ink(v) : known ? INK_FORWARD : INK_FAINT, w.node, text);
    step_cell(&l, known ? INK_PLAIN : INK_FAINT, w.call, cot__trace_call(tr, node, text, sizeof text));
    if (!known) snprintf(text, sizeof text, "?");
    else if (n->overwritten) snprintf(text, sizeof text, "(overwritten)");
    else cot__trace_value_text(&n->value, w.value, text, sizeof text);
    step_cell(&l, !known ? INK_FAINT : current && !sweeping(v) ? INK_BOLD : INK_PLAIN, w.value, text);
    step_ink last = current && sweeping(v) ? phase_ink(v) : gets ? INK_REVERSE : INK_PLAIN;
    adjoint_text(v, node, w.adjoint, text, sizeof text);
    if (!beside(v)) step_put(&l, last, w.adjoint, text);
    else {
        step_cell(&l, last, w.adjoint, text);
        graph_row(v->graph, tr, node, step_node(v), phase_ink(v), sweeping(v) && !v->tangents->on, &l);
    }
    end_line(&l);
}

static void draw_table(const step_view *v, FILE *out, int rows, int *row) {
    int64_t nodes = v->m->nodes, node = step_node(v);
    /* at the end the gradients are shown beside the inputs */
    if (node < 0) node = 0;
    int64_t top = node - rows / 2;
    if (top > nodes - rows) top = nodes - rows;
    if (top < 0) top = 0;
    for (int k = 0; k < rows; k++) {
        if (top + k < nodes) {
            draw_node(v, out, top + k, row);
            continue;
        }
        step_line l = start_line(v, out, row);
        end_line(&l);
    }
}

/* ---- the panel, the help, the last line ------------------------------------------------------ */

static void draw_rule(const step_view *v, FILE *out, const char *title, int *row) {
    step_line l = start_line(v, out, row);
    step_put(&l, phase_ink(v), 3, "── ");
    step_put(&l, phase_ink(v), l.left, title);
    if (l.left > 0) step_put(&l, INK_PLAIN, 1, " ");
    if (l.colour && l.left > 0) fputs(!sweeping(v) ? "\033[34m" : v->tangents->on ? "\033[32m" : "\033[33m", out);
    for (; l.left > 0; l.left--) fputs("─", out);
    if (l.colour) fputs("\033[0m", out);
    end_line(&l);
}

static void draw_panel(const step_view *v, FILE *out, int rows, int *row) {
    char    title[160];
    int64_t lines = panel_lines(v), room = rows - 1, most = lines > room ? lines - room : 0;
    if (v->m->shift > most) v->m->shift = most;
    if (rows < 1) return;
    panel_title(v, title, sizeof title);
    if (most) {
        size_t used = strlen(title);
        snprintf(title + used, sizeof title - used, "  (lines %lld-%lld of %lld: up, down)", (long long)v->m->shift + 1,
                 (long long)(v->m->shift + room), (long long)lines);
    }
    draw_rule(v, out, title, row);
    for (int64_t k = 0; k < room; k++) {
        step_line l = start_line(v, out, row);
        if (k + v->m->shift < lines) panel_line(v, k + v->m->shift, &l);
        end_line(&l);
    }
}

static void draw_help(const step_view *v, FILE *out, int rows, int *row) {
    static const char *const help[] = {
        "right, space, n   one step on",
        "left, b           one step back",
        "p, sign or number predict the next step, before it is shown",
        "page down, up     ten steps on, back",
        "g or j, number    go to a step",
        "Home, End         the first step, the last",
        "r                 the start of the sweep",
        "i, name = value   change an input (up: the last line again)",
        "down, up          scroll the lower part",
        "q, Ctrl-C, Ctrl-D leave",
        "",
        "> is the step's node, + a register that it adds to.",
        "Any key goes back.",
    };
    int count = sizeof help / sizeof *help;
    for (int k = 0; k < rows; k++) {
        step_line l = start_line(v, out, row);
        if (k < count) step_put(&l, INK_PLAIN, l.left, help[k]);
        end_line(&l);
    }
}

/* Shows the typed text, or its end if it is too long, with the cursor behind it. */
static void draw_prompt(const step_view *v, FILE *out, int *row) {
    step_line   l = start_line(v, out, row);
    char        clean[STEP_TYPED];
    const char *text = step_clean(v->m->typed, v->m->length, clean, sizeof clean);
    step_put(&l, INK_BOLD, l.left, v->m->mode == STEP_JUMP      ? "step: "
                                 : v->m->mode == STEP_PREDICT ? v->m->question
                                                              : "name = value: ");
    while (*text && cot__columns(text) > l.left - 1) {
        do text++;
        while ((*text & 0xc0) == 0x80);
    }
    step_put(&l, INK_PLAIN, l.left - 1, text);
    end_line(&l);
    fprintf(out, "\033[%d;%dH\033[?25h", *row, l.left > 0 ? v->columns - l.left + 1 : v->columns);
}

/* A message that is longer than a line takes a second and a third line from the panel. */
static void draw_message(const step_view *v, FILE *out) {
    char clean[STEP_MESSAGE], piece[STEP_MESSAGE];
    step_clean(v->m->message, strlen(v->m->message), clean, sizeof clean);
    int lines = step_wrapped(clean, v->columns, -1, NULL, 0), most = v->rows > 5 ? 3 : 1;
    if (lines > most) lines = most;
    int row = v->rows - lines;
    for (int k = 0; k < lines; k++) {
        step_line l = start_line(v, out, &row);
        step_wrapped(clean, v->columns, k, piece, sizeof piece);
        step_put(&l, v->m->wrong ? INK_WRONG : INK_BOLD, l.left, piece);
        end_line(&l);
    }
}

static void draw_status(const step_view *v, FILE *out, int *row) {
    step_line l = start_line(v, out, row);
    char      at[64];
    snprintf(at, sizeof at, "step %lld/%lld  ", (long long)v->m->at, (long long)step_last(v->m));
    step_put(&l, phase_ink(v), l.left, at);
    step_put(&l, INK_FAINT, l.left,
             v->m->mode == STEP_HELP ? "any key goes back"
                                     : "n next  b back  p predict  g go to  r sweep  i input  ? help  q quit");
    end_line(&l);
}

void step_draw(FILE *out, step_view *v) {
    layout         y = arrange(v->rows, v->m->nodes);
    int            row = 0;
    int64_t        node = step_node(v);
    const int64_t *span = node >= 0 && v->x->trace->nodes[node].span[0] >= 0 ? v->x->trace->nodes[node].span : NULL;
    size_t         start = window_start(v, span);
    fputs("\033[?25l", out);
    if (y.title) draw_title(v, out, start, &row);
    if (y.marks) draw_marks(v, out, span, start, &row);
    if (v->m->mode == STEP_HELP) {
        draw_help(v, out, y.head + y.table + y.panel, &row);
    } else {
        if (y.head) draw_head(v, out, &row);
        draw_table(v, out, y.table, &row);
        draw_panel(v, out, y.panel, &row);
    }
    bool asks = v->m->mode == STEP_JUMP || v->m->mode == STEP_CHANGE || v->m->mode == STEP_PREDICT;
    if (!y.status && !asks) return;
    if (!y.status) row--;
    if (asks) draw_prompt(v, out, &row);
    else if (v->m->message[0]) draw_message(v, out);
    else draw_status(v, out, &row);
}
