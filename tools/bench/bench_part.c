#include "bench_part.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How long a process may take to end after its line, and after it was killed, in seconds. */
static const double patience = 5;

/* Whether the process ends in time; *state is then what waitpid() says. */
static int ends(pid_t pid, int *state) {
    static const struct timespec some = {.tv_nsec = 5000000};
    const double begin = seconds_now();
    pid_t found;
    while ((found = waitpid(pid, state, WNOHANG)) == 0 && seconds_now() - begin < patience)
        (void)nanosleep(&some, NULL);
    return found == pid;
}

/* Ends the process, by force if need be, and says how it ended. Whether that was well. */
static int end_process(pid_t pid, int at_once, char why[BENCH_WHY]) {
    int state = 0, ended = !at_once && ends(pid, &state);
    if (!ended) {
        (void)kill(pid, SIGKILL);
        ended = ends(pid, &state);
    }
    if (!ended)
        snprintf(why, BENCH_WHY, "its process does not end");
    else if (WIFSIGNALED(state))
        snprintf(why, BENCH_WHY, "its process ended with signal %d", WTERMSIG(state));
    else
        snprintf(why, BENCH_WHY, "its process ended with code %d", WEXITSTATUS(state));
    return ended && WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

/* Reads a line, until there is no more, the time is over, or *stop becomes not 0. Whether it came. */
static int read_line(int fd, double end, const volatile sig_atomic_t *stop, char line[PART_LINE]) {
    size_t length = 0;
    ssize_t got = 1;
    while (got > 0 && length < PART_LINE - 1 && seconds_now() < end && !(stop && *stop)) {
        struct pollfd readable = {.fd = fd, .events = POLLIN};
        if (poll(&readable, 1, 50) <= 0)
            continue;
        got = read(fd, line + length, PART_LINE - 1 - length);
        length += got > 0 ? (size_t)got : 0;
        line[length] = 0;
        char *newline = strchr(line, '\n');
        if (newline)
            *newline = 0;
        if (newline)
            return 1;
    }
    line[0] = 0;
    return 0;
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

/* Reads the process's line and ends it. */
static int take_line(pid_t pid, int fd, double seconds, const volatile sig_atomic_t *stop, char line[PART_LINE],
                     char why[BENCH_WHY]) {
    const double end = seconds_now() + seconds;
    const int came = read_line(fd, end, stop, line), stopped = stop && *stop, late = seconds_now() >= end;
    const int well = end_process(pid, !came && (stopped || late), why);
    if (!came && stopped)
        snprintf(why, BENCH_WHY, "interrupted");
    else if (!came && late)
        snprintf(why, BENCH_WHY, "its process took more than %.3g s", seconds);
    else if (!came && well)
        snprintf(why, BENCH_WHY, "its process wrote no line");
    return came && well ? 0 : -1;
}

int part_run(const char *program, char *const argv[], double seconds, const volatile sig_atomic_t *stop,
             char line[PART_LINE], char why[BENCH_WHY]) {
    int channel[2], status = -1;
    pid_t pid;
    line[0] = 0;
    if (pipe2(channel, O_CLOEXEC) != 0) {
        snprintf(why, BENCH_WHY, "no pipe: %s", strerror(errno));
        return -1;
    }
    const int error = spawn(program, argv, channel[1], &pid);
    (void)close(channel[1]);
    if (error)
        snprintf(why, BENCH_WHY, "no process: %s", strerror(error));
    else
        status = take_line(pid, channel[0], seconds, stop, line, why);
    (void)close(channel[0]);
    return status;
}
