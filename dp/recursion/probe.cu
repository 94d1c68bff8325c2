/* Measures what a grid's meetings and operations on the queue of tasks take on the device at hand, with the functions
 * that engine `persistent` has for both.
 *
 * The kernel ends: blocks wait for each other at meetings and barriers alone, at which all of them arrive, because a
 * cooperative launch has all of them on the device. */
#include "probe.h"

#include "persistent.cuh"

namespace dpr {
namespace recursion {
namespace {

/* A policy for its nodes alone: nobody solves its tasks. */
struct measured {
    struct task {
        uint32_t words[3];
    };
    using result = uint32_t;
    static constexpr int most_children = 2;
};
static_assert(sizeof(node<measured>) == 32, "a node of most policies has about as many bytes");

/* Nodes, each for several lanes: a node for each lane would need an allocation, which takes CUDA 10 ms when it is the
 * first of a process. */
constexpr unsigned places = 4096;
__device__ node<measured> memory[places];

/* Nodes are taken again from the first on. */
struct end_of_operations {
    __device__ void operator()(dpr_arena &a) const { a.nodes = 0; }
};

/* A lane takes a node, writes a task to it, and counts it at a parent. */
__device__ void hand_out(const nodes<measured> &arena) {
    const unsigned taken = arena.take(1, arena.has_room()), i = taken % places, parent = taken / 2 % places;
    if (taken == no_node)
        return;
    arena[i].at.task = {{taken, taken, taken}};
    arena.make(i, parent, 0, pending);
    arena.was_last_child(parent);
}

/* All blocks meet `rounds` times, before that with an operation of each lane. Returns when the last meeting was. */
template <bool Operations>
__device__ uint64_t time_rounds(const nodes<measured> &arena, unsigned rounds, unsigned *meetings) {
    for (unsigned i = 0; i < rounds; ++i) {
        if (Operations)
            hand_out(arena);
        meet(arena.args, meetings, end_of_operations());
    }
    return time_now();
}

__global__ __launch_bounds__(DPR_MOST_LANES, 1) void probe_kernel(const __grid_constant__ dpr_probe_args in) {
    const no_data data = {};
    const unsigned me = thread_in_grid(), lanes = gridDim.x * blockDim.x;
    unsigned meetings = 0;
    dpr_recursion_args args = {};
    args.arena = static_cast<dpr_arena *>(in.run.scratch);
    args.nodes = memory;
    args.capacity = lanes;
    args.mailbox = static_cast<uint64_t *>(in.run.out);
    args.tag = in.run.tag;
    const nodes<measured> arena = {args, data, nullptr};
    if (in.rounds > 0 && me < places)
        arena.make_parent(me, 0, 2, lanes * in.rounds); /* more than are counted, so that none is the last */
    wait_for_grid();
    const uint64_t began = time_now(), met = time_rounds<false>(arena, in.rounds, &meetings),
                   ended = time_rounds<true>(arena, in.rounds, &meetings);
    wait_for_grid();
    if (me != 0)
        return;
    *args.arena = dpr_arena{};
    const uint32_t times[] = {static_cast<uint32_t>(met - began), static_cast<uint32_t>(ended - met)};
    __threadfence_system();
    post(args, 0, times, sizeof(dpr_probe_times) / sizeof *times);
}

dpr_kernel kernel(const dpr_key *) {
    return {reinterpret_cast<const void *>(&probe_kernel), DPR_MOST_LANES, 0, 1, 0, nullptr};
}

int launch(const dpr_run *run) {
    const auto *probe = static_cast<const dpr_probe *>(run->in);
    dpr_launch launch = {};
    launch.entry = reinterpret_cast<const void *>(&probe_kernel);
    launch.blocks = probe->blocks;
    launch.threads = probe->threads;
    launch.cooperative = probe->blocks > 1;
    dpr_probe_args args = {};
    args.run.out = run->out;
    args.run.tag = run->tag;
    args.run.scratch = run->scratch;
    args.rounds = probe->rounds;
    return run->enqueue(run, &launch, &args.run);
}

} // namespace
} // namespace recursion
} // namespace dpr

extern "C" const dpr_strategy dpr_recursion_probe;
const dpr_strategy dpr_recursion_probe = {
    .name = "costs of recursions",
    .text = "a grid meets, and its lanes hand out tasks",
    .side = DPR_ON_GPU,
    .scratch_bytes = DPR_SCRATCH_BYTES,
    .kernel = dpr::recursion::kernel,
    .launch = dpr::recursion::launch,
};
