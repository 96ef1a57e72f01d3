/* cotangent_program.h: functions compiled once and run many times.
 *
 *     static int step(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
 *         cot_value_and_grad(loss, user, n, xs, &ys[0], ys + 1);
 *         return 0;
 *     }
 *
 *     cot_type     types[2] = {{COT_F32, COT_SHAPE(784, 10)}, {COT_F32, COT_SHAPE(10)}};
 *     cot_program *p = cot_compile(step, user, 2, types, 3, NULL);
 *     cot_run     *r = cot_run_create(p);
 *     float        w[784 * 10], b[10], value, dw[784 * 10], db[10];
 *     cot_program_run(r, (const void *[]){w, b}, (void *[]){&value, dw, db});
 *     cot_run_destroy(r);
 *     cot_program_destroy(p);
 *
 * A program is what a function recorded, without its tape: operations on values of known dtype and
 * shape. It is never changed once made, so threads may share it; each runs it through a cot_run of
 * its own, which has all the memory that a run needs. Results have the bits of the same function
 * recorded on a tape. */
#ifndef COTANGENT_PROGRAM_H
#define COTANGENT_PROGRAM_H

#ifndef COTANGENT_H
#include <cotangent.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cot_program cot_program;
typedef struct cot_run     cot_run;

/* What is known of a value without its elements. */
typedef struct cot_type {
    cot_dtype dtype;
    cot_shape shape;
} cot_type;

typedef struct cot_compile_options {
    cot_allocator allocator COT__OR_0; /* alloc NULL: malloc, realloc, free */
    /* leave the program as it was recorded: for finding out which pass is to blame */
    bool          plain COT__OR_0;
} cot_compile_options;

/* The program of f for n inputs of these types and m outputs. f runs once, on a tape of its own
 * whose values are examples: it sees shapes and dtypes and reads no values, as in the body of a
 * loop (cot_scan). So a C `if` is decided now, cot_where at each run. A program holds no loops,
 * conditions (cot_cond), checkpoints, solvers or cot_call yet: the error calls the first three
 * "loop". Constants that f makes (cot_data) are copied into the program. What is on another tape
 * cannot be used: pass it as an input.
 *
 *     numbers that change (a learning rate)   0-d inputs
 *     random numbers                          cot_key_at(key, step) with an integer input; a plain
 *                                             key would draw the same numbers in every run, and
 *                                             is an error
 *     cot_wrap                                an error, since a program holds no address
 *
 * Returns NULL only when there is no memory for the program itself. After any other failure it
 * returns a program that cannot run and says why: cot_program_status, cot_program_message. NULL
 * options for the defaults. The program keeps the allocator. */
COT_API cot_program *cot_compile(cot_fn f, void *user, int n, const cot_type *types, int m,
                                 const cot_compile_options *options);
/* Runs that exist go on: the last of them frees the memory. NULL is fine. */
COT_API void cot_program_destroy(cot_program *p);

/* COT_OK, or why it cannot run, as a sentence. */
COT_API cot_status  cot_program_status(const cot_program *p);
COT_API const char *cot_program_message(const cot_program *p);
/* How many there are, and their types; 0 and an f64 scalar where there is no such. */
COT_API int      cot_program_inputs(const cot_program *p);
COT_API int      cot_program_outputs(const cot_program *p);
COT_API cot_type cot_program_input_type(const cot_program *p, int k);
COT_API cot_type cot_program_output_type(const cot_program *p, int k);

/* One operation a line, operands before what is computed from them:
 *     %3 = matmul(%0, %1) f32 (64,128)
 * A program that failed prints its error. Where out is NULL, nothing is printed. */
COT_API void cot_program_print(const cot_program *p, FILE *out);

/* A program in a file, the same bytes on every machine (docs/file-format.md). Saving replaces the
 * file as a whole or leaves it as it was. If it fails, `why` (of `room` bytes; NULL: not wanted)
 * gets a sentence that says so; else it becomes "". A program that holds functions of the user's
 * cannot be saved. Loading believes nothing: a file that is cut short, altered, newer or made to
 * deceive gives a program that cannot run and says why, as cot_compile does. */
COT_API cot_status   cot_program_save(const cot_program *p, const char *path, char *why, size_t room);
COT_API cot_program *cot_program_load(const char *path, const cot_compile_options *options);

/* ==== Exporting
 * ================================================================================== */

typedef struct cot_emit_options {
    const char        *name COT__OR_0;    /* of the function; NULL: f */
    const char        *title COT__OR_0;   /* what it computes, for a comment */
    const char        *header COT__OR_0;  /* how the source includes its header; NULL: not at all */
    const char *const *inputs COT__OR_0;  /* names, one for each input; NULL: x0, x1, … */
    const char *const *outputs COT__OR_0; /* names, one for each output; NULL: y0, y1, … */
    /* elementary functions of <math.h>: a shorter file, but not the library's bits */
    bool               libm COT__OR_0;
} cot_emit_options;

/* The program as one self-contained C99 file and its header (docs/export.md), either of which may
 * be NULL: a function that takes and gives plain arrays, needs no library, takes no memory and has
 * the bits of a run. NULL options for the defaults. An error is a sentence of at most `size` bytes,
 * with its end, in `why`, which may be NULL: it names an operation that cannot be exported yet.
 * Whether a file took what was written, its ferror and fclose say. */
COT_API cot_status cot_program_emit_c(const cot_program *p, const cot_emit_options *options, FILE *source, FILE *header,
                                      char *why, size_t size);

/* ==== Running
 * ==================================================================================== */

/* The workspace of one thread: all memory is taken here, a run takes none. NULL only when there is
 * no memory for the object itself; after any other failure it cannot run and says why. */
COT_API cot_run    *cot_run_create(cot_program *p);
COT_API void        cot_run_destroy(cot_run *r); /* NULL is fine */
COT_API cot_status  cot_run_status(const cot_run *r);
COT_API const char *cot_run_message(const cot_run *r);
/* What a user should know of the data of the last run, while everything went on (a singular
 * matrix); "" for nothing. */
COT_API const char *cot_run_note(const cot_run *r);
/* Bytes of memory that it holds, beside the program's constants. */
COT_API size_t cot_run_bytes(const cot_run *r);

/* Runs the program: inputs[k] points to the elements of input k, row-major, in its dtype; output k
 * is written to outputs[k], unless that is NULL. Outputs may lie where inputs lie (a training step
 * that writes its parameters over the old ones): all inputs have been read by then, and nothing is
 * written when a check of the data has failed. The error stays on the run until the next one, which
 * begins afresh. */
COT_API cot_status cot_program_run(cot_run *r, const void *const *inputs, void *const *outputs);

/* ==== On a tape
 * ==================================================================================== */

/* ys = the outputs of the program for these xs, recorded as one operation, which is differentiated
 * like any other: in reverse and forward, to every order, and in loops, batches and other
 * programs. Its derivatives are programs, made once when they are first needed; with active xs,
 * what its reverse sweep reads is kept on the tape beside the ys. The tape keeps the program alive
 * as long as the operation is on it. xs have the types of the inputs; a plain number stands for a
 * 0-d input. ys may be where xs are. A smooth tape (cot_options) records the operations of the
 * program instead, and so does a call with active xs whose derivative a program cannot hold yet
 * (cot_det); cot_report does not look into a call, and sparse plans take it as dense. */
COT_API cot_status cot_program_call(cot_program *p, int n, const cot_var *xs, int m, cot_var *ys);

#ifdef __cplusplus
}
#endif

#endif
