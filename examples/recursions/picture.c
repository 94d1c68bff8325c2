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
    FILE *f = fopen(request->picture, "wb");
    const int drawn = f && png_image_write_to_stdio(&image, f, 0, pixels, 0, NULL) != 0;
    const char *why = f && !drawn ? image.message : strerror(errno);
    const int closed = f && fclose(f) == 0;
    if (drawn && closed)
        return DPR_OK;
    if (drawn)
        why = strerror(errno);
    if (f)
        remove_file(request->picture);
    return recursion_fail(answer, "the picture '%.30s' cannot be written: %.40s", request->picture, why);
}
