/* Environment variables. environment.def has their list. */
#ifndef DPR_CORE_ENVIRONMENT_H
#define DPR_CORE_ENVIRONMENT_H

#include <stddef.h>

#include "environment.def"

#define DPR_ENV_NUMBER_OF(A, NAME, ...) DPR_ENV_##NAME,
typedef enum dpr_env { DPR_ENV_LIST(DPR_ENV_NUMBER_OF, _) DPR_ENVS } dpr_env;
#undef DPR_ENV_NUMBER_OF

/* Which values are understood: a whole number from 1; one of the words; some of the words, separated by commas; any. */
typedef enum dpr_env_kind { DPR_ENV_NUMBER, DPR_ENV_WORD, DPR_ENV_WORDS, DPR_ENV_FILE } dpr_env_kind;

typedef struct dpr_env_row {
    const char *name;
    dpr_env_kind kind;
    const char *values, *by_default, *text;
} dpr_env_row;

extern const dpr_env_row dpr_envs[DPR_ENVS];

/* The variable's value, which belongs to the environment. NULL if it is not set or empty, and in a program that runs
 * with more rights than its user (secure_getenv()), because the log's file would be written with these rights. */
const char *dpr_env_value(dpr_env variable);

/* The value of a variable that belongs to no library, such as HOME, by the same rules. */
const char *dpr_env_of_system(const char *name);

/* Whether the variable's value means anything to the library. */
int dpr_env_is_understood(dpr_env variable, const char *value);

/* The value of a variable of kind NUMBER, at most `most`; 0 if it is not set, or not understood. */
int dpr_env_number(dpr_env variable, int most);

/* The next word of a list separated by commas, without blanks around it, with its length in *length. Moves *text behind
 * it. NULL after the last word. Empty words are left out. */
const char *dpr_env_next_word(const char **text, size_t *length);

#endif
