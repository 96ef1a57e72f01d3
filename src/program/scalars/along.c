/* along.c: see along.h. The lists are made at the first call, and again if the next one hands on
 * other words. */
#include "program/scalars/along_parts.h"
#include "base/cpu.h"

#include <stdlib.h>
#include <string.h>

enum { WORTH_IT = 32 };

size_t cot__along_bytes(void) { return sizeof(cot__along); }

/* ---- what is handed on ----------------------------------------------------------------------- */

/* Bytes from a to b, which may lie in different arrays. */
static int64_t bytes_between(const void *a, const void *b) { return (int64_t)((uintptr_t)b - (uintptr_t)a); }

static bool is_handed_on(const cot__word *in, const cot__word *out) {
    return in->step == out->step && bytes_between(in->at, out->at) == in->step;
}

/* May words of the two, of any of n runs, share bytes? */
static bool may_meet(const cot__word *a, const cot__word *b, int64_t n) {
    int64_t apart = bytes_between(a->at, b->at), step = llabs(a->step);
    int64_t way_a = (n - 1) * a->step, way_b = (n - 1) * b->step;
    int64_t first = way_a < 0 ? way_a : 0, last = way_a < 0 ? 0 : way_a;
    if (apart + (way_b < 0 ? way_b : 0) >= last + 8 || apart + (way_b < 0 ? 0 : way_b) + 8 <= first) return false;
    if (a->step != b->step || !step) return true;
    apart = (apart % step + step) % step; /* words that lie between each other */
    return apart < 8 || step - apart < 8;
}

/* How the inputs come. False: it is not known. */
static bool look(int64_t n, const cot__word *in, uint32_t inputs, const cot__word *out, uint32_t outputs,
                 uint8_t *comes) {
    for (uint32_t i = 0; i < inputs; i++) {
        comes[i] = in[i].step ? COT__WORD_MOVES : COT__WORD_STAYS;
        for (uint32_t k = 0; k < outputs; k++)
            if (is_handed_on(&in[i], &out[k])) comes[i] = (uint8_t)(COT__WORD_HANDED + k);
            else if (may_meet(&in[i], &out[k], n)) return false;
    }
    return true;
}

static bool is_made_for(const cot__along *a, const uint8_t *comes, uint32_t inputs, const cot__word *out,
                        uint32_t outputs) {
    bool same = a->made && a->inputs == inputs && a->outputs == outputs && !memcmp(a->comes, comes, inputs);
    for (uint32_t k = 0; k < outputs && same; k++) same = a->from[k] == out[k].slot;
    return same;
}

static bool open_lists(cot__along *a, const cot__scalar *list, const cot__slot *slots, int64_t n, const cot__word *in,
                       uint32_t inputs, const cot__word *out, uint32_t outputs) {
    uint8_t comes[COT__MOST_WORDS];
    if (inputs > COT__MOST_WORDS || outputs > COT__MOST_WORDS) return false;
    if (!look(n, in, inputs, out, outputs, comes)) return false;
    if (is_made_for(a, comes, inputs, out, outputs)) return a->pays;
    memcpy(a->comes, comes, inputs);
    for (uint32_t k = 0; k < outputs; k++) a->from[k] = (uint16_t)out[k].slot;
    a->inputs = inputs;
    a->outputs = outputs;
    a->made = true;
    a->row = (double *)(((uintptr_t)a->memory + 63) & ~(uintptr_t)63);
    return a->pays = cot__along_plan(a, list, slots, in, out);
}

/* ---- lanes ----------------------------------------------------------------------------------- */

#define UNROLL _Pragma("GCC unroll 8")
#define TARGET
#define BYTES 16
#define N(name) name
#include "program/scalars/along_lanes.h"
#undef TARGET
#undef BYTES
#undef N
#if defined(__x86_64__)
#define TARGET __attribute__((target("avx2")))
#define BYTES 32
#define N(name) name##_avx2
#include "program/scalars/along_lanes.h"
#else
#define do_lanes_avx2 do_lanes
#endif

/* What is NaN and has a factor of zero is zero in strong products. */
static void do_with_care(const cot__line *c, const cot__line *end, double *row, int64_t runs) {
    for (; c < end; c++) {
        double *z = row + c->z, *x = row + c->x[0], *y = row + c->x[1];
        do_lanes(c, c + 1, row, runs);
        for (int l = 0; l < COT__LANES && c->code == COT__LINE_smul; l++)
            if (z[l] != z[l] && (x[l] == 0 || y[l] == 0)) z[l] = 0;
    }
}

static void in_lanes(const cot__line *c, const cot__line *end, double *row, int64_t runs) {
    bool nan = cot__cpu_isa() >= COT__ISA_AVX2 ? do_lanes_avx2(c, end, row, runs) : do_lanes(c, end, row, runs);
    if (UNLIKELY(nan)) do_with_care(c, end, row, runs);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static void begin(cot__along *a, const cot__word *in) {
    for (uint32_t i = 0; i < a->inputs; i++) {
        int places = a->comes[i] == COT__WORD_STAYS ? COT__LANES : a->comes[i] == COT__WORD_MOVES ? 0 : 1;
        for (int l = 0; l < places; l++) memcpy(&a->row[a->in[i] + l], in[i].at, sizeof *a->row);
    }
}

static void read_words(cot__along *a, const cot__word *in, int64_t k, int64_t runs) {
    for (uint32_t i = 0; i < a->inputs; i++)
        for (int64_t l = 0; a->comes[i] == COT__WORD_MOVES && l < runs; l++)
            memcpy(&a->row[a->in[i] + l], in[i].at + (k + l) * in[i].step, sizeof *a->row);
}

static void write_words(const cot__along *a, const cot__word *out, int64_t k, int64_t runs) {
    for (uint32_t i = 0; i < a->outputs; i++)
        for (int64_t l = out[i].step ? 0 : runs - 1; l < runs; l++)
            memcpy(out[i].at + (k + l) * out[i].step, &a->row[a->out[i] + l], sizeof *a->row);
}

/* To where the first of the next runs reads it. */
static void hand_over(cot__along *a, int64_t runs) {
    for (uint32_t i = 0; i < a->inputs; i++)
        if (a->comes[i] >= COT__WORD_HANDED) a->row[a->in[i]] = a->row[a->in[i] + runs];
}

bool cot__along_go(cot__along *a, const cot__scalar *list, const cot__slot *slots, int64_t n, const cot__word *in,
                   uint32_t inputs, const cot__word *out, uint32_t outputs) {
    if (n < WORTH_IT || !open_lists(a, list, slots, n, in, inputs, out, outputs)) return false;
    const cot__line *line = a->lane, *ahead = line + a->ahead, *end = line + a->lanes;
    begin(a, in);
    for (int64_t k = 0, runs; k < n; k += runs) {
        runs = n - k < COT__LANES ? n - k : COT__LANES;
        read_words(a, in, k, runs);
        in_lanes(k ? line + a->once : line, ahead, a->row, runs);
        for (int64_t l = 0; l < runs; l++) cot__scalars_run(a->core, (cot__slot *)(void *)(a->row + l));
        in_lanes(ahead, end, a->row, runs);
        write_words(a, out, k, runs);
        hand_over(a, runs);
    }
    return true;
}
