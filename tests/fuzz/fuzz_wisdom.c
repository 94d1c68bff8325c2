/* Wisdom: files that are accepted are written as they were read, and the planner makes something of their times.
 *
 * Few inputs would pass the signatures. So an input is taken as a file, and also as the lines between a head and a last
 * line that are right, below the CPU of a captured machine. */
#define _GNU_SOURCE /* mkdtemp() */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../fnv.h"
#include "api/wisdom_file.h"
#include "fuzz.h"
#include "plan/caps_text.h"
#include "plan/wisdom.h"

enum { PATH = 64, TEXT = 1 << 20 };

static dpr_machine machine;
static char folder[] = "/tmp/dpr-fuzz-XXXXXX", exported[PATH], head[512];

static void remove_files(void) {
    char lock[PATH + 8];
    (void)snprintf(lock, sizeof lock, "%s.lock", exported);
    (void)unlink(exported);
    (void)unlink(lock);
    (void)rmdir(folder);
}

/* The caller frees it. */
static char *text_of(const dpr_wisdom *wisdom, size_t *size) {
    *size = 0;
    FUZZ_CHECK(dpr_wisdom_format(wisdom, NULL, size) == DPR_OK, "%s", dpr_last_error());
    char *text = malloc(*size);
    FUZZ_CHECK(text && dpr_wisdom_format(wisdom, text, size) == DPR_OK, "%s", dpr_last_error());
    *size -= 1;
    return text;
}

/* Makes the head, with the line of the machine's CPU. */
static void begin(void) {
    static const char caps[] = "cpu_name = 8 cores\ncpu.cores = 8\ncpu.threads = 8\ncpu.numa_nodes = 1\n"
                               "cpu.cache_bytes = 33554432\ncpu.vector_bytes = 32\ncpu.core_mb_per_s = 12000\n"
                               "cpu.total_mb_per_s = 60000\ncpu.wake_ns = 8200\n";
    size_t size;
    dpr_wisdom *none = dpr_wisdom_none();
    char *text = text_of(none, &size);
    FUZZ_CHECK(dpr_caps_parse(caps, &machine.caps) == DPR_OK, "%s", dpr_last_error());
    const dpr_wise_processor cpu = dpr_wise_processor_of(&machine, DPR_ON_CPU);
    (void)snprintf(head, sizeof head, "%.*scpu %016llx %s\n", (int)(strstr(text, "end ") - text), text,
                   (unsigned long long)cpu.signature, cpu.name);
    free(text);
    dpr_wisdom_release(none);
    FUZZ_CHECK(mkdtemp(folder), "%s", folder);
    (void)snprintf(exported, sizeof exported, "%s/wisdom", folder);
    (void)atexit(remove_files);
}

/* ---- Checks ----------------------------------------------------------------------------------------------------- */

static void check_plan(const dpr_wisdom *wisdom) {
    dpr_machine wise = machine;
    dpr_choice choice;
    dpr_key key = {.words = {0}};
    key.f.op = DPR_ROW(DPR_SUM);
    key.f.dtype = DPR_ROW(DPR_F32);
    key.f.ops = UINT32_C(1) << key.f.op;
    key.f.in_memory = DPR_MEMORY_HOST;
    dpr_wisdom_attach(wisdom, &wise);
    const dpr_status status = dpr_choose(&key, &wise, &choice);
    if (status != DPR_OK)
        fuzz_check_refusal(status);
    for (size_t count = 0; status == DPR_OK && count < SIZE_MAX / 1024; count = 10 * count + 1) {
        const dpr_choice_step *step = dpr_choice_at(&choice, count);
        const double seconds = dpr_expect(step->strategy, &key, &wise, (dpr_size){count, 1}, NULL);
        FUZZ_CHECK(isfinite(seconds) && seconds > 0, "%zu elements take %g s", count, seconds);
    }
}

/* The status of wisdom that was read can be shown in a terminal. */
static void check_status(void) {
    size_t size = 0;
    FUZZ_CHECK(dpr_wisdom_status(NULL, &size) == DPR_OK && size > 1, "%zu bytes", size);
    char *text = malloc(size);
    FUZZ_CHECK(text && dpr_wisdom_status(text, &size) == DPR_OK, "%s", dpr_last_error());
    for (const char *c = text; *c; c++)
        FUZZ_CHECK((unsigned char)*c >= ' ' || *c == '\n', "byte %d in %s", *c, text);
    free(text);
}

/* The process takes the file in, and writes another one that is read as the same. */
static void check_files(const char *text, size_t size) {
    dpr_wisdom *read = NULL;
    int missing;
    size_t same_size;
    dpr_wisdom_forget();
    (void)unlink(exported);
    FUZZ_CHECK(dpr_wisdom_import(fuzz_file(text, size)) == DPR_OK, "%s", dpr_last_error());
    check_status();
    FUZZ_CHECK(dpr_wisdom_export(exported) == DPR_OK, "%s", dpr_last_error());
    FUZZ_CHECK(dpr_wisdom_read(exported, &read, &missing) == DPR_OK, "%s", dpr_last_error());
    char *same = text_of(read, &same_size);
    FUZZ_CHECK(same_size == size && memcmp(same, text, size) == 0, "%s\nis exported as\n%s", text, same);
    dpr_wisdom_release(read);
    free(same);
}

/* Times of one kind may be on several lines, which are written as one. */
static void check_text(const char *text, size_t size) {
    dpr_wisdom *wisdom = NULL, *twice = NULL;
    size_t written_size, same_size;
    const dpr_status status = dpr_wisdom_parse(text, size, &wisdom);
    if (status != DPR_OK) {
        FUZZ_CHECK(wisdom == NULL, "wisdom after %s", dpr_last_error());
        fuzz_check_refusal(status);
        return;
    }
    FUZZ_CHECK(dpr_wisdom_join(wisdom, wisdom, &twice) == DPR_OK, "%s", dpr_last_error());
    char *written = text_of(wisdom, &written_size), *same = text_of(twice, &same_size);
    FUZZ_CHECK(same_size == written_size && memcmp(same, written, same_size) == 0, "%s\nbecomes\n%s", written, same);
    check_plan(wisdom);
    check_files(written, written_size);
    free(written);
    dpr_wisdom_release(wisdom);
    dpr_wisdom_release(twice);
    free(same);
}

/* ---- Inputs ----------------------------------------------------------------------------------------------------- */

/* Puts the head before the lines, and the last line behind them. Returns the size. */
static size_t complete(const uint8_t *lines, size_t size, char text[TEXT]) {
    const size_t above = strlen(head);
    int count = 0;
    memcpy(strcpy(text, head) + above, lines, size);
    size_t used = above + size;
    for (size_t i = 0; i < used; i++)
        count += text[i] == '\n';
    used += (size_t)snprintf(text + used, 64, "end %d %016llx\n", count, fnv_1a(text, used));
    return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static char text[TEXT];
    if (!*head)
        begin();
    if (size > TEXT - sizeof head - 64)
        return 0;
    char *file = fuzz_text(bytes, size);
    check_text(file, size);
    free(file);
    check_text(text, complete(bytes, size, text));
    return 0;
}
