/* conv_plan.c: the arithmetic of places, strides and borders behind conv_plan.h. Integers only; no
 * elements are touched here. */
#include "backend/cpu/conv/conv_plan.h"

/* ---- memory ---------------------------------------------------------------------------------- */

void *cot__scratch_get(cot__scratch *s, int64_t count, int64_t size) {
    size_t  bytes;
    int64_t at = s->used;
    if (!cot__size_bytes(count, size, &bytes)) s->failed = true;
    else s->used = cot__size_add(at, (int64_t)((bytes + 63) & ~(size_t)63));
    if (s->used == COT__SIZE_MOST) s->failed = true;
    if (s->used > s->most) s->most = s->used;
    return cot__scratch_fills(s) ? s->memory + at : NULL;
}

/* ---- small arithmetic ------------------------------------------------------------------------ */

/* b > 0 */
static int64_t ceil_div(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }
static int64_t clip(int64_t i, int64_t high) { return i < 0 ? 0 : i > high ? high : i; }

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

/* After so many taps along an axis their remainders modulo the stride repeat. */
static int64_t period(const cot__conv *g, int a) { return g->stride[a] / common_divisor(g->stride[a], g->dilation[a]); }

static void axis_taps(cot__scratch *m, cot__axis_taps *t, int64_t n) {
    int64_t *all = cot__scratch_get(m, 4 * n, sizeof *all);
    *t = (cot__axis_taps){0};
    if (all) *t = (cot__axis_taps){0, all, all + n, all + 2 * n, all + 3 * n};
}

/* Elements of a channel; the layout's rooms and slots are known. */
static void measure(cot__scratch *m, cot__layout *l) {
    l->channel = 1;
    for (int a = 0; a < COT__SPACE; a++) l->channel = cot__size_mul(l->channel, cot__size_mul(l->slots[a], l->room[a]));
    if (l->channel == COT__SIZE_MOST) m->failed = true;
}

static int64_t room_stride(const cot__layout *l, int a) {
    return a == 0 ? l->room[1] * l->room[2] : a == 1 ? l->room[2] : 1;
}
static int64_t slot_stride(const cot__layout *l, int a) {
    int64_t s = l->room[0] * l->room[1] * l->room[2];
    for (int b = a + 1; b < COT__SPACE; b++) s *= l->slots[b];
    return s;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

/* The taps along the skip axis that read inside the source at place j: neighbours, as where they
 * read moves one way. */
static void taps_at(const cot__sweep *s, int64_t j, int64_t *first, int64_t *last) {
    const cot__axis_taps *t = &s->axis[s->skip];
    int64_t               each = t->n ? s->taps / t->n : 0, i = 0, end = t->n;
    while (i < end && (j < t->low[i] || j >= t->high[i])) i++;
    while (end > i && (j < t->low[end - 1] || j >= t->high[end - 1])) end--;
    *first = i * each;
    *last = end * each;
}

static int64_t place_of(const cot__sweep *s, int64_t d, int64_t h, int64_t w) {
    return ((d * s->out_stride[0] + s->out_start[0]) * s->result[1] + h * s->out_stride[1] + s->out_start[1]) *
               s->result[2] +
           w * s->out_stride[2] + s->out_start[2];
}

static void cut_rows(cot__sweep *s, const cot__layout *l, int lanes) {
    cot__chunk *c = s->chunks;
    for (int64_t d = 0; d < s->extent[0]; d++)
        for (int64_t h = 0; h < s->extent[1]; h++) {
            int64_t first, last;
            taps_at(s, s->skip ? h : d, &first, &last);
            for (int64_t w = 0; w < s->extent[2]; w += lanes, c++)
                *c = (cot__chunk){(d * l->room[1] + h) * l->room[2] + w, place_of(s, d, h, w), first, last,
                                  s->extent[2] - w < lanes ? (int)(s->extent[2] - w) : lanes};
        }
}

/* Rows follow each other with what the layout has between them: fewer chunks where rows are short.
 * Where places are evenly spaced all the same, the chunk says so. */
static void cut_flat(cot__sweep *s, const cot__layout *l, int lanes) {
    for (int64_t i = 0; i < s->chunk_count; i++) {
        s->chunks[i] = (cot__chunk){i * lanes, 0, 0, s->taps, 0};
        for (int64_t k = i * lanes; k < (i + 1) * lanes; k++) {
            int64_t w = k % l->room[2], h = k / l->room[2] % l->room[1], d = k / l->room[2] / l->room[1];
            s->places[k] = w < s->extent[2] && h < s->extent[1] && d < s->extent[0] ? place_of(s, d, h, w) : -1;
        }
        const int64_t *p = s->places + i * lanes;
        int            n = 0;
        while (n < lanes && p[n] >= 0 && p[n] == p[0] + n * s->out_step) n++;
        if (n == lanes) s->chunks[i].lanes = lanes, s->chunks[i].out = p[0];
    }
}

static void cut(cot__scratch *m, cot__sweep *s, const cot__layout *l, int lanes) {
    const int64_t *e = s->extent;
    if (e[0] == 0 || e[1] == 0 || e[2] == 0) {
        s->chunk_count = 0;
        return;
    }
    int64_t a_row = (e[2] + lanes - 1) / lanes, rows = e[0] * e[1] * a_row;
    int64_t flat = (((e[0] - 1) * l->room[1] + e[1] - 1) * l->room[2] + e[2] + lanes - 1) / lanes;
    /* which leave out taps at borders, and are put down as they are */
    bool    by_rows = rows <= flat + flat / 8;
    s->chunks_a_row = by_rows ? a_row : 0;
    s->chunk_count = by_rows ? rows : flat;
    s->chunks = cot__scratch_get(m, s->chunk_count, sizeof *s->chunks);
    if (!s->chunks_a_row) s->places = cot__scratch_get(m, s->chunk_count * lanes, sizeof *s->places);
    if (!cot__scratch_fills(m)) return;
    if (s->chunks_a_row) cut_rows(s, l, lanes);
    else cut_flat(s, l, lanes);
}

/* ---- taps ------------------------------------------------------------------------------------ */

/* Lists the taps of all channels, those along the skip axis outermost. */
static void list_taps(const cot__conv *g, int64_t channels, const cot__layout *l, cot__sweep *s) {
    int                   other = 1 - s->skip;
    const cot__axis_taps *x = &s->axis[s->skip], *y = &s->axis[other], *z = &s->axis[2];
    int64_t               k_stride[COT__SPACE] = {g->k[1] * g->k[2], g->k[2], 1}, p = 0;
    for (int64_t i = 0; i < x->n; i++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t j = 0; j < y->n; j++)
                for (int64_t k = 0; k < z->n; k++, p++) {
                    s->offset[p] = c * l->channel + x->offset[i] + y->offset[j] + z->offset[k];
                    s->channel[p] = c;
                    s->kernel[p] = x->kernel[i] * k_stride[s->skip] + y->kernel[j] * k_stride[other] + z->kernel[k];
                }
}

/* What follows from the taps along each axis: all taps, and the places in chunks. */
static void finish(cot__scratch *m, const cot__conv *g, int64_t channels, int lanes, const cot__layout *l,
                   cot__sweep *s) {
    s->skip = g->k[0] > 1 ? 0 : 1;
    s->taps = channels;
    for (int a = 0; a < COT__SPACE; a++) s->taps = cot__size_mul(s->taps, s->axis[a].n);
    s->offset = cot__scratch_get(m, s->taps, sizeof *s->offset);
    s->channel = cot__scratch_get(m, s->taps, sizeof *s->channel);
    s->kernel = cot__scratch_get(m, s->taps, sizeof *s->kernel);
    if (cot__scratch_fills(m)) list_taps(g, channels, l, s);
    s->out_step = s->out_stride[2];
    s->plane = s->result[0] * s->result[1] * s->result[2];
    cut(m, s, l, lanes);
}

/* x at q·stride + k·dilation − before = (q + a)·stride + r − before: element q + a of the slot of
 * remainder r. */
static void output_taps(const cot__conv *g, int a, cot__layout *l, cot__axis_taps *t) {
    for (int64_t k = 0, slots = 0; k < g->k[a]; k++) {
        int64_t at = k * g->dilation[a] - g->before[a], start = k * g->dilation[a] % g->stride[a] - g->before[a];
        int64_t slot = 0;
        while (slot < slots && l->start[a][slot] != start) slot++;
        if (slot == slots) l->start[a][slots++] = start;
        t->offset[k] = slot * slot_stride(l, a) + k * g->dilation[a] / g->stride[a] * room_stride(l, a);
        t->kernel[k] = k;
        t->low[k] = clip(ceil_div(-at, g->stride[a]), g->z[a]);
        t->high[k] = clip(ceil_div(g->x[a] - at, g->stride[a]), g->z[a]);
    }
}

void cot__plan_output(cot__scratch *m, const cot__conv *g, int64_t channels, int lanes, cot__layout *l, cot__sweep *s) {
    *s = (cot__sweep){.out_stride = {1, 1, 1}};
    for (int a = 0; a < COT__SPACE; a++) {
        int64_t most = (g->k[a] - 1) * g->dilation[a] / g->stride[a], slots = period(g, a);
        s->extent[a] = s->result[a] = g->z[a];
        l->source[a] = g->x[a], l->step[a] = g->stride[a], l->room[a] = g->z[a] + most;
        l->slots[a] = slots < g->k[a] ? slots : g->k[a];
        l->start[a] = cot__scratch_get(m, g->k[a], sizeof(int64_t));
        axis_taps(m, &s->axis[a], g->k[a]);
        s->axis[a].n = g->k[a];
    }
    measure(m, l);
    if (m->failed) return;
    for (int a = 0; a < COT__SPACE && m->memory; a++) output_taps(g, a, l, &s->axis[a]);
    finish(m, g, channels, lanes, l, s);
}

/* Place j·stride + r of x meets tap k where stride divides r + before − k·dilation, at place j +
 * that quotient of z. */
static bool meets(const cot__conv *g, int a, int64_t r, int64_t k, int64_t *shift) {
    int64_t d = r + g->before[a] - k * g->dilation[a];
    *shift = d / g->stride[a];
    return d % g->stride[a] == 0;
}

void cot__plan_input(cot__scratch *m, const cot__conv *g, cot__layout *l) {
    for (int a = 0; a < COT__SPACE; a++) {
        int64_t low = 0, high = 0, shift, phases = g->stride[a] < g->x[a] ? g->stride[a] : g->x[a];
        bool    any = false;
        for (int64_t k = 0; k < g->k[a]; k++) {
            /* each tap meets one remainder; extremes are at these */
            int64_t r = (k * g->dilation[a] - g->before[a]) % g->stride[a];
            if (r < 0) r += g->stride[a];
            if (r >= phases || !meets(g, a, r, k, &shift)) continue;
            int64_t end = (g->x[a] - r - 1) / g->stride[a] + shift;
            low = !any || shift < low ? shift : low;
            high = !any || end > high ? end : high;
            any = true;
        }
        /* places of the longest phase, less one: rooms hold those too */
        int64_t most = phases ? (g->x[a] - 1) / g->stride[a] : 0;
        l->source[a] = g->z[a], l->step[a] = l->slots[a] = 1;
        l->room[a] = high - low > most ? high - low + 1 : most + 1;
        l->start[a] = cot__scratch_get(m, 1, sizeof(int64_t));
        if (l->start[a]) l->start[a][0] = low;
    }
    measure(m, l);
}

/* Of the phases along an axis the first has most places, and others have one less or as many. No
 * phase meets more taps than their number over the period, rounded up. */
void cot__count_phase(cot__scratch *m, const cot__conv *g, int64_t channels, int lanes, const cot__layout *l, int which,
                      cot__sweep *s) {
    *s = (cot__sweep){.skip = 0};
    for (int a = COT__SPACE - 1; a >= 0; a--) {
        int64_t most = (g->x[a] - 1) / g->stride[a] + 1, less = which >> a & 1;
        if (less && (most == 1 || g->stride[a] == 1)) return; /* all phases have as many */
        s->extent[a] = most - less;
        s->result[a] = g->x[a];
        axis_taps(m, &s->axis[a], g->k[a]);
        s->axis[a].n = ceil_div(g->k[a], period(g, a));
    }
    finish(m, g, channels, lanes, l, s);
}

void cot__plan_phase(cot__scratch *m, const cot__conv *g, int64_t channels, int lanes, const cot__layout *l,
                     int64_t phase, cot__sweep *s) {
    *s = (cot__sweep){.skip = 0};
    for (int a = COT__SPACE - 1; a >= 0; a--) {
        int64_t         phases = g->stride[a] < g->x[a] ? g->stride[a] : g->x[a], r = phase % phases, shift;
        cot__axis_taps *t = &s->axis[a];
        phase /= phases;
        s->extent[a] = (g->x[a] - r - 1) / g->stride[a] + 1;
        s->out_start[a] = r, s->out_stride[a] = g->stride[a], s->result[a] = g->x[a];
        axis_taps(m, t, g->k[a]);
        for (int64_t k = 0; k < g->k[a]; k++) {
            if (!meets(g, a, r, k, &shift)) continue;
            t->kernel[t->n] = k;
            t->offset[t->n] = (shift - l->start[a][0]) * room_stride(l, a);
            t->low[t->n] = clip(-shift, s->extent[a]);
            t->high[t->n++] = clip(g->z[a] - shift, s->extent[a]);
        }
    }
    finish(m, g, channels, lanes, l, s);
}
