/* Files of results, as JSON. */
#ifndef DPR_TOOLS_DOCUMENT_H
#define DPR_TOOLS_DOCUMENT_H

#include <cjson/cJSON.h>

/* The document of a file ("-" is standard input), which the caller deletes. NULL after a message: the file cannot be
 * read, is no JSON, or is larger or deeper nested than any result. `what` is for messages: "cannot be WHAT". */
cJSON *document_read(const char *file, const char *what);

/* What messages call the file. */
const char *document_name(const char *file);

#endif
