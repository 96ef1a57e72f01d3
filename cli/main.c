/* main.c: cotangent, the command. */
#include "cotangent_command.h"

int main(int argc, char **argv) { return cotangent_command(argc, argv); }
