/* The two graphs that need no file. */
#include "graph.h"

#include <cotangent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "karate.h"

void graph_free(graph *g) {
    int64_t *all[] = {g->from, g->to, g->word_start, g->word, g->label, g->train.node, g->val.node, g->test.node};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) free(all[k]);
    memset(g, 0, sizeof *g);
}

static int64_t *numbers(int64_t n) { return calloc((size_t)n + 1, sizeof(int64_t)); }

/* The arrays of a graph whose sizes are set, with so many words in all. */
static int make(graph *g, int64_t words, char *why, size_t room) {
    g->from = numbers(g->edges);
    g->to = numbers(g->edges);
    g->word_start = numbers(g->nodes + 1);
    g->word = numbers(words);
    g->label = numbers(g->nodes);
    g->train.node = numbers(g->nodes);
    g->val.node = numbers(g->nodes);
    g->test.node = numbers(g->nodes);
    if (g->from && g->to && g->word_start && g->word && g->label && g->train.node && g->val.node && g->test.node)
        return 0;
    snprintf(why, room, "out of memory for a graph of %lld nodes", (long long)g->nodes);
    return 1;
}

/* ---- the karate club ------------------------------------------------------------------------- */

/* The instructor and the administrator are known, the others are asked for; what they are is also
 * what early stopping looks at, there being nobody else. */
int graph_karate(graph *g, char *why, size_t room) {
    *g = (graph){.nodes = KARATE_NODES, .words = KARATE_NODES, .classes = 2, .edges = KARATE_EDGES};
    if (make(g, g->nodes, why, room)) return 1;
    for (int64_t e = 0; e < g->edges; e++) {
        g->from[e] = karate_friends[e][0] - 1;
        g->to[e] = karate_friends[e][1] - 1;
    }
    for (int64_t i = 0; i < g->nodes; i++) {
        g->label[i] = karate_side[i];
        g->word_start[i + 1] = i + 1;
        g->word[i] = i;
        graph_nodes *of = i == 0 || i == KARATE_NODES - 1 ? &g->train : &g->test;
        of->node[of->n++] = i;
    }
    memcpy(g->val.node, g->train.node, (size_t)g->train.n * sizeof *g->train.node);
    g->val.n = g->train.n;
    return 0;
}

/* ---- a generated one ------------------------------------------------------------------------- */

/* A key's words, one after another, as numbers below n. */
typedef struct dice {
    cot_key  key;
    uint64_t rolled;
} dice;

static int64_t roll(dice *d, int64_t n) { return cot_key_fold(d->key, d->rolled++).word[0] % n; }

/* A word of a subject: half of the time one of its own fiftieth part, often its first ones. */
static int64_t draw_word(dice *d, const graph *g, int64_t subject) {
    const int64_t own = 50;
    if (roll(d, 100) < 75) return roll(d, g->words);
    int64_t a = roll(d, own), b = roll(d, own);
    return (subject * own + (a < b ? a : b)) % g->words;
}

static int by_number(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int graph_generate(graph *g, uint64_t seed, char *why, size_t room) {
    enum { WORDS = 20, CITED = 2, TRAIN = 20, VAL = 100 };
    dice d = {cot_key_of(seed), 0};
    *g = (graph){.nodes = 700, .words = 500, .classes = 6, .edges = CITED * 699};
    if (make(g, WORDS * g->nodes, why, room)) return 1;
    int64_t known[6] = {0}, e = 0;
    for (int64_t i = 0; i < g->nodes; i++) {
        int64_t subject = g->label[i] = roll(&d, g->classes), *word = g->word + i * WORDS;
        for (int64_t w = 0; w < WORDS; w++) word[w] = draw_word(&d, g, subject);
        qsort(word, WORDS, sizeof *word, by_number);
        g->word_start[i + 1] = (i + 1) * WORDS;
        /* a paper cites earlier ones, mostly of its own subject */
        for (int64_t c = 0; i > 0 && c < CITED; c++, e++) {
            int64_t other = roll(&d, i);
            for (int tries = 0; tries < 20 && g->label[other] != subject; tries++)
                if (roll(&d, 100) < 60) other = roll(&d, i);
            g->from[e] = i;
            g->to[e] = other;
        }
        graph_nodes *of = known[subject] < TRAIN ? &g->train : g->val.n < VAL ? &g->val : &g->test;
        known[subject]++;
        of->node[of->n++] = i;
    }
    return 0;
}
