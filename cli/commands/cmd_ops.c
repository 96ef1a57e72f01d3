/* cmd_ops.c: cotangent ops: the rule table. */
#include "commands/commands.h"

#include <stdlib.h>
#include <string.h>

#include "expr/expr.h"
#include "trace/listing/listing.h"

/* Functions that only expressions have, and what they are made of. */
static const struct { const char *name, *is; } made[] = {
    {"array", "x itself, or of a list an array of its elements (stack); with a dtype: cast"},
    {"zeros_like", "zeros of the shape and dtype of x: a constant"},
    {"ones_like", "ones of the shape and dtype of x: a constant"},
    {"full_like", "the value in the shape and dtype of x: a constant"},
    {"floor_divide", "x // y, rounded down: sub, remainder, div and round; its derivative is 0"},
    {"slogdet", "sign and logabsdet of a"},
    {"split", "equal parts along an axis, each a slice of x"},
};
enum { MADE = sizeof made / sizeof *made };

static int made_named(const char *name) {
    for (int i = 0; i < MADE; i++)
        if (strcmp(made[i].name, name) == 0) return i;
    return -1;
}

/* The number of an operation in the listing. Behind these come the numbers of `made`. */
static int find_op(const char *name, failure *f) {
    int         i = cot__listing_find(name), n = cot__listing_count(), count = 0;
    const char *behind = cot__expr_behind(name);
    if (i < 0 && behind) i = cot__listing_find(behind);
    if (i < 0 && behind && made_named(behind) >= 0) i = n + made_named(behind);
    if (i >= 0) return i;
    const char **names = malloc((size_t)(n + cot__expr_function_count()) * sizeof *names);
    if (!names) {
        failure_memory(f);
        return -1;
    }
    for (int k = 0; k < n; k++) names[count++] = cot__listing_name(k);
    for (int k = 0; k < cot__expr_function_count(); k++) names[count++] = cot__expr_function_name(k);
    const char *near = cot__nearest(name, count, names);
    free(names);
    if (near) failure_usage(f, "there is no operation %.100s; did you mean %s?", name, near);
    else failure_usage(f, "there is no operation %.100s; `cotangent ops` lists them", name);
    return -1;
}

/* Shows one entry: how it is called in an expression, and the name or operator that the user asked
 * for. */
static void show(FILE *out, int i, const char *asked) {
    char        buf[512];
    int         n = cot__listing_count();
    const char *name = i < n ? cot__listing_name(i) : made[i - n].name;
    const char *call = cot__expr_signature(name, buf, sizeof buf);
    if (strncmp(asked, "cot_", 4) == 0) asked += 4;
    if (strcmp(asked, name) != 0) fprintf(out, "%s is %s\n", asked, name);
    if (i < n) cot__listing_show(out, i, call);
    else fprintf(out, "%s   [Expressions]\n  value      %s\n", call, made[i - n].is);
}

static void show_json(cot__json *j, int i) {
    int n = cot__listing_count();
    if (i < n) {
        cot__listing_json(j, i);
        return;
    }
    cot__json_open(j, '{');
    cot__json_key(j, "name");
    cot__json_string(j, made[i - n].name);
    cot__json_key(j, "family");
    cot__json_string(j, "Expressions");
    cot__json_key(j, "value");
    cot__json_string(j, made[i - n].is);
    cot__json_close(j, '}');
}

static const char *name_of(int i) {
    return i < cot__listing_count() ? cot__listing_name(i) : made[i - cot__listing_count()].name;
}

int run_ops(const options *o, FILE *out, look how, failure *f) {
    cot__json j = cot__json_to(out);
    if (o->positional_count > 1) failure_usage(f, "ops takes one name, not %d", o->positional_count);
    int one = o->positional_count && f->status == EXIT_FINE ? find_op(o->positionals[0], f) : -1;
    if (f->status != EXIT_FINE) return f->status;
    int first = one < 0 ? 0 : one, last = one < 0 ? cot__listing_count() : one + 1;
    if (!o->json) {
        if (o->names)
            for (int i = first; i < last; i++) fprintf(out, "%s\n", name_of(i));
        else if (one >= 0) show(out, one, o->positionals[0]);
        else cot__listing_table(out, how.width);
        return EXIT_FINE;
    }
    if (one >= 0 && !o->names) {
        show_json(&j, one);
    } else {
        cot__json_open(&j, '{');
        cot__json_key(&j, o->names ? "names" : "ops");
        if (o->names) {
            cot__json_open(&j, '[');
            for (int i = first; i < last; i++) cot__json_string(&j, name_of(i));
            cot__json_close(&j, ']');
        } else {
            cot__listing_json(&j, -1);
        }
        cot__json_close(&j, '}');
    }
    fputs("\n", out);
    return EXIT_FINE;
}
