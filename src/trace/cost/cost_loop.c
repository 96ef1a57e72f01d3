/* cost_loop.c: states kept and steps run again on the way back through many steps. */
#include "trace/cost/cost_loop.h"

#include <stdlib.h>

#include "program/memory/revolve.h"
#include "trace/cost/cost.h"
#include "trace/lines/grid.h"

/* ---- the schedule ---------------------------------------------------------------------------- */

/* The states that are kept, as diff/loops/loop_states.c keeps them: `room` of them, and beyond
 * those the last one, from which the way back begins. The first state is an operand of the
 * loop. */
typedef struct keeper {
    int64_t *at;
    int64_t  kept, room, spare, held, runs;
    void (*visit)(void *, cot__loop_event, int64_t, int64_t);
    void    *to;
} keeper;

static void tell(const keeper *s, cot__loop_event what, int64_t from, int64_t end) {
    if (s->visit) s->visit(s->to, what, from, end);
}

static int64_t next_kept(const keeper *s, int64_t room, int64_t k, int64_t last) {
    int64_t steps = last - k + 1, states = room - s->kept + 1;
    return steps >= 2 && states >= 2 ? k + cot__revolve_split(steps, states) : -1;
}

static void keep(keeper *s, int64_t k) {
    s->at[s->kept++] = k;
    if (s->held < s->kept + 1) s->held = s->kept + 1;
    tell(s, COT__LOOP_KEEP, k, k);
}

static void run_steps(keeper *s, int64_t from, int64_t end) {
    if (from == end) return;
    s->runs += end - from;
    tell(s, COT__LOOP_RUN, from, end);
}

static void forward(keeper *s, int64_t depth) {
    int64_t at = 0, next = next_kept(s, s->room, 0, depth - 1);
    for (; next > 0; next = next_kept(s, s->room, at, depth - 1)) {
        run_steps(s, at, next);
        keep(s, at = next);
    }
    run_steps(s, at, depth - 1);
    if (at < depth - 1) keep(s, depth - 1);
    run_steps(s, depth - 1, depth);
}

/* To the state before step k, from the last kept state. */
static void reach(keeper *s, int64_t k) {
    while (s->kept && s->at[s->kept - 1] > k) s->spare += --s->kept < s->room;
    int64_t from = s->kept ? s->at[s->kept - 1] : 0, room = s->kept + s->spare, next = next_kept(s, room, from, k);
    while (next >= 0 && next < k) {
        run_steps(s, from, next);
        keep(s, from = next);
        s->spare--;
        next = next_kept(s, room, from, k);
    }
    run_steps(s, from, k);
}

int64_t cot__loop_schedule(int64_t depth, int64_t states, int64_t *held,
                           void (*visit)(void *to, cot__loop_event what, int64_t from, int64_t end), void *to) {
    int64_t room = states < depth ? states : depth;
    keeper  s = {.room = room, .visit = visit, .to = to, .held = 1};
    s.at = malloc(((size_t)room + 2) * sizeof *s.at);
    if (!s.at) return 0;
    forward(&s, depth);
    for (int64_t k = depth; k-- > 0;) {
        reach(&s, k);
        s.runs++;
        tell(&s, COT__LOOP_BACK, k, k);
    }
    free(s.at);
    *held = s.held;
    return s.runs;
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* The least c with c·c >= n. */
static int64_t root_of(int64_t n) {
    int64_t c = (int64_t)sqrt((double)n);
    while (c * c < n) c++;
    while (c > 1 && (c - 1) * (c - 1) >= n) c--;
    return c;
}

/* Of so much of the batch as is on the tape at once. */
static double state_bytes(const cot__loop_sizes *s, int64_t part) {
    return (double)(s->bytes ? s->bytes : 8) * (double)s->width * (double)part;
}

static cot__loop_plan plan(const char *name, const cot__loop_sizes *sizes, int64_t part, int64_t kept, int64_t runs) {
    cot__cost one;
    cot__cost_of_sizes(&one, 1, 1);
    double state = state_bytes(sizes, part);
    return (cot__loop_plan){name, kept, runs, (double)runs + one.reverse_sweep * (double)sizes->depth,
                            state * (double)kept, NULL};
}

/* The fastest that fits; where none does, the smallest. */
static bool better(const cot__loop_plan *a, const cot__loop_plan *b, double limit) {
    if ((a->bytes <= limit && b->bytes <= limit) || a->bytes == b->bytes) return a->time < b->time;
    return a->bytes < b->bytes;
}

bool cot__loop_plans(const cot__loop_sizes *sizes, cot__loop_plan plans[COT__LOOP_PLANS]) {
    int64_t n = sizes->depth, c = root_of(n), held = 0, runs = cot__loop_schedule(n, sizes->states, &held, NULL, NULL);
    if (runs == 0) return false;
    /* the starts of all stretches, and the states within one of them */
    int64_t stretches = (n + c - 1) / c, within = c - 1;
    int64_t whole = sizes->batch, part = (whole + sizes->micro - 1) / sizes->micro;
    plans[COT__PLAIN] = plan("plain", sizes, whole, n, n);
    plans[COT__SQRT] = plan("sqrt", sizes, whole, stretches + within, 2 * n);
    plans[COT__BINOMIAL] = plan("binomial", sizes, whole, held, runs);
    plans[COT__MICRO] = plan("micro", sizes, part, n, n);
    plans[COT__LIMIT] = (cot__loop_plan){0};
    if (sizes->limit <= 0) return true;
    plans[COT__LIMIT] = plans[COT__PLAIN];
    if (plans[COT__PLAIN].bytes > sizes->limit) {
        /* besides the first and the last; one at least, however small the limit */
        double room = floor(sizes->limit / state_bytes(sizes, whole));
        runs = cot__loop_schedule(n, room > 3 ? (int64_t)room - 2 : 1, &held, NULL, NULL);
        cot__loop_plan others[] = {plans[COT__SQRT], plan("binomial", sizes, whole, held, runs)};
        for (int k = 0; k < COUNTOF(others); k++)
            if (better(&others[k], &plans[COT__LIMIT], sizes->limit)) plans[COT__LIMIT] = others[k];
    }
    plans[COT__LIMIT].as = plans[COT__LIMIT].name;
    plans[COT__LIMIT].name = "limit";
    return runs != 0;
}

bool cot__loop_plan_fits(const cot__loop_sizes *sizes, const cot__loop_plan plans[COT__LOOP_PLANS]) {
    return sizes->limit <= 0 || plans[COT__LIMIT].bytes <= sizes->limit || plans[COT__MICRO].bytes <= sizes->limit;
}

/* ---- shown ----------------------------------------------------------------------------------- */

static void event_json(void *to, cot__loop_event what, int64_t from, int64_t end) {
    static const char *const names[] = {"keep", "run", "back"};
    cot__json               *j = to;
    cot__json_open(j, '[');
    cot__json_string(j, names[what]);
    cot__json_integer(j, from);
    if (what == COT__LOOP_RUN) cot__json_integer(j, end);
    cot__json_close(j, ']');
}

static void integer(cot__json *j, const char *name, int64_t v) {
    cot__json_key(j, name);
    cot__json_integer(j, v);
}

bool cot__loop_cost_json(cot__json *j, const cot__loop_sizes *sizes) {
    cot__loop_plan plans[COT__LOOP_PLANS];
    int64_t        held;
    if (!cot__loop_plans(sizes, plans)) return false;
    cot__json_open(j, '{');
    integer(j, "depth", sizes->depth);
    integer(j, "width", sizes->width);
    integer(j, "batch", sizes->batch);
    integer(j, "states", sizes->states);
    integer(j, "micro", sizes->micro);
    integer(j, "bytes", sizes->bytes ? sizes->bytes : 8);
    if (sizes->limit > 0) cot__json_key(j, "limit"), cot__json_number(j, sizes->limit);
    cot__json_key(j, "plans");
    cot__json_open(j, '[');
    for (int k = 0; k < COT__LOOP_PLANS && plans[k].name; k++) {
        cot__json_open(j, '{');
        cot__json_key(j, "name"), cot__json_string(j, plans[k].name);
        integer(j, "kept", plans[k].kept);
        integer(j, "runs", plans[k].runs);
        cot__json_key(j, "time"), cot__json_number(j, plans[k].time);
        cot__json_key(j, "bytes"), cot__json_number(j, plans[k].bytes);
        if (plans[k].as) cot__json_key(j, "as"), cot__json_string(j, plans[k].as);
        cot__json_close(j, '}');
    }
    cot__json_close(j, ']');
    if (sizes->depth <= COT__LOOP_SHOWN) {
        cot__json_key(j, "schedule");
        cot__json_open(j, '[');
        if (cot__loop_schedule(sizes->depth, sizes->states, &held, event_json, j) == 0) return false;
        cot__json_close(j, ']');
    }
    cot__json_close(j, '}');
    return true;
}

/* Of micro-batches the limit says only whether they keep to it: they are another batch. */
static void say_what_fits(FILE *out, const cot__loop_sizes *sizes, const cot__loop_plan *plans) {
    const cot__loop_plan *found = &plans[COT__LIMIT], *micro = &plans[COT__MICRO];
    char                  a[32];
    bool                  parts = sizes->micro > 1 && micro->bytes <= sizes->limit;
    fprintf(out, "limit: the fastest with the whole batch at once within %s byte%s, which is %s\n",
            cot__shortest(sizes->limit, a), sizes->limit == 1 ? "" : "s", found->as);
    if (found->bytes > sizes->limit)
        fputs(parts ? "       none keeps to it, this is the smallest; micro does\n"
                    : "       less than any plan needs: this is the smallest\n", out);
    else if (parts && micro->time < found->time)
        fprintf(out, "       micro keeps to it too, in a time of %s steps\n", cot__shortest(micro->time, a));
}

bool cot__loop_cost_table(FILE *out, const cot__loop_sizes *sizes) {
    cot__loop_plan plans[COT__LOOP_PLANS];
    char           a[32];
    if (!cot__loop_plans(sizes, plans)) return false;
    cot__grid g = {.columns = 5, .column = {COT__LEFT, COT__RIGHT, COT__RIGHT, COT__RIGHT, COT__RIGHT}};
    fprintf(out, "%lld step%s, a state of %lld × %lld number%s of %lld bytes\n\n", (long long)sizes->depth,
            sizes->depth == 1 ? "" : "s", (long long)sizes->width, (long long)sizes->batch,
            sizes->width == 1 && sizes->batch == 1 ? "" : "s", (long long)(sizes->bytes ? sizes->bytes : 8));
    static const char *const heads[] = {"", "states kept", "steps run", "time in steps", "bytes"};
    for (int k = 0; k < COUNTOF(heads); k++) cot__grid_put(&g, NULL, heads[k]);
    for (int k = 0; k < COT__LOOP_PLANS && plans[k].name; k++) {
        cot__grid_put(&g, NULL, plans[k].name);
        cot__grid_integer(&g, plans[k].kept);
        cot__grid_integer(&g, plans[k].runs);
        cot__grid_put(&g, NULL, cot__shortest(plans[k].time, a));
        cot__grid_put(&g, NULL, cot__shortest(plans[k].bytes, a));
    }
    if (!cot__grid_print(out, &g)) return false;
    fputs("\nplain: all states; sqrt: every √depth-th, and one stretch of them\n", out);
    if (plans[COT__BINOMIAL].kept == sizes->depth)
        fputs("binomial: all states, but as loops do: a step runs again on its way back", out);
    else
        fprintf(out, "binomial: at most %lld state%s besides the first and the last", (long long)sizes->states,
                sizes->states == 1 ? "" : "s");
    fprintf(out, "; micro: %lld part%s\n", (long long)sizes->micro, sizes->micro == 1 ? "" : "s");
    if (sizes->limit > 0) say_what_fits(out, sizes, plans);
    return true;
}
