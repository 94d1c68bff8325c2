#include "bench_shapes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* The nine distributions that ragged.md compares. */
static const bench_shape distributions[] = {
    {.name = "ones", .lengths = SHAPE_ONES, .average = 1},
    {.name = "uniform-8", .lengths = SHAPE_UNIFORM, .average = 8},
    {.name = "uniform-32", .lengths = SHAPE_UNIFORM, .average = 32},
    {.name = "uniform-256", .lengths = SHAPE_UNIFORM, .average = 256},
    {.name = "uniform-4096", .lengths = SHAPE_UNIFORM, .average = 4096},
    {.name = "equal-2^20", .lengths = SHAPE_EQUAL, .average = 1 << 20},
    {.name = "one-huge", .lengths = SHAPE_HUGE, .average = 16},
    {.name = "zipf", .lengths = SHAPE_ZIPF},
    {.name = "three", .lengths = SHAPE_THREE},
};

/* Rows of several lengths, a square, few long rows; columns; the middle, both ends; an array with gaps as a whole. */
static const char *const arrays[] = {"Nx16:1", "Nx256:1", "Nx4096:1", "NxN:1",      "3xN:1",       "Nx16:0",
                                     "Nx3:0",  "Nx256:0", "NxN:0",    "64xNx256:1", "256xNxN:0,2", "Nx12000/16384:0,1"};

const char *shape_distribution_name(size_t i) {
    return i < sizeof distributions / sizeof *distributions ? distributions[i].name : NULL;
}

const char *shape_axes_name(size_t i) {
    return i < sizeof arrays / sizeof *arrays ? arrays[i] : NULL;
}

/* ---- Lists ------------------------------------------------------------------------------------------------------ */

/* Adds a shape that is not there yet. */
static int add(bench_shapes *list, const bench_shape *shape) {
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->at[i].name, shape->name) == 0)
            return CLI_OK;
    if (list->n == SHAPES_MOST)
        return cli_usage("there are more than %d of them", SHAPES_MOST);
    list->at[list->n++] = *shape;
    return CLI_OK;
}

static int add_distribution(const char *word, void *out) {
    const int every = strcmp(word, "all") == 0;
    int code = CLI_OK, found = 0;
    for (size_t i = 0; i < sizeof distributions / sizeof *distributions && code == CLI_OK; i++)
        if (every || strcmp(word, distributions[i].name) == 0) {
            code = add(out, &distributions[i]);
            found = 1;
        }
    return found ? code : cli_unknown(word, shape_distribution_name);
}

int shapes_take_segments(const char *text, void *out) {
    ((bench_shapes *)out)->n = 0;
    return cli_each(text, add_distribution, out);
}

/* One extent, with its pitch. */
static int take_extent(const char *word, bench_shape *s) {
    char extent[CLI_WORD];
    const int d = s->dimensions;
    if (d == DPR_MOST_DIMENSIONS)
        return cli_usage("'%s' has more than %d dimensions", s->name, DPR_MOST_DIMENSIONS);
    int code = cli_next_word(&word, '/', extent);
    s->extents[d] = s->pitches[d] = 0;
    if (code == CLI_OK && strcmp(extent, "N") != 0)
        code = cli_count(extent, &s->extents[d]);
    if (code == CLI_OK && strcmp(extent, "N") != 0 && s->extents[d] == 0)
        return cli_usage("'%s' has a dimension of 0", s->name);
    if (code == CLI_OK && word)
        code = cli_count(word, &s->pitches[d]);
    if (code == CLI_OK && word && (d == 0 || s->extents[d] == 0 || s->pitches[d] < s->extents[d]))
        return cli_usage("'%s': a pitch is that of a number after the first, and is not less than it", s->name);
    s->dimensions++;
    return code;
}

static int take_reduced(const char *word, void *out) {
    bench_shape *s = out;
    const int d = word[0] - '0';
    if (d < 0 || d >= s->dimensions || word[1] || s->reduced >> d & 1)
        return cli_usage("'%s': '%s' is no dimension from 0 to %d that is named once", s->name, word,
                         s->dimensions - 1);
    s->reduced |= UINT32_C(1) << d;
    return CLI_OK;
}

static int add_array(const char *word, void *out) {
    bench_shape s = {.dimensions = 0};
    char extents[CLI_WORD], extent[CLI_WORD];
    if (strlen(word) >= sizeof s.name)
        return cli_usage("'%s' is too long", word);
    memcpy(s.name, word, strlen(word) + 1);
    int code = cli_next_word(&word, ':', extents);
    const char *left = extents;
    while (code == CLI_OK && left) {
        code = cli_next_word(&left, 'x', extent);
        if (code == CLI_OK)
            code = take_extent(extent, &s);
    }
    if (code == CLI_OK && !word)
        return cli_usage("'%s' does not say which dimensions are reduced: 16384x16384:1", s.name);
    if (code == CLI_OK)
        code = cli_each(word, take_reduced, &s);
    return code == CLI_OK ? add(out, &s) : code;
}

/* Commas are between arrays as well as between the dimensions of one: a word of a single digit goes on with the array
 * before it. */
int shapes_take_axes(const char *text, void *out) {
    char word[CLI_WORD], whole[SHAPE_NAME] = "";
    bench_shapes *list = out;
    int code = CLI_OK;
    list->n = 0;
    if (strcmp(text, "all") == 0) {
        for (size_t i = 0; shape_axes_name(i) && code == CLI_OK; i++)
            code = add_array(shape_axes_name(i), list);
        return code;
    }
    for (const char *left = text; left && code == CLI_OK;) {
        code = cli_next_word(&left, ',', word);
        if (code != CLI_OK)
            return code;
        if (strlen(whole) + strlen(word) + 2 > sizeof whole)
            return cli_usage("'%s' is too long", word);
        strcat(strcat(whole, *whole ? "," : ""), word);
        if (!(left && strlen(left) > 0 && (left[1] == 0 || left[1] == ','))) {
            code = add_array(whole, list);
            whole[0] = 0;
        }
    }
    return code;
}

/* ---- Lengths ---------------------------------------------------------------------------------------------------- */

/* SplitMix64: the same lengths on every machine. */
static uint64_t next_random(uint64_t *state) {
    uint64_t x = *state += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

/* 0 to `most`. */
static uint64_t up_to(uint64_t *state, uint64_t most) {
    return (next_random(state) >> 32) * (most + 1) >> 32;
}

/* The length of the segment that begins at `at`, before the end of the array is looked at. */
static uint64_t length_at(const bench_shape *s, uint64_t count, uint64_t at, uint64_t *state) {
    const uint64_t quarter = count / 4, longest = count / 64 + 1;
    uint64_t length;
    switch (s->lengths) {
    case SHAPE_ONES:
    case SHAPE_EQUAL:
        return s->average;
    case SHAPE_UNIFORM:
        return up_to(state, 2 * s->average);
    case SHAPE_HUGE:
        if (at == quarter)
            return count - 2 * quarter;
        length = up_to(state, 16);
        return at < quarter && length > quarter - at ? quarter - at : length;
    case SHAPE_ZIPF:
        length = (UINT64_C(1) << 32) / ((next_random(state) >> 32) + 1);
        return length < 1 ? 1 : length > longest ? longest : length;
    case SHAPE_THREE:
        break;
    }
    return (count + 2) / 3;
}

/* Finds where segments begin, and where the last one ends; with `a->offsets` writes that. Returns how many segments
 * there are. */
static uint64_t walk_offsets(shape_array *a) {
    const int is_wide = dpr_dtype_size(a->offset_dtype) == 8;
    uint64_t state = 1, at = 0, n = 0;
    a->empty = 0;
    while (at <= a->elements) {
        if (a->offsets && is_wide)
            ((uint64_t *)a->offsets)[n] = at;
        else if (a->offsets)
            ((uint32_t *)a->offsets)[n] = (uint32_t)at;
        if (at == a->elements)
            break;
        const uint64_t length = length_at(a->shape, a->elements, at, &state), left = a->elements - at;
        at += length < left ? length : left;
        a->empty += length == 0;
        n++;
    }
    return n;
}

uint64_t shape_offset(const shape_array *a, uint64_t i) {
    return dpr_dtype_size(a->offset_dtype) == 8 ? ((const uint64_t *)a->offsets)[i] : ((const uint32_t *)a->offsets)[i];
}

/* ---- Arrays ----------------------------------------------------------------------------------------------------- */

static uint64_t product(uint64_t a, uint64_t b) {
    static const uint64_t most = UINT64_MAX / 64;
    return b && a > most / b ? most : a * b;
}

/* N: the greatest number for which the array has at most `count` elements. */
static uint64_t extent_for(const bench_shape *s, uint64_t count) {
    uint64_t fixed = 1;
    int free_ones = 0;
    for (int d = 0; d < s->dimensions; d++) {
        fixed = product(fixed, s->extents[d] ? s->extents[d] : 1);
        free_ones += s->extents[d] == 0;
    }
    if (free_ones == 0)
        return 1;
    const uint64_t together = count / fixed;
    return (uint64_t)floor(pow((double)together, 1.0 / free_ones) + 1e-9);
}

int shape_scales(const bench_shape *s) {
    int d = 0;
    while (d < s->dimensions && s->extents[d])
        d++;
    return s->dimensions == 0 || d < s->dimensions;
}

static void measure_axes(const bench_shape *s, uint64_t count, shape_array *out) {
    const uint64_t n = extent_for(s, count);
    uint64_t step = 1;
    out->elements = out->results = 1;
    for (int d = s->dimensions - 1; d >= 0; d--) {
        const uint64_t extent = out->extents[d] = s->extents[d] ? s->extents[d] : n;
        out->strides[d] = (int64_t)step;
        step = product(step, s->pitches[d] ? s->pitches[d] : extent);
        out->elements = product(out->elements, extent);
        out->results = product(out->results, s->reduced >> d & 1 ? 1 : extent);
    }
    out->span = step;
}

/* How many segments there are, about, and rather more than less. */
static uint64_t segments_of(const bench_shape *s, uint64_t count) {
    /* The average length is the sum of the probabilities of at least 1, 2, ..., the longest: 1 + 1/2 + 1/3 + ... */
    const double zipf = log((double)count / 64 + 1) + 0.5772;
    switch (s->lengths) {
    case SHAPE_THREE:
        return 3;
    case SHAPE_UNIFORM:
    case SHAPE_HUGE:
        return (uint64_t)(1.03 * (double)count / (double)s->average) + 64;
    case SHAPE_ZIPF:
        return (uint64_t)(1.1 * (double)count / zipf) + 64;
    default:
        return count / s->average + 3;
    }
}

shape_array shape_measures(const bench_shape *shape, uint64_t count, dpr_dtype offsets) {
    shape_array a = {.shape = shape, .offset_dtype = offsets};
    if (shape->dimensions) {
        measure_axes(shape, count, &a);
        return a;
    }
    a.elements = a.span = product(count, 1);
    a.results = segments_of(shape, a.elements);
    a.offset_bytes = (size_t)product(a.results + 1, dpr_dtype_size(offsets));
    return a;
}

/* The greatest offset of the type. */
static uint64_t offset_most(dpr_dtype dtype) {
    return dtype == DPR_I32 ? INT32_MAX : dtype == DPR_U32 ? UINT32_MAX : INT64_MAX;
}

int shape_make(const bench_shape *shape, uint64_t count, dpr_dtype offsets, shape_array *out, const char **why) {
    *out = shape_measures(shape, count, offsets);
    *why = "the shape has no array of so few elements";
    if (out->elements == 0)
        return -1;
    if (shape->dimensions)
        return 0;
    *why = "offsets of this type do not reach the end of the array";
    if (out->elements > offset_most(offsets))
        return -1;
    out->results = walk_offsets(out);
    out->offset_bytes = (size_t)(out->results + 1) * dpr_dtype_size(offsets);
    out->offsets = malloc(out->offset_bytes);
    *why = "no host memory for the offsets";
    if (!out->offsets)
        return -1;
    (void)walk_offsets(out);
    return 0;
}

void shape_free(shape_array *a) {
    free(a->offsets);
    a->offsets = NULL;
}
