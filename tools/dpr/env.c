#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "cli_json.h"
#include "commands.h"
#include "report.h"
#include "wisdom_files.h"

static const cli_help help = {
    "Usage: dpr env [OPTION]...\n"
    "Shows the environment variables that the library and this command read, what they are set to, and\n"
    "whether the library understands it. Variables with names like theirs that nobody reads are listed below,\n"
    "and what became of the files of wisdom.\n"
    "\n"
    "Examples:\n"
    "  dpr env                                   all variables\n"
    "  dpr env --json                            the same for programs\n"
    "  DPR_LOG=plan,launch dpr reduce x.npy      what the library does, on standard error\n",
    NULL, "Values that are not understood are ignored. Empty ones count as not set.\n"};

/* Variable i, which there is. */
static dpr_env_info variable(size_t i) {
    dpr_env_info info = DPR_ENV_INFO_INIT;
    (void)dpr_env_describe(i, &info);
    return info;
}

/* ---- Names that nobody reads ------------------------------------------------------------------------------------ */

enum { LONGEST = 64 };
static const char prefix[] = "DPR_";

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* The least number of letters that are put in, left out or replaced to make one name of the other (Levenshtein 1966).
 * Longer names are cut. */
static size_t distance(const char *a, const char *b) {
    size_t row[LONGEST + 1];
    const size_t length = least(strlen(b), LONGEST);
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 0; a[i] && i < LONGEST; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 1; j <= length; j++) {
            const size_t replaced = diagonal + (a[i] != b[j - 1]);
            diagonal = row[j];
            row[j] = least(replaced, 1 + least(row[j], row[j - 1]));
        }
    }
    return row[length];
}

/* The variable whose name is closest, if less than half of the letters behind the prefix differ; otherwise NULL. */
static const char *closest(const char *name) {
    const size_t letters = least(strlen(name), LONGEST) - strlen(prefix);
    size_t best = (letters + 1) / 2;
    const char *found = NULL;
    for (size_t i = 0; i < dpr_env_count(); i++) {
        const size_t differ = distance(name, variable(i).name);
        if (differ < best) {
            best = differ;
            found = variable(i).name;
        }
    }
    return found;
}

static int is_known(const char *name) {
    for (size_t i = 0; i < dpr_env_count(); i++)
        if (strcmp(name, variable(i).name) == 0)
            return 1;
    return 0;
}

/* `entry` is "NAME=value". Long names are cut. */
static void show_unknown(report_out *out, cJSON *list, const char *entry) {
    char name[2 * LONGEST];
    snprintf(name, sizeof name, "%.*s", (int)least(strcspn(entry, "="), sizeof name - 1), entry);
    if (is_known(name))
        return;
    const char *like = closest(name);
    cJSON *row = report_row(list);
    report_add(row, "name=%s", name);
    cli_json_add(row, "closest", like ? cJSON_CreateString(like) : cJSON_CreateNull());
    report_text(out, REPORT_NOTE, "%s is set, and nobody reads it%s%s%s", name, like ? ": is " : "", like ? like : "",
                like ? " meant?" : "");
}

static void show_all_unknown(report_out *out) {
    cJSON *list = cJSON_AddArrayToObject(out->document, "unknown");
    for (char **entry = environ; *entry; entry++)
        if (strncmp(*entry, prefix, strlen(prefix)) == 0)
            show_unknown(out, list, *entry);
}

/* ---- What is read besides ---------------------------------------------------------------------------------------- */

static const char *value_of(const char *name) {
    const size_t length = strlen(name);
    for (char **entry = environ; *entry; entry++)
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=' && (*entry)[length + 1])
            return *entry + length + 1;
    return NULL;
}

/* Variables of the system. */
static void show_others(report_out *out) {
    static const struct {
        const char *name, *text;
    } others[] = {{"XDG_STATE_HOME", "the user's file of wisdom is dpr/wisdom in this folder"},
                  {"HOME", "without XDG_STATE_HOME it is .local/state/dpr/wisdom in this folder"},
                  {"LC_ALL", "plots in the terminal have UTF-8 or ASCII, by the first of these three that is set"},
                  {"LC_CTYPE", "the second of them"},
                  {"LANG", "the third of them"}};
    static const report_column columns[] = {
        {"name", "variable", UNIT_LEFT}, {"set", "set to", UNIT_LEFT}, {"text", "what it is read for", UNIT_LEFT}, {0}};
    cJSON *list = cJSON_AddArrayToObject(out->document, "others");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        cJSON *row = report_row(list);
        const char *value = value_of(others[i].name);
        cJSON_AddStringToObject(row, "name", others[i].name);
        cli_json_add(row, "value", value ? cJSON_CreateString(value) : cJSON_CreateNull());
        report_add(row, "text=%s", others[i].text);
        if (report_is_text(out))
            report_add(row, "set=%s", value ? value : "-");
    }
    report_table(out, "Variables of the system", list, 0, columns);
}

/* ---- Wisdom ------------------------------------------------------------------------------------------------------ */

typedef struct wisdom_list {
    report_out *out;
    cJSON *list;
} wisdom_list;

static void add_line(void *user, const char *line) {
    const wisdom_list *w = user;
    cli_json_append(w->list, cJSON_CreateString(line));
    report_text(w->out, REPORT_NOTE, "%s", line);
}

static int show_wisdom(report_out *out) {
    wisdom_list w = {out, cJSON_AddArrayToObject(out->document, "wisdom")};
    report_text(out, REPORT_HEADING, "Wisdom");
    return wisdom_each_line(add_line, &w);
}

/* ---- The variables ---------------------------------------------------------------------------------------------- */

/* Rows have the member "set" in text alone, because programs can tell null from "-". */
static void add_variable(report_out *out, cJSON *list, dpr_env_info info) {
    cJSON *row = report_row(list);
    report_add(row, "name=%s", info.name);
    cli_json_add(row, "value", info.value ? cJSON_CreateString(info.value) : cJSON_CreateNull());
    report_add(row, "understood=%i default=%s values=%s text=%s", info.understood, info.by_default, info.values,
               info.text);
    if (report_is_text(out))
        report_add(row, "set=%s", info.value ? info.value : "-");
    if (!info.understood)
        report_text(out, REPORT_NOTE, "%s is '%s', and the library understands only %s%s", info.name, info.value,
                    info.values, strcmp(info.name, "DPR_CPU_ISA") == 0 ? ", as far as the processor has them" : "");
}

static int show(int json) {
    static const report_column columns[] = {{"name", "variable", UNIT_LEFT},     {"set", "set to", UNIT_LEFT},
                                            {"default", "default", UNIT_LEFT},   {"values", "values", UNIT_LEFT},
                                            {"text", "what it sets", UNIT_LEFT}, {0}};
    report_out out = report_begin(stdout, json ? REPORT_JSON : REPORT_TABLE);
    cJSON_AddStringToObject(out.document, "version", dpr_version());
    report_text(&out, REPORT_TITLE, "dpr %s", dpr_version());
    cJSON *list = cJSON_AddArrayToObject(out.document, "variables");
    for (size_t i = 0; i < dpr_env_count(); i++)
        add_variable(&out, list, variable(i));
    report_table(&out, "Environment variables", list, 0, columns);
    show_all_unknown(&out);
    show_others(&out);
    const int failed = show_wisdom(&out);
    return report_end(&out) == 0 && !failed ? CLI_OK : cli_error("out of memory");
}

int command_env(int argc, char **argv) {
    int json = 0;
    const cli_option options[] = {{0, "json", NULL, cli_flag, &json, "one JSON document"}, cli_help_option, {0}};
    const int code = cli_parse(argc, argv, &help, options, NULL);
    return code == CLI_GO_ON ? show(json) : code;
}
