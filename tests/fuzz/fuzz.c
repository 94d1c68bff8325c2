#define _GNU_SOURCE /* memfd_create() */
#include "fuzz.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "defuse.h"

void fuzz_fail(const char *file, int line, const char *condition, const char *format, ...) {
    va_list values;
    (void)dprintf(STDERR_FILENO, "%s:%d: not so: %s\n", file, line, condition);
    va_start(values, format);
    (void)vdprintf(STDERR_FILENO, format, values);
    va_end(values);
    (void)dprintf(STDERR_FILENO, "\n");
    abort();
}

const char *fuzz_file(const void *bytes, size_t size) {
    static int file = -1;
    static char path[64];
    if (file < 0) {
        file = memfd_create("input", MFD_CLOEXEC);
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    FUZZ_CHECK(ftruncate(file, 0) == 0 && pwrite(file, bytes, size, 0) == (ssize_t)size, "%zu bytes", size);
    return path;
}

char *fuzz_text(const uint8_t *bytes, size_t size) {
    char *text = malloc(size + 1);
    FUZZ_CHECK(text != NULL, "%zu bytes", size);
    memcpy(text, bytes, size);
    text[size] = 0;
    return text;
}

void fuzz_check_text(const char *text, int lines) {
    uint32_t character;
    FUZZ_CHECK(*text, "there is no text");
    for (const char *at = text; *at;) {
        at += utf8_next(at, &character);
        const int is_control = character < 0x20 || (character >= 0x7F && character < 0xA0);
        FUZZ_CHECK(!is_control || (lines && character == '\n'), "U+%04X in: %s", character, text);
    }
}

void fuzz_check_refusal(dpr_status status) {
    FUZZ_CHECK(status != DPR_OK && *dpr_status_text(status), "status %d", status);
    fuzz_check_text(dpr_last_error(), 0);
}

/* ---- What is printed -------------------------------------------------------------------------------------------- */

/* libFuzzer and the sanitizers keep the true streams. */
static FILE *heard, *true_out, *true_err;
static char *heard_text;
static size_t heard_size;

void fuzz_listen(void) {
    if (!heard)
        heard = open_memstream(&heard_text, &heard_size);
    FUZZ_CHECK(heard != NULL, "no memory");
    rewind(heard);
    true_out = stdout;
    true_err = stderr;
    stdout = stderr = heard;
}

const char *fuzz_heard(void) {
    stdout = true_out;
    stderr = true_err;
    (void)fputc(0, heard);
    (void)fflush(heard);
    return heard_text;
}
