/* trace.h: how a value and its derivative were computed, as data to show: the nodes of the tape
 * from the first to y, and the steps of the reverse sweep from y to the first, with every single
 * addition to an adjoint.
 *
 * Nothing here knows a derivative. Adjoints are those of the library's own sweep
 * (diff/engine/kept_adjoints.h). For the additions, the rule of each node runs alone with that
 * adjoint. The sums of the additions are the adjoints.
 *
 * All views of a trace can be read on the host, on whatever device the tape computes.
 *
 * A trace has the nodes that y depends on, and the inputs. They are called as in messages and in
 * cot_tape_print (v₃ here is v₃ there). A trace reads from its tape: free it before
 * the tape is rewound, written to or destroyed.
 *
 * May call: all of the library, expressions. Must not touch: anything for good: a trace only
 * looks. */
#ifndef COT_TRACE_H
#define COT_TRACE_H

#include "expr/expr.h"
#include "base/text.h"
#include "tape/tape.h"
#include "trace/cost/cost.h"
#include "trace/json/json.h"
#include "trace/lines/lines.h"

typedef struct cot__trace_node {
    uint32_t        id;            /* its number on the tape */
    int             op;            /* cot__op_id */
    int             nargs;
    /* ids of the operands in order; COT__NONE: the operand is a plain number, and */
    const uint32_t *args;
    double          number;        /* this is its value */
    cot__view       value;         /* with dtype and shape; must not be read if overwritten */
    bool            active;        /* does it depend on a leaf? Only then has it an adjoint */
    bool            overwritten;   /* by a write in place after it was recorded */
    /* the values that its backward rule reads: bits as in cot__saved_mask */
    uint32_t        saves;
    const char     *name;          /* NULL: none */
    const char     *label;         /* what it is called (cot__called): its name, v₃, 2.5 */
    int64_t         span[2];       /* bytes [start, stop) of the expression; -1: unknown */
    int64_t         flops, bytes;  /* of its value, as cost.h counts */
} cot__trace_node;

typedef struct cot__trace_add {
    uint32_t  to;      /* id of the operand */
    int       operand; /* the operand's number */
    cot__view amount;  /* shaped like the operand */
    cot__view sum;     /* the adjoint of `to` after this addition */
} cot__trace_add;

typedef struct cot__trace_step {
    uint32_t              node;    /* index into nodes (not the id) */
    /* nothing, or exactly zero, has arrived, so the rule does not run */
    bool                  skipped;
    cot__view             adjoint; /* shaped like the node; zeros when nothing arrived */
    int                   add_count;
    const cot__trace_add *adds;    /* in the order of addition; none for leaves */
} cot__trace_step;

typedef struct cot__trace {
    cot_tape        *t;
    /* index of y in nodes: the last one, unless an input was recorded later */
    uint32_t         output;
    int64_t          node_count;  /* ids ascend */
    cot__trace_node *nodes;
    /* every active node that y depends on, descending. 0 when y is inactive, or `why` is not "" */
    int64_t          step_count;
    cot__trace_step *steps;
    cot__view        seed;        /* shaped like y, or 0-d: the same number for every element */
    /* "", or why there is no sweep: for example, a value that it needs was overwritten */
    char             why[512];
    const cot__expr *expr;        /* the text it was recorded from; NULL: none */
    /* the cost of the derivative of y by the inputs (without inputs, by all leaves that y depends
     * on) */
    cot__cost        cost;
} cot__trace;

typedef struct cot__trace_input {
    const char *name;
    cot_var     value;
    bool        wanted; /* its gradient is asked for (trace_json.c prints it) */
} cot__trace_input;

typedef struct cot__trace_request {
    cot_var                 y;
    /* a plain number, a value of y's shape, or a 0-d value. NULL: ones */
    const cot_var          *seed;
    int                     input_count;
    const cot__trace_input *inputs;     /* shown also when y does not depend on them */
    const cot__expr_span   *spans;      /* for nodes span_first, span_first + 1, …; NULL: none */
    int64_t                 span_first, span_count;
    const cot__expr        *expr;       /* whose constants are shown by name; NULL: none */
} cot__trace_request;

/* Makes a trace. NULL, with a sentence in `why`, when y or the seed are not valid or memory is
 * short. No error stays on the tape. */
cot__trace *cot__trace_make(const cot__trace_request *request, char why[512]);
void        cot__trace_free(cot__trace *tr);

/* The index of the node with this id, or -1. */
int64_t cot__trace_find(const cot__trace *tr, uint32_t id);
/* The adjoint of the node with this index. False when it has none: it is inactive, or y does not
 * depend on it. */
bool cot__trace_adjoint(const cot__trace *tr, int64_t node, cot__view *g);

/* Texts of a trace. Each function fills buf and returns it. COT__TRACE_TEXT bytes are enough for
 * all texts but calls with very many operands, which end in "…". */
#define COT__TRACE_TEXT 1024
/* The call of a node: "mul x y", "sum(v₃, axes=0)". */
const char *cot__trace_call(const cot__trace *tr, int64_t node, char *buf, size_t size);
/* The value of a node as a formula, "x·y"; and what it is called: its name, or "v₃". */
const char *cot__trace_formula(const cot__trace *tr, int64_t node, char *buf, size_t size);
const char *cot__trace_label(const cot__trace *tr, int64_t node, char *buf, size_t size);
/* What operand k is called: a label, or a number ("e", if it is that constant). */
const char *cot__trace_operand(const cot__trace *tr, int64_t node, int k, char *buf, size_t size);
/* The values that its rule reads, by the letters of the formula ("x", "z"). k counts from 0; NULL
 * after the last. */
const char *cot__trace_saved(const cot__trace *tr, int64_t node, int k, char *buf, size_t size);
/* The amount of one addition as a formula: in letters, "g·y", and with the names of nodes,
 * "v̄₅·x1". */
const char *cot__trace_rule(const cot__trace *tr, int64_t step, int add, char *buf, size_t size);
const char *cot__trace_filled(const cot__trace *tr, int64_t step, int add, char *buf, size_t size);

/* Makes a filled-in formula simpler for the eye, in its place: x^(2 - 1) is x. */
void cot__trace_simplify(char *text);

/* A value for a table: "3.14159", "[1 2 3]". If not all elements fit, its shape comes first:
 * "(64,128) -1 … 2.5". At most `width` columns. */
const char *cot__trace_value_text(const cot__view *v, int width, char *buf, size_t size);

/* ---- renderers ------------------------------------------------------------------------------- */

typedef struct cot__trace_look {
    bool colour; /* ANSI sequences */
    int  width;  /* columns, 0: 80 */
} cot__trace_look;

/* The forward tape, then the reverse sweep. False when memory is short. */
bool cot__trace_table(FILE *out, const cot__trace *tr, cot__trace_look look);

/* The forward tape, then forward mode: walks (tangents.h) down the tape with the tangent of
 * every node, and what its operands add to it. False when memory is short. */
bool cot__trace_tangent_table(FILE *out, const cot__trace *tr, int n, const cot__trace_input *inputs,
                              cot__trace_look look);

/* All that cot_explain or cot_report says about y, however long: a text that the caller frees, and
 * the number of findings. NULL when memory is short. */
char *cot__whole_text(int (*tell)(cot_var y, char *out, size_t size), cot_var y, int *found);
/* Writes the whole object of `cotangent trace --json`: value, grad, expression, dtype, seed,
 * inputs, output, nodes, sweep, tangents, cost, report. False when memory is short; the text
 * written so far is then not valid JSON. */
bool cot__trace_json(cot__json *j, const cot__trace *tr, const char *expression, cot_dtype dtype, int n,
                     const cot__trace_input *inputs);

/* A graph for Graphviz: nodes with values and adjoints, and an edge for each operand with the
 * amount that was added along it. */
void cot__trace_dot(FILE *out, const cot__trace *tr);

#endif
