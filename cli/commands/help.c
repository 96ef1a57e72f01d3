/* help.c: cotangent --help, help COMMAND, COMMAND --help. */
#include "commands/commands.h"

#include <string.h>

#include "expr/expr.h"
#include "texts/expressions.h"
#include "trace/lines/lines.h"
#include "trace/listing/listing.h"

static void head(FILE *out, look how, const char *text) {
    fprintf(out, "%s%s%s\n", how.colour ? "\033[1m" : "", text, how.colour ? "\033[0m" : "");
}

static int text_width(look how) { return how.width > 100 ? 100 : how.width; }

void help_all(FILE *out, look how) {
    fputs("Derivatives of formulas, exact up to rounding, and the steps that lead to them.\n\n", out);
    head(out, how, "usage: cotangent COMMAND [EXPR] [name=value…] [options]");
    fputs("\n", out);
    head(out, how, "commands");
    for (int i = 0; i < command_count; i++)
        fprintf(out, "  %-8s %s\n", command_table[i].name, command_table[i].summary);
    fputs("\n", out);
    head(out, how, "expressions");
    fputs("  Python's syntax with NumPy's names; statements are separated by ;\n"
          "  x**2   W @ x   sum(x, axis=0)   x[1:, ::2]   a if c else b   h = tanh(x); h*h\n"
          "  `cotangent help expressions` tells all of it\n\n",
          out);
    head(out, how, "values");
    values_help(out);
    fputs("\n", out);
    head(out, how, "example");
    fputs("  cotangent grad 'x*y + sin(x)' x=pi/4 y=3\n\n", out);
    cot__paragraph(out, text_width(how), 0,
                   "`cotangent COMMAND --help` tells its options, --version the version. Exit status: 0 fine, 1 a "
                   "check or a fit failed, 2 bad usage or expression, 3 a run-time error.");
}

void help_command(FILE *out, look how, const command *c) {
    char usage[160];
    snprintf(usage, sizeof usage, "usage: cotangent %s %s", c->name, c->usage);
    head(out, how, usage);
    fputs("\n", out);
    cot__paragraph(out, text_width(how), 0, c->about);
    fputs("\n", out);
    if (c->options & OPT_EXPRESSION) {
        head(out, how, "values");
        values_help(out);
        fputs("\n", out);
    }
    head(out, how, "options");
    options_print(out, c);
    fputs("\n", out);
    head(out, how, strchr(c->examples, '\n') ? "examples" : "example");
    for (const char *p = c->examples; *p;) {
        int n = (int)strcspn(p, "\n");
        fprintf(out, "  %.*s\n", n, p);
        p += n + (p[n] == '\n');
    }
}

/* What else help knows: the language of expressions. */
static bool is_topic(const char *name) {
    static const char *const names[] = {"expressions", "expression", "EXPR", "values", "syntax"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (strcmp(names[k], name) == 0) return true;
    return false;
}

static const command *command_named(const char *name) {
    for (int i = 0; i < command_count; i++)
        if (strcmp(command_table[i].name, name) == 0) return &command_table[i];
    return NULL;
}

/* Neither a command nor a topic: perhaps an operation, or near to something. */
static void nothing_to_tell(const char *name, failure *f) {
    const char *names[64];
    int         n = 0;
    for (; n < command_count && n < 63; n++) names[n] = command_table[n].name;
    names[n++] = "expressions";
    if (cot__listing_find(name) >= 0 || cot__expr_behind(name)) {
        failure_usage(f, "%.100s is an operation: `cotangent ops %.100s` tells of it", name, name);
        return;
    }
    const char *near = cot__nearest(name, n, names);
    if (near) failure_usage(f, "there is no help on %.100s; did you mean `cotangent help %s`?", name, near);
    else
        failure_usage(f,
                      "there is no help on %.100s; `cotangent help` lists the commands, `cotangent help expressions` "
                      "the language",
                      name);
}

int run_help(const options *o, FILE *out, look how, failure *f) {
    const char    *name = o->positional_count ? o->positionals[0] : NULL;
    const command *c = name ? command_named(name) : NULL;
    if (o->positional_count > 1) failure_usage(f, "help takes one command, not %d", o->positional_count);
    else if (!name) help_all(out, how);
    else if (c) help_command(out, how, c);
    else if (!is_topic(name)) nothing_to_tell(name, f);
    else if (!expressions_help(out, text_width(how), how.colour)) failure_memory(f);
    return EXIT_FINE;
}
