#include "reports.h"

#include <stdlib.h>
#include <string.h>

#include "support.h"

char *report_text_of(report_writer *write, const void *what, report_format format) {
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!EXPECT_TRUE(f != NULL))
        return NULL;
    EXPECT_EQ_I64(0, write(f, what, format));
    EXPECT_EQ_I64(0, fclose(f));
    return text;
}

cJSON *report_json_of(report_writer *write, const void *what) {
    char *text = report_text_of(write, what, REPORT_JSON);
    cJSON *document = text ? cJSON_Parse(text) : NULL;
    EXPECT_THAT(document != NULL, "no JSON: %s", text ? text : "");
    free(text);
    return document;
}

void check_report(report_writer *write, const void *what, report_format format, const char *const *parts) {
    char *text = report_text_of(write, what, format);
    for (; text && *parts; parts++)
        EXPECT_CONTAINS(text, *parts);
    free(text);
}

const char *keys_of(const cJSON *object) {
    static char text[2048];
    const cJSON *member = NULL;
    text[0] = 0;
    cJSON_ArrayForEach(member, object) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s", used ? "," : "", member->string ? member->string : "?");
    }
    return text;
}

const cJSON *member_of(const cJSON *document, const char *path) {
    char key[64];
    for (; document && *path; path += *path == '.') {
        const size_t length = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)length, path);
        document = cJSON_IsArray(document) ? cJSON_GetArrayItem(document, (int)strtol(key, NULL, 10))
                                           : cJSON_GetObjectItemCaseSensitive(document, key);
        path += length;
    }
    return document;
}

double number_of(const cJSON *document, const char *path) {
    return cJSON_GetNumberValue(member_of(document, path));
}

const char *string_of(const cJSON *document, const char *path) {
    const char *text = cJSON_GetStringValue(member_of(document, path));
    return text ? text : "(none)";
}
