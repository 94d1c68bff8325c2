/* Files of wisdom: where they are, and how they are read and written. */
#ifndef DPR_HOST_API_WISDOM_FILE_H
#define DPR_HOST_API_WISDOM_FILE_H

#include "plan/wisdom.h"

enum { DPR_PATH_BYTES = 4096 }; /* of a path, with its zero */

/* The paths of the files that a process reads by itself, in their order: that in DPR_WISDOM, or the site's and the
 * user's. Returns how many there are; `own` has room for one of them. */
int dpr_wisdom_paths(char own[DPR_PATH_BYTES], const char *paths[2]);

/* Finds the path of the file that is written if no other is named: that in DPR_WISDOM, or the user's, for which `own`
 * has room. DPR_ERR_FILE if there is none. */
dpr_status dpr_wisdom_own_path(char own[DPR_PATH_BYTES], const char **path);

/* Makes wisdom of a file. *missing says whether it fails because there is no such file. DPR_ERR_FILE, DPR_ERR_WISDOM,
 * DPR_ERR_OUT_OF_MEMORY. */
dpr_status dpr_wisdom_read(const char *path, dpr_wisdom **out, int *missing);

/* Does what dpr_wisdom_export() says, for what the process knows, of which it has learned a part itself (NULL:
 * none). */
dpr_status dpr_wisdom_write(const char *path, const dpr_wisdom *known, const dpr_wisdom *learned);

#endif
