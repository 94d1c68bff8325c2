/* Headers of .npy files: what is accepted keeps its limits, and reads back after it is written. */
#define _POSIX_C_SOURCE 200809L /* open_memstream() */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "npy.h"

static void check_limits(const npy_header *h) {
    uint64_t count = 1;
    int is_empty = 0;
    FUZZ_CHECK(h->dims >= 0 && h->dims <= NPY_DIMS, "%d dimensions", h->dims);
    FUZZ_CHECK(dpr_dtype_size(h->dtype) > 0, "type %d", h->dtype);
    for (int d = 0; d < h->dims; d++)
        is_empty |= h->shape[d] == 0;
    for (int d = 0; d < h->dims && !is_empty; d++)
        FUZZ_CHECK(!__builtin_mul_overflow(count, h->shape[d], &count), "dimension %d is %zu", d, (size_t)h->shape[d]);
    FUZZ_CHECK(h->count == (is_empty ? 0 : count), "%zu elements", (size_t)h->count);
    FUZZ_CHECK(h->count <= (uint64_t)PTRDIFF_MAX / dpr_dtype_size(h->dtype), "%zu elements", (size_t)h->count);
}

/* Reads a whole file, as `dpr reduce` does. 0, or -1 with `why`. */
static int read_header(const unsigned char *bytes, size_t size, const dpr_dtype *as, npy_header *h, char why[NPY_WHY]) {
    size_t prefix = 0, length = 0;
    if (npy_prefix(bytes, size < NPY_PREFIX_BYTES ? size : NPY_PREFIX_BYTES, &prefix, &length, why) != 0)
        return -1;
    FUZZ_CHECK(prefix <= NPY_PREFIX_BYTES && length <= NPY_TEXT_BYTES, "%zu and %zu bytes", prefix, length);
    if (size < prefix || length > size - prefix)
        return npy_fail(why, "the header is cut off");
    char *text = fuzz_text(bytes + prefix, length);
    const int status = npy_parse(text, length, as, h, why);
    free(text);
    return status;
}

static void check_round_trip(const npy_header *h) {
    char *text = NULL, why[NPY_WHY] = "";
    size_t size = 0;
    npy_header again = {0};
    FILE *f = open_memstream(&text, &size);
    FUZZ_CHECK(f != NULL, "no memory");
    npy_write_header(f, h->dtype, h->dims, h->shape);
    (void)fclose(f);
    FUZZ_CHECK(read_header((const unsigned char *)text, size, &h->dtype, &again, why) == 0, "%s", why);
    FUZZ_CHECK(size % 64 == 0 && text[size - 1] == '\n', "%zu bytes", size);
    FUZZ_CHECK(again.dtype == h->dtype && again.dims == h->dims && again.count == h->count, "type %d, %d dimensions",
               again.dtype, again.dims);
    FUZZ_CHECK(memcmp(again.shape, h->shape, sizeof h->shape) == 0, "another shape");
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static const dpr_dtype bf16 = DPR_BF16;
    const dpr_dtype *const types[] = {NULL, &bf16};
    for (size_t i = 0; i < 2 && npy_is(bytes, size); i++) {
        npy_header h = {.dims = -1};
        char why[NPY_WHY] = "";
        if (read_header(bytes, size, types[i], &h, why) == 0) {
            check_limits(&h);
            check_round_trip(&h);
        } else {
            FUZZ_CHECK(*why && h.dims == -1, "no reason, or a header: %s", why);
        }
    }
    return 0;
}
