#include "bench_nested_part.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench_report.h"
#include "cli_json.h"

/* ---- The line --------------------------------------------------------------------------------------------------- */

static cJSON *costs_json(const bench_costs *costs) {
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < BENCH_LAUNCHES; i++) {
        const bench_cost *cost = &costs->of[i];
        if (cost->us.n == 0 && !cost->why[0])
            continue;
        cJSON *row = report_row(list);
        cJSON_AddStringToObject(row, "launch", bench_launch_name(i));
        bench_json_cost(row, cost);
    }
    return list;
}

/* Writes and deletes the object. */
static int write_line(FILE *f, cJSON *object) {
    char *text = cli_json_take(object, 0);
    if (!text)
        return -1;
    cli_json_put(f, text);
    putc('\n', f);
    cJSON_free(text);
    return 0;
}

int part_write(FILE *f, const bench_costs *costs) {
    cJSON *o = cJSON_CreateObject();
    cli_json_integer(o, "pending", costs->pending);
    cli_json_integer(o, "loaded_bytes", costs->loaded_bytes);
    cli_json_integer(o, "reserved_bytes", costs->reserved_bytes);
    cJSON_AddNumberToObject(o, "length", costs->length);
    cJSON_AddNumberToObject(o, "blocks", costs->blocks);
    cJSON_AddNumberToObject(o, "each", costs->each);
    cJSON_AddBoolToObject(o, "hung", costs->hung);
    cli_json_add(o, "costs", costs_json(costs));
    return write_line(f, o);
}

int part_write_failure(FILE *f, const char *why) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "why", why);
    return write_line(f, o);
}

/* ---- Reading it ------------------------------------------------------------------------------------------------- */

static double number_of(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(item) && item->valuedouble > 0 ? item->valuedouble : 0;
}

static const char *string_of(const cJSON *object, const char *key) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    return text ? text : "";
}

static int is_true(const cJSON *object, const char *key) {
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static void read_cost(const cJSON *item, bench_costs *costs) {
    size_t i = 0;
    while (i < BENCH_LAUNCHES && strcmp(bench_launch_name(i), string_of(item, "launch")) != 0)
        i++;
    if (i == BENCH_LAUNCHES)
        return;
    bench_cost *cost = &costs->of[i];
    cost->us = (bench_summary){.n = (int)number_of(item, "samples"),
                               .median = number_of(item, "median_us"),
                               .low = number_of(item, "low_us"),
                               .high = number_of(item, "high_us"),
                               .spread = number_of(item, "spread")};
    cost->settled = is_true(item, "settled");
    snprintf(cost->why, sizeof cost->why, "%.150s", string_of(item, "why"));
}

static void read_costs(const cJSON *object, bench_costs *costs) {
    const cJSON *item = NULL;
    *costs = (bench_costs){.pending = (size_t)number_of(object, "pending"),
                           .loaded_bytes = (size_t)number_of(object, "loaded_bytes"),
                           .reserved_bytes = (size_t)number_of(object, "reserved_bytes"),
                           .length = (int)number_of(object, "length"),
                           .blocks = (int)number_of(object, "blocks"),
                           .each = (int)number_of(object, "each"),
                           .hung = is_true(object, "hung")};
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(object, "costs")) {
        read_cost(item, costs);
    }
}

int part_read(const char *line, nested_part *out) {
    cJSON *object = cJSON_Parse(line);
    const char *why = string_of(object, "why");
    const int there = cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(object, "costs"));
    if (there) {
        out->there = 1;
        out->why[0] = 0;
        read_costs(object, &out->costs);
    } else if (*why) {
        out->there = 0;
        snprintf(out->why, sizeof out->why, "%.250s", why);
    }
    const int status = there || *why ? 0 : -1;
    cJSON_Delete(object);
    return status;
}

/* ---- Processes -------------------------------------------------------------------------------------------------- */

/* How long a process may take to end after its line, and after it was killed. */
static const double patience = 5;

static void nap(void) {
    const struct timespec some = {.tv_nsec = 5000000};
    (void)nanosleep(&some, NULL);
}

/* Whether the process ends in time; *state is then what waitpid() says. */
static int ends(pid_t pid, int *state) {
    const double begin = bench_now();
    pid_t found;
    while ((found = waitpid(pid, state, WNOHANG)) == 0 && bench_now() - begin < patience)
        nap();
    return found == pid;
}

/* Ends the process, by force if need be. Whether it was found ended, with *state. */
static int end_process(pid_t pid, int at_once, int *state) {
    if (!at_once && ends(pid, state))
        return 1;
    (void)kill(pid, SIGKILL);
    return ends(pid, state);
}

/* Reads what there is. 1: go on; 0: the line is whole, or there is no more. */
static int read_some(int fd, char line[PART_LINE], size_t *length) {
    const ssize_t got = read(fd, line + *length, PART_LINE - 1 - *length);
    if (got < 0 && errno == EINTR)
        return 1;
    *length += got > 0 ? (size_t)got : 0;
    line[*length] = 0;
    char *end = strchr(line, '\n');
    if (end)
        *end = 0;
    return got > 0 && !end && *length < PART_LINE - 1;
}

typedef enum { LINE, NO_LINE, LONG_LINE, LATE, INTERRUPTED } line_state;

static line_state read_line(int fd, double seconds, const volatile sig_atomic_t *stop, char line[PART_LINE]) {
    const double begin = bench_now();
    size_t length = 0;
    line[0] = 0;
    for (;;) {
        struct pollfd readable = {.fd = fd, .events = POLLIN};
        if (stop && *stop)
            return INTERRUPTED;
        if (bench_now() - begin > seconds)
            return LATE;
        if (poll(&readable, 1, 50) > 0 && !read_some(fd, line, &length))
            break;
    }
    return length == 0 ? stop && *stop ? INTERRUPTED : NO_LINE : length == PART_LINE - 1 ? LONG_LINE : LINE;
}

/* 0, or the errno. */
static int spawn(const char *program, char *const argv[], int out, pid_t *pid) {
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return error;
    error = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    if (error == 0)
        error = posix_spawn(pid, program, &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    return error;
}

static void describe(line_state line, double seconds, int ended, int state, char why[BENCH_WHY]) {
    if (line == INTERRUPTED)
        snprintf(why, BENCH_WHY, "interrupted");
    else if (line == LATE)
        snprintf(why, BENCH_WHY, "its process took more than %.3g s%s", seconds, ended ? "" : ", and does not end");
    else if (line == LONG_LINE)
        snprintf(why, BENCH_WHY, "its process wrote more than %d bytes", PART_LINE);
    else if (!ended)
        snprintf(why, BENCH_WHY, "its process wrote nothing, and does not end");
    else if (WIFSIGNALED(state))
        snprintf(why, BENCH_WHY, "its process wrote nothing, and ended with signal %d", WTERMSIG(state));
    else
        snprintf(why, BENCH_WHY, "its process wrote nothing, and ended with code %d", WEXITSTATUS(state));
}

int part_run(const char *program, char *const argv[], double seconds, const volatile sig_atomic_t *stop,
             char line[PART_LINE], char why[BENCH_WHY]) {
    int channel[2], state = 0;
    pid_t pid;
    if (pipe2(channel, O_CLOEXEC) != 0) {
        snprintf(why, BENCH_WHY, "no pipe: %s", strerror(errno));
        return -1;
    }
    const int error = spawn(program, argv, channel[1], &pid);
    (void)close(channel[1]);
    const line_state there = error ? NO_LINE : read_line(channel[0], seconds, stop, line);
    (void)close(channel[0]);
    if (error) {
        snprintf(why, BENCH_WHY, "no process: %s", strerror(error));
        return -1;
    }
    const int ended = end_process(pid, there > NO_LINE, &state);
    if (there != LINE)
        describe(there, seconds, ended, state, why);
    return there == LINE ? 0 : -1;
}
