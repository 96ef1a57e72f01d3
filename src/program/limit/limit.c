/* limit.c: looks for the largest budget with which a run keeps to the limit. The larger the budget,
 * the less is computed again.
 *
 * Budgets are the steps of a ladder, which does not depend on the limit: so a limit that was told
 * to be the smallest one is found again. A smaller budget mostly makes a smaller run; where that is
 * not so, steps are tried one by one before a limit is refused, until runs become no smaller.
 * Smaller budgets gain nothing where the program is too long already, or where the lists of its
 * operations, of which they need more, take as many bytes as a whole run does that was found. None
 * of this depends on the limit. */
#include "program/limit/limit.h"
#include "base/file/store.h"
#include "program/limit/again.h"
#include "program/passes/rewrite.h"
#include "program/plan.h"
#include "program/run.h"

/* PATIENCE: after so many steps without a smaller run there is none to come. */
enum { STEPS = 48, FINER = 4, PATIENCE = 8 };
#define STEP 0.93 /* of the budget before; the last is 3 % of the first */

typedef struct search {
    const cot__limit_options *o;
    cot__units                units;
    int64_t                   first; /* the arena without a limit */
    cot__program             *best;  /* the one of the largest budget that fits */
    int64_t                   smallest; /* bytes of the smallest run that was found, … */
    cot__program             *small; /* … of this program */
    int64_t                   last;  /* bytes of the run that was measured last */
    bool                      failed; /* the caller was told why */
} search;

static int64_t budget_of(const search *s, int step) {
    double budget = (double)s->first;
    for (int i = 0; i < step; i++) budget *= STEP;
    return step == STEPS ? 0 : (int64_t)budget;
}

static void take(cot__program **to, const cot__program *p) {
    cot__program_release(*to);
    *to = cot__program_share(p);
}

/* *lists: those of the bytes that are not the arena's. */
static bool measure(search *s, const cot__program *p, int64_t *bytes, int64_t *lists) {
    const cot__limit_options *o = s->o;
    if (!cot__run_measure_arena(p, o->backend, o->al, o->lent, o->caller, bytes, lists))
        return s->failed = true, false;
    *bytes += o->besides;
    *lists = *bytes - *lists;
    if (s->small && *bytes >= s->smallest) return true;
    s->smallest = *bytes;
    take(&s->small, p);
    return true;
}

/* What was made at first and is read nowhere, because all read it from where it was made again,
 * goes. NULL: there is none within this budget (*too_long), or the caller was told why. */
static cot__program *build(search *s, int64_t budget, bool *too_long) {
    cot__pass_options options = {.al = s->o->al, .caller = s->o->caller, .backend = s->o->backend};
    bool              spills = s->o->lent && s->o->lent->spill;
    cot__program     *made = cot__compute_again(&s->units, budget, spills, &options, too_long);
    if (!made) return s->failed |= !*too_long, NULL;
    cot__program *lean = cot__pass_dead(made, &options);
    cot__program_release(made);
    s->failed |= !lean;
    return lean;
}

/* LAST: it does not fit, and no smaller budget does. */
typedef enum outcome { FITS, TOO_LARGE, LAST } outcome;

/* Does a run keep to the limit with this budget? Then it is the best one. */
static outcome attempt(search *s, int64_t budget) {
    int64_t       bytes, lists;
    bool          too_long = false;
    cot__program *p = build(s, budget, &too_long);
    outcome       end = too_long ? LAST : TOO_LARGE;
    if (p && measure(s, p, &bytes, &lists)) {
        s->last = bytes;
        if (bytes <= s->o->bytes) end = FITS, take(&s->best, p);
        else if (lists >= s->smallest) end = LAST;
    }
    cot__program_release(p);
    return end;
}

/* Between a budget that is too large and one that fits. */
static void look_closer(search *s, int64_t large, int64_t fitting) {
    for (int i = 0; i < FINER && !s->failed; i++) {
        int64_t middle = fitting + (large - fitting) / 2;
        if (attempt(s, middle) == FITS) fitting = middle;
        else large = middle;
    }
}

/* From the largest budget down, as long as something is gained. The step that fits, or -1. */
static int look_at_all(search *s) {
    int64_t smallest = INT64_MAX;
    for (int i = 0, idle = 0; i <= STEPS && idle < PATIENCE && !s->failed; i++, idle++) {
        outcome end = attempt(s, budget_of(s, i));
        if (end == FITS) return i;
        if (end == LAST) break;
        if (s->last < smallest) smallest = s->last, idle = 0;
    }
    return -1;
}

static void look(search *s) {
    int large = -1, small = STEPS + 1, fitting = -1;
    while (small - large > 1 && !s->failed) {
        int     middle = large + (small - large) / 2;
        outcome end = attempt(s, budget_of(s, middle));
        if (end == FITS) fitting = middle;
        *(end == TOO_LARGE ? &large : &small) = middle;
    }
    if (fitting < 0) fitting = look_at_all(s);
    if (fitting > 0) look_closer(s, budget_of(s, fitting - 1), budget_of(s, fitting));
}

static double work_in(const cot__program *p) {
    double sum = 0;
    for (uint32_t k = 0; k < p->operations; k++) sum += cot__is_fetch(p, k) ? 0 : cot__work_of(p, k);
    return sum;
}

double cot__limit_price(const cot__program *p) {
    double moved = 0;
    for (uint32_t k = 0; k < p->operations; k++)
        if (cot__is_fetch(p, k)) moved += (double)cot__value_bytes(p, p->operation[k].result);
    return work_in(p) + moved * (COT__WRITE_BYTE + COT__READ_BYTE);
}

static void refuse(search *s) {
    const cot__limit_options *o = s->o;
    cot__plan                 plan;
    if (s->failed || !cot__plan_open_lent(&plan, s->small, o->backend, o->al, NULL, true, o->lent, o->caller)) return;
    const char *name = s->small->operations ? cot__operation_name(s->small, plan.fullest) : "no operation";
    cot__refuse(o->caller, COT_MEMORY, "a memory limit of %lld bytes cannot be reached, %s needs most; the smallest "
                "that can be is %lld", (long long)o->bytes, name, (long long)s->smallest);
    cot__plan_close(&plan);
}

static void search_with(search *s, const cot__plan *plan) {
    s->first = plan->bytes;
    s->failed = !cot__units_open(&s->units, plan, s->o->al, s->o->caller);
    if (s->failed) return;
    look(s);
    if (!s->best) refuse(s);
    cot__units_close(&s->units);
}

/* Does it keep to the limit as it is? */
static bool fits(search *s, const cot__program *p) {
    int64_t bytes, lists;
    return measure(s, p, &bytes, &lists) && bytes <= s->o->bytes;
}

cot__program *cot__limit(const cot__program *p, const cot__limit_options *o, cot__limit_way *how) {
    search    s = {.o = o, .smallest = o->unlimited, .small = cot__program_share(p)};
    cot__plan plan;
    *how = (cot__limit_way){0, true};
    if (fits(&s, p)) s.best = cot__program_share(p);
    else if (!s.failed && o->unlimited <= o->bytes) s.best = cot__program_share(p), how->lends = false;
    else if (!s.failed && o->apart != p && fits(&s, o->apart)) s.best = cot__program_share(o->apart);
    else if (!s.failed && cot__plan_open_lent(&plan, o->apart, o->backend, o->al, NULL, true, o->lent, o->caller)) {
        search_with(&s, &plan);
        cot__plan_close(&plan);
    }
    cot__program_release(s.small);
    if (s.failed) cot__program_release(s.best), s.best = NULL;
    if (s.best && work_in(p) > 0) how->again = work_in(s.best) / work_in(p) - 1;
    return s.best;
}

/* ---- the least ------------------------------------------------------------------------------- */

bool cot__again_always = false;

static void pass_by(const cot__caller *c, cot_status code, const char *text) { (void)c, (void)code, (void)text; }
static void pass_by_note(const cot__caller *c, const char *text) { (void)c, (void)text; }

cot__program *cot__limit_tightest(const cot__program *p, const cot__backend *backend, const cot_allocator *al) {
    cot__caller        caller = {"program", NULL, pass_by, pass_by_note, NULL};
    cot__limit_options o = {.al = al, .backend = backend, .caller = &caller};
    search             s = {.o = &o};
    cot__program      *made = NULL;
    cot__plan          plan;
    bool               too_long;
    if (!cot__plan_open(&plan, p, backend, al, NULL, true, &caller)) return cot__program_share(p);
    if (cot__units_open(&s.units, &plan, al, &caller)) {
        made = build(&s, 0, &too_long);
        cot__units_close(&s.units);
    }
    cot__plan_close(&plan);
    return made ? made : cot__program_share(p);
}
