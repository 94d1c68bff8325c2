/* Segments on a GPU for tests: arrays, numbers of segments, and calls that are compared with those on the CPU, or with
 * the reference. */
#ifndef DPR_TESTS_GPU_SEGMENTS_SCENE_H
#define DPR_TESTS_GPU_SEGMENTS_SCENE_H

#include "support.h"

/* What most scenes have room for; the longest element or result; and bytes around results that calls leave alone. */
enum { MOST_ELEMENTS = (1 << 18) + 8, MOST_SEGMENTS = 1 << 15, MOST_BYTES = 16, GUARD = 64 };

/* Lengths of segments: the next one is made of the number of the segment. */
typedef size_t length_of(size_t i);
length_of length_ones, length_short, length_mixed, length_long, length_one_long;

typedef struct scene {
    dpr_ctx *gpu, *cpu;
    dpr_op op;
    dpr_dtype dtype;
    size_t most_elements, most_segments;
    unsigned char *in, *known, *got, *magnitudes;
    size_t shift, count;    /* bytes from `in` to the array; its elements */
    int64_t *begins, *ends; /* numbers, of type I64 */
    unsigned char *numbers; /* the same of another type: begins, and from most_segments on ends */
    unsigned char *in_device, *out_device, *numbers_device;
} scene;

/* Makes a scene with room for so many elements and segments of any type. */
void open_scene(scene *s, size_t elements, size_t segments);
void close_scene(scene *s);

/* Calls run() for every pair. */
void run_pairs(void (*run)(scene *));

/* Operations whose results are compared with the reference, which has bounds for their errors. */
int is_measure(dpr_op op);

/* Whether it is a mean that segments.merge and segments.small run, as a sum which they divide. */
int is_divided_sum(dpr_op op, dpr_dtype dtype, dpr_nan nan);

/* Types of numbers, in turn. */
static const dpr_dtype types[] = {DPR_I64, DPR_I32, DPR_U32, DPR_U64};

/* Fills the array, which begins `shift` bytes behind a boundary of 16. */
void make_elements(scene *s, size_t shift);

/* Makes offsets of as many segments as fit `elements` elements, from number `first` on. Returns how many these are. */
size_t make_short(scene *s, length_of *length, size_t first, size_t elements);

/* Numbers of segments of which two of three are long: segments.group has room for 1024 long ones. */
enum { FEW = 90, MANY = 1800 };

/* Makes `count` segments that overlap: long ones, and short ones between them. */
void overlap(scene *s, dpr_segments *segments, size_t count, dpr_dtype type);

/* Makes numbers of the type from begins and ends, also on the device. */
void convert_numbers(scene *s, dpr_dtype type);

/* Points to the numbers at `numbers`, which are the scene's or their copy on the device. */
void use_numbers(const scene *s, dpr_segments *segments, const unsigned char *numbers, int has_ends);

/* Compares a call on the device with the same call on the CPU. */
void expect_same(scene *s, dpr_segments *segments, int has_ends, const dpr_options *options);

/* Launches a captured call so many times, and returns how many of them gave other bits than the first. */
int count_other_bits(scene *s, const dpr_segments *segments, const dpr_options *options, int times);

#endif
