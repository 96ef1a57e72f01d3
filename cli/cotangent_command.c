/* cotangent_command.c: runs a command line and gives its exit status. A subcommand writes into
 * memory. The text is printed here, in full or not at all. */
#include "cotangent_command.h"

#include <stdlib.h>
#include <string.h>

#include "commands/commands.h"
#include "io/memory_file.h"
#include "io/system.h"

static look look_at(FILE *file) { return (look){.colour = system_colour(file), .width = system_width(file)}; }

static void error_json(FILE *out, const failure *f) {
    cot__json j = cot__json_to(out);
    cot__json_open(&j, '{');
    cot__json_key(&j, "error");
    cot__json_open(&j, '{');
    cot__json_key(&j, "code");
    cot__json_string(&j, f->code);
    cot__json_key(&j, "message");
    cot__json_string(&j, f->message);
    if (f->column > 0) {
        cot__json_key(&j, "column");
        cot__json_integer(&j, f->column);
    }
    if (f->column > 0 && f->line > 1) {
        cot__json_key(&j, "line");
        cot__json_integer(&j, f->line);
    }
    cot__json_close(&j, '}');
    cot__json_close(&j, '}');
    fputs("\n", out);
    fflush(out);
}

static void error_text(FILE *out, const failure *f) {
    bool colour = system_colour(out);
    fprintf(out, "%scotangent:%s ", colour ? "\033[1;31m" : "", colour ? "\033[0m" : "");
    system_put_safely(out, f->message);
    putc('\n', out);
    if (!f->caret[0]) return;
    system_put_safely(out, f->caret);
    if (f->caret[strlen(f->caret) - 1] != '\n') putc('\n', out);
}

static int tell(const failure *f, bool json) {
    if (json) error_json(stdout, f);
    else error_text(stderr, f);
    return f->status;
}

/* Does everything but the printing. */
static int run(int argc, char **argv, FILE *out, look how, failure *f) {
    const char *name = argc > 1 ? argv[1] : NULL;
    options     o;
    int         status = EXIT_FINE;
    if (!name) {
        failure_usage(f, "which command? `cotangent --help` lists them");
        return EXIT_USAGE;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        help_all(out, how);
        return EXIT_FINE;
    }
    if (strcmp(name, "--version") == 0) {
        fprintf(out, "cotangent %s\n", cot_version());
        return EXIT_FINE;
    }
    if (name[0] == '-') {
        const char *meant = "COMMAND";
        for (int i = 2; i < argc; i++)
            for (int k = 0; k < command_count && strcmp(meant, "COMMAND") == 0; k++)
                if (strcmp(command_table[k].name, argv[i]) == 0) meant = argv[i];
        failure_usage(f, "options stand behind the command: cotangent %s %.60s …", meant, name);
        return f->status;
    }
    const command *c = command_find(name, f);
    if (!c) return f->status;
    if (options_parse(&o, c, argc - 2, argv + 2, f)) {
        if (o.threads) cot_set_threads(o.threads);
        if (o.help) help_command(out, how, c);
        else status = c->run(&o, out, how, f);
        if (f->said) command_speak(f, c);
    }
    options_free(&o);
    return status;
}

int cotangent_command(int argc, char **argv) {
    failure     f = {0};
    memory_file out;
    bool        json = argc > 1 && options_ask_json(argc - 1, argv + 1);
    system_start();
    if (!memory_file_open(&out, &f)) return tell(&f, json);
    int  status = run(argc, argv, out.file, look_at(stdout), &f);
    bool whole = memory_file_close(&out, &f) && f.status == EXIT_FINE;
    if (whole && !system_write(stdout, out.text, out.size, &f)) status = EXIT_RUN;
    memory_file_free(&out);
    if (f.status == EXIT_FINE) return status;
    return tell(&f, json && whole == false);
}
