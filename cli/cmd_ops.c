/* cmd_ops.c: cotangent ops: the rule table. */
#include "command.h"

#include <stdlib.h>

#include "expr/expr.h"
#include "trace/listing.h"

static int find_op(const char *name, failure *f) {
    int i = cot__listing_find(name), n = cot__listing_count();
    if (i >= 0) return i;
    const char **names = malloc((size_t)n * sizeof *names);
    if (!names) {
        failure_memory(f);
        return -1;
    }
    for (int k = 0; k < n; k++) names[k] = cot__listing_name(k);
    const char *near = cot__nearest(name, n, names);
    free(names);
    if (near) failure_usage(f, "there is no operation %.100s; did you mean %s?", name, near);
    else failure_usage(f, "there is no operation %.100s; `cotangent ops` lists them", name);
    return -1;
}

/* One entry, and how it is called in an expression. */
static void show(FILE *out, int i) {
    char        buf[512];
    const char *call = cot__expr_signature(cot__listing_name(i), buf, sizeof buf);
    cot__listing_show(out, i);
    if (call) fprintf(out, "  written    %s\n", call);
}

int run_ops(const options *o, FILE *out, look how, failure *f) {
    cot__json j = cot__json_to(out);
    if (o->positional_count > 1) failure_usage(f, "ops takes one name, not %d", o->positional_count);
    int one = o->positional_count && f->status == EXIT_FINE ? find_op(o->positionals[0], f) : -1;
    if (f->status != EXIT_FINE) return f->status;
    int first = one < 0 ? 0 : one, last = one < 0 ? cot__listing_count() : one + 1;
    if (!o->json) {
        if (o->names)
            for (int i = first; i < last; i++) fprintf(out, "%s\n", cot__listing_name(i));
        else if (one >= 0) show(out, one);
        else cot__listing_table(out, how.width);
        return EXIT_FINE;
    }
    if (one >= 0 && !o->names) {
        cot__listing_json(&j, one);
    } else {
        cot__json_open(&j, '{');
        cot__json_key(&j, o->names ? "names" : "ops");
        if (o->names) {
            cot__json_open(&j, '[');
            for (int i = first; i < last; i++) cot__json_string(&j, cot__listing_name(i));
            cot__json_close(&j, ']');
        } else {
            cot__listing_json(&j, -1);
        }
        cot__json_close(&j, '}');
    }
    fputs("\n", out);
    return EXIT_FINE;
}
