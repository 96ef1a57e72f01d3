/* train_mnist.c: digits. Of a folder with the 10,000 of the test set alone, the first 9,000 are
 * trained on and the others tested. */
#include "train/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/bytes.h"
#include "base/number.h"
#include "data/file/source.h"
#include "draw/pictures.h"
#include "models/mnist.h"
#include "train/pictures.h"

enum { TESTED = 1000, AT_ONCE = 250, DRAWN = 60 };

typedef struct task {
    const char  *folder;
    mnist_digits read[2]; /* the files; of one set alone the second is empty */
    mnist_digits train, test; /* parts of them */
    int64_t     *guess; /* (test.n), after the test */
    cot_array    arrays[2];
    int64_t      batch;
} task;

static void close_task(void *model) {
    task *a = model;
    if (!a) return;
    mnist_free(&a->read[0]);
    mnist_free(&a->read[1]);
    free(a->guess);
    free(a);
}

static mnist_digits part(const mnist_digits *all, int64_t from, int64_t n) {
    return (mnist_digits){n, all->pixels + from * MNIST_PIXELS, all->labels + from};
}

/* Is any of the files to train on there? Then all of them must be good. */
static bool has_train(const char *folder) {
    static const char *const names[] = {"images-idx3-ubyte", "labels-idx1-ubyte"};
    char                     path[4096];
    bool                     found = false;
    for (int k = 0; k < 4; k++) {
        snprintf(path, sizeof path, "%s/train-%s%s", folder, names[k / 2], k % 2 ? ".gz" : "");
        found |= cot__source_exists(path);
    }
    return found;
}

static bool read_digits(task *a, failure *f) {
    char why[900];
    if (mnist_read(&a->read[0], a->folder, "t10k", why, sizeof why))
        return train_no_data(f, why);
    if (has_train(a->folder)) {
        if (mnist_read(&a->read[1], a->folder, "train", why, sizeof why)) return train_no_data(f, why);
        if (a->read[1].n < 1)
            return failure_set(f, EXIT_RUN, "file", "[train] the files of %s to train on have no digits", a->folder);
        a->train = part(&a->read[1], 0, a->read[1].n);
        a->test = part(&a->read[0], 0, a->read[0].n);
        return true;
    }
    if (a->read[0].n <= TESTED)
        return failure_set(f, EXIT_RUN, "file", "[train] %s has %lld digits; there must be more than %d", a->folder,
                           (long long)a->read[0].n, TESTED);
    a->train = part(&a->read[0], 0, a->read[0].n - TESTED);
    a->test = part(&a->read[0], a->read[0].n - TESTED, TESTED);
    return true;
}

static void *open_task(const options *o, failure *f) {
    task *a = o->train.data ? calloc(1, sizeof *a) : NULL;
    if (!o->train.data)
        failure_usage(f, "mnist needs --data DIR, a folder with t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, "
                         "gzipped or not");
    else if (!a)
        failure_memory(f);
    if (!a) return NULL;
    a->folder = o->train.data;
    a->batch = o->train.batch ? o->train.batch : 64;
    if (read_digits(a, f)) {
        a->guess = calloc((size_t)a->test.n, sizeof *a->guess);
        if (a->guess) return a;
        failure_memory(f);
    }
    close_task(a);
    return NULL;
}

static void describe(const void *model, char *text, size_t room) {
    const task *a = model;
    snprintf(text, room, "%s: %lld digits to train, %lld to test", a->folder, (long long)a->train.n,
             (long long)a->test.n);
}

static bool sum(const void *model, uint64_t *sum, failure *f) {
    const mnist_digits *d = &((const task *)model)->train;
    (void)f;
    *sum = cot__checksum(0, d->pixels, (size_t)d->n * MNIST_PIXELS * sizeof *d->pixels);
    *sum = cot__checksum(*sum, d->labels, (size_t)d->n * sizeof *d->labels);
    return true;
}

static bool begin(training *r, failure *f) {
    task        *a = r->model;
    cot_schedule once = {.kind = COT_RATE_ONE_CYCLE, .rate = train_rate(r, 3e-3), .steps = r->steps};
    cot_var      x = cot_full(r->t, COT_F32, COT_SHAPE(1, 1, MNIST_SIDE, MNIST_SIDE), 0);
    a->arrays[0] = (cot_array){COT_F32, COT_SHAPE(a->train.n, 1, MNIST_SIDE, MNIST_SIDE), a->train.n * MNIST_PIXELS,
                               a->train.pixels};
    a->arrays[1] = (cot_array){COT_I64, COT_SHAPE(a->train.n), a->train.n, a->train.labels};
    cot_params_init(r->p, mnist_net, x, cot_key_fold(r->key, 0));
    cot_optim_options adam = mnist_optim;
    adam.schedule = &once;
    r->optim = cot_optim_create(r->p, &adam);
    r->loader = cot_loader_create(
        2, a->arrays,
        &(cot_loader_options){.batch = a->batch, .shuffle = true, .drop_last = true, .key = cot_key_fold(r->key, 1)});
    return train_loads(r, f) && train_fine(r, f);
}

static void shapes_of(const training *r, shapes *of) {
    const task *a = r->model;
    *of = (shapes){.batch = a->batch, .precision = r->precision};
}

/* Multiplications and additions, of which the way back has twice as many. */
static void work(const training *r, double *examples, double *flops) {
    const task *a = r->model;
    *examples = (double)a->batch;
    *flops = 3 * 2 * (double)a->batch * (784 * 16 * 25 + 196 * 32 * 16 * 25 + 1568 * 10);
}

static cot_var loss(training *r) {
    static const char *const names[] = {"images", "labels"};
    const cot_array         *b = train_batch(r, 2, names);
    if (!b) return COT_NONE;
    cot_var x = cot_wrap(r->t, COT_F32, b[0].shape, b[0].data), labels = cot_wrap(r->t, COT_I64, b[1].shape, b[1].data);
    return cot_softmax_cross_entropy(mnist_net(r->p, x), labels);
}

/* Guesses digits from, from + 1, …; how many are right. */
static int64_t guess(training *r, const mnist_digits *d, int64_t from, int64_t n, int64_t *to) {
    cot_mark mark = cot_tape_mark(r->t);
    int64_t  right = 0;
    cot_var  x = cot_data(r->t, COT_F32, COT_SHAPE(n, 1, MNIST_SIDE, MNIST_SIDE), d->pixels + from * MNIST_PIXELS);
    cot_read_as(cot_argmax(mnist_net(r->p, x), COT_AXES(1)), COT_I64, to, n);
    if (cot_tape_status(r->t)) return 0; /* rewinding would forget why */
    for (int64_t k = 0; k < n; k++) right += to[k] == d->labels[from + k];
    cot_tape_rewind(r->t, mark);
    return right;
}

static bool test(training *r, failure *f) {
    task   *a = r->model;
    /* a limit that holds for steps is to hold for the test */
    int64_t right = 0, most = r->limit && a->batch < AT_ONCE ? a->batch : AT_ONCE;
    for (int64_t k = 0; k < a->test.n; k += most)
        right += guess(r, &a->test, k, a->test.n - k < most ? a->test.n - k : most, a->guess + k);
    r->accuracy = (double)right / (double)a->test.n;
    return train_fine(r, f);
}

static void draw_wrong(training *r, FILE *out) {
    static char  text[DRAWN][16];
    static float pixels[DRAWN][MNIST_PIXELS];
    const char  *captions[DRAWN];
    task        *a = r->model;
    int          n = 0;
    for (int64_t k = 0; k < a->test.n && n < DRAWN; k++) {
        if (a->guess[k] == a->test.labels[k]) continue;
        snprintf(text[n], sizeof text[n], "%d → %d", (int)a->test.labels[k], (int)a->guess[k]);
        memcpy(pixels[n], a->test.pixels + k * MNIST_PIXELS, sizeof pixels[n]);
        captions[n] = text[n];
        n++;
    }
    picture_grid g = {.title = "Digits that were taken for others",
                      .description = "Each with what it is and what it was taken for.",
                      .n = n, .columns = 10, .height = MNIST_SIDE, .width = MNIST_SIDE,
                      .pixels = pixels[0], .captions = captions};
    picture_images(out, &g);
}

static bool show(training *r, FILE *out, look how, failure *f) {
    task *a = r->model;
    int   of[10] = {0}, right[10] = {0};
    (void)how;
    for (int64_t k = 0; k < a->test.n; k++) {
        of[a->test.labels[k]]++;
        right[a->test.labels[k]] += a->guess[k] == a->test.labels[k];
    }
    fprintf(out, "\ndigit   tested   right\n");
    for (int k = 0; k < 10; k++)
        cot__write(out, "%5d %8d %6.1f %%\n", k, of[k], of[k] ? 100.0 * right[k] / of[k] : NAN);
    return !r->o->train.pictures || picture_file(r, r->o->train.pictures, "wrong.svg", draw_wrong, out, f);
}

const trainable train_mnist = {
    .name = "mnist",
    .about = "digits by a convolutional network; --data a folder of IDX files",
    .steps = 1400,
    .draws = true,
    .open = open_task,
    .scheduled = true,
    .describe = describe,
    .sum = sum,
    .begin = begin,
    .shapes = shapes_of,
    .work = work,
    .loss = loss,
    .test = test,
    .show = show,
    .close = close_task,
};
