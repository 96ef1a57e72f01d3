/* step.c: the loop of trace --step: draw, wait for a key, do its action. */
#include "step/step.h"

#include "io/memory_file.h"
#include "step/step_change.h"
#include "step/step_draw.h"
#include "step/step_predict.h"
#include "step/step_terminal.h"

typedef struct walk {
    traced         x;
    step_registers registers;
    step_tangents  tangents;
    step_graph     graph;
    step_model     m;
    bool           colour;
} walk;

static step_view view_of(walk *w) {
    return (step_view){.x = &w->x, .registers = &w->registers, .tangents = &w->tangents, .graph = &w->graph, .m = &w->m,
                       .colour = w->colour};
}

static bool draw(walk *w, failure *f) {
    step_view   v = view_of(w);
    memory_file screen;
    terminal_size(&v.rows, &v.columns);
    if (!memory_file_open(&screen, f)) return false;
    step_draw(screen.file, &v);
    bool fine = memory_file_close(&screen, f) && terminal_write(screen.text, screen.size);
    memory_file_free(&screen);
    return fine;
}

static void forget(walk *w) {
    registers_close(&w->registers);
    tangents_close(&w->tangents);
    graph_close(&w->graph);
}

static int64_t steps_of(const walk *w) {
    return w->tangents.on ? tangents_steps(&w->tangents) : w->x.trace->step_count;
}

static bool look(walk *w, failure *f) {
    return registers_open(&w->registers, w->x.trace, f) && tangents_open(&w->tangents, &w->x, f) &&
           graph_open(&w->graph, w->x.trace, f);
}

/* Called when the trace was made again. */
static bool look_again(walk *w, failure *f) {
    forget(w);
    if (!look(w, f)) return false;
    step_refit(&w->m, w->x.trace->node_count, steps_of(w));
    return true;
}

static bool change(walk *w, failure *f) {
    failure why = {0};
    terminal_busy(true);
    bool done = step_change(&w->x, w->m.typed, &why, f) && look_again(w, f);
    if (!done && f->status == EXIT_FINE) {
        look_again(w, f);
        step_say(&w->m, true, "%s", why.message);
    } else if (done) {
        step_say(&w->m, false, "%s: computed again", w->m.typed);
    }
    terminal_busy(false);
    return f->status == EXIT_FINE;
}

static void loop(walk *w, failure *f) {
    for (bool going = draw(w, f); going;) {
        int key = terminal_key();
        if (key == TERMINAL_END) return;
        step_wish wish = key == TERMINAL_REDRAW ? STEP_DRAW : step_key(&w->m, key);
        if (wish == STEP_QUIT) return;
        step_view v = view_of(w);
        if (wish == STEP_ASK) predict_ask(&v);
        if (wish == STEP_JUDGE) predict_judge(&v);
        going = (wish != STEP_SET || change(w, f)) && (terminal_has_more() || draw(w, f));
    }
}

int run_step(const options *o, bool colour, failure *f) {
    walk w = {.colour = colour};
    if (o->json || o->html || o->dot || o->as_c) {
        failure_usage(f, "--step is interactive; it does not go together with %s",
                      o->json   ? "--json"
                      : o->html ? "--html"
                      : o->dot  ? "--dot"
                                : "--c");
        return EXIT_USAGE;
    }
    if (!terminal_usable(f)) return EXIT_USAGE;
    if (traced_open(&w.x, o, f) && look(&w, f)) {
        step_begin(&w.m, w.x.trace->node_count, steps_of(&w));
        if (terminal_open(f)) {
            loop(&w, f);
            terminal_close();
        }
    }
    forget(&w);
    traced_close(&w.x);
    return EXIT_FINE;
}
