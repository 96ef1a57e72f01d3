/* code.h: a trace as C: the calls of the library that record the function, and the sweep written
 * out, addition by addition.
 *
 * The sweep of a tape of f64 scalars is plain C with doubles (v1_bar += f_bar * x2). Any other one
 * is written in calls of the library: elementwise partials from the trees of rules.def, and of
 * structural operations what their rules record. Each rule runs once, on an adjoint of ones, and
 * what it recorded is forgotten. Where that has no public name (the way back of a pooling), the
 * code does the operation once more on leaves and asks cot_vjp for its rule.
 *
 * A zero wins over an infinite factor as it does in the library: where one may be infinite at this
 * point, plain C says smul(f_bar, …) and sdiv(f_bar, …) instead of * and /. */
#ifndef COT_CODE_H
#define COT_CODE_H

#include "trace/trace.h"

/* Gets the lines in order. node: the index of the node that the line is about, or -1. back: the
 * line belongs to the sweep. */
typedef struct cot__code_lines {
    void (*line)(struct cot__code_lines *to, const char *text, int64_t node, bool back);
} cot__code_lines;

/* The two functions as lines. Each returns NULL, or the name of an operation that the public
 * functions cannot say: then the lines end before it. The sweep has no lines when the trace has no
 * steps. lines NULL: nothing is written. */
extern const char cot__code_no_memory[]; /* or this, when memory is short */
const char *cot__code_program(const cot__trace *tr, cot__code_lines *lines);
const char *cot__code_sweep(const cot__trace *tr, cot__code_lines *lines);
/* A whole program with both, which prints the value and the gradients that each finds. Returns as
 * cot__code_program does; a sweep that cannot be said is left out, and a comment tells why. */
const char *cot__code_file(FILE *out, const cot__trace *tr);

/* ---- parts ----------------------------------------------------------------------------------- */

/* code_used.c: words, by their checksums: two in one slot mean a line too many, no harm. */
typedef struct cot__c_words {
    uint64_t *slot; /* 0: free */
    size_t    room, count; /* room: a power of two, or 0 */
} cot__c_words;

/* The lines of a function, kept until it is whole. */
typedef struct cot__c_function {
    cot__code_lines lines; /* first, because those who write lines see it as them */
    char          **line;  /* NULL: one that was dropped */
    int64_t         count, room;
    cot__c_words    words; /* those of the lines that were not, once unused ones were */
    bool            no_memory;
} cot__c_function;
void cot__c_function_add(cot__c_function *f, const char *line);
/* Drops the variables that no other line reads, so that compilers have nothing to say of them. */
void cot__c_function_drop_unused(cot__c_function *f);
/* Stands this name in a line that is left? */
bool cot__c_function_names(const cot__c_function *f, const char *name);
void cot__c_function_put(const cot__c_function *f, FILE *out);
void cot__c_function_free(cot__c_function *f);

/* The lines of all nodes, for both. */
const char *cot__code_forward(const cot__trace *tr, cot__code_lines *lines);

/* What a node is called in C: x1, v3 for v₃, and another name where C has that one already. */
enum { COT__C_NAME = 192 };
const char *cot__c_name(const cot__trace *tr, int64_t node, char *buf);
/* A number of type double: 2.0, NAN. buf has COT__C_NAME bytes. */
const char *cot__c_number(double v, char *buf);

/* The longest expression; a longer one cannot be said. */
enum { COT__C_TEXT = 4096 };

/* An expression of the rules' words. operand[k], result and adjoint are texts; where operand k is a
 * plain number, number[k] points to it. calls: in functions of the library, else in plain C, for
 * which `at` are their values at this point; NaN: not known. uses[op] is set for each function that
 * plain C calls, unless it is NULL. */
typedef struct cot__c_tree {
    const char   *operand[3], *result, *adjoint;
    const double *number[3];
    bool          calls;
    double        at[3], at_result, at_adjoint;
    bool         *uses;
} cot__c_tree;
/* False when C has no such function. */
bool cot__c_tree_put(cot__text *x, const cot__c_tree *with, const cot__tree *tree);
/* Can plain C say value and partials of this operation? */
bool cot__c_plain(int op);
/* The definition of a function of that name if plain C lacks it, else NULL. */
const char *cot__c_helper(int op);
/* Has plain C this name, or one of those functions? Or may a header have it, for a macro or a
 * type? */
bool cot__c_reserved(const char *name);

/* The call that records node `id`, which has these operands as texts. False when there is none. */
bool cot__c_call_put(cot__text *x, const cot_tape *t, uint32_t id, const char *const *operand);
/* `to` with updates added at positions along an axis, others for each row, for which there is no
 * public function, in calls of others. */
typedef struct cot__c_along {
    const char *to, *index, *updates;
    cot_shape   shape; /* of `to` */
    int         axis;  /* counted from the front */
    cot_dtype   dtype;
} cot__c_along;
void cot__c_along_put(cot__text *x, const cot__c_along *a);
/* code_results.c: is node `id` a statement of its own, because a public function gives its result
 * back through a pointer? */
bool cot__c_is_statement(const cot_tape *t, uint32_t id);
bool cot__c_statement_put(cot__text *x, const cot__trace *tr, int64_t node);
/* Has it no line, because that of another node has made it, or makes it again? */
bool cot__c_has_no_line(const cot_tape *t, uint32_t id);
/* What a node is called: as cot__c_name, also where it is a further result that the trace does not
 * have. NULL: the code does not have it either. */
const char *cot__c_result_name(const cot__trace *tr, uint32_t id, char *buf);
/* Is it a list of places that no public function gives? It is written as numbers, those of this
 * point. */
bool cot__c_is_given(int op);
/* A constant or leaf, or what is given, with its elements; data: the name of an array that has
 * them, NULL: they are written here. */
bool cot__c_source_put(cot__text *x, const cot_tape *t, uint32_t id, const char *data);
/* Arrays with more elements have a name of their own. */
enum { COT__C_FEW = 64 };
bool cot__c_elements_put(cot__text *x, const cot_tape *t, uint32_t id, int64_t from, int64_t to);
const char *cot__c_element_type(cot_dtype dtype);

#endif
