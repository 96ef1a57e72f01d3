/* step_draw.h: the screen of a walk: the expression, the tape, a panel about the step, and a line
 * of keys or of typed text. */
#ifndef COT_CLI_STEP_DRAW_H
#define COT_CLI_STEP_DRAW_H

#include "step/step_graph.h"
#include "step/step_model.h"
#include "step/step_registers.h"
#include "step/step_tangents.h"
#include "step/step_text.h"
#include "problem/traced.h"

typedef struct step_view {
    const traced         *x;
    const step_registers *registers;
    const step_tangents  *tangents; /* on: they are walked instead of the sweep */
    const step_graph     *graph;
    step_model           *m;
    int                   rows, columns;
    bool                  colour;
} step_view;

/* Writes the whole screen as one piece of output. Only visible parts are computed. Limits m->shift
 * to the lines that the panel has. */
void step_draw(FILE *out, step_view *v);

/* step_panel.c: the text about the step, line by line. */
int64_t     panel_lines(const step_view *v);
void        panel_line(const step_view *v, int64_t line, step_line *l);
const char *panel_title(const step_view *v, char *buf, size_t size);

/* The index in the trace of the node that the step computes; -1 at the end. */
int64_t step_node(const step_view *v);

#endif
