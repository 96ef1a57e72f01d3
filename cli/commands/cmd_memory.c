/* cmd_memory.c: cotangent memory: what a step would take, of an expression or of a model of any
 * size, from shapes alone. */
#include "commands/commands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "draw/chart.h"
#include "io/memory_file.h"
#include "problem/limit.h"
#include "problem/expression.h"
#include "problem/problem.h"
#include "train/shapes.h"

/* ---- models ---------------------------------------------------------------------------------- */

enum { GPT_2_TOKENS = 50257 };

typedef struct answer {
    cot__forecast f;
    int64_t       parameters; /* numbers; 0: it is an expression */
    int64_t       vocabulary; /* of gpt; else 0 */
    /* of gpt: its blocks in so many checkpoints take about `cut`; 0: not known */
    int64_t       segments;
    double        cut;
    double        limit;      /* 0: none */
    cot_dtype     precision;  /* of a model: what its layers compute in */
    bool          all_selected; /* of an expression: by masks, though fewer may be */
} answer;

/* The most that is in use at once. */
static double most_of(const answer *a) { return a->f.whole > 0 ? a->f.whole : a->f.peak; }

static bool configure(shapes *m, const options *o, failure *f) {
    const train_settings *s = &o->train;
    m->is_gpt = strcmp(s->model, "gpt") == 0;
    m->batch = s->batch ? s->batch : m->is_gpt ? 8 : 64;
    m->net = (gpt){.vocabulary = s->vocabulary ? s->vocabulary : GPT_2_TOKENS,
                   .context = s->context ? s->context : 128,
                   .layers = s->layers ? s->layers : 4,
                   .width = s->width ? s->width : 128};
    m->net.heads = s->heads ? s->heads : m->net.width % 64 == 0 && m->net.width >= 256 ? m->net.width / 64 : 4;
    m->precision = COT_F32;
    for (int d = COT_BF16; s->precision && d <= COT_F16; d++)
        if (strcmp(s->precision, cot_dtype_name((cot_dtype)d)) == 0) m->precision = (cot_dtype)d;
    if (s->precision && m->precision == COT_F32 && strcmp(s->precision, "f32") != 0)
        return failure_usage(f, "--precision is \"%s\"; it is bf16, f16 or f32", s->precision);
    if (!m->is_gpt && strcmp(s->model, "mnist") != 0)
        return failure_usage(f, "--model is \"%.60s\"; memory knows the shapes of gpt and mnist", s->model);
    if (!m->is_gpt && (s->layers || s->heads || s->width || s->context || s->vocabulary))
        return failure_usage(f, "--layers, --heads, --width, --context and --vocabulary are for gpt; mnist has one "
                                "shape");
    if (m->net.width % m->net.heads == 0) return true;
    return failure_usage(f, "a width of %lld is not divided by %lld heads; each has as many numbers as the others",
                         (long long)m->net.width, (long long)m->net.heads);
}

/* Blocks in about √layers checkpoints: what lies between them stays, and one of them at a time is
 * whole; the others have their nodes. A block takes the difference of two forecasts. All is counted
 * as a limit counts. */
static bool forecast_segments(const shapes *m, answer *a, failure *f) {
    answer one = {0}, two = {0};
    shapes small = *m;
    small.net.layers = 1;
    bool fine = shapes_forecast(&small, true, &one.f, &one.parameters, f);
    small.net.layers = 2;
    fine = fine && shapes_forecast(&small, true, &two.f, &two.parameters, f);
    if (fine && one.f.whole > 0 && two.f.whole > one.f.whole) {
        double block = two.f.whole - one.f.whole, rest = one.f.whole - block, width = m->precision == COT_F32 ? 4 : 2;
        double between = (double)m->batch * (double)m->net.context * (double)m->net.width * width;
        a->segments = (int64_t)ceil(sqrt((double)m->net.layers));
        double at_once = ceil((double)m->net.layers / (double)a->segments), others = (double)m->net.layers - at_once;
        a->cut = rest + (double)a->segments * between + at_once * block +
                 others * cot__forecast_lists(&two.f, &one.f);
    }
    cot__forecast_free(&one.f);
    cot__forecast_free(&two.f);
    return fine;
}

/* Enough as it is, or by computing values again; checkpoints, which do that by a fixed plan, need
 * no less. A limit means what the library means by it: bytes that the tape has in use above leaves,
 * gradients and the states of optimisers, its own lists included. */
static bool is_enough(const answer *a) { return a->limit == 0 || a->f.least <= a->limit; }

/* ---- output ---------------------------------------------------------------------------------- */

static void as_svg(const void *x, FILE *to, failure *f) {
    const answer *a = x;
    int64_t       n = a->f.points;
    double       *place = malloc((size_t)(2 * n + 2) * sizeof *place), *y = place + n, unit = 1024;
    const char   *names[] = {"KiB", "MiB", "GiB", "TiB"};
    int           k = 0;
    char          text[300], label[40], peak[32];
    if (!place) {
        failure_memory(f);
        return;
    }
    while (k < 3 && a->f.peak / unit >= 1024) unit *= 1024, k++;
    for (int64_t i = 0; i < n; i++) place[i] = a->f.place ? a->f.place[i] : (double)i, y[i] = a->f.bytes[i] / unit;
    chart_series series[2] = {{.name = "bytes on the tape", .n = n, .x = place, .y = y}};
    double       ends[2] = {0, (double)(a->f.steps - 1)}, limit[2] = {a->limit / unit, a->limit / unit};
    series[1] = (chart_series){.name = "limit", .n = 2, .x = ends, .y = limit};
    snprintf(label, sizeof label, "%s", names[k]);
    chart c = {.title = "Memory of a step", .x_label = "operations, forward and back", .y_label = label,
               .n = a->limit > 0 ? 2 : 1, .series = series};
    chart_measure(&c);
    snprintf(text, sizeof text, "The bytes on the tape at each of %lld operation%s; the most is %s, %s.",
             (long long)a->f.steps, a->f.steps == 1 ? "" : "s", cot__bytes_text(a->f.peak, peak), a->f.when);
    chart_svg(&c, to, text);
    free(place);
}

/* Why fewer bits may take more memory: copies, where f32 has none. */
static void put_casts(FILE *out, const answer *a) {
    char b[32];
    for (int64_t k = 0; k < a->f.row_count && a->precision != COT_F32; k++)
        if (strcmp(a->f.rows[k].op, "cast") == 0)
            fprintf(out, "%s of the values are casts, which f32 does not have: parameters as the layers read them, in "
                         "%s, and their results as the loss and norms do, in f32\n",
                    cot__bytes_text((double)a->f.rows[k].bytes, b), cot_dtype_name(a->precision));
}

static void put_table(FILE *out, const answer *a, failure *f) {
    char b[32], c[32];
    if (!cot__forecast_table(out, &a->f)) failure_memory(f);
    put_casts(out, a);
    if (a->all_selected)
        fputs("masks count as if they selected everything: how much they do depends on values\n", out);
    if (a->parameters) fprintf(out, "%lld parameter%s", (long long)a->parameters, a->parameters == 1 ? "" : "s");
    if (a->vocabulary) fprintf(out, ", with a vocabulary of %lld tokens", (long long)a->vocabulary);
    if (a->parameters)
        fprintf(out, ": %s, as much for gradients, twice as much for the moments of Adam\n",
                cot__bytes_text(4.0 * (double)a->parameters, b));
    if (a->segments)
        fprintf(out,
                "with its blocks in %lld checkpoints (cot_checkpoint_sequential): about %s, for one forward more\n",
                (long long)a->segments, cot__bytes_text(a->cut, b));
    if (a->limit > 0 && !is_enough(a))
        fprintf(out, "a limit of %s is not enough, as far as shapes tell; %s is\n", cot__bytes_text(a->limit, b),
                cot__bytes_text(a->f.least, c));
    else if (a->limit > 0)
        fprintf(out, "a limit of %s %s\n", cot__bytes_text(a->limit, b),
                most_of(a) <= a->limit ? "is enough as it is" : "is enough, with values computed again");
}

static void put_json(FILE *out, const answer *a) {
    cot__json j = cot__json_to(out);
    cot__json_open(&j, '{');
    cot__forecast_json(&j, &a->f);
    cot__json_key(&j, "parameters"), cot__json_integer(&j, a->parameters);
    cot__json_key(&j, "vocabulary");
    if (a->vocabulary) cot__json_integer(&j, a->vocabulary);
    else cot__json_null(&j);
    cot__json_key(&j, "segments"), cot__json_integer(&j, a->segments);
    cot__json_key(&j, "cut");
    if (a->segments) cot__json_number(&j, a->cut);
    else cot__json_null(&j);
    cot__json_key(&j, "all_selected"), cot__json_bool(&j, a->all_selected);
    cot__json_key(&j, "fits");
    if (a->limit > 0) cot__json_bool(&j, is_enough(a));
    else cot__json_null(&j);
    cot__json_close(&j, '}');
    fputs("\n", out);
}

static void show(const options *o, FILE *out, const answer *a, failure *f) {
    if (o->svg) memory_file_put(o->svg, as_svg, a, out, f);
    if (f->status != EXIT_FINE || (o->svg && strcmp(o->svg, "-") == 0)) return;
    if (o->json) put_json(out, a);
    else put_table(out, a, f);
}

/* Is all that is given for what is asked? */
static bool takes_all(const options *o, failure *f) {
    const train_settings *s = &o->train;
    if (!s->model &&
        (s->layers || s->heads || s->width || s->context || s->vocabulary || s->batch || s->precision))
        return failure_usage(f, "--layers, --heads, --width, --context, --vocabulary, --batch and --precision are of "
                                "--model; an expression has its own shapes");
    if (s->model && (o->dtype != COT_F64 || o->wrt))
        return failure_usage(f, "--dtype and --wrt are of an expression; a model computes in --precision");
    return true;
}

int run_memory(const options *o, FILE *out, look how, failure *f) {
    answer  a = {0};
    shapes  m;
    problem p = {0};
    (void)how;
    if (!read_limit(o->train.limit, &a.limit, f)) return f->status;
    if (o->json && o->svg && strcmp(o->svg, "-") == 0)
        return failure_usage(f, "only one of --json and --svg - can go to the standard output"), f->status;
    if (!takes_all(o, f)) return f->status;
    if (o->train.model) {
        if (o->file || o->positional_count)
            return failure_usage(f, "memory takes an expression or --model, not both"), f->status;
        bool fine = configure(&m, o, f);
        a.precision = fine ? m.precision : COT_F32;
        a.vocabulary = fine && m.is_gpt ? m.net.vocabulary : 0;
        if (fine && shapes_forecast_layers(&m, &a.f, &a.parameters, f) &&
            (!m.is_gpt || forecast_segments(&m, &a, f)))
            show(o, out, &a, f);
    } else {
        if (shapes_of_expression(&p, o, &a.all_selected, f)) {
            if (cot__forecast_of(&a.f, p.y) && cot__forecast_least(&a.f, p.y)) show(o, out, &a, f);
            else failure_memory(f);
        }
        problem_close(&p);
    }
    bool enough = is_enough(&a);
    cot__forecast_free(&a.f);
    return f->status != EXIT_FINE ? f->status : enough ? EXIT_FINE : EXIT_DISAGREES;
}
