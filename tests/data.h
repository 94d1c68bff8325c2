/* Input for the tests: arrays that make errors of an operation show. */
#ifndef DPR_TESTS_DATA_H
#define DPR_TESTS_DATA_H

#include "dpr.h"

#define DATA_PATTERN_LIST(X)                                                                                           \
    X(RANDOM)                                                                                                          \
    X(CONSTANT)                                                                                                        \
    X(EXTREMES)                                                                                                        \
    X(ZEROS) /* floating point: +0 and -0 */                                                                           \
    X(NAN_FIRST)                                                                                                       \
    X(NAN_MIDDLE)                                                                                                      \
    X(NAN_LAST)                                                                                                        \
    X(NAN_ALL)                                                                                                         \
    X(INF_FIRST)                                                                                                       \
    X(INF_MIDDLE)                                                                                                      \
    X(INF_LAST)                                                                                                        \
    X(SPECIALS)    /* infinities, NaNs, zeros, the greatest and the least, of some of these kinds */                   \
    X(POWERS)      /* sums: 1, and half a unit of its last place where trees add something to it */                    \
    X(ALTERNATING) /* sums: the greatest number with either sign by turns */                                           \
    X(HALVES)      /* sums: the greatest numbers, and then their negatives */                                          \
    X(FAR)         /* means and variances: little deviation from a mean far from zero */                               \
    X(RAMP)        /* the same: a line that rises from a value far from zero */                                        \
    X(OUTLIER)     /* the same: a first element far from the others */                                                 \
    X(LIMITS)      /* the same, and integers of other sums: next to an end of the range, so that sums wrap */          \
    X(HUGE)        /* squares and norms: squares overflow, and the norm of the array does not */                       \
    X(TINY)        /* the same: squares vanish */                                                                      \
    X(SCALES)      /* the same: of all magnitudes */                                                                   \
    X(BRINK)       /* the same: squares around the end of the range, above or below one */

#define DATA_ENTRY_(NAME) DATA_##NAME,
typedef enum data_pattern { DATA_PATTERN_LIST(DATA_ENTRY_) DATA_PATTERNS } data_pattern;
#undef DATA_ENTRY_

const char *data_pattern_name(data_pattern pattern);

/* Whether the pattern is for the pair. Patterns from FAR to LIMITS are for all types, others from ZEROS on for
 * floating-point and complex types alone; those from POWERS on are for the operations that the list names. */
int data_pattern_applies(data_pattern pattern, dpr_op op, dpr_dtype dtype);

/* POWERS, ALTERNATING and HALVES, in which sums of many lengths may lose something. */
int data_pattern_is_of_sums(data_pattern pattern);

/* Pseudo-random bits from a state that the caller seeds (splitmix64). */
uint64_t data_next(uint64_t *state);

/* A number below n from them. */
uint32_t data_below(uint64_t *state, uint32_t n);

/* Fills count elements at `out`, which needs no alignment. The same arguments give the same elements. */
void data_fill(void *out, dpr_op op, dpr_dtype dtype, data_pattern pattern, size_t count);

/* An initial value of the result type, in keeping with the pattern; two of them where the result has two values. */
void data_init(void *out, dpr_op op, dpr_dtype result, data_pattern pattern);

#endif
