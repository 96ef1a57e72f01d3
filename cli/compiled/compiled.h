/* compiled.h: a function that `compile` prints: its inputs and outputs, a main around it, and its
 * program as data.
 *
 * May call: the static library, io, problem. Must not touch: files but through io. */
#ifndef COT_CLI_COMPILED_H
#define COT_CLI_COMPILED_H

#include <cotangent_program.h>
#include <cotangent_transform.h>

#include "io/memory_file.h"
#include "problem/problem.h"

enum { COMPILED_NAME = 60 };

/* A block of a sparse matrix, whose entries an output holds. */
typedef struct compiled_block {
    cot_sparse_info info;
    int64_t        *row_start, *position; /* position: of its entries among all */
    int32_t        *col;
} compiled_block;

typedef struct compiled {
    const problem *p;
    derivative     what;
    cot_mode       mode;                /* of --jac */
    cot_sparse_plan        *plan;       /* of --sparse, like all of these; NULL otherwise */
    int                     blocks;
    compiled_block         *block;
    const cot_sparse_info **patterns;   /* for each output */
    char           name[COMPILED_NAME]; /* of the function */
    char          *header;              /* the file; NULL: there is none */
    int            inputs, outputs;
    cot_array     *input; /* their values, which others own: the problem, and `seed` */
    cot_array      seed;
    char         **input_name, **output_name;
} compiled;

/* Lists inputs and outputs, after checking that the options and the value fit the derivative. */
bool compiled_open(compiled *c, failure *f);
void compiled_close(compiled *c);

/* compiled_files.c: the name of the function (COMPILED_NAME bytes) and of the header, from that of
 * the file of -o; no header without one. Free the header with free. */
bool compiled_name(const char *path, char *name, char **header, failure *f);
/* How the source includes its header: without the folder. */
const char *compiled_included(const char *header);
/* Writes both files, or prints the code, or tells it as JSON. */
bool compiled_put(const options *o, const char *name, const char *header, const memory_file *code,
                  const memory_file *declared, FILE *out, failure *f);

/* --sparse: the plan and its blocks; and from all entries those of each block. */
bool compiled_sparse_open(compiled *c, failure *f);
void compiled_sparse_close(compiled *c);
void compiled_sparse_blocks(const compiled *c, cot_var values, cot_var *ys);

/* A main that evaluates the function at the given values and prints what the command of the
 * derivative prints with --json, but for notes. */
void compiled_main(const compiled *c, const cot_program *program, FILE *to);

/* The program as an object: what --print and --report tell, as data. */
bool compiled_program_json(const compiled *c, cot_program *program, FILE *out, failure *f);

#endif
