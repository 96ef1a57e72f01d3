/* sample.c: cotangent sample: a text that a trained transformer goes on with.
 *
 * Tokens see at most `context` before them. When that is full, the cache is cleared and the last
 * half is read again; without the cache the same tokens are read, so that both draw the same. */
#include "train/use.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trace/json/json.h"
#include "train/gpt_text.h"
#include "train/saved.h"

typedef struct candidate {
    double  p;
    int64_t id;
} candidate;

/* The likeliest first; of equal ones the lower number. */
static int by_probability(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->p != y->p) return x->p < y->p ? 1 : -1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Logits in c[…].p become the token that u in [0, 1) chooses. */
static int64_t choose(candidate *c, int64_t n, const gpt_drawing *how, double u) {
    double  most = c[0].p, sum = 0, kept = 0;
    int64_t best = 0, last = 0;
    for (int64_t k = 1; k < n; k++)
        if (c[k].p > most) most = c[k].p, best = k;
    if (how->temperature == 0) return best;
    for (int64_t k = 0; k < n; k++) sum += c[k].p = exp((c[k].p - most) / how->temperature);
    if (how->top_p < 1) qsort(c, (size_t)n, sizeof *c, by_probability);
    while (last < n && (how->top_p >= 1 || kept < how->top_p * sum)) kept += c[last++].p;
    u *= kept;
    for (int64_t k = 0; k < last - 1; k++)
        if ((u -= c[k].p) < 0) return c[k].id;
    return c[last - 1].id;
}

/* The logits behind n tokens, of which the cache has seen s->net.seen. */
static bool logits_of(saved *s, const int64_t *ids, int64_t n, float *to, candidate *c, failure *f) {
    int64_t  first = s->net.cache ? s->net.seen : 0, v = s->net.vocabulary;
    cot_mark mark = cot_tape_mark(s->t);
    cot_var  all  = gpt_net(s->p, cot_data(s->t, COT_I64, COT_SHAPE(1, n - first), ids + first));
    cot_read_as(cot_slice(all, 1, n - first - 1, n - first, 1), COT_F32, to, v);
    bool fine = saved_fine(s, f);
    cot_tape_rewind(s->t, mark);
    s->net.seen = n;
    for (int64_t k = 0; fine && k < v; k++) {
        c[k] = (candidate){to[k], k};
        if (!isfinite(to[k]))
            fine = failure_set(f, EXIT_RUN, "run", "[sample] the model gives %s for a token; its training went wrong",
                               isnan(to[k]) ? "nan" : "an infinity");
    }
    return fine;
}

bool gpt_draw(saved *s, const gpt_drawing *how, int64_t *ids, int64_t known, int64_t n, failure *f) {
    candidate *c       = malloc((size_t)s->net.vocabulary * sizeof *c);
    float     *logits  = malloc((size_t)s->net.vocabulary * sizeof *logits);
    cot_key    key     = cot_key_of(how->seed);
    int64_t    context = s->net.context, from = known > context ? known - context : 0;
    s->net.cache = how->no_cache ? NULL : cot_nn_cache_create(s->p, context);
    s->net.seen  = 0;
    bool fine    = (c && logits && (s->net.cache || how->no_cache)) || failure_memory(f);
    for (int64_t k = known; fine && k < known + n; k++) {
        if (k - from > context) { /* the last half, of at least one */
            from = k - (context + 1) / 2;
            cot_nn_cache_clear(s->net.cache);
            s->net.seen = 0;
        }
        cot_key at = cot_key_fold(key, (uint64_t)(k - known));
        fine       = logits_of(s, ids + from, k - from, logits, c, f);
        if (fine)
            ids[k] = choose(c, s->net.vocabulary, how, ((double)at.word[0] + (double)at.word[1] / 0x1p32) / 0x1p32);
    }
    cot_nn_cache_destroy(s->net.cache);
    s->net.cache = NULL;
    free(c);
    free(logits);
    return fine;
}

/* The prompt's tokens, with room for those that are drawn. */
static int64_t *read_prompt(const saved *s, const options *o, int64_t *known, failure *f) {
    const char *prompt = o->train.prompt ? o->train.prompt : "\n";
    int64_t    *ids, *more;
    if (!*prompt) {
        failure_usage(f, "--prompt is empty; the model needs a token to go on from");
        return NULL;
    }
    ids  = gpt_encode(s->k, prompt, strlen(prompt), known, f);
    more = ids ? realloc(ids, (size_t)(*known + o->train.length) * sizeof *ids) : NULL;
    if (ids && !more) {
        free(ids);
        failure_memory(f);
    }
    return more;
}

static void print(const char *text, const options *o, const int64_t *ids, int64_t n, FILE *out) {
    cot__json j = cot__json_to(out);
    if (o->json) {
        cot__json_open(&j, '{');
        cot__json_key(&j, "text");
        cot__json_string(&j, text);
        cot__json_key(&j, "tokens");
        cot__json_open(&j, '[');
        for (int64_t k = 0; k < n; k++) cot__json_integer(&j, ids[k]);
        cot__json_close(&j, ']');
        cot__json_close(&j, '}');
    } else {
        fputs(text, out);
    }
    fputs("\n", out);
}

static bool sample(saved *s, const options *o, FILE *out, failure *f) {
    gpt_drawing how = {.temperature = o->train.temperature, .top_p = o->train.top_p, .seed = o->train.seed};
    int64_t     known, all;
    int64_t    *ids = read_prompt(s, o, &known, f);
    if (!ids) return false;
    all       = known + o->train.length;
    bool fine = gpt_draw(s, &how, ids, known, o->train.length, f);
    if (fine) {
        int64_t bytes = cot_tokenizer_decode(s->k, ids, all, NULL, 0);
        char   *text  = bytes >= 0 ? calloc((size_t)bytes + 1, 1) : NULL;
        if (bytes < 0)
            fine = failure_set(f, EXIT_RUN, "file", "[sample] %.600s draws tokens that the tokenizer has not", s->path);
        else if (!text)
            fine = failure_memory(f);
        if (text) cot_tokenizer_decode(s->k, ids, all, text, bytes);
        if (text) print(text, o, ids, all, out);
        free(text);
    }
    free(ids);
    return fine;
}

int run_sample(const options *o, FILE *out, look how, failure *f) {
    saved s = {0};
    (void)how;
    if (o->positional_count != 1) {
        failure_usage(f, "sample takes the folder of one model, which `cotangent train gpt --checkpoint DIR` writes");
        return EXIT_USAGE;
    }
    if (saved_open(&s, o->positionals[0], f)) {
        if (strcmp(s.model, "gpt") != 0)
            failure_set(f, EXIT_RUN, "file", "%.600s is a model of %.60s; sample takes one of gpt", s.path, s.model);
        else if (saved_gpt(&s, f) && !s.k)
            failure_set(f, EXIT_RUN, "file",
                        "%.600s has no characters, nor are vocab.json and merges.txt beside it; sample "
                        "needs the text of each token",
                        s.path);
        else if (f->status == EXIT_FINE)
            sample(&s, o, out, f);
    }
    saved_close(&s);
    return f->status;
}
