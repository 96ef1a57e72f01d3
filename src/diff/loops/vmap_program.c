/* vmap_program.c: cot_vmap as a program, where no derivative can be asked for. What is played for
 * all elements is a body itself, a loop of one step: it runs as a program, which records nothing,
 * writes no value that a result does not need and holds no more memory than is needed at a time.
 *
 * The body of all elements follows from that of one, so that is what the tape knows the program by
 * (program/known): a batch that is met again is run at once. To make the program costs more than
 * small work, which is recorded the first time that it is met (docs/architecture/diff.md has the
 * measurements). Recorded stays
 *   - what is inside of another body, which is that body's program;
 *   - a body with results that are inputs, or views of them: they share memory;
 *   - one that makes large products, which may wait and never be written;
 *   - one that holds something which needs its tape;
 *   - small work of one or two operations, or whose body cannot be told in words: it holds loops,
 *     solvers, functions of the user's, or constants of more than 256 bytes. */
#include "diff/batch/vmap.h"
#include "diff/loops/loop.h"
#include "ops/precision.h"
#include "pending/pending.h"
#include "tape/scope.h"

#include <string.h>

/* the name of the loop; that of the body of one element is cot__vmap_name */
static const char NAME[] = "vmap";

int64_t cot__vmap_program_from = 1 << 20;

/* FEW: a run of a program costs as much as to record so many operations. OFTEN: programs of small
 * work are worth the passes when they have been found so often. */
enum { FEW = 2, OFTEN = 16 };

/* Is it a product that is much larger than its factors? Recorded, such a one may never be written
 * (src/pending/patient.c). */
static bool outgrows_factors(const cot_tape *t, uint32_t node, int64_t extent) {
    const cot__node *n = &t->nodes[node];
    int64_t          read = 0;
    if (cot__op_of(n->op)->kind != KIND_BILINEAR) return false;
    for (int k = 0; k < cot__nargs(n); k++) read = cot__size_add(read, (int64_t)cot__bytes_at(t, cot__arg(n, k)));
    return cot__recipe_pays((size_t)cot__size_mul((int64_t)cot__bytes_at(t, node), extent),
                            (size_t)cot__size_mul(read, extent));
}

/* May it be one, as far as its operations can tell: does none need the tape, or is better left to
 * wait? */
static bool may_be_program(const cot_tape *t, const cot__mapping *b) {
    bool may = !t->mode.body && b->r->m > 0 && cot__vmap_program_from < INT64_MAX;
    for (uint32_t s = 0; s < b->r->steps && may; s++)
        may = !cot__op_of(t->nodes[b->r->node[s]].op)->needs_tape && !outgrows_factors(t, b->r->node[s], b->extent);
    return may;
}

/* A program saves the writing of what elementwise operations give; kernels of others do the same
 * either way. */
static bool is_large(const cot_tape *t, const cot__mapping *b) {
    enum { SAVED = 4 }; /* what such an element counts for */
    int64_t all = 0;
    for (uint32_t s = 0; s < b->r->steps; s++) {
        uint32_t node = b->r->node[s];
        int64_t  counts = t->nodes[node].op < OP_structural ? SAVED : 1;
        all = cot__size_add(all, cot__size_mul(cot__size_at(t, node), counts));
    }
    return cot__size_mul(all, b->extent) >= cot__vmap_program_from;
}

/* Is a result an input, or a view of one? Then it shares its memory, and writes to one of them are
 * seen by the other; results of a program are new. */
static bool find_views(cot_tape *t, const cot__region *r, bool *found) {
    size_t          outer = (size_t)cot__mapping_values(r) + r->fixed, places = outer + r->steps;
    const uint64_t *ref = r->ref;
    bool           *is = cot__arena(t, places + 1, NAME);
    if (!is) return false;
    memset(is, true, outer);
    for (uint32_t s = 0; s < r->steps; s++) {
        const cot__node *n = &t->nodes[r->node[s]];
        is[outer + s] = cot__op_of(n->op)->view && ref[0] != COT__REF_NUMBER && is[ref[0]];
        ref += cot__nargs(n);
    }
    *found = false;
    for (int k = 0; k < r->m; k++) *found |= is[ref[k]];
    return true;
}

/* Does a function in the body of one element need its tape? */
static bool can_be_program(cot_tape *t, const cot__region *r) {
    cot__not_yet  not_yet;
    cot__program *p = cot__region_lower(t, r, &t->al, &not_yet);
    cot__program_release(p);
    return p != NULL;
}

static int play_all(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const cot__mapping *b = user;
    (void)n, (void)m;
    return cot__play_batched(xs[0].tape, NAME, b->r, xs, b->given, b->extent, ys, b->is) ? 0 : 1;
}

/* The body of all elements; nothing is computed while it is recorded (tape/examples.h). Its inputs
 * are those of the body of one, and its captures; it captures fixed values of that. */
static const cot__region *record_all(cot_tape *t, cot__mapping *b) {
    cot__scope scope = cot__scope_open(t, t->active_mask);
    t->mode.compiling = true;
    const cot__region *all = cot__region_record(t, NAME, play_all, b, cot__mapping_values(b->r), b->values, b->r->m);
    cot__scope_close(t, &scope);
    return all;
}

const cot__region *cot__vmapped_body(cot_tape *t, const cot__vmapped *of, const uint32_t *args) {
    int           n = cot__mapping_values(of->one);
    cot_var      *values = cot__arena(t, ((size_t)n + 1) * sizeof *values, NAME);
    bool         *is = values ? cot__arena(t, (size_t)of->one->m, NAME) : NULL;
    cot_precision policy = cot__precision_pause(t);
    for (int k = 0; is && k < n; k++) values[k] = VAR(t, args[k]);
    const cot__region *all = is ? record_all(t, &(cot__mapping){of->one, values, of->given, is, of->extent}) : NULL;
    t->precision = policy;
    return all;
}

/* The program of all elements, and what goes with it: of each result whether it has the batch, then
 * of each further input which fixed value it is. */
typedef struct ready { cot__program *program; uint64_t known; int32_t *more; bool told; } ready;

/* False: it reads something else from outside, or there is an error. */
static bool tell_more(const cot__mapping *b, const cot__region *all, int32_t *more) {
    const cot__region *r = b->r;
    for (int k = 0; k < r->m; k++) *more++ = b->is[k];
    for (int k = 0; k < all->captures; k++, more++) {
        uint32_t at = 0;
        while (at < r->fixed && r->constant[at] != all->captured[k]) at++;
        if (at == r->fixed) return false;
        *more = (int32_t)at;
    }
    return true;
}

/* Makes the program; out->program is NULL where that cannot be. What is recorded for it is
 * forgotten: the program is all that a run needs. */
static void make(cot_tape *t, cot__mapping *b, const cot__words *words, ready *out) {
    cot__not_yet       not_yet;
    cot_mark           before = cot__mark(t);
    /* what is told in words holds no functions that might */
    const cot__region *all = !words->failed || can_be_program(t, b->r) ? record_all(t, b) : NULL;
    if (all && tell_more(b, all, out->more)) {
        uint32_t count = (uint32_t)(b->r->m + all->captures);
        if (!words->failed)
            out->program = cot__region_make_known(t, all, words, count, out->more, &not_yet, &out->known);
        else /* it has large constants, which that of all elements captures */
            out->program = cot__program_share(cot__region_program(t, all)), out->known = all->known;
    }
    if (t->status == COT_OK) cot__rewind(t, before);
}

/* The program of a batch like this one was made before? Then this is all. *again: it was asked for,
 * at least. */
static bool find(cot_tape *t, const cot__mapping *b, const cot__words *words, bool large, ready *out, bool *again) {
    cot__known_program found = cot__known_find(cot__tape_known(t), words, large ? 1 : OFTEN);
    *again = found.again;
    if (!found.number) return false;
    out->program = cot__program_share(found.program);
    out->known = found.number;
    memcpy(out->more, found.more, found.count * sizeof *found.more);
    for (int k = 0; k < b->r->m; k++) b->is[k] = out->more[k];
    return true;
}

static void put_layout(const cot_tape *t, uint32_t node, cot__words *w) {
    cot__view v = cot__layout_at(t, node);
    bool      usual = cot__is_contiguous(v.ndim, v.shape, v.stride);
    cot__words_put(w, usual);
    if (!usual) cot__words_put_bytes(w, v.stride, (size_t)v.ndim * sizeof *v.stride);
}

/* All that the program depends on, and a run of it: how its inputs lie, too. */
static void describe(cot_tape *t, const cot__mapping *b, cot__words *w) {
    const cot__region *r = b->r;
    cot__words_put(w, UINT64_MAX); /* a body by itself begins with its name */
    cot__region_describe(t, r, w);
    cot__words_put(w, (uint64_t)b->extent);
    cot__words_put_bytes(w, b->given, (size_t)cot__mapping_values(r) * sizeof *b->given);
    for (int k = 0; k < cot__mapping_values(r); k++) put_layout(t, cot__index(b->values[k]), w);
    for (uint32_t k = 0; k < r->fixed && !w->failed; k++) put_layout(t, r->constant[k], w);
}

/* Finds the program, or makes it where that is worth it: of large work at once, of small work the
 * second time, since the first costs less as it is. */
static bool get_ready(cot_tape *t, cot__mapping *b, ready *out) {
    cot__words words = {.al = t->al};
    bool       large = is_large(t, b), again;
    if (!large && b->r->steps <= FEW) return false;
    *out = (ready){.more = cot__arena(t, ((size_t)b->r->m + b->r->fixed + 1) * sizeof *out->more, NAME)};
    if (!out->more) return false;
    describe(t, b, &words);
    out->told = !words.failed;
    if (!find(t, b, &words, large, out, &again) && (large || again)) make(t, b, &words, out);
    cot__words_free(&words);
    return out->program;
}

static bool record_loop(cot_tape *t, const ready *p, const cot__mapping *b, cot_var *ys) {
    int                n = cot__mapping_values(b->r), reads = (int)p->program->inputs;
    const cot__region *all = cot__region_of_program(t, NAME, p->program, p->known);
    cot__loop         *l = all ? cot__arena(t, sizeof *l, NAME) : NULL;
    cot__vmapped      *of = l ? cot__arena(t, sizeof *of, NAME) : NULL;
    uint32_t          *args = of ? cot__arena(t, ((size_t)reads + 1) * sizeof *args, NAME) : NULL;
    if (!args) return false;
    *of = (cot__vmapped){b->r, b->given, b->extent, p->told};
    *l = (cot__loop){.name = NAME, .body = {all, NULL}, .consts = reads, .nys = b->r->m, .once = true, .length = 1,
                     .states = 1, .vmapped = of};
    for (int k = 0; k < reads; k++)
        args[k] = k < n ? cot__index(b->values[k]) : b->r->constant[p->more[b->r->m + k - n]];
    if (cot__loop_record(t, l, args, ys) != COT_OK) cot__error_in_function(t, "body", NAME);
    return t->status == COT_OK;
}

bool cot__vmap_as_program(cot_tape *t, cot__mapping *b, cot_var *ys, bool *done) {
    bool  views;
    ready p = {0};
    *done = false;
    if (!may_be_program(t, b)) return true;
    if (!find_views(t, b->r, &views)) return false;
    if (views) return true;
    cot__scratch_seen seen = cot__scratch_watch(t);
    *done = get_ready(t, b, &p) && record_loop(t, &p, b, ys);
    cot__program_release(p.program);
    cot__scratch_watched(t, seen);
    return t->status == COT_OK;
}
