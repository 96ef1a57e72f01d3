/* cotangent.h: automatic differentiation for C.
 *
 * A tape lists the primitive operations of a computation in the order in which they ran, with their
 * values. Recording is just calling functions on vars; differentiating is sweeping the tape
 * backward (gradients) or forward (directional derivatives).
 *
 *     cot_tape *t  = cot_tape_create(NULL);
 *     cot_var   x1 = cot_scalar(t, 0.7853981633974483), x2 = cot_scalar(t, 3.0);
 *     cot_var   f  = cot_add(cot_mul(x1, x2), cot_sin(x1));
 *     cot_backward(f);
 *     printf("f = %g  df/dx1 = %g  df/dx2 = %g\n", cot_value(f), cot_grad_value(x1),
 *            cot_grad_value(x2));
 *     cot_tape_destroy(t);
 *
 * This header is the manual, top to bottom: objects, errors, values, differentiation, in-place
 * writes, custom operations, looking at a tape. The operations themselves, with the formula beside
 * each, are in <cotangent_ops.h>, which it includes.
 *
 * Four things to know:
 *   - Errors stick. A failing call puts a code and a sentence on the tape and returns an invalid
 *     var; every later operation on that tape does nothing. Check once, at the end, with
 *     cot_tape_status and cot_tape_message. The library never prints, aborts or exits. A NULL tape
 *     and an invalid var are accepted everywhere; getters then return NaN.
 *   - A pointer may be NULL where its comment says so, and so may `user`, which is only handed on.
 *     NULL for any other is an error like others: on the tape where another argument has one, and
 *     in what is returned.
 *   - The tape owns everything recorded on it. Vars are plain values: copy them, drop them, never
 *     free them.
 *   - One thread a tape; any number of tapes. */
#ifndef COTANGENT_H
#define COTANGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define COT_VERSION_MAJOR 0
#define COT_VERSION_MINOR 1
#define COT_VERSION_PATCH 0
/* The version of results, to the bit: docs/bits.md defines the arithmetic of every operation, and
 * says which machines give the same. A release that changes any bit raises it. */
#define COT_BITS 2

#if defined(__GNUC__)
#define COT_API __attribute__((visibility("default")))
#else
#define COT_API
#endif

/* What is left out of a struct of options is zero. C says so by itself; C++ is told, or g++
 * warns of each field left out (from C++14 on: in C++11 a struct with defaults takes no list in
 * braces). */
#if defined(__cplusplus) && __cplusplus >= 201402L
#define COT__OR_0 = {}
#else
#define COT__OR_0
#endif
/* A cast that -Wold-style-cast lets pass. */
#ifdef __cplusplus
#define COT__AS(type, x) static_cast<type>(x)
#else
#define COT__AS(type, x) ((type)(x))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0" */
COT_API const char *cot_version(void);

/* ==== Objects
 *
 *
 * ============================================================================================== */

typedef struct cot_tape cot_tape;

/* A value on a tape, or a plain number (see cot_number). Passed by value; forgets itself when the
 * tape is rewound past it. */
typedef struct cot_var {
    cot_tape *tape;
    uint64_t  id; /* stamp and index: private */
#ifdef __cplusplus
    cot_var() = default;
    cot_var(cot_tape *on, uint64_t private_id) : tape(on), id(private_id) {}
    inline cot_var(double number); /* so that cot_mul(2.0, x) works in C++ too */
    inline cot_var(float number);
    inline cot_var(long double number);
    inline cot_var(int number);
    inline cot_var(unsigned number);
    inline cot_var(long number);
    inline cot_var(unsigned long number);
    inline cot_var(long long number);
    inline cot_var(unsigned long long number);
#endif
} cot_var;

/* Element types: double, float, the upper half of a float (bf16) and IEEE half precision (f16),
 * both as uint16_t in memory, int64_t, int32_t, uint8_t, and bool as one byte. Arithmetic on bf16
 * and f16 is done in f32 and rounded; integers wrap.
 *
 * Operands of different types meet in the type of this table, as in JAX with 64-bit types; plain
 * numbers take the other's:
 *
 *            f64   f32   bf16  f16   i64   i32   u8    bool
 *     f64    f64   f64   f64   f64   f64   f64   f64   f64
 *     f32    f64   f32   f32   f32   f32   f32   f32   f32
 *     bf16   f64   f32   bf16  f32   bf16  bf16  bf16  bf16
 *     f16    f64   f32   f32   f16   f16   f16   f16   f16
 *     i64    f64   f32   bf16  f16   i64   i64   i64   i64
 *     i32    f64   f32   bf16  f16   i64   i32   i32   i32
 *     u8     f64   f32   bf16  f16   i64   i32   u8    u8
 *     bool   f64   f32   bf16  f16   i64   i32   u8    bool
 *
 * Division and functions of a real number (sqrt, sin, …) turn integers into f64; comparisons and
 * tests give bool. */
typedef enum cot_dtype {
    COT_F64, COT_F32, COT_BF16, COT_F16, COT_I64, COT_I32, COT_U8, COT_BOOL, COT_DTYPE_COUNT
} cot_dtype;

#define COT_MAX_NDIM 16

/* A shape, written COT_SHAPE(2, 3); COT_SCALAR is the shape of a single number (no axes). */
typedef struct cot_shape {
    int     ndim;
    int64_t dim[COT_MAX_NDIM];
} cot_shape;

/* Which axes a reduction takes: COT_ALL, COT_AXES(0, 2), or with the axes kept at extent 1:
 * COT_KEEP_ALL, COT_KEEP(1). Negative axes count from the end. */
typedef struct cot_axes {
    int  n; /* -1: all of them */
    bool keepdims;
    int  axis[COT_MAX_NDIM];
} cot_axes;

#ifndef __cplusplus
#define COT__COUNT(type, ...) ((int)(sizeof((type[]){__VA_ARGS__}) / sizeof(type)))
#define COT_SHAPE(...) ((cot_shape){COT__COUNT(int64_t, __VA_ARGS__), {__VA_ARGS__}})
#define COT_SCALAR ((cot_shape){0, {0}})
#define COT_AXES(...) ((cot_axes){COT__COUNT(int, __VA_ARGS__), false, {__VA_ARGS__}})
#define COT_KEEP(...) ((cot_axes){COT__COUNT(int, __VA_ARGS__), true, {__VA_ARGS__}})
#define COT_ALL ((cot_axes){-1, false, {0}})
#define COT_KEEP_ALL ((cot_axes){-1, true, {0}})
#endif

/* No var: what to give for a parameter that may be left out, such as the weight of cot_layer_norm.
 * Elsewhere it is an error. */
#ifdef __cplusplus
#define COT_NONE cot_var(static_cast<cot_tape *>(nullptr), 0)
#else
#define COT_NONE ((cot_var){NULL, 0})
#endif

/* No padding row in cot_embedding. */
#define COT_NO_PADDING INT64_MIN

/* A key is all the state there is behind random numbers: the same key gives the same numbers, on
 * any machine and number of threads. Use a key once, for one call that draws or for one split;
 * cot_key_split makes n new ones from it, cot_key_fold one for each number of a step or a layer
 * (the i-th of a split is the fold of i). Random operations are in <cotangent_ops.h>.
 *
 * In the body of a loop (<cotangent_transform.h>) a key is a constant, and every step draws the
 * same numbers from it. cot_key_at gives one for the step that runs: an integer on the tape, the
 * index of cot_fori, a counter that is carried, an element of xs. All that takes a key takes it:
 *
 *     h = cot_dropout(h, 0.1, cot_key_at(key, i));            another mask at each step i, that of
 *                                                             cot_key_fold(key, i)
 *
 * The same numbers are drawn whenever a step is run again, and under cot_vmap for each element's
 * own step. Folds and splits may come before or after it, and mean the same: the step is folded in
 * last. A key has one step; of two loops, the step is outer · steps of the inner + inner. */
typedef struct cot_key {
    uint32_t word[2];
    cot_var  step; /* private; none (all zero) but by cot_key_at */
} cot_key;
COT_API cot_key cot_key_of(uint64_t seed);
COT_API void    cot_key_split(cot_key key, int n, cot_key *out);
COT_API cot_key cot_key_fold(cot_key key, uint64_t data);
COT_API cot_key cot_key_at(cot_key key, cot_var step);

/* What cot_attention(q, k, v, &options) may be told; NULL for none of it. q is (…, T, d), k (…, S,
 * d), v (…, S, e), the result (…, T, e); leading axes (batch, heads) broadcast as in cot_matmul.
 * Masks combine: a key counts for a query where all of them let it. A masked key weighs nothing
 * whatever it holds, and a query with no key left (also by a bias of -inf) gives zeros, with zero
 * gradients. */
typedef struct cot_attention_options {
    /* query i sees keys 0 … first_query + i, also where T and S differ */
    bool    causal COT__OR_0;
    double  scale COT__OR_0;  /* of the scores; 0: 1/sqrt(d) */
    /* bool, true where the key is seen; broadcasts to (…, T, S). Left out (all zero): none */
    cot_var mask COT__OR_0;
    /* float, added to the scores; broadcasts likewise. Its gradient takes memory T · S */
    cot_var bias COT__OR_0;
    /* causal: the position of query 0 among the keys; behind 9 earlier ones it is 9. At least 0 */
    int64_t first_query COT__OR_0;
} cot_attention_options;

/* How a convolution moves over its spatial axes, one entry an axis. What is left out, or 0, is
 * the default:
 *     cot_conv2d(x, w, COT_CONV(.stride = {2, 2}, .padding = {1, 1}))
 *     cot_conv1d(x, w, COT_CONV(.padding_before = {k - 1}))    causal: no output sees later input
 *     cot_conv2d(x, w, COT_CONV(.groups = channels))           depthwise
 * In C++ the fields are named in this order (C++20), listed from the first on (C++14),
 * COT_CONV(1, {2, 2}), or set one by one. */
typedef struct cot_conv_options {
    /* 0: 1. Channels in as many groups that do not see each other */
    int64_t groups COT__OR_0;
    int64_t stride[3] COT__OR_0;         /* 0: 1 */
    int64_t dilation[3] COT__OR_0;       /* 0: 1. Distance of neighbouring taps */
    int64_t padding[3] COT__OR_0;        /* zeros on both sides */
    int64_t padding_before[3] COT__OR_0; /* more zeros in front */
    int64_t padding_after[3] COT__OR_0;  /* more zeros behind */
    /* transposes only: elements more at the end of the result */
    int64_t output_padding[3] COT__OR_0;
} cot_conv_options;

/* The window of a pooling and how it moves, one entry an axis; COT_POOL(.window = {2, 2}). */
typedef struct cot_pool_options {
    int64_t window[3] COT__OR_0;
    int64_t stride[3] COT__OR_0;       /* 0: as far as the window reaches */
    /* on both sides, at most half the window; the maximum never is there, so an axis without
     * elements is an error; means of padding alone are 0, or NaN where that is excluded */
    int64_t padding[3] COT__OR_0;
    /* a last window may reach beyond the end, if it starts before it */
    bool    ceil_mode COT__OR_0;
    /* averages divide by the elements that are there instead of the window with its padding */
    bool    exclude_padding COT__OR_0;
} cot_pool_options;

#ifndef __cplusplus
#define COT_CONV(...) ((cot_conv_options){__VA_ARGS__})
#define COT_POOL(...) ((cot_pool_options){__VA_ARGS__})
#define COT_CONV_DEFAULT ((cot_conv_options){0}) /* stride 1, no padding */
#else
#define COT_CONV_DEFAULT (cot_conv_options{})
#define COT_CONV(...) (cot_conv_options{__VA_ARGS__})
#define COT_POOL(...) (cot_pool_options{__VA_ARGS__})
#endif

/* Status codes, in the order of the enum: name, what it means. */
#define COT_STATUS_LIST(X)                                                                                             \
    X(OK, "no error")                                                                                                  \
    X(MEMORY, "an allocation failed")                                                                                  \
    X(SHAPE, "shapes, axes or sizes do not fit the operation")                                                         \
    X(DTYPE, "the operation does not take this dtype")                                                                 \
    X(VALUE, "an argument is out of its range")                                                                        \
    X(VAR, "a var is invalid, forgotten by a rewind, or belongs to another tape")                                      \
    X(STALE, "a value was overwritten in place")                                                                       \
    X(GRAD, "the derivative asked for does not exist")                                                                 \
    X(CUSTOM, "a custom operation reported failure")                                                                   \
    X(LIMIT, "a limit of the library was reached")

typedef enum cot_status {
#define COT__STATUS_ENUM(name, text) COT_##name,
    COT_STATUS_LIST(COT__STATUS_ENUM)
#undef COT__STATUS_ENUM
} cot_status;

/* "SHAPE", … for printing. */
COT_API const char *cot_status_name(cot_status status);

/* ==== Tapes
 *
 *
 * ============================================================================================== */

/* Memory for a tape. One function does all, as in Lua: ptr NULL allocates, new_size 0 frees and
 * returns NULL, anything else resizes; NULL means failure and leaves the old block as it was. */
typedef struct cot_allocator {
    void *(*alloc)(void *user, void *ptr, size_t old_size, size_t new_size) COT__OR_0;
    void *user COT__OR_0;
} cot_allocator;

typedef struct cot_options {
    cot_allocator allocator COT__OR_0; /* alloc NULL: malloc, realloc, free */
    /* report an in-place write that spoils a saved value at the write, not at backward */
    bool          strict COT__OR_0;
    /* refuse to differentiate at a non-smooth point: the error says what cot_report says, and no
     * convention is applied (docs/nonsmooth.md). Every derivative is refused, recorded or in
     * numbers, of operations on the tape and in the bodies of loops, batches and the like; inside
     * a loop every carried float counts as differentiated. Zeros that won over an infinite partial
     * are seen by cot_backward, cot_grad_of and cot_vjp, outside of bodies. Costs a second sweep
     * at each of these three, and elsewhere a look at every operation on the way. */
    bool          smooth COT__OR_0;
    /* let products of bf16 matrices have bits of their own: where the processor has AMX (and Linux
     * gives leave), or without AMX has AVX-512 BF16, those of 4096 terms or more are done by it,
     * several times as fast as f32, with f32 sums in another order, in which subnormal numbers
     * count as zeros. Where none is met, an element is within n 2^-24 Σ|a||b| of the product of its
     * n terms before it is rounded to bf16. It has the same bits at any number of threads, but not
     * on another processor, nor in a product of another size. Elsewhere, and for all other
     * operations, nothing changes. The first such product asks Linux for the registers of AMX, for
     * the whole process: from then on an alternate signal stack needs room for them, 8 KiB more (a
     * smaller sigaltstack fails), and where there is a small one already Linux refuses, and the
     * product is the usual one. See cot_compile_options.fast, which allows it too. */
    bool          fast COT__OR_0;
    /* of cot_tape_load: how many steps the loops of the file, and of programs that it
     * calls, may take in all, evaluations by solvers included; 0: 2^24 */
    int64_t       load_steps COT__OR_0;
    /* bytes that the tape may have in use, as cot_tape_peak_bytes counts them; 0: what
     * COTANGENT_MEMORY_LIMIT says, or no limit. See cot_tape_set_memory_limit. */
    int64_t       memory_limit COT__OR_0;
    /* a folder for values that the limit lets go and that are dear, or not possible, to compute
     * again, and for the operations of a long tape: they lie in files without a name there (Linux),
     * which nothing outlives. NULL: none. The name is copied. See cot_tape_set_memory_limit. */
    const char   *spill COT__OR_0;
} cot_options;

/* A new, empty tape; NULL options for the defaults; NULL when memory is short. Its first error may
 * be there already: an option, or a variable of the environment (COTANGENT_THREADS, COTANGENT_ISA,
 * COTANGENT_BITS, COTANGENT_MEMORY_LIMIT), that is not what it may be. */
COT_API cot_tape *cot_tape_create(const cot_options *options);
/* Frees the tape and all that is on it. NULL is fine. */
COT_API void cot_tape_destroy(cot_tape *t);

/* A tape belongs to one thread at a time; any number of tapes may work at once. Large operations
 * are shared out to worker threads, which the process has once: they start with the first large
 * operation, sleep when there is none, and end with the program (or when the library is unloaded).
 * Results have the same bits for every number of threads. Elementwise operations on large tensors
 * may be done later, several at once, when somebody looks at a value, and large products of a
 * column and a row (gradients of each example) are written only when somebody looks at their
 * elements, not for sums and norms of them; only a clock sees that. cot_set_threads says how many
 * take part, the caller's included, 256 at most; below 1, and before it is called: the
 * environment's COTANGENT_THREADS, or else the number of processors the process may use. It holds
 * from the next large operation on. */
COT_API void cot_set_threads(int n);
COT_API int  cot_threads(void);

/* The first error since the last clear (COT_MEMORY for a NULL tape), and its sentence ("" when
 * there is none). It begins with the function that was called, "[matmul] …".
 *
 * An operation belongs to the tape of its first operand that is on one; a derivative to that of y,
 * a loop or the like to that of its first input. Where another operand is of another tape, the
 * error stands on the operation's own tape alone: the other is as it was, and goes on. What failed
 * returned an invalid var of the failed tape, and using that on the other tape is an error
 * there. */
COT_API cot_status  cot_tape_status(const cot_tape *t);
COT_API const char *cot_tape_message(const cot_tape *t);
/* Forgets the error and goes on; vars that failed stay invalid. */
COT_API void cot_tape_clear_error(cot_tape *t);

/* Trouble in the data that stops nothing: a singular matrix in a batch, equal eigenvalues in a
 * derivative. The operation says there what its comment promises (NaN, say), goes on with the rest,
 * and leaves a note: a sentence, "" when there is none. The first stays until it is cleared, or
 * until a rewind to a mark older than it. */
COT_API const char *cot_tape_note(const cot_tape *t);
COT_API void        cot_tape_clear_note(cot_tape *t);

/* A mark remembers the end of the tape; rewinding to it forgets everything recorded since, frees
 * its memory (some is kept to be used again, until the tape is destroyed), and clears an error that
 * happened since. Vars recorded after the mark are recognised as forgotten. A training loop is
 * mark, step, rewind. Values and gradients of leaves older than the mark stay, as cot_backward and
 * cot_assign left them. Cost: what the tensors made since cost to free; nodes are not walked. */
typedef struct cot_mark {
    uint64_t part[8]; /* private */
} cot_mark;
COT_API cot_mark cot_tape_mark(cot_tape *t);
COT_API void     cot_tape_rewind(cot_tape *t, cot_mark m);

/* Operations recorded, bytes of tensor storage alive, and all bytes the tape holds. Lazy
 * products, which are not written yet (gradients of each example, see cot_vmap), count with their
 * full size, though their memory is untouched and the system may have given none for it yet. */
COT_API int64_t cot_tape_length(const cot_tape *t);
COT_API int64_t cot_tape_storage_bytes(const cot_tape *t);
COT_API int64_t cot_tape_bytes(const cot_tape *t);
/* The most bytes that the tape ever had in use at once, as its allocator counts them: values and
 * what rules saved, adjoints, workspaces of operations, work that waits, operations and their
 * attributes. It is what the user's memory must hold above leaves, gradients and the states of
 * optimisers, which do not count; an adjoint counts until it arrives at its leaf. Sizes are those
 * that the tape asked its allocator for, which are up to an eighth larger than what they hold. */
COT_API int64_t cot_tape_peak_bytes(const cot_tape *t);
/* What the values of a tape take, in bytes; views, and what several share, count once. */
typedef struct cot_memory {
    int64_t stored;     /* all of them */
    int64_t sources;    /* of these: leaves and constants */
    int64_t saved;      /* of the others: those that derivative rules read */
    int64_t cheap;      /* of those saved: made by elementwise operations, so cheap to make again */
    int64_t unread;     /* no rule reads them: a scope (cot_scope_close) would let them go */
    /* bytes that lie in the folder of cot_options.spill now: elements, and room for operations */
    int64_t spilled;
    int64_t packed;     /* of those saved: kept as bf16 (cot_precision.saved), 2 bytes an element */
    int64_t peak;       /* cot_tape_peak_bytes */
    /* A memory limit that is enough for what is recorded and a sweep back from the last value: the
     * smallest within a few per cent, of hundreds of operations more, about the peak at most but
     * with scopes, which free nothing under it. With bodies, programs, cot_call or 2048 operations
     * it is estimated, from above but for what programs and functions of yours take inside, and a
     * folder is left out. It is for a tape that has it when the values are recorded; this one,
     * after a rewind, may need a sixteenth and 4 KiB more, and what stays from before, but for
     * leaves, comes on top. 0: there is none (saved as bf16) */
    int64_t least;
} cot_memory;
/* Counts them (memory may be NULL), and writes a table to `out` (NULL: none): for each operation
 * and name, the largest first, what is stored, which rules read it, and how many operations would
 * make it again. For `least` steps are rehearsed, not computed: that takes a second or two. */
COT_API cot_status cot_tape_memory(cot_tape *t, cot_memory *memory, FILE *out);
/* A limit in bytes on what cot_tape_peak_bytes counts; 0: none, also if the environment has one.
 * When an operation or a sweep would pass it, the tape drops elements of values that it can compute
 * again, and does their operations again when somebody reads them: gradients and values have the
 * same bits under every limit that lets them be computed at all, and take longer. Values that were
 * recorded before there was a limit stay, and so do numbers without axes, which are part of their
 * operations, 32 bytes each.
 * Where the tape has a folder (cot_options.spill), a value goes to a file instead if that costs
 * less than computing it again, or if it cannot be: constants, results of writes in place, of loops
 * and other functions with bodies, of programs, and of cot_call (but see cot_custom.pure). Without
 * a folder these stay. A thread writes values before memory is short, and reads what a backward
 * sweep will read next. Every read is compared with a checksum of what was written. A disk that is
 * full or fails costs time and no answer, as long as values can be computed again, and
 * cot_tape_note says so; a value that cannot be and is lost is an error (COT_MEMORY).
 * The operations themselves, and what sweeps hold for each, lie in files there where they would
 * take more than an eighth of the limit: a tape of numbers may be as long as the disk is large.
 * They are mapped (MAP_SHARED), so the system moves their pages, and those that a walk over the
 * tape has passed leave the process: a sixteenth of the limit of each list counts, and is what the
 * process has of it, but for pages of operands that lie far away and, in cot_explain and
 * cot_report, of all that is read. A full disk is found when the list grows: it stays in memory if
 * the limit lets it, else the error (COT_MEMORY) says so, and the tape can go on under a larger
 * one. There is no checksum of these, and a disk that does not give back what it has taken ends the
 * process by a signal (SIGBUS). Operands of cot_sum_of and its like, names, and the Taylor series
 * of values that are yet to be read stay in memory, and cot_tape_save makes a program there.
 * RLIMIT_AS counts all of it. A forked child may use such a tape if its parent does not; a write
 * that gets no memory ends it (SIGSEGV).
 * Where the rest does not fit, the error (COT_MEMORY) says how much the operation needed, and what
 * was in use that could not be dropped.
 * A dropped value is computed from what it was computed from before. If a leaf, a constant or
 * wrapped memory among that was written meanwhile (cot_assign, an optimiser, cot_touch), reading
 * the value is an error, COT_STALE: read it before the write, or rewind first, as training loops
 * do.
 * The variable COTANGENT_MEMORY_LIMIT of the environment sets the limit of tapes that are created
 * without one: "300000", "64 KiB", "1.5GiB", 0 for none; text that is no such number is an error on
 * the tape, and so is less than a byte. A negative limit, and one that what is in use now does not
 * fit, is an error (COT_VALUE, COT_MEMORY), and the old limit stays. */
COT_API cot_status cot_tape_set_memory_limit(cot_tape *t, int64_t bytes);
COT_API int64_t    cot_tape_memory_limit(const cot_tape *t);
/* Freed memory stays with the tape for the next step, so that a loop in its steady state asks the
 * system for nothing; all of it, and what is in use, come to little more than the most that was in
 * use at once. This gives what is free back, and what lists of operations and adjoints have beyond
 * what is recorded, from 64 kB on. Under a limit a rewind does that with the lists, from 1/64 of
 * the limit on, so that after a long step there is room for another one. */
COT_API void cot_tape_trim(cot_tape *t);

/* ==== Making values
 * ============================================================================================== */

/* Leaves: values that gradients are taken with respect to. */
COT_API cot_var cot_scalar(cot_tape *t, double value);                       /* f64 */
COT_API cot_var cot_scalar_of(cot_tape *t, cot_dtype dtype, double value);   /* a float dtype */
/* A tensor leaf; `data` (row-major, of that dtype) is copied; NULL means zeros. */
COT_API cot_var cot_tensor(cot_tape *t, cot_dtype dtype, cot_shape shape, const void *data);

/* Constants: no gradient is kept for them. cot_data copies, and NULL means zeros there too;
 * cot_wrap borrows memory that must outlive its use on the tape (in-place operations write into it;
 * call cot_touch after changing it yourself). */
COT_API cot_var cot_constant(cot_tape *t, double value);
COT_API cot_var cot_data(cot_tape *t, cot_dtype dtype, cot_shape shape, const void *data);
COT_API cot_var cot_wrap(cot_tape *t, cot_dtype dtype, cot_shape shape, void *memory);

/* The tape that x is on, also of a var that was forgotten; NULL for a plain number and for
 * COT_NONE. With it the body of a loop, or any other function of vars, makes its constants:
 * cot_constant(cot_tape_of(x), 3) is a number, and cot_full_like(x, 3) has the shape and dtype of
 * x.
 *
 *     // A body of cot_scan: it carries x and gives p(x). Numbers alone come from outside.
 *     static int horner(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
 *         const double *c   = user;
 *         cot_var       sum = cot_full_like(xs[0], 0);
 *         for (int k = 0; k < 4; k++) sum = cot_fma(sum, xs[0], c[k]);
 *         ys[0] = cot_mul(0.5, xs[0]);
 *         ys[1] = sum;
 *         return 0;
 *     } */
COT_API cot_tape *cot_tape_of(cot_var x);

/* A plain number as an operand. Rarely needed: with gcc or clang (and in C++) numbers mix in by
 * themselves, cot_mul(2.0, x). A number is weak: it takes the dtype of the other operand (a
 * floating-point number next to integers makes f64; next to bf16 and f16 it keeps the precision of
 * f32, in which those compute). */
static inline cot_var cot_number(double value) {
    union { double d; uint64_t u; } bits;
    bits.d = value;
#ifdef __cplusplus
    return cot_var(reinterpret_cast<cot_tape *>(static_cast<uintptr_t>(1)), bits.u);
#else
    return (cot_var){(cot_tape *)(uintptr_t)1, bits.u};
#endif
}
static inline cot_var cot_integer(int64_t value) {
#ifdef __cplusplus
    return cot_var(reinterpret_cast<cot_tape *>(static_cast<uintptr_t>(2)), static_cast<uint64_t>(value));
#else
    return (cot_var){(cot_tape *)(uintptr_t)2, (uint64_t)value};
#endif
}

/* An unsigned number that no int64_t holds goes in as floating point. */
static inline cot_var cot__as_unsigned(unsigned long long value) {
    return value <= INT64_MAX ? cot_integer(COT__AS(int64_t, value)) : cot_number(COT__AS(double, value));
}

/* Gives a value a name for printing and messages; returns x. The text is copied. */
COT_API cot_var cot_name(cot_var x, const char *name);

/* ==== Looking at values
 * ========================================================================================== */

COT_API bool      cot_is_valid(cot_var x);
/* The value of a scalar or of a tensor of one element; of anything else NaN, and an error. */
COT_API double    cot_value(cot_var x);
COT_API int64_t   cot_value_i64(cot_var x);
/* Dtype, shape and number of elements. Of an invalid var they are COT_F64, COT_SCALAR and 0,
 * without an error. */
COT_API cot_dtype cot_dtype_of(cot_var x);
COT_API cot_shape cot_shape_of(cot_var x);
COT_API int64_t   cot_size(cot_var x);
/* Is x a leaf, or computed from one? */
COT_API bool      cot_requires_grad(cot_var x);
/* Copies the elements, row-major, as doubles; n must be cot_size(x). Returns the status. */
COT_API cot_status cot_read(cot_var x, double *out, int64_t n);
/* The same in a dtype of your choice. */
COT_API cot_status cot_read_as(cot_var x, cot_dtype dtype, void *out, int64_t n);
COT_API const char *cot_dtype_name(cot_dtype dtype);

/* ==== Differentiation
 * ============================================================================================ */

/* Reverse sweep from y, a scalar or a tensor of one element (seed 1). Adds dy/dx to the gradient of
 * every leaf x that y depends on (and of every value marked with cot_retain_grad). Gradients
 * accumulate over calls until zeroed. May be called again. */
COT_API cot_status cot_backward(cot_var y);
/* The same with a given adjoint of y, of y's shape (a plain number: the same for every element):
 * the vector-Jacobian product. */
COT_API cot_status cot_backward_seeded(cot_var y, cot_var seed);

/* Gradients of leaves and retained values: zero before the first backward. A value that keeps no
 * gradient is an error (NaN). cot_grad returns a copy, as a constant on the tape. */
COT_API double     cot_grad_value(cot_var x);
COT_API cot_status cot_read_grad(cot_var x, double *out, int64_t n);
COT_API cot_var    cot_grad(cot_var x);
COT_API void       cot_zero_grad(cot_var x);
COT_API void       cot_tape_zero_grads(cot_tape *t);
/* Keep the gradient of an intermediate value too, from the next backward on. Returns x. */
COT_API cot_var cot_retain_grad(cot_var x);

/* Gradients as vars on the tape, so that they can be differentiated again, to any order: grads[i] =
 * d y / d xs[i] (y scalar), or the vector-Jacobian product with `seed`. xs may be leaves or
 * intermediate values. A var that y does not depend on gets zeros. Leaf gradients are not
 * touched. */
COT_API cot_status cot_grad_of(cot_var y, int n, const cot_var *xs, cot_var *grads);
COT_API cot_status cot_vjp(cot_var y, cot_var seed, int n, const cot_var *xs, cot_var *grads);

/* Forward mode: the derivative of y along the direction in which each xs[i] moves by tangents[i]
 * (same shape, or a plain number for every element); a var on the tape, to be differentiated again
 * at will. xs may be leaves or intermediate values: one that is computed from others moves by its
 * own tangent on top of what they cause, so that tangents and gradients belong to the same
 * Jacobian; one listed twice moves by both. */
COT_API cot_var cot_jvp(cot_var y, int n, const cot_var *xs, const cot_var *tangents);

/* Many directions in one sweep, numbers only; after a failure `out` holds NaN. Let ys hold M
 * elements in all and xs N, each var row-major, vars in order. cot_vjps: seeds (lanes, M) -> out
 * (lanes, N), out = seeds · J; cot_jvps: tangents (lanes, N) -> out (lanes, M), = tangents · Jᵀ.
 * Two lanes go at a time where every operation between the xs and the ys is on f64 scalars; with
 * others on the way the lanes are swept one by one. */
COT_API cot_status cot_vjps(int lanes, int m, const cot_var *ys, const double *seeds, int n, const cot_var *xs,
                            double *out);
COT_API cot_status cot_jvps(int lanes, int n, const cot_var *xs, const double *tangents, int m, const cot_var *ys,
                            double *out);

/* Full matrices, numbers only, row-major: the Jacobian (M, N), the Hessian of a scalar y (N, N), a
 * Hessian-vector product. COT_AUTO takes reverse mode when M <= N. hvp: v and out have N elements,
 * and there is no v that NULL would stand for. A constant y has zeros; one that was computed from
 * an x in a no-grad scope has lost its derivative, and is an error. */
typedef enum cot_mode { COT_AUTO, COT_REVERSE, COT_FORWARD } cot_mode;
COT_API cot_status cot_jacobian(int m, const cot_var *ys, int n, const cot_var *xs, cot_mode mode, double *out);
COT_API cot_status cot_hessian(cot_var y, int n, const cot_var *xs, double *out);
COT_API cot_status cot_hvp(cot_var y, int n, const cot_var *xs, const double *v, double *out);

/* The same value, but a constant: no gradient flows through it. No copy. */
COT_API cot_var cot_detach(cot_var x);
/* Between open and close nothing recorded requires a gradient. Scopes nest. */
COT_API void cot_no_grad_open(cot_tape *t);
COT_API void cot_no_grad_close(cot_tape *t);

/* Between open and close values are made that nobody needs afterwards but those that are kept: a
 * layer, say, whose result is what counts.
 *
 *     cot_scope_open(t, "block");
 *     cot_var up = cot_gelu(cot_matmul(x, w1)), y = cot_add(x, cot_matmul(up, w2));
 *     cot_scope_close(t, 1, &y);                             up is no more; y goes on
 *
 * Closing makes all other vars of values made inside invalid (using one is an error that names the
 * scope) and frees what no derivative rule reads; the rest may take half the memory if the policy
 * of the tape says so (cot_precision.saved). The n kept ones are written again, and only these
 * copies are good. Under a memory limit nothing is freed, because the limit itself lets values go.
 * Gradients have the same bits without that policy. Scopes nest; at most 16 are open. A rewind to a
 * mark made before a scope forgets it; marks made inside are good until it closes. What else reads
 * values of the tape later (second derivatives, cot_explain) may find one that was let go: an
 * error (COT_STALE) that names it. In the body of a loop values are examples, and closing does
 * nothing. An error: no scope is open. */
COT_API void       cot_scope_open(cot_tape *t, const char *name);
COT_API cot_status cot_scope_close(cot_tape *t, int n, cot_var *keep);

/* In which dtype operations compute, whatever that of their operands: mixed precision. Leaves stay
 * f32, and what reads them is cast, by recorded casts that have derivatives; sums inside of
 * products, convolutions and attention are f32 whatever their operands are, and rounded once, at
 * the end. Operands of f64 stay as they are. A list of operations is their names with spaces
 * between, * for any letters. See cot_params_set_precision for the same by the names of layers,
 * and docs/mixed-precision.md. */
typedef struct cot_precision {
    /* COT_BF16 or COT_F16; other floats: each operation computes in the dtype of its operands */
    cot_dtype   compute;
    /* those that compute so where their operands are f32; NULL: products, "matmul einsum tensordot
     * conv* attention" */
    const char *narrow;
    /* those that compute in f32 where their operands are narrower; NULL: losses, "*cross_entropy
     * mse bce_with_logits huber nll kl_div" */
    const char *wide;
    /* COT_BF16: values that a scope leaves to rules of products alone are kept as bf16, in half the
     * memory (see below); COT_F32 and COT_F64: as they are. Others are errors. */
    cot_dtype   saved;
} cot_precision;
/* From now on, for operations that this program calls (derivatives compute as what they are derived
 * from did). Returns what held before, to give back. The lists live as long as they hold. Only
 * operations of several values, matmul to losses, ask; other words are errors, and so is an
 * operation that both lists name, where both are given. All 0 for NULL.
 *
 * With saved = COT_BF16 operations compute as they would without: in f32, if no more is asked for.
 * When a scope closes and this policy has held since it was opened, some of the f32 values that
 * were made in it are rounded to bf16, once, to nearest even: those that depend on leaves, that are
 * not kept, that rules read, and that are read so by these operations alone, beside linear ones:
 *     matmul, dot, outer, einsum, tensordot, kron, convolutions, products of sparse matrices,
 *     mul, fma, square, exp and exp2 (their results), abs, relu, leaky_relu
 * Their rules multiply by what they read, or read its sign: each product is off by 2^-8 of itself
 * at most, where values are from 2^-126 to 2^127. So it is in what is made of them (prod, variance,
 * batch_norm). All others (tanh, layer_norm, softmax, attention, max, division, losses, loops,
 * programs, cot_call, ...) find what their rules read as f32: a rounded value could give anything.
 * f32 are also kept values, leaves, constants, masks, values in bodies of loops, what was written
 * in place, and what is in no scope. cot_backward and cot_grad_of read the same numbers, in both
 * modes and at every order. Not beside a memory limit, which would compute values again from
 * rounded ones: an error, here or there; nor can such a tape be saved (cot_tape_save). */
COT_API cot_precision cot_tape_set_precision(cot_tape *t, cot_precision how);

/* ==== Writing
 *
 *
 * ============================================================================================== */

/* Sets a leaf (or a constant) to new numbers: the one write that survives a rewind. For optimisers
 * and running statistics. The value has the leaf's shape, or is a plain number for every element.
 * Values computed from the old numbers keep them; views of the leaf (a slice, a reshape, a detached
 * tensor) are stale. So it is where an operation has nothing to do: a cast to the same dtype or a
 * sum over no axes has the old numbers, a reshape to the same shape is a stale view. A derivative
 * is that of what was recorded, with the old numbers: where a rule on the way from its xs to its y
 * would have to read them, it is an error (COT_STALE), which names the write. cot_sgd_step,
 * cot_adamw_step and cot_optim_step write in the same way. */
COT_API cot_status cot_assign(cot_var leaf, cot_var value);
COT_API cot_status cot_assign_data(cot_var leaf, const void *data);
/* A leaf of x's shape and dtype with x's numbers, which it copies: for weights that start from
 * random numbers,
 *     cot_var w = cot_leaf(cot_mul(0.1, cot_normal(t, key, COT_F32, COT_SHAPE(784, 10)))); */
COT_API cot_var cot_leaf(cot_var x);
/* leaf -= rate * gradient, for every leaf of xs that has one. The rate is finite and not
 * negative. */
COT_API cot_status cot_sgd_step(int n, const cot_var *xs, double rate);
/* AdamW, for every leaf of xs (f32 or f64) that has a gradient g: with its moments m[k] = beta1 m +
 * (1 - beta1) g and v[k] = beta2 v + (1 - beta2) g², w = (1 - rate decay) w - rate m' / (sqrt(v') +
 * eps), where m' = m / (1 - beta1^step), v' = v / (1 - beta2^step). m[k] and v[k] are your arrays,
 * of the leaf's size and dtype, zero before the first step; `step` counts from 1. decay 0 is
 * Adam. */
typedef struct cot_adamw {
    int64_t step COT__OR_0;
    double  rate COT__OR_0;
    double  beta1 COT__OR_0, beta2 COT__OR_0, eps COT__OR_0; /* 0, or left out: 0.9, 0.999, 1e-8 */
    double  decay COT__OR_0;
} cot_adamw;
COT_API cot_status cot_adamw_step(int n, const cot_var *xs, void *const *m, void *const *v, cot_adamw options);

/* In-place operations: x becomes x op y, in x's own memory, and *x the new value. y broadcasts
 * to x, which keeps its shape. Older vars and views of that memory become stale: reading one is
 * an error. If a backward rule had saved the old value, the error names both operations, at the
 * write when the tape is strict, otherwise at backward. Writing through a broadcast view is an
 * error. x keeps its dtype. A scalar has no memory: *x becomes a new value. A function that is
 * recorded (compiled, or the body of a loop, of a batch or of a checkpoint) writes into copies of
 * its inputs and constants: whoever gave them keeps theirs, while within the function older vars
 * are stale all the same. */
COT_API cot_status cot_add_into(cot_var *x, cot_var y);
COT_API cot_status cot_sub_into(cot_var *x, cot_var y);
COT_API cot_status cot_mul_into(cot_var *x, cot_var y);
COT_API cot_status cot_div_into(cot_var *x, cot_var y);
COT_API cot_status cot_copy_into(cot_var *x, cot_var y);
/* x[…, start:stop:step, …] = y along one axis (NumPy's meaning of negative numbers; COT_END: to the
 * end). */
COT_API cot_status cot_update_slice(cot_var *x, int axis, int64_t start, int64_t stop, int64_t step, cot_var y);
#define COT_END INT64_MAX
/* Tells the tape that borrowed memory was changed from outside. */
COT_API void cot_touch(cot_var *x);

/* Cuts x into `parts` equal pieces along an axis, as views: out[0..parts). */
COT_API cot_status cot_split(cot_var x, int parts, int axis, cot_var *out);

/* ==== Factorisations
 * ============================================================================================= */

/* Functions of matrices with several results, batched over leading axes; those with one result
 * (cot_solve, cot_inv, cot_det, …) are in <cotangent_ops.h>. f64 and f32; bf16 and f16 are computed
 * in f32, integers in f64. A result that is not wanted may be NULL. All have derivatives of every
 * order, except where one is said not to exist. k is min(m, n). */

/* a (…,m,n) = q r: q (…,m,k) has orthonormal columns, r (…,k,n) is upper triangular. Signs as in
 * LAPACK (mostly negative diagonals). The derivative exists where the first k columns of a are
 * independent; elsewhere it is infinite or NaN, with a note. */
COT_API cot_status cot_qr(cot_var a, cot_var *q, cot_var *r);
/* a[permutation] = l u, by rows: permutation (…,m), i64; l (…,m,k) lower with ones on its diagonal;
 * u (…,k,n) upper. The pivot is the largest of its column, the first of equals. Derivative: as for
 * qr. */
COT_API cot_status cot_lu(cot_var a, cot_var *permutation, cot_var *l, cot_var *u);
/* (a + aᵀ)/2 = v diag(w) vᵀ: w (…,n) ascending, the columns of v (…,n,n) orthonormal; the first
 * element of a column that has (to a thousandth) its largest magnitude is positive. Gradients are
 * symmetric. Where eigenvalues are equal, the eigenvectors have no derivative: the terms between
 * them are taken as 0, a note and cot_report say so (docs/nonsmooth.md), and smooth tapes
 * refuse. */
COT_API cot_status cot_eigh(cot_var a, cot_var *w, cot_var *v);
/* a (…,m,n) = u diag(s) vt: u (…,m,k) and vtᵀ have orthonormal columns, s (…,k) is descending;
 * signs as for eigh, by the columns of u. Derivatives: as for eigh, where singular values are equal
 * or (in what a division by them would give) 0. */
COT_API cot_status cot_svd(cot_var a, cot_var *u, cot_var *s, cot_var *vt);
/* det a = sign · exp(logabsdet); a singular matrix has sign 0 and -inf. sign has no derivative. */
COT_API cot_status cot_slogdet(cot_var a, cot_var *sign, cot_var *logabsdet);

/* How cot_triangular_solve reads a and where a stands; 0 is: a lower, a x = b. */
enum {
    COT_UPPER         = 1, /* the upper half of a is read, not the lower */
    COT_TRANSPOSED    = 2, /* aᵀ stands for a */
    COT_UNIT_DIAGONAL = 4, /* the diagonal is not read: it counts as ones */
    COT_RIGHT         = 8  /* x a = b */
};

/* ==== Custom operations
 * ========================================================================================== */

/* A dense row-major array, as custom operations see it. */
typedef struct cot_array {
    cot_dtype dtype;
    cot_shape shape;
    int64_t   size;
    void     *data;
} cot_array;

/* A function of your own as one operation. `value` computes the result; every function returns 0,
 * or anything else for failure. Derivatives, in order of preference (give at least one for a
 * differentiable operation):
 *   vjp, jvp            in recorded operations: differentiable again, to any order
 *   vjp_numbers, jvp_numbers   on plain arrays: first order only
 * A missing direction is derived from a recorded one by transposition. Differentiating what came
 * from numbers again, going through an operation without derivative, or asking for a direction that
 * cannot be had, is an error (COT_GRAD) that says what to give. vjp and jvp record on the tape like
 * any other code, but start no sweep there and keep no var. All operands and the result count as
 * saved: overwriting one in place before backward is an error. */
typedef struct cot_custom {
    const char *name COT__OR_0; /* for printing and messages; NULL: "custom" */
    /* Result dtype and shape from the operands' (no data is shown); y arrives like the first
     * operand. NULL: leave it so. */
    int (*shape)(int n, const cot_array *xs, cot_array *y, void *user) COT__OR_0;
    /* y arrives zeroed; write into y->data. */
    int (*value)(int n, const cot_array *xs, cot_array *y, void *user) COT__OR_0;
    /* xbars[i] starts invalid, which means zero; set those that are not, in the shapes of xs. ybar
     * has y's shape. Linear in ybar. */
    int (*vjp)(int n, const cot_var *xs, cot_var y, cot_var ybar, cot_var *xbars, void *user) COT__OR_0;
    /* dxs[i] is invalid where the operand does not move; dy, with y's shape, starts invalid: zero.
     * Linear in dxs. */
    int (*jvp)(int n, const cot_var *xs, cot_var y, const cot_var *dxs, cot_var *dy, void *user) COT__OR_0;
    /* xbars and dy arrive zeroed; dxs[i].data is NULL where the operand does not move. */
    int (*vjp_numbers)(int n, const cot_array *xs, const cot_array *y, const cot_array *ybar, cot_array *xbars,
                       void *user) COT__OR_0;
    int (*jvp_numbers)(int n, const cot_array *xs, const cot_array *y, const cot_array *dxs, cot_array *dy,
                       void *user) COT__OR_0;
    /* `value` gives the same result for the same operands at any time, and touches no tape: under a
     * memory limit the result may be dropped, and `value` is called again when somebody reads it */
    bool pure COT__OR_0;
} cot_custom;

/* Records op on n >= 1 operands, each in its own dtype and any shape (numbers take the first
 * operand's). The tape keeps `op` and `user`: let both live as long as what was recorded. A float
 * result is differentiable, an integer one is a constant. */
COT_API cot_var cot_call(const cot_custom *op, int n, const cot_var *xs, void *user);

/* Checks derivatives of a function of your own, in f64: jvp against central differences, vjp
 * against jvp by inner product, then both again on the gradient (second order). f records y, of any
 * shape, from xs. Returns COT_OK when they agree; otherwise COT_GRAD, and the report, if given,
 * says what differs. Tolerances come from the arithmetic: several step sizes, and the cancellation
 * met. A function that changes too fast for differences at its point, as sin at 1e16, is not judged
 * by them, which the message says. At order 1 one direction may be missing (custom operations in
 * numbers): the other is then checked against the differences. An error in f is returned as it is.
 * Works on a private tape of its own. */
typedef cot_var (*cot_function)(int n, const cot_var *xs, void *user);
typedef struct cot_check_report {
    char   message[512];  /* what differs; with COT_OK "", or what differences could not judge */
    double jvp_error;     /* worst difference, relative to its tolerance: <= 1 is fine */
    double vjp_error;
    double second_error;
} cot_check_report;
/* order: 1 or 2. Each xs[i] is a dense f64 array: the point at which to check. */
COT_API cot_status cot_check_grads(cot_function f, void *user, int n, const cot_array *xs, int order,
                                   cot_check_report *report);

/* ==== Seeing
 *
 *
 * ============================================================================================== */

/* Numbers in all that is printed here, and in messages, have a decimal point whatever locale the
 * program or its thread has set. */

/* The tape as a let-list, one operation a line, with dtype, shape, value (or range), source line:
 *     area = mul x y          f64           2.35619     model.c:12
 * Values without a name are v₁, v₂, … (operations), x₁, … (leaves), c₁, … (constants), or a number.
 * A failed or NULL tape prints its error as the last line. Where out is NULL, nothing is
 * printed. */
COT_API void cot_tape_print(const cot_tape *t, FILE *out);
/* The same, then the reverse sweep from y (seeded with ones), last operation first: the adjoint of
 * each value beside it, and below it the rule of the operation and what it adds to which operand.
 * Leaf gradients are not touched. */
COT_API void cot_tape_print_sweep(cot_var y, FILE *out);
/* Is the tape well formed? COT_OK, or the first violation in `why` (may be NULL). For debugging the
 * library and custom code. */
COT_API cot_status cot_tape_check(const cot_tape *t, char *why, size_t size);

/* Why is y NaN or infinite, or why is a gradient zero or not finite? Writes sentences into `out`
 * (always terminated): the first operation responsible, the element, its operands, the chain from
 * there to y, the source line if known; a paragraph for each finding. Looks back over the tape:
 * nothing is paid before, and no error stays on it. Returns the number of findings, of which the
 * text may not hold all, or -1 when memory is short, which the text says instead. `out` may be
 * NULL: it only counts. (A body that is being recorded, see cot_scan, has no values: there
 * cot_explain, cot_report and cot_tape_print_sweep are errors, like reading one.) */
COT_API int cot_explain(cot_var y, char *out, size_t size);

/* Lists the points, among the values y was computed from, where a non-smooth operation sat exactly
 * on its kink, and where in the reverse sweep a zero met an infinite or NaN partial (the strong
 * zero won). A line for each operation and reason; returns how many, or -1 when memory is short.
 * `out` may be NULL. Of a loop the last step that has such a kink is told of; strong zeros in its
 * body are not. What is taken there: docs/nonsmooth.md. */
COT_API int cot_report(cot_var y, char *out, size_t size);

/* ==== Source lines and mixing in numbers
 * ========================================================================= */

/* With gcc and clang plain numbers may stand where an operation takes a var, cot_add(x, 1.0), and
 * where a value is written or a seed given: cot_add_into(&x, 1.0), cot_assign(w, 0.0),
 * cot_backward_seeded(y, 2.0). In C++ they may stand anywhere.
 *
 * With COT_SOURCE_LINES defined before the include, each operation also remembers the line that
 * recorded it (gcc, clang): the innermost call of yours, in a function that a loop was given the
 * line there. With COT_PLAIN defined there are no macros over the functions (those of
 * <cotangent_ops.h> and <cotangent_macros.h>): numbers are then written cot_number(2.0), and lines
 * are not known. */
typedef struct cot_site {
    const char *file;
    int         line;
    const char *function;
} cot_site;
/* Returns x. A NULL site, or a site with file NULL: the line is not known. */
COT_API cot_var cot_sited(cot_var x, const cot_site *site);

#ifdef __cplusplus
} /* extern "C" */

#include <initializer_list>
inline cot_var::cot_var(double number) : cot_var(cot_number(number)) {}
inline cot_var::cot_var(float number) : cot_var(cot_number(static_cast<double>(number))) {}
inline cot_var::cot_var(long double number) : cot_var(cot_number(static_cast<double>(number))) {}
inline cot_var::cot_var(int number) : cot_var(cot_integer(number)) {}
inline cot_var::cot_var(unsigned number) : cot_var(cot_integer(number)) {}
inline cot_var::cot_var(long number) : cot_var(cot_integer(number)) {}
inline cot_var::cot_var(unsigned long number) : cot_var(cot__as_unsigned(number)) {}
inline cot_var::cot_var(long long number) : cot_var(cot_integer(number)) {}
inline cot_var::cot_var(unsigned long long number) : cot_var(cot__as_unsigned(number)) {}
inline cot_shape cot__make_shape(std::initializer_list<int64_t> dims) {
    cot_shape s = {};
    for (int64_t d : dims) {
        if (s.ndim < COT_MAX_NDIM) s.dim[s.ndim] = d;
        s.ndim++;
    }
    return s;
}
inline cot_axes cot__make_axes(int n, bool keepdims, std::initializer_list<int> axes) {
    cot_axes a = {};
    a.n = n < 0 ? n : 0;
    a.keepdims = keepdims;
    for (int i : axes) {
        if (a.n < COT_MAX_NDIM) a.axis[a.n] = i;
        a.n++;
    }
    return a;
}
#define COT_SHAPE(...) cot__make_shape({__VA_ARGS__})
#define COT_SCALAR cot__make_shape({})
#define COT_AXES(...) cot__make_axes(0, false, {__VA_ARGS__})
#define COT_KEEP(...) cot__make_axes(0, true, {__VA_ARGS__})
#define COT_ALL cot__make_axes(-1, false, {})
#define COT_KEEP_ALL cot__make_axes(-1, true, {})
#endif

#include <cotangent_ops.h>
#include <cotangent_transform.h>
#include <cotangent_program.h>
#include <cotangent_data.h>
#include <cotangent_sparse.h>
#include <cotangent_nn.h>
#include <cotangent_optim.h>
#include <cotangent_macros.h>

#endif
