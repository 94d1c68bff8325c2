/* MIN and MAX of 8- and 16-bit elements, two at a time in the halves of a 32-bit register. */
#ifndef DPR_CORE_PAIRS_CUH
#define DPR_CORE_PAIRS_CUH

#include "element.cuh"

namespace dpr {

template <dpr_dtype D> constexpr bool in_pairs = sizeof(storage_of<D>) <= 2;

/* Bytes are widened to halves as numbers from 0 to 255, signed ones with 128 added; 16-bit elements stay as they are.
 */
template <bool Least, dpr_dtype D, dpr_nan N> struct pair_order {
    using by = order<Least, D>;
    static constexpr bool bytes = sizeof(storage_of<D>) == 1;

    static constexpr uint32_t half_identity() {
        if constexpr (bytes)
            return Least ? 0xff : 0;
        else if constexpr (D == DPR_I16)
            return Least ? 0x7fff : 0x8000;
        else if constexpr (D == DPR_U16)
            return Least ? 0xffff : 0;
        else
            return float_bits<D>::inf | (Least ? 0 : 0x8000);
    }

    static constexpr uint32_t identity = half_identity() * 0x10001;

    /* For floats, a NaN wins or loses as the policy `N` says. */
    static __device__ uint32_t best_of(uint32_t a, uint32_t b) {
        if constexpr (D == DPR_F16)
            return of_floats<__half2>(a, b);
        else if constexpr (D == DPR_BF16)
            return of_floats<__nv_bfloat162>(a, b);
        else if constexpr (D == DPR_I16)
            return Least ? __vmins2(a, b) : __vmaxs2(a, b);
        else
            return Least ? __vminu2(a, b) : __vmaxu2(a, b);
    }

    /* The pair for a word of two or four elements. */
    static __device__ uint32_t of_word(uint32_t word) {
        if constexpr (!bytes)
            return word;
        if constexpr (D == DPR_I8)
            word ^= 0x80808080;
        return best_of(halves(word & 0x00ff00ff), halves(word >> 8 & 0x00ff00ff));
    }

    static __device__ uint32_t with_word(uint32_t pair, uint32_t word) { return best_of(pair, of_word(word)); }

    static __device__ typename by::key key(uint32_t pair) { return half(best_of(pair, pair >> 16) & 0xffff); }

  private:
    template <class Two> static __device__ uint32_t of_floats(uint32_t a, uint32_t b) {
        const Two x = bits_as<Two>(a), y = bits_as<Two>(b);
        if constexpr (N == DPR_NAN_IGNORE)
            return bits_as<uint32_t>(Least ? __hmin2(x, y) : __hmax2(x, y));
        else
            return bits_as<uint32_t>(Least ? __hmin2_nan(x, y) : __hmax2_nan(x, y));
    }

    static __device__ uint32_t halves(uint32_t two) { return D == DPR_BOOL ? __vminu2(two, 0x00010001) : two; }

    static __device__ typename by::key half(uint32_t bits) {
        if constexpr (D == DPR_I8)
            return static_cast<int32_t>(bits) - 128;
        else if constexpr (bytes)
            return static_cast<typename by::key>(bits);
        else
            return by::template of<N>(static_cast<storage_of<D>>(bits));
    }
};

} // namespace dpr

#endif
