#include "picture.h"

#include <png.h>

dpr_status picture_write(const recursion_request *request, uint32_t width, uint32_t height, const uint8_t *pixels,
                         recursion_answer *answer) {
    png_image image = {.version = PNG_IMAGE_VERSION, .width = width, .height = height, .format = PNG_FORMAT_RGB};
    if (png_image_write_to_file(&image, request->picture, 0, pixels, 0, NULL) != 0)
        return DPR_OK;
    return recursion_fail(answer, "the picture '%.30s' cannot be written: %.40s", request->picture, image.message);
}
