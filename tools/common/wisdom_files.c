#include "wisdom_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static char *read_status(void) {
    size_t length = 0;
    char *text = dpr_wisdom_status(NULL, &length) == DPR_OK ? malloc(length) : NULL;
    if (text && dpr_wisdom_status(text, &length) == DPR_OK)
        return text;
    free(text);
    return NULL;
}

/* The file that DPR_WISDOM names; NULL if it names none. */
static const char *named_file(void) {
    dpr_env_info info = DPR_ENV_INFO_INIT;
    for (size_t i = 0; dpr_env_describe(i, &info) == DPR_OK; i++)
        if (strcmp(info.name, "DPR_WISDOM") == 0)
            return info.value && strcmp(info.value, "none") != 0 ? info.value : NULL;
    return NULL;
}

int wisdom_each_line(void (*take)(void *user, const char *line), void *user) {
    char *text = read_status(), *rest = text, missing[WISDOM_FILES];
    const char *line, *named = named_file();
    if (!text)
        return -1;
    while ((line = strtok_r(rest, "\n", &rest)) != NULL)
        take(user, line);
    free(text);
    if (named && access(named, F_OK) != 0) {
        snprintf(missing, sizeof missing, "missing: %s", named);
        take(user, missing);
    }
    return 0;
}

/* What follows the word and a colon, if the line begins with them; else NULL. */
static const char *after(const char *word, const char *line) {
    const size_t length = strlen(word);
    return strncmp(line, word, length) == 0 && strncmp(line + length, ": ", 2) == 0 ? line + length + 2 : NULL;
}

static void add_file(void *user, const char *line) {
    char *text = user;
    const char *file = after("read", line);
    const size_t used = strlen(text);
    if (file)
        snprintf(text + used, WISDOM_FILES - used, "%s%s", used ? ", " : "", file);
}

const char *wisdom_files_read(char text[WISDOM_FILES]) {
    text[0] = 0;
    (void)wisdom_each_line(add_file, text);
    if (!text[0])
        snprintf(text, WISDOM_FILES, "none");
    return text;
}

static void note_unused(void *user, const char *line) {
    const char *refused = after("refused", line), *missing = after("missing", line);
    (void)user;
    if (refused)
        cli_note("wisdom is refused: %s", refused);
    if (missing)
        cli_note("there is no wisdom: DPR_WISDOM names '%s', which does not exist", missing);
}

void wisdom_note_unused(void) {
    (void)wisdom_each_line(note_unused, NULL);
}
