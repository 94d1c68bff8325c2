/* JSON that the commands print: numbers with all their digits, text from outside, and memory that runs out. */
#ifndef DPR_TOOLS_CLI_JSON_H
#define DPR_TOOLS_CLI_JSON_H

#include <stdio.h>

#include <cjson/cJSON.h>

/* From here on cli_json_failed() and cli_json_take() know of every allocation of cJSON that failed, so that nobody else
 * has to look for missing members. For the begin of a program. */
void cli_json_watch(void);

/* Whether one has failed since the last call. */
int cli_json_failed(void);

/* A number as it stands, whatever its length: cJSON's own numbers are doubles. Minus zero becomes -0.0, because readers
 * take -0 for an integer, which has no such value. NULL when out of memory. */
cJSON *cli_json_digits(const char *digits);

/* A member of an object, and an item of a list, which own the value from then on. Where there is no memory for it, or
 * no object or list for want of memory, it is deleted. */
void cli_json_add(cJSON *object, const char *key, cJSON *value);
void cli_json_append(cJSON *list, cJSON *value);

/* Deletes the value and returns its text, one line; NULL when memory has run out since the last call. The caller gives
 * the text to cJSON_free(). */
char *cli_json_take(cJSON *value);

/* Writes what cli_json_take() gave, as UTF-8 whatever its strings hold: bytes that are none become U+FFFD. Hostile
 * characters (defuse.h) are escaped, so that terminals do not obey them and readers get them as they were. */
void cli_json_put(FILE *f, const char *text);

#endif
