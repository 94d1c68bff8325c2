#define _GNU_SOURCE /* secure_getenv() */
#include "environment.h"

#include <stdlib.h>
#include <string.h>

#define DPR_ENV_ROW(A, NAME, KIND, VALUES, BY_DEFAULT, TEXT)                                                           \
    [DPR_ENV_##NAME] = {"DPR_" #NAME, DPR_ENV_##KIND, VALUES, BY_DEFAULT, TEXT},
const dpr_env_row dpr_envs[DPR_ENVS] = {DPR_ENV_LIST(DPR_ENV_ROW, _)};

const char *dpr_env_of_system(const char *name) {
    const char *value = secure_getenv(name);
    return value && *value ? value : NULL;
}

const char *dpr_env_value(dpr_env variable) {
    return dpr_env_of_system(dpr_envs[variable].name);
}

/* ---- Numbers ---- */

/* The number, at most `most`; 0 if the text is no whole number from 1. */
static int number_of(const char *text, int most) {
    char *end;
    if (*text < '0' || *text > '9')
        return 0;
    const unsigned long n = strtoul(text, &end, 10);
    if (*end)
        return 0;
    return n < (unsigned long)most ? (int)n : most;
}

int dpr_env_number(dpr_env variable, int most) {
    const char *value = dpr_env_value(variable);
    return value ? number_of(value, most) : 0;
}

/* ---- Words ---- */

const char *dpr_env_next_word(const char **text, size_t *length) {
    const char *word = *text + strspn(*text, ", \t");
    *length = strcspn(word, ",");
    *text = word + *length;
    while (*length > 0 && (word[*length - 1] == ' ' || word[*length - 1] == '\t'))
        --*length;
    return *length > 0 ? word : NULL;
}

static int is_one_of(const char *values, const char *word, size_t length) {
    const char *other;
    size_t its_length;
    while ((other = dpr_env_next_word(&values, &its_length)) != NULL)
        if (its_length == length && memcmp(other, word, length) == 0)
            return 1;
    return 0;
}

static int are_some_of(const char *values, const char *words) {
    const char *word;
    size_t length;
    while ((word = dpr_env_next_word(&words, &length)) != NULL)
        if (!is_one_of(values, word, length))
            return 0;
    return 1;
}

int dpr_env_is_understood(dpr_env variable, const char *value) {
    const dpr_env_row *row = &dpr_envs[variable];
    switch (row->kind) {
    case DPR_ENV_NUMBER:
        return number_of(value, 1) > 0;
    case DPR_ENV_WORD:
        return is_one_of(row->values, value, strlen(value));
    case DPR_ENV_WORDS:
        return are_some_of(row->values, value);
    case DPR_ENV_FILE:
        break;
    }
    return 1;
}
