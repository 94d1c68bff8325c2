/* The kernel that asks, in a loop of phases in a graph (loop.h), whether another phase follows. The code is not
 * relocatable: its module launches nothing, so it takes no launch pool. */
#include "arena.cuh"
#include "loop.h"

namespace dpr {
namespace recursion {
namespace {

__global__ void condition(const dpr_arena *arena, cudaGraphConditionalHandle loop) {
    cudaGraphSetConditional(loop, is_unfinished(*arena));
}

} // namespace
} // namespace recursion
} // namespace dpr

const void *dpr_loop_condition(void) {
    return reinterpret_cast<const void *>(&dpr::recursion::condition);
}
