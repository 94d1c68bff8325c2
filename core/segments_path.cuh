/* The merge path of segments that are given by offsets: where a block, or a tile, begins if elements and ends of
 * segments are divided by the bytes, or the work, that they take together, whatever the lengths of the segments are. */
#ifndef DPR_CORE_SEGMENTS_PATH_CUH
#define DPR_CORE_SEGMENTS_PATH_CUH

#include "segments.cuh"

namespace dpr {

/* A place on the path: all elements before number `element` and all ends before number `end` lie before it. End i
 * follows the last element of segment i. */
struct path_place {
    uint64_t element, end;

    __device__ bool operator!=(path_place other) const { return element != other.element || end != other.end; }
};

/* An element takes `per_element` bytes of the path. An end takes `per_end`: those of an offset and of a result, or more
 * if the work that it makes counts, too. If offsets are in order, every place on one path is a place on the other. */
class merge_path {
    segment_numbers offsets;
    uint64_t ends, first, last; /* number of ends; the elements are first .. last-1 */
    unsigned per_element, per_end;

    __device__ uint64_t within(int64_t offset) const {
        const uint64_t x = offset < 0 && offsets.is_signed() ? first : static_cast<uint64_t>(offset);
        return x < first ? first : x > last ? last : x;
    }

  public:
    __device__ merge_path(const segment_numbers &of, uint64_t segments, uint64_t count, unsigned element_bytes,
                          unsigned end_bytes)
        : offsets(of), ends(segments), first(0), last(count), per_element(element_bytes), per_end(end_bytes) {
        const uint64_t from = within(offsets[0]), to = within(offsets[ends]);
        first = from;
        last = to < from ? from : to;
    }

    /* The path of the same segments on which an end takes `more` bytes more. */
    __device__ merge_path with_longer_ends(unsigned more) const {
        merge_path longer = *this;
        longer.per_end += more;
        return longer;
    }

    /* Bytes of the whole path. */
    __device__ uint64_t length() const { return (last - first) * per_element + ends * per_end; }

    /* Bytes before a place. */
    __device__ uint64_t distance(path_place p) const { return (p.element - first) * per_element + p.end * per_end; }

    /* Whether segments are longer in some places than in others: of 32 groups of equally many segments, one has more
     * than 9/8 of the average number of elements. The last ends % 32 segments are in no group. All lanes of a warp call
     * it. */
    __device__ bool is_uneven() const {
        const unsigned lane = threadIdx.x % 32;
        const uint64_t to = within(offsets[ends / 32 * (lane + 1)]), share = (last - first) / 32;
        const uint64_t before = __shfl_up_sync(~0u, to, 1), from = lane == 0 ? first : before;
        return __any_sync(~0u, to - from > share + share / 8);
    }

    /* The bits of the offset at end `i`, or at the last one if there is no end `i`, for place() and before(). The
     * thread does not wait for them. */
    __device__ uint64_t bits_of_end(uint64_t i) const { return offsets.bits((i < ends ? i : ends - 1) + 1); }

    /* Whether end `i`, whose bits are given, is within the first `d` bytes. */
    __device__ bool before(uint64_t i, uint64_t bits, uint64_t d) const {
        return (within(offsets.of_bits(bits)) - first) * per_element + (i + 1) * per_end <= d;
    }

    /* The number of ends in `bytes` bytes of the path, from end `from` on, or more. */
    __device__ unsigned most(uint64_t from, uint64_t bytes) const {
        return static_cast<unsigned>(min(bytes / per_end + 1, ends - from));
    }

    /* The place after `d` bytes, in which there are `end` ends; `bits`: those of the next end. */
    __device__ path_place place(uint64_t d, uint64_t end, uint64_t bits) const {
        const uint64_t x = first + (d - end * per_end) / per_element;
        const uint64_t most = end < ends ? within(offsets.of_bits(bits)) : last;
        return {x < most ? x : most, end};
    }

    /* The place after `d` bytes. All lanes of a warp call it: each looks at one of 32 ends, whose distance becomes 33
     * times smaller each time. */
    __device__ path_place find(uint64_t d) const {
        const unsigned lane = threadIdx.x % 32;
        uint64_t low = 0, high = ends, step, at;
        unsigned n;
        do {
            step = (high - low) / 33 + 1;
            const uint64_t probe = low + (lane + 1) * step - 1;
            at = probe < ends ? within(offsets[probe + 1]) : last;
            n = __popc(__ballot_sync(~0u, probe < high && (at - first) * per_element + (probe + 1) * per_end <= d));
            const uint64_t limit = low + (n + 1) * step - 1;
            low += n * step;
            high = limit < high ? limit : high;
        } while (high > low);
        if (step > 1 || n == 32)
            return place(d, low, bits_of_end(low));
        /* Lane n has looked at the end behind the place. */
        const uint64_t x = first + (d - low * per_end) / per_element, most = __shfl_sync(~0u, at, n);
        return {x < most ? x : most, low};
    }
};

} // namespace dpr

#endif
