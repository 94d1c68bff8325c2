/* Runs of equal consecutive keys, reduced in one pass over keys and elements. A block reduces a tile of the elements.
 * The copy engine brings these to shared memory while each warp compares the keys of its part of the tile. Each thread
 * then runs over a chunk of neighbouring elements, as in segments.merge; a scan carries what threads leave to the next
 * end of a run; and what lies before the tile comes from the tiles before (key_lookback.cuh). */
#include "key_reduce.h"

#include "family.cuh"
#include "finish.cuh"
#include "key_lookback.cuh"
#include "segments.cuh"

namespace dpr {
namespace {

constexpr unsigned keyed_threads = merge_workers, keyed_warps = merge_warps;

/* How a tile is divided. Numbers of vectors are odd, so that threads read different banks, and values that do not lie
 * in place fit into shared memory that no device asks a permission for. */
template <class M> struct tile_shape {
    using T = typename M::storage;
    using V = typename partial<M>::type;
    static constexpr unsigned vectors = sizeof(T) == 1       ? 1
                                        : sizeof(T) == 2     ? (sizeof(V) > 4 ? 1 : 3)
                                        : values_in_place<M> ? 5
                                                             : 3;
    static constexpr unsigned chunk = vectors * vector_bytes / sizeof(T); /* elements of a thread */
    static constexpr unsigned elements = keyed_threads * chunk;
    static_assert(chunk < 32);
};

template <class M> struct keyed_shared {
    using shape = tile_shape<M>;
    using V = typename shape::V;
    static constexpr unsigned bytes = shape::elements * sizeof(typename M::storage);
    alignas(line_bytes) unsigned char stage[bytes];
    V value[values_in_place<M> ? 1 : shape::elements]; /* of the runs that end in each warp's part */
    warp_tails<M> left;
    unsigned ends[keyed_warps];
    typename key_places<M>::record seen[keyed_warps], with_own;
    bool of_everything[keyed_warps];
    uint64_t full;
};

/* The ends of runs in a warp's part of the tile: bit e of word i, which lane i has, is that of element 32 i + e. */
struct warp_ends {
    unsigned word, before; /* the lane's word; how many ends there are in the words before */

    /* All lanes call these. */
    __device__ unsigned word_of(unsigned i) const { return __shfl_sync(~0u, word, static_cast<int>(i)); }
    __device__ unsigned before_word(unsigned i) const { return __shfl_sync(~0u, before, static_cast<int>(i)); }

    /* The bits of the lane's `chunk` elements. */
    __device__ unsigned of_chunk(unsigned chunk) const {
        const unsigned at = threadIdx.x % 32 * chunk, i = at / 32;
        const unsigned low = word_of(i), high = __shfl_sync(~0u, word, static_cast<int>(min(i + 1, 31u)));
        return __funnelshift_r(low, high, at % 32) & ((1u << chunk) - 1);
    }

    /* How many ends there are in the chunks before. */
    __device__ unsigned before_chunk(unsigned chunk) const {
        const unsigned at = threadIdx.x % 32 * chunk, i = at / 32, lower = (1u << at % 32) - 1;
        return before_word(i) + __popc(word_of(i) & lower);
    }

    /* Counts the ends before each lane's word. */
    __device__ void count() {
        unsigned n = __popc(word);
#pragma unroll
        for (unsigned delta = 1; delta < 32; delta *= 2) {
            const unsigned lower = __shfl_up_sync(~0u, n, delta);
            n += threadIdx.x % 32 >= delta ? lower : 0;
        }
        before = n - __popc(word);
    }
};

/* Places of elements in the array and in the tile. */
template <class M> struct tile_place {
    static constexpr unsigned elements = tile_shape<M>::elements;
    uint64_t index;         /* of the tile's first element in the array */
    unsigned first, behind; /* numbers of that element in the tile, and behind its last one */
    bool is_last;

    __device__ explicit tile_place(const dpr_keyed_args &args) {
        const unsigned before = reinterpret_cast<uintptr_t>(args.run.in) % line_bytes / sizeof(typename M::storage);
        const uint64_t from = uint64_t{blockIdx.x} * elements;
        first = blockIdx.x == 0 ? before : 0;
        index = from + first - before;
        is_last = blockIdx.x == gridDim.x - 1;
        behind = is_last ? static_cast<unsigned>(args.run.count + before - from) : elements;
    }

    /* The element before the array's first one counts as an end, so that nothing from before it gets into a run. */
    __device__ unsigned false_ends() const { return first > 0 ? 1 : 0; }
};

/* ---- Keys ---- */

/* Sets the bit of element `q` of the warp's part, if the part has so many. */
template <class M> __device__ void set_end(warp_ends &ends, unsigned q) {
    if (q / 32 == threadIdx.x % 32 && q / 32 < tile_shape<M>::chunk)
        ends.word |= 1u << q % 32;
}

/* The keys of the warp's part, and those behind them. `Whole`: all are in the array. Otherwise keys beyond its last one
 * are the last one. */
template <class M, class Key, bool Whole> class keys_of_part {
    const Key *at; /* the first key; of the lane, if all are in the array */
    unsigned first, most;

  public:
    __device__ keys_of_part(const dpr_keyed_args &args, const tile_place<M> &place, unsigned part)
        : at(static_cast<const Key *>(args.keys) + place.index + (Whole ? part + threadIdx.x % 32 : 0)),
          first(part + threadIdx.x % 32 - place.first), /* wraps where there is no element: then it is beyond, too */
          most(place.behind - place.first - (place.is_last ? 1 : 0)) {
        /* Without this, the compiler calculates each address anew. */
        asm volatile("" : "+l"(at));
    }

    __device__ Key operator[](unsigned i) const { return Whole ? at[i] : at[min(first + i, most)]; }
};

/* Compares the keys of the warp's part with those behind them. */
template <class M, class Key, bool Whole>
__device__ warp_ends compare_keys(const dpr_keyed_args &args, const tile_place<M> &place, unsigned part) {
    constexpr unsigned chunk = tile_shape<M>::chunk, ahead = sizeof(Key) == 8 ? (chunk + 1) / 2 : chunk;
    const keys_of_part<M, Key, Whole> keys(args, place, part);
    warp_ends ends = {0, 0};
#pragma unroll
    for (unsigned begin = 0; begin < chunk; begin += ahead) {
        Key key[ahead], next[ahead];
#pragma unroll
        for (unsigned k = 0; k < ahead && begin + k < chunk; ++k)
            key[k] = keys[32 * (begin + k)];
#pragma unroll
        for (unsigned k = 0; k < ahead && begin + k < chunk; ++k)
            next[k] = keys[32 * (begin + k) + 1];
#pragma unroll
        for (unsigned k = 0; k < ahead && begin + k < chunk; ++k) {
            const unsigned word = __ballot_sync(~0u, key[k] != next[k]);
            ends.word = threadIdx.x % 32 == begin + k ? word : ends.word;
        }
    }
    return ends;
}

/* Finds the ends of the warp's part, which begins at element `part` of the tile. */
template <class M, class Key>
__device__ warp_ends find_ends(const dpr_keyed_args &args, const tile_place<M> &place, unsigned part) {
    if (place.first == 0 && !place.is_last)
        return compare_keys<M, Key, true>(args, place, part);
    warp_ends ends = compare_keys<M, Key, false>(args, place, part);
    if (place.is_last)
        set_end<M>(ends, place.behind - 1 - part);
    if (place.first > 0)
        set_end<M>(ends, place.first - 1 - part);
    return ends;
}

template <class M>
__device__ warp_ends find_ends_of(const dpr_keyed_args &args, const tile_place<M> &place, unsigned at) {
    switch (args.key_bytes) {
    case 1:
        return find_ends<M, uint8_t>(args, place, at);
    case 2:
        return find_ends<M, uint16_t>(args, place, at);
    case 4:
        return find_ends<M, uint32_t>(args, place, at);
    default:
        return find_ends<M, uint64_t>(args, place, at);
    }
}

/* ---- Elements ---- */

/* Starts to copy the tile's elements. All threads call it, and wait for s.full behind the next barrier. */
template <class M> __device__ void fetch(keyed_shared<M> &s, const dpr_keyed_args &args) {
    namespace ptx = cuda::ptx;
    constexpr unsigned bytes = keyed_shared<M>::bytes;
    const auto *low = static_cast<const unsigned char *>(args.run.in),
               *high = low + args.run.count * sizeof(typename M::storage);
    const unsigned char *tile = low - reinterpret_cast<uintptr_t>(low) % line_bytes + uint64_t{blockIdx.x} * bytes;
    const line_copy copy(tile < low ? low : tile, tile + bytes < high ? tile + bytes : high, low, high);
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&s.full, 1);
        ptx::fence_proxy_async(ptx::space_shared);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &s.full, copy.bytes());
        if (copy.bytes() > 0)
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, s.stage + copy.at(copy.from), copy.from,
                               copy.bytes(), &s.full);
    }
    if (threadIdx.x < 32 && copy.has_edges())
        copy.copy_edges(s.stage);
}

/* The value of a run that ends at element `q` of the tile, and has place `k` among those that do not lie in place. */
template <class M> class value_in_tile {
    using R = running<M>;
    using X = partial<M>;
    unsigned char *in_place;
    typename X::type *apart;

  public:
    __device__ value_in_tile(keyed_shared<M> &s, unsigned q, unsigned k)
        : in_place(s.stage + q * sizeof(typename M::storage)), apart(s.value + k) {}

    __device__ typename X::type get() const {
        if constexpr (values_in_place<M>)
            return R::value(aligned_words<typename R::type>::load(in_place), 0);
        else
            return *apart;
    }
    __device__ void put(typename X::type x) const {
        if constexpr (values_in_place<M>)
            aligned_words<typename R::type>::store(in_place, R::of_value(x));
        else
            *apart = x;
    }
    __device__ void merge(const typename M::acc &before) const { put(X::pack(M::merge(before, X::unpack(get())))); }
};

/* Combines the value of each run that ends in the warp's part with the initial value. */
template <class M>
__device__ void add_init(keyed_shared<M> &s, const dpr_keyed_args &args, const warp_ends &ends, unsigned at) {
    typename M::result init;
    memcpy(&init, args.run.init.bytes, sizeof init);
#pragma unroll 1
    for (unsigned i = 0; i < tile_shape<M>::chunk; ++i) {
        const unsigned lane = threadIdx.x % 32, word = ends.word_of(i), before = ends.before_word(i);
        const unsigned q = at + 32 * i + lane, k = at + before + __popc(word & ((1u << lane) - 1));
        if (word >> lane & 1)
            value_in_tile<M>(s, q, k).merge(M::lift(init));
    }
    __syncwarp();
}

/* Writes the results of the runs that end in the warp's part, and their keys if these are wanted. `to`: the number of
 * the part's first end. */
template <class M, class Key>
__device__ void write_runs(keyed_shared<M> &s, const dpr_keyed_args &args, const tile_place<M> &place, unsigned at,
                           const warp_ends &ends, uint64_t to) {
    constexpr unsigned chunk = tile_shape<M>::chunk, ahead = chunk % 5 == 0   ? 5
                                                             : chunk % 4 == 0 ? 4
                                                                              : 3; /* words at a time */
    static_assert(chunk % ahead == 0);
    const Key *keys = static_cast<const Key *>(args.keys) + place.index + at - place.first;
    Key *unique = args.unique ? static_cast<Key *>(args.unique) + to : nullptr;
    auto *out = static_cast<typename M::result *>(args.results) + to;
    const unsigned lane = threadIdx.x % 32, lower = (1u << lane) - 1, some = __ballot_sync(~0u, ends.word != 0);
    const unsigned first = at < place.first ? place.first - at : 0; /* behind the false end */
#pragma unroll 1
    for (unsigned begin = 0; begin < chunk; begin += ahead) {
        if ((some >> begin & ((1u << ahead) - 1)) == 0)
            continue;
        bool is_end[ahead];
        unsigned rank[ahead];
        typename partial<M>::type value[ahead];
        Key key[ahead];
        /* All loads come before the stores, so that they do not wait for each other. */
#pragma unroll
        for (unsigned k = 0; k < ahead; ++k) {
            const unsigned word = ends.word_of(begin + k), q = 32 * (begin + k) + lane;
            is_end[k] = word >> lane & 1 && q >= first;
            rank[k] = ends.before_word(begin + k) + __popc(word & lower);
            if (is_end[k] && unique)
                key[k] = keys[q];
        }
#pragma unroll
        for (unsigned k = 0; k < ahead; ++k)
            value[k] = value_in_tile<M>(s, at + 32 * (begin + k) + lane, at + rank[k]).get();
#pragma unroll
        for (unsigned k = 0; k < ahead; ++k)
            if (is_end[k])
                out[rank[k]] = plain_result<M>(value[k]);
#pragma unroll
        for (unsigned k = 0; k < ahead; ++k)
            if (is_end[k] && unique)
                unique[rank[k]] = key[k];
    }
}

template <class M>
__device__ void write_runs_of(keyed_shared<M> &s, const dpr_keyed_args &args, const tile_place<M> &place, unsigned at,
                              const warp_ends &ends, uint64_t to) {
    switch (args.key_bytes) {
    case 1:
        return write_runs<M, uint8_t>(s, args, place, at, ends, to);
    case 2:
        return write_runs<M, uint16_t>(s, args, place, at, ends, to);
    case 4:
        return write_runs<M, uint32_t>(s, args, place, at, ends, to);
    default:
        return write_runs<M, uint64_t>(s, args, place, at, ends, to);
    }
}

/* ---- The tile ---- */

/* Finds what lies before the tile, which `own` is of. All threads call it; `poster` posts. */
template <class M>
__device__ typename key_places<M>::record look_back(keyed_shared<M> &s, const dpr_keyed_args &args,
                                                    typename key_places<M>::record own, bool poster) {
    using places = key_places<M>;
    const places all(args.places, args.tiles);
    const unsigned group = blockIdx.x / tiles_of_group, n = blockIdx.x % tiles_of_group, warp = threadIdx.x / 32;
    typename places::record mine = places::none(), with_own = mine;
    bool of_everything = true;
    if (poster && blockIdx.x + 1 < gridDim.x) {
        all.post(blockIdx.x, {own.ends, partial<M>::pack(own.open)});
        if (args.in_scratch)
            __threadfence(); /* before the block's arrival */
    }
    __syncwarp();
    if (warp == 0) {
        const auto of_lane = all.wait_for_tiles(group, n);
        mine = places::combine_lanes(of_lane);
        if (n == tiles_of_group - 1)
            with_own = places::combine_lanes(threadIdx.x == n ? own : of_lane);
    } else if (warp <= group) {
        mine = all.wait_for_group(group - warp, warp == keyed_warps - 1, &of_everything);
    }
    if (threadIdx.x % 32 == 0) {
        s.seen[warp] = mine;
        s.of_everything[warp] = of_everything;
    }
    if (threadIdx.x == 0)
        s.with_own = with_own;
    __syncthreads();
    const auto before = places::before_group(s.seen, s.of_everything);
    if (poster && n == tiles_of_group - 1) {
        all.post_all(group, places::combine(before, s.with_own));
        if (args.in_scratch)
            __threadfence();
    }
    return places::combine(before, s.seen[0]);
}

/* Scratch memory: the ticket, and from behind_ticket() on records, unless these are in workspace. */
struct keyed_scratch {
    unsigned ticket;
    uint64_t runs; /* of a run whose host waits: their number, for the block that comes last */
};
static_assert(sizeof(keyed_scratch) <= ticket_bytes);

/* Counts the block's arrival, behind which it does not use records. Returns how many blocks have come before. */
__device__ inline unsigned arrive(const dpr_keyed_args &args) {
    unsigned &ticket = static_cast<keyed_scratch *>(args.run.scratch)->ticket;
    return cuda::atomic_ref<unsigned, cuda::thread_scope_device>(ticket).fetch_add(1, cuda::memory_order_relaxed);
}

/* Leaves scratch memory zero if the block has come last, and writes the number of runs if the host waits: then all
 * blocks have written their results. One warp calls it, with the number of blocks before this one in `lane`. */
__device__ inline void leave(const dpr_keyed_args &args, size_t words, unsigned arrived, unsigned lane) {
    if (__shfl_sync(~0u, arrived, static_cast<int>(lane)) + 1 != gridDim.x)
        return;
    auto *scratch = static_cast<keyed_scratch *>(args.run.scratch);
    __threadfence(); /* behind the arrivals of all */
    __syncwarp();
    for (size_t i = threadIdx.x % 32; args.in_scratch && i < words; i += 32)
        args.places[i] = 0;
    if (threadIdx.x % 32 != lane)
        return;
    const uint64_t runs = scratch->runs;
    *scratch = {0, 0};
    if (args.run.tag != 0) {
        __threadfence_system(); /* whoever sees the number sees the results */
        result_writer{args.run}.write(runs);
    }
}

template <class M> __device__ void reduce_tile(keyed_shared<M> &s, const dpr_keyed_args &args) {
    using X = partial<M>;
    using shape = tile_shape<M>;
    using places = key_places<M>;
    const tile_place<M> place(args);
    const unsigned warp = threadIdx.x / 32, at = warp * 32 * shape::chunk;
    fetch(s, args); /* while keys are compared */
    warp_ends ends = find_ends_of<M>(args, place, at);
    ends.count();
    const unsigned mask = ends.of_chunk(shape::chunk);
    const unsigned k = values_in_place<M> ? 0 : at + ends.before_chunk(shape::chunk); /* place of the thread's first */
    __syncthreads(); /* so that all see the barrier, and the edges of the copy */
    wait_for_parity(&s.full, 0);
    carried<M> c;
    c.x = run_over_chunk<M, shape::vectors, false>(s.stage, threadIdx.x * shape::chunk, chunk_mask<shape::chunk>{mask},
                                                   s.value + k, 0);
    c.scan(s.left, mask != 0);
    if (threadIdx.x % 32 == 31)
        s.ends[warp] = ends.before + __popc(ends.word);
    __syncthreads();
    unsigned before_warp = 0, all = 0;
    for (unsigned w = 0; w < keyed_warps; ++w) {
        before_warp += w < warp ? s.ends[w] : 0;
        all += s.ends[w];
    }
    const unsigned none = place.false_ends();
    /* The warp that waits for the oldest group, which most often is there. */
    constexpr unsigned poster = keyed_threads - 32;
    const bool arrives_early = gridDim.x > 1 && args.in_scratch && args.run.tag == 0;
    unsigned arrived = 0;
    typename places::record before = places::none();
    if (gridDim.x > 1) {
        bool any;
        /* As it is posted, so that all who use it use the same bits. */
        const typename places::record own = {all - none, X::unpack(X::pack(left_by_all(s.left, &any)))};
        before = look_back<M>(s, args, own, threadIdx.x == poster);
        if (threadIdx.x == poster && arrives_early)
            arrived = arrive(args); /* the answer comes while results are written */
    }
    if (mask != 0) {
        const unsigned q = threadIdx.x * shape::chunk + __ffs(static_cast<int>(mask)) - 1;
        value_in_tile<M>(s, q, k).merge(c.value(s.left, before.open));
    }
    __syncwarp();
    if (args.run.init.present)
        add_init<M>(s, args, ends, at);
    const uint64_t to = uint64_t{before.ends} + before_warp - none;
    write_runs_of<M>(s, args, place, at, ends, to);
    const uint64_t runs = uint64_t{before.ends} + all - none;
    if (threadIdx.x == poster && place.is_last) {
        if (args.run.tag != 0)
            static_cast<keyed_scratch *>(args.run.scratch)->runs = runs;
        else
            result_writer{args.run}.write(runs);
    }
    if (args.run.tag != 0) {
        __threadfence();
        __syncthreads();
        if (threadIdx.x == poster)
            arrived = arrive(args);
    }
    if (warp == poster / 32 && (arrives_early || args.run.tag != 0))
        leave(args, places::words(args.tiles), arrived, poster % 32);
}

__device__ inline void clear_places(const dpr_keyed_args &args, size_t words) {
    for (size_t i = thread_of_grid(); i < words; i += threads_of_grid())
        args.places[i] = 0;
}

using keyed_entry = void (*)(dpr_keyed_args);

/* Blocks on an SM that have enough registers. */
template <class M> constexpr int keyed_blocks = sizeof(typename M::storage) > 8 ? 3 : 4;

template <class M>
__global__ void __launch_bounds__(keyed_threads, keyed_blocks<M>)
    keyed_kernel(const __grid_constant__ dpr_keyed_args args) {
#if __CUDA_ARCH__ >= 900
    __shared__ keyed_shared<M> shared;
    let_next_launch();
    wait_for_work_before();
    if (args.clears)
        clear_places(args, key_places<M>::words(args.tiles));
    else
        reduce_tile<M>(shared, args);
#else
    __trap(); /* probe() refuses devices without the copy engine */
#endif
}

/* Results of the other operations depend on where a run begins. */
struct keyed_family {
    template <class M> static constexpr keyed_entry entry() {
        if constexpr (has_plain_results<M>)
            return keyed_kernel<M>;
        else
            return nullptr;
    }
};

struct tile_elements {
    template <class M> static constexpr int of = tile_shape<M>::elements;
};
struct blocks_on_sm {
    template <class M> static constexpr int of = keyed_blocks<M>;
};
struct record_words { /* of 32 tiles */
    template <class M> static constexpr int of = key_places<M>::words(tiles_of_group);
};

using kernels = instances<keyed_family, keyed_entry>;

const char *probe(const dpr_key *key, const dpr_caps *caps) {
    if (caps->gpu.cc_major < 9)
        return "needs bulk asynchronous copies (compute capability 9.0)";
    /* A mean needs the length of its run, which the kernels do not know. */
    return kernels::of(key) && !dpr_is_divided_sum(key) ? nullptr : "has no kernel for this operation and type";
}

dpr_kernel kernel(const dpr_key *key) {
    return {kernels::of(key), keyed_threads, 0, kernels::number_of<blocks_on_sm>(key), 0, nullptr};
}

unsigned tiles_of(const dpr_run *run) {
    const uint64_t bytes = dpr_dtypes[run->key.f.dtype].size;
    const uint64_t first = reinterpret_cast<uintptr_t>(run->in) % line_bytes / bytes,
                   n = kernels::number_of<tile_elements>(&run->key);
    return static_cast<unsigned>((first + run->count + n - 1) / n);
}

/* Bytes of the records, at most. */
size_t place_bytes(const dpr_run *run) {
    const size_t groups = (tiles_of(run) + tiles_of_group - 1) / tiles_of_group;
    return groups * kernels::number_of<record_words>(&run->key) * sizeof(uint64_t);
}

bool fits_scratch(const dpr_run *run) {
    return place_bytes(run) <= DPR_SCRATCH_BYTES - ticket_bytes;
}

size_t workspace_bytes(const dpr_run *run) {
    return fits_scratch(run) ? 0 : place_bytes(run);
}

int launch(const dpr_run *run) {
    const dpr_keyed_run *const keyed = reinterpret_cast<const dpr_keyed_run *>(run); /* whose first member it is */
    dpr_launch launch = {};
    launch.entry = kernels::of(&run->key);
    launch.blocks = tiles_of(run);
    launch.threads = keyed_threads;
    dpr_keyed_args args = {};
    args.run = dpr_args_of(&launch, run);
    args.keys = keyed->keys;
    args.unique = keyed->unique;
    args.results = keyed->results;
    args.key_bytes = keyed->key_bytes;
    args.tiles = launch.blocks;
    args.in_scratch = fits_scratch(run);
    args.places = static_cast<uint64_t *>(args.in_scratch ? behind_ticket(run->scratch) : run->workspace);
    if (args.in_scratch)
        return run->enqueue(run, &launch, &args.run);
    args.clears = 1;
    launch.blocks = static_cast<unsigned>(place_bytes(run) / sizeof(uint64_t) / keyed_threads / 8 + 1);
    const int error = run->enqueue(run, &launch, &args.run);
    if (error)
        return error;
    args.clears = 0;
    launch.blocks = args.tiles;
    return run->enqueue(run, &launch, &args.run);
}

} // namespace
} // namespace dpr

extern "C" const dpr_strategy dpr_key_reduce;
const dpr_strategy dpr_key_reduce = {
    .name = "runs of keys in one pass",
    .text = "finds runs of keys and reduces them, a block for each tile of the array",
    .side = DPR_ON_GPU,
    .scratch_bytes = DPR_SCRATCH_BYTES,
    .probe = dpr::probe,
    .kernel = dpr::kernel,
    .launch = dpr::launch,
    .workspace_bytes = dpr::workspace_bytes,
};
