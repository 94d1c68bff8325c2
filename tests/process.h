/* What /proc says of this process. */
#ifndef DPR_TESTS_PROCESS_H
#define DPR_TESTS_PROCESS_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Entries of a folder, or -1. */
static inline int count_entries(const char *path) {
    int count = 0;
    DIR *folder = opendir(path);
    if (!folder)
        return -1;
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder))
        count += entry->d_name[0] != '.';
    (void)closedir(folder);
    return count;
}

/* Threads of this process, or -1. */
static inline int count_threads(void) {
    return count_entries("/proc/self/task");
}

/* Open files of this process and one more, or -1. */
static inline int count_files(void) {
    return count_entries("/proc/self/fd");
}

/* Whether the thread has a name as the library's workers have. */
static inline int is_worker(const char *id) {
    char path[64], name[16] = "";
    (void)snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", id);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    const int found = fgets(name, sizeof name, file) && strncmp(name, "dpr-", 4) == 0;
    (void)fclose(file);
    return found;
}

/* How many workers have begun, and the id of one in *id, which stays as it is if there is none. */
static inline int count_workers(long *id) {
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    for (const struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder)) {
        if (entry->d_name[0] != '.' && is_worker(entry->d_name)) {
            count++;
            *id = strtol(entry->d_name, NULL, 10);
        }
    }
    if (folder)
        (void)closedir(folder);
    return count;
}

#endif
