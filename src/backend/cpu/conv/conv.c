/* conv.c: convolution and its two transposes, directly: no matrix of patches is made.
 *
 * z from (x, w) and x from (z, w) are the same loop over the taps of a plan (conv_plan.h): a tile
 * of channels times neighbouring places stays in registers while the taps pass. w from (x, z) keeps
 * a tile of channels times taps in registers while the places pass, with a partial sum in each
 * lane. Where rows fill vectors badly and there are channels enough, both have channels in the
 * lanes instead, and places one after another. Every sum has an order that the geometry fixes, so
 * any number of threads and every instruction set give the same bits: an element of z or x is one
 * chain over its taps; a weight has CHUNK_BYTES of chains, folded by halves, over chunks of places
 * that are as long. */
#include "backend/cpu/conv/conv_plan.h"
#include "backend/cpu/fused.h"
#include "backend/cpu/strip.h"
#include "base/parallel.h"

#include <string.h>

/* The widest variant allowed: 0 baseline, 1 AVX2, 2 AVX-512. A build sets it lower to test the
 * narrower ones. */
#ifndef COT__CONV_ISA
#define COT__CONV_ISA 2
#endif

/* Bytes of padded copies at a time; more images come in a further round. */
#ifndef COT__CONV_SLAB
#define COT__CONV_SLAB (32 << 20)
#endif

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

/* Plans and hands out, so it is built for size. */
#define COLD __attribute__((cold))

enum {
    /* bytes that a part reads again and again: they should stay in the second cache */
    NEAR  = 256 << 10,
    /* vectors of places that pass while a tile of weights is in registers: their data stay in the
     * first cache */
    STEPS = 64,
    PLACES = 14,       /* of a tile with channels in lanes: 2 · 14 sums are in registers */
    HIGH  = 4,         /* channels of z of a tile of weights */
    UNITS = 16,        /* tiles of weights that take turns over these vectors */
    FEW   = 8,         /* the same with channels in lanes */
    /* part of the definition of the result: chunks of places that weights sum over, the lanes of
     * the widest vector; and the taps of a tile of weights, which a kernel may cut */
    CHUNK_BYTES = 64,
    TAPS  = 6,
    MOST  = 16,        /* parts asked for when there are few large pieces of work */
    SPLITS = 8,        /* of the images, most */
    LIGHT = 1 << 14,   /* weights of a group whose sums may be kept for each of these */
    CHAIN = 96,        /* chunks that each has at least */
};

/* The data of w from (x, z) beside the layout: z in chunks, with zeros in lanes without a place,
 * and masks that clear the same lanes of x; or, direct, z itself, cleared by these masks too. */
typedef struct cot__correlation {
    const cot__chunk *chunks;
    const void       *masks;
    int64_t           x_image, z_image, z_channel, w_row; /* strides, in elements */
    int               used; /* lanes of a chunk in which any has places */
    bool              direct; /* z where it lies */
} cot__correlation;

/* The height of the next panel of channels when `left` are left: `most`, or the largest power of
 * two that fits. */
static inline int panel_rows(int most, int64_t left) {
    while (most > left) most /= 2;
    return most;
}

#define STORE_LOOP(p, v, n)                                                                                            \
    do {                                                                                                               \
        for (int l_ = 0; l_ < (n); l_++) (p)[l_] = (v)[l_];                                                            \
    } while (0)

#define T float
#define N(name) name##_f32
#include "backend/cpu/conv/conv_ends.h"

#define T double
#define N(name) name##_f64
#include "backend/cpu/conv/conv_ends.h"

#if COT__HAS_FAST

#define T float
#define TI int32_t
#define V cot__f32x4
#define N(name) name##_f32
#define ROWS 4
#define WIDE 2
#define TARGET COT__BASELINE
#define FMADD(a, b, c) ((a) * (b) + (c))
#define STORE_SOME STORE_LOOP
#include "backend/cpu/conv/conv_template.h"

#define T double
#define TI int64_t
#define V cot__f64x2
#define N(name) name##_f64
#define ROWS 4
#define WIDE 2
#define TARGET COT__BASELINE
#define FMADD(a, b, c) ((a) * (b) + (c))
#define STORE_SOME STORE_LOOP
#include "backend/cpu/conv/conv_template.h"

#endif

/* Portable bits in plain C: one multiplication at a time, so wide tiles would only be long code. */
#define T float
#define TI int32_t
#define V cot__f32x4
#define N(name) name##_f32_portable
#define ROWS 1
#define WIDE 1
#define TARGET COT__BASELINE
#define FMADD cot__exact_f32x4
#define STORE_SOME STORE_LOOP
#include "backend/cpu/conv/conv_template.h"

#define T double
#define TI int64_t
#define V cot__f64x2
#define N(name) name##_f64_portable
#define ROWS 1
#define WIDE 1
#define TARGET COT__BASELINE
#define FMADD cot__exact_f64x2
#define STORE_SOME STORE_LOOP
#include "backend/cpu/conv/conv_template.h"

#if defined(__aarch64__)

#define T float
#define TI int32_t
#define V cot__f32x4
#define N(name) name##_f32_neon
#define ROWS 16
#define WIDE 3
#define TARGET
#define FMADD cot__fused_f32x4
#define STORE_SOME STORE_LOOP
#include "backend/cpu/conv/conv_template.h"

#define T double
#define TI int64_t
#define V cot__f64x2
#define N(name) name##_f64_neon
#define ROWS 16
#define WIDE 3
#define TARGET
#define FMADD cot__fused_f64x2
#define STORE_SOME STORE_LOOP
#include "backend/cpu/conv/conv_template.h"

#endif

#if defined(__x86_64__)

#define T float
#define TI int32_t
#define V __m256
#define N(name) name##_f32_avx2
#define ROWS 4
#define WIDE 3
#define TARGET __attribute__((target("avx2,fma")))
#define FMADD _mm256_fmadd_ps
#define STORE_SOME(p, v, n)                                                                                            \
    _mm256_maskstore_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)), v)
#include "backend/cpu/conv/conv_template.h"

#define T double
#define TI int64_t
#define V __m256d
#define N(name) name##_f64_avx2
#define ROWS 4
#define WIDE 3
#define TARGET __attribute__((target("avx2,fma")))
#define FMADD _mm256_fmadd_pd
#define STORE_SOME(p, v, n)                                                                                            \
    _mm256_maskstore_pd(p, _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3)), v)
#include "backend/cpu/conv/conv_template.h"

#define T float
#define TI int32_t
#define V __m512
#define N(name) name##_f32_avx512
#define ROWS 16
#define WIDE 6
#define TARGET __attribute__((target("avx512f,avx2,fma")))
#define FMADD _mm512_fmadd_ps
#define ACROSS 2
#define SHUFFLE(a, b, at) _mm512_permutex2var_ps(a, (__m512i)(at), b)
#define LOAD_FEW(p, n) _mm512_maskz_loadu_ps((__mmask16)((1u << (n)) - 1), p)
#define LOAD_SOME(p, mask) _mm512_maskz_loadu_ps(_mm512_test_epi32_mask((__m512i)(mask), (__m512i)(mask)), p)
#define DIRECT true
#define STORE_SOME(p, v, n) _mm512_mask_storeu_ps(p, (__mmask16)((1u << (n)) - 1), v)
#include "backend/cpu/conv/conv_template.h"

#define T double
#define TI int64_t
#define V __m512d
#define N(name) name##_f64_avx512
#define ROWS 16
#define WIDE 6
#define TARGET __attribute__((target("avx512f,avx2,fma")))
#define FMADD _mm512_fmadd_pd
#define LOAD_SOME(p, mask) _mm512_maskz_loadu_pd(_mm512_test_epi64_mask((__m512i)(mask), (__m512i)(mask)), p)
#define DIRECT true
#define STORE_SOME(p, v, n) _mm512_mask_storeu_pd(p, (__mmask8)((1u << (n)) - 1), v)
#include "backend/cpu/conv/conv_template.h"

#endif

/* The inner loops of one instruction set and type. */
typedef struct engine {
    int  size, lanes; /* bytes of an element, elements of a vector */
    int  rows;        /* of the highest panel */
    bool direct;      /* loads end where a mask does */
    int  across;      /* vectors of channels where these are in lanes; 0: never */
    void (*run)(const cot__sweep *, const void *, const void *, void *, int64_t, int64_t, int64_t, int64_t);
    bool (*pack)(const cot__sweep *, void *, const void *, int, int64_t, int64_t, int64_t);
    void (*correlate)(int, int, const cot__correlation *, const void *, const void *, const int64_t *, int64_t, int64_t,
                      int64_t, int64_t, void *);
    void (*fold)(const void *, int, int, void *, int64_t, bool);
    void (*cut_across)(const cot__sweep *, int, const void *, int64_t, void *);
    void (*lane)(int, const cot__correlation *, const void *, const void *, const int64_t *, int64_t, int64_t, int64_t,
                 void *);
    void (*turn_sums)(const void *, int, int, void *, int64_t, bool);
} engine;

#define ENGINE(isa, type, suffix)                                                                                      \
    { sizeof(type), VL_##suffix##isa, rows_##suffix##isa, direct_##suffix##isa, across_##suffix##isa,                  \
      run_##suffix##isa, pack_##suffix, correlate_any_##suffix##isa, fold_##suffix,                                    \
      cut_across_##suffix##isa, lane_any_##suffix##isa, turn_sums_##suffix }
#define ENGINES(isa) { ENGINE(isa, float, f32), ENGINE(isa, double, f64) }
static const engine *engine_of(cot_dtype d) {
#if defined(__x86_64__)
    static const engine avx512[2] = ENGINES(_avx512);
    static const engine avx2[2] = ENGINES(_avx2);
    if (COT__CONV_ISA >= 2 && cot__cpu_isa() == COT__ISA_AVX512) return &avx512[d == COT_F64];
    if (COT__CONV_ISA >= 1 && cot__cpu_isa() >= COT__ISA_AVX2) return &avx2[d == COT_F64];
#elif defined(__aarch64__)
    static const engine neon[2] = ENGINES(_neon);
    if (COT__CONV_ISA >= 1 && cot__cpu_isa() == COT__ISA_NEON) return &neon[d == COT_F64];
#endif
#if COT__HAS_FAST
    static const engine plain[2] = ENGINES();
    if (COT__CONV_ISA == 0 || cot__cpu_bits() == COT__BITS_FAST) return &plain[d == COT_F64];
#endif
    static const engine portable[2] = ENGINES(_portable);
    return &portable[d == COT_F64];
}

/* ---- the padded copy ------------------------------------------------------------------------- */

typedef struct laying {
    const cot__layout *layout;
    const cot__view   *from; /* (images, channels, …) */
    cot_dtype          dtype;
    /* first image; items are channels of images */
    int64_t            first, channels, items, parts;
    char              *to;
} laying;

/* n bytes, of a row that is mostly short: a call takes longer than the copy. */
static inline void copy_row(char *to, const char *from, int64_t n) {
    enum { STEP = 16 };
    if (n < STEP) {
        memcpy(to, from, (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n - STEP; i += STEP) memcpy(to + i, from + i, STEP);
    memcpy(to + n - STEP, from + n - STEP, STEP);
}

/* Elements [low, high) of the rows of a slot along the last axis are in the source, a step apart;
 * the others stay zero. */
static void lay_rows(const laying *w, const char *from, char *to, const int64_t start[COT__SPACE]) {
    const cot__layout *l = w->layout;
    const int64_t     *stride = w->from->stride + 2, size = cot__dtype_size(w->dtype),
                  from_size = cot__dtype_size(w->from->dtype), step = l->step[2], n = l->source[2];
    int64_t low = start[2] < 0 ? (-start[2] + step - 1) / step : 0,
            high = n > start[2] ? (n - start[2] + step - 1) / step : 0;
    bool    plain = step * stride[2] == 1 && w->dtype == w->from->dtype;
    if (high > l->room[2]) high = l->room[2];
    if (high <= low) return;
    from += (low * step + start[2]) * stride[2] * from_size;
    to += low * size;
    for (int64_t ud = 0; ud < l->room[0]; ud++)
        for (int64_t uh = 0; uh < l->room[1]; uh++, to += l->room[2] * size) {
            int64_t     d = ud * l->step[0] + start[0], h = uh * l->step[1] + start[1];
            const char *row = from + (d * stride[0] + h * stride[1]) * from_size;
            if (d < 0 || d >= l->source[0] || h < 0 || h >= l->source[1]) continue;
            if (plain) copy_row(to, row, (high - low) * size);
            else cot__strip(w->dtype, w->from->dtype)(to, 1, row, step * stride[2], high - low);
        }
}

static void lay_channel(const laying *w, const char *from, char *to) {
    const cot__layout *l = w->layout;
    const int64_t      size = cot__dtype_size(w->dtype), slot = l->room[0] * l->room[1] * l->room[2] * size;
    memset(to, 0, (size_t)(l->channel * size));
    for (int64_t sd = 0; sd < l->slots[0]; sd++)
        for (int64_t sh = 0; sh < l->slots[1]; sh++)
            for (int64_t sw = 0; sw < l->slots[2]; sw++, to += slot)
                lay_rows(w, from, to, (const int64_t[]){l->start[0][sd], l->start[1][sh], l->start[2][sw]});
}

static void lay_items(const laying *w, int64_t i, int64_t end, char *to) {
    int64_t each = w->layout->channel * cot__dtype_size(w->dtype), from_size = cot__dtype_size(w->from->dtype);
    for (; i < end; i++, to += each) {
        int64_t n = w->first + i / w->channels, c = i % w->channels;
        lay_channel(w, (const char *)w->from->data + (n * w->from->stride[0] + c * w->from->stride[1]) * from_size, to);
    }
}

/* To where all of them have their places. */
static void lay_in_place(const laying *w, int64_t i, int64_t end) {
    lay_items(w, i, end, w->to + i * w->layout->channel * cot__dtype_size(w->dtype));
}

static void lay_part(void *ctx, int64_t part) {
    const laying *w = ctx;
    lay_in_place(w, cot__part_start(w->items, w->parts, part), cot__part_start(w->items, w->parts, part + 1));
}

/* What lays images [first, first + count) of `from` into `to`. Behind them stand zeros for lanes
 * that read beyond. */
static __attribute__((noinline)) COLD laying laying_of(const cot__layout *l, const cot__view *from, cot_dtype dtype,
                                                       int64_t first, int64_t count, char *to, int lanes) {
    laying w = {l, from, dtype, first, from->shape[1], count * from->shape[1], 0, to};
    w.parts = cot__parts(w.items, l->channel, w.items);
    memset(to + w.items * l->channel * cot__dtype_size(dtype), 0, (size_t)(lanes * cot__dtype_size(dtype)));
    return w;
}

/* Images whose padded copies of `each` elements fit a slab; at least one. */
static int64_t slab_of(int64_t batch, int64_t each, int64_t size) {
    int64_t n = each > 0 ? COT__CONV_SLAB / size / each : batch;
    return n < 1 ? 1 : n > batch ? batch : n;
}

/* v as a contiguous array of dtype: itself, or a copy. */
static const void *flat_of(cot__scratch *m, const cot__view *v, cot_dtype dtype) {
    if (v->dtype == dtype && cot__is_contiguous(v->ndim, v->shape, v->stride)) return v->data;
    void *to = cot__scratch_get(m, cot__count(v->ndim, v->shape), cot__dtype_size(dtype));
    if (!cot__scratch_fills(m)) return NULL;
    int64_t stride[COT_MAX_NDIM];
    cot__strides(v->ndim, v->shape, stride);
    cot__copy(&(cot__view){to, dtype, v->ndim, v->shape, stride}, v);
    return to;
}

/* ---- z from (x, w), x from (z, w) ------------------------------------------------------------ */

typedef struct product {
    const engine     *e;
    cot__sweep       *s;
    const char       *weights, *source;
    char             *out;
    /* channels of a group, read and made */
    int64_t           groups, in, outs;
    /* channel: elements of one in the layout */
    int64_t           channel, chunk_blocks, row_blocks, items, parts;
    int               lanes;  /* of a chunk */
    bool              across; /* channels are in lanes, PLACES make a chunk */
    /* each item lays what it reads in one of some rooms, and so each thread in one or two, which
     * stay in its cache; else all is laid before */
    bool              lays;
    laying            laying;
    char             *memory; /* in which the rooms are */
    int64_t           room;   /* bytes */
    cot__rooms        rooms;
} product;

/* An item is one image and group, a block of its chunks and a block of its channels. */
static void product_part(void *ctx, int64_t part) {
    product *p = ctx;
    int64_t  panels = (p->outs + 15) / 16, room = p->lays ? cot__room_take(&p->rooms, part, p->parts) : 0;
    for (int64_t i = cot__part_start(p->items, p->parts, part), end = cot__part_start(p->items, p->parts, part + 1);
         i < end; i++) {
        int64_t rows = i % p->row_blocks, chunks = i / p->row_blocks % p->chunk_blocks,
                image = i / p->row_blocks / p->chunk_blocks;
        int64_t group = image % p->groups;
        int64_t m     = 16 * cot__part_start(panels, p->row_blocks, rows),
                m_end = 16 * cot__part_start(panels, p->row_blocks, rows + 1);
        const char *source = p->source + image * p->in * p->channel * p->e->size;
        if (p->lays) {
            lay_items(&p->laying, image * p->in, (image + 1) * p->in, p->memory + room * p->room);
            source = p->memory + room * p->room;
        }
        p->e->run(p->s, p->weights + group * p->outs * p->s->taps * p->e->size, source,
                  p->out + image * p->outs * p->s->plane * p->e->size, m, m_end < p->outs ? m_end : p->outs,
                  cot__part_start(p->s->chunk_count, p->chunk_blocks, chunks),
                  cot__part_start(p->s->chunk_count, p->chunk_blocks, chunks + 1));
    }
    if (p->lays) cot__room_give(&p->rooms, room);
}

static char *room_for_weights(cot__scratch *m, const product *p) {
    return cot__scratch_get(m, cot__size_mul(p->groups * p->outs, p->s->taps), p->e->size);
}

/* One sweep over the images of a slab. w (outs·groups or in·groups, …) contiguous, read with the
 * strides given. */
static void run_sweep(cot__scratch *m, product *p, const void *w, int64_t images, int64_t m_stride, int64_t c_stride,
                      int64_t group_stride) {
    cot__sweep *s = p->s;
    char       *packed = room_for_weights(m, p);
    if (s->chunk_count == 0) return;
    for (int64_t g = 0; g < p->groups; g++)
        if (!p->e->pack(s, packed + g * p->outs * s->taps * p->e->size,
                        (const char *)w + g * group_stride * p->e->size, p->across ? p->e->lanes : p->e->rows, p->outs,
                        m_stride, c_stride))
            s->whole = true;
    s->across = p->across;
    int64_t bytes = p->in * p->channel * p->e->size, blocks = bytes / NEAR + 1, most = s->chunk_count / 8 + 1;
    p->weights = packed;
    p->chunk_blocks = blocks < most ? blocks : most;
    p->row_blocks = MOST / (images * p->groups * p->chunk_blocks);
    if (p->row_blocks > (p->outs + 15) / 16) p->row_blocks = (p->outs + 15) / 16;
    if (p->row_blocks < 1) p->row_blocks = 1;
    p->items = images * p->groups * p->chunk_blocks * p->row_blocks;
    /* Items that share what they read find it laid, and so do those whose lanes read beyond it,
     * which another thread may be laying. */
    p->lays &= p->across && p->chunk_blocks * p->row_blocks == 1;
    p->room = (bytes + 63) / 64 * 64;
    cot__rooms_open(&p->rooms, images * p->groups * bytes / p->room);
    p->lays &= p->rooms.count > 0;
    if (p->laying.parts && !p->lays) cot__parallel(p->laying.parts, lay_part, &p->laying);
    p->laying.parts = 0;
    int64_t cost = s->chunk_count * (s->taps + 8) * p->outs / (p->chunk_blocks * p->row_blocks) + 1;
    p->parts = cot__parts(p->items, cost, p->items);
    cot__parallel(p->parts, product_part, p);
}

static int64_t phases_of(const cot__conv *g) {
    int64_t n = 1;
    for (int a = 0; a < COT__SPACE; a++) n *= g->stride[a] < g->x[a] ? g->stride[a] : g->x[a];
    return n;
}

/* Rows that vectors of places would fill badly, of layers with channels for whole vectors and taps
 * enough to pay for turning the results. */
static bool goes_across(const engine *e, const cot__conv *g, bool input) {
    int64_t row = input ? g->x[2] : g->z[2], in = (input ? g->out : g->in) / g->groups,
            outs = (input ? g->in : g->out) / g->groups;
    return e->across && row % PLACES == 0 && row % e->lanes && outs % e->lanes == 0 && (!input || phases_of(g) == 1) &&
           in * g->k[0] * g->k[1] * g->k[2] >= 64;
}

/* What run_sweep and the plans of its phases ask for. */
static void count_sweeps(cot__scratch *m, const cot__conv *g, bool input, const cot__layout *l, const product *p,
                         cot__sweep *s) {
    for (int which = 0; which < (input ? COT__PHASE_SIZES : 1); which++) {
        int64_t kept = m->used;
        if (input) cot__count_phase(m, g, p->in, p->lanes, l, which, s);
        room_for_weights(m, p);
        m->used = kept;
    }
}

static COLD void run_product(cot__scratch *m, const cot__conv *g, bool input, const cot__view *a, const cot__view *b,
                        cot_dtype dtype, char *out) {
    const engine *e = engine_of(dtype);
    cot__layout   l;
    cot__sweep    s;
    int64_t       in = g->in / g->groups, outs = g->out / g->groups, kernel = g->k[0] * g->k[1] * g->k[2];
    product       p = {.e = e, .s = &s, .groups = g->groups, .in = input ? outs : in, .outs = input ? in : outs};
    const void   *w = flat_of(m, b, dtype);
    p.across = goes_across(e, g, input);
    p.lanes = p.across ? PLACES : e->lanes;
    if (input) cot__plan_input(m, g, &l);
    else cot__plan_output(m, g, in, p.lanes, &l, &s);
    int64_t channels = a->shape[1], image = cot__size_mul(l.channel, channels), plane = 1;
    if (image > COT__SIZE_MOST / 64) m->failed = true;
    if (m->failed) return;
    int64_t slab = slab_of(g->batch, image, e->size);
    char   *padded = cot__scratch_get(m, slab * image + e->lanes, e->size);
    if (!cot__scratch_fills(m)) {
        count_sweeps(m, g, input, &l, &p, &s);
        return;
    }
    for (int i = 0; i < COT__SPACE; i++) plane *= input ? g->x[i] : g->z[i];
    p.source = padded, p.channel = l.channel;
    for (int64_t n = 0; n < g->batch; n += slab) {
        int64_t images = g->batch - n < slab ? g->batch - n : slab, phases = input ? phases_of(g) : 1;
        p.laying = laying_of(&l, a, dtype, n, images, padded, e->lanes);
        p.memory = padded;
        p.out = out + n * p.outs * g->groups * plane * e->size;
        for (int64_t phase = 0; phase < phases; phase++) {
            int64_t kept = m->used;
            p.lays = phase == 0;
            if (input) cot__plan_phase(m, g, p.in, p.lanes, &l, phase, &s);
            run_sweep(m, &p, w, images, input ? kernel : in * kernel, input ? in * kernel : kernel, outs * in * kernel);
            m->used = kept;
        }
    }
}

/* ---- w from (x, z) --------------------------------------------------------------------------- */

typedef struct weighing {
    const engine     *e;
    const cot__sweep *s;
    cot__correlation  j;
    const cot__conv  *g;
    const int64_t    *offset; /* of each weight of a channel of z */
    const cot__view  *z;
    cot_dtype         dtype;
    const char       *x;
    char             *cut;      /* z in chunks, or z itself */
    /* [split][weights]; with channels in lanes, of several splits, a tile has its taps outermost */
    char             *sums;
    char             *out;
    int64_t           lanes;    /* of a chunk */
    int64_t           first, images, channel, taps, width; /* width: taps of a tile */
    int64_t           tiles, splits, items, parts; /* tiles: blocks of taps */
    bool              add, across;
    int64_t           panels, panel; /* of the channels of a group, and the channels of one */
    laying            laying;
} weighing;

/* Are channels of z contiguous, and of the right dtype? */
static bool is_plain(const weighing *w) {
    return w->dtype == w->z->dtype && cot__is_contiguous(3, w->z->shape + 2, w->z->stride + 2);
}

/* Copies a chunk of a channel of z that starts at `from`, a run of neighbours at a time; lanes
 * without a place become 0. plain: contiguous and of the right dtype. */
static void cut_chunk(const weighing *w, const char *from, int64_t c, bool plain, char *to) {
    const cot__view  *z = w->z;
    const cot__chunk *chunk = &w->s->chunks[c];
    int64_t           size = w->e->size, lanes = w->lanes, row = w->g->z[2];
    if (chunk->lanes < lanes) memset(to, 0, CHUNK_BYTES);
    if (plain && chunk->lanes) {
        copy_row(to, from + chunk->out * size, chunk->lanes * size);
        return;
    }
    int64_t at[64]; /* no vector has more lanes */
    for (int64_t l = 0; l < lanes; l++)
        at[l] = !chunk->lanes ? w->s->places[c * lanes + l] : l < chunk->lanes ? chunk->out + l : -1;
    for (int64_t l = 0, n; l < lanes; l += n) {
        n = 1;
        if (at[l] < 0) continue;
        /* up to the end of its row */
        while (l + n < lanes && at[l + n] == at[l] + n && at[l + n] % row) n++;
        int64_t x = at[l] % row, y = at[l] / row % w->g->z[1], d = at[l] / row / w->g->z[1];
        if (plain) memcpy(to + l * size, from + at[l] * size, (size_t)(n * size));
        else
            cot__strip(w->dtype, z->dtype)(to + l * size, 1,
                                           from + (d * z->stride[2] + y * z->stride[3] + x * z->stride[4]) *
                                                      cot__dtype_size(z->dtype),
                                           z->stride[4], n);
    }
}

/* Items are channels of images. */
static void cut_items(const weighing *w, int64_t i, int64_t end) {
    const cot__view *z = w->z;
    int64_t          size = cot__dtype_size(z->dtype);
    bool             plain = is_plain(w);
    for (; i < end; i++) {
        const char *from =
            (const char *)z->data + ((w->first + i / w->g->out) * z->stride[0] + i % w->g->out * z->stride[1]) * size;
        for (int64_t c = 0; c < w->s->chunk_count; c++)
            cut_chunk(w, from, c, plain, w->cut + (i * w->s->chunk_count + c) * CHUNK_BYTES);
    }
}

/* The same with channels in lanes: z as [panel][image][place of a chunk][chunk][channel]; items are
 * panels of images. */
static void cut_across_items(const weighing *w, int64_t i, int64_t end) {
    int64_t panels = w->g->groups * w->panels, size = w->e->size;
    for (; i < end; i++) {
        int64_t image = i / panels, panel = i % panels;
        w->e->cut_across(w->s, w->j.used,
                         (const char *)w->z->data +
                             ((w->first + image) * w->z->stride[0] + panel * w->panel * w->z->stride[1]) * size,
                         w->z->stride[1], w->cut + (panel * w->images + image) * w->j.z_image * size);
    }
}

/* Items of z in an image: what a copy of it is cut into; 0: it is read where it lies. */
static int64_t cuts_of(const weighing *w) {
    return w->j.direct ? 0 : w->across ? w->g->groups * w->panels : w->g->out;
}

static void cut_some(const weighing *w, int64_t i, int64_t end) {
    if (w->across) cut_across_items(w, i, end);
    else cut_items(w, i, end);
}

/* Part: a share of x is laid, and of z cut. */
static void copy_part(void *ctx, int64_t part) {
    const weighing *w = ctx;
    int64_t         cuts = w->images * cuts_of(w);
    lay_in_place(&w->laying, cot__part_start(w->laying.items, w->parts, part),
                 cot__part_start(w->laying.items, w->parts, part + 1));
    cut_some(w, cot__part_start(cuts, w->parts, part), cot__part_start(cuts, w->parts, part + 1));
}

/* The chunks that some of n taps, from tap p of a channel's kernel on, read anything in. */
static void chunks_of(const weighing *w, int64_t p, int64_t n, int64_t *first, int64_t *last) {
    const cot__sweep *s = w->s;
    int64_t           kernel = w->g->k[0] * w->g->k[1] * w->g->k[2], low = INT64_MAX, high = 0;
    *first = 0, *last = s->chunk_count;
    if (!s->chunks_a_row || (s->skip == 1 && s->extent[0] > 1)) return;
    for (int64_t i = p; i < p + n; i++) {
        int64_t k = s->skip ? i % kernel / w->g->k[2] : i % kernel / (w->g->k[1] * w->g->k[2]);
        if (s->axis[s->skip].low[k] < low) low = s->axis[s->skip].low[k];
        if (s->axis[s->skip].high[k] > high) high = s->axis[s->skip].high[k];
    }
    int64_t each = s->chunks_a_row * (s->skip ? 1 : s->extent[1]);
    *first = low * each, *last = high * each;
    if (*first > *last) *first = *last;
}

/* The end of the tile of taps that begins at p: tiles end with rows of the kernel where these are
 * long enough. */
static int64_t tile_end(const weighing *w, int64_t p) {
    int64_t row = w->g->k[2], end = p + w->width;
    if (row > 3 && end > (p / row + 1) * row) end = (p / row + 1) * row;
    return end < w->taps ? end : w->taps;
}

/* A tile of n taps from p on, and its chunks. */
typedef struct tile { int64_t p, first, last, n; } tile;

/* The tiles of taps [p, p_end), of a block of some units. Those with fewer taps end at rows of at
 * least four taps, so there are not more than four times as many. */
static int tiles_of(const weighing *w, int64_t p, int64_t p_end, tile *tiles) {
    int n = 0;
    for (; p < p_end; p += tiles[n++].n) {
        int64_t end = tile_end(w, p) < p_end ? tile_end(w, p) : p_end;
        tiles[n].p = p, tiles[n].n = end - p;
        chunks_of(w, p, end - p, &tiles[n].first, &tiles[n].last);
    }
    return n;
}

/* One panel of channels of z against taps [p, p_end), images [i, i_end): tiles take turns over
 * blocks of places. */
static void weigh(const weighing *w, int64_t group, int64_t o, int rows, int64_t p, int64_t p_end, int64_t i,
                  int64_t i_end, char *sums) {
    const int64_t size = w->e->size, in = w->g->in / w->g->groups, outs = w->g->out / w->g->groups,
                  vector = CHUNK_BYTES;
    int64_t       count = w->s->chunk_count, i_step = STEPS / count > 0 ? STEPS / count : 1;
    const char   *z = w->cut + (group * outs + o) * w->j.z_channel * size, *x = w->x + group * in * w->channel * size;
    tile          tiles[4 * UNITS];
    /* rows times taps of a tile */
    _Alignas(64) char lanes[UNITS * HIGH * TAPS * CHUNK_BYTES];
    int           tile_count = tiles_of(w, p, p_end, tiles);
    memset(lanes, 0, (size_t)((p_end - p) * rows * vector));
    for (; i < i_end; i += i_step)
        for (int64_t c = 0; c < count; c += STEPS)
            for (const tile *t = tiles; t < tiles + tile_count; t++) {
                int64_t first = t->first > c ? t->first : c, last = t->last < c + STEPS ? t->last : c + STEPS;
                if (first < last)
                    w->e->correlate(rows, (int)t->n, &w->j, x, z, w->offset + t->p, i,
                                    i + i_step < i_end ? i + i_step : i_end, first, last,
                                    lanes + (t->p - p) * rows * vector);
            }
    for (const tile *t = tiles; t < tiles + tile_count; t++)
        w->e->fold(lanes + (t->p - p) * rows * vector, rows, (int)t->n,
                   sums + ((group * outs + o) * w->taps + t->p) * size, w->taps, w->add);
}

/* One panel of channels with these in lanes. The lanes of the chunks come in the order in which
 * their sums are added by halves: 0, half of them, a quarter, three quarters and so on. */
static COLD void weigh_across(const weighing *w, int64_t group, int64_t o, int64_t p, int64_t p_end, int64_t i,
                         int64_t i_end, char *sums) {
    enum { LEVELS = 5 };
    _Alignas(64) char level[LEVELS][FEW * TAPS * 2 * CHUNK_BYTES];
    const int64_t size = w->e->size, outs = w->g->out / w->g->groups, channels = group * outs + o,
                  tap = w->panel * size, in = w->g->in / w->g->groups;
    const char   *x = w->x + group * in * w->channel * size,
               *z = w->cut + channels / w->panel * w->images * w->j.z_image * size;
    int64_t       i_step = 2 * STEPS / w->s->chunk_count > 0 ? 2 * STEPS / w->s->chunk_count : 1;
    tile          tiles[4 * FEW];
    int           count = tiles_of(w, p, p_end, tiles);
    for (int64_t k = 0, depth = 0; k < w->lanes; k++, depth++) {
        int64_t l = 0;
        for (int64_t bit = 1; bit < w->lanes; bit *= 2) l = 2 * l + (k / bit & 1);
        memset(level[depth], 0, (size_t)((p_end - p) * tap));
        for (int64_t n = i; l < w->j.used && n < i_end; n += i_step)
            for (const tile *t = tiles; t < tiles + count; t++)
                if (t->first < t->last)
                    w->e->lane((int)t->n, &w->j, x + (n * w->j.x_image + l) * size,
                               z + (n * w->j.z_image + l * w->j.z_channel) * size, w->offset + t->p,
                               i_end - n < i_step ? i_end - n : i_step, t->first, t->last,
                               level[depth] + (t->p - p) * tap);
        for (int64_t bit = 1; k & bit; bit *= 2, depth--)
            cot__strip_add(level[depth - 1], w->dtype, 1, level[depth], w->dtype, 1, (p_end - p) * w->panel);
    }
    char *to = sums + (channels * w->taps + p * (w->splits > 1 ? w->panel : 1)) * size;
    if (w->splits == 1) w->e->turn_sums(level[0], (int)w->panel, (int)(p_end - p), to, w->taps, w->add);
    else if (w->add) cot__strip_add(to, w->dtype, 1, level[0], w->dtype, 1, (p_end - p) * w->panel);
    else memcpy(to, level[0], (size_t)((p_end - p) * tap));
}

/* An item is a split of the images, a group with a panel of its channels of z, and a block of the
 * taps. Those of a split come one after another, for threads that have copied its images. */
typedef struct item { int64_t group, o, o_end, p, p_end, split; } item;

static item item_of(const weighing *w, int64_t i) {
    int64_t outs = w->g->out / w->g->groups, units = (w->taps + w->width - 1) / w->width, block = i % w->tiles,
            panel = i / w->tiles % w->panels;
    item t = {.group = i / w->tiles / w->panels % w->g->groups,
              .o     = panel * w->panel,
              .o_end = (panel + 1) * w->panel < outs ? (panel + 1) * w->panel : outs,
              .p     = w->width * cot__part_start(units, w->tiles, block),
              .p_end = w->width * cot__part_start(units, w->tiles, block + 1),
              .split = i / w->tiles / w->panels / w->g->groups};
    if (t.p_end > w->taps) t.p_end = w->taps;
    return t;
}

static void weigh_part(void *ctx, int64_t part) {
    const weighing *w = ctx;
    for (int64_t i = cot__part_start(w->items, w->parts, part), last = cot__part_start(w->items, w->parts, part + 1);
         i < last; i++) {
        item    t     = item_of(w, i);
        int64_t first = cot__part_start(w->images, w->splits, t.split),
                end   = cot__part_start(w->images, w->splits, t.split + 1);
        char   *sums  = w->sums + t.split * w->g->out * w->taps * w->e->size;
        for (int64_t o = t.o, rows; o < t.o_end; o += rows) {
            rows = w->across ? w->panel : panel_rows(HIGH, t.o_end - o);
            if (w->across) weigh_across(w, t.group, o, t.p, t.p_end, first, end, sums);
            else weigh(w, t.group, o, (int)rows, t.p, t.p_end, first, end, sums);
        }
    }
}

/* Part: the weights of an item of the first split, to which the others' are added in order. */
static void join_part(void *ctx, int64_t i) {
    const weighing *w = ctx;
    item            t = item_of(w, i);
    int64_t         size = w->e->size, weights = w->g->out * w->taps, o = t.group * (w->g->out / w->g->groups) + t.o,
                    rows = w->across ? 1 : t.o_end - t.o, n = (t.p_end - t.p) * (w->across ? w->panel : 1);
    char           *to = w->out + (o * w->taps + t.p) * size;
    for (int64_t row = 0; row < rows; row++) {
        char *sum = w->sums + ((o + row) * w->taps + t.p * (w->across ? w->panel : 1)) * size;
        for (int64_t k = 1; k < w->splits; k++)
            cot__strip_add(sum, w->dtype, 1, sum + k * weights * size, w->dtype, 1, n);
        if (w->across) w->e->turn_sums(sum, (int)w->panel, (int)(t.p_end - t.p), to, w->taps, false);
        else memcpy(to + row * w->taps * size, sum, (size_t)(n * size));
    }
}

/* Which lanes of each chunk have a place: all bits set, else 0. */
static const void *masks_of(cot__scratch *m, int64_t size, const cot__sweep *s) {
    char   *masks = cot__scratch_get(m, s->chunk_count, CHUNK_BYTES);
    int64_t all = CHUNK_BYTES / size;
    for (int64_t i = 0; cot__scratch_fills(m) && i < s->chunk_count * all; i++) {
        int lanes = s->chunks[i / all].lanes;
        memset(masks + i * size, (lanes ? i % all < lanes : s->places[i] >= 0) ? 0xff : 0, (size_t)size);
    }
    return masks;
}

/* The widest tile of taps that cuts rows of the kernel evenly. */
static int64_t width_of(const cot__conv *g) {
    int64_t row = g->k[2], pieces = (row + TAPS - 1) / TAPS;
    return row <= 3 ? TAPS : (row + pieces - 1) / pieces;
}

/* Splits of the images, so that threads need not pass by all of z: where a group has so few weights
 * that their sums are soon added up, of chains that are much longer than the way to a sum. How many
 * groups there are does not show: a batch of layers has the bits of each. */
static int64_t splits_of(int64_t weights, int64_t images, int64_t chunks) {
    int64_t n = weights <= LIGHT ? images * chunks / CHAIN : 1;
    if (n > SPLITS) n = SPLITS;
    return n > images ? images : n < 1 ? 1 : n;
}

static COLD void run_weight(cot__scratch *m, const cot__conv *g, const cot__view *x, const cot__view *z,
                            cot_dtype dtype, char *out) {
    const engine *e = engine_of(dtype);
    cot__layout   l;
    cot__sweep    s;
    int64_t       in = g->in / g->groups, outs = g->out / g->groups, lanes = CHUNK_BYTES / e->size;
    cot__plan_output(m, g, in, (int)lanes, &l, &s);
    weighing w      = {.e       = e,
                       .s       = &s,
                       .g       = g,
                       .z       = z,
                       .dtype   = dtype,
                       .lanes   = lanes,
                       .channel = l.channel,
                       .taps    = s.taps,
                       .width   = width_of(g)};
    int64_t  kernel = g->k[0] * g->k[1] * g->k[2], *offset = cot__scratch_get(m, s.taps, sizeof *offset);
    w.j = (cot__correlation){s.chunks, masks_of(m, e->size, &s), 0, 0, s.chunk_count * lanes, s.taps,
                             (int)(s.chunks_a_row == 1 && s.extent[2] < lanes ? s.extent[2] : lanes), false};
    int64_t  image = cot__size_mul(l.channel, g->in), cut = cot__size_mul(w.j.z_channel, g->out);
    if (image > COT__SIZE_MOST / 64 || cut > COT__SIZE_MOST / 64) m->failed = true;
    if (m->failed) return;
    for (int64_t p = 0; m->memory && p < s.taps; p++) offset[s.channel[p] * kernel + s.kernel[p]] = s.offset[p];
    int64_t slab = slab_of(g->batch, image + cut, e->size), panels = g->groups * ((outs + HIGH - 1) / HIGH);
    /* tiles of taps: blocks of UNITS, or fewer where there are few panels */
    int64_t units = (s.taps + w.width - 1) / w.width;
    w.tiles = (units + UNITS - 1) / UNITS > MOST / panels ? (units + UNITS - 1) / UNITS : MOST / panels;
    if (w.tiles > units) w.tiles = units;
    w.splits = splits_of(outs * s.taps, slab, s.chunk_count);
    /* Smaller blocks give many threads even shares. Where blocks would cut tiles elsewhere, their
     * number shows in what padding does to numbers that are not finite, and stays. */
    bool anywhere = g->k[2] <= 3 || g->k[2] % w.width == 0;
    w.panels = (outs + HIGH - 1) / HIGH, w.panel = HIGH;
    w.across = e->across && anywhere && s.chunks_a_row == 1 && s.extent[2] <= lanes &&
               outs % (e->across * e->lanes) == 0 && is_plain(&w);
    if (w.across) {
        w.panel = e->across * e->lanes, w.panels = outs / w.panel, panels = g->groups * w.panels;
        w.tiles = (units + FEW - 1) / FEW > MOST / panels ? (units + FEW - 1) / FEW : MOST / panels;
        if (w.tiles > units) w.tiles = units;
    } else if (anywhere)
        while (w.tiles < units && panels * w.tiles * w.splits < 4 * MOST)
            w.tiles = 2 * w.tiles < units ? 2 * w.tiles : units;
    w.j.x_image = image, w.j.z_image = cut, w.offset = offset;
    /* A few tiles read z sooner where it lies, across the lines of the cache, than it is copied;
     * many do not. */
    w.j.direct = !w.across && e->direct && s.chunks_a_row && units <= UNITS && outs % HIGH == 0 && is_plain(&w);
    char *padded = cot__scratch_get(m, slab * image + lanes, e->size),
         *places = cot__scratch_get(m, w.j.direct ? 0 : slab * cut, e->size);
    w.x = padded, w.cut = places;
    if (w.across) w.j.z_channel = s.chunk_count * w.panel, w.j.z_image = w.j.used * w.j.z_channel;
    if (w.j.direct) w.j.z_image = z->stride[0], w.j.z_channel = z->stride[1];
    w.out = out;
    w.sums = w.splits > 1 ? cot__scratch_get(m, w.splits * g->out * s.taps, e->size) : out;
    if (!cot__scratch_fills(m)) return;
    for (int64_t n = 0; n < g->batch; n += slab) {
        w.first = n, w.images = g->batch - n < slab ? g->batch - n : slab, w.add = n > 0;
        w.laying = laying_of(&l, x, dtype, n, w.images, padded, (int)lanes);
        if (w.j.direct) w.cut = (char *)z->data + n * z->stride[0] * e->size;
        w.items = panels * w.tiles * w.splits;
        w.parts = cot__parts(w.images * g->in, l.channel + cut / g->in, w.images * g->in);
        cot__parallel(w.parts, copy_part, &w);
        w.parts = cot__parts(
            w.items, w.images * s.chunk_count * outs * s.taps / (panels / g->groups * w.tiles * w.splits) + 1, w.items);
        cot__parallel(w.parts, weigh_part, &w);
    }
    if (w.splits > 1) cot__parallel_small(panels * w.tiles, join_part, &w);
}

/* ---- the entry ------------------------------------------------------------------------------- */

static bool is_empty(const cot__view *v) { return cot__count(v->ndim, v->shape) == 0; }

static COLD void convolve(cot__scratch *m, const cot__conv *g, cot__conv_pass pass, const cot__view *a,
                          const cot__view *b, const cot__view *result) {
    cot_dtype dtype = cot__dtype_compute(result->dtype);
    bool      direct = dtype == result->dtype;
    char     *out =
        direct ? result->data : cot__scratch_get(m, cot__count(result->ndim, result->shape), cot__dtype_size(dtype));
    if (pass == COT__CONV_WEIGHT) run_weight(m, g, a, b, dtype, out);
    else run_product(m, g, pass == COT__CONV_INPUT, a, b, dtype, out);
    if (!direct && cot__scratch_fills(m))
        cot__copy(result, &(cot__view){out, dtype, result->ndim, result->shape, result->stride});
}

COLD int64_t cot__conv_bytes(const cot__conv *g, cot__conv_pass pass, const cot__view *a, const cot__view *b,
                             const cot__view *result) {
    cot__scratch m = {0};
    if (is_empty(result) || is_empty(a) || is_empty(b)) return 0;
    convolve(&m, g, pass, a, b, result);
    return m.failed || m.most > COT__SIZE_MOST / 2 ? -1 : m.most + 64;
}

COLD void cot__conv_run(const cot__conv *g, cot__conv_pass pass, const cot__view *a, const cot__view *b,
                        const cot__view *result, void *memory) {
    if (is_empty(result)) return;
    if (is_empty(a) || is_empty(b)) { /* nothing to sum */
        memset(result->data, 0, (size_t)(cot__count(result->ndim, result->shape) * cot__dtype_size(result->dtype)));
        return;
    }
    cot__scratch m = {.memory = (char *)(((uintptr_t)memory + 63) & ~(uintptr_t)63)};
    convolve(&m, g, pass, a, b, result);
}
