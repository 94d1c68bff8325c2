/* The commands. argv[0] is the command's own name; each returns an exit code of cli.h. */
#ifndef DPR_TOOLS_COMMANDS_H
#define DPR_TOOLS_COMMANDS_H

int command_bench(int argc, char **argv);
int command_info(int argc, char **argv);
int command_env(int argc, char **argv);
int command_reduce(int argc, char **argv);
int command_plan(int argc, char **argv);
int command_tune(int argc, char **argv);
int command_report(int argc, char **argv);
int command_recurse(int argc, char **argv);

#endif
