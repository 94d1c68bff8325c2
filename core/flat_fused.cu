/* flat.fused: any operations in one pass over memory. There is one kernel for each element type and NaN policy; which
 * operations it runs is an argument.
 *
 * A thread holds a tile of the array in registers while it loads the next one. Each operation folds the tile into an
 * accumulator of its own, which lies in shared memory. An operation whose result follows from the accumulator of
 * another one has none (needed()). At last the warps of each block merge the accumulators of its threads, and the block
 * that arrives last merges those of all blocks and writes the results, with the algebra of acc.h. */
#include "cost.h"
#include "family.cuh"
#include "finish.cuh"
#include "operation.cuh"
#include "partial.h"

namespace dpr {
namespace {

/* What the kernels read. Each of 512 threads loads eight vectors while it reduces the eight before, so that 64 KiB are
 * in flight from each SM, twice what memory needs (monoid.cuh). With elements of 1 or 2 bytes a thread has four,
 * because eight would make the code twice as long. VAR would take more than the 128 registers that each of 512 threads
 * has: for F64 a thread has four vectors, too, and for complex elements a block has 256 threads. */
constexpr int largest_block = 512;

template <dpr_dtype D> struct reading {
    using storage = storage_of<D>;
    static constexpr int vectors = sizeof(storage) < sizeof(uint32_t) || D == DPR_F64 ? 4 : 8;
    static constexpr int threads = is_complex<D> ? largest_block / 2 : largest_block; /* of the largest block */
};

/* ---- Operations ---- */

/* True if the result of `other` follows from the accumulator of `op`, so that a run of both has only this one. */
constexpr bool holds(dpr_op op, dpr_op other, dpr_dtype dtype) {
    if (!is_narrow_type(dtype) || op == other)
        return false;
    if (other == DPR_SUM || other == DPR_MEAN)
        return op == DPR_VAR || op == DPR_MEAN;
    return (other == DPR_SUMSQ || other == DPR_NORM2) && (op == DPR_VAR || op == DPR_SUMSQ);
}

template <dpr_op O, dpr_op Other, dpr_dtype D> constexpr bool is_held = holds(O, Other, D);

/* The operations of the set that need accumulators of their own. */
uint32_t needed(uint32_t ops, dpr_dtype dtype) {
    static const dpr_op held[] = {DPR_SUM, DPR_NORM2, DPR_MEAN, DPR_SUMSQ};
    for (const dpr_op other : held)
        for (uint32_t rest = ops; rest != 0; rest &= rest - 1)
            if (holds(static_cast<dpr_op>(DPR_FIRST_OP + __builtin_ctz(rest)), other, dtype))
                ops &= ~(uint32_t{1} << DPR_ROW(other));
    return ops;
}

/* The operations of a type. */
template <dpr_dtype D, dpr_nan N> struct operations {
    /* Calls f(operation, own) for each operation that the kernel runs; `own` is where the thread's accumulator lies. */
    template <class F> static __device__ void each(const dpr_fused_args &args, uint64_t *own, F f) {
#pragma unroll 1
        for (unsigned k = 0; k < args.running; ++k)
            call_operation<false, D, N>(args.run_op[k].row, [&](auto o) { f(o, own + 32 * args.run_op[k].state); });
    }

    /* The same with branches, which are quicker in a loop that runs several operations many times. */
    template <class F> static __device__ void each_in_loop(const dpr_fused_args &args, uint64_t *own, F f) {
        const auto next = [&](auto o) {
            f(o, own);
            own += 32 * decltype(o)::words;
        };
#define DPR_CALL(A, NAME, ...)                                                                                         \
    if (args.ops >> DPR_ROW(DPR_##NAME) & 1)                                                                           \
        call_valid<DPR_##NAME, D, N>(next);
        DPR_OP_LIST(DPR_CALL, _)
#undef DPR_CALL
    }

    /* Words in shared memory of a thread's accumulator of the operation of this row. */
    static int words(int row) {
        static const int words_of[] = {
#define DPR_WORDS(A, NAME, ...) words_of_operation<DPR_##NAME>(),
            DPR_OP_LIST(DPR_WORDS, _)
#undef DPR_WORDS
        };
        return words_of[row];
    }

  private:
    template <dpr_op O> static constexpr int words_of_operation() {
        if constexpr (is_valid<O, D>)
            return operation<O, D, N>::words;
        else
            return 0;
    }
};

/* ---- Reading ---- */

/* Hides from the compiler what the vectors are. Otherwise it would compute once what several operations have in common,
 * for example the elements in F64, and keep it in registers, of which there are too few. */
template <class P, int K> __device__ void forget(P (&p)[K]) {
#pragma unroll
    for (int v = 0; v < K; ++v)
        asm volatile("" : "+r"(p[v].w[0]), "+r"(p[v].w[1]), "+r"(p[v].w[2]), "+r"(p[v].w[3]));
}

/* There are two loops, because one for both ways of loading would need a branch for each load. */
template <class Reader, class P, int K>
__device__ void load_tile(P (&p)[K], const Reader &d, typename Reader::place first, bool streaming) {
    if (streaming) {
#pragma unroll
        for (int v = 0; v < K; ++v)
            p[v] = d.template load<true>(first + v * blockDim.x);
    } else {
#pragma unroll
        for (int v = 0; v < K; ++v)
            p[v] = d.template load<false>(first + v * blockDim.x);
    }
}

/* Moves the points of VAR to the means of the elements so far (measures.cuh). */
template <dpr_dtype D, dpr_nan N> __device__ void recentre(const dpr_fused_args &args, uint64_t *own) {
    operations<D, N>::each(args, own, [](auto o, uint64_t *at) {
        using O = decltype(o);
        if constexpr (O::M::takes_all)
            O::store(at, O::M::recentred(O::load(at)));
    });
}

/* Starts the accumulators with the thread's elements outside of its tiles: those of the rest, and those before the
 * first vector and after the last one. */
template <dpr_dtype D, dpr_nan N>
__device__ void read_rest(const dpr_fused_args &args, const thread_slice<reading<D>> &mine,
                          const packet<storage_of<D>> *tile, uint64_t *own) {
    using P = packet<storage_of<D>>;
    const unaligned_ends<reader_of<reading<D>>> ends(mine.d);
    rest_of_tile<reading<D>> rest(mine);
    operations<D, N>::each(args, own, [&](auto o, uint64_t *at) {
        using O = decltype(o);
        using M = typename O::M;
        forget(rest.p);
        typename O::A a = M::identity();
        if constexpr (M::takes_all) {
            if (mine.tiles > 0)
                M::template begin_at<reading<D>::vectors>(a, tile);
            else
                rest.most([&](auto k, const P *p) { M::template begin_at<decltype(k)::value>(a, p); });
        }
        tile_of<M> t = O::tile_after(a);
        rest.template add_to<M>(t);
        a = t.fold_into(a, [&](unsigned v) { return mine.d.index(mine.first_of_rest + v * threads_of_grid()); });
        if (ends.has_first)
            a = O::with_element(a, ends.first, thread_of_grid());
        if (ends.has_last)
            a = O::with_element(a, ends.last, mine.d.tail() + thread_of_grid());
        O::store(at, a);
    });
}

template <dpr_dtype D, dpr_nan N>
__device__ void read_vectors(const dpr_fused_args &args, const thread_slice<reading<D>> &mine, uint64_t *own) {
    using P = packet<storage_of<D>>;
    constexpr int vectors = reading<D>::vectors;
    auto first = mine.first_of_tiles;
    const bool streaming = args.run.reading & DPR_READ_STREAMING;
    uint64_t next_recentring = 1; /* tiles until then */
    P p[vectors];
    if (mine.tiles > 0)
        load_tile(p, mine.d, first, streaming);
    read_rest<D, N>(args, mine, p, own);
#pragma unroll 1
    for (uint64_t t = 1; t <= mine.tiles; ++t) {
        if (t == next_recentring + 1) {
            recentre<D, N>(args, own);
            next_recentring *= 4;
        }
        /* The next tile is loaded while this one is reduced. If there is none, zeros take its place: where `next` was
         * not set, nvcc 13.0 made operations wait for its loads. */
        P next[vectors] = {};
        if (t < mine.tiles)
            load_tile(next, mine.d, first + mine.tile_step, streaming);
        operations<D, N>::each_in_loop(args, own, [&](auto o, uint64_t *at) {
            using O = decltype(o);
            using M = typename O::M;
            forget(p);
            const typename O::A a = O::load(at);
            const auto index_of = [&](unsigned v) { return mine.d.index(first + v * blockDim.x); };
            if constexpr (M::holds_index) {
                if (!O::template may_change<vectors>(a, p, index_of(0)))
                    return;
            }
            tile_of<M> tile = O::tile_after(a);
            add_vectors<vectors, M>(tile, p, 0);
            if constexpr (M::holds_index) /* the rest lies behind all tiles, and a tile takes no index of equals */
                O::store(at, M::merge(a, tile.fold_into(M::identity(), index_of)));
            else
                O::store(at, tile.fold_into(a, index_of));
        });
#pragma unroll
        for (int v = 0; v < vectors; ++v)
            p[v] = next[v];
        first += mine.tile_step;
    }
}

/* Reads complex numbers that are aligned only as their parts are. */
template <dpr_dtype D, dpr_nan N>
__device__ void read_split(const dpr_fused_args &args, const thread_slice<reading<D>> &mine, uint64_t *own) {
    operations<D, N>::each(args, own,
                           [&](auto o, uint64_t *at) { decltype(o)::store(at, decltype(o)::M::identity()); });
    uint64_t seen = 0, next_recentring = 1;
    for (uint64_t i = thread_of_grid(); i < mine.d.count; i += threads_of_grid()) {
        const auto x = mine.d.element(i);
        if (seen++ == next_recentring) {
            recentre<D, N>(args, own);
            next_recentring *= 4;
        }
        operations<D, N>::each(args, own, [&](auto o, uint64_t *at) {
            decltype(o)::store(at, decltype(o)::with_element(decltype(o)::load(at), x, i));
        });
    }
}

template <dpr_dtype D, dpr_nan N>
__device__ void read(const dpr_fused_args &args, const thread_slice<reading<D>> &mine, uint64_t *own) {
    if constexpr (is_complex<D>) {
        if (mine.d.is_split()) {
            read_split<D, N>(args, mine, own);
            return;
        }
    }
    read_vectors<D, N>(args, mine, own);
}

/* ---- Finishing ---- */

/* The index of the element that an accumulator of ARGMIN or ARGMAX has found: the first of those in the vector which
 * begins at acc.index. */
template <dpr_op O, dpr_dtype D, dpr_nan N>
__device__ void locate(const reader_of<reading<D>> &from, uint64_t count, dpr_acc &acc) {
    const uint64_t first = static_cast<uint64_t>(acc.index);
    if (acc.index < 0)
        return;
#pragma unroll
    for (int e = packet<storage_of<D>>::size - 1; e >= 0; --e) {
        const uint64_t i = first + e;
        if (i >= count)
            continue;
        const storage_of<D> x = from.element(i);
        if (!is_absent<D, N>(x) && dpr_rank_of(O, D, dpr_element_load(D, &x)) == acc.rank)
            acc.index = static_cast<int64_t>(i);
    }
}

/* Completes the accumulator of the whole array: also finds the element of an index, and takes the product of one
 * complex element from the array. */
template <dpr_op O, dpr_dtype D, dpr_nan N>
__device__ void complete_array(const dpr_fused_args &args, uint64_t count, dpr_acc &acc) {
    const reader_of<reading<D>> from(args.run);
    if constexpr (monoid<O, D, N>::holds_index)
        locate<O, D, N>(from, count, acc);
    complete<O, D, N>(count, acc);
    if (O == DPR_PROD && is_complex<D> && count <= 1) {
        /* There is no neutral element: (1 + 0i) times an infinity has a part that is NaN. */
        acc = dpr_acc_neutral(O, D);
        if (count == 1) {
            const storage_of<D> x = from.element(0);
            dpr_acc_add(O, D, N, &acc, dpr_element_load(D, &x), 0);
        }
    }
}

/* The writer of result i: to its own memory, or to its place in the mailbox. */
struct fused_writer {
    const dpr_fused_args &args;
    const unsigned i;

    template <class X> __device__ void write(const X &x) const {
        constexpr unsigned place = DPR_RESULT_BYTES / sizeof(uint32_t);
        struct {
            uint32_t w[(sizeof(X) + sizeof(uint32_t) - 1) / sizeof(uint32_t)];
        } padded = {};
        if (args.run.tag == 0) {
            *static_cast<X *>(args.out[i]) = x;
            return;
        }
        memcpy(&padded, &x, sizeof x);
        uint64_t *mailbox = static_cast<uint64_t *>(args.run.out) + i * place;
        post<cuda::thread_scope_system>(mailbox, padded, args.run.tag);
        for (unsigned w = sizeof padded / sizeof(uint32_t); args.results > 1 && w < place; ++w)
            post<cuda::thread_scope_system>(mailbox + w, 0u, args.run.tag);
    }
};

template <dpr_op O, dpr_dtype D>
__device__ void give_partial(const dpr_fused_args &args, unsigned i, uint64_t count, dpr_acc &acc) {
    struct {
        uint64_t w[DPR_PARTIAL_HEAD + dpr_acc_words(O, D)];
    } partial;
    dpr_wanted wanted;
    memcpy(&wanted, args.run.init.bytes, sizeof wanted);
    partial.w[0] = wanted.label;
    partial.w[1] = count;
    if ((O == DPR_ARGMIN || O == DPR_ARGMAX) && acc.index >= 0)
        acc.index += static_cast<int64_t>(wanted.first_index);
    dpr_acc_store(O, D, &acc, partial.w + DPR_PARTIAL_HEAD);
    fused_writer{args, i}.write(partial);
}

template <dpr_op O, dpr_dtype D, dpr_nan N>
__device__ void give_result(const dpr_fused_args &args, unsigned i, uint64_t count, dpr_acc acc) {
    result_values<O, D> result;
    complete_array<O, D, N>(args, count, acc);
    if (args.run.init.present == DPR_PARTIAL_WANTED) {
        give_partial<O, D>(args, i, count, acc);
        return;
    }
    dpr_acc_add_init(O, D, N, &acc, &args.run.init);
    dpr_acc_write(O, D, &acc, &args.run.init, result.value);
    fused_writer{args, i}.write(result);
}

/* The accumulator of SUMSQ or NORM2 from that of VAR: squared distances from the mean, and from there to zero. */
__device__ inline dpr_acc squares_of(const dpr_acc &var) {
    const double re = var.re + var.re_lost, im = var.im + var.im_lost, squares = var.squares + var.squares_lost;
    dpr_acc acc = {};
    acc.re = squares;
    if (isfinite(squares) && var.present > 0)
        acc.re += (re * re + im * im) / static_cast<double>(var.present);
    return acc;
}

/* Gives all results that follow from the accumulator of operation O. */
template <dpr_op O, dpr_dtype D, dpr_nan N>
__device__ void give_all(const dpr_fused_args &args, uint64_t count, const dpr_acc &acc) {
    for (unsigned i = 0; i < args.results; ++i) {
        const unsigned row = args.op[i];
        if (row == DPR_ROW(O))
            give_result<O, D, N>(args, i, count, acc);
        if constexpr (is_held<O, DPR_SUM, D>) {
            if (row == DPR_ROW(DPR_SUM))
                give_result<DPR_SUM, D, N>(args, i, count, acc);
        }
        if constexpr (is_held<O, DPR_MEAN, D>) {
            /* MEAN never runs beside an operation that holds its accumulator, so the second condition is always true.
             * Without it, nvcc 13.0 spills a register of the kernel of BF16. */
            if (row == DPR_ROW(DPR_MEAN) && !(args.ops >> row & 1))
                give_result<DPR_MEAN, D, N>(args, i, count, acc);
        }
        if constexpr (is_held<O, DPR_NORM2, D>) {
            if (row == DPR_ROW(DPR_NORM2))
                give_result<DPR_NORM2, D, N>(args, i, count, O == DPR_VAR ? squares_of(acc) : acc);
        }
        if constexpr (is_held<O, DPR_SUMSQ, D>) {
            if (row == DPR_ROW(DPR_SUMSQ))
                give_result<DPR_SUMSQ, D, N>(args, i, count, squares_of(acc));
        }
    }
}

/* The logarithm of n, which is at least 1, to the base 2, rounded up. */
__device__ inline unsigned ceil_log2(unsigned n) {
    return 32 - __clz(static_cast<int>(n - 1));
}

/* The rounds in which accumulators are merged. In the first, several warps for each operation merge those of the
 * block's threads; in the second, one warp merges what these warps have found. The block that arrives last does the
 * same with the accumulators of all blocks. */
enum round { of_threads, of_warps, of_blocks, of_warps_again };

/* Merges `rows` accumulators of one operation by 2^log_warps warps, of which the caller is number `warp`. The result is
 * valid in lane 0. */
template <class O, dpr_dtype D>
__device__ dpr_acc merge_round(const dpr_fused_args &args, round r, const dpr_fused_op &op, const uint64_t *states,
                               unsigned rows, unsigned warp, unsigned log_warps) {
    constexpr int words = O::M::words;
    const unsigned first = 32 * warp + threadIdx.x % 32, stride = r == of_blocks ? args.words : 32 * args.state_words;
    const unsigned n = first < rows ? ((rows - 1 - first) >> (5 + log_warps)) + 1 : 0;
    const uint64_t *from = r == of_blocks ? args.partials + op.word : states + 32 * op.state;
    return merge_lanes<O::op, D>(n, 1u << min(ceil_log2(rows), 5u), [&](unsigned i) {
        const unsigned row = first + (32 * i << log_warps);
        if (r == of_threads)
            return O::general(O::load(from + row / 32 * stride + row % 32));
        uint64_t w[words];
#pragma unroll
        for (int k = 0; k < words; ++k)
            w[k] = from[row * stride + k];
        return dpr_acc_load(O::op, D, 1, w);
    });
}

/* Merges the accumulators of the block's threads, and of all blocks, and gives the results. All threads call it. */
template <dpr_dtype D, dpr_nan N>
__device__ void finish_all(const dpr_fused_args &args, uint64_t count, uint64_t *states) {
    auto *ticket = static_cast<unsigned *>(args.run.scratch);
    const round last = gridDim.x > 1 ? of_warps_again : of_warps;
    /* Accumulators of each operation; the logarithm of the number of warps that merge them, which all have work. */
    unsigned rows = 0, log_warps = 0;
#pragma unroll 1
    for (round r = of_threads;; r = static_cast<round>(r + 1)) {
        const bool begins = r == of_threads || r == of_blocks;
        rows = r == of_threads ? blockDim.x : r == of_blocks ? gridDim.x : 1u << log_warps;
        log_warps = begins ? min(args.log_share, max(ceil_log2(rows), 5u) - 5) : 0;
        const unsigned warp = threadIdx.x / 32 & ((1u << log_warps) - 1);
        __syncthreads();
#pragma unroll 1
        for (unsigned k = threadIdx.x / 32 >> log_warps; k < args.running; k += blockDim.x / 32 >> log_warps) {
            const dpr_fused_op op = args.run_op[k];
            call_operation<false, D, N>(op.row, [&](auto o) {
                using O = decltype(o);
                const dpr_acc a = merge_round<O, D>(args, r, op, states, rows, warp, log_warps);
                __syncwarp();
                if (threadIdx.x % 32 != 0)
                    return;
                if (r == last)
                    give_all<O::op, D, N>(args, count, a);
                else
                    dpr_acc_store(O::op, D, &a,
                                  begins ? states + 32 * (warp * args.state_words + op.state)
                                         : args.partials + blockIdx.x * args.words + op.word);
            });
        }
        if (r == last)
            break;
        if (r == of_warps) {
            __syncthreads();
            if (!last_to_arrive(ticket))
                return;
        }
    }
    if (gridDim.x == 1)
        return;
    /* Scratch memory is left zero; workspace need not be. */
    for (unsigned i = threadIdx.x; !args.run.workspace && i < gridDim.x * args.words; i += blockDim.x)
        args.partials[i] = 0;
    if (threadIdx.x == 0)
        *ticket = 0;
}

template <dpr_dtype D, dpr_nan N>
__global__ void __launch_bounds__(reading<D>::threads, 1) fused_kernel(const __grid_constant__ dpr_fused_args args) {
    extern __shared__ uint64_t states[];
    const thread_slice<reading<D>> mine = begin<reading<D>>(args.run);
    read<D, N>(args, mine, states + threadIdx.x / 32 * 32 * args.state_words + threadIdx.x % 32);
    finish_all<D, N>(args, elements(args.run), states);
}

/* ---- The strategy ---- */

/* The kernels, and the words of a thread's accumulator of each operation. */
struct fused_family {
    struct instance {
        const void *entry;
        int threads; /* of the largest block */
        int (*words)(int row);
    };

    template <dpr_dtype D, dpr_nan N> static constexpr instance of() {
        return {reinterpret_cast<const void *>(&fused_kernel<D, N>), reading<D>::threads, operations<D, N>::words};
    }
};
using instance = fused_family::instance;
using kernels = type_instances<fused_family>;

/* Estimates. On an H200, a run on 2^28 elements of F32 reads with 0.96 to 0.98 of the rate of a sum if it has one
 * operation, and with 0.92 to 0.95 if it has five. A run on 2^10 to 2^20 elements takes 3 to 8 us longer than a sum
 * with one operation, and 8 to 12 us with five. */
dpr_cost cost(const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    const int further = __builtin_popcount(key->f.ops) - 1;
    const double rate = 0.95 * dpr_memory_rate(&caps->gpu) / (1 + 0.01 * further);
    return {DPR_LAUNCH_SECONDS + 3e-6, dpr_array_bytes(key, size), rate};
}

/* Bytes of shared memory for accumulators. A block of every device has 48 KiB without asking for more; 1 KiB is left
 * for the kernel's own variables. */
constexpr int room_for_states = 47 << 10;

/* What the kernel runs for a key: its operations, the set of their rows, how many they are, and the words of their
 * accumulators, of a thread in shared memory and of a block in a row (args.h). */
struct plan {
    dpr_fused_op op[DPR_FUSED_MOST];
    uint32_t ops;
    unsigned running, state_words, words;
};

plan plan_of(const dpr_key *key) {
    const dpr_dtype dtype = dpr_key_dtype(key);
    const instance *found = kernels::of(key);
    plan p = {};
    p.ops = needed(key->f.ops, dtype);
    for (uint32_t ops = p.ops; ops != 0; ops &= ops - 1) {
        const int row = __builtin_ctz(ops);
        p.op[p.running++] = {static_cast<uint16_t>(row), static_cast<uint16_t>(p.state_words),
                             static_cast<uint16_t>(p.words)};
        p.state_words += static_cast<unsigned>(found->words(row));
        p.words += static_cast<unsigned>(dpr_acc_words(static_cast<dpr_op>(DPR_FIRST_OP + row), dtype));
    }
    return p;
}

/* The largest block that has room for the accumulators. */
dpr_kernel kernel_of(const dpr_key *key, const plan &p) {
    const instance *found = kernels::of(key);
    const int bytes = static_cast<int>(sizeof(uint64_t) * p.state_words);
    int threads = found->threads;
    while (threads * bytes > room_for_states)
        threads /= 2;
    return {found->entry, threads, threads * bytes, 1, 0, nullptr};
}

dpr_kernel kernel(const dpr_key *key) {
    return kernel_of(key, plan_of(key));
}

const char *probe(const dpr_key *, const dpr_caps *caps) {
    return caps->gpu.max_threads_per_block < largest_block ? "needs blocks of 512 threads" : nullptr;
}

dpr_launch_limits limits(const dpr_key *key, const dpr_caps *caps, dpr_residency resident) {
    return dpr_block_per_sm(caps, resident, kernel(key).threads, static_cast<int>(caps->gpu.sm_count));
}

dpr_launch launch_of(const dpr_run *run, const plan &p) {
    const dpr_kernel found = kernel_of(&run->key, p);
    dpr_launch launch = dpr_spread(found.entry, 128, reading<DPR_F32>::vectors, run);
    launch.shared_bytes = found.shared_bytes;
    return launch;
}

/* Bytes of the rows of all blocks (args.h) if scratch memory has no room for them; otherwise 0. */
size_t bytes_beside_scratch(const dpr_launch &launch, const plan &p) {
    const size_t bytes = sizeof(uint64_t) * p.words * launch.blocks;
    return bytes <= DPR_SCRATCH_BYTES - ticket_bytes ? 0 : bytes;
}

size_t workspace_bytes(const dpr_run *run) {
    const plan p = plan_of(&run->key);
    return bytes_beside_scratch(launch_of(run, p), p);
}

int launch(const dpr_run *run) {
    const plan p = plan_of(&run->key);
    const dpr_launch launch = launch_of(run, p);
    dpr_fused_args args = {};
    args.run = dpr_args_of(&launch, run);
    if (args.run.init.present == DPR_MEAN_WANTED)
        args.run.init.present = 0; /* these kernels have an accumulator of means */
    memcpy(args.run_op, p.op, sizeof args.run_op);
    args.ops = p.ops;
    args.running = p.running;
    args.words = p.words;
    args.state_words = p.state_words;
    while (p.running << (args.log_share + 1) <= launch.threads / 32)
        args.log_share++;
    args.results = run->fused ? static_cast<uint32_t>(run->fused->count) : 1;
    args.op[0] = run->key.f.op;
    args.out[0] = run->out;
    for (uint32_t i = 0; run->fused && i < args.results; ++i) {
        args.op[i] = run->fused->op[i];
        args.out[i] = run->fused->out[i];
    }
    args.partials = static_cast<uint64_t *>(run->workspace ? run->workspace : behind_ticket(run->scratch));
    return run->enqueue(run, &launch, &args.run);
}

} // namespace
} // namespace dpr

extern "C" const dpr_strategy dpr_flat_fused;
const dpr_strategy dpr_flat_fused = {
    .name = "flat.fused",
    .text = "any operations in one pass; the block that is last merges and finishes them",
    .side = DPR_ON_GPU,
    .role = DPR_ROLE_CANDIDATE,
    .fuses = 1,
    .scratch_bytes = DPR_SCRATCH_BYTES,
    .probe = dpr::probe,
    .cost = dpr::cost,
    .kernel = dpr::kernel,
    .limits = dpr::limits,
    .launch = dpr::launch,
    .workspace_bytes = dpr::workspace_bytes,
};
