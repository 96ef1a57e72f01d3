/* program.c: steps of one model as a program, compiled within a limit, with a folder or without,
 * and run on plain arrays: weights, the input, the loss and all gradients. */
#include "memory/one.h"
#include "workloads/measure.h"

#include <cotangent_program.h>

enum { MOST = 256 };

typedef struct step {
    const model *of;
    cot_params  *p;
    cot_var      x; /* while a function records */
    cot_type     type[MOST];
    void        *in[MOST], *out[MOST];
    int          weights; /* then the input; of outputs: the loss before them */
} step;

/* xs: weights */
static int loss(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    step *s = user;
    (void)m;
    cot_params_bind(s->p, n, xs);
    ys[0] = s->of->loss(s->of->net(s->p, s->x), s->x);
    return cot_params_bind(s->p, 0, NULL) != COT_OK;
}

static int loss_and_gradients(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    step *s = user;
    (void)m;
    s->x = xs[n - 1];
    return cot_value_and_grad(loss, s, n - 1, xs, &ys[0], ys + 1) != COT_OK;
}

static void *copied(cot_var x, cot_type *type) {
    int64_t n = cot_size(x);
    *type = (cot_type){cot_dtype_of(x), cot_shape_of(x)};
    void *to = must(malloc((size_t)n * (type->dtype == COT_I64 ? 8 : 4)));
    cot_read_as(x, type->dtype, to, n);
    return to;
}

/* The weights that a tape would begin with. */
static void take_arrays(step *s, cot_var x) {
    const cot_var *w = cot_params_vars(s->p, &s->weights);
    if (s->weights >= MOST) exit(1);
    for (int k = 0; k < s->weights; k++) {
        s->in[k] = copied(w[k], &s->type[k]);
        s->out[1 + k] = must(malloc((size_t)cot_size(w[k]) * sizeof(float)));
    }
    s->in[s->weights] = copied(x, &s->type[s->weights]);
    s->out[0] = must(malloc(sizeof(float)));
}

/* The tape goes: what is measured has none. */
static cot_program *make(step *s, const cot_options *o) {
    cot_tape *t = must(cot_tape_create(&(cot_options){.memory_limit = INT64_MAX}));
    s->p = must(cot_params_create(t));
    cot_var x = s->of->input(t);
    cot_params_init(s->p, s->of->net, x, cot_key_of(1));
    if (cot_tape_status(t) != COT_OK) fprintf(stderr, "%s\n", cot_tape_message(t)), exit(1);
    take_arrays(s, x);
    cot_compile_options how = {.memory_limit = o->memory_limit, .spill = o->spill};
    cot_program *p = must(cot_compile(loss_and_gradients, s, s->weights + 1, s->type, 1 + s->weights, &how));
    cot_params_destroy(s->p);
    cot_tape_destroy(t);
    return p;
}

static double go(step *s, cot_run *r) {
    if (cot_program_run(r, (const void *const *)s->in, s->out) != COT_OK)
        fprintf(stderr, "%s\n", cot_run_message(r)), exit(1);
    return (double)*(float *)s->out[0];
}

int measure_program(const model *of, const cot_options *o, double seconds) {
    static step       s;
    cot_program_facts f;
    int64_t           at_first = resident_bytes();
    double            least = INFINITY;
    s.of = of;
    cot_program *p = make(&s, o);
    cot_run     *r = must(cot_run_create(p));
    if (cot_run_status(r) != COT_OK) { /* the limit cannot be reached, or the folder is none */
        fprintf(stderr, "%s\n", cot_run_message(r));
        exit(cot_program_status(p) == COT_MEMORY ? UNREACHED : 1);
    }
    cot_program_measure(p, &f);
    forget_peak();
    double first = go(&s, r), end = now() + seconds;
    int    runs = 0;
    do {
        double start = now();
        if (go(&s, r) != first) return fprintf(stderr, "the losses differ\n"), 1;
        if (now() - start < least) least = now() - start;
    } while (++runs < 2 || now() < end);
    if (*cot_run_note(r)) fprintf(stderr, "%s\n", cot_run_note(r));
    printf("{\"model\": \"%s\", \"system\": \"cotangent-%s\", \"limit\": %lld, \"folder\": %s, \"min_s\": %.6g, "
           "\"runs\": %d, \"peak_bytes\": %lld, \"run_bytes\": %zu, \"spilled_bytes\": %lld, \"loss\": %.17g}\n",
           of->name, cot_version(), (long long)o->memory_limit, o->spill ? "true" : "false", least, runs,
           (long long)(peak_bytes() - at_first), cot_run_bytes(r), (long long)f.spilled_bytes, first);
    cot_run_destroy(r);
    cot_program_destroy(p);
    for (int k = 0; k <= s.weights; k++) free(s.in[k]), free(s.out[k]);
    return 0;
}
