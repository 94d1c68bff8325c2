#include "caps_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "processors.h"
#include "text.h"

/* Every number of a machine: its key, what it is, its offset in dpr_caps and its range. Those of the CPU come first. */
typedef struct field {
    const char *key, *text;
    size_t offset;
    int64_t least, most;
} field;

#define DPR_GPU_FIELD(A, NAME, LEAST, MOST, text) {"gpu." #NAME, text, offsetof(dpr_caps, gpu.NAME), LEAST, MOST},
#define DPR_GPU_ATTRIBUTE(A, NAME, ATTRIBUTE, ...) DPR_GPU_FIELD(A, NAME, __VA_ARGS__)
#define DPR_CPU_FIELD(A, NAME, LEAST, MOST, text) {"cpu." #NAME, text, offsetof(dpr_caps, cpu.NAME), LEAST, MOST},
static const field fields[] = {DPR_CPU_CAPS_LIST(DPR_CPU_FIELD, _) DPR_GPU_CAPS_LIST(DPR_GPU_ATTRIBUTE, _)
                                   DPR_NESTED_CAPS_LIST(DPR_GPU_FIELD, _)};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static int64_t *field_of(dpr_caps *caps, int i) {
    return (int64_t *)(void *)((char *)caps + fields[i].offset);
}
static int is_gpu_field(int i) {
    return fields[i].offset < offsetof(dpr_caps, cpu);
}

size_t dpr_caps_count(const dpr_caps *caps) {
    int n = 0;
    while (n < FIELDS && (caps->has_gpu || !is_gpu_field(n)))
        n++;
    return (size_t)n;
}

void dpr_caps_entry(const dpr_caps *caps, size_t i, dpr_capability *out) {
    dpr_caps copy = *caps;
    *out = (dpr_capability){out->size, fields[i].key, fields[i].text, *field_of(&copy, (int)i)};
}

void dpr_caps_confine(dpr_caps *caps) {
    for (int i = 0; i < FIELDS; i++) {
        int64_t *value = field_of(caps, i);
        if (is_gpu_field(i) && !caps->has_gpu)
            continue;
        if (*value < fields[i].least)
            *value = fields[i].least;
        if (*value > fields[i].most)
            *value = fields[i].most;
    }
}

/* Copies the `length` bytes at `from` without blanks around them; 0 if they do not fit. */
static int copy_trimmed(char *to, size_t size, const char *from, size_t length) {
    while (length > 0 && isspace((unsigned char)from[0])) {
        from++;
        length--;
    }
    while (length > 0 && isspace((unsigned char)from[length - 1]))
        length--;
    if (length >= size)
        return 0;
    memcpy(to, from, length);
    to[length] = '\0';
    return 1;
}

/* Reads the value of field i. A number beyond 64 bits counts as out of range. */
static dpr_status parse_value(int i, const char *value, int line, int64_t *out) {
    const field *f = &fields[i];
    char *end = NULL;
    errno = 0;
    const long long number = strtoll(value, &end, 10);
    if (end == value || *end != '\0')
        return dpr_fail(DPR_ERR_INVALID_OPTION, "line %d: %s is \"%s\", not a whole number", line, f->key, value);
    if (errno != 0 || number < f->least || number > f->most)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "line %d: %s is %s; it should be from %lld to %lld", line, f->key,
                        value, (long long)f->least, (long long)f->most);
    *out = number;
    return DPR_OK;
}

static dpr_status parse_number(const char *key, const char *value, int line, dpr_caps *caps, unsigned char *seen) {
    for (int i = 0; i < FIELDS; i++) {
        if (strcmp(key, fields[i].key) != 0)
            continue;
        if (seen[i])
            return dpr_fail(DPR_ERR_INVALID_OPTION, "line %d: %s stands there twice", line, key);
        seen[i] = 1;
        return parse_value(i, value, line, field_of(caps, i));
    }
    return dpr_fail(DPR_ERR_INVALID_OPTION, "line %d: \"%s\" is no key of a machine", line, key);
}

/* Where the value of `gpu_name` or `cpu_name` goes; NULL for any other key. */
static char *name_of(dpr_caps *caps, const char *key) {
    return strcmp(key, "gpu_name") == 0 ? caps->gpu_name : strcmp(key, "cpu_name") == 0 ? caps->cpu_name : NULL;
}

static dpr_status parse_line(const char *text, size_t length, int line, dpr_caps *caps, unsigned char *seen) {
    const size_t all = length;
    const char *comment = memchr(text, '#', length);
    if (comment)
        length = (size_t)(comment - text);
    char key[64], value[64];
    const char *equals = memchr(text, '=', length);
    const size_t key_length = equals ? (size_t)(equals - text) : length;
    if (!copy_trimmed(key, sizeof key, text, key_length))
        return dpr_fail(DPR_ERR_INVALID_OPTION, "line %d: the key is longer than 63 bytes", line);
    if (!equals && key[0] == '\0')
        return DPR_OK;
    if (!equals)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "line %d: \"%s\" is not of the form key = value", line, key);
    char *name = name_of(caps, key);
    if (name) /* a device's name may contain a # */
        length = all;
    if (!copy_trimmed(value, sizeof value, equals + 1, length - key_length - 1))
        return dpr_fail(DPR_ERR_INVALID_OPTION, "line %d: the value of %s is longer than 63 bytes", line, key);
    if (!name)
        return parse_number(key, value, line, caps, seen);
    if (*name)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "line %d: %s is there twice", line, key);
    memcpy(name, value, sizeof value);
    if (name == caps->gpu_name)
        caps->has_gpu = 1;
    return DPR_OK;
}

dpr_status dpr_caps_parse(const char *text, dpr_caps *out) {
    dpr_caps caps = {0};
    unsigned char seen[FIELDS] = {0};
    int line = 1;
    for (const char *at = text; *at; line++) {
        const size_t length = strcspn(at, "\n");
        const dpr_status status = parse_line(at, length, line, &caps, seen);
        if (status != DPR_OK)
            return status;
        at += length + (at[length] == '\n');
    }
    for (int i = 0; i < FIELDS; i++) {
        if (is_gpu_field(i) && !caps.has_gpu && seen[i])
            return dpr_fail(DPR_ERR_INVALID_OPTION, "%s is there, but gpu_name is not", fields[i].key);
        if (!seen[i] && (caps.has_gpu || !is_gpu_field(i)))
            return dpr_fail(DPR_ERR_INVALID_OPTION, "%s is missing", fields[i].key);
    }
    *out = caps;
    return DPR_OK;
}

static void format(dpr_text *text, const void *subject) {
    dpr_caps caps = *(const dpr_caps *)subject;
    dpr_text_add(text, "cpu_name = %s\n", caps.cpu_name);
    if (caps.has_gpu)
        dpr_text_add(text, "gpu_name = %s\n", caps.gpu_name);
    for (int i = 0; i < FIELDS; i++) {
        if (caps.has_gpu || !is_gpu_field(i))
            dpr_text_add(text, "%s = %lld\n", fields[i].key, (long long)*field_of(&caps, i));
    }
}

dpr_status dpr_caps_format(const dpr_caps *caps, char *text, size_t *len) {
    return dpr_text_fill(format, caps, text, len);
}
