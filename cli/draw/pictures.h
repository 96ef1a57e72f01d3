/* pictures.h: grey images in a grid, and points coloured by class, as SVG. */
#ifndef COT_CLI_PICTURES_H
#define COT_CLI_PICTURES_H

#include "draw/svg.h"

/* n images of height × width pixels, 0 (black) to 1 (white), one after the other, row by row. */
typedef struct picture_grid {
    const char        *title, *description;
    int                n, columns, height, width;
    const float       *pixels;   /* (n, height, width) */
    const char *const *captions; /* one below each, such as "4 → 9"; NULL: none */
} picture_grid;
void picture_images(FILE *out, const picture_grid *g);

/* n points (x, y), of class 0 to classes - 1; `names` has one for each class. Others are left out.
 * False when memory is short. */
typedef struct picture_cloud {
    const char        *title, *description;
    int64_t            n;
    const double      *x, *y;
    const int         *classes;
    int                class_count;
    const char *const *names;
} picture_cloud;
bool picture_scatter(FILE *out, const picture_cloud *c);

#endif
