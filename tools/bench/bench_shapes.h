/* Arrays with many results: how long their segments are, and along which of their dimensions they are reduced. Pure. */
#ifndef DPR_TOOLS_BENCH_SHAPES_H
#define DPR_TOOLS_BENCH_SHAPES_H

#include "dpr.h"

/* Characters of a shape's name, with the zero at its end; shapes of one measurement, at most. */
enum { SHAPE_NAME = 64, SHAPES_MOST = 64 };

/* How long segments are. */
typedef enum shape_lengths {
    SHAPE_ONES,    /* 1 */
    SHAPE_UNIFORM, /* 0 to 2 * average, all equally probable */
    SHAPE_EQUAL,   /* average */
    SHAPE_HUGE,    /* one of half of all elements, between many of 0 to 16 */
    SHAPE_ZIPF,    /* k with probability 1 / (k (k + 1)); what is above a 64th of all elements is that */
    SHAPE_THREE    /* a third */
} shape_lengths;

/* A distribution of lengths, or extents of an array of some dimensions. */
typedef struct bench_shape {
    char name[SHAPE_NAME];
    int dimensions; /* 0: segments */
    /* Segments: */
    shape_lengths lengths;
    uint64_t average;
    /* Axes: */
    uint32_t reduced;                      /* as in dpr_axes */
    uint64_t extents[DPR_MOST_DIMENSIONS]; /* 0: N, as many as the number of elements takes */
    uint64_t pitches[DPR_MOST_DIMENSIONS]; /* of these in memory, at least the extent; 0: the extent */
} bench_shape;

typedef struct bench_shapes {
    int n;
    bench_shape at[SHAPES_MOST];
} bench_shapes;

/* The distribution's name; NULL past the end. The twelve arrays, as shapes_take_axes() reads them; NULL past the end.
 * Static storage. */
const char *shape_distribution_name(size_t i);
const char *shape_axes_name(size_t i);

/* Arguments of options (cli.h): bench_shapes. A list of distributions or of arrays, or "all"; each once. An array is
 * its extents, as EXTENTxEXTENT..., a colon, and the dimensions that are reduced, with commas: 16384x16384:1. An extent
 * is a number, N, or EXTENT/PITCH: as many of PITCH in memory. CLI_OK, or CLI_USAGE after a message. */
int shapes_take_segments(const char *text, void *out);
int shapes_take_axes(const char *text, void *out);

/* Whether it has as many elements as are asked for: not if all extents are numbers. */
int shape_scales(const bench_shape *shape);

/* An array of a shape, with as many elements as were asked for. */
typedef struct shape_array {
    const bench_shape *shape;
    uint64_t elements; /* that are reduced */
    uint64_t span;     /* from the first to the last in memory, with what is between */
    uint64_t results;
    /* Segments: */
    uint64_t empty; /* those without elements; 0 before shape_make() */
    dpr_dtype offset_dtype;
    size_t offset_bytes; /* of results + 1 offsets; 0: axes */
    void *offsets;       /* NULL before shape_make() */
    /* Axes: */
    uint64_t extents[DPR_MOST_DIMENSIONS];
    int64_t strides[DPR_MOST_DIMENSIONS];
} shape_array;

/* What is known without making offsets, where `results` is an estimate for segments of random lengths. Numbers are at
 * most UINT64_MAX / 64. `elements` is 0 if the shape has no array of at most `count` elements. */
shape_array shape_measures(const bench_shape *shape, uint64_t count, dpr_dtype offsets);

/* The same with the offsets and the true number of results. shape_free() is due in any case. 0; -1 with a clause of at
 * most 100 characters if there is no such array, the type cannot hold the offsets, or there is no memory. */
int shape_make(const bench_shape *shape, uint64_t count, dpr_dtype offsets, shape_array *out, const char **why);
void shape_free(shape_array *a);

/* Offset i. */
uint64_t shape_offset(const shape_array *a, uint64_t i);

#endif
