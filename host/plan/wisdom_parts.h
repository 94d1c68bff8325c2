/* What wisdom.c and the text of wisdom (wisdom_text.c) share. */
#ifndef DPR_HOST_PLAN_WISDOM_PARTS_H
#define DPR_HOST_PLAN_WISDOM_PARTS_H

#include "wisdom.h"

/* A signature is FNV-1a of 64 bits. It begins with DPR_SIGNATURE_START, and each call gives that of what was signed
 * before and of the bytes that follow. A word is signed with its terminating zero, so that "ab", "c" and "a", "bc"
 * differ. */
#define DPR_SIGNATURE_START UINT64_C(0xcbf29ce484222325)
uint64_t dpr_sign(uint64_t signature, const void *bytes, size_t size);
uint64_t dpr_sign_word(uint64_t signature, const char *word);

enum { DPR_WISE_ARRAY, DPR_WISE_OFFSETS, DPR_WISE_RANGES, DPR_WISE_AXES, DPR_WISE_SHAPES };

/* How a time was measured: a blocking call or a run in a stream; with cold caches, or again and again on one array by a
 * plan of effort DPR_MEASURE. */
enum { DPR_WISE_CALL, DPR_WISE_STREAM, DPR_WISE_WARM_CALL, DPR_WISE_WARM_STREAM, DPR_WISE_RUNS };

/* What dpr_wise_time.place has in its bytes, the highest first. `memory` is of dpr_memory, `run` and `shape` of the
 * lists above; strategies, operations and types are indices of their lists. */
typedef struct dpr_wise_place {
    uint8_t processor, strategy, op, dtype, memory, run, shape, segments;
} dpr_wise_place;

uint64_t dpr_wise_pack(dpr_wise_place place);
dpr_wise_place dpr_wise_unpack(uint64_t packed);

/* Whether a byte is a control character of ASCII, which no name has: a terminal that shows the name would obey it. */
int dpr_wise_is_control(char byte);

/* The order of times: below 0, 0 or above 0. */
int dpr_wise_compare(const dpr_wise_time *a, const dpr_wise_time *b);

/* Makes wisdom that has room for so many times, and none yet. NULL if there is no memory. */
dpr_wisdom *dpr_wisdom_make(size_t times);

/* The processor's number; that of processors if it is not there. */
int dpr_wise_find_processor(const dpr_wisdom *w, const dpr_wise_processor *p);

#endif
