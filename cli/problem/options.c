/* options.c: one table of options. Parsing and help are made from it.
 *
 * Options may stand anywhere behind the command's name, as --opt VALUE or --opt=VALUE. An option
 * with a value takes the next argument whatever it looks like, so --seed -1 works. Behind --
 * nothing is an option. */
#include "problem/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "problem/command.h"
#include "expr/expr.h"
#include "optim/levenberg.h"

typedef enum which {
    FILE_,
    DTYPE,
    THREADS,
    WRT,
    SEED,
    MODE,
    TANGENT,
    ORDER,
    SPARSE,
    STEP,
    AS_C,
    HTML,
    DOT,
    INPUTS,
    OUTPUTS,
    SIZE,
    NAMES,
    Y,
    PLOT,
    CHART,
    ITERATIONS,
    TOLERANCE,
    DERIVATIVE,
    MAIN,
    LIBM,
    TRAINING_STEP,
    PRINT,
    REPORT,
    OUTPUT,
    RANK,
    TOP,
    X,
    LOG,
    SMOOTH,
    FOLLOW,
    SVG,
    COUNT,
    TEXT,
    RATE,
    RUN_SEED,
    NODE,
    QUIET,
    JSON,
    HELP
} which;

typedef struct option {
    which       id;
    const char *name;
    char        letter;   /* 0: no short form */
    const char *argument; /* NULL: the option takes no value */
    unsigned    group;    /* 0: every command has it */
    const char *help;
} option;

static const option table[] = {
    {FILE_, "file", 'f', "FILE", OPT_EXPRESSION | OPT_FIT, "read the expression from FILE (-: standard input)"},
    {DERIVATIVE, "grad", 0, NULL, OPT_COMPILE, "and the gradient of a value of one element"},
    {DERIVATIVE, "vjp", 0, NULL, OPT_COMPILE, "and a seed, one more input, times the Jacobian"},
    {DERIVATIVE, "jvp", 0, NULL, OPT_COMPILE, "and the Jacobian times tangents, more inputs"},
    {DERIVATIVE, "hvp", 0, NULL, OPT_COMPILE, "and the Hessian times tangents, more inputs"},
    {DERIVATIVE, "jac", 0, NULL, OPT_COMPILE, "and the whole Jacobian"},
    {DERIVATIVE, "hess", 0, NULL, OPT_COMPILE, "and the whole Hessian"},
    {WRT, "wrt", 0, "a,b", OPT_WRT, "differentiate by these inputs (default: all floats)"},
    {SEED, "seed", 0, "V", OPT_SEED, "the adjoint of the value: of its shape, or one number"},
    {TANGENT, "along", 0, "name=V", OPT_TANGENT | OPT_ORDER | OPT_COMPILE,
     "how an input moves; once for each (default: zero)"},
    {TANGENT, "tangent", 0, "name=V", OPT_TANGENT | OPT_ORDER | OPT_COMPILE, "another name of --along"},
    {ORDER, "order", 0, "K", OPT_ORDER, "derivatives up to this order, 0 to 60 (default: 3)"},
    {MODE, "mode", 0, "MODE", OPT_MODE, "reverse or forward sweeps"},
    {SPARSE, "sparse", 0, NULL, OPT_SPARSE, "only the entries that can be other than zero"},
    {STEP, "step", 0, NULL, OPT_TRACE, "walk through it in the terminal, key by key"},
    {AS_C, "c", 0, NULL, OPT_TRACE, "print a C program that does it, and the sweep in C"},
    {HTML, "html", 0, "FILE", OPT_TRACE, "write a page that steps through it, not the tables"},
    {DOT, "dot", 0, "FILE", OPT_TRACE | OPT_COMPILE, "write a graph for Graphviz instead"},
    {MAIN, "main", 0, NULL, OPT_COMPILE, "add a main that prints the results at these values"},
    {LIBM, "libm", 0, NULL, OPT_COMPILE, "call <math.h> instead of holding its functions"},
    {PRINT, "print", 0, NULL, OPT_COMPILE, "print the program, an operation a line, not C"},
    {REPORT, "report", 0, NULL, OPT_COMPILE, "print what a run takes and what runs together"},
    {TEXT, "model", 0, "DIR", OPT_COMPILE, "the trained mnist or gpt in DIR, not an expression"},
    {TRAINING_STEP, "training-step", 0, NULL, OPT_COMPILE, "of --model: the step that trains it, of --batch examples"},
    {TEXT, "model", 0, "NAME", OPT_MEMORY, "gpt or mnist, of these sizes, not an expression"},
    {TEXT, "limit", 0, "BYTES", OPT_MEMORY, "is so much enough? (B, KiB, MiB, GiB or TiB may follow)"},
    {OUTPUT, "output", 'o', "FILE", OPT_COMPILE, "write FILE, which ends in .c, and its header"},
    {INPUTS, "inputs", 0, "N", OPT_SIZES, "this many inputs, without an expression"},
    {OUTPUTS, "outputs", 0, "M", OPT_SIZES, "this many outputs, without an expression"},
    {SIZE, "depth", 0, "N", OPT_SIZES, "a loop or network of so many steps, and its memory"},
    {SIZE, "width", 0, "N", OPT_SIZES, "of --depth: numbers in the state of a step (default: 1)"},
    {SIZE, "batch", 0, "N", OPT_SIZES, "of --depth: as many of them at once (default: 1)"},
    {SIZE, "states", 0, "N", OPT_SIZES, "of --depth: states that are kept (default: log2 depth)"},
    {SIZE, "micro", 0, "N", OPT_SIZES, "of --depth: parts of the batch (default: one each)"},
    {TEXT, "precision", 0, "TYPE", OPT_SIZES, "of --depth: states in bf16 or f16"},
    {TEXT, "limit", 0, "BYTES", OPT_SIZES, "of --depth: and a plan that fits (KiB, MiB, … may follow)"},
    {NAMES, "names", 0, NULL, OPT_NAMES, "only the names, one a line"},
    {Y, "y", 0, "NAME", OPT_FIT, "the column to be fitted, or its number (default: y)"},
    {PLOT, "plot", 0, "FILE", OPT_FIT, "write data, curve and residuals as SVG"},
    {CHART, "chart", 0, NULL, OPT_FIT, "draw data and curve in the terminal"},
    {ITERATIONS, "max-iterations", 0, "N", OPT_FIT, "give up after so many steps (default: 2000)"},
    {TOLERANCE, "tolerance", 0, "T", OPT_FIT, "relative error that is enough (default: 1e-10)"},
    {RANK, "rank", 0, NULL, OPT_RANK, "by sensitivity x/f*df/dx instead, as bars"},
    {TOP, "top", 0, "N", OPT_RANK, "of --rank: so many inputs (default: 20)"},
    {X, "x", 0, "AXIS", OPT_PLOT, "step or seconds (default: step)"},
    {Y, "y", 0, "a,b", OPT_PLOT, "draw these numbers (default: all losses)"},
    {LOG, "log", 0, NULL, OPT_PLOT, "a logarithmic y axis"},
    {SMOOTH, "smooth", 0, "N", OPT_PLOT, "draw means over N steps too"},
    {FOLLOW, "follow", 0, NULL, OPT_PLOT, "draw again in the terminal while the run goes on"},
    {SVG, "svg", 0, "FILE", OPT_RANK | OPT_PLOT | OPT_MEMORY, "write a picture as SVG (-: standard output)"},
    {TEXT, "data", 0, "PATH", OPT_TRAIN, "the data: a folder, a file, or a name that the model knows"},
    {COUNT, "steps", 0, "N", OPT_TRAIN, "steps of the optimiser (default: the model's own)"},
    {COUNT, "seeds", 0, "N", OPT_TRAIN, "so many runs, with the seeds --seed, + 1, … (default: 1)"},
    {RUN_SEED, "seed", 0, "N", OPT_TRAIN | OPT_SAMPLE, "where random numbers begin (default: 0)"},
    {RATE, "rate", 0, "R", OPT_TRAIN, "the learning rate (default: the model's own)"},
    {COUNT, "batch", 0, "N", OPT_TRAIN | OPT_MEMORY | OPT_COMPILE, "examples of a step"},
    {COUNT, "width", 0, "N", OPT_TRAIN | OPT_MEMORY, "gcn: hidden units (16); gpt: of every position (128)"},
    {COUNT, "layers", 0, "N", OPT_TRAIN | OPT_MEMORY, "gpt: blocks (4)"},
    {COUNT, "heads", 0, "N", OPT_TRAIN | OPT_MEMORY, "gpt: heads of attention (4)"},
    {COUNT, "context", 0, "N", OPT_TRAIN | OPT_MEMORY, "gpt: positions that are seen (128)"},
    {COUNT, "vocabulary", 0, "N", OPT_MEMORY, "gpt: tokens that it knows (50257, those of GPT-2)"},
    {TEXT, "precision", 0, "TYPE", OPT_TRAIN | OPT_MEMORY, "mnist, gpt: compute in bf16 or f16; parameters stay f32"},
    {TEXT, "memory", 0, "BYTES|N%", OPT_TRAIN, "a limit that the tape keeps, with the same bits; N% of a step without"},
    {TEXT, "tokenizer", 0, "DIR", OPT_TRAIN, "gpt: byte pairs of its vocab.json and merges.txt (default: characters)"},
    {TEXT, "initial", 0, "FILE", OPT_TRAIN, "begin with the parameters of this .safetensors file"},
    {TEXT, "checkpoint", 0, "DIR", OPT_TRAIN, "save the run there, and the model at its end"},
    {COUNT, "every", 0, "N", OPT_TRAIN, "steps between two checkpoints (default: 100)"},
    {TEXT, "resume", 0, "DIR", OPT_TRAIN, "go on with the run that is saved there"},
    {TEXT, "log", 0, "FILE", OPT_TRAIN, "write a JSON object a step, for `cotangent plot` (-: standard output)"},
    {TEXT, "tensorboard", 0, "DIR", OPT_TRAIN, "write event files for TensorBoard"},
    {TEXT, "pictures", 0, "DIR", OPT_TRAIN, "draw what there is to see as SVG files there"},
    {NODE, "node", 0, "N", OPT_TRAIN, "gcn: what speaks for the class of this node"},
    {QUIET, "quiet", 0, NULL, OPT_TRAIN, "no progress on the terminal"},
    {TEXT, "prompt", 0, "TEXT", OPT_SAMPLE, "how the text begins"},
    {COUNT, "length", 0, "N", OPT_SAMPLE, "tokens to draw (default: 200)"},
    {RATE, "temperature", 0, "T", OPT_SAMPLE, "1: as the model has it; above it is bolder; 0: the likeliest"},
    {RATE, "top-p", 0, "P", OPT_SAMPLE, "draw from the likeliest that have P together (default: 1)"},
    {DTYPE, "dtype", 0, "TYPE", OPT_EXPRESSION, "f64 or f32, of all float inputs (default: f64)"},
    {THREADS, "threads", 0, "N", OPT_EXPRESSION | OPT_FIT | OPT_TRAIN | OPT_SAMPLE | OPT_PREDICT,
      "1 to 256 threads (default: COTANGENT_THREADS, or all)"},
    {JSON, "json", 0, NULL, 0, "print one JSON object"},
    {HELP, "help", 'h', NULL, 0, "print this help"},
};
enum { MOST_THREADS = 256, OPTIONS = sizeof table / sizeof *table };

static bool has(const command *c, const option *p) { return p->group == 0 || (c->options & p->group) != 0; }

static const option *find(const command *c, const char *name, size_t n, failure *f) {
    const char *names[OPTIONS];
    int         count = 0;
    char        given[64];
    for (int i = 0; i < OPTIONS; i++) {
        if (!has(c, &table[i])) continue;
        if (strlen(table[i].name) == n && memcmp(table[i].name, name, n) == 0) return &table[i];
        names[count++] = table[i].name;
    }
    snprintf(given, sizeof given, "%.*s", n < 50 ? (int)n : 50, name);
    const char *near = cot__nearest(given, count, names);
    if (near)
        failure_usage(f, "%s has no option --%s; did you mean --%s?", c->name, given, near);
    else
        failure_usage(f, "%s has no option --%s; `cotangent %s --help` lists them", c->name, given, c->name);
    return NULL;
}

static bool read_number(const char *dashes, const char *name, const char *text, int64_t least, int64_t most,
                        int64_t *out, failure *f) {
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (errno || end == text || *end || *text == ' ' || n < least || n > most)
        return failure_usage(f, "%s%s is a whole number from %lld to %lld, not '%.60s'", dashes, name, (long long)least,
                             (long long)most, text);
    *out = n;
    return true;
}

static bool read_fraction(const option *p, const char *text, double *out, failure *f) {
    char *end;
    *out = cot__read_number(text, &end);
    if (end == text || *end || *text == ' ' || !(*out > 0 && *out < 1))
        return failure_usage(f, "--%s is a number between 0 and 1, not '%.60s'", p->name, text);
    return true;
}

static bool read_count(const option *p, const char *text, int64_t least, int64_t most, int64_t *out, failure *f) {
    return read_number("--", p->name, text, least, most, out, f);
}

/* The library ignores a value that it cannot read. Here it is an error. */
static bool read_environment(options *o, failure *f) {
    const char *text = getenv("COTANGENT_THREADS");
    int64_t     n = 0;
    if (o->threads || o->help || !(o->command->options & OPT_EXPRESSION) || !text || !*text) return true;
    if (!read_number("", "COTANGENT_THREADS", text, 1, MOST_THREADS, &n, f)) return false;
    o->threads = (int)n;
    return true;
}

static bool set_once(const option *p, const char **where, const char *value, failure *f) {
    if (*where) return failure_usage(f, "--%s is given twice", p->name);
    *where = value;
    return true;
}

static bool set_derivative(options *o, const option *p, failure *f) {
    static const char *const names[] = {"", "grad", "vjp", "jvp", "hvp", "jac", "hess"};
    if (o->derivative)
        return failure_usage(f, "--%s and --%s are given; one derivative at a time", names[o->derivative], p->name);
    for (int k = GRAD; k <= HESS; k++)
        if (strcmp(names[k], p->name) == 0) o->derivative = (derivative)k;
    return true;
}

/* Where a model's setting of this name stands. Names are those of the table, so one is found. */
static void *train_setting(train_settings *s, const char *name) {
    const struct {
        const char *name;
        void       *where;
    } all[] = {
        {"data", &s->data},         {"checkpoint", &s->checkpoint}, {"resume", &s->resume},
        {"log", &s->log},           {"tensorboard", &s->tensorboard}, {"pictures", &s->pictures},
        {"initial", &s->initial},   {"prompt", &s->prompt},         {"steps", &s->steps},
        {"tokenizer", &s->tokenizer}, {"model", &s->model},         {"precision", &s->precision},
        {"limit", &s->limit},       {"memory", &s->memory},
        {"seeds", &s->seeds},       {"every", &s->every},           {"layers", &s->layers},
        {"heads", &s->heads},       {"width", &s->width},           {"context", &s->context},
        {"batch", &s->batch},       {"length", &s->length},         {"rate", &s->rate},
        {"temperature", &s->temperature}, {"top-p", &s->top_p},     {"vocabulary", &s->vocabulary},
    };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (strcmp(all[k].name, name) == 0) return all[k].where;
    return NULL;
}

static int64_t *size_setting(loop_sizes *s, const char *name) {
    return strcmp(name, "depth") == 0    ? &s->depth
           : strcmp(name, "width") == 0  ? &s->width
           : strcmp(name, "batch") == 0  ? &s->batch
           : strcmp(name, "states") == 0 ? &s->states
                                         : &s->micro;
}

/* A rate is positive, a temperature may be 0, a probability is at most 1. */
static bool read_rate(const option *p, const char *text, double *out, failure *f) {
    char  *end;
    double least = strcmp(p->name, "temperature") == 0 ? 0 : 1e-300, most = strcmp(p->name, "top-p") == 0 ? 1 : 1e6;
    *out = cot__read_number(text, &end);
    if (end == text || *end || *text == ' ' || !(*out >= least && *out <= most))
        return failure_usage(f, "--%s is a number %s, not '%.60s'", p->name,
                             most == 1     ? "above 0 and at most 1"
                             : least == 0 ? "from 0 to 1000000"
                                          : "above 0 and at most 1000000",
                             text);
    return true;
}

static bool lacks_value(const option *p, failure *f) {
    return failure_usage(f, "--%s needs a value: --%s %s", p->name, p->name, p->argument);
}

static bool set(options *o, const option *p, const char *value, failure *f) {
    int64_t n = 0;
    switch (p->id) {
    case FILE_: return set_once(p, &o->file, value, f);
    case WRT: return set_once(p, &o->wrt, value, f);
    case SEED: return set_once(p, &o->seed, value, f);
    case HTML: return set_once(p, &o->html, value, f);
    case DOT: return set_once(p, &o->dot, value, f);
    case TANGENT:
        o->tangents[o->tangent_count++] = value;
        o->direction = p->name;
        return true;
    case STEP: o->step = true; return true;
    case AS_C: o->as_c = true; return true;
    case SPARSE: o->sparse = true; return true;
    case NAMES: o->names = true; return true;
    case JSON: o->json = true; return true;
    case HELP: o->help = true; return true;
    case DERIVATIVE: return set_derivative(o, p, f);
    case MAIN: o->main = true; return true;
    case LIBM: o->libm = true; return true;
    case TRAINING_STEP: o->training_step = true; return true;
    case PRINT: o->print = true; return true;
    case REPORT: o->report = true; return true;
    case OUTPUT: return set_once(p, &o->output, value, f);
    case TEXT:
        if (!*value && strcmp(p->name, "prompt") != 0) return lacks_value(p, f);
        return set_once(p, train_setting(&o->train, p->name), value, f);
    case COUNT: return read_count(p, value, 1, 1000000000, train_setting(&o->train, p->name), f);
    case RATE: return read_rate(p, value, train_setting(&o->train, p->name), f);
    case RUN_SEED:
        if (!read_count(p, value, 0, INT64_MAX, &n, f)) return false;
        o->train.seed = (uint64_t)n;
        return true;
    case NODE: o->train.has_node = true; return read_count(p, value, 0, INT32_MAX, &o->train.node, f);
    case QUIET: o->train.quiet = true; return true;
    case INPUTS: return read_count(p, value, 1, INT64_C(1000000000000), &o->inputs, f);
    case OUTPUTS: return read_count(p, value, 1, INT64_C(1000000000000), &o->outputs, f);
    case SIZE: return read_count(p, value, 1, 1000000, size_setting(&o->sizes, p->name), f);
    case Y: return set_once(p, &o->y, value, f);
    case SVG: return set_once(p, &o->svg, value, f);
    case RANK: o->rank = true; return true;
    case LOG: o->log = true; return true;
    case FOLLOW: o->follow = true; return true;
    case CHART: o->chart = true; return true;
    case X:
        if (strcmp(value, "step") != 0 && strcmp(value, "seconds") != 0)
            return failure_usage(f, "--x is step or seconds, not '%.60s'", value);
        return set_once(p, &o->x, value, f);
    case TOP:
        if (!read_count(p, value, 1, 1000, &n, f)) return false;
        o->top = (int)n;
        return true;
    case SMOOTH:
        if (!read_count(p, value, 1, 1000000000, &n, f)) return false;
        o->smooth = (int)n;
        return true;
    case PLOT: return set_once(p, &o->plot, value, f);
    case TOLERANCE: return read_fraction(p, value, &o->tolerance, f);
    case ITERATIONS:
        if (!read_count(p, value, 1, 1000000000, &n, f)) return false;
        o->most_iterations = (int)n;
        return true;
    case ORDER:
        if (!read_count(p, value, 0, 60, &n, f)) return false;
        o->order = (int)n;
        return true;
    case THREADS:
        if (!read_count(p, value, 1, MOST_THREADS, &n, f)) return false;
        o->threads = (int)n;
        return true;
    case DTYPE:
        o->dtype = strcmp(value, "f32") == 0 ? COT_F32 : COT_F64;
        if (o->dtype == COT_F64 && strcmp(value, "f64") != 0)
            return failure_usage(f, "--dtype is f64 or f32, not '%.60s'", value);
        return true;
    case MODE:
        o->mode = strcmp(value, "reverse") == 0 ? COT_REVERSE : COT_FORWARD;
        if (o->mode == COT_FORWARD && strcmp(value, "forward") != 0)
            return failure_usage(f, "--mode is reverse or forward, not '%.60s'", value);
        return true;
    }
    return true;
}

/* Argument i begins with a dash: it is an option, perhaps with its value in the next argument. */
static bool parse_one(options *o, int n, char *const *arguments, int *i, failure *f) {
    const char   *text = arguments[*i], *value = NULL;
    const option *p = NULL;
    if (text[1] == '-') {
        const char *equals = strchr(text, '=');
        p = find(o->command, text + 2, equals ? (size_t)(equals - text - 2) : strlen(text + 2), f);
        if (!p) return false;
        if (equals) value = equals + 1;
    } else {
        for (int k = 0; k < OPTIONS && !p; k++)
            if (table[k].letter == text[1] && has(o->command, &table[k])) p = &table[k];
        if (p && text[2] && !p->argument) p = NULL;
        if (!p)
            return failure_usage(f,
                                 "%s has no option %.40s; write -- before an expression that begins with a minus sign",
                                 o->command->name, text);
        if (text[2]) value = text + 2;
    }
    if (!p->argument && value) return failure_usage(f, "--%s takes no value", p->name);
    if (p->argument && !value) {
        if (*i + 1 == n) return lacks_value(p, f);
        value = arguments[++*i];
    }
    bool named = p->argument && (strcmp(p->argument, "FILE") == 0 || strcmp(p->argument, "DIR") == 0);
    if (named && !*value) return failure_usage(f, "the %s of --%s has an empty name", p->argument, p->name);
    return set(o, p, value, f);
}

bool options_parse(options *o, const command *c, int n, char *const *arguments, failure *f) {
    *o             = (options){.command         = c,
                               .direction       = "along",
                               .dtype           = COT_F64,
                               .mode            = COT_AUTO,
                               .most_iterations = 2000,
                               .tolerance       = COT__FIT_TOLERANCE,
                               .order           = 3,
                               .train           = {.seeds = 1, .length = 200, .temperature = 1, .top_p = 1}};
    o->positionals = malloc(((size_t)n + 1) * sizeof *o->positionals);
    o->tangents = malloc(((size_t)n + 1) * sizeof *o->tangents);
    if (!o->positionals || !o->tangents) return failure_memory(f);
    bool ended = false;
    for (int i = 0; i < n; i++) {
        const char *text = arguments[i];
        if (!ended && strcmp(text, "--") == 0)
            ended = true;
        else if (ended || text[0] != '-' || text[1] == 0)
            o->positionals[o->positional_count++] = text;
        else if (!parse_one(o, n, arguments, &i, f))
            return false;
    }
    return read_environment(o, f);
}

void options_free(options *o) {
    free(o->positionals);
    free(o->tangents);
    o->positionals = o->tangents = NULL;
}

bool options_ask_json(int n, char *const *arguments) {
    for (int i = 0; i < n; i++) {
        if (strcmp(arguments[i], "--") == 0) return false;
        if (strcmp(arguments[i], "--json") == 0) return true;
    }
    return false;
}

void options_print(FILE *out, const command *c) {
    for (int i = 0; i < OPTIONS; i++) {
        const option *p = &table[i];
        char          left[40];
        if (!has(c, p)) continue;
        char letter[5] = "    ";
        if (p->letter) snprintf(letter, sizeof letter, "-%c, ", p->letter);
        snprintf(left, sizeof left, "%s--%s%s%s", letter, p->name, p->argument ? " " : "",
                 p->argument ? p->argument : "");
        fprintf(out, "  %-22s %s\n", left, p->help);
    }
}
