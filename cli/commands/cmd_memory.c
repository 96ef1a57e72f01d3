/* cmd_memory.c: cotangent memory: what a step would take, of an expression or of a model of any
 * size, from shapes alone. A model is recorded on examples, whose elements nobody computes; its
 * memory is reserved and never touched. */
#include "commands/commands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "base/number.h"
#include "draw/chart.h"
#include "io/memory_file.h"
#include "models/gpt.h"
#include "models/mnist.h"
#include "nn/nn.h"
#include "ops/structural.h"
#include "problem/limit.h"
#include "problem/expression.h"
#include "problem/problem.h"
#include "tape/examples.h"
#include "trace/cost/forecast.h"

/* ---- a tape whose values take no memory ------------------------------------------------------ */

enum { LARGE = 1 << 16 };

/* Address space instead of memory, where the system has it. */
static void *reserve(void *user, void *ptr, size_t old_size, size_t new_size) {
    void *fresh = NULL;
    (void)user;
#if defined(__linux__)
    bool was = ptr && old_size >= LARGE, is = new_size >= LARGE;
    if (!was && !is) {
        if (new_size) return realloc(ptr, new_size);
        free(ptr);
        return NULL;
    }
    if (is) {
        fresh = mmap(NULL, new_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (fresh == MAP_FAILED) return NULL;
    } else if (new_size && !(fresh = malloc(new_size))) {
        return NULL;
    }
    if (ptr && fresh) memcpy(fresh, ptr, old_size < new_size ? old_size : new_size);
    if (was) munmap(ptr, old_size);
    else free(ptr);
    return fresh;
#else
    (void)old_size;
    if (new_size) return realloc(ptr, new_size);
    free(ptr);
    return fresh;
#endif
}

static cot_var example(cot_tape *t, cot_dtype dtype, cot_shape shape) {
    cot__result r;
    if (!cot__constant_open(t, &r, "full", dtype, &shape)) return COT_NONE;
    cot__result_is_example(t, &r);
    return cot__constant_push(t, &r);
}

/* ---- models ---------------------------------------------------------------------------------- */

enum { VOCABULARY = 50257, DIGITS = 10 };

typedef struct model {
    const char *name;
    gpt         net; /* of gpt */
    int64_t     batch;
    cot_dtype   precision;
} model;

typedef struct answer {
    cot__forecast f;
    int64_t       parameters; /* numbers; 0: it is an expression */
    /* of gpt: its blocks in so many checkpoints take about `cut`; 0: not known */
    int64_t       segments;
    double        cut;
    double        limit;      /* 0: none */
} answer;

static bool configure(model *m, const options *o, failure *f) {
    const train_settings *s = &o->train;
    m->name = s->model;
    m->batch = s->batch ? s->batch : strcmp(m->name, "mnist") == 0 ? 64 : 8;
    m->net = (gpt){.vocabulary = VOCABULARY,
                   .context = s->context ? s->context : 128,
                   .layers = s->layers ? s->layers : 4,
                   .width = s->width ? s->width : 128};
    m->net.heads = s->heads ? s->heads : m->net.width % 64 == 0 && m->net.width >= 256 ? m->net.width / 64 : 4;
    m->precision = COT_F32;
    for (int d = COT_BF16; s->precision && d <= COT_F16; d++)
        if (strcmp(s->precision, cot_dtype_name((cot_dtype)d)) == 0) m->precision = (cot_dtype)d;
    if (s->precision && m->precision == COT_F32 && strcmp(s->precision, "f32") != 0)
        return failure_usage(f, "--precision is \"%s\"; it is bf16, f16 or f32", s->precision);
    if (strcmp(m->name, "mnist") != 0 && strcmp(m->name, "gpt") != 0)
        return failure_usage(f, "--model is \"%.60s\"; memory knows the shapes of gpt and mnist", m->name);
    if (strcmp(m->name, "mnist") == 0 && (s->layers || s->heads || s->width || s->context))
        return failure_usage(f, "--layers, --heads, --width and --context are for gpt; mnist has one shape");
    if (m->net.width % m->net.heads == 0) return true;
    return failure_usage(f, "a width of %lld is not divided by %lld heads; each has as many numbers as the others",
                         (long long)m->net.width, (long long)m->net.heads);
}

static bool is_gpt(const model *m) { return strcmp(m->name, "gpt") == 0; }

/* The loss on examples; invalid after a failure. */
static cot_var record(cot_params *p, model *m) {
    cot_tape *t = cot_params_tape(p);
    int64_t   rows = is_gpt(m) ? m->batch * m->net.context : m->batch, classes = is_gpt(m) ? m->net.vocabulary : DIGITS;
    cot_var   x = is_gpt(m) ? example(t, COT_I64, COT_SHAPE(m->batch, m->net.context))
                            : example(t, COT_F32, COT_SHAPE(m->batch, 1, MNIST_SIDE, MNIST_SIDE));
    cot_var   y;
    cot_params_set_user(p, &m->net);
    if (m->precision != COT_F32) {
        cot_tape_set_precision(t, (cot_precision){.compute = m->precision});
        cot_params_set_precision(p, "*", m->precision);
    }
    if (!cot__params_learn(p, "memory", is_gpt(m) ? gpt_net : mnist_net, x, &y)) return COT_NONE;
    cot_var labels = example(t, COT_I64, COT_SHAPE(rows));
    return cot_softmax_cross_entropy(cot_reshape(y, COT_SHAPE(rows, classes)), labels);
}

static bool forecast_model(model *m, answer *a, failure *f) {
    cot_tape   *t = cot_tape_create(&(cot_options){.allocator = {reserve, NULL}});
    cot_params *p = cot_params_create(t);
    if (!p) {
        cot_tape_destroy(t);
        return failure_memory(f);
    }
    t->mode.compiling = true;
    cot_var loss = record(p, m);
    a->parameters = 0;
    for (uint32_t k = 0; k < p->count; k++)
        a->parameters += cot__count(p->entry[k].wish.shape.ndim, p->entry[k].wish.shape.dim);
    bool fine = cot_tape_status(t) == COT_OK;
    if (!fine && cot_tape_status(t) != COT_MEMORY) failure_set(f, EXIT_RUN, "run", "%s", cot_tape_message(t));
    else if (!fine || !(fine = cot__forecast_of(&a->f, loss))) failure_memory(f);
    /* rows of the forecast point to names of the tape: models give none */
    cot_params_destroy(p);
    cot_tape_destroy(t);
    return fine;
}

/* Some blocks are recorded, however many there are: of more than MANY the others add as much as one
 * of them does. FEW: enough that the middle of the net is inside of a block like all others. */
enum { MANY = 200, FEW = 8 };

static bool forecast_layers(const model *m, answer *a, failure *f) {
    answer less = {0};
    model  some = *m;
    if (!is_gpt(m) || m->net.layers <= MANY) return forecast_model(&some, a, f);
    some.net.layers = FEW - 1;
    bool fine = forecast_model(&some, &less, f), fits = true;
    some.net.layers = FEW;
    fine = fine && forecast_model(&some, a, f);
    if (fine && !cot__forecast_stretch(&a->f, &less.f, m->net.layers - FEW, &fits)) fine = failure_memory(f);
    if (fine && !fits)
        fine = failure_set(f, EXIT_RUN, "run",
                           "[memory] a step of %lld blocks takes more than 2^63 - 1 bytes; ask for fewer, or a smaller "
                           "--width",
                           (long long)m->net.layers);
    /* their gradients are in the peak, so they are fewer */
    if (fine) a->parameters += (m->net.layers - FEW) * (a->parameters - less.parameters);
    cot__forecast_free(&less.f);
    return fine;
}

/* Blocks in about √layers checkpoints: what lies between them stays, and one of them at a time is
 * whole. A block takes the difference of two forecasts. */
static bool forecast_segments(const model *m, answer *a, failure *f) {
    answer one = {0}, two = {0};
    model  small = *m;
    small.net.layers = 1;
    bool fine = forecast_model(&small, &one, f);
    small.net.layers = 2;
    fine = fine && forecast_model(&small, &two, f);
    if (fine) {
        double block = two.f.peak - one.f.peak, rest = one.f.peak - block, width = m->precision == COT_F32 ? 4 : 2;
        double between = (double)m->batch * (double)m->net.context * (double)m->net.width * width;
        a->segments = (int64_t)ceil(sqrt((double)m->net.layers));
        /* all parameters stay, whatever is cut */
        double own = 4.0 * (double)(two.parameters - one.parameters), whole = (double)m->net.layers;
        a->cut = rest + whole * own + (double)a->segments * between +
                 ceil(whole / (double)a->segments) * (block - own);
    }
    cot__forecast_free(&one.f);
    cot__forecast_free(&two.f);
    return fine;
}

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
    snprintf(text, sizeof text, "The bytes on the tape at each of %lld operations; the most is %s, %s.",
             (long long)a->f.steps,
             cot__bytes_text(a->f.peak, peak), a->f.when);
    chart_svg(&c, to, text);
    free(place);
}

static void put_table(FILE *out, const answer *a, failure *f) {
    char b[32];
    if (!cot__forecast_table(out, &a->f)) failure_memory(f);
    if (a->parameters)
        fprintf(out, "%lld parameters: %s, as much for gradients, twice as much for the moments of Adam\n",
                (long long)a->parameters, cot__bytes_text(4.0 * (double)a->parameters, b));
    if (a->segments)
        fprintf(out,
                "with its blocks in %lld checkpoints (cot_checkpoint_sequential): about %s, for one forward more\n",
                (long long)a->segments, cot__bytes_text(a->cut, b));
    if (a->limit > 0)
        fprintf(out, "a limit of %s %s\n", cot__bytes_text(a->limit, b),
                a->f.peak <= a->limit                   ? "is enough as it is"
                : a->segments && a->cut <= a->limit     ? "is enough with checkpoints"
                                                        : "is not enough");
}

static void put_json(FILE *out, const answer *a) {
    cot__json j = cot__json_to(out);
    cot__json_open(&j, '{');
    cot__forecast_json(&j, &a->f);
    cot__json_key(&j, "parameters"), cot__json_integer(&j, a->parameters);
    cot__json_key(&j, "segments"), cot__json_integer(&j, a->segments);
    cot__json_key(&j, "cut");
    if (a->segments) cot__json_number(&j, a->cut);
    else cot__json_null(&j);
    cot__json_key(&j, "fits");
    if (a->limit > 0) cot__json_bool(&j, a->f.peak <= a->limit);
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
    if (!s->model && (s->layers || s->heads || s->width || s->context || s->batch || s->precision))
        return failure_usage(f, "--layers, --heads, --width, --context, --batch and --precision are of --model; an "
                                "expression has its own shapes");
    if (s->model && (o->dtype != COT_F64 || o->wrt))
        return failure_usage(f, "--dtype and --wrt are of an expression; a model computes in --precision");
    return true;
}

/* Enough as it is, or with the checkpoints that are proposed. */
static bool is_enough(const answer *a) {
    return a->limit == 0 || a->f.peak <= a->limit || (a->segments && a->cut <= a->limit);
}

int run_memory(const options *o, FILE *out, look how, failure *f) {
    answer  a = {0};
    model   m;
    problem p = {0};
    (void)how;
    if (!read_limit(o->train.limit, &a.limit, f)) return f->status;
    if (o->json && o->svg && strcmp(o->svg, "-") == 0)
        return failure_usage(f, "only one of --json and --svg - can go to the standard output"), f->status;
    if (!takes_all(o, f)) return f->status;
    if (o->train.model) {
        if (o->file || o->positional_count)
            return failure_usage(f, "memory takes an expression or --model, not both"), f->status;
        if (configure(&m, o, f) && forecast_layers(&m, &a, f) && (!is_gpt(&m) || forecast_segments(&m, &a, f)))
            show(o, out, &a, f);
    } else {
        if (problem_for_derivatives(&p, o, f)) {
            if (cot__forecast_of(&a.f, p.y)) show(o, out, &a, f);
            else failure_memory(f);
        }
        problem_close(&p);
    }
    bool enough = is_enough(&a);
    cot__forecast_free(&a.f);
    return f->status != EXIT_FINE ? f->status : enough ? EXIT_FINE : EXIT_DISAGREES;
}
