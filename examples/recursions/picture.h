/* Pictures of results. */
#ifndef DPR_EXAMPLES_RECURSION_PICTURE_H
#define DPR_EXAMPLES_RECURSION_PICTURE_H

#include "example.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes request->picture as a PNG file: width * height pixels of three bytes (red, green, blue), row after row. Sets
 * why in the answer if it fails. */
dpr_status picture_write(const recursion_request *request, uint32_t width, uint32_t height, const uint8_t *pixels,
                         recursion_answer *answer);

#ifdef __cplusplus
}
#endif

#endif
