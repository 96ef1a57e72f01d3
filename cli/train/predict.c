/* predict.c: cotangent predict: what a trained model says of new data. Digits of pictures, classes
 * of a graph's nodes, or how well it knows a text. */
#include "train/use.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "models/gcn.h"
#include "models/mnist.h"
#include "trace/json/json.h"
#include "train/gcn_shown.h"
#include "train/gpt_text.h"
#include "train/saved.h"

/* Classes and their probabilities, or losses. */
typedef struct predictions {
    int64_t n;
    int64_t *class; /* NULL: there are losses alone */
    double *number;
} predictions;

static bool make_room(predictions *a, int64_t n, bool classes, failure *f) {
    a->n      = n;
    a->class  = classes ? malloc((size_t)(n + 1) * sizeof *a->class) : NULL;
    a->number = malloc((size_t)(n + 1) * sizeof *a->number);
    return (a->number && (a->class || !classes)) || failure_memory(f);
}

/* The likeliest class of each row of logits (n, classes), from prediction `at` on. */
static void classify(predictions *a, int64_t at, int64_t n, cot_var logits) {
    cot_read_as(cot_argmax(logits, COT_AXES(1)), COT_I64, a->class + at, n);
    cot_read_as(cot_max(cot_softmax(logits, 1), COT_AXES(1)), COT_F64, a->number + at, n);
}

/* ---- digits ---------------------------------------------------------------------------------- */

static bool has_integers(const cot_file *in) {
    cot_dtype d = cot_file_dtype(in, 0);
    return d == COT_I64 || d == COT_I32 || d == COT_U8 || d == COT_BOOL;
}

/* Bytes were divided by 255, so all numbers are from 0 to 1. */
static bool are_pixels(const float *pixels, int64_t size, const char *path, failure *f) {
    char number[32];
    for (int64_t k = 0; k < size; k++)
        if (!(pixels[k] >= 0 && pixels[k] <= 1))
            return failure_set(f, EXIT_RUN, "file",
                               "[predict] pixel %lld of picture %lld in %.600s is %s; numbers are from 0 to 1, "
                               "integers from 0 to 255",
                               (long long)(k % MNIST_PIXELS), (long long)(k / MNIST_PIXELS), path,
                               cot__shortest_float(pixels[k], number));
    return true;
}

static bool predict_digits(saved *s, predictions *a, const char *path, failure *f) {
    enum { AT_ONCE = 250 };
    cot_file *in    = cot_file_open(path, NULL);
    cot_shape shape = cot_file_shape(in, 0);
    int64_t   size = cot_file_size(in, 0), n = size / MNIST_PIXELS;
    float    *pixels = NULL;
    bool      fine   = true;
    if (!in || cot_file_status(in) == COT_MEMORY)
        fine = failure_memory(f);
    else if (cot_file_status(in))
        fine = failure_set(f, EXIT_RUN, "file", "[predict] %.900s", cot_file_message(in));
    else if (cot_file_count(in) != 1 || shape.ndim < 2 || shape.dim[shape.ndim - 1] != MNIST_SIDE ||
             shape.dim[shape.ndim - 2] != MNIST_SIDE || n == 0)
        fine = failure_set(
            f, EXIT_RUN, "file",
            "[predict] %.600s holds no pictures of 28 x 28 pixels; mnist takes an IDX or .npy file of them", path);
    if (fine) fine = (pixels = malloc((size_t)size * sizeof *pixels)) != NULL || failure_memory(f);
    if (fine && cot_file_read(in, 0, COT_F32, pixels))
        fine = failure_set(f, EXIT_RUN, "file", "[predict] %.900s", cot_file_message(in));
    /* bytes are 0 … 255, floats 0 … 1 */
    if (fine && has_integers(in))
        for (int64_t k = 0; k < size; k++) pixels[k] /= 255;
    cot_file_close(in);
    fine = fine && are_pixels(pixels, size, path, f);
    cot_var one = cot_full(s->t, COT_F32, COT_SHAPE(1, 1, MNIST_SIDE, MNIST_SIDE), 0);
    fine        = fine && saved_load(s, mnist_net, one, f) && make_room(a, n, true, f);
    for (int64_t k = 0; fine && k < n; k += AT_ONCE) {
        int64_t  rows = n - k < AT_ONCE ? n - k : AT_ONCE;
        cot_mark mark = cot_tape_mark(s->t);
        classify(a, k, rows,
                 mnist_net(s->p, cot_data(s->t, COT_F32, COT_SHAPE(rows, 1, MNIST_SIDE, MNIST_SIDE),
                                          pixels + k * MNIST_PIXELS)));
        fine = saved_fine(s, f);
        cot_tape_rewind(s->t, mark);
    }
    free(pixels);
    return fine;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static bool predict_nodes(saved *s, predictions *a, const char *path, failure *f) {
    const char *width = cot_file_text(s->file, "width");
    graph       g     = {0};
    gcn         net   = {.g = &g, .hidden = width ? strtoll(width, NULL, 10) : 16};
    bool        fine  = gcn_read_graph(&g, path, f);
    if (fine && net.hidden < 1)
        fine = failure_set(f, EXIT_RUN, "file", "%.600s has a width of %lld; it is positive", s->path,
                           (long long)net.hidden);
    if (fine) {
        gcn_open(&net, s->t);
        cot_params_set_user(s->p, &net);
        fine = saved_load(s, gcn_net, net.features.values, f) && make_room(a, g.nodes, true, f);
    }
    if (fine) classify(a, 0, g.nodes, gcn_net(s->p, net.features.values));
    graph_free(&g);
    return fine && saved_fine(s, f);
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* The loss of each token but the first, read in windows of the context. */
static bool predict_tokens(saved *s, predictions *a, const int64_t *ids, failure *f) {
    int64_t v = s->net.vocabulary;
    for (int64_t k = 0; k < a->n; k += s->net.context) {
        int64_t  rows = a->n - k < s->net.context ? a->n - k : s->net.context;
        cot_mark mark = cot_tape_mark(s->t);
        cot_var  x    = cot_data(s->t, COT_I64, COT_SHAPE(1, rows), ids + k);
        cot_var  next = cot_data(s->t, COT_I64, COT_SHAPE(rows, 1), ids + k + 1);
        cot_var  p    = cot_log_softmax(cot_reshape(gpt_net(s->p, x), COT_SHAPE(rows, v)), 1);
        cot_read_as(cot_neg(cot_take_along_axis(p, next, 1)), COT_F64, a->number + k, rows);
        if (!saved_fine(s, f)) return false;
        cot_tape_rewind(s->t, mark);
    }
    return true;
}

static bool predict_text(saved *s, predictions *a, const char *path, failure *f) {
    size_t bytes;
    if (!saved_gpt(s, f)) return false;
    if (!s->k)
        return failure_set(f, EXIT_RUN, "file",
                           "%.600s has no characters, nor are vocab.json and merges.txt beside it; a "
                           "text cannot become tokens",
                           s->path);
    char *text = gpt_read(path, &bytes, f);
    if (!text) return false;
    int64_t n, *ids = gpt_encode(s->k, text, bytes, &n, f);
    bool    fine = ids != NULL;
    free(text);
    if (fine && n < 2)
        fine =
            failure_set(f, EXIT_RUN, "file", "[predict] %.600s has %lld tokens; a loss needs two", path, (long long)n);
    for (int64_t k = 0; fine && k < n; k++)
        if (ids[k] >= s->net.vocabulary)
            fine = failure_set(f, EXIT_RUN, "file", "[predict] token %lld is out of range; the model has %lld",
                               (long long)ids[k], (long long)s->net.vocabulary);
    fine = fine && make_room(a, n - 1, false, f) && predict_tokens(s, a, ids, f);
    free(ids);
    return fine;
}

/* Is every number one? What a model of broken weights says of its input is no answer. */
static bool all_numbers(const saved *s, const predictions *a, failure *f) {
    for (int64_t k = 0; k < a->n; k++)
        if (!isfinite(a->number[k]))
            return failure_set(f, EXIT_DISAGREES, "loss",
                               "[predict] the %s %lld is %s; %.600s or the input holds what is no finite number",
                               strcmp(s->model, "gpt") == 0   ? "loss of token"
                               : strcmp(s->model, "gcn") == 0 ? "probability of node"
                                                              : "probability of picture",
                               (long long)k, isnan(a->number[k]) ? "nan" : "infinite", s->path);
    return true;
}

/* ---- the command ----------------------------------------------------------------------------- */

static double mean(const predictions *a) {
    double sum = 0;
    for (int64_t k = 0; k < a->n; k++) sum += a->number[k];
    return sum / (double)a->n;
}

static void as_json(const saved *s, const predictions *a, FILE *out) {
    cot__json j = cot__json_to(out);
    cot__json_open(&j, '{');
    cot__json_key(&j, "model");
    cot__json_string(&j, s->model);
    if (!a->class) {
        cot__json_key(&j, "loss");
        cot__json_number(&j, mean(a));
        cot__json_key(&j, "perplexity");
        cot__json_number(&j, exp(mean(a)));
    } else {
        cot__json_key(&j, "classes");
        cot__json_open(&j, '[');
        for (int64_t k = 0; k < a->n; k++) cot__json_integer(&j, a->class[k]);
        cot__json_close(&j, ']');
    }
    cot__json_key(&j, a->class ? "probabilities" : "losses");
    cot__json_open(&j, '[');
    for (int64_t k = 0; k < a->n; k++) cot__json_number(&j, a->number[k]);
    cot__json_close(&j, ']');
    cot__json_close(&j, '}');
    fputs("\n", out);
}

static void as_text(const saved *s, const predictions *a, FILE *out) {
    if (!a->class) {
        cot__write(out, "%lld tokens, loss %.4f a token, perplexity %.4g\n", (long long)a->n, mean(a), exp(mean(a)));
        return;
    }
    fprintf(out, "%s   class   probability\n", strcmp(s->model, "gcn") == 0 ? "   node" : "picture");
    for (int64_t k = 0; k < a->n; k++)
        cot__write(out, "%7lld %7lld %13.4f\n", (long long)k, (long long)a->class[k], a -> number[k]);
}

int run_predict(const options *o, FILE *out, look how, failure *f) {
    saved       s = {0};
    predictions a = {0};
    (void)how;
    if (o->positional_count != 2) {
        failure_usage(f,
                      "predict takes the folder of a model and its input: pictures for mnist, a graph for gcn, a text "
                      "for gpt");
        return EXIT_USAGE;
    }
    const char *input = o->positionals[1];
    bool        fine  = saved_open(&s, o->positionals[0], f);
    if (fine && strcmp(s.model, "mnist") == 0)
        fine = predict_digits(&s, &a, input, f);
    else if (fine && strcmp(s.model, "gcn") == 0)
        fine = predict_nodes(&s, &a, input, f);
    else if (fine && strcmp(s.model, "gpt") == 0)
        fine = predict_text(&s, &a, input, f);
    else if (fine)
        fine = failure_set(f, EXIT_RUN, "file", "%.600s is a model of %.60s; predict takes gcn, mnist or gpt", s.path,
                           s.model);
    fine = fine && all_numbers(&s, &a, f);
    if (fine && o->json)
        as_json(&s, &a, out);
    else if (fine)
        as_text(&s, &a, out);
    free(a.class);
    free(a.number);
    saved_close(&s);
    return f->status;
}
