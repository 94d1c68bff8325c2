#include "newfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

/* Opening says why a folder, or a file without write permission, cannot be written. */
static int is_replaceable(const char *path) {
    struct stat s;
    return lstat(path, &s) != 0 || (S_ISREG(s.st_mode) && access(path, W_OK) == 0);
}

/* Only root can change the owner; others keep their own. */
static void copy_owner_and_mode(int file, const struct stat *older) {
    if (fchown(file, older->st_uid, older->st_gid) != 0)
        errno = 0;
    (void)fchmod(file, older->st_mode & 0777);
}

static FILE *open_aside(newfile *file) {
    struct stat s;
    FILE *f = NULL;
    errno = EEXIST; /* a program that was killed may have left a file of this process's number */
    for (int i = 0; !f && errno == EEXIST && i < 100; i++) {
        snprintf(file->aside, sizeof file->aside, "%s.%ld-%d.part", file->target, (long)getpid(), i);
        f = fopen(file->aside, "wbx");
    }
    if (!f)
        *file->aside = 0;
    else if (stat(file->target, &s) == 0)
        copy_owner_and_mode(fileno(f), &s);
    return f;
}

FILE *newfile_open(newfile *file) {
    file->target = realpath(file->name, file->links_to) ? file->links_to : file->name;
    if (is_replaceable(file->target)) {
        FILE *f = open_aside(file);
        if (f || (errno != EACCES && errno != EPERM && errno != EROFS && errno != ENAMETOOLONG))
            return f;
    }
    return fopen(file->target, "wb");
}

/* Overwrites the target with the new file's text. That is needed where rename() cannot replace the target: it is a
 * mount point, or belongs to another user in a folder that all may write, in which O_CREAT would be refused. 0, or -1
 * with errno. */
static int copy_to_target(const newfile *file) {
    char part[65536];
    size_t n;
    FILE *from = fopen(file->aside, "rb");
    const int target = from ? open(file->target, O_WRONLY | O_TRUNC | O_CLOEXEC) : -1;
    FILE *to = target >= 0 ? fdopen(target, "wb") : NULL;
    int failed = !to;
    while (!failed && (n = fread(part, 1, sizeof part, from)) > 0)
        failed = fwrite(part, 1, n, to) != n;
    failed = failed || ferror(from);
    if (to && fclose(to) != 0)
        failed = 1;
    if (from)
        (void)fclose(from);
    return failed ? -1 : 0;
}

int newfile_put(newfile *file) {
    if (!*file->aside)
        return 0;
    if (rename(file->aside, file->target) == 0) {
        *file->aside = 0;
        return 0;
    }
    if (errno != EBUSY && errno != EPERM && errno != EACCES)
        return -1;
    if (copy_to_target(file) == 0) {
        newfile_drop(file);
        return 0;
    }
    const int error = errno;
    cli_note("%s has what could not be written", file->aside);
    *file->aside = 0;
    errno = error;
    return -1;
}

void newfile_drop(newfile *file) {
    if (*file->aside)
        (void)remove(file->aside);
    *file->aside = 0;
}
