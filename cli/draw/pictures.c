/* pictures.c: images and clouds of points. An image is paths, one for each of 32 greys: runs of
 * pixels of one grey are strokes of one unit's width, so that no format of pixels is needed and
 * edges stay sharp at any size. */
#include "draw/pictures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

enum { GREYS = 32, CELL = 72, GAP = 14, CAPTION = 22, TOP = 44 };

static int grey_of(float v) { return v > 0 ? v < 1 ? (int)(v * (GREYS - 1) + 0.5f) : GREYS - 1 : 0; }

static void image(FILE *out, const picture_grid *g, const float *pixels, double left, double top, double unit) {
    cot__write(out, "<g transform=\"translate(%.1f %.1f) scale(%.4f)\" fill=\"none\" shape-rendering=\"crispEdges\">",
               left, top, unit);
    fprintf(out, "<rect width=\"%d\" height=\"%d\" fill=\"#000\"/>", g->width, g->height);
    for (int grey = 1; grey < GREYS; grey++) {
        int  level = (255 * grey + (GREYS - 1) / 2) / (GREYS - 1);
        bool any   = false;
        for (int i = 0; i < g->height; i++) {
            for (int j = 0, from; j < g->width; j++) {
                const float *row = pixels + (size_t)i * (size_t)g->width;
                if (grey_of(row[j]) != grey) continue;
                for (from = j; j + 1 < g->width && grey_of(row[j + 1]) == grey;) j++;
                if (!any) fprintf(out, "<path stroke=\"#%02x%02x%02x\" d=\"", level, level, level);
                fprintf(out, "M%d %d.5h%d", from, i, j - from + 1);
                any = true;
            }
        }
        if (any) fputs("\"/>", out);
    }
    fputs("</g>\n", out);
}

void picture_images(FILE *out, const picture_grid *g) {
    int    columns = g->columns < 1 ? 1 : g->columns, rows = (g->n + columns - 1) / columns;
    double unit = (double)CELL / (g->width > g->height ? g->width : g->height), high = unit * g->height;
    int    step = (int)ceil(high) + GAP + (g->captions ? CAPTION : 0), wide = columns * (CELL + GAP) + GAP;
    svg_open(out, wide > 360 ? wide : 360, TOP + rows * step, g->title, strlen(g->title), g->description);
    for (int k = 0; k < g->n; k++) {
        double left = GAP + k % columns * (CELL + GAP), top = TOP + (double)(k / columns) * step;
        image(out, g, g->pixels + (size_t)k * (size_t)g->height * (size_t)g->width, left, top, unit);
        cot__write(out, "<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", left, top,
                   unit * g->width, high);
        if (g->captions)
            svg_label(out, left + unit * g->width / 2, top + high + 16, "text-anchor=\"middle\"", g->captions[k]);
    }
    svg_close(out);
}

bool picture_scatter(FILE *out, const picture_cloud *c) {
    double *x = malloc(2 * ((size_t)c->n + 1) * sizeof *x);
    char class[32], colour[8];
    bool fine = x != NULL;
    if (!x) return false;
    double *y = x + c->n;
    svg_open(out, 800, 640, c->title, strlen(c->title), c->description);
    double    top = svg_legend(out, 60, 700, c->class_count, c->names);
    svg_panel p   = {.out    = out,
                     .left   = 60,
                     .top    = top,
                     .width  = 720,
                     .height = 600 - top,
                     .x      = svg_range_of(c->n, c->x),
                     .y      = svg_range_of(c->n, c->y)};
    svg_axes(&p, "", "", true);
    for (int k = 0; fine && k < c->class_count; k++) {
        int64_t m = 0;
        for (int64_t i = 0; i < c->n; i++)
            if (c->classes[i] == k) x[m] = c->x[i], y[m++] = c->y[i];
        snprintf(class, sizeof class, "dots %s", svg_colour(k, colour));
        fine = svg_points(&p, class, m, x, y);
    }
    svg_close(out);
    free(x);
    return fine;
}
