/* cpu.c: see cpu.h. */
#define _GNU_SOURCE /* syscall */
#include "base/cpu.h"

#include <stdlib.h>
#include <string.h>

#if COT__HAS_BF16
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#if defined(__aarch64__)
static const char *const names[] = {"plain", "neon"};
#else
static const char *const names[] = {"sse2", "avx2", "avx512"};
#endif

/* Two threads may choose at once: both find the same. */
atomic_int cot__cpu_chosen;
/* One more than the choice of the bits of plain kernels; 0 before it is made. */
static atomic_int chosen_bits;
/* One more than the choice; 0 before it is made. */
static atomic_int chosen_bf16;

cot__isa cot__cpu_best(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return COT__ISA_PLAIN;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw")) return COT__ISA_AVX2;
    if (!__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) return COT__ISA_AVX2;
    return COT__ISA_AVX512;
#elif defined(__aarch64__)
    return COT__ISA_NEON;
#else
    return COT__ISA_PLAIN;
#endif
}

const char *cot__isa_name(cot__isa isa) { return names[isa]; }

_Bool cot__cpu_use(cot__isa isa) {
    if (isa > cot__cpu_best()) return 0;
    atomic_store_explicit(&cot__cpu_chosen, (int)isa + 1, memory_order_relaxed);
    return 1;
}

static cot__isa choose(void) {
    cot__isa    best = cot__cpu_best();
    const char *wish = getenv("COTANGENT_ISA");
    for (int i = 0; wish && i < (int)best; i++)
        if (strcmp(wish, names[i]) == 0) best = (cot__isa)i;
    cot__cpu_use(best);
    return best;
}

const char *cot__cpu_isa_unread(void) {
    const char *wish = getenv("COTANGENT_ISA");
    for (size_t i = 0; wish && i < sizeof names / sizeof *names; i++)
        if (strcmp(wish, names[i]) == 0) return NULL;
    return wish && wish[0] ? wish : NULL;
}

cot__isa cot__cpu_isa(void) {
    int c = atomic_load_explicit(&cot__cpu_chosen, memory_order_relaxed);
    return c > 0 ? (cot__isa)(c - 1) : choose();
}

void cot__cpu_use_bits(cot__bits bits) {
    atomic_store_explicit(&chosen_bits, (int)bits + 1, memory_order_relaxed);
}

static cot__bits choose_bits(void) {
    const char *wish = getenv("COTANGENT_BITS");
    cot__bits   bits = wish && strcmp(wish, "portable") == 0 ? COT__BITS_PORTABLE : COT__BITS_FAST;
    cot__cpu_use_bits(bits);
    return bits;
}

const char *cot__cpu_bits_unread(void) {
    const char *wish = getenv("COTANGENT_BITS");
    return wish && wish[0] && strcmp(wish, "portable") != 0 && strcmp(wish, "fast") != 0 ? wish : NULL;
}

cot__bits cot__cpu_bits(void) {
    if (COT__ISAS == 1 || cot__cpu_isa() != COT__ISA_PLAIN) return COT__BITS_PORTABLE;
    int c = atomic_load_explicit(&chosen_bits, memory_order_relaxed);
    return c > 0 ? (cot__bits)(c - 1) : choose_bits();
}

/* ---- bf16 ------------------------------------------------------------------------------------ */

#if COT__HAS_BF16

/* Registers of tiles are 8 KiB, which Linux keeps only for processes that ask. */
static _Bool tiles_are_given(void) {
    enum { REQUEST = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

static cot__bf16_unit best_bf16(void) {
    enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24, AVX512_BF16 = 1 << 5 };
    unsigned a, b, c, d, tiles;
    if (cot__cpu_best() != COT__ISA_AVX512 || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || a < 1) return COT__BF16_NONE;
    tiles = d & (AMX_BF16 | AMX_TILE);
    if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || !(a & AVX512_BF16)) return COT__BF16_NONE;
    if (tiles != (AMX_BF16 | AMX_TILE)) return COT__BF16_AVX512;
    /* Where there are tiles, dot products of pairs are slower than those of f32. */
    return tiles_are_given() ? COT__BF16_AMX : COT__BF16_NONE;
}

#else

static cot__bf16_unit best_bf16(void) { return COT__BF16_NONE; }

#endif

_Bool cot__cpu_use_bf16(cot__bf16_unit unit) {
    if (unit > best_bf16()) return 0;
    atomic_store_explicit(&chosen_bf16, (int)unit + 1, memory_order_relaxed);
    return 1;
}

cot__bf16_unit cot__cpu_bf16(void) {
    int c = atomic_load_explicit(&chosen_bf16, memory_order_relaxed);
    if (!COT__HAS_BF16 || cot__cpu_isa() != COT__ISA_AVX512) return COT__BF16_NONE;
    if (c == 0) cot__cpu_use_bf16((cot__bf16_unit)(c = (int)best_bf16())), c++;
    return (cot__bf16_unit)(c - 1);
}
