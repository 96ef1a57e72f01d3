/* commands.h: the subcommands, one file each, and their help.
 *
 * May call: the public library, expressions and traces, and the folders of the command but main.
 * Must not touch: tapes' insides. */
#ifndef COT_CLI_COMMANDS_H
#define COT_CLI_COMMANDS_H

#include "problem/command.h"

int run_eval(const options *o, FILE *out, look how, failure *f);
int run_grad(const options *o, FILE *out, look how, failure *f); /* vjp too */
int run_jvp(const options *o, FILE *out, look how, failure *f);
int run_hvp(const options *o, FILE *out, look how, failure *f);
int run_jac(const options *o, FILE *out, look how, failure *f);
int run_hess(const options *o, FILE *out, look how, failure *f);
int run_taylor(const options *o, FILE *out, look how, failure *f);
int run_trace(const options *o, FILE *out, look how, failure *f);
int run_check(const options *o, FILE *out, look how, failure *f);
int run_cost(const options *o, FILE *out, look how, failure *f);
int run_memory(const options *o, FILE *out, look how, failure *f);
int run_explain(const options *o, FILE *out, look how, failure *f);
int run_ops(const options *o, FILE *out, look how, failure *f);
int run_fit(const options *o, FILE *out, look how, failure *f);
int run_plot(const options *o, FILE *out, look how, failure *f);
int run_compile(const options *o, FILE *out, look how, failure *f);
int run_train(const options *o, FILE *out, look how, failure *f);
int run_help(const options *o, FILE *out, look how, failure *f);

/* What the library has said begins with the function that said it. Commands and operations are
 * known here; for others stands the command that was typed. Nor is there an option for a folder. */
void command_speak(failure *f, const command *typed);

/* help.c: of the whole, and of one command. */
void help_all(FILE *out, look how);
void help_command(FILE *out, look how, const command *c);

#endif
