#define _GNU_SOURCE /* syscall(), F_DUPFD_CLOEXEC */
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "environment.h"
#include "uncancelled.h"

_Atomic unsigned dpr_log_wanted = DPR_LOG_UNREAD;

/* Where lines go. NO_FILE until the first thread that reads the environment has found out. */
enum { NO_FILE = -1 };
static _Atomic int file = NO_FILE;

/* Nanoseconds at the first line; 0: there is none yet. */
static _Atomic uint64_t first;

static const char *const words[] = {
#define WORD(A, NAME, word) word,
    DPR_LOG_LIST(WORD, _)
#undef WORD
};

/* ---- What DPR_LOG asks for -------------------------------------------------------------------------------------- */

/* The category of a word, or all of them; 0 if there is none. */
static unsigned category_of(const char *word, size_t length) {
    if (length == 3 && memcmp(word, "all", 3) == 0)
        return DPR_LOG_ALL;
    for (int i = 0; i < DPR_LOG_CATEGORIES; i++)
        if (strlen(words[i]) == length && memcmp(words[i], word, length) == 0)
            return 1U << i;
    return 0;
}

unsigned dpr_log_parse(const char *text) {
    const char *word;
    unsigned wanted = 0;
    size_t length;
    while ((word = dpr_env_next_word(&text, &length)) != NULL)
        wanted |= category_of(word, length);
    return wanted;
}

/* ---- Lines ------------------------------------------------------------------------------------------------------ */

static void add(dpr_log_line *line, const char *format, va_list values) {
    const size_t room = sizeof line->text - line->used;
    const int n = vsnprintf(line->text + line->used, room, format, values);
    if (n > 0)
        line->used += (size_t)n < room ? (size_t)n : room - 1;
}

void dpr_log_add(dpr_log_line *line, const char *format, ...) {
    va_list values;
    va_start(values, format);
    add(line, format, values);
    va_end(values);
}

/* Whether byte i controls terminals: one of ASCII, or of 0x80 to 0x9f by itself or as a character of UTF-8. */
static int is_control(const dpr_log_line *line, size_t i) {
    const unsigned char byte = (unsigned char)line->text[i], before = i > 0 ? (unsigned char)line->text[i - 1] : 0;
    return byte < ' ' || byte == 0x7f || (byte >= 0x80 && byte < 0xa0 && (before < 0x80 || before == 0xc2));
}

/* Writes, and takes back the SIGPIPE that a pipe without a reader raises, because it would end the program. One that
 * was pending before stays. Other errors are ignored: a log cannot report them. */
static void write_quietly(int to, const char *text, size_t size) {
    static const struct timespec at_once = {0, 0};
    sigset_t broken_pipe, blocked, pending;
    ssize_t written;
    (void)sigemptyset(&broken_pipe);
    (void)sigaddset(&broken_pipe, SIGPIPE);
    (void)sigpending(&pending);
    (void)pthread_sigmask(SIG_BLOCK, &broken_pipe, &blocked);
    while ((written = write(to, text, size)) < 0 && errno == EINTR) {}
    if (written < 0 && errno == EPIPE && !sigismember(&pending, SIGPIPE))
        (void)sigtimedwait(&broken_pipe, NULL, &at_once);
    (void)pthread_sigmask(SIG_SETMASK, &blocked, NULL);
}

static void write_line(int to, dpr_log_line *line) {
    static const char cut[] = " ...";
    if (line->used >= sizeof line->text - 1) {
        line->used = sizeof line->text - 1;
        (void)snprintf(line->text + line->used - strlen(cut), sizeof cut, "%s", cut);
    }
    for (size_t i = 0; i < line->used; i++)
        if (is_control(line, i))
            line->text[i] = '?';
    line->text[line->used++] = '\n';
    const int error = errno, cancel = dpr_cancel_hold();
    write_quietly(to, line->text, line->used);
    dpr_cancel_release(cancel);
    errno = error;
}

static uint64_t nanoseconds(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Microseconds since the first line. */
static double elapsed(void) {
    const uint64_t now = nanoseconds();
    uint64_t begin = 0;
    if (atomic_compare_exchange_strong(&first, &begin, now))
        begin = now;
    return now > begin ? 1e-3 * (double)(now - begin) : 0; /* another thread may have read the clock later */
}

void dpr_log_begin(dpr_log_line *line, dpr_log_category category) {
    line->used = 0;
    dpr_log_add(line, "dpr: %.1f us, thread %ld, %s: ", elapsed(), syscall(SYS_gettid),
                words[__builtin_ctz((unsigned)category)]);
}

void dpr_log_end(dpr_log_line *line) {
    const int to = atomic_load_explicit(&file, memory_order_acquire);
    write_line(to == NO_FILE ? STDERR_FILENO : to, line);
}

void dpr_log(dpr_log_category category, const char *format, ...) {
    dpr_log_line line;
    va_list values;
    dpr_log_begin(&line, category);
    va_start(values, format);
    add(&line, format, values);
    va_end(values);
    dpr_log_end(&line);
}

/* ---- Reading the environment ------------------------------------------------------------------------------------ */

/* A line about the log itself, which goes to standard error in any case. */
__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...) {
    dpr_log_line line = {.used = 0};
    va_list values;
    va_start(values, format);
    add(&line, format, values);
    va_end(values);
    write_line(STDERR_FILENO, &line);
}

/* Opens the file so that lines are added to it, also those of other processes. It does not take the place of a standard
 * stream that is closed, and does not wait for a reader of a pipe. Returns -1 with errno if that fails. */
static int open_file(const char *path) {
    const int opened = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    if (opened >= 0)
        (void)fcntl(opened, F_SETFL, O_APPEND);
    if (opened < 0 || opened > STDERR_FILENO)
        return opened;
    const int above = fcntl(opened, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    (void)close(opened);
    return above;
}

static void complain_of_words(const char *text) {
    const char *word;
    size_t length;
    while ((word = dpr_env_next_word(&text, &length)) != NULL)
        if (!category_of(word, length))
            complain("dpr: DPR_LOG: '%.*s' is none of %s", length < 64 ? (int)length : 64, word,
                     dpr_envs[DPR_ENV_LOG].values);
}

/* Finds out where lines go. Of several threads that do so at once, the first one decides, and it alone complains. There
 * is no lock, because a child that is forked while a thread holds one would find it held forever. */
static void choose_file(const char *text) {
    const char *path = dpr_env_value(DPR_ENV_LOG_FILE);
    int there = NO_FILE;
    const int opened = path ? open_file(path) : STDERR_FILENO, error = errno;
    if (!atomic_compare_exchange_strong(&file, &there, opened < 0 ? STDERR_FILENO : opened)) {
        if (path && opened >= 0)
            (void)close(opened);
        return;
    }
    char why[128];
    if (opened < 0)
        complain("dpr: DPR_LOG_FILE: '%s' cannot be opened (%s); the log goes to standard error", path,
                 strerror_r(error, why, sizeof why));
    complain_of_words(text);
}

int dpr_log_asks(dpr_log_category category) {
    unsigned wanted = atomic_load_explicit(&dpr_log_wanted, memory_order_acquire);
    if (wanted == DPR_LOG_UNREAD) {
        const int error = errno, cancel = dpr_cancel_hold();
        const char *text = dpr_env_value(DPR_ENV_LOG);
        wanted = text ? dpr_log_parse(text) : 0;
        if (text)
            choose_file(text);
        atomic_store_explicit(&dpr_log_wanted, wanted, memory_order_release);
        dpr_cancel_release(cancel);
        errno = error;
    }
    return (wanted & category) != 0;
}

void dpr_log_shutdown(void) {
    const int opened = atomic_exchange(&file, NO_FILE);
    atomic_store(&dpr_log_wanted, DPR_LOG_UNREAD);
    if (opened > STDERR_FILENO) {
        const int cancel = dpr_cancel_hold();
        (void)close(opened);
        dpr_cancel_release(cancel);
    }
}
