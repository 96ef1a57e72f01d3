/* show.h: nodes and values as text, for the printed tape, messages, explain and report. */
#ifndef COT_SHOW_H
#define COT_SHOW_H

#include "base/text.h"
#include "tape/tape.h"

/* The place of an element, "[2,0]"; "" for a 0-d value. buf has COT__SHAPE_TEXT bytes. */
const char *cot__place(const cot__view *v, int64_t index, char *buf);

/* The element with that row-major index. */
void cot__show_element(cot__text *x, const cot__backend *b, const cot__view *v, int64_t index);
/* "3", "[[1 2] [3 4]]", or "-1 … 2.5" with the number of NaNs and infinities when there are many
 * elements. */
void cot__show_values(cot__text *x, const cot__backend *b, const cot__view *v);
/* "mul x 2", "sum(v₃, axes=0)" */
void cot__show_operation(cot__text *x, const cot_tape *t, uint32_t node);
/* "f32(64,128)" */
void cot__show_type(cot__text *x, const cot_tape *t, uint32_t node);
/* What a node is called in a sentence or formula: its own name if that is one word, else "v₃" (an
 * operation), "x₂" (a leaf), "c₁" (a constant array), "2.5" (a constant of one number). buf has
 * COT__CALLED_TEXT bytes. */
const char *cot__called(const cot_tape *t, uint32_t node, char *buf);
bool        cot__is_called_by_name(const cot_tape *t, uint32_t node);
#define COT__CALLED_TEXT 48
/* Counts the nodes once, for a text that calls many: until the close each name is found at once.
 * Short of memory, each is counted for itself. Nothing that stays is recorded or named between. */
void cot__calling_open(const cot_tape *t);
void cot__calling_close(const cot_tape *t);
/* What its adjoint is called: "x̄1" for x1. */
const char *cot__with_bar(const char *name, char *buf, size_t size);
/* The same with another mark: "ẋ1", the tangent. */
const char *cot__with_mark(const char *name, const char *mark, char *buf, size_t size);
#define COT__DOT "\xcc\x87" /* U+0307 */
#define COT__BAR "\xcc\x84" /* U+0304, over the character before it */
/* The formula of a node with the names of its operands and of itself in place of the letters x, y,
 * w and z, which might be names of other values. bar: in place of g, the adjoint; NULL: g stays. */
const char *cot__filled_bar(const cot_tape *t, uint32_t node, const char *formula, const char *bar, char *buf,
                            size_t size);
const char *cot__filled(const cot_tape *t, uint32_t node, const char *formula, char *buf, size_t size);
#define COT__FILLED_TEXT 1024
/* The value of a node, or "(overwritten)". */
void cot__show_value(cot__text *x, const cot_tape *t, uint32_t node);
/* The line of a node up to its value: node, operation, type, value; then, beyond the last column,
 * name and source line. */
void cot__show_node(cot__text *x, const cot_tape *t, uint32_t node);
void cot__show_origin(cot__text *x, const cot_tape *t, uint32_t node);
#define COT__ORIGIN_COLUMN 50

/* Was the memory of the node overwritten since? */
static inline bool cot__is_stale(const cot__node *n) {
    return cot__is_tensor(n) && n->value.tensor->version != n->value.tensor->storage->version;
}

#endif
