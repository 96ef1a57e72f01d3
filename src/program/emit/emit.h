/* emit.h: a program printed as C: one self-contained C99 file and its header.
 *
 * What the folder does: it prints a function that computes what the program computes. The file
 * needs no library of ours, allocates nothing, has no variables of its own, and includes
 * <float.h>, <math.h>, <stdbool.h>, <stddef.h> and <stdint.h> alone.
 *
 *   #define NAME_WORKSPACE bytes
 *   int NAME(double a, const double *x, …, double *y, …, void *workspace);
 *
 * A 0-d input is given by value, any other one as its elements, row-major; then comes a pointer
 * for each output, and the workspace. The function returns 0; or, if an element is not legal (a
 * position that is not there), the number of the check that failed, and nothing more is
 * computed.
 *
 * With the elementary functions of the library, whose text it then holds, the results have the
 * library's bits, on every processor and with every compiler that keeps to IEEE 754. The file
 * switches contraction off (gcc, clang), and refuses to compile where the compiler is told or
 * known to break the rules: fast-math, or FLT_EVAL_METHOD other than 0.
 *
 * Which operations can be exported, exportable.def says. May call: base, job, rules, backend,
 * program. Must not touch: tapes, memory of the user's. */
#ifndef COT_EMIT_H
#define COT_EMIT_H

#include "program/program.h"

#include <cotangent_transform.h>

typedef struct cot__emit_options {
    const char        *name;    /* of the function; sanitised */
    /* how the source includes its header, "f.h"; NULL: it holds the text instead */
    const char        *header;
    const char        *title;   /* what is computed, for a comment; NULL: nothing is said */
    const char *const *inputs;  /* names, one for each input; NULL: x0, x1, … */
    const char *const *outputs; /* names, one for each output; NULL: y0, y1, … */
    /* one for each output, NULL where it is no sparse matrix; NULL: none is */
    const cot_sparse_info *const *patterns;
    bool               libm;    /* exp, sin, … are those of <math.h>: shorter, but with its bits */
} cot__emit_options;

/* Writes both texts; either may be NULL. False after telling the caller, named "compile", why not:
 * an operation that cannot be exported, or no memory. */
bool cot__program_emit_c(const cot__program *p, const cot__emit_options *o, const cot_allocator *al, cot__text *header,
                         cot__text *source, const cot__caller *caller);

/* ---- for those who write a main around the function ------------------------------------------ */

/* The name of a function or of a parameter as C takes it: no keyword, nothing that the file uses;
 * at most `size` bytes, with the end. Parameters that get the same name are numbered. False: out of
 * memory. */
bool cot__emit_function_name(const char *wanted, char *name, size_t size);
void cot__emit_name(const char *wanted, char *name, size_t size);
/* The arrays that hold the pattern of output k are called FUNCTION_NAME_row_start and _col. */
enum { COT__PATTERN_NAME = 64 };
void cot__emit_pattern_name(const char *const *outputs, uint32_t k, char name[COT__PATTERN_NAME]);
/* double, int64_t, … */
const char *cot__emit_type(cot_dtype d);
/* One element as a literal of its type. */
void cot__emit_literal(cot__text *to, cot_dtype d, const void *element);

/* Can it be exported? And all that can, for the table in docs/export.md. */
bool cot__exportable(int op);

#endif
