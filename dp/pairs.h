/* The pairs of operation and type that demonstrations take (core/demonstration.cuh), with the NaN policies of floats.
 */
#ifndef DPR_DP_PAIRS_H
#define DPR_DP_PAIRS_H

#define DPR_DEMONSTRATED_PAIRS(X)                                                                                      \
    DPR_DEMONSTRATED_PAIRS_OF(X, SUM)                                                                                  \
    DPR_DEMONSTRATED_PAIRS_OF(X, MIN)                                                                                  \
    DPR_DEMONSTRATED_PAIRS_OF(X, MAX)
#define DPR_DEMONSTRATED_PAIRS_OF(X, OP)                                                                               \
    X(OP, I32, 0)                                                                                                      \
    X(OP, I64, 0)                                                                                                      \
    X(OP, F32, 0)                                                                                                      \
    X(OP, F32, 1)                                                                                                      \
    X(OP, F64, 0)                                                                                                      \
    X(OP, F64, 1)

#endif
