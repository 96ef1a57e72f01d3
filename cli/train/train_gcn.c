/* train_gcn.c: a graph network on the karate club, on a generated graph, or on one in a folder, as
 * Kipf and Welling set it up: Adam at 0.01, 16 hidden units, dropout of a half, decay of the first
 * weights in the loss, and a stop when the loss of the validation nodes is above the mean of its
 * last ten. */
#include "train/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/bytes.h"
#include "models/gcn.h"
#include "train/gcn_shown.h"

bool gcn_read_graph(graph *g, const char *from, failure *f) {
    char why[600] = "";
    int  wrong;
    if (strcmp(from, "karate") == 0) wrong = graph_karate(g, why, sizeof why);
    else if (strcmp(from, "generated") == 0) wrong = graph_generate(g, 0, why, sizeof why);
    else wrong = graph_read(g, from, why, sizeof why);
    return !wrong || train_no_data(f, why);
}

static void close_task(void *model) {
    gcn_task *a = model;
    if (!a) return;
    graph_free(&a->g);
    free(a->guess);
    free(a);
}

static void *open_task(const options *o, failure *f) {
    gcn_task *a = calloc(1, sizeof *a);
    if (!a) {
        failure_memory(f);
        return NULL;
    }
    a->from = o->train.data ? o->train.data : "karate";
    bool fine = gcn_read_graph(&a->g, a->from, f);
    if (fine && o->train.has_node && o->train.node >= a->g.nodes)
        fine = failure_usage(f, "--node is %lld; nodes are 0 … %lld", (long long)o->train.node,
                             (long long)a->g.nodes - 1);
    a->guess = fine ? calloc((size_t)a->g.nodes + 1, sizeof *a->guess) : NULL;
    if (a->guess) return a;
    if (fine) failure_memory(f);
    close_task(a);
    return NULL;
}

static void describe(const void *model, char *text, size_t room) {
    const gcn_task *a = model;
    snprintf(text, room, "%s: %lld nodes, %lld edges, %lld words, %lld classes", a->from, (long long)a->g.nodes,
             (long long)a->g.edges, (long long)a->g.words, (long long)a->g.classes);
}

static uint64_t sum_of(uint64_t sum, const int64_t *v, int64_t n) {
    return v ? cot__checksum(sum, v, (size_t)n * sizeof *v) : sum;
}

static bool sum(const void *model, uint64_t *sum, failure *f) {
    const graph *g = &((const gcn_task *)model)->g;
    int64_t      sizes[] = {g->nodes, g->words, g->classes, g->edges, g->train.n, g->val.n, g->test.n};
    (void)f;
    *sum = sum_of(0, sizes, sizeof sizes / sizeof *sizes);
    *sum = sum_of(sum_of(*sum, g->from, g->edges), g->to, g->edges);
    *sum = sum_of(sum_of(*sum, g->word_start, g->nodes + 1), g->word, g->word_start[g->nodes]);
    *sum = sum_of(sum_of(*sum, g->label, g->nodes), g->train.node, g->train.n);
    *sum = sum_of(sum_of(*sum, g->val.node, g->val.n), g->test.node, g->test.n);
    return true;
}

static bool begin(training *r, failure *f) {
    static const char *const names[] = {"seen", "epochs"};
    gcn_task                *a = r->model;
    a->net = (gcn){.g = &a->g, .hidden = r->o->train.width ? r->o->train.width : 16, .dropout = 0.5, .decay = 5e-4};
    a->epochs = 0;
    /* the last losses decide when to stop, so a run that goes on must know them */
    a->extra[0] = (cot_array){COT_F64, COT_SHAPE(GCN_LOOKED_BACK), GCN_LOOKED_BACK, a->seen};
    a->extra[1] = (cot_array){COT_I64, COT_SHAPE(1), 1, &a->epochs};
    r->extras = 2;
    r->extra = a->extra;
    r->extra_names = names;
    gcn_open(&a->net, r->t);
    cot_params_set_user(r->p, &a->net);
    cot_params_init(r->p, gcn_net, a->net.features.values, cot_key_fold(r->key, 0));
    /* they used TensorFlow's Adam */
    r->optim = cot_optim_create(r->p, &(cot_optim_options){.kind = COT_ADAM, .rate = train_rate(r, 0.01),
                                                           .eps_hat = true});
    return train_fine(r, f);
}

static cot_var loss(training *r) {
    gcn_task *a = r->model;
    return gcn_loss(r->p, gcn_net(r->p, a->net.features.values), &a->g.train);
}

static bool validate(training *r) {
    gcn_task *a = r->model;
    cot_var   logits = gcn_net(r->p, a->net.features.values);
    double    loss = cot_value(gcn_loss(r->p, logits, &a->g.val)), mean = 0;
    double    right = a->g.val.n ? (double)gcn_right(logits, &a->g, &a->g.val) / (double)a->g.val.n : NAN;
    for (int k = 0; k < GCN_LOOKED_BACK; k++) mean += a->seen[k] / GCN_LOOKED_BACK;
    bool stop = a->epochs > GCN_LOOKED_BACK && loss > mean;
    a->seen[a->epochs++ % GCN_LOOKED_BACK] = loss;
    r->numbers[r->shown++] = (watch_number){"val_loss", loss};
    r->numbers[r->shown++] = (watch_number){"val_accuracy", right};
    if (r->step <= GCN_EPOCHS) {
        a->curve[0][r->step - 1] = r->loss;
        a->curve[1][r->step - 1] = loss;
    }
    return stop;
}

static int pairs(const training *r, int most, cot_text_pair *out) {
    gcn_task *a = r->model;
    snprintf(a->width, sizeof a->width, "%lld", (long long)a->net.hidden);
    out[0] = (cot_text_pair){"width", a->width};
    return most > 0;
}

static bool test(training *r, failure *f) {
    gcn_task *a = r->model;
    cot_var   logits = gcn_net(r->p, a->net.features.values);
    cot_read_as(cot_argmax(logits, COT_AXES(1)), COT_I64, a->guess, a->g.nodes);
    r->accuracy = a->g.test.n ? (double)gcn_right(logits, &a->g, &a->g.test) / (double)a->g.test.n : NAN;
    return train_fine(r, f);
}

const trainable train_gcn = {
    .name = "gcn",
    .about = "a graph network; --data karate, generated, or a folder of .npy files",
    .steps = 200,
    .every = 1,
    .draws = true,
    .open = open_task,
    .describe = describe,
    .sum = sum,
    .begin = begin,
    .loss = loss,
    .validate = validate,
    .test = test,
    .pairs = pairs,
    .show = gcn_show,
    .show_json = gcn_show_json,
    .close = close_task,
};
