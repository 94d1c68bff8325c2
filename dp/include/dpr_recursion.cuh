/* Recursion on GPUs and CPUs: divide, base and combine are written once, and run on any engine.
 *
 * A policy is a struct with static members only. It is plain C++17, and compiles with nvcc (a .cu file) or, for the CPU
 * alone, with a C++ compiler:
 *
 *     #include <dpr_recursion.cuh>
 *
 *     struct fib {
 *         using task = int32_t;                   // what is to be solved
 *         using result = uint64_t;                // what solving it gives
 *         static constexpr int most_children = 2; // a task is divided into at most this many
 *
 *         DPR_POLICY int divide(const dpr::no_data &, const task &n, dpr::children<fib> children) {
 *             if (n < 2)
 *                 return 0; // a base case
 *             children[0] = n - 1;
 *             children[1] = n - 2;
 *             return 2;
 *         }
 *         DPR_POLICY result base(const dpr::no_data &, const task &n) { return n; }
 *         DPR_POLICY result combine(const dpr::no_data &, const task &, dpr::results<fib> results, int) {
 *             return results[0] + results[1];
 *         }
 *     };
 *     DPR_RECURSION(fib, fib)
 *
 * DPR_RECURSION(name, policy) at namespace scope of one source file defines name_run(), name_enqueue() and
 * name_check(), which C calls:
 *
 *     int32_t root = 40;
 *     uint64_t result;
 *     dpr_status s = fib_run(ctx, &root, 1, NULL, &result, NULL, NULL, NULL);
 *
 * dpr.h describes its arguments (dpr_recursion_run()). A C header declares it by
 * DPR_RECURSION_DECLARE(fib, int32_t, void, uint64_t); if the source file of the policy includes that header, too, the
 * declaration is within extern "C" there. A policy whose name has a comma, as templates may have, needs another name
 * (`using`).
 *
 * What a policy has:
 * - task, result: types of plain data (trivially copyable and constructible, and assignable), aligned to at most 16
 *   bytes, with at most 1 MiB. Smaller ones are faster: a lane of the GPU keeps them in shared memory. It has room for
 *   most_children + 3 tasks or results, of which the larger type counts, and 2 bytes for each child (8 if there may be
 *   more than 254). On an H100 that is 7264 bytes for `persistent` and about 1400 for the other engines of the GPU;
 *   policies with teams have more. If the library chooses and no engine of the GPU has room, the CPU runs the policy,
 *   provided that it reaches the data (host_data); otherwise the run ends with DPR_ERR_STRATEGY_UNABLE.
 * - data, optional: the type of what all tasks share, for example the size of the problem and pointers to arrays. It is
 *   copied to the kernels, so it has at most 3072 bytes; its pointers must be valid where the engine runs. Without it,
 *   data is dpr::no_data.
 * - most_children: a constant from 1.
 * - divide(data, task, children): writes the children, from children[0] on, and returns how many; 0 for a base case.
 *   Another number than 0 to most_children ends the run with DPR_ERR_DIVIDE; a child with an index outside of that
 *   range is written nowhere. divide() must not read `children`: if there is no room for all of them, several have the
 *   same address, and the library calls divide() again later.
 * - base(data, task): the result of a base case.
 * - combine(data, task, results, n): the result of a divided task, from those of its n children in their order.
 * A policy that inherits from another needs a divide() of its own, and a combine() unless it folds, because their
 * arguments name the policy.
 *
 * What it may have to be run faster:
 * - cost(data, task): what a task with all below it costs, in any unit, as uint64_t. About how many tasks there are is
 *   the best unit, because the library takes it for that until there was a run: with much smaller numbers, the first
 *   run may be by one thread. The host calls it for at most 64 roots of a call, also if there are more, provided that
 *   they are in pageable host memory; `data` may point to memory of the device. Engine `persistent` calls it on the
 * device, for tasks that it may divide before lanes begin. Policies with serial() have it called for every task, on the
 * host or the device. Runs whose roots cost about as much count as similar, so the library can expect as many tasks as
 * there were, and choose sizes and engines for them. If in fact there are far more, the first such run takes long.
 * Without it, runs with about as many roots count as similar for the choice of the engine.
 * - serial(data, task): the result of a task with all below it, by one thread, as the other functions would give it. It
 *   is called for tasks whose cost() is at most the constant `cutoff`, or at most dpr_recursion_options.cutoff. Such a
 *   task counts as one. If `cutoff` is 0 or DPR_NO_CUTOFF, or the policy has none, it is called only if the options say
 *   so.
 * - fold: a constant, instead of combine(): DPR_SUM, DPR_PROD, DPR_MIN, DPR_MAX, DPR_BAND, DPR_BOR or DPR_BXOR. The
 *   result of a root is then that of all base cases below it, folded by this operation. The GPU joins nothing for it:
 *   lanes fold on their own. If a policy that folds has part(data, task), what it returns for each divided task is
 *   folded, too. Results are folded in any order, so they are integers of 32 or 64 bits; sums and products
 *   wrap around.
 * - host_data: a constant, true if the host reaches what the data point to: arrays of managed memory, or no pointers at
 *   all. Otherwise engines of the CPU are not tried in a context of a GPU. A policy without data needs none.
 *
 * Engines (`dpr recurse --list`): `persistent`, `host` and `graph` run what nvcc compiles in any way; `cpu` and
 * `serial` also run what a C++ compiler makes of a policy. `level` and `naive` launch kernels from kernels, to be
 * compared with: they need relocatable code, which other modules can call, with at most 64 registers. It is linked as
 * usual, or by nvcc -dlink:
 *
 *     nvcc -O2 -std=c++17 -rdc=true -maxrregcount=64 -arch=sm_90 fib.cu main.c $(pkg-config --cflags --libs dpr)
 *
 * In CMake, the property CUDA_SEPARABLE_COMPILATION of a target is -rdc=true:
 *
 *     set_target_properties(program PROPERTIES CUDA_STANDARD 17 CUDA_SEPARABLE_COMPILATION ON)
 *     target_compile_options(program PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-maxrregcount=64>)
 *
 * Without a name the library chooses among `persistent`, `host`, `cpu` and `serial`. With
 * dpr_recursion_options.allow_nested = 1 it also tries `graph` and, for relocatable code, `level`, where they could be
 * faster than what similar roots took before: for that it measures once what launches by kernels take on the device.
 * `naive` runs only if it is named. Do not run `graph`, and do not set allow_nested, while kernels of your own launch
 * kernels: an H100 then lost the CUDA context. For the same reason a run of `level` or `naive` begins only when no run
 * of `graph` is in flight in another thread, and a run of `graph` only when no run of these is. So no such run, and no
 * run with allow_nested, may be in a stream that waits for another thread's. After a strategy dp.* or a launcher has
 * been used, the host launches the levels of `graph`.
 *
 * name_run() returns the outcome of its run, so it waits for it, and its stream must not be in capture. name_enqueue()
 * puts the run into a stream and returns at once. It can be captured in a CUDA graph, which may be launched any number
 * of times. Roots, results and outcome are then in memory that the GPU reaches (device, pinned or managed): each launch
 * reads the roots, and writes results and outcome anew. The data are copied at the call. name_check() makes a status
 * and a sentence of an outcome in host memory:
 *
 *     // root, result and outcome are in managed memory, and nobody uses them while the graph runs
 *     cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
 *     dpr_status s = fib_enqueue(ctx, root, 1, NULL, result, NULL, outcome, stream);
 *     cudaStreamEndCapture(stream, &graph);
 *     ...
 *     for (*root = 30; *root < 40; ++*root) {
 *         cudaGraphLaunch(executable, stream);
 *         cudaStreamSynchronize(stream);
 *         if (fib_check(outcome) != DPR_OK) // nothing is written to *result then
 *             fprintf(stderr, "%s\n", dpr_last_error());
 *     }
 *
 * Engine `persistent` enqueues runs in any stream. `host` does in a stream that is being captured, with drivers from
 * CUDA 12.4 on: the graph then has a loop, a conditional node, of kernels whose blocks need not be on the device at one
 * time. CUDA lets such a graph have one executable instance at a time, and no clones, and be no child node. Other
 * engines need the host. A graph keeps the memory of its run, by default 512 MiB for the arena and up to 256 MiB for
 * full stacks: set options->arena_tasks where runs are small. dpr.h has the details (dpr_recursion_enqueue()).
 *
 * Any of divide(), base() and combine() may take one more argument at the end, `const dpr::team &`: a team then works
 * on each task, a block on the GPU and one thread on the CPU. This is for tasks that take long, such as pixels of an
 * image or the merging of two sorted ranges. All threads of the team call the function, and share the work by
 * team.rank() and team.size(); after team.sync() they see what the others have written. divide() must return the same
 * number in all of them, and each child may be written by any of them; of base() and combine() the first thread's
 * result counts. A function that takes no team is called by the first thread. The constant team_bytes, at most 32768,
 * is the size of team.memory(), which the threads share within a call of a function.
 *
 * On the GPU, functions that call themselves take stack for each call, and nvcc cannot know how much in all: the
 * program must set cudaLimitStackSize. If it is too small, CUDA ends the kernel with an error, and its context is lost.
 *
 * These functions must depend on their arguments alone, and on memory that their data point to. They may write there
 * what belongs to their task, and combine() sees what was written for the children; tasks that are neither above nor
 * below each other must not write and read the same. Otherwise they change nothing. They must return normally, without
 * exceptions and longjmp(). Then all engines give the same results, bit by bit, if the compilers round alike: compile
 * with nvcc -fmad=false where a policy adds products of floating-point numbers, and do not rely on mathematical
 * functions other than sqrt() and fma(), which differ between host and device.
 *
 * Counters are an exception: base() and combine() of policies with teams may add integers to them atomically, with
 * atomicAdd() on the GPU and __atomic_fetch_add() on the CPU (examples/recursions/select.cu). Other functions, and
 * those of policies without teams, may be called more than once for a task. The values at the end of the run do not
 * depend on the order. The values that tasks get from counters before do, and results must not depend on these.
 */
#ifndef DPR_RECURSION_CUH
#define DPR_RECURSION_CUH

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "dpr_recursion.cuh needs C++17, such as -std=c++17"
#endif

#include <dpr.h>

#include "dpr/device/policy.h"
#include "dpr/device/recursion.h"
#include "dpr/device/solve.h"
#ifdef __CUDACC__
#if !__has_include("dpr/device/kernels.cuh")
#error "this dpr was built without CUDA: compile the policy as C++, or install a dpr that was built with CUDA"
#endif
#include "dpr/device/kernels.cuh"
#endif

/* Defines name_run(), name_enqueue() and name_check() for the policy, and the table of its functions. */
#define DPR_RECURSION(name, policy)                                                                                    \
    static_assert(::dpr::recursion::check<policy>(), "the policy is not right");                                       \
    static const dpr_recursion *dpr_recursion_of_##name() {                                                            \
        static const dpr_recursion recursion = ::dpr::recursion::make<policy>(#name);                                  \
        return &recursion;                                                                                             \
    }                                                                                                                  \
    extern "C" dpr_status name##_run(                                                                                  \
        dpr_ctx *ctx, const policy::task *roots, size_t n, const ::dpr::recursion::data_given<policy> *data,           \
        policy::result *out, const dpr_recursion_options *options, dpr_recursion_report *report, dpr_stream stream) {  \
        return dpr_recursion_run(ctx, dpr_recursion_of_##name(), roots, n, data, out, options, report, stream);        \
    }                                                                                                                  \
    extern "C" dpr_status name##_enqueue(dpr_ctx *ctx, const policy::task *roots, size_t n,                            \
                                         const ::dpr::recursion::data_given<policy> *data, policy::result *out,        \
                                         const dpr_recursion_options *options, dpr_recursion_outcome *outcome,         \
                                         dpr_stream stream) {                                                          \
        return dpr_recursion_enqueue(ctx, dpr_recursion_of_##name(), roots, n, data, out, options, outcome, stream);   \
    }                                                                                                                  \
    extern "C" dpr_status name##_check(const dpr_recursion_outcome *outcome) {                                         \
        return dpr_recursion_check(dpr_recursion_of_##name(), outcome);                                                \
    }

namespace dpr {
namespace recursion {

/* The table of a policy's functions, for the library. */
template <class P> dpr_recursion make(const char *name) {
    dpr_recursion r = {};
    if constexpr (check<P>()) {
        r.size = sizeof r;
        r.version = DPR_RECURSION_VERSION;
        r.name = name;
        r.task_bytes = sizeof(typename P::task);
        r.task_align = alignof(typename P::task);
        r.result_bytes = sizeof(typename P::result);
        r.result_align = alignof(typename P::result);
        r.slot_bytes = sizeof(slot<P>);
        r.data_bytes = has_no_data<P> ? 0 : sizeof(data_of<P>);
        r.data_align = alignof(data_of<P>);
        r.most_children = P::most_children;
        r.solve = solving<P>::solve;
        r.combine = solving<P>::combine;
        r.serial = has_serial<P>;
        r.cutoff = cutoff_of<P>;
        r.host_data = host_data<P>;
        if constexpr (has_cost<P>)
            r.cost = cost_of<P>;
#ifdef __CUDACC__
        r.gpu = &kernels<P>;
#endif
    }
    return r;
}

} // namespace recursion
} // namespace dpr

#endif
