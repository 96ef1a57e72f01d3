/* draw.c: peak against time, a picture for each model and a curve for each series, by the charts of
 * the command. */
#include "draw/chart.h"
#include "memory/one.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SERIES = 8, MOST_POINTS = 16 };

typedef struct curve { char name[64]; int64_t n; double x[MOST_POINTS], y[MOST_POINTS]; } curve;

static curve *curve_of(curve *all, int *n, const char *name) {
    for (int k = 0; k < *n; k++)
        if (strcmp(all[k].name, name) == 0) return &all[k];
    if (*n == MOST_SERIES) return NULL;
    all[*n] = (curve){.n = 0};
    snprintf(all[*n].name, sizeof all[*n].name, "%s", name);
    return &all[(*n)++];
}

/* The curves of one model. */
static int read_curves(FILE *table, const char *of, curve *all) {
    char   name[32], series[64], line[200];
    double bytes, seconds;
    int    n = 0;
    rewind(table);
    while (fgets(line, sizeof line, table)) {
        if (sscanf(line, "%31[^\t]\t%63[^\t]\t%lf\t%lf", name, series, &bytes, &seconds) != 4) continue;
        curve *c = strcmp(name, of) == 0 ? curve_of(all, &n, series) : NULL;
        if (!c || c->n == MOST_POINTS) continue;
        c->x[c->n] = bytes / (1 << 20);
        c->y[c->n++] = seconds;
    }
    return n;
}

static int draw_model(const model *m, const curve *all, int n, const char *folder) {
    chart_series series[MOST_SERIES];
    char         path[1000], title[200];
    for (int k = 0; k < n; k++)
        series[k] = (chart_series){.name = all[k].name, .n = all[k].n, .x = all[k].x, .y = all[k].y};
    snprintf(path, sizeof path, "%s/memory-%s.svg", folder, m->name);
    snprintf(title, sizeof title, "Peak against time: %s", m->about);
    chart c = {.title = title, .x_label = "peak of the process, MiB", .y_label = "seconds of a step", .n = n,
               .series = series};
    chart_measure(&c);
    c.x.low = c.y.low = 0;
    FILE *out = fopen(path, "w");
    if (!out) return perror(path), 1;
    chart_svg(&c, out, "Each point is a way to train the same net: how much memory a step takes, and how long.");
    return fclose(out) != 0;
}

int draw_table(const char *path, const char *folder) {
    static curve all[MOST_SERIES];
    FILE        *table = fopen(path, "r");
    int          wrong = 0;
    if (!table) return perror(path), 1;
    for (int k = 0; k < MODELS; k++) {
        int n = read_curves(table, models[k].name, all);
        if (n) wrong |= draw_model(&models[k], all, n, folder);
    }
    fclose(table);
    return wrong;
}
