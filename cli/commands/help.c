/* help.c: cotangent --help, help COMMAND, COMMAND --help. */
#include "commands/commands.h"

#include <string.h>

#include "trace/lines/lines.h"

static void head(FILE *out, look how, const char *text) {
    fprintf(out, "%s%s%s\n", how.colour ? "\033[1m" : "", text, how.colour ? "\033[0m" : "");
}

static void values_help(FILE *out) {
    fputs("  x=2  x=pi/4  x=[1,2,3]       a constant expression\n"
          "  i=cast([0,2], i64)           integers and bools, which have no derivatives\n"
          "  W=@file.npy                  an array of NumPy's\n"
          "  W=@file.npz:key              one of several\n"
          "  A=@graph.npz                 a sparse matrix, as scipy.sparse.save_npz writes it\n"
          "  W=@file.safetensors:key      a tensor of a .safetensors file\n"
          "  W=uniform(7, [128, 784], 1)  numbers in -1 … 1, seed 7\n",
          out);
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
          "  x**2   W @ x   sum(x, axis=0)   x[1:, ::2]   a if c else b   h = tanh(x); h*h\n\n",
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

int run_help(const options *o, FILE *out, look how, failure *f) {
    if (o->positional_count > 1)
        failure_usage(f, "help takes one command, not %d", o->positional_count);
    else if (o->positional_count == 0)
        help_all(out, how);
    else {
        const command *c = command_find(o->positionals[0], f);
        if (c) help_command(out, how, c);
    }
    return EXIT_FINE;
}
