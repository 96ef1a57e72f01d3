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
 * (An integer input has no gradient: give cot_value_and_grad the floats alone.)
 *
 * A program is what a function recorded, without its tape: operations on values of known dtype and
 * shape. It is never changed once made, so threads may share it; each runs it through a cot_run of
 * its own, which has all the memory that a run needs. Results have the bits of the same function
 * recorded on a tape; only second derivatives through a cot_while may be rounded otherwise, since a
 * program does not know its number of steps, and so may those through cot_matrix_exp, for the same
 * reason, and derivatives through a called program (cot_program_call), which add up in another
 * order. (And cot_matrix_exp, which says so, has a largest norm there.) */
#ifndef COTANGENT_H
/* This file is a part of it, which it includes where the turn is: after the parts that this one
 * needs. */
#include <cotangent.h>
#elif !defined(COTANGENT_PROGRAM_H)
#define COTANGENT_PROGRAM_H

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
    /* Allow what IEEE does not: algebra that holds for real numbers. Results differ from those of
     * the function by rounding, which is within the error of the function's own arithmetic where
     * that is well conditioned; signs of zeros are not kept; and inputs, sums and products are
     * taken to be finite. A zero stays strong beside what may have a pole, so branches that are not
     * taken leave no NaN. Products of bf16 matrices are those of cot_options.fast, on whatever tape
     * the program is called. Still the same inputs give the same bits, on any number of threads and
     * in native code. Derivatives are those of the function as it was recorded, and are then made
     * fast like it. It is no part of a saved program: cot_program_load asks for it anew. Exported C
     * has the bits of the function. Together with `verify` it is refused. */
    bool          fast COT__OR_0;
    /* compile it to native code in the background, see cot_program_native */
    bool          native COT__OR_0;
    /* for finding a function that reads what changes in C: each run and each call records the
     * function again, on a tape of its own with the same values, and compares all results by bits
     * (any NaN is like any other). The error names the first element that differs; what the program
     * gave has been written. The function and `user` must live as long as the program, and such a
     * run takes memory. In the body of a loop or of another program there is nothing to compare.
     * For a program from a file, which has no function, it is refused. */
    bool          verify COT__OR_0;
    /* Inputs that a run may write over, by their numbers, each once, `donations` of them: a large
     * output of the same dtype and shape that is not made where it is wanted at once is made
     * there, so that a run has no memory for it. That needs an input which nobody reads any more
     * when the output is made, but for its own elements one by one; cot_program_report says which
     * output took which, and why an input takes none (an output may be wanted there all the same).
     * What a donated input holds after a run is not defined, unless an output was to lie there: a
     * training step that gives its parameters back in their own memory holds them once. When a
     * check of the data refuses, every input is as it was. Only cot_program_run writes over
     * inputs. A run whose outputs lie across donated inputs of other outputs is done without, and
     * takes the memory then. */
    const int    *donate COT__OR_0;
    int           donations COT__OR_0;
    /* Bytes that a cot_run may take, cot_run_bytes; 0: as many as it likes. Before the first run it
     * is decided what is kept and what is computed again where it is read; every bit stays, and
     * cot_program_report tells the price. Nothing is done again within what a run without a limit
     * takes when it is made. Neither inputs nor outputs count: an output of 8 KiB or more that is
     * made after the last check of the data is made where the caller wants it, so it must be given
     * (not NULL) and lie where nothing lies that is still to be read; otherwise the run is refused,
     * but where outputs with places of their own take less. A donated input that takes the output
     * (cot_program_report) is read no more by then: nothing that is made from it is computed again
     * later. What has an effect, loops, conditions, solvers and functions of the user's are done
     * once, and a loop keeps what it keeps. If the limit cannot be reached, the program has failed
     * with COT_MEMORY: the sentence tells the smallest limit that can be, with which it compiles,
     * and which operation needs that. It is no part of a saved program, and neither derivatives
     * (cot_program_call) nor exported C obey it. Native code needs memory to be compared in:
     * `native` is refused beside a limit, and COTANGENT_NATIVE=1 passes such programs over. */
    int64_t       memory_limit COT__OR_0;
    /* A folder for what the limit lets go and what is dear, or not possible, to compute again:
     * each cot_run puts it into a file without a name there (Linux), which nothing outlives, and
     * reads it back before it is needed. So smaller limits can be reached, and what may not be
     * done twice need not stay in memory; every bit stays. What is moved is decided with the rest,
     * and cot_program_report tells how many bytes. A thread of the run moves them while it
     * computes; every read is compared with a checksum of what was written. cot_run_create takes
     * the room on the disk, and a run no more. If the disk is full or fails, runs compute again
     * what can be, if that keeps to the limit, and cot_run_note says so. Where that is not
     * possible cot_run_create fails (COT_VALUE: no file can be made; COT_MEMORY: there is no room
     * for it), or the run does (COT_MEMORY). The note or error names the folder and the cause. A
     * run whose disk fails begins again only if no output lies where an input lies, no input is
     * donated and no function is the user's; otherwise it fails, such inputs and all outputs hold
     * anything, and the runs after it go without the disk. In a forked process the disk of its
     * parent's runs has failed. NULL: none. Without a limit nothing is moved. The name is copied;
     * like the limit it is no part of a saved program, derivatives and exported C move nothing,
     * and calls (cot_program_call, cot_jit) have a file, too, or go without. */
    const char   *spill COT__OR_0;
} cot_compile_options;

/* The program of f for n inputs of these types and m outputs. f runs once, on a tape of its own
 * whose values are examples: it sees shapes and dtypes and reads no values, as in the body of a
 * loop (cot_scan). So a C `if` is decided now, cot_where at each run. Constants that f makes
 * (cot_data) are copied into the program. What is on another tape cannot be used: pass it as an
 * input. What no output depends on is left out, but for what looks at the data: a position that
 * does not exist is refused though nobody reads the value there, as on a tape, what is noted is
 * noted, and of several errors the first that f recorded is told.
 *
 * Compiling computes nothing that depends on inputs: it takes memory for lists of operations and
 * for constants, and of large values in between addresses alone (Linux). Some operations make
 * arrays all the same while they are recorded or planned: masks and rolls (cot_tril, cot_roll),
 * flips, cumulative sums and products, and the derivative of attention, an array or a few for each.
 * COTANGENT_MEMORY_LIMIT is for the tapes of users: it does not count here.
 *
 * Loops, conditions (cot_cond), checkpoints, and values that solve an equation are operations of
 * the program, whose bodies are programs of their own. (That a function of cot_linear_solve is
 * linear is looked at in the first run of each cot_run.) Functions of the user's (cot_call,
 * cot_custom_fn, a solver) bind it to this process: it runs, but cannot be saved or exported, and
 * what it was given must live as long as it does. A vjp_numbers is called there for each operand
 * whose adjoint is wanted.
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
 *     %3 = matmul(%0, %1) f32(64,128)
 * and behind an operation with attributes these numbers, in brackets.
 * A program that failed prints its error. Where out is NULL, nothing is printed. */
COT_API void cot_program_print(const cot_program *p, FILE *out);
/* The same as a graph for Graphviz: operations that run together stand in one box. */
COT_API void cot_program_dot(const cot_program *p, FILE *out);

/* What is known of a program before it runs. */
typedef struct cot_program_facts {
    /* Operations that it runs: views do nothing, scalars go through an interpreter, fused ones run
     * block by block in groups, jobs one by one. */
    int64_t operations, views, scalars, fused, groups, jobs;
    /* Bytes of all elements: of inputs and outputs, which the caller has; of constants. */
    int64_t input_bytes, constant_bytes, output_bytes;
    int64_t run_bytes;       /* all that cot_run_create takes: cot_run_bytes */
    int64_t workspace_bytes; /* of this, for the operation that needs most beside its result */
    int64_t fused_bytes;     /* values that lie in no array of their own, because they are fused,
                              * or computed where they are reduced */
    /* If it is called on a tape and differentiated by all its inputs: what its forward program
     * keeps for the way back, beside inputs and outputs; and what the way back computes again
     * rather than reads. -1: there is no such derivative. */
    int64_t saved_bytes, recomputed_bytes;
    /* The memory limit (0: none); what a run would take without; and how much work is done again,
     * as a share of the work without a limit, in operations on numbers: 0.3 is 30 %. */
    int64_t memory_limit, unlimited_bytes;
    double  again;
    int64_t spilled_bytes; /* that a run writes to the folder of `spill` */
} cot_program_facts;

/* Plans the program and its bodies, and makes the derivative that cot_program_call would; runs
 * nothing, and takes no memory for arrays in between but for the operations that compiling makes
 * some for (cot_compile). Where it fails, *facts is all zeros, and the
 * status says why: that of the program, or COT_MEMORY. */
COT_API cot_status cot_program_measure(cot_program *p, cot_program_facts *facts);
/* All this in words: the memory by kind; the groups, with the formula of each; and for each
 * operation that reads from memory what another has written, why the two do not run together.
 * Values are numbered as cot_program_print numbers them. */
COT_API cot_status cot_program_report(cot_program *p, FILE *out);

/* A program in a file, the same bytes on every machine (docs/file-format.md). Saving replaces the
 * file as a whole or leaves it as it was. If it fails, `why` (of `room` bytes; NULL: not wanted)
 * gets a sentence that says so; else it becomes "". A program that holds functions of the user's
 * cannot be saved. Loading believes nothing: a file that is cut short, altered, newer or made to
 * deceive gives a program that cannot run and says why, as cot_compile does. */
COT_API cot_status   cot_program_save(const cot_program *p, const char *path, char *why, size_t room);
COT_API cot_program *cot_program_load(const char *path, const cot_compile_options *options);

/* ==== Tapes in files
 * ================================================================================== */

/* A tape in a file: what was recorded, and the numbers of its leaves and constants; all other
 * values are computed again when it is loaded, with the same bits. vars are the n values that are
 * wanted back then, in this order. Names and source lines are saved too, so a loaded tape is
 * printed, explained and differentiated as the one that was saved, and its values keep their
 * numbers, up to the first body: what nothing needs of bodies, and looks at no data, is left out,
 * and so are their source lines. Loops, conditions, checkpoints, called programs and solvers run
 * again when they are loaded; where a loop spills its states to is not saved, nor whether a called
 * program is to be native. What was written over in place is there again if it can be computed.
 * Gradients of leaves are not saved. The file is replaced as a whole or stays as it was; `why` as
 * for cot_program_save. The tape stays as it is, its status too. What cannot be saved: functions of
 * the user's, also solvers, in bodies and in called programs (each is named in the error), a tape
 * in which a leaf or constant was assigned after something had read it, a cot_root,
 * cot_linear_solve or the like that has read what was written over in place and cannot be computed
 * (a constant), and a tape with values that are kept as bf16 (cot_precision.saved), which a file
 * would have as f32. A value that no leaf can change, but was recorded as a derivative, is a
 * constant of the loaded tape: cot_backward from it is an error there, where it gave zeros. A
 * program of the whole tape is made in memory, about 50 bytes an operation, 100 when it is loaded,
 * within the limit of the tape: one whose operations lie in files of a spill folder may be too long
 * for that (COT_MEMORY). Then set no limit meanwhile, and load it with none. */
COT_API cot_status cot_tape_save(cot_tape *t, int n, const cot_var *vars, const char *path, char *why, size_t room);
/* A new tape with what is in the file. vars gets the n values that were given when it was saved; n
 * must be as many. NULL when there is no memory for the tape; after any other failure it has the
 * error (cot_tape_status, cot_tape_message), and vars are invalid. The file is believed in nothing.
 * It says how many steps its loops have, and loading does them all: up to options->load_steps
 * together, those of loops inside of loops counted each time, and each time that a solver evaluates
 * its function. A file with more is refused. NULL options for the defaults. */
COT_API cot_tape *cot_tape_load(const char *path, const cot_options *options, int n, cot_var *vars);
/* The value that has this name (cot_name), the newest of several; COT_NONE if none has. What a
 * scope has closed over without keeping it has none. */
COT_API cot_var cot_tape_named(cot_tape *t, const char *name);

/* ==== Exporting
 * ================================================================================== */

struct cot_sparse_info; /* cotangent_transform.h */

typedef struct cot_emit_options {
    const char        *name COT__OR_0;    /* of the function; NULL, "": f */
    const char        *title COT__OR_0;   /* what it computes, for a comment */
    const char        *header COT__OR_0;  /* how the source includes its header; NULL: not at all */
    const char *const *inputs COT__OR_0;  /* names, one for each input; NULL: x0, x1, … */
    const char *const *outputs COT__OR_0; /* names, one for each output; NULL: y0, y1, … */
    /* one for each output, NULL for most: the pattern of a sparse matrix whose entries the output
     * holds (cot_fn_sparse_jacobian), which becomes constant arrays beside the function */
    const struct cot_sparse_info *const *patterns COT__OR_0;
    /* elementary functions of <math.h>: a shorter file, but not the library's bits */
    bool               libm COT__OR_0;
} cot_emit_options;

/* The program as one self-contained C99 file and its header (docs/export.md), either of which may
 * be NULL: a function that takes and gives plain arrays, needs no library, takes no memory and has
 * the bits of a run. NULL options for the defaults. An error is a sentence of at most `size` bytes,
 * with its end, in `why`, which may be NULL: it names an operation that cannot be exported yet.
 * Whether a file took what was written, its ferror and fclose say.
 *
 * The function returns 0, or the number of a check that has refused an input. It makes no notes
 * (cot_run_note): whether a matrix was singular, or logits gave no probabilities, its results alone
 * tell, if at all, and it returns 0. The comment above it names the operations of which this is
 * so. */
COT_API cot_status cot_program_emit_c(const cot_program *p, const cot_emit_options *options, FILE *source, FILE *header,
                                      char *why, size_t size);

/* ==== Running
 * ==================================================================================== */

/* The workspace of one thread: all memory is taken here, a run takes none. NULL only when there is
 * no memory for the object itself; after any other failure it cannot run and says why. */
COT_API cot_run    *cot_run_create(cot_program *p);
COT_API void        cot_run_destroy(cot_run *r); /* NULL is fine */
COT_API cot_status  cot_run_status(const cot_run *r);
/* What a run refuses, and a note, ends with the line that recorded the operation, if that was
 * recorded (COT_SOURCE_LINES), and, from the inside out, the steps of the loops and the functions
 * that it stands in: "… (step.c:12) (in step 3 of [fori])". Where a program is called on a tape,
 * the line of the call comes last. */
COT_API const char *cot_run_message(const cot_run *r);
/* What a user should know of the last run, while everything went on: of its data (a singular
 * matrix), or why it went without the disk; "" for nothing. */
COT_API const char *cot_run_note(const cot_run *r);
/* Bytes of all memory that it holds, beside the program's: its own, and that of the loops,
 * conditions and solvers in it. */
COT_API size_t cot_run_bytes(const cot_run *r);

/* Runs the program: inputs[k] points to the elements of input k, row-major, in its dtype; output k
 * is written to outputs[k], unless that is NULL. Outputs may lie where inputs lie (a training step
 * that writes its parameters over the old ones): all inputs have been read by then, and nothing is
 * written when a check of the data has failed. Outputs may not overlap one another: that is an
 * error (COT_VALUE), and nothing is written. The error stays on the run until the next one, which
 * begins afresh. */
COT_API cot_status cot_program_run(cot_run *r, const void *const *inputs, void *const *outputs);

/* ==== Native code
 * =================================================================================== */

typedef enum cot_native_state {
    COT_NATIVE_OFF,       /* nobody has asked for it, or the environment forbids it */
    COT_NATIVE_COMPILING, /* runs are done by the library meanwhile */
    COT_NATIVE_READY,     /* runs use it; the first ones go by turns, and slower code is dropped */
    COT_NATIVE_DROPPED    /* there is none, and there will be none; the message says why */
} cot_native_state;

/* Where the native code of a program stands (docs/native.md). It is asked for by the option
 * `native`, or for all programs by COTANGENT_NATIVE=1; COTANGENT_NATIVE=0 forbids it. Then what the
 * program does element by element is written as C and compiled by the system's compiler, in the
 * background and once: objects are kept in a folder of the user's. Runs go on meanwhile and use it
 * as soon as it is there. The first run that does is also done by the library, and must give the
 * same bits. Whatever goes wrong, runs go on as before. `wait`: until the compiler has ended, which
 * may take seconds. */
COT_API cot_native_state cot_program_native(const cot_program *p, bool wait);
/* The same as a sentence. It may change until the state is DROPPED: slower code is, after READY. */
COT_API const char *cot_program_native_message(const cot_program *p);

/* ==== On a tape
 * ==================================================================================== */

/* ys = the outputs of the program for these xs, recorded as one operation, which is differentiated
 * like any other: in reverse and forward, to every order, and in loops, batches and other
 * programs. In a function that cot_vmap takes it is one operation for the whole batch. Its
 * derivatives are programs, made once when they are first needed. To the adjoint of an x that is
 * read beside the call, too, it adds one sum, so that last bits may differ from those of the
 * function recorded in its place. With active xs, what its reverse sweep reads is kept on the tape
 * beside the ys. The tape keeps the program alive as long as the operation is on it. xs have the
 * types of the inputs; a plain number stands for a 0-d input. ys may be where xs are. On a smooth
 * tape (cot_options) nothing is kept, and the derivative, which looks for kinks, computes the
 * program again. A call with active xs whose derivative a program cannot hold yet (cot_det) records
 * the operations of the program instead. cot_report tells the kinks of its operations, though not
 * of zeros that won there over an infinite partial, and sparse plans have the pattern of its
 * operations. */
COT_API cot_status cot_program_call(cot_program *p, int n, const cot_var *xs, int m, cot_var *ys);

/* ==== Compiling when a function is first called
 * ==================================================================================== */

/* A function that is compiled when it is called: once for each number of inputs and outputs, and
 * for each list of dtypes and shapes. */
typedef struct cot_jit cot_jit;

typedef struct cot_jit_options {
    /* of each program; calls write over no input, so donations count for nothing */
    cot_compile_options compile COT__OR_0;
    /* How many programs are kept; 0: 16. Beyond that the one goes that was called longest ago. A
     * negative number is an error of each call. */
    int                 programs COT__OR_0;
} cot_jit_options;

/* Nothing is recorded yet. f and user must live as long as it does. NULL when there is no memory;
 * NULL options for the defaults. Threads may share it, each calling on a tape of its own. */
COT_API cot_jit *cot_jit_create(cot_fn f, void *user, const cot_jit_options *options);
/* What was called stays on its tapes. NULL is fine. */
COT_API void cot_jit_destroy(cot_jit *j);

/* ys = f(xs), by cot_program_call of the program for these xs, with the bits of the function
 * recorded there. f must give the same for the same xs, as with cot_compile: what it reads beside
 * them is read while it is compiled (`verify` finds out). A plain number is a 0-d input: if whole
 * (cot_integer) of the widest dtype of integers among the xs, i64 if there is none; else of their
 * widest float dtype, or f64. So a number that changes compiles nothing again. At least one x is
 * on a tape. What cannot be compiled is an error on that tape. */
COT_API cot_status cot_jit_call(cot_jit *j, int n, const cot_var *xs, int m, cot_var *ys);
/* The same as a cot_fn, whose user is the cot_jit, for whoever takes a function:
 *     cot_value_and_grad(cot_jit_fn, j, n, xs, &value, grads); */
COT_API int cot_jit_fn(int n, const cot_var *xs, int m, cot_var *ys, void *jit);
/* How many functions were compiled until now, those that failed or went included. Many more than
 * expected: shapes or dtypes change. */
COT_API int64_t cot_jit_compiled(const cot_jit *j);

#ifdef __cplusplus
}
#endif

#endif
