/* A chain whose kernels are for devices of compute capability 7.5 alone. */
#include "chain_policy.h"
#include "recursion_policies.h"

DPR_RECURSION(elsewhere, chain)
