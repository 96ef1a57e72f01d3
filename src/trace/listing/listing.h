/* listing.h: the rule table for people. Every operation is listed with its value, its partials or
 * transposes, its domain, and the derivative that is taken where there is none. All of this is read
 * from rules.def, the records of structural operations, functions.def and kinks.def; only the
 * mathematical domains are written here (domains.def).
 *
 * May call: base, rules, traces. Must not touch: tapes: the tables are all that is listed. */
#ifndef COT_LISTING_H
#define COT_LISTING_H

#include "trace/json/json.h"

enum { COT__LISTING_KINKS = 8, COT__LISTING_TEXT = 512 };

typedef struct cot__listing {
    const char *name;
    /* "Elementwise", "Reductions", …; "On the tape" for operations that no function is named
     * after */
    const char *family;
    /* "(cot_var x, cot_axes axes)"; "" when it is not a public function */
    const char *parameters;
    int         arity;      /* elementwise: number of operands; else 0 */
    const char *operand[3]; /* elementwise: the names of the operands */
    char        prototype[64]; /* elementwise: the text that `parameters` points to */
    char        value[COT__LISTING_TEXT];      /* "x·y", "a @ b" */
    char        partial[3][COT__LISTING_TEXT]; /* elementwise: by each operand, times z̄; "": none */
    /* the operation on the tape that has the rule of this function; "" when it is made of
     * several */
    const char *recorded_as;
    /* the value of that operation, in the letters that `adjoints` uses */
    char        recorded_value[COT__LISTING_TEXT];
    char        adjoints[COT__LISTING_TEXT];   /* structural: "ā += z̄ @ bᵀ, b̄ += aᵀ @ z̄"; "" none */
    /* "no derivative", "made of other operations, whose rules apply"; "": none */
    const char *remark;
    const char *domain;     /* "x > 0"; "": everywhere */
    int         kink_count;
    struct { char condition[128]; const char *convention; } kinks[COT__LISTING_KINKS];
} cot__listing;

/* The number of entries, and entry i: elementwise operations first, then families in order, then
 * operations that are only seen on tapes. */
int  cot__listing_count(void);
void cot__listing_get(int i, cot__listing *out);
/* The number of the entry with this name (also with "cot_" in front), or -1. */
int cot__listing_find(const char *name);
/* The name of entry i, for suggestions. */
const char *cot__listing_name(int i);

/* all entries, one line each; width 0: 80 columns */
void cot__listing_table(FILE *out, int width);
/* One entry in full. `call` is how it is written in an expression, and becomes the heading. NULL:
 * the heading is the C prototype. */
void cot__listing_show(FILE *out, int i, const char *call);
void cot__listing_json(cot__json *j, int i);   /* one object; -1: a list of all */

#endif
