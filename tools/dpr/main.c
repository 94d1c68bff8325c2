#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "cli_json.h"
#include "commands.h"

typedef struct command {
    const char *name, *text;
    int (*run)(int argc, char **argv);
} command;

static const command commands[] = {
    {"reduce", "reduce arrays in files, from a pipe, or generated", command_reduce},
    {"plan", "show which strategy is chosen for which size, and why", command_plan},
    {"bench", "measure strategies on this machine", command_bench},
    {"tune", "measure strategies, so that the planner chooses by their times", command_tune},
    {"recurse", "run an example recursion on one engine or on all", command_recurse},
    {"report", "make a page with plots and tables from files of results", command_report},
    {"info", "show processors, GPUs, strategies and occupancy", command_info},
    {"env", "show the environment variables, and what is set", command_env},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static const char *command_name(size_t i) {
    return i < COMMANDS ? commands[i].name : i == COMMANDS ? "help" : NULL;
}

static void print_help(void) {
    puts("Usage: dpr COMMAND [OPTION]...\n"
         "Reduces arrays (sum, minimum, argmax, ...) and runs recursions, on NVIDIA GPUs and on the CPU.\n"
         "\n"
         "Examples:\n"
         "  dpr reduce x.npy --op sum,min,max             of a NumPy array\n"
         "  zcat x.npy.gz | dpr reduce -q --op argmax -   a filter\n"
         "  dpr reduce --generate 64MiB --strategy all    compare strategies\n"
         "  dpr plan --op sum --dtype f32 -n 1e6          what is chosen, and why\n"
         "  dpr bench -n 2^20 --budget 5s                 measure on this machine\n"
         "  dpr tune                                      measure, and remember which strategies are quick\n"
         "  dpr recurse nqueens --engine all              recursion on the GPU and on the CPU\n"
         "  dpr report gpu.json -O page.html              a page with plots and tables of what was measured\n"
         "  dpr info                                      what there is to choose from\n"
         "  dpr env                                       environment variables, and what is set\n"
         "\n"
         "Commands:");
    for (int i = 0; i < COMMANDS; i++)
        printf("  %-10s %s\n", commands[i].name, commands[i].text);
    puts("  help       this text, or with a command's name that command's\n"
         "\n"
         "'dpr COMMAND --help' describes a command; 'dpr --version' prints the version.\n"
         "\n"
         "Exit status: 0 if all went well, 1 if something failed, 2 if the command line makes no sense.");
}

/* Runs the command. CLI_USAGE after a message if there is none of that name. */
static int run_command(int argc, char **argv) {
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(argv[0], commands[i].name) == 0) {
            cli_set_command(commands[i].name);
            return commands[i].run(argc, argv);
        }
    return argv[0][0] == '-' ? cli_usage("unknown option '%s'", argv[0]) : cli_unknown(argv[0], command_name);
}

static int is_option(const char *word, const char *name, const char *letter) {
    return strcmp(word, name) == 0 || strcmp(word, letter) == 0;
}

static int refuse_operand(const char *word) {
    return cli_usage("the operand '%s' makes no sense here", word);
}

/* dpr help [COMMAND] */
static int run_help(int argc, char **argv) {
    static char help[] = "--help";
    char *with_help[] = {argv[1], help, NULL};
    if (argc > 2)
        return refuse_operand(argv[2]);
    if (argc == 2 && strcmp(argv[1], "help") != 0 && !is_option(argv[1], "--help", "-h"))
        return run_command(2, with_help);
    print_help();
    return CLI_OK;
}

static int run(int argc, char **argv) {
    const int is_help = is_option(argv[0], "--help", "-h");
    if (strcmp(argv[0], "help") == 0)
        return run_help(argc, argv);
    if (!is_help && !is_option(argv[0], "--version", "-V"))
        return run_command(argc, argv);
    if (argc > 1)
        return refuse_operand(argv[1]);
    if (is_help)
        print_help();
    else
        printf("dpr %s\n", dpr_version());
    return CLI_OK;
}

int main(int argc, char **argv) {
    cli_begin();
    cli_json_watch();
    if (argc < 2)
        return cli_usage("no command is named");
    return cli_finish(run(argc - 1, argv + 1));
}
