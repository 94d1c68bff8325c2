/* A file that is written aside, so that an older one stays until the new one is whole. */
#ifndef DPR_TOOLS_NEWFILE_H
#define DPR_TOOLS_NEWFILE_H

#include <limits.h>
#include <stdio.h>

typedef struct newfile {
    const char *name;   /* set by the caller; the rest begins as zeros */
    const char *target; /* the name, or what the links of this name lead to */
    char links_to[PATH_MAX];
    char aside[PATH_MAX + 32]; /* "": no file is there */
} newfile;

/* Opens a file for writing, next to its place: with a name that no file had, because that could be one that is read,
 * and with the owner and the permissions of an older one. A device or a pipe is opened itself, and so is an older file
 * whose folder takes no new file, or no longer name. The caller closes it. NULL with errno if that fails. */
FILE *newfile_open(newfile *file);

/* Puts a file that is written in its place, or copies it there if that is the only way. 0, or -1 with errno. */
int newfile_put(newfile *file);

/* Removes what was not put in its place. */
void newfile_drop(newfile *file);

#endif
