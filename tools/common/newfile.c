#include "newfile.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opening says why a folder, or a file without write permission, cannot be written. */
static int is_replaceable(const char *path) {
    struct stat s;
    return lstat(path, &s) != 0 || (S_ISREG(s.st_mode) && access(path, W_OK) == 0);
}

/* Only root may give files away. */
static int resemble(int file, const struct stat *older) {
    const int given = fchown(file, older->st_uid, older->st_gid);
    return fchmod(file, older->st_mode & 0777) | given;
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
        (void)resemble(fileno(f), &s);
    return f;
}

FILE *newfile_open(newfile *file) {
    file->target = realpath(file->name, file->links_to) ? file->links_to : file->name;
    if (is_replaceable(file->target)) {
        FILE *f = open_aside(file);
        if (f || (errno != EACCES && errno != ENAMETOOLONG))
            return f;
    }
    return fopen(file->target, "wb");
}

/* Where a file cannot be replaced: it is mounted by itself, or another user's in a folder that all may write. */
static int copy_to_target(const newfile *file) {
    char part[65536];
    size_t n;
    FILE *from = fopen(file->aside, "rb"), *to = from ? fopen(file->target, "wb") : NULL;
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
    if (rename(file->aside, file->target) == 0)
        *file->aside = 0;
    else if (copy_to_target(file) != 0)
        return -1;
    newfile_drop(file);
    return 0;
}

void newfile_drop(newfile *file) {
    if (*file->aside)
        (void)remove(file->aside);
    *file->aside = 0;
}
