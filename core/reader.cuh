/* Readers: where the elements of a problem lie. Kernels read vectors, and the elements outside of them, through one.
 *
 *   element_type           an element in memory
 *   place                  where a vector of elements lies; adding n to it gives the place n vectors further
 *   may_be_split           whether elements may lie across the boundaries of vectors
 *   is_split()             whether they do; only if may_be_split
 *   Reader(args)           for all elements, as the host has divided them; Reader(args, n) for the first n
 *   count, vectors         number of elements and of whole vectors
 *   head                   number of elements before the first whole vector
 *   tail()                 index of the first element after the last whole vector
 *   ends                   false if all elements are in whole vectors
 *   body()                 place of the first whole vector
 *   element(i)             element number i
 *   load<Streaming>(place) a vector; if Streaming, its lines need not stay in L2
 *   index(place)           number of a vector's first element
 *   prefetch(place)        starts to bring a vector's line to L2
 *   keep(place)            static: makes the compiler calculate the place here, and not where it is used */
#ifndef DPR_CORE_READER_CUH
#define DPR_CORE_READER_CUH

#include "args.h"
#include "element.cuh"

namespace dpr {

/* The reader of an array without gaps. A vector is 16 bytes on a 16-byte boundary. */
template <class T> struct array_view {
    using element_type = T;
    using place = const packet<T> *;
    static constexpr bool may_be_split = alignof(T) < sizeof(T);
    const T *data;
    uint64_t count, vectors;
    uint32_t head;
    bool ends;

    __device__ explicit array_view(const dpr_kernel_args &args)
        : data(static_cast<const T *>(args.in)), count(args.count), vectors(args.vectors), head(args.head),
          ends(args.reading & DPR_READ_ENDS) {}

    __device__ array_view(const dpr_kernel_args &args, uint64_t n)
        : data(static_cast<const T *>(args.in)), count(n), head(n < args.head ? static_cast<uint32_t>(n) : args.head) {
        vectors = (n - head) / packet<T>::size;
        ends = head > 0 || tail() < n;
    }

    /* True if complex elements are aligned only as their parts are, so that no element begins at a vector's boundary.
     */
    __device__ bool is_split() const { return reinterpret_cast<uintptr_t>(data) % sizeof(T) != 0; }

    __device__ place body() const { return reinterpret_cast<place>(data + head); }
    __device__ uint64_t tail() const { return head + vectors * packet<T>::size; }
    __device__ T element(uint64_t i) const { return data[i]; }
    __device__ uint64_t index(place p) const { return head + (p - body()) * packet<T>::size; }

    /* Does not use the path for read-only data: the kernel may have started before the array was written. */
    template <bool Streaming> static __device__ packet<T> load(place p) {
        const uint4 *q = reinterpret_cast<const uint4 *>(p);
        return bits_as<packet<T>>(Streaming ? __ldcs(q) : *q);
    }

    static __device__ void prefetch(place p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }
    static __device__ void keep(place &p) { asm volatile("" : "+l"(p)); }
};

template <class M, class = void> struct reader_for { using type = array_view<typename M::storage>; };
template <class M> struct reader_for<M, cuda::std::void_t<typename M::reader>> { using type = typename M::reader; };

/* The reader of an operation's kernels: the type `reader` of the operation, if it has one, or that of arrays. To read
 * otherwise, derive an operation that has another reader: thread_slice, begin(), reduce_slice(), write_result() and all
 * meetings of blocks then take that one. */
template <class M> using reader_of = typename reader_for<M>::type;

} // namespace dpr

#endif
