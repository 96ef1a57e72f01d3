/* colour_star.c: star colouring of the graph of a symmetric pattern, first fit.
 *
 * For each colour c among its neighbours, vertex w keeps how many neighbours have c, and whether c
 * is barred at w. Colour c is barred at w if one of these neighbours, x, has another neighbour with
 * the colour of w. A vertex v may not take
 *   the colour of a neighbour;
 *   through a neighbour w, a colour that is barred at w: v, w, x and the other neighbour of x
 *       would be a path of two colours;
 *   through a neighbour w, any colour at w if another neighbour of v has the colour of w: that
 *       would be a path of two colours around v.
 * So a vertex costs its degree times the number of colours, also beside a vertex that touches all
 * others: an arrow is no worse than a band. */
#include "diff/sparse/colour.h"

#include <string.h>

typedef struct beside {
    int32_t colour, count;
    /* a neighbour of that colour. With count > 1 the vertex that keeps this is the centre of a
     * star */
    int32_t one;
    bool    barred;
} beside;

typedef struct stars {
    const cot__csr *m;
    /* forbidden[c]: the last vertex to which colour c was forbidden */
    int32_t        *colour, *forbidden;
    /* entries of vertex v begin at m->row_start[v]: at most one for each neighbour */
    beside         *beside;
    int32_t        *kinds;  /* how many entries each vertex has */
} stars;

/* The entry of vertex v for colour c, made if there was none. */
static beside *colour_beside(stars *s, int32_t v, int32_t c) {
    beside *b = s->beside + s->m->row_start[v], *end = b + s->kinds[v];
    for (; b < end; b++)
        if (b->colour == c) return b;
    s->kinds[v]++;
    *b = (beside){c, 0, -1, false};
    return b;
}

static int32_t allowed(stars *s, int32_t v, int32_t colours) {
    for (int64_t e = s->m->row_start[v]; e < s->m->row_start[v + 1]; e++) {
        int32_t w = s->m->col[e];
        if (w == v || s->colour[w] < 0) continue;
        s->forbidden[s->colour[w]] = v;
        bool          alone = colour_beside(s, v, s->colour[w])->count == 1;
        const beside *b = s->beside + s->m->row_start[w], *end = b + s->kinds[w];
        for (; b < end; b++)
            if (b->barred || !alone) s->forbidden[b->colour] = v;
    }
    int32_t c = 0;
    while (c < colours && s->forbidden[c] == v) c++;
    return c;
}

/* Vertex v has got its colour: updates the entries of its neighbours, and bars colours wherever a
 * vertex now has two neighbours of one colour. */
static void spread(stars *s, int32_t v) {
    int32_t c = s->colour[v];
    for (int64_t e = s->m->row_start[v]; e < s->m->row_start[v + 1]; e++) {
        int32_t w = s->m->col[e];
        if (w == v) continue;
        beside *at_w = colour_beside(s, w, c);
        at_w->count++;
        if (s->colour[w] >= 0) {
            beside *at_v = colour_beside(s, v, s->colour[w]);
            /* v is a centre: it has another neighbour with the colour of w, so v's colour is barred
             * at w */
            if (at_v->count > 1) at_w->barred = true;
            if (at_w->count > 1) {
                /* w is a centre: the colour of w is barred at v, and at the first neighbour of w
                 * with v's colour */
                at_v->barred = true;
                colour_beside(s, at_w->one, s->colour[w])->barred = true;
            }
        }
        if (at_w->count == 1) at_w->one = v;
    }
}

static int32_t star(stars *s) {
    int32_t colours = 0;
    for (int32_t v = 0; v < s->m->rows; v++) {
        int32_t c = allowed(s, v, colours);
        s->colour[v] = c;
        colours = c == colours ? c + 1 : colours;
        spread(s, v);
    }
    return colours;
}

int32_t cot__colour_star(const cot_allocator *al, const cot__csr *m, int32_t *colour) {
    size_t   n = (size_t)m->rows;
    stars    s = {.m = m, .colour = colour};
    int32_t *other = cot__alloc(al, 3 * n * sizeof *other), colours = -1;
    s.beside = cot__alloc(al, (size_t)m->nnz * sizeof *s.beside);
    if (other && s.beside) {
        s.forbidden = other + n;
        s.kinds = s.forbidden + n;
        memset(s.forbidden, 0xff, n * sizeof *s.forbidden);
        memset(s.kinds, 0, n * sizeof *s.kinds);
        for (size_t v = 0; v < n; v++) colour[v] = -1;
        colours = star(&s);
        if (cot__fullest_row(m) <
            colours) {
                /* Columns that share no row are a star colouring too, and on grids
                 * cot__colour_columns may find fewer colours. */
            int32_t by_columns = cot__colour_columns(al, m, other);
            if (by_columns >= 0 && by_columns < colours) {
                memcpy(colour, other, n * sizeof *colour);
                colours = by_columns;
            }
        }
    }
    cot__free(al, other, 3 * n * sizeof *other);
    cot__free(al, s.beside, (size_t)m->nnz * sizeof *s.beside);
    return colours;
}
