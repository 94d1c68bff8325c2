#include "picture.h"

#include <errno.h>
#include <png.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* A file that is cut off is removed, but no device. */
static void remove_file(const char *path) {
    struct stat s;
    if (stat(path, &s) == 0 && S_ISREG(s.st_mode))
        (void)remove(path);
}

static dpr_status fail(const recursion_request *request, const char *why, recursion_answer *answer) {
    return recursion_fail(answer, "the picture '%.30s' cannot be written: %.40s", request->picture, why);
}

dpr_status picture_write(const recursion_request *request, uint32_t width, uint32_t height, const uint8_t *pixels,
                         recursion_answer *answer) {
    png_image image = {.version = PNG_IMAGE_VERSION, .width = width, .height = height, .format = PNG_FORMAT_RGB};
    FILE *f = fopen(request->picture, "wb");
    if (!f)
        return fail(request, strerror(errno), answer);
    const int is_drawn = png_image_write_to_stdio(&image, f, 0, pixels, 0, NULL) != 0, is_closed = fclose(f) == 0;
    if (is_drawn && is_closed)
        return DPR_OK;
    const char *why = is_drawn ? strerror(errno) : image.message;
    remove_file(request->picture);
    return fail(request, why, answer);
}
