/* cotangent_command.h: the whole command as a function.
 *
 * May call: everything of the command. Must not touch: the library: subcommands do. */
#ifndef COT_CLI_COTANGENT_COMMAND_H
#define COT_CLI_COTANGENT_COMMAND_H

/* Runs one command line and returns the exit status. */
int cotangent_command(int argc, char **argv);

#endif
