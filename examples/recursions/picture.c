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

dpr_status picture_write(const recursion_request *request, uint32_t width, uint32_t height, const uint8_t *pixels,
                         recursion_answer *answer) {
    png_image image = {.version = PNG_IMAGE_VERSION, .width = width, .height = height, .format = PNG_FORMAT_RGB};
    const char *why = "";
    FILE *f = fopen(request->picture, "wb");
    if (f && !png_image_write_to_stdio(&image, f, 0, pixels, 0, NULL))
        why = image.message;
    if (!f || fclose(f) != 0)
        why = *why ? why : strerror(errno);
    if (!*why)
        return DPR_OK;
    if (f)
        remove_file(request->picture);
    return recursion_fail(answer, "the picture '%.30s' cannot be written: %.40s", request->picture, why);
}
