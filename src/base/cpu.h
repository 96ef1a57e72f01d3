/* cpu.h: which instruction set the kernels use: the best this processor has, chosen once; and
 * which bits the plain ones give.
 *
 * The environment variable COTANGENT_ISA (sse2, avx2, avx512; on ARM plain, neon) asks for a lesser
 * one. PLAIN is the compiler's baseline, the reference of all others.
 *
 * All vector kernels fuse their multiply-adds, so they give the same bits on every processor. The
 * plain ones have no instruction for that. The environment variable COTANGENT_BITS says what those
 * of matrix products, convolutions and attention do: `fast`, the default, rounds products and sums,
 * and differs in the last bits; `portable` computes each fused multiply-add exactly in software,
 * which is many times slower, and gives the bits of the others. A target without vector kernels of
 * ours (WebAssembly) is always portable. */
#ifndef COT_CPU_H
#define COT_CPU_H

#include <stdatomic.h>

typedef enum cot__isa { COT__ISA_PLAIN, COT__ISA_AVX2, COT__ISA_AVX512, COT__ISA_NEON = COT__ISA_AVX2 } cot__isa;

#if defined(__x86_64__)
#define COT__ISAS 3
#elif defined(__aarch64__)
#define COT__ISAS 2
#else
#define COT__ISAS 1
#endif

/* Marks loops in plain C that have a vector variant. On x86 processors without AVX2 are rare by
 * now, so there these are compiled for size; elsewhere they may be all there is. */
#if defined(__x86_64__) && defined(__clang__)
#define COT__BASELINE __attribute__((minsize))
#elif defined(__x86_64__)
#define COT__BASELINE __attribute__((cold))
#else
#define COT__BASELINE
#endif

/* Instructions that multiply bf16 and add in f32: dot products of pairs, or products of tiles, for
 * which the system must give leave. Their bits are their own. A lesser COTANGENT_ISA has none. */
typedef enum cot__bf16_unit { COT__BF16_NONE, COT__BF16_AVX512, COT__BF16_AMX } cot__bf16_unit;
#if defined(__x86_64__) && defined(__linux__) && defined(__has_include)
/* gcc's header, or clang's */
#if __has_include(<avx512bf16intrin.h>) && (__has_include(<amxbf16intrin.h>) || __has_include(<amxintrin.h>))
#define COT__HAS_BF16 1
#endif
#endif
#ifndef COT__HAS_BF16
#define COT__HAS_BF16 0
#endif
cot__bf16_unit cot__cpu_bf16(void);
/* For tests and benchmarks: use this one from now on. False: the machine has not, and nothing
 * changes. */
_Bool          cot__cpu_use_bf16(cot__bf16_unit unit);

typedef enum cot__bits { COT__BITS_FAST, COT__BITS_PORTABLE } cot__bits;

cot__isa    cot__cpu_isa(void);
/* Of the kernels that cot__cpu_isa chooses: PORTABLE for all but the plain ones. */
cot__bits   cot__cpu_bits(void);
const char *cot__isa_name(cot__isa isa);

/* COTANGENT_ISA and COTANGENT_BITS, if they are none of the names above; else NULL. */
const char *cot__cpu_isa_unread(void);
const char *cot__cpu_bits_unread(void);
#if defined(__aarch64__)
#define COT__ISA_NAMES "plain or neon"
#else
#define COT__ISA_NAMES "sse2, avx2 or avx512"
#endif

/* One more than the choice; 0 before it is made. */
extern atomic_int cot__cpu_chosen;
/* Are products and sums fused by an instruction? For x86: a comparison on the way to functions that
 * take some nanoseconds. */
static inline _Bool cot__cpu_fuses(void) {
    int c = atomic_load_explicit(&cot__cpu_chosen, memory_order_relaxed);
    return __builtin_expect(c > 1, 1) || (c == 0 && cot__cpu_isa() != COT__ISA_PLAIN);
}

/* For tests and benchmarks: what the processor has; and a call to use less from now on. The latter
 * returns false, and changes nothing, if the processor cannot do it. Not while kernels run. */
cot__isa cot__cpu_best(void);
_Bool    cot__cpu_use(cot__isa isa);
/* For tests: which bits plain kernels give from now on. */
void     cot__cpu_use_bits(cot__bits bits);

#endif
