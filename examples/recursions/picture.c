#include "picture.h"

#include <png.h>
#include <stdio.h>
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
    if (!f)
        return recursion_fail(answer, "the picture '%.30s' cannot be written", request->picture);
    const int is_written = png_image_write_to_stdio(&image, f, 0, pixels, 0, NULL) != 0;
    if (fclose(f) == 0 && is_written)
        return DPR_OK;
    remove_file(request->picture);
    return recursion_fail(answer, "the picture '%.30s' cannot be written: %.40s", request->picture, image.message);
}
