/* writer.h: what the files of this folder share: the program on its way to text, names, elements,
 * and expressions. */
#ifndef COT_EMIT_WRITER_H
#define COT_EMIT_WRITER_H

#include "program/emit/emit.h"
#include "program/emit/layout.h"
#include "program/emit/text/parts.h"

enum { COT__NAME_TEXT = 64 };

/* The function that a body has become: b_1, b_2, …; and the memory that it needs. */
typedef struct cot__called {
    int     number;
    int64_t workspace;
} cot__called;

typedef struct cot__writer {
    const cot__program      *p;
    const cot__emit_options *o;
    const cot_allocator     *al;
    const cot__caller       *caller;
    cot__layout              layout;
    cot__parts               parts;
    char                   (*name)[COT__NAME_TEXT]; /* of the function, the inputs, the outputs */
    cot__text               *to;
    uint32_t                 loop;   /* the block whose loop is being printed; 0: none is */
    int                      levels; /* of the trees of folds */
    int                      checks; /* so far */
    /* In a loop that shall become vectors: elementary functions are those of vmath.h, which are
     * straight lines, and whose sines are those of arguments near 0. */
    bool                     vector;
    bool                     plain;  /* strong products are printed as plain ones */
    struct cot__writer      *file;   /* of a body: the writer of the whole; of that itself NULL */
    int                      functions; /* of bodies in the file, so far */
    cot__called             *called; /* for each body of the program */
    /* The number by which names tell each value from others; NULL: its own. With numbers there are
     * no names of inputs and outputs. */
    const uint32_t          *number;
    /* NULL, or of each view: has it a pointer to its own first element, and a name for that? */
    const uint8_t           *pointed;
} cot__writer;

static inline uint32_t cot__number_of(const cot__writer *w, uint32_t value) {
    return w->number ? w->number[value] : value;
}

/* ---- names ----------------------------------------------------------------------------------- */

bool        cot__names_open(cot__writer *w);
void        cot__names_close(cot__writer *w);
const char *cot__function_name(const cot__writer *w);
const char *cot__input_name(const cot__writer *w, uint32_t k);
const char *cot__output_name(const cot__writer *w, uint32_t k);
/* A value's array or variable. */
void cot__put_name(cot__writer *w, uint32_t value);

/* ---- patterns -------------------------------------------------------------------------------- */

/* Has each output that has a pattern as many elements? */
bool cot__patterns_fit(const cot__writer *w);
void cot__declare_patterns(cot__writer *w);
void cot__put_patterns(cot__writer *w);

/* ---- elements -------------------------------------------------------------------------------- */

/* Texts of the indices of each axis, NULL for 0; or of the place in row-major order. In a loop that
 * is shifted, so many elements behind that place; there a variable for each shift has a name. */
typedef struct cot__at {
    const char *axis[COT_MAX_NDIM], *flat;
    int64_t     shift;
    bool        shifted;
} cot__at_index;

void cot__put_element(cot__writer *w, uint32_t value, const cot__at_index *at);
/* The variable that a value has in a loop: v_3, v_3_p1 one element further on, v_3_m1 before. */
void cot__put_local(cot__writer *w, uint32_t value, int64_t shift);
/* An element of a constant array, in its initialiser. */
void cot__put_i64(cot__text *to, int64_t v);
void cot__put_initial(cot__text *to, cot_dtype d, const void *element);
/* Operand i of operation k, or its plain number, as a C expression of type `as`. */
void cot__put_operand(cot__writer *w, uint32_t k, int i, const cot__at_index *at, cot_dtype as);
/* An element of the result, as something to assign to. */
void cot__put_result(cot__writer *w, uint32_t value, const cot__at_index *at);

/* ---- expressions ----------------------------------------------------------------------------- */

/* What an operation that is done element by element makes, as an expression of its result's
 * type. */
void cot__put_expression(cot__writer *w, uint32_t k, const cot__at_index *at);
/* A call of a function of the text or of libm: "name(", and the note that it is needed. */
void cot__put_call(cot__writer *w, const char *name);
/* exp, log, …: "cot__exp(" or, with libm, "exp(". */
void cot__put_elementary(cot__writer *w, const char *name, cot_dtype as);
/* The formula of a value in terms of those that are not local to its block. */
void cot__put_formula(cot__writer *w, uint32_t value);

/* ---- blocks ---------------------------------------------------------------------------------- */

void cot__put_indent(cot__writer *w, int depth);
/* "for" over the axes of extents other than 1 that are in `mask`, with indices PREFIX_0, …, whose
 * texts go to `at`; room holds them. Returns the depth inside. */
typedef struct cot__loop_names { char text[COT_MAX_NDIM][16]; } cot__loop_names;
int  cot__open_loops(cot__writer *w, int depth, char prefix, const cot__view *v, uint32_t mask, cot__at_index *at,
                     cot__loop_names *room);
void cot__close_loops(cot__writer *w, int depth, int inside);

/* "const double v_3 = …;": an operation on 0-d values; and of a loop, of which the second writes
 * the value to memory, if it has some. */
void cot__put_statement(cot__writer *w, uint32_t k);
void cot__put_loop_value(cot__writer *w, uint32_t k, int depth, const cot__at_index *at);
void cot__put_loop_store(cot__writer *w, uint32_t k, int depth, const cot__at_index *at);

/* Prints an operation that is a block of its own. False: it cannot be exported. */
bool cot__put_structural(cot__writer *w, uint32_t k);
/* Tells the caller that operation k cannot be exported. Always false. */
bool cot__refuse_operation(const cot__writer *w, uint32_t k);

#endif
