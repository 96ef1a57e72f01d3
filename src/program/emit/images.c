/* images.c: blocks of convolutions and pooling, by calls of functions in images.inc and
 * maxima.inc, to which their geometry is given as constants. */
#include "program/emit/block.h"
#include "rules/structural_ids.h"

/* Fewer than three spatial axes have ones in front. */
enum { SPACE = 3 };

typedef struct windows { int64_t x[SPACE], k[SPACE], z[SPACE], stride[SPACE], dilation[SPACE], before[SPACE]; } windows;

static int op_of(const cot__block *b) { return b->w->p->operation[b->k].op; }

/* ---- constants ------------------------------------------------------------------------------- */

static void put_numbers(const cot__block *b, int n, const int64_t *list) {
    cot__put(cot__to(b), "{");
    for (int k = 0; k < n; k++) cot__putf(cot__to(b), "%s%lld", k ? ", " : "", (long long)list[k]);
    cot__put(cot__to(b), "}");
}

static void put_windows(const cot__block *b, const windows *g) {
    const int64_t *parts[] = {g->x, g->k, g->z, g->stride, g->dilation, g->before};
    cot__put_indent(b->w, COT__BASE);
    cot__put(cot__to(b), "static const cot_windows g_0 = {");
    for (int k = 0; k < COUNTOF(parts); k++) cot__put(cot__to(b), k ? ", " : ""), put_numbers(b, SPACE, parts[k]);
    cot__put(cot__to(b), "};\n");
}

/* "(const ptrdiff_t[]){strides of the spatial axes}" */
static void put_steps(const cot__block *b, uint32_t value, int space) {
    int     ndim = cot__plan_view(&b->w->layout.plan, value).ndim;
    int64_t step[SPACE] = {0};
    for (int k = 0; k < space; k++) step[SPACE - space + k] = cot__step(b, value, ndim - space + k);
    cot__put(cot__to(b), "(const ptrdiff_t[])");
    put_numbers(b, SPACE, step);
}

/* ---- convolutions ---------------------------------------------------------------------------- */

/* Attributes: the groups, then stride, dilation, padding and the result's extents, as many each as
 * spatial axes. */
typedef struct channels { int64_t batch, groups, in, out; } channels;

static windows convolution_of(const cot__block *b, channels *c) {
    cot__view      left = cot__value_view(b->w->p, b->x[0]), right = cot__value_view(b->w->p, b->x[1]);
    int            op = op_of(b), space = left.ndim - 2;
    const int64_t *ints = b->attr->ints + 1;
    windows        g = {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}};
    int64_t       *first = op == OP_conv_transpose ? g.z : g.x, *second = op == OP_conv_weight ? g.z : g.k;
    int64_t       *result = op == OP_conv ? g.z : op == OP_conv_transpose ? g.x : g.k;
    *c = (channels){left.shape[0], b->attr->ints[0], left.shape[1], right.shape[0]};
    if (op == OP_conv_transpose) c->in = right.shape[1] * c->groups;
    if (op == OP_conv_weight) c->out = right.shape[1];
    for (int i = 0, to = SPACE - space; i < space; i++, to++) {
        first[to] = left.shape[2 + i], second[to] = right.shape[2 + i];
        g.stride[to] = ints[i], g.dilation[to] = ints[space + i], g.before[to] = ints[2 * space + i];
        result[to] = ints[3 * space + i];
    }
    return g;
}

static void put_strides(const cot__block *b, uint32_t value) {
    cot__view v = cot__plan_view(&b->w->layout.plan, value);
    int64_t   step[2 + SPACE] = {v.stride[0], v.stride[1]};
    for (int k = 2; k < v.ndim; k++) step[2 + SPACE - v.ndim + k] = v.stride[k];
    put_numbers(b, 2 + SPACE, step);
}

static void put_channels(const cot__block *b, const channels *c) {
    cot__put_indent(b->w, COT__BASE);
    cot__putf(cot__to(b), "static const cot_channels h_0 = {%lld, %lld, %lld, %lld, ", (long long)c->batch,
              (long long)c->groups, (long long)c->in, (long long)c->out);
    put_strides(b, b->x[0]);
    cot__put(cot__to(b), ", ");
    put_strides(b, b->x[1]);
    cot__put(cot__to(b), "};\n");
}

/* ---- sums over places ------------------------------------------------------------------------ */

/* How the kernel cuts sums over places (conv.c, conv_plan.c): part of what the result is. */
enum { CHUNK_BYTES = 64, TAPS = 6, HIGH = 4, UNITS = 16, MOST = 16, SLAB = 32 << 20 };
enum { SPLITS = 8, LIGHT = 1 << 14, CHAIN = 96 };

typedef struct chunks {
    int64_t lanes, count, a_row, room[SPACE], taps, kernel, width, units, tiles, shares, images;
    int     skip;
} chunks;

static int64_t up(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }
static int64_t clip(int64_t i, int64_t high) { return i < 0 ? 0 : i > high ? high : i; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* As parallel.h shares n items out to parts. */
static int64_t part_start(int64_t n, int64_t parts, int64_t part) { return n / parts * part + least(part, n % parts); }

static int64_t divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

static chunks chunks_of(const cot__block *b, const windows *g, const channels *c) {
    int64_t in = c->in / c->groups, outs = c->out / c->groups, size = cot__dtype_size(b->zv.dtype), channel = 1;
    chunks  u = {.lanes = CHUNK_BYTES / size, .kernel = g->k[0] * g->k[1] * g->k[2], .skip = g->k[0] > 1 ? 0 : 1};
    for (int a = 0; a < SPACE; a++) {
        u.room[a] = g->z[a] + (g->k[a] - 1) * g->dilation[a] / g->stride[a];
        channel *= u.room[a] * least(g->stride[a] / divisor(g->stride[a], g->dilation[a]), g->k[a]);
    }
    int64_t a_row = up(g->z[2], u.lanes), rows = g->z[0] * g->z[1] * a_row;
    int64_t flat = up(((g->z[0] - 1) * u.room[1] + g->z[1] - 1) * u.room[2] + g->z[2], u.lanes);
    u.a_row = rows <= flat + flat / 8 ? a_row : 0;
    u.count = u.a_row ? rows : flat;
    u.taps = in * u.kernel;
    int64_t pieces = up(g->k[2], TAPS), panels = c->groups * up(outs, HIGH);
    u.width = g->k[2] <= 3 ? TAPS : up(g->k[2], pieces);
    u.units = up(u.taps, u.width);
    u.tiles = up(u.units, UNITS) > MOST / panels ? up(u.units, UNITS) : MOST / panels;
    u.tiles = least(u.tiles, u.units);
    int64_t each = channel * c->in + u.count * u.lanes * c->out, fit = each ? SLAB / size / each : c->batch;
    u.images = least(fit < 1 ? 1 : fit, c->batch);
    int64_t splits = outs * u.taps <= LIGHT ? least(u.images * u.count / CHAIN, SPLITS) : 1;
    u.shares = least(splits < 1 ? 1 : splits, u.images);
    return u;
}

/* The chunks that some tap of [p, end) meets anything in. */
static void range_of(const windows *g, const chunks *u, int64_t p, int64_t end, int64_t range[2]) {
    int64_t low = INT64_MAX, high = 0, each = u->a_row * (u->skip ? 1 : g->z[1]);
    range[0] = 0, range[1] = u->count;
    if (!u->a_row || (u->skip == 1 && g->z[0] > 1)) return;
    for (; p < end; p++) {
        int     a = u->skip;
        int64_t k = a ? p % u->kernel / g->k[2] : p % u->kernel / (g->k[1] * g->k[2]);
        int64_t at = k * g->dilation[a] - g->before[a];
        low = least(low, clip(up(-at, g->stride[a]), g->z[a]));
        int64_t behind = clip(up(g->x[a] - at, g->stride[a]), g->z[a]);
        high = behind > high ? behind : high;
    }
    range[1] = high * each;
    range[0] = least(low * each, range[1]);
}

/* Taps are taken in tiles, which leave out the chunks in which none of their taps reads
 * anything. */
static bool put_ranges(const cot__block *b, const windows *g, const chunks *u, bool print) {
    bool some = false;
    for (int64_t tile = 0; tile < u->tiles; tile++) {
        int64_t p = u->width * part_start(u->units, u->tiles, tile), row = g->k[2];
        int64_t last = least(u->width * part_start(u->units, u->tiles, tile + 1), u->taps);
        for (int64_t end; p < last; p = end) {
            int64_t range[2];
            end = p + u->width;
            if (row > 3) end = least(end, (p / row + 1) * row);
            end = least(end, last);
            range_of(g, u, p, end, range);
            some |= range[0] > 0 || range[1] < u->count;
            for (int64_t i = p; print && i < end; i++)
                cot__putf(cot__to(b), "%s%lld, %lld", i == 0 ? "" : cot__to(b)->column > 100 ? ",\n            " : ", ",
                          (long long)range[0], (long long)range[1]);
        }
    }
    return some;
}

static void put_chunks(const cot__block *b, const windows *g, const chunks *u) {
    bool some = put_ranges(b, g, u, false);
    if (some) {
        cot__put_indent(b->w, COT__BASE);
        cot__putf(cot__to(b), "static const int32_t r_0[%lld] = {", (long long)(2 * u->taps));
        put_ranges(b, g, u, true);
        cot__put(cot__to(b), "};\n");
    }
    cot__put_indent(b->w, COT__BASE);
    cot__putf(cot__to(b), "static const cot_chunks u_0 = {%lld, %lld, ", (long long)u->count, (long long)u->a_row);
    put_numbers(b, SPACE, u->room);
    cot__putf(cot__to(b), ", %lld, %s};\n", (long long)u->shares, some ? "r_0" : "NULL");
}

/* Padded copies of more images than fit the kernel's memory are summed apart, which nobody has
 * asked for here. */
bool cot__has_too_many_images(const cot__block *b) {
    channels c;
    if (op_of(b) != OP_conv_weight) return false;
    windows g = convolution_of(b, &c);
    return chunks_of(b, &g, &c).images < c.batch;
}

void cot__put_convolution(const cot__block *b) {
    int           op = op_of(b);
    channels      c;
    windows       g = convolution_of(b, &c);
    cot__at_index none = {0};
    cot__view left = cot__value_view(b->w->p, b->x[0]), right = cot__value_view(b->w->p, b->x[1]);
    if (cot__view_size(&left) == 0 || cot__view_size(&right) == 0) {
        cot__put_fill(b, 0);
        return;
    }
    put_windows(b, &g);
    put_channels(b, &c);
    chunks u;
    if (op == OP_conv_weight) u = chunks_of(b, &g, &c), put_chunks(b, &g, &u);
    cot__put_indent(b->w, COT__BASE);
    cot__put_typed_call(
        b, op == OP_conv ? "cot_conv" : op == OP_conv_transpose ? "cot_conv_input" : "cot_conv_weight", b->zv.dtype);
    cot__put(cot__to(b), op == OP_conv_weight ? "&g_0, &h_0, &u_0, " : "&g_0, &h_0, ");
    cot__put_address(b, b->x[0], &none);
    cot__put(cot__to(b), ", ");
    cot__put_address(b, b->x[1], &none);
    cot__put(cot__to(b), ", ");
    cot__put_address(b, b->z, &none);
    cot__put(cot__to(b), ");\n");
}

/* ---- pooling --------------------------------------------------------------------------------- */

/* Attributes are [exclude,] then window, stride, padding and x's extents. `pooled` is the value
 * that has an element for each window. */
static windows pool_of(const cot__block *b, uint32_t pooled, int *space) {
    int            flags = op_of(b) == OP_avg_pool || op_of(b) == OP_avg_unpool;
    const int64_t *ints = b->attr->ints + flags;
    cot__view      v = cot__value_view(b->w->p, pooled);
    windows        g = {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}};
    *space = ((int)b->attr->nints - flags) / 4;
    for (int i = 0, n = *space, to = SPACE - n; i < n; i++, to++) {
        g.k[to] = ints[i], g.stride[to] = ints[n + i], g.before[to] = ints[2 * n + i], g.x[to] = ints[3 * n + i];
        g.z[to] = v.shape[v.ndim - n + i];
    }
    return g;
}

/* Windows of two by two that cover x: each element has one, and gets what is put there as it is. */
static bool is_by_two(const windows *g) {
    return g->k[0] == 1 && g->x[0] == 1 && g->k[1] == 2 && g->k[2] == 2 && g->stride[1] == 2 && g->stride[2] == 2 &&
           !g->before[1] && !g->before[2] && 2 * g->z[1] == g->x[1] && 2 * g->z[2] == g->x[2];
}

static void put_read(const cot__block *b, int k, int space, const cot__at_index *at) {
    cot__put_address(b, b->x[k], at);
    cot__put(cot__to(b), ", ");
    put_steps(b, b->x[k], space);
    cot__put(cot__to(b), ", ");
}

void cot__put_pool(const cot__block *b) {
    int             op = op_of(b), space;
    bool            back = op == OP_max_unpool || op == OP_avg_unpool;
    bool            chosen = op == OP_max_take || op == OP_max_unpool;
    windows         g = pool_of(b, back ? b->x[0] : b->z, &space);
    cot__at_index   at = {0};
    cot__loop_names room;
    cot__view       planes = b->zv;
    char            name[32];
    cot__text       text = cot__text_buffer(name, sizeof name);
    if (cot__view_size(&b->xv) == 0) { /* no element to point to; a mean of none is 0 / 0 */
        cot__put_fill(b, op == OP_avg_pool && cot__int(b, 0) ? (double)NAN : 0);
        return;
    }
    planes.ndim -= space;
    put_windows(b, &g);
    int inside = cot__open_loops(b->w, COT__BASE, 'i', &planes, COT__ALL_AXES, &at, &room);
    cot__put_indent(b->w, inside);
    cot__putf(&text, "cot_%s", cot__op_of(op)->name);
    cot__put_typed_call(b, name, b->xv.dtype);
    cot__put(cot__to(b), "&g_0, ");
    if (op == OP_avg_pool || op == OP_avg_unpool) cot__put(cot__to(b), cot__int(b, 0) ? "true, " : "false, ");
    put_read(b, 0, space, &at);
    if (chosen) put_read(b, 1, space, &at);
    if (op == OP_max_unpool) cot__put(cot__to(b), is_by_two(&g) ? "true, " : "false, ");
    cot__put_address(b, b->z, &at);
    if (op == OP_max_pool) cot__put(cot__to(b), ", "), cot__put_address(b, b->z + 1, &at);
    cot__put(cot__to(b), ");\n");
    cot__close_loops(b->w, COT__BASE, inside);
}
