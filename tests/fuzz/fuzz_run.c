/* fuzz_run.c: any bytes as the file of a run. It is read or refused with a sentence, and what is
 * read is drawn in both forms: numbers of any size make finite places. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/chart.h"
#include "watch/run_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void broken(const char *what) {
    fprintf(stderr, "fuzz_run: %s\n", what);
    abort();
}

static void draw(const run_file *r, bool logarithms) {
    chart_series series[8];
    int          n    = r->n < 8 ? r->n : 8;
    char        *text = NULL;
    size_t       size = 0;
    FILE        *out  = open_memstream(&text, &size);
    if (!out) return;
    for (int k = 0; k < n; k++)
        series[k] = (chart_series){.name = r->series[k].name, .n = r->series[k].n, .x = r->series[k].step,
                                   .y = r->series[k].value, .smooth = k % 2 ? r->series[k].seconds : NULL,
                                   .points = k % 3 == 1};
    chart c = {.title = "fuzz", .x_label = "step", .y_label = "", .log_y = logarithms, .n = n, .series = series};
    chart_measure(&c);
    chart_text(&c, out, 60, 16, logarithms);
    chart_svg(&c, out, "fuzz");
    fclose(out);
    if (size == 0 || strlen(text) != size) broken("a drawing that ends early");
    const char *path = strstr(text, "<svg");
    if (path && (strstr(path, "=\"nan") || strstr(path, "=\"inf") || strstr(path, "=\"-nan")))
        broken("a place that is no number");
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (!text) return 0;
    if (size) memcpy(text, data, size);
    text[size] = 0;
    run_file r;
    failure  f    = {0};
    bool     fine = run_file_parse(&r, "fuzz", text, size, &f);
    if (fine != (f.status == EXIT_FINE)) broken("a failure that is none, or none that is one");
    if (!fine && !f.message[0]) broken("a failure without a message");
    if (fine) draw(&r, size % 2);
    run_file_free(&r);
    free(text);
    return 0;
}
