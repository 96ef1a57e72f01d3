/* cmd_trace.c: cotangent trace: the tape forward and the sweep backward, as tables, JSON, a page, a
 * graph, or step by step. */
#include "commands/commands.h"

#include <string.h>

#include "io/memory_file.h"
#include "step/step.h"
#include "problem/traced.h"
#include "output/viewer.h"
#include "trace/code.h"

static void write_dot(const void *x, FILE *out, failure *f) {
    (void)f;
    cot__trace_dot(out, ((const traced *)x)->trace);
}

static void write_c(const traced *x, FILE *out, failure *f) {
    const char *missing = cot__code_file(out, x->trace);
    if (missing == cot__code_no_memory) failure_memory(f);
    else if (missing)
        failure_set(f, EXIT_RUN, "trace",
                    "[trace] --c has no line for %s yet, which the function records; `cotangent compile` may "
                    "have", missing);
}

static void write_html(const void *x, FILE *out, failure *f) {
    memory_file json;
    if (!memory_file_open(&json, f)) return;
    traced_json(x, json.file, f);
    if (memory_file_close(&json, f) && f->status == EXIT_FINE) viewer_write(out, json.text, json.size);
    memory_file_free(&json);
}

int run_trace(const options *o, FILE *out, look how, failure *f) {
    traced x = {0};
    bool   html = o->html && strcmp(o->html, "-") == 0, dot = o->dot && strcmp(o->dot, "-") == 0;
    int    to_stdout = o->json + o->as_c + html + dot;
    if (o->step) return run_step(o, how.colour, f);
    if (to_stdout > 1) {
        failure_usage(f, "only one of --json, --c, --html - and --dot - can go to the standard output");
        return EXIT_USAGE;
    }
    if (o->html && o->dot && strcmp(o->html, o->dot) == 0) {
        failure_usage(f, "--html and --dot name the same file; one would replace the other");
        return EXIT_USAGE;
    }
    if (o->mode == COT_FORWARD && (o->json || o->html || o->dot || o->as_c || o->seed)) {
        failure_usage(f, "--mode forward prints tables, and takes no seed; --json and --html have the tangents beside "
                         "the sweep, --dot and --c show the sweep: leave out --mode");
        return EXIT_USAGE;
    }
    if (traced_open(&x, o, f)) {
        if (o->html) memory_file_put(o->html, write_html, &x, out, f);
        if (o->dot) memory_file_put(o->dot, write_dot, &x, out, f);
        if (o->json) {
            traced_json(&x, out, f);
            fputs("\n", out);
        } else if (o->as_c) {
            write_c(&x, out, f);
        } else if (!o->html && !o->dot) {
            cot__trace_look as = {how.colour, how.width};
            bool            fine = o->mode == COT_FORWARD
                                       ? cot__trace_tangent_table(out, x.trace, x.p.n, x.inputs, as)
                                       : cot__trace_table(out, x.trace, as);
            if (!fine) failure_memory(f);
        }
    }
    traced_close(&x);
    return EXIT_FINE;
}
