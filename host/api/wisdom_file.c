/* Files of wisdom: where they are, and how they are read and written. */
#define _GNU_SOURCE /* flock(), O_CLOEXEC, O_NOFOLLOW */
#include "wisdom_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "environment.h"
#include "error.h"

enum { FILE_BYTES = 64 << 20 /* at most */ };

/* ---- Paths ---- */

static const char site_path[] = "/etc/dpr/wisdom";

/* Writes the path of the user's file. Returns 0 if there is none, because neither variable names a folder. */
static int user_path(char path[DPR_PATH_BYTES]) {
    const char *state = dpr_env_of_system("XDG_STATE_HOME"), *home = dpr_env_of_system("HOME");
    int n = 0;
    if (state && state[0] == '/')
        n = snprintf(path, DPR_PATH_BYTES, "%s/dpr/wisdom", state);
    else if (home && home[0] == '/')
        n = snprintf(path, DPR_PATH_BYTES, "%s/.local/state/dpr/wisdom", home);
    return n > 0 && n < DPR_PATH_BYTES;
}

/* Finds the file that DPR_WISDOM names, or the user's. Returns 0 if there is none. */
static int find_own(char own[DPR_PATH_BYTES], const char **path) {
    const char *named = dpr_env_value(DPR_ENV_WISDOM);
    *path = named ? named : own;
    return named ? strcmp(named, "none") != 0 : user_path(own);
}

int dpr_wisdom_paths(char own[DPR_PATH_BYTES], const char *paths[2]) {
    int n = 0;
    if (!dpr_env_value(DPR_ENV_WISDOM))
        paths[n++] = site_path;
    return n + find_own(own, &paths[n]);
}

dpr_status dpr_wisdom_own_path(char own[DPR_PATH_BYTES], const char **path) {
    if (find_own(own, path))
        return DPR_OK;
    (void)dpr_fail(DPR_ERR_FILE, "there is no file of the user's: %s",
                   *path == own ? "HOME and XDG_STATE_HOME name no folder" : "DPR_WISDOM is none");
    return DPR_ERR_FILE;
}

/* ---- Reading ---- */

/* Reads all of an open file. `size` is its size when it was opened; the file may have changed. */
static char *read_all(int file, size_t size, size_t *got) {
    char *text = malloc(size + 1);
    ssize_t n = 1;
    *got = 0;
    while (text && *got < size && (n = read(file, text + *got, size - *got)) != 0) {
        if (n < 0 && errno != EINTR)
            break;
        *got += n > 0 ? (size_t)n : 0;
    }
    if (text && n >= 0)
        return text;
    free(text);
    return NULL;
}

dpr_status dpr_wisdom_read(const char *path, dpr_wisdom **out, int *missing) {
    char why[400];
    struct stat about;
    size_t size = 0;
    *missing = 0;
    if (!path[0])
        return dpr_fail(DPR_ERR_FILE, "path is empty");
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *missing = file < 0 && (errno == ENOENT || errno == ENOTDIR);
    if (*missing) /* which is no error of the process's own files */
        return DPR_ERR_FILE;
    if (file < 0)
        return dpr_fail(DPR_ERR_FILE, "%s cannot be read: %s", path, strerror(errno));
    const int is_sane = fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size <= FILE_BYTES;
    char *text = is_sane ? read_all(file, (size_t)about.st_size, &size) : NULL;
    const int error = errno;
    (void)close(file);
    if (!is_sane)
        return dpr_fail(DPR_ERR_FILE, "%s is not a regular file, or has more than 64 MiB", path);
    if (!text)
        return dpr_fail(DPR_ERR_FILE, "%s cannot be read: %s", path, strerror(error));
    const dpr_status status = dpr_wisdom_parse(text, size, out);
    free(text);
    if (status != DPR_ERR_WISDOM)
        return status;
    (void)snprintf(why, sizeof why, "%s", dpr_last_error());
    return dpr_fail(DPR_ERR_WISDOM, "%s: %s", path, why);
}

/* ---- Writing ---- */

static dpr_status make_folders(const char *path) {
    char folder[DPR_PATH_BYTES];
    (void)snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(folder, 0777) != 0 && errno != EEXIST)
            return dpr_fail(DPR_ERR_FILE, "the folder %s cannot be made: %s", folder, strerror(errno));
        *slash = '/';
    }
    return DPR_OK;
}

/* Takes the lock of a file, which other processes may hold. Returns its descriptor, or -1 after an error. */
static int lock_file(const char *path) {
    const struct timespec pause = {0, 10000000};
    char name[DPR_PATH_BYTES + 8];
    (void)snprintf(name, sizeof name, "%s.lock", path);
    int file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 && errno == EACCES) { /* another user's, perhaps root's: locking takes no right to write */
        file = open(name, O_RDONLY | O_CLOEXEC);
        errno = errno == ENOENT ? EACCES : errno; /* the folder may not be written */
    }
    if (file < 0) {
        (void)dpr_fail(DPR_ERR_FILE, "%s cannot be opened: %s", name, strerror(errno));
        return -1;
    }
    for (int i = 0; i < 1000; i++) {
        if (flock(file, LOCK_EX | LOCK_NB) == 0)
            return file;
        if (errno != EWOULDBLOCK && errno != EINTR)
            break;
        (void)nanosleep(&pause, NULL);
    }
    (void)dpr_fail(DPR_ERR_FILE, "%s cannot be locked: %s", name,
                   errno == EWOULDBLOCK ? "another process has held it for 10 seconds" : strerror(errno));
    (void)close(file);
    return -1;
}

static int write_all(int file, const char *text, size_t size) {
    while (size > 0) {
        const ssize_t n = write(file, text, size);
        if (n < 0 && errno != EINTR)
            return -1;
        text += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Forces the folder's new entry to the disk. Not all file systems can, and the file is whole in any case. */
static void sync_folder(const char *path) {
    char folder[DPR_PATH_BYTES];
    (void)snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = 0;
    const int file = open(slash ? folder : ".", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    if (file >= 0) {
        (void)fsync(file);
        (void)close(file);
    }
}

/* Gives a new file the owner and the permissions of the file at `path`, if there is one: a user's file stays the user's
 * when root adds times. Others cannot change the owner, and keep their own. 0, or -1 with errno. */
static int copy_owner_and_mode(int file, const char *path) {
    struct stat about;
    if (stat(path, &about) != 0)
        return 0;
    if (fchown(file, about.st_uid, about.st_gid) != 0)
        errno = 0;
    return fchmod(file, about.st_mode & 0777);
}

/* Writes text to a new file next to `path`, which is locked, and gives it that name. A file of the new file's name is
 * left from a writer that was killed, and is removed. */
static dpr_status write_file(const char *path, const char *text, size_t size) {
    char aside[DPR_PATH_BYTES + 8];
    (void)snprintf(aside, sizeof aside, "%s.new", path);
    (void)unlink(aside);
    const int file = open(aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0)
        return dpr_fail(DPR_ERR_FILE, "%s cannot be made: %s", aside, strerror(errno));
    int failed = write_all(file, text, size) != 0 || copy_owner_and_mode(file, path) != 0 || fsync(file) != 0;
    int error = errno;
    if (close(file) != 0 && !failed) {
        failed = 1;
        error = errno;
    }
    if (!failed && rename(aside, path) != 0) {
        failed = 1;
        error = errno;
    }
    if (failed) {
        (void)unlink(aside);
        return dpr_fail(DPR_ERR_FILE, "%s cannot be written: %s", path, strerror(error));
    }
    sync_folder(path);
    return DPR_OK;
}

static dpr_status write_wisdom(const char *path, const dpr_wisdom *wisdom) {
    size_t size = 0;
    dpr_status status = dpr_wisdom_format(wisdom, NULL, &size);
    if (status == DPR_OK && size > FILE_BYTES)
        status = dpr_fail(DPR_ERR_WISDOM, "the text of all times has more than 64 MiB; begin a new file");
    char *text = status == DPR_OK ? malloc(size) : NULL;
    if (status == DPR_OK && !text)
        status = dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for the text of wisdom");
    if (status == DPR_OK)
        status = dpr_wisdom_format(wisdom, text, &size);
    if (status == DPR_OK)
        status = write_file(path, text, size - 1);
    free(text);
    return status;
}

/* Writes what the process knows, what the file has, and what the process has learned: of equal times the last of these
 * is kept, because what the process has only read may be older than the file. The file is locked. */
static dpr_status update(const char *path, const dpr_wisdom *known, const dpr_wisdom *learned) {
    dpr_wisdom *there = NULL, *older = NULL, *all = NULL;
    int missing;
    dpr_status status = dpr_wisdom_read(path, &there, &missing);
    if (missing)
        status = (there = dpr_wisdom_none()) ? DPR_OK : DPR_ERR_OUT_OF_MEMORY;
    if (status == DPR_OK)
        status = dpr_wisdom_join(known, there, &older);
    if (status == DPR_OK && learned)
        status = dpr_wisdom_join(older, learned, &all);
    if (status == DPR_OK)
        status = write_wisdom(path, all ? all : older);
    dpr_wisdom_release(there);
    dpr_wisdom_release(older);
    dpr_wisdom_release(all);
    return status;
}

/* Replaces the path of a link by the one that it leads to, as a file in that folder would be found. Returns 1; 0 if it
 * is no link; below 0 if the path is too long. */
static int follow(char path[DPR_PATH_BYTES]) {
    char leads_to[DPR_PATH_BYTES];
    const ssize_t n = readlink(path, leads_to, sizeof leads_to - 1);
    if (n < 0)
        return 0;
    leads_to[n] = 0;
    const char *slash = strrchr(path, '/');
    const size_t folder = leads_to[0] == '/' || !slash ? 0 : (size_t)(slash + 1 - path);
    if (folder + (size_t)n >= DPR_PATH_BYTES)
        return -1;
    memcpy(path + folder, leads_to, (size_t)n + 1);
    return 1;
}

/* Finds the file that a path leads to, which need not be there: renaming would replace a link. */
static dpr_status find_target(const char *path, char target[DPR_PATH_BYTES]) {
    enum { LINKS_MOST = 40 }; /* as Linux follows */
    int links = 0, followed;
    (void)snprintf(target, DPR_PATH_BYTES, "%s", path);
    while ((followed = follow(target)) > 0 && links < LINKS_MOST)
        links++;
    if (followed == 0)
        return DPR_OK;
    return dpr_fail(DPR_ERR_FILE, "%s cannot be written: %s", path, strerror(followed > 0 ? ELOOP : ENAMETOOLONG));
}

dpr_status dpr_wisdom_write(const char *path, const dpr_wisdom *known, const dpr_wisdom *learned) {
    char own[DPR_PATH_BYTES], target[DPR_PATH_BYTES];
    dpr_status status = path ? DPR_OK : dpr_wisdom_own_path(own, &path);
    if (status == DPR_OK && path == own)
        status = make_folders(path);
    if (status == DPR_OK && (!path[0] || strlen(path) >= DPR_PATH_BYTES))
        status = dpr_fail(DPR_ERR_FILE, "path is empty, or has more than %d bytes", DPR_PATH_BYTES - 1);
    if (status == DPR_OK)
        status = find_target(path, target);
    if (status != DPR_OK)
        return status;
    const int locked = lock_file(target);
    if (locked < 0)
        return DPR_ERR_FILE;
    status = update(target, known, learned);
    (void)flock(locked, LOCK_UN); /* children that were forked meanwhile have the file open, too */
    (void)close(locked);
    return status;
}
