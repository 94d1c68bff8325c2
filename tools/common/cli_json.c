#include "cli_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "defuse.h"

/* ---- Memory ----------------------------------------------------------------------------------------------------- */

static int has_failed; /* an allocation, since cli_json_failed() looked last */

static void *watched_malloc(size_t size) {
    void *memory = malloc(size);
    has_failed |= !memory;
    return memory;
}

void cli_json_watch(void) {
    cJSON_Hooks hooks = {.malloc_fn = watched_malloc, .free_fn = free};
    cJSON_InitHooks(&hooks);
}

int cli_json_failed(void) {
    const int failed = has_failed;
    has_failed = 0;
    return failed;
}

/* ---- Values ----------------------------------------------------------------------------------------------------- */

cJSON *cli_json_digits(const char *digits) {
    return cJSON_CreateRaw(strcmp(digits, "-0") == 0 ? "-0.0" : digits);
}

void cli_json_add(cJSON *object, const char *key, cJSON *value) {
    if (!cJSON_AddItemToObject(object, key, value))
        cJSON_Delete(value);
}

void cli_json_append(cJSON *list, cJSON *value) {
    if (!cJSON_AddItemToArray(list, value))
        cJSON_Delete(value);
}

/* ---- Output ----------------------------------------------------------------------------------------------------- */

char *cli_json_take(cJSON *value) {
    char *text = cJSON_PrintUnformatted(value);
    cJSON_Delete(value);
    if (cli_json_failed()) {
        cJSON_free(text);
        text = NULL;
    }
    return text;
}

void cli_json_put(FILE *f, const char *text) {
    uint32_t character;
    for (size_t n; *text; text += n) {
        n = utf8_next(text, &character);
        /* Those below 0x7F are the document's own line ends and tabs: cJSON escapes them in strings. */
        if (character == UTF8_NONE)
            fputs("\xEF\xBF\xBD", f);
        else if (character >= 0x7F && is_hostile(character))
            fprintf(f, "\\u%04" PRIx32, character);
        else
            fwrite(text, 1, n, f);
    }
}
