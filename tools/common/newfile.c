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

static FILE *open_aside(newfile *file) {
    struct stat s;
    snprintf(file->aside, sizeof file->aside, "%s.%ld.part", file->target, (long)getpid());
    FILE *f = fopen(file->aside, "wbx");
    if (!f)
        *file->aside = 0;
    else if (stat(file->target, &s) == 0)
        (void)fchmod(fileno(f), s.st_mode & 0777);
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

int newfile_put(newfile *file) {
    if (*file->aside && rename(file->aside, file->target) != 0)
        return -1;
    *file->aside = 0;
    return 0;
}

void newfile_drop(newfile *file) {
    if (*file->aside)
        (void)remove(file->aside);
    *file->aside = 0;
}
