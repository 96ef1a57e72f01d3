/* gcn_shown.c: tables and pictures of a trained graph network. */
#include "train/gcn_shown.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "draw/bars.h"
#include "draw/chart.h"
#include "draw/pictures.h"
#include "train/pictures.h"

/* ---- by class ------------------------------------------------------------------------------- */

/* Test nodes of a class, and how many of them are right. */
static void count_class(const gcn_task *a, int64_t class, int64_t *n, int64_t *right) {
    *n = *right = 0;
    for (int64_t k = 0; k < a->g.test.n; k++) {
        int64_t node = a->g.test.node[k];
        if (a->g.label[node] != class) continue;
        (*n)++;
        *right += a->guess[node] == class;
    }
}

static void show_classes(const gcn_task *a, FILE *out) {
    fprintf(out, "\nclass   nodes   right\n");
    for (int64_t c = 0; c < a->g.classes; c++) {
        int64_t n, right;
        count_class(a, c, &n, &right);
        if (n) cot__write(out, "%5lld %7lld %6.1f %%\n", (long long)c, (long long)n, 100.0 * (double)right / (double)n);
        else fprintf(out, "%5lld       0       -\n", (long long)c);
    }
}

/* ---- pictures ------------------------------------------------------------------------------- */

static void draw_curves(training *r, FILE *out) {
    gcn_task    *a = r->model;
    double       epoch[GCN_EPOCHS];
    int64_t      n = r->step < GCN_EPOCHS ? r->step : GCN_EPOCHS;
    chart_series lines[2] = {{.name = "training", .n = n, .x = epoch, .y = a->curve[0]},
                             {.name = "validation", .n = n, .x = epoch, .y = a->curve[1]}};
    chart        c = {.title = "Loss of a graph network", .x_label = "epoch", .y_label = "loss", .n = 2,
                      .series = lines};
    for (int64_t k = 0; k < n; k++) epoch[k] = (double)k + 1;
    chart_measure(&c);
    chart_svg(&c, out, "The losses of the training and the validation nodes over the epochs.");
}

/* The two directions in which hidden values spread most: (nodes, 2). */
static bool embed(training *r, double *xy) {
    gcn_task *a = r->model;
    cot_var   h = gcn_hidden(r->p, a->net.features.values), w, v;
    h = cot_sub(h, cot_mean(h, COT_KEEP(0)));
    cot_eigh(cot_matmul(cot_transpose(h), h), &w, &v);
    int64_t width = a->net.hidden;
    cot_var two = cot_slice(v, 1, width >= 2 ? width - 2 : 0, COT_END, 1);
    return cot_read(cot_matmul(h, two), xy, a->g.nodes * 2) == COT_OK;
}

static void draw_nodes(training *r, FILE *out) {
    gcn_task   *a = r->model;
    int64_t     n = a->g.nodes;
    double     *xy = malloc((size_t)n * 4 * sizeof *xy), *x = xy + 2 * n, *y = xy + 3 * n;
    int        *classes = malloc((size_t)n * sizeof *classes);
    char       *text = malloc((size_t)a->g.classes * 16);
    const char **names = malloc((size_t)a->g.classes * sizeof *names);
    if (xy && classes && text && names && embed(r, xy)) {
        for (int64_t i = 0; i < n; i++) {
            y[i] = xy[2 * i];
            x[i] = xy[2 * i + 1];
            classes[i] = (int)a->g.label[i];
        }
        for (int64_t c = 0; c < a->g.classes; c++) {
            snprintf(text + 16 * c, 16, "class %d", (int)c);
            names[c] = text + 16 * c;
        }
        picture_cloud all = {.title = "Hidden values of the nodes, by class",
                             .description = "Each node is a point; the axes are the two directions of greatest spread.",
                             .n = n, .x = x, .y = y, .classes = classes,
                             .class_count = (int)a->g.classes, .names = names};
        picture_scatter(out, &all);
    }
    free(xy);
    free(classes);
    free(text);
    free(names);
}

/* ---- one node ------------------------------------------------------------------------------- */

enum { PATH = 32, SHOWN = 10 };

/* The gradient of a logit by the entries of X, at `part` of them, times so much: (entries). */
static bool weigh(training *r, int64_t node, int64_t class, double part, double factor, double *sum, double *logit) {
    gcn_task *a = r->model;
    int64_t   n = cot_size(a->net.features.values);
    cot_mark  mark = cot_tape_mark(r->t);
    cot_var   x = cot_leaf(cot_mul(part, a->net.features.values)), g;
    cot_var   y = cot_index(cot_index(gcn_net(r->p, x), 0, node), 0, class);
    cot_grad_of(y, 1, &x, &g);
    double *each = malloc((size_t)(n + 1) * sizeof *each), *of = malloc((size_t)(n + 1) * sizeof *of);
    bool    fine = each && of && cot_read(g, each, n) == COT_OK && cot_read(a->net.features.values, of, n) == COT_OK;
    for (int64_t k = 0; fine && k < n; k++) sum[k] += factor * each[k] * of[k];
    if (logit) *logit = cot_value(y);
    free(each);
    free(of);
    cot_tape_rewind(r->t, mark);
    return fine;
}

typedef struct part {
    int64_t of;
    double  plain, path; /* gradient times input, and along the path from no words */
} part;

static int larger_first(const void *a, const void *b) {
    double x = fabs(((const part *)a)->path), y = fabs(((const part *)b)->path);
    return (x < y) - (x > y);
}

/* What speaks for the class that a node is taken for: by words, and by the nodes that have them,
 * the largest first. */
typedef struct explanation {
    int64_t class;
    double logit, none, all; /* the logit, without any words, and what the path explains of it */
    part  *words, *nodes;
} explanation;

static void explanation_free(explanation *e) {
    free(e->words);
    free(e->nodes);
}

/* Sums over words and over nodes of what each entry of X adds to the logit. */
static bool explain(training *r, int64_t node, explanation *e, failure *f) {
    gcn_task *a = r->model;
    int64_t   n = cot_size(a->net.features.values);
    double   *plain = calloc((size_t)n + 1, sizeof *plain), *path = calloc((size_t)n + 1, sizeof *path);
    double   *at = malloc((size_t)n * 2 * sizeof *at + 8), *unused = calloc((size_t)n + 1, sizeof *unused);
    *e = (explanation){.words = calloc((size_t)a->g.words, sizeof *e->words),
                       .nodes = calloc((size_t)a->g.nodes, sizeof *e->nodes)};
    bool fine = plain && path && at && unused && e->words && e->nodes;
    if (!fine) failure_memory(f);
    if (fine) {
        cot_mark mark = cot_tape_mark(r->t);
        e->class = cot_value_i64(cot_argmax(cot_index(gcn_net(r->p, a->net.features.values), 0, node), COT_ALL));
        cot_read(cot_csr_entry_rows(a->net.features), at, n);
        cot_read(cot_csr_entry_columns(a->net.features), at + n, n);
        cot_tape_rewind(r->t, mark);
        fine = weigh(r, node, e->class, 0, 0, unused, &e->none) && weigh(r, node, e->class, 1, 1, plain, &e->logit);
        for (int k = 0; fine && k < PATH; k++)
            fine = weigh(r, node, e->class, (k + 0.5) / PATH, 1.0 / PATH, path, NULL);
        if (!fine && train_fine(r, f)) failure_memory(f);
    }
    for (int64_t k = 0; fine && k < n; k++) {
        part *w = &e->words[(int64_t)at[n + k]], *v = &e->nodes[(int64_t)at[k]];
        w->plain += plain[k], w->path += path[k], v->plain += plain[k], v->path += path[k];
        e->all += path[k];
    }
    for (int64_t k = 0; fine && k < a->g.words; k++) e->words[k].of = k;
    for (int64_t k = 0; fine && k < a->g.nodes; k++) e->nodes[k].of = k;
    if (fine) {
        qsort(e->words, (size_t)a->g.words, sizeof *e->words, larger_first);
        qsort(e->nodes, (size_t)a->g.nodes, sizeof *e->nodes, larger_first);
    }
    free(plain), free(path), free(at), free(unused);
    return fine;
}

static void print_parts(FILE *out, const char *what, int64_t n, const part *parts) {
    fprintf(out, "%8s   gradient x input   integrated\n", what);
    for (int64_t k = 0; k < n && k < SHOWN && parts[k].path != 0; k++)
        cot__write(out, "%8lld   %16.4f   %10.4f\n", (long long)parts[k].of, parts[k].plain, parts[k].path);
}

static bool print_node(training *r, int64_t node, FILE *out, failure *f) {
    gcn_task   *a = r->model;
    explanation e;
    bool        fine = explain(r, node, &e, f);
    if (fine) {
        cot__write(out, "\nNode %lld is taken for class %lld (it is %lld). Its logit %.4f is %.4f more than without "
                "any words,\n"
                "of which the integrated gradients explain %.4f:\n",
                (long long)node, (long long)e.class, (long long)a->g.label[node], e.logit, e.logit - e.none, e.all);
        print_parts(out, "word", a->g.words, e.words);
        print_parts(out, "node", a->g.nodes, e.nodes);
    }
    explanation_free(&e);
    return fine;
}

/* ---- as JSON -------------------------------------------------------------------------------- */

static void number(cot__json *j, const char *key, double value) {
    cot__json_key(j, key);
    cot__json_number(j, value);
}

static void whole(cot__json *j, const char *key, int64_t value) {
    cot__json_key(j, key);
    cot__json_integer(j, value);
}

static void parts_json(cot__json *j, const char *key, const char *what, int64_t n, const part *parts) {
    cot__json_key(j, key);
    cot__json_open(j, '[');
    for (int64_t k = 0; k < n && k < SHOWN && parts[k].path != 0; k++) {
        cot__json_open(j, '{');
        whole(j, what, parts[k].of);
        number(j, "gradient_times_input", parts[k].plain);
        number(j, "integrated", parts[k].path);
        cot__json_close(j, '}');
    }
    cot__json_close(j, ']');
}

static bool node_json(training *r, int64_t node, cot__json *j, failure *f) {
    gcn_task   *a = r->model;
    explanation e;
    bool        fine = explain(r, node, &e, f);
    if (fine) {
        cot__json_key(j, "node");
        cot__json_open(j, '{');
        whole(j, "node", node);
        whole(j, "class", e.class);
        whole(j, "label", a->g.label[node]);
        number(j, "logit", e.logit);
        number(j, "without_words", e.none);
        number(j, "explained", e.all);
        parts_json(j, "words", "word", a->g.words, e.words);
        parts_json(j, "nodes", "node", a->g.nodes, e.nodes);
        cot__json_close(j, '}');
    }
    explanation_free(&e);
    return fine;
}

bool gcn_show_json(training *r, cot__json *j, failure *f) {
    gcn_task *a = r->model;
    cot__json_key(j, "class_accuracy");
    cot__json_open(j, '[');
    for (int64_t c = 0; c < a->g.classes; c++) {
        int64_t n, right;
        count_class(a, c, &n, &right);
        cot__json_number(j, n ? (double)right / (double)n : NAN);
    }
    cot__json_close(j, ']');
    cot_mark mark = cot_tape_mark(r->t);
    bool     fine = !r->o->train.has_node || node_json(r, r->o->train.node, j, f);
    cot_tape_rewind(r->t, mark);
    return fine;
}

/* ---- for people ----------------------------------------------------------------------------- */

bool gcn_show(training *r, FILE *out, look how, failure *f) {
    const train_settings *s = &r->o->train;
    gcn_task             *a = r->model;
    (void)how;
    cot_mark mark = cot_tape_mark(r->t);
    cot_no_grad_open(r->t);
    show_classes(a, out);
    bool fine = true;
    if (s->pictures)
        fine = picture_file(r, s->pictures, "curves.svg", draw_curves, out, f) &&
               (a->net.hidden < 2 || picture_file(r, s->pictures, "nodes.svg", draw_nodes, out, f));
    cot_no_grad_close(r->t);
    if (fine && s->has_node) fine = print_node(r, s->node, out, f);
    cot_tape_rewind(r->t, mark);
    return fine;
}
