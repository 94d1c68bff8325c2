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

/* Opens a new file for writing, next to its place. No file had its name, so nothing that is read is overwritten. It
 * gets the permissions of an older file, and its owner if root writes it. A device or a pipe is opened itself, and so
 * is an older file whose folder takes no new file, or no longer name. The caller closes it. NULL with errno if that
 * fails. */
FILE *newfile_open(newfile *file);

/* Moves a file that is written to its place, or copies it there if it cannot be moved. If the copy fails, the older
 * file is lost, and the new one stays aside, which a note names. 0, or -1 with errno. */
int newfile_put(newfile *file);

/* Removes what was not put in its place. */
void newfile_drop(newfile *file);

#endif
