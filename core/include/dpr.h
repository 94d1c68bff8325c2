/* dpr: reductions of arrays on NVIDIA GPUs and on the CPU, called from C.
 *
 * One call reduces an array of any size, wherever it lies:
 *
 *     double x[] = {1, 2, 3}, sum;
 *     dpr_status s = dpr_reduce(x, &sum, 3, DPR_F64, DPR_SUM);
 *     if (s != DPR_OK) fprintf(stderr, "%s\n", dpr_last_error());
 *
 * Rules that hold for every function here:
 * - A function that returns a dpr_status changes what its pointer arguments point to only when it returns DPR_OK.
 *   After any other status the objects passed in are as they were and the next call works, except on a device that CUDA
 *   can no longer use in this process. Exceptions: a function that writes a text sets *len when it returns
 *   DPR_ERR_BUFFER_TOO_SMALL, and dpr_reduce_by_key() sets *runs; a launch report (dpr_launch_options.report) may have
 *   changed after any status; when an error of CUDA's ends a call (dpr_last_cuda_error() is not 0), results of a call
 *   that waits may have changed in device or managed memory, and all that dpr_reduce_by_key_async() writes.
 * - A struct whose first member is `size` starts from its ..._INIT macro, or from its ..._init() function in a language
 *   without macros, which gets the struct's size. Both set `size` to the number of bytes that the struct has in the
 *   caller's header, so that programs and libraries of different versions work together. Functions read and write at
 *   most `size` bytes. Members that a smaller struct lacks have their defaults. Members of a larger one that the
 *   library does not know must be 0 if it reads the struct, and stay as they are if it writes the struct.
 *   DPR_ERR_INVALID_OPTION if `size` is not a multiple of 8 from 8 to 4096; a ..._init() function does nothing if it is
 *   not, or if its pointer is NULL.
 * - 0 or NULL in a member of a struct of options means the member's default.
 * - A function that describes something fills in such a struct, except its `size`. DPR_ERR_NULL_POINTER. Strings in it
 *   are in static storage unless it says otherwise.
 * - Enums are 32 bits wide, which dpr.h asserts. Every enumerator has a number that never changes, and functions return
 *   only numbers that enumerators have.
 * - Sizes are in elements where the parameter is called `count`, and in bytes where it is called `size` or `len`.
 * - Every function but dpr_shutdown() may be called from any number of threads at once. A context or a plan may be
 *   shared by threads; it may be destroyed only when no other thread uses it.
 * - No function is a cancellation point: a request to cancel the calling thread acts at the first cancellation point of
 *   the caller's own code after the call. Asynchronous cancellation (PTHREAD_CANCEL_ASYNCHRONOUS) is not supported.
 * - A process forked at any time may use the library on the CPU, whatever other threads were doing.
 * - The shared library stays loaded after dlclose(). A plugin that contains the static library may be unloaded while no
 *   thread is in a call; the library's threads end then. The library's memory is lost unless dpr_shutdown() is called
 *   before. A plugin that has used a GPU must, before it is unloaded, call dpr_shutdown() and destroy its contexts and
 *   the graphs that captured their calls.
 * - The library does not print (unless DPR_LOG asks for it), abort or exit, and leaves the calling thread's CUDA
 * contexts, its device and what other threads capture in streams as it finds them. It makes no CUDA context on a device
 * that a call is not about.
 * - Without a GPU or a driver everything works on the CPU.
 * - The CPU computes, also in recursions, with rounding to nearest, with subnormal numbers and without traps, whatever
 *   mode the calling thread is in. The thread's mode is restored.
 * - A call takes up to 256 KiB of the calling thread's stack.
 * - For bindings of other languages: dpr/plain.h, which the build makes from this header, has the same declarations and
 *   no preprocessor directives.
 *
 * Environment variables: dpr_env_describe() and the command `dpr env` list them, and say what is set. Among them are
 * DPR_NUM_THREADS, the number of threads of cpu.threads, and DPR_LOG, which makes the library write lines about what it
 * does. Values that are not understood are ignored, and empty ones count as not set. DPR_CPU_ISA is read once, at the
 * first call that depends on it. DPR_NUM_THREADS is read when a context is made or a machine is read; DPR_WISDOM
 * whenever a file is to be read or written; DPR_LOG and DPR_LOG_FILE once, and again after dpr_shutdown(). In a program
 * that runs with more rights than its user, none is read.
 */
#ifndef DPR_H
#define DPR_H

#ifndef DPR_PLAIN_ /* defined where dpr/plain.h is made */
#include <stddef.h>
#include <stdint.h>
#endif

#include "dpr/dtypes.def"
#include "dpr/ops.def"
#include "dpr/status.def"

#define DPR_VERSION_MAJOR 0
#define DPR_VERSION_MINOR 2
#define DPR_VERSION_PATCH 0

/** The version of this header as one number, to compare: 200 is 0.2.0, and 10203 is 1.2.3. */
#define DPR_VERSION_NUMBER (DPR_VERSION_MAJOR * 10000 + DPR_VERSION_MINOR * 100 + DPR_VERSION_PATCH)

#if defined(__GNUC__) && !defined(DPR_PLAIN_)
#define DPR_API __attribute__((visibility("default")))
#elif !defined(DPR_PLAIN_)
#define DPR_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Statuses --------------------------------------------------------------------------------------------------- */

#define DPR_ENUM_ENTRY_(A, NAME, number, ...) DPR_##NAME = number,

/** The outcome of a call. The names and texts are those of status.def: DPR_OK (0), DPR_ERR_NULL_POINTER, ... */
typedef enum dpr_status { DPR_STATUS_LIST(DPR_ENUM_ENTRY_, _) } dpr_status;

/** The status's identifier, e.g. "DPR_ERR_EMPTY"; "DPR_ERR_?" for a value that is no status. Static storage. */
DPR_API const char *dpr_status_name(dpr_status status);

/** What the status means, in one line without a full stop. Static storage; never NULL. */
DPR_API const char *dpr_status_text(dpr_status status);

/** The sentence that describes the last failure in the calling thread: it names the argument and the value.
 *
 * Control characters in what it quotes are '?'. Returns "" before the first failure; never NULL. Read it right after
 * the call that failed: later calls may change it. The string belongs to the thread. */
DPR_API const char *dpr_last_error(void);

/** The cudaError_t behind the failure that dpr_last_error() describes; 0 (cudaSuccess) if no error of CUDA's caused it,
 * and before the first failure. Errors of the driver's functions (CUresult) have the same numbers. */
DPR_API int dpr_last_cuda_error(void);

/** The version of the library that is linked, e.g. "0.2.0", in static storage; and its DPR_VERSION_NUMBER. */
DPR_API const char *dpr_version(void);
DPR_API int dpr_version_number(void);

/* ---- Types and operations --------------------------------------------------------------------------------------- */

/** Type of the elements of an array: DPR_BOOL, DPR_I8, DPR_U8, DPR_I16, DPR_U16, DPR_I32, DPR_U32, DPR_I64, DPR_U64,
 * DPR_F16, DPR_BF16, DPR_F32, DPR_F64, DPR_C64, DPR_C128 (dtypes.def describes each). */
typedef enum dpr_dtype {
    DPR_DTYPE_NONE = 0, /**< no type: what functions return where there is none */
    DPR_DTYPE_LIST(DPR_ENUM_ENTRY_, _)
} dpr_dtype;

/** A DPR_C64 element: two floats, laid out like C's float _Complex and cuFloatComplex. */
typedef struct dpr_c64 {
    float re, im;
} dpr_c64;

/** A DPR_C128 element: two doubles, laid out like C's double _Complex and cuDoubleComplex. */
typedef struct dpr_c128 {
    double re, im;
} dpr_c128;

/** The operation of a reduction: DPR_SUM, DPR_PROD, DPR_MIN, DPR_MAX, DPR_ARGMIN, DPR_ARGMAX, DPR_ALL, DPR_ANY,
 * DPR_BAND, DPR_BOR, DPR_BXOR, DPR_COUNT, DPR_SUMSQ, DPR_NORM1, DPR_NORM2, DPR_MEAN, DPR_VAR, DPR_MINMAX.
 *
 * - SUM, PROD: integers wrap modulo 2^64.
 * - SUM of n elements of DPR_F16, DPR_BF16 or DPR_F32, and each part of one of DPR_C64: the error is at most
 *   (log2(n) + 8) * 2^-24 * (|x[0]| + |x[1]| + ...), that is log2(n) + 8 roundings in F32 of the sum of the magnitudes.
 *   An initial value counts as one of the n elements.
 * - SUM of floating-point and complex types: as long as the sum of the magnitudes (of each part) is in the range of the
 *   result's type, nothing overflows. Where it is not, partial sums may overflow, and the result may be infinite or NaN
 *   although the exact sum is not; that depends on the strategy. {3e38, -3e38, 3e38, -3e38} in DPR_F32 can be 0 or NaN.
 * - PROD of floating-point and complex types: which partial products are formed depends on the strategy. DPR_F16,
 *   DPR_BF16, DPR_F32 and DPR_C64 are multiplied in F64, so that partial products overflow or vanish only beyond F64's
 *   range. Where one overflows, underflows or loses precision among the subnormal numbers, the result depends on which
 *   were formed; with a zero among the elements it can be 0 or NaN.
 * - PROD of complex types: (a + bi)(c + di) is (ac - bd) + (ad + bc)i. The product of one element is that element. If
 *   one of several elements has an infinite or NaN part, at least one part of the product is infinite or NaN. Which
 *   part it is, and whether it is infinite or NaN, depends on the strategy. An initial value counts as one of several,
 *   and so does an element that DPR_NAN_IGNORE leaves out.
 * - MIN, MAX: -0 is less than +0, also for ARGMIN and ARGMAX. A NaN result is the positive quiet NaN without payload.
 * - ARGMIN, ARGMAX: the lowest index among equals.
 * - COUNT, ALL, ANY: an element is non-zero unless it compares equal to zero; so NaN is non-zero. A complex element is
 *   zero when both parts are. COUNT with an initial value wraps modulo 2^64.
 * - BAND, BOR, BXOR on DPR_BOOL are the logical operations.
 * - SUMSQ, NORM1: the sum of the elements' squares, and that of their magnitudes. The square of a complex
 *   element a + bi is aa + bb, and its magnitude the root of that. Integers wrap modulo 2^64, and so do their
 *   squares and magnitudes. The error in a floating-point or complex type is at most (log2(n) + 10) * 2^-24 of
 *   the result in F32 and (log2(n) + 10) * 2^-53 in F64, or a step of subnormal numbers if that is more. A
 *   square beyond the range of F64 overflows, and one below it loses digits. An initial value is added as it
 *   is, neither squared nor made positive; the error is then at most the same fraction of the result without it
 *   plus its magnitude.
 * - NORM2: the square root of the sum of squares, with the same relative error. Squares that overflow or vanish
 *   do not spoil it: if the norm is in the range of the result's type, it is right. Truth values and integers
 *   are converted to F64.
 * - MEAN: a SUM, divided by the number of elements and rounded once more; of complex types part by part. As a
 *   SUM may, it may be infinite or NaN where the sum of the magnitudes leaves the range of the result's type. The
 *   sum of integers is exact and does not wrap. It is converted to F64 before the division, with an error of at
 *   most 0.75 units in the last place.
 * - VAR: the sum of the squared distances from the mean, divided by the number of elements, or by one less
 *   (dpr_divisor). It comes from the squared distances to means of parts of the array (Chan, Golub and LeVeque,
 *   1983), so it does not lose digits as the difference of two great sums would. The absolute error is at most
 *   the relative error of NORM2 times the result, plus twice the square of 2^-53 * M, where M is the greatest
 *   magnitude. The result may be infinite or NaN if 4 n
 *   times the sum of the squared distances, or the sum of the magnitudes, leaves the range of F64, or that of
 *   F32 if the result is F32. Truth values and integers are converted to F64.
 * - MINMAX: as MIN and MAX. The result has two values, the least and then the greatest element, and so has an
 *   initial value.
 * - MEAN and VAR of no elements are NaN, and so is VAR of a sample of one. If an element is NaN, SUMSQ, NORM1,
 *   NORM2, MEAN and VAR are NaN. Otherwise, if an element is infinite, SUMSQ, NORM1 and NORM2 are infinite and
 *   VAR is NaN. Elements that DPR_NAN_IGNORE leaves out do not count. */
typedef enum dpr_op {
    DPR_OP_NONE = 0, /**< no operation: what functions return where there is none */
    DPR_OP_LIST(DPR_ENUM_ENTRY_, _)
} dpr_op;

/** The number of operations and of types, and number i of them; DPR_OP_NONE or DPR_DTYPE_NONE from that number on. */
DPR_API size_t dpr_op_count(void);
DPR_API size_t dpr_dtype_count(void);
DPR_API dpr_op dpr_op_at(size_t i);
DPR_API dpr_dtype dpr_dtype_at(size_t i);

/** The identifier-like name, e.g. "sum" or "f32"; NULL for a value that is no operation or type. Static storage. */
DPR_API const char *dpr_op_name(dpr_op op);
DPR_API const char *dpr_dtype_name(dpr_dtype dtype);

/** The value whose name is `name` (lower case, as dpr_op_name() gives it), in *out.
 *
 * DPR_ERR_NULL_POINTER; DPR_ERR_INVALID_OP or DPR_ERR_INVALID_DTYPE when there is no such name. */
DPR_API dpr_status dpr_op_parse(const char *name, dpr_op *out);
DPR_API dpr_status dpr_dtype_parse(const char *name, dpr_dtype *out);

/** Bytes of one element: 1, 2, 4, 8 or 16; 0 for a value that is no type. */
DPR_API size_t dpr_dtype_size(dpr_dtype dtype);

/** Alignment in bytes that an array of this type must have: its size, for complex types half of that; 0 for a value
 * that is no type. */
DPR_API size_t dpr_dtype_alignment(dpr_dtype dtype);

/** Whether the operation has a meaning for the type (1 or 0): MIN, MAX, MINMAX, ARGMIN and ARGMAX have none for complex
 * types, BAND, BOR and BXOR none for floating-point and complex ones. 0 for values that are no operation or type. */
DPR_API int dpr_supported(dpr_op op, dpr_dtype dtype);

/** The type of the result; *out of every reduction has this type and its alignment.
 *
 * | operation       | BOOL | I8..I64 | U8..U64 | F16, BF16 | F32  | F64  | C64  | C128 |
 * |-----------------|------|---------|---------|-----------|------|------|------|------|
 * | SUM, PROD       | I64  | I64     | U64     | F32       | F32  | F64  | C64  | C128 |
 * | MIN, MAX        | BOOL | same    | same    | same      | F32  | F64  | -    | -    |
 * | ARGMIN, ARGMAX  | I64  | I64     | I64     | I64       | I64  | I64  | -    | -    |
 * | ALL, ANY        | BOOL | BOOL    | BOOL    | BOOL      | BOOL | BOOL | BOOL | BOOL |
 * | BAND, BOR, BXOR | BOOL | same    | same    | -         | -    | -    | -    | -    |
 * | COUNT           | I64  | I64     | I64     | I64       | I64  | I64  | I64  | I64  |
 * | SUMSQ, NORM1    | I64  | I64     | U64     | F32       | F32  | F64  | F32  | F64  |
 * | NORM2, VAR      | F64  | F64     | F64     | F32       | F32  | F64  | F32  | F64  |
 * | MEAN            | F64  | F64     | F64     | F32       | F32  | F64  | C64  | C128 |
 * | MINMAX (two)    | BOOL | same    | same    | same      | F32  | F64  | -    | -    |
 *
 * DPR_DTYPE_NONE for a pair without a meaning ("-"), and for values that are no operation or type. */
DPR_API dpr_dtype dpr_result_dtype(dpr_op op, dpr_dtype dtype);

/** How many values of that type the result has: 2 for MINMAX, 1 for other operations; 0 for a value that is none. */
DPR_API size_t dpr_result_values(dpr_op op);

/** An operation's properties. Start from DPR_OP_INFO_INIT. */
typedef struct dpr_op_info {
    size_t size;        /**< sizeof(dpr_op_info), set by DPR_OP_INFO_INIT */
    const char *id;     /**< the enumerator, e.g. "DPR_SUM" */
    const char *text;   /**< the result in one line, e.g. "sum of the elements" */
    const char *types;  /**< which element types it takes: "all types", "all but complex" or "bool and integers" */
    const char *result; /**< the type of the result: "widened" (that of a SUM), "the elements' type", "i64", "bool", or
                           a text that begins with "widened" and says what differs */
} dpr_op_info;

#define DPR_OP_INFO_INIT                                                                                               \
    { sizeof(dpr_op_info), NULL, NULL, NULL, NULL }
DPR_API void dpr_op_info_init(dpr_op_info *out, size_t size);

/** What the elements of a type are. */
typedef enum dpr_kind {
    DPR_KIND_BOOL = 1,    /**< truth values */
    DPR_KIND_SINT = 2,    /**< signed integers */
    DPR_KIND_UINT = 4,    /**< unsigned integers */
    DPR_KIND_FLOAT = 8,   /**< floating-point numbers */
    DPR_KIND_COMPLEX = 16 /**< complex numbers */
} dpr_kind;

/** A type's properties. Start from DPR_DTYPE_INFO_INIT. */
typedef struct dpr_dtype_info {
    size_t size;      /**< sizeof(dpr_dtype_info), set by DPR_DTYPE_INFO_INIT */
    const char *id;   /**< the enumerator, e.g. "DPR_F32" */
    const char *text; /**< what an element is, in one line */
    const char *npy;  /**< the code in headers of .npy files without its byte order, e.g. "f4"; "" if NumPy has none */
    dpr_kind kind;
    int reserved; /**< 0 */
} dpr_dtype_info;

#define DPR_DTYPE_INFO_INIT                                                                                            \
    { sizeof(dpr_dtype_info), NULL, NULL, NULL, DPR_KIND_BOOL, 0 }
DPR_API void dpr_dtype_info_init(dpr_dtype_info *out, size_t size);

/** Writes the properties of an operation or a type to *out. DPR_ERR_INVALID_OP, DPR_ERR_INVALID_DTYPE. */
DPR_API dpr_status dpr_op_describe(dpr_op op, dpr_op_info *out);
DPR_API dpr_status dpr_dtype_describe(dpr_dtype dtype, dpr_dtype_info *out);

/* ---- The simple call -------------------------------------------------------------------------------------------- */

/** Reduces in[0 .. count-1] with `op` and writes the result to *out. Returns when the result is there.
 *
 * @param in     `count` elements, in pageable or pinned host memory, managed memory or device memory: the library finds
 *               out which. Aligned to dpr_dtype_alignment(dtype). May be NULL when count is 0. Not modified.
 * @param out    dpr_result_values(op) values of dpr_result_dtype(op, dtype), in any of these memories, aligned for that
 *               type. In device memory it is that of the device that has `in`. May overlap `in`.
 * @param count  number of elements; 0 gives the operation's identity: 0 for SUM, ANY, BOR, BXOR, COUNT, SUMSQ and the
 *               norms, 1 for PROD and ALL, all ones (true) for BAND, the greatest value of the type (infinity) for MIN
 *               and the least for MAX, these two for MINMAX; and NaN for MEAN and VAR.
 *
 * A GPU reduces the memory that it holds, and the CPU reduces host memory. There is one exception: if `in` is in pinned
 * memory and `out` in a GPU's device memory, that GPU or the CPU reduces it, whichever is expected to be quicker. The
 * call works in the calling thread's current CUDA context if that is one of the GPU's, else in the context that owns
 * the memory, else in the GPU's primary one.
 *
 * Order: a call that waits for its result comes after the work that is in the legacy default stream, like cudaMemcpy.
 * It does not wait for work in other streams that do not wait for that one (cudaStreamNonBlocking), and for no work at
 * all if the CPU reduces pageable memory to host memory. If dpr_options.stream is not NULL, dpr_reduce_ex() comes after
 * the work in that stream instead: it does what dpr_reduce_async() does there, and waits until that is done. If the CPU
 * reduces the array, the call first waits for the stream, and a result in device or managed memory is copied there in
 * the stream.
 *
 * While a stream that waits for the legacy default stream is captured, CUDA forbids use of the legacy default stream. A
 * call that would use it then waits for all work of the CUDA context and runs in a stream of its own. If a capture of
 * such a stream begins in another thread while the call is about to use the legacy default stream, the call ends with
 * DPR_ERR_CUDA, and CUDA invalidates the capture (cudaErrorStreamCaptureInvalidated). Captures of other streams may
 * begin at any time.
 *
 * The first call on a GPU initialises it (some 0.1 s). Time: O(count). Device memory held from then on: at most 4 MiB
 * for each CUDA context that calls have worked in. dpr_reduce() serves at most 64 CUDA contexts at a time; a call in a
 * further one ends with DPR_ERR_NO_DEVICE.
 *
 * Errors: DPR_ERR_NULL_POINTER, _INVALID_OP, _INVALID_DTYPE, _UNSUPPORTED_PAIR, _MISALIGNED, _SIZE (count elements do
 * not fit the address space), _EMPTY (ARGMIN, ARGMAX of nothing), _MEMORY_KIND (freed or unreachable memory),
 * _WRONG_DEVICE, _NO_DEVICE, _OUT_OF_MEMORY, _CUDA; _STRATEGY_UNABLE for SUMSQ, NORM1, NORM2, VAR and MINMAX, and for
 * MEAN of integers of 4 and 8 bytes, on a GPU without memory pools (cudaDevAttrMemoryPoolsSupported), which they need
 * there. After a kernel has failed (dpr_last_error() says that CUDA cannot use the device again in this process) calls
 * that need the device give DPR_ERR_CUDA; pageable memory is reduced on the CPU as before. */
DPR_API dpr_status dpr_reduce(const void *in, void *out, size_t count, dpr_dtype dtype, dpr_op op);

/** Ends the library's worker threads and gives back the contexts that dpr_reduce() made. Memory and threads that the
 * library holds by itself are gone on return. Contexts made by dpr_ctx_create() and their plans stay valid, and the
 * next call starts what it needs again.
 *
 * No other thread may be in a call of the library, or begin one, before dpr_shutdown() returns. A program need not call
 * it before it ends. */
DPR_API void dpr_shutdown(void);

/* ---- Contexts --------------------------------------------------------------------------------------------------- */

/** A context holds a device, its scratch memory and its plan cache. */
typedef struct dpr_ctx dpr_ctx;

/** This is a cudaStream_t. NULL is the legacy default stream. */
typedef struct CUstream_st *dpr_stream;

enum {
    DPR_DEVICE_CPU = -1, /**< no GPU: everything on the CPU */
    DPR_DEVICE_AUTO = -2 /**< the calling thread's current CUDA device if there is a usable one, else the CPU */
};

/** Makes a context.
 *
 * @param device  CUDA ordinal (0, 1, ...), DPR_DEVICE_CPU or DPR_DEVICE_AUTO.
 * @param out     receives the context; the caller gives it back with dpr_ctx_destroy().
 *
 * Initialises the device and takes 4 MiB of its memory, in addition to what CUDA itself takes. That is enough for 512
 * streams and captured calls at a time; the first call beyond that number takes another 4 MiB, and so on. A context
 * that has seen more than 4096 streams waits for the device before it takes more, and reuses the scratch memory of idle
 * streams.
 *
 * Loads the kernels that its calls may choose for one array, once for each CUDA context: on an H200 30 to 45 ms and
 * 10 MiB. Kernels for segments and axes are loaded when they are first planned or run. CUDA loads a kernel at its first
 * use at the latest, and then waits for all work on the device. If the program loads no other code, only these calls
 * wait for unrelated kernels afterwards: the first dpr_reduce() of each operation and type in a CUDA context without a
 * dpr_ctx_create(); the first calls and plans of each operation and type that take kernels for segments or axes; the
 * first call that names a strategy which the planner does not choose by itself; the first use of nested launches;
 * the first run of a recursion's policy; plans that are made with DPR_MEASURE; blocking calls while a stream that waits
 * for the legacy default stream is captured; and dpr_ctx_destroy() and dpr_shutdown(), which give memory back.
 *
 * It belongs to a CUDA context: the calling thread's current one if that is of the device, else the device's primary
 * one. Its calls work there, whatever context the calling thread has, on any memory of the device. A stream must belong
 * to the same CUDA context, or to a green context made from it; then the calls use only the green context's SMs. (If
 * the dpr_ctx itself belongs to a green context, streams of that one's regular context, and of all its green contexts,
 * may be used.) For any other stream a call ends with DPR_ERR_WRONG_DEVICE. After the CUDA context is
 * destroyed, or reset with its device, every call ends with DPR_ERR_CUDA, except dpr_ctx_destroy(), which frees what
 * the host holds.
 *
 * Errors: DPR_ERR_NULL_POINTER, DPR_ERR_INVALID_OPTION (no device number), DPR_ERR_NO_DEVICE, DPR_ERR_OUT_OF_MEMORY,
 * DPR_ERR_CUDA. */
DPR_API dpr_status dpr_ctx_create(int device, dpr_ctx **out);

/** Options of a context. Start from DPR_CTX_OPTIONS_INIT. */
typedef struct dpr_ctx_options {
    size_t size; /**< sizeof(dpr_ctx_options), set by DPR_CTX_OPTIONS_INIT */
    /** 0: the device's limit of launches from kernels that may be pending (cudaLimitDevRuntimePendingLaunchCount, 2048
     * by default) stays as it is. Any other number is the limit that the library sets; dpr_ctx_destroy() of the last
     * context that has set it restores the limit that was found. CUDA reserves memory for these launches when code that
     * launches kernels is loaded, some 9 KiB each, and a larger pool makes tail launches slower (`dpr bench --nested`).
     * A launch that finds no place in the pool is refused, and its parent does the work. A larger pool admits more
     * launches at a time. */
    size_t pending_launches;
} dpr_ctx_options;

#define DPR_CTX_OPTIONS_INIT                                                                                           \
    { sizeof(dpr_ctx_options), 0 }
DPR_API void dpr_ctx_options_init(dpr_ctx_options *out, size_t size);

/** dpr_ctx_create() with options (NULL: the defaults). DPR_ERR_INVALID_OPTION also for a number of pending launches
 * that the device does not take, that differs from the number of another dpr_ctx in the same CUDA context, or that
 * is not 0 on a CPU context, and also if 64 other CUDA contexts have such a number already. */
DPR_API dpr_status dpr_ctx_create_ex(int device, const dpr_ctx_options *ctx_options, dpr_ctx **out);

/** Gives back all that the context holds, after the work that it has in flight. NULL is allowed. Plans made from it
 * must have been destroyed, and CUDA graphs that captured its calls must not be launched afterwards. */
DPR_API void dpr_ctx_destroy(dpr_ctx *ctx);

/** The context's CUDA ordinal, or DPR_DEVICE_CPU. */
DPR_API int dpr_ctx_device(const dpr_ctx *ctx);

/* ---- The full call ---------------------------------------------------------------------------------------------- */

/** How the arithmetic is done. */
typedef enum dpr_mode {
    DPR_MODE_DEFAULT = 0, /**< DPR_FAST */
    DPR_FAST = 0x300 /**< as fast as the device allows; bitwise reproducible for the same plan, device, number of SMs
                        of the stream, and address modulo 16; with segments or keys, modulo 128 */
} dpr_mode;

/** The effect of a NaN element (floating-point and complex types; a complex element is NaN when a part is). */
typedef enum dpr_nan {
    DPR_NAN_PROPAGATE = 0, /**< SUM, PROD, MIN, MAX, MINMAX (both values), SUMSQ, NORM1, NORM2, MEAN and VAR are NaN;
                              ARGMIN and ARGMAX give the index of the first NaN; COUNT, ALL and ANY take it as non-zero
                            */
    DPR_NAN_IGNORE = 1     /**< NaN elements are left out, also by COUNT, ALL and ANY. If no other elements are there,
                              the result is that of zero elements, and -1 for ARGMIN and ARGMAX */
} dpr_nan;

/** Counters of the nested launches of one run. All are 0 unless a strategy dp.* ran. The result is right whatever
 * happens to a launch, because a parent does itself what it could not launch: `failed` says whether a launch failed.
 * Later versions may have more counters at the end. */
typedef struct dpr_launch_report {
    uint32_t launched;    /**< launches that kernels made */
    uint32_t refused;     /**< not made, because the device's pool of pending launches had no place, because the run had
                             made as many as it may, or because dpr_launcher.launches of the launcher were pending */
    uint32_t failed;      /**< tried, and failed for any other reason */
    uint32_t in_line;     /**< sub-trees that a parent did itself, for one of these reasons or at the limit of depth */
    uint32_t deepest;     /**< depth of the deepest launch; kernels that the host launches are at 0 */
    int32_t error;        /**< cudaError_t of the first failed launch; 0: none has failed */
    uint32_t error_depth; /**< depth and block of the kernel that tried that launch */
    uint32_t error_block;
} dpr_launch_report;

/** Puts the counters into a sentence, by the protocol of dpr_plan_explain(). It names the first launch that failed.
 *
 * @param report_size  bytes of *report, as in dpr_launch_options.
 *
 * Errors: DPR_ERR_NULL_POINTER, DPR_ERR_INVALID_OPTION (report_size), DPR_ERR_BUFFER_TOO_SMALL. */
DPR_API dpr_status dpr_launch_report_explain(const dpr_launch_report *report, size_t report_size, char *text,
                                             size_t *len);

enum { DPR_NO_LAUNCHES = -1 };

/** Options of strategies to learn from, and of nested launches. Start from DPR_LAUNCH_OPTIONS_INIT. */
typedef struct dpr_launch_options {
    size_t size;     /**< sizeof(dpr_launch_options), set by DPR_LAUNCH_OPTIONS_INIT */
    int block;       /**< threads a block, a power of two from 32 to 1024, for strategies with takes_block
                        (dpr_strategy_info): ladder.*, atomic.*, coop.tile, coop.async, dp.recursive, dp.nosync,
                        dp.recursive2; and for segments segments.thread, segments.warp, segments.block,
                        segments.split and segments.bins. Blocks of the dp.* among them begin with this many words, and
                        dp.recursive2 has a thread for two words. 0: the strategy's default. If it is set, only these
                        strategies are considered, and a call that none of them can run ends with
                        DPR_ERR_STRATEGY_UNABLE */
    int max_depth;   /**< the greatest depth of nested launches that strategies dp.* may make; the host's kernel is at
                        depth 0. 1 to 24; 0: the greatest depth that the device takes, which is 24 */
    int max_pending; /**< at most this many launches by the kernels of this call. 0: as many as the device's pool of
                        pending launches has places. DPR_NO_LAUNCHES: none, and parents do everything themselves. The
                        same applies while cudaLimitStackSize is lower than when the code for nested launches was
                        loaded */
    int reserved;    /**< 0 */
    dpr_launch_report *report; /**< NULL, or receives the run's counters of nested launches: memory like that of `out`,
                                  complete when the result is. All runs of a plan write it */
    size_t report_size; /**< sizeof(dpr_launch_report) in the caller's header: the bytes at `report`, of which those
                           that this version has no counters for become 0. A multiple of 4, at most 4096; 0: 32 bytes,
                           the size in version 0.2 */
} dpr_launch_options;

#define DPR_LAUNCH_OPTIONS_INIT                                                                                        \
    { sizeof(dpr_launch_options), 0, 0, 0, 0, NULL, 0 }
DPR_API void dpr_launch_options_init(dpr_launch_options *out, size_t size);

/** What VAR divides the sum of the squared distances by. */
typedef enum dpr_divisor {
    DPR_DIVISOR_POPULATION = 0, /**< the number of elements: the variance of these elements */
    DPR_DIVISOR_SAMPLE = 1      /**< one less: an estimate for all the elements of which these are a sample */
} dpr_divisor;

/** What a strategy is chosen by. */
typedef enum dpr_effort {
    DPR_EFFORT_DEFAULT = 0, /**< times that were measured on this machine (dpr_wisdom_import()), where there are any;
                                 otherwise predictions */
    DPR_ESTIMATE = 1,       /**< predictions alone; the rates of the CPU that they use may have been measured */
    DPR_WISDOM_ONLY = 2,    /**< as the default, but only among strategies that have measured times for this kind of
                                 call, of whatever numbers of elements: DPR_ERR_WISDOM if none has */
    DPR_MEASURE = 3 /**< dpr_plan_create() alone, for an array without gaps: it runs every candidate on an array of its
                         own in memory of the problem's kind, takes the quickest, and adds the times to the process's
                         wisdom, except those of several operations and of DPR_NAN_IGNORE. A candidate runs twice, and
                         then in five batches of 1 ms or of 64 runs, whichever is shorter, but of at least one run;
                         there are no batches if it takes more than four times as long as the best so far. The array
                         stays in the caches if it fits; `dpr tune` measures with cold caches. So these times are kept
                         apart: they replace none that dpr_wisdom_add() has added, and other plans use them only for
                         strategies without an added time for the kind of call */
} dpr_effort;

/** Options of a reduction. Start from DPR_OPTIONS_INIT. */
typedef struct dpr_options {
    size_t size;          /**< sizeof(dpr_options) as the caller's header has it; set by DPR_OPTIONS_INIT */
    const char *strategy; /**< NULL or "": the planner chooses; else a name that dpr_strategy_name() gives. The first
                             dp.* that a context is asked for by name loads code, and measures what nested launches cost
                             on the device in a stream of its own: on an H200 some 0.1 s in a process, and 2 ms in each
                             further context */
    dpr_mode mode;
    dpr_nan nan;
    const void *init;  /**< NULL, or host memory with an initial value of the result type, combined with the result as
                          though it were one more element at the end; SUMSQ, NORM1 and COUNT add it as it is, and MINMAX
                          takes two values, one for each of its results. Not for ARGMIN, ARGMAX, NORM2, MEAN and VAR.
                          Read during the call */
    dpr_stream stream; /**< the stream of a call that waits for its result (dpr_reduce_ex(), dpr_reduce_fused(),
                          dpr_reduce_partial(), dpr_reduce_segments(), dpr_reduce_segments_partial(),
                          dpr_reduce_by_key() and dpr_reduce_axes()); NULL: the order is that
                          of dpr_reduce(), which describes both. It must be NULL on a CPU context and for every other
                          call, and it must not be captured at the time: DPR_ERR_INVALID_OPTION */
    const dpr_launch_options *launch; /**< options of strategies to learn from; NULL: their defaults. Read during the
                                         call */
    dpr_divisor divisor;              /**< of VAR; other operations ignore it */
    dpr_effort effort;                /**< not used if a strategy is asked for by name */
} dpr_options;

#define DPR_OPTIONS_INIT                                                                                               \
    {                                                                                                                  \
        sizeof(dpr_options), NULL, DPR_MODE_DEFAULT, DPR_NAN_PROPAGATE, NULL, NULL, NULL, DPR_DIVISOR_POPULATION,      \
            DPR_EFFORT_DEFAULT                                                                                         \
    }
DPR_API void dpr_options_init(dpr_options *out, size_t size);

/** dpr_reduce() on a context of the caller's, with options (NULL: the defaults). Blocking.
 *
 * If options->strategy is not set, a GPU context leaves pageable memory to the CPU, and pinned memory to the GPU or the
 * CPU, whichever is expected to be quicker. With a GPU strategy, host memory must be pinned. On a CPU context device
 * memory is an error. Further errors: DPR_ERR_INVALID_OPTION, DPR_ERR_UNKNOWN_STRATEGY, DPR_ERR_STRATEGY_UNABLE, and
 * for options->stream those that dpr_reduce_async() has for its stream. */
DPR_API dpr_status dpr_reduce_ex(dpr_ctx *ctx, const void *in, void *out, size_t count, dpr_dtype dtype, dpr_op op,
                                 const dpr_options *options);

/** The most operations of one call of dpr_reduce_fused(), and of one plan. */
enum { DPR_FUSED_MOST = 8 };

/** Reduces in[0 .. count-1] with several operations in one pass over memory: *outs[i] receives what dpr_reduce_ex()
 * would write for ops[i]. Floating-point results may differ from those by rounding, within the same bounds.
 *
 * @param outs  n places. Each has the size, type and alignment of `out` in dpr_reduce_ex(). Unlike `out`, they must not
 *              overlap `in`, nor each other.
 * @param ops   n operations in any order; each must have a meaning for `dtype`.
 * @param n     1 to DPR_FUSED_MOST, otherwise DPR_ERR_INVALID_OPTION.
 *
 * options->init must be NULL (DPR_ERR_INVALID_OPTION). If the call fails, no result in host memory is written. Errors:
 * those of dpr_reduce_ex(). On a GPU only flat.fused runs several operations, on the CPU every strategy does.
 * cpu.serial reads the array once for each operation, the others read it once. */
DPR_API dpr_status dpr_reduce_fused(dpr_ctx *ctx, const void *in, void *const *outs, size_t count, dpr_dtype dtype,
                                    const dpr_op *ops, size_t n, const dpr_options *options);

/** Enqueues the reduction in `stream` and returns at once; *out is written in stream order.
 *
 * `in` and `out` are in memory that the GPU reaches (device, pinned or managed), and must stay valid until the work is
 * done. On a CPU context `stream` must be NULL and the result is there on return. Errors: those of dpr_reduce_ex(), and
 * DPR_ERR_WRONG_DEVICE for a stream of another device or CUDA context. DPR_ERR_CUDA for the legacy default stream while
 * a stream that waits for it is captured, because CUDA forbids its use.
 *
 * May be captured in a CUDA graph. The captured call has scratch memory of its own, which lives as long as the graph
 * and every copy of it, and which all copies share: instances of the graph, clones, child nodes made from it, and
 * captures of its launches. Two copies of one captured call must not run at once: their results are mixed up, or they
 * wait for each other and never end. What was captured by separate calls may run at once. */
DPR_API dpr_status dpr_reduce_async(dpr_ctx *ctx, const void *in, void *out, size_t count, dpr_dtype dtype, dpr_op op,
                                    const dpr_options *options, dpr_stream stream);

/** dpr_reduce_fused() in a stream; the rules of dpr_reduce_async() hold for all places of results. */
DPR_API dpr_status dpr_reduce_fused_async(dpr_ctx *ctx, const void *in, void *const *outs, size_t count,
                                          dpr_dtype dtype, const dpr_op *ops, size_t n, const dpr_options *options,
                                          dpr_stream stream);

/* ---- Segments --------------------------------------------------------------------------------------------------- */

/** Where the indices of ARGMIN and ARGMAX begin if an array has segments. */
typedef enum dpr_index {
    DPR_INDEX_IN_SEGMENT = 0, /**< 0 is the segment's first element */
    DPR_INDEX_IN_ARRAY = 1    /**< 0 is the array's first element */
} dpr_index;

/** Segments: parts of an array, each of which has a result of its own. Start from DPR_SEGMENTS_INIT.
 *
 * Segment i has the elements begins[i] .. ends[i]-1. It is empty if begins[i] >= ends[i], even if these numbers are
 * outside the array. Segments may have gaps between them, overlap, and come in any order. */
typedef struct dpr_segments {
    size_t size;        /**< sizeof(dpr_segments), set by DPR_SEGMENTS_INIT */
    uint64_t count;     /**< number of segments, and of results */
    const void *begins; /**< with `ends`: `count` numbers. Without: count + 1 offsets, like the row offsets of a CSR
                             matrix; segment i ends at begins[i + 1] */
    const void *ends;   /**< `count` numbers, or NULL. The address of begins[1] is the same as NULL: one array of
                             offsets, which segments.merge takes */
    dpr_dtype dtype;    /**< of these numbers: DPR_I32, DPR_U32, DPR_I64 or DPR_U64 */
    dpr_index index;    /**< for ARGMIN and ARGMAX */
    int check;          /**< 1: a segment that is not empty and not within the array ends the call with
                             DPR_ERR_SEGMENT, before a result is written. 0: not checked; such a segment is then
                             undefined behaviour */
    int reserved;       /**< 0 */
    /** NULL, or where the number of segments is when the run begins, if that is not known before; each run of a plan
     * reads it. `count` is then the most: so many numbers and results have room, and a greater number counts as
     * `count`. The choice is made for `count`, so one far above the number makes the run slow. Results beyond the
     * number stay as they are. `check` must be 0. Where the GPU runs the call, the number is in memory that its streams
     * reach; or in pageable memory, if the call waits. */
    const uint64_t *device_count;
} dpr_segments;

#define DPR_SEGMENTS_INIT                                                                                              \
    { sizeof(dpr_segments), 0, NULL, NULL, DPR_I64, DPR_INDEX_IN_SEGMENT, 0, 0, NULL }
DPR_API void dpr_segments_init(dpr_segments *out, size_t size);

/** Reduces each segment of in[0 .. count-1], and writes its result to out[i], where `out` has room for
 * segments->count results of dpr_result_values(op) values each. Blocking.
 *
 * The result of a segment is that of dpr_reduce_ex() for its elements, up to rounding. options->init is combined with
 * the result of every segment. An empty segment gives the identity, and -1 for ARGMIN and ARGMAX. Floating-point
 * results are bitwise reproducible on the GPU as DPR_FAST says, and on the CPU for the same strategy and number of
 * threads.
 *
 * If `in` is in device memory, the GPU runs the call; numbers and results in pageable memory then have copies in memory
 * from the context's pool, which keeps it for later calls. Otherwise the CPU does, or a strategy of the GPU that is
 * asked for by name if `in` is in pinned or managed memory (segments.merge takes device memory alone), and `out` and
 * the numbers must be in memory that the host reaches. options->launch->report must be NULL (a plan of segments takes
 * one). `out` must not overlap `in` or the numbers: DPR_ERR_OVERLAP. On a GPU, segments.group alone runs SUMSQ, NORM1,
 * NORM2, VAR and MINMAX, MEAN of integers of 4 and 8 bytes, and MEAN of floating-point and complex types with
 * DPR_NAN_IGNORE. Offsets that decrease are allowed; segments.merge takes long for them.
 *
 * A run on the GPU has 8 KiB of scratch memory. Further device memory comes from the context's pool, and
 * dpr_plan_explain() says how much a plan takes. segments.small takes none. segments.merge takes at most 128 bytes for
 * each block that the device holds at a time: 66 KiB on an H200 for most types. segments.group takes none for arrays of
 * at most 2^13 elements, or of 2^15 if their segments have more than 4096 on average. Otherwise it takes 256 bytes for
 * each block that the device holds, and 96 bytes for each of n segments. n is one for every 2^13 elements (or 2^15),
 * but from 1024 to 2^17 (12 MiB), and at most the number of segments.
 *
 * Strategies to learn from run if options->strategy names them: segments.thread, segments.warp, segments.block,
 * segments.split, segments.bins, and dp.segments, whose kernels launch kernels. They run SUM, MIN and MAX of I32, I64,
 * F32 and F64, and write no partial results. segments.split takes 24 bytes of device memory for every 4096 elements of
 * the array, segments.bins 16 for each segment, and dp.segments 8 for every 4096 elements.
 *
 * Errors: those of dpr_reduce_ex() except DPR_ERR_EMPTY; DPR_ERR_OVERLAP; and DPR_ERR_SEGMENT, whose sentence names the
 * segment. */
DPR_API dpr_status dpr_reduce_segments(dpr_ctx *ctx, const void *in, void *out, size_t count, dpr_dtype dtype,
                                       dpr_op op, const dpr_segments *segments, const dpr_options *options);

/** As dpr_reduce_segments(), but enqueues the call in `stream` and returns at once, like dpr_reduce_async(): all arrays
 * must be where the stream reaches them, and stay valid until the run is done. It can be captured in a CUDA graph, and
 * allocates nothing after the first run in a stream. segments->check must be 0 in the context of a GPU. In the CPU's
 * context `stream` is NULL, and the call is done on return. */
DPR_API dpr_status dpr_reduce_segments_async(dpr_ctx *ctx, const void *in, void *out, size_t count, dpr_dtype dtype,
                                             dpr_op op, const dpr_segments *segments, const dpr_options *options,
                                             dpr_stream stream);

/** Reduces each run of equal consecutive keys by itself: elements i and i + 1 of `in` belong to one run if keys[i] and
 * keys[i + 1] are equal. Blocking.
 *
 * @param keys         `count` keys. In no order: a key that comes again after others begins another run.
 * @param key_dtype    DPR_BOOL or a type of integers. Keys are equal if their bits are: each of DPR_BOOL should be 0
 * or 1.
 * @param unique_keys  receives the key of each run, in the order of the runs; NULL: they are not wanted.
 * @param out          receives the result of each run, as from dpr_reduce_segments(). ARGMIN and ARGMAX count from the
 *                     run's first element; there is no option for indices in the array.
 * @param runs         in: the room in `unique_keys` and `out`, in runs; `count` is always enough. Out: how many runs
 *                     there are. DPR_ERR_BUFFER_TOO_SMALL if there are more, and then only *runs is set.
 *
 * The rules are those of dpr_reduce_segments(); `unique_keys` and `out`, with room for the lesser of *runs
 * and `count`, must not overlap the other arrays: DPR_ERR_OVERLAP. If `in` is in device memory, the GPU runs the call:
 * in one pass over keys and elements if all arrays are in device memory, *runs is at least `count`, there are fewer
 * than 2^32 elements, which are aligned to their size, no strategy, no block size and neither DPR_MEASURE nor
 * DPR_WISDOM_ONLY is asked for, the operation is neither ARGMIN, ARGMAX, MEAN nor a product of complex numbers, nor one
 * of those that segments.group alone runs, and the device has compute capability 9.0 or later. Otherwise it counts the
 * runs, finds where they begin, and reduces them as segments. It takes device memory from the context's pool, which
 * keeps it for later calls: in one pass at most 1 % of the elements' bytes, and otherwise 64 KiB, 4 bytes for each run
 * (8 from 2^32 elements on), the bytes of the unique keys if they are wanted, and what the strategy for segments takes.
 * `keys` and `out` in pageable memory have copies in memory from that pool. Floating-point results are
 * bitwise reproducible as DPR_FAST says. A plan of keys (dpr_problem.key_dtype) explains the choice. On the CPU keys
 * are compared on all threads, whatever the strategy, and each run takes 8 bytes of host memory. Errors: those of
 * dpr_reduce_segments(), and DPR_ERR_BUFFER_TOO_SMALL. */
DPR_API dpr_status dpr_reduce_by_key(dpr_ctx *ctx, const void *keys, dpr_dtype key_dtype, const void *in,
                                     void *unique_keys, void *out, uint64_t *runs, size_t count, dpr_dtype dtype,
                                     dpr_op op, const dpr_options *options);

/** As dpr_reduce_by_key(), but enqueues the call in `stream` and returns at once: all arrays must be where the stream
 * reaches them, and stay valid until the run is done. It can be captured in a CUDA graph, and allocates nothing after
 * the first run in a stream. Where dpr_reduce_by_key() needs one pass, so does this, if `room` is at least `count`;
 * otherwise it takes 64 KiB of device memory, and 4 bytes for each run that there is room for (8 from 2^32 elements
 * on). In the CPU's context `stream` is NULL, and the call is done on return.
 *
 * @param runs  receives how many runs there are.
 * @param room  the room in `unique_keys` and `out`, in runs. If it is less than `count`, a strategy is chosen for it:
 * far more than there are makes the run slow. If there are more runs, only *runs is written, and the status is DPR_OK
 * as well.
 * @param device_count  NULL, or the place of the number of elements, which is read when the run begins. The stream must
 * reach it, and it must not change until the run is done. `count` is then the greatest number; more count as `count`.
 * The keys are then read twice, whatever `room` is. */
DPR_API dpr_status dpr_reduce_by_key_async(dpr_ctx *ctx, const void *keys, dpr_dtype key_dtype, const void *in,
                                           void *unique_keys, void *out, uint64_t *runs, uint64_t room, size_t count,
                                           const uint64_t *device_count, dpr_dtype dtype, dpr_op op,
                                           const dpr_options *options, dpr_stream stream);

/* ---- Axes ------------------------------------------------------------------------------------------------------- */

/** The most dimensions of an array. */
enum { DPR_MOST_DIMENSIONS = 8 };

/** An array of several dimensions, and along which of them it is reduced. Start from DPR_AXES_INIT. */
typedef struct dpr_axes {
    size_t size;             /**< sizeof(dpr_axes), set by DPR_AXES_INIT */
    int dimensions;          /**< 1 to DPR_MOST_DIMENSIONS */
    uint32_t reduced;        /**< bit d: 1 if dimension d is reduced. Dimension 0 is the slowest. If no bit is set, each
                                  element has its own result */
    const uint64_t *extents; /**< the number of indices in each dimension */
    const int64_t *strides;  /**< the distance, in elements, between neighbours in each dimension; may be negative or 0.
                                  NULL: the array has no gaps, and its last index runs fastest */
    const int64_t *out_strides; /**< the same of the results, in results; those of reduced dimensions are not used.
                                     NULL: the results have no gaps, and the last kept index runs fastest */
} dpr_axes;

#define DPR_AXES_INIT                                                                                                  \
    { sizeof(dpr_axes), 0, 0, NULL, NULL, NULL }
DPR_API void dpr_axes_init(dpr_axes *out, size_t size);

/** Reduces an array along some of its dimensions: for each index of the dimensions that are kept, one result of all
 * elements with this index. Blocking.
 *
 * @param in   the element whose indices are all 0. NULL if there are no elements.
 * @param out  the result whose indices are all 0. Results must not share a place, and must not overlap `in`, but may
 *             lie in its gaps. DPR_ERR_OVERLAP if the arrays overlap; of an array with strides, only the place whose
 *             indices are all 0 is compared.
 *
 * ARGMIN and ARGMAX count elements in the order of the indices of the reduced dimensions, the last one running fastest.
 * If there are no elements to reduce, results are the identity; if there are any results then, ARGMIN and ARGMAX end
 * with DPR_ERR_EMPTY.
 * options->init is combined with every result. Floating-point results are bitwise reproducible for the same extents and
 * strides: on the GPU as DPR_FAST says, and on the CPU for the same strategy and number of threads.
 *
 * If `in` is in device memory, the GPU runs the call; results without axes->out_strides may then be in pageable memory,
 * and have a copy in memory from the context's pool, which keeps it for later calls. Otherwise cpu.simd or cpu.threads
 * does, or axes.tiles if it is asked for by name and `in` is in pinned or managed memory, and `out` must be in memory
 * that the host reaches. options->launch->report must be NULL. axes.tiles takes device memory from the context's pool
 * only if blocks share results because these are few: 16 bytes for each result that a block has a share of (up to 56
 * for what segments.group alone runs of segments), on an H200 less than 80 MiB, and less than 2.5 times the bytes of
 * the elements; dpr_plan_explain() says how much. Errors: those of dpr_reduce_ex(), and DPR_ERR_OVERLAP. */
DPR_API dpr_status dpr_reduce_axes(dpr_ctx *ctx, const void *in, void *out, dpr_dtype dtype, dpr_op op,
                                   const dpr_axes *axes, const dpr_options *options);

/** As dpr_reduce_axes(), but enqueues the call in `stream` and returns at once, like dpr_reduce_segments_async(). */
DPR_API dpr_status dpr_reduce_axes_async(dpr_ctx *ctx, const void *in, void *out, dpr_dtype dtype, dpr_op op,
                                         const dpr_axes *axes, const dpr_options *options, dpr_stream stream);

/* ---- Plans ------------------------------------------------------------------------------------------------------ */

/** Where an array lies. */
typedef enum dpr_memory {
    DPR_MEMORY_AUTO = 0,   /**< device memory on a GPU context, host memory on the CPU */
    DPR_MEMORY_HOST = 1,   /**< pageable host memory */
    DPR_MEMORY_PINNED = 2, /**< page-locked host memory that the device can reach */
    DPR_MEMORY_MANAGED = 3,
    DPR_MEMORY_DEVICE = 4
} dpr_memory;

/** The problem that a plan solves. Start from DPR_PROBLEM_INIT and set op, dtype, and count or dimensions and extents;
 * for several results set segments, too, or key_dtype and room; or set axes and leave count 0. */
typedef struct dpr_problem {
    size_t size; /**< sizeof(dpr_problem), set by DPR_PROBLEM_INIT */
    dpr_op op;
    dpr_dtype dtype;
    size_t count;      /**< number of elements of every run; with `device_count`, the most that a run may have */
    dpr_memory memory; /**< where the arrays of the runs will lie */
    int dimensions;    /**< 0: an array of `count` elements. 1 to DPR_MOST_DIMENSIONS: of the shape in `extents` */
    const dpr_options *options; /**< NULL: the defaults. Copied, with the initial value and the options of launches */
    /** NULL, or the place where each run reads its number of elements: device, pinned or managed memory for a GPU, host
     * memory for the CPU. A run in a stream reads it when its turn comes, so that a captured graph follows it from one
     * launch to the next. The choice is made for `count`, and a larger number is taken for `count`. 0 gives the
     * identity, and -1 for ARGMIN and ARGMAX; `count` itself must be at least 1 for these two. The memory must stay
     * valid as long as runs, or graphs that captured them, may read it. */
    const uint64_t *device_count;
    /** NULL, or op_count operations (1 to DPR_FUSED_MOST) for dpr_plan_run_fused(), and `op` is not used. Copied. The
     * rules are those of dpr_reduce_fused(). */
    const dpr_op *ops;
    size_t op_count; /**< 0 if `ops` is NULL */
    /** The number of elements in each dimension, the slowest dimension first; NULL if `dimensions` is 0. `count` is
     * then 0 or their product, `device_count` is NULL, and ARGMIN and ARGMAX count elements in the order of their
     * indices, the last index running fastest. Copied. */
    const uint64_t *extents;
    /** The distance, in elements, between neighbours in each dimension; may be negative or 0. NULL: the array has no
     * gaps. Copied. Strides of dimensions with one element are ignored. Arrays with gaps or in another order are run by
     * the strategies for axes, and have one operation, no partial results and no nested launches. */
    const int64_t *strides;
    /** NULL, or segments, each with a result of its own: a run is then dpr_reduce_segments_async(). Copied; the numbers
     * are not: every run reads them, when its turn in the stream comes, so they must stay valid and be where the
     * strategy reaches them. `count` is the number of elements of `in`; `device_count` is NULL, `dimensions` 0. There
     * is one operation, and segments->check is 0. options->launch->report receives what the kernels of dp.segments
     * launch, and zeros from other strategies; a plan of 0 segments runs nothing, and leaves it as it is. */
    const dpr_segments *segments;
    /** NULL, or dimensions, and along which of them the array is reduced: a run is then dpr_reduce_axes_async(). Copied
     * with extents and strides. `count` is 0 or the number of elements; otherwise as with `segments`, which is NULL. */
    const dpr_axes *axes;
    uint64_t room; /**< the room for results, in runs of keys, as in dpr_reduce_by_key_async(); 0 without keys */
    /** DPR_DTYPE_NONE, or the type of keys: DPR_BOOL or a type of integers. Each run of equal consecutive keys then has
     * a result, and dpr_plan_run_by_key() executes the plan. For every operation `count` and the number at device_count
     * may be 0, and there are no runs then. `segments` and `axes` are NULL, `dimensions` is 0, there is one operation,
     * and options->launch->report is NULL. */
    dpr_dtype key_dtype;
    int reserved; /**< 0 */
} dpr_problem;

#define DPR_PROBLEM_INIT                                                                                               \
    {                                                                                                                  \
        sizeof(dpr_problem), DPR_SUM, DPR_F32, 0, DPR_MEMORY_AUTO, 0, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, 0,  \
            DPR_DTYPE_NONE, 0                                                                                          \
    }
DPR_API void dpr_problem_init(dpr_problem *out, size_t size);

/** A plan is a choice that is made once and run often. */
typedef struct dpr_plan dpr_plan;

/** Chooses how to solve the problem on the context's device. The context must outlive the plan; the caller gives the
 * plan back with dpr_plan_destroy(). Errors: those of dpr_reduce_ex(), which `device_count` can cause, too. */
DPR_API dpr_status dpr_plan_create(dpr_ctx *ctx, const dpr_problem *problem, dpr_plan **out);

/** Enqueues one run in `stream` and returns at once; a plan of a CPU context needs a NULL stream and is done on return.
 *
 * Checks `in` and `out` for NULL and alignment only; they must point to the kind of memory that the problem named. Runs
 * of one plan may be in flight in several streams at once. Allocates nothing after the first run in a stream. */
DPR_API dpr_status dpr_plan_run(dpr_plan *plan, const void *in, void *out, dpr_stream stream);

/** Runs a plan of several operations, or of one: *outs[i] receives the result of problem->ops[i]. Otherwise as
 * dpr_plan_run(). Only this function runs a plan of several operations; dpr_plan_run() and dpr_plan_run_partial()
 * refuse it (DPR_ERR_INVALID_OPTION). */
DPR_API dpr_status dpr_plan_run_fused(dpr_plan *plan, const void *in, void *const *outs, dpr_stream stream);

/** Runs a plan of keys, as dpr_reduce_by_key_async() does with the problem's count, device_count, room, types,
 * operation and options. Only this function runs such a plan; the others refuse it (DPR_ERR_INVALID_OPTION), and this
 * one refuses other plans.
 *
 * A plan that runs on the CPU (in the CPU's context, or for DPR_MEMORY_HOST) needs a NULL stream and is done on return.
 * On a GPU the arrays may lie wherever the stream reaches them; if that is not problem->memory, the run may go another
 * way than dpr_plan_explain() describes. Runs of one plan may be in flight in several streams at once, and allocate
 * nothing after the first run in a stream. Errors: those of dpr_reduce_by_key_async(). */
DPR_API dpr_status dpr_plan_run_by_key(dpr_plan *plan, const void *keys, const void *in, void *unique_keys, void *out,
                                       uint64_t *runs, dpr_stream stream);

/** Describes the choice: problem, strategy, launch shape, predicted time, and for each other strategy its predicted
 * time or the reason it was refused; where there is no GPU, one line says how many strategies need one. For keys, times
 * are those of reducing the runs after they are found; one pass over keys and elements has no predicted time.
 *
 * @param text  receives the zero-terminated text; may be NULL to ask for the size.
 * @param len   in: bytes at `text` (ignored when `text` is NULL); out: bytes needed, the terminating zero included.
 *
 * DPR_ERR_BUFFER_TOO_SMALL leaves `text` alone and sets *len. */
DPR_API dpr_status dpr_plan_explain(const dpr_plan *plan, char *text, size_t *len);

/** The name of the plan's strategy; for keys "runs of keys in one pass", or the strategy that reduces the runs after
 * they are found, which on the CPU is chosen again for the number of runs. A run in a stream with fewer SMs than the
 * context (a green context's) may use another one. Static storage. */
DPR_API const char *dpr_plan_strategy(const dpr_plan *plan);

/** Gives the plan back; NULL is allowed. Its runs may still be in flight. */
DPR_API void dpr_plan_destroy(dpr_plan *plan);

/* ---- Partial results -------------------------------------------------------------------------------------------- */

/** A partial result is what is known of some elements before the result is made: a string of bytes of known size, the
 * same on every machine (little-endian words of 64 bits), which may be stored, sent and copied. An array in pieces is
 * reduced piece by piece, anywhere and at any time; the partial results are merged in the order of the pieces; the
 * merged one is finished. Whatever the pieces are, the result is the same as that of the whole array, except for SUM,
 * PROD, SUMSQ, NORM1 and MEAN of floating-point and complex types, and NORM2 and VAR of all types: there the bits
 * depend on the pieces, and are the same whenever the pieces, their order and their devices' strategies are the same.
 * Merging in several steps, from the first piece on, gives the same bits as merging at once. Errors of sums hold as for
 * the whole array: partial sums are kept in twice the precision of F64, so merging adds nothing to them.
 *
 * A partial result belongs to an operation, an element type and a NaN policy, and to the version of its layout. What
 * belongs to something else, or is no partial result, is refused with DPR_ERR_INVALID_PARTIAL. Changes of its other
 * bytes are not noticed: they make another valid partial result.
 *
 * Partial results in memory are aligned to 8 bytes, and several lie one behind the other. */

/** Bytes of a partial result, a multiple of 8; 0 for a pair without a meaning. */
DPR_API size_t dpr_partial_size(dpr_op op, dpr_dtype dtype);

/** What a partial result is of. Start from DPR_PARTIAL_INFO_INIT. */
typedef struct dpr_partial_info {
    size_t size; /**< sizeof(dpr_partial_info), set by DPR_PARTIAL_INFO_INIT */
    dpr_op op;
    dpr_dtype dtype;
    dpr_nan nan;
    uint32_t reserved; /**< 0 */
    uint64_t count;    /**< number of elements, NaNs that were ignored included */
} dpr_partial_info;

#define DPR_PARTIAL_INFO_INIT                                                                                          \
    { sizeof(dpr_partial_info), DPR_OP_NONE, DPR_DTYPE_NONE, DPR_NAN_PROPAGATE, 0, 0 }
DPR_API void dpr_partial_info_init(dpr_partial_info *out, size_t size);

/** Writes what the partial result in host memory is of to *out. DPR_ERR_INVALID_PARTIAL, DPR_ERR_MISALIGNED. */
DPR_API dpr_status dpr_partial_describe(const void *partial, dpr_partial_info *out);

/** dpr_reduce_ex() and dpr_reduce_async() to a partial result: `partial` receives dpr_partial_size(op, dtype) bytes.
 *
 * @param first_index  the index of in[0] in the whole array, for ARGMIN and ARGMAX: at most 2^63 - 1 - count, else
 *                     DPR_ERR_SIZE. Not used by other operations.
 *
 * `count` may be 0 for every operation. options->init must be NULL: DPR_ERR_INVALID_OPTION.
 *
 * Not every strategy writes partial results; coop.cluster does not. The planner chooses among those that do, so it may
 * choose another strategy than for the result. DPR_ERR_STRATEGY_UNABLE if options->strategy writes none. */
DPR_API dpr_status dpr_reduce_partial(dpr_ctx *ctx, const void *in, void *partial, size_t count, dpr_dtype dtype,
                                      dpr_op op, uint64_t first_index, const dpr_options *options);
DPR_API dpr_status dpr_reduce_partial_async(dpr_ctx *ctx, const void *in, void *partial, size_t count, dpr_dtype dtype,
                                            dpr_op op, uint64_t first_index, const dpr_options *options,
                                            dpr_stream stream);

/** Like dpr_reduce_segments() and dpr_reduce_segments_async(), but write partial results, so that a segment may go on
 * in another array, in another file or on another machine. `partial` receives segments->count partial results, one
 * behind the other, of dpr_partial_size(op, dtype) bytes each. dpr_partial_finish() makes the result of a segment from
 * the partial results of its parts, in their order.
 *
 * @param first_index  as for dpr_reduce_partial(); ARGMIN and ARGMAX count from the beginning of the whole array,
 *                     whatever segments->index is.
 *
 * On a GPU, segments.group runs the call. options->init must be NULL: DPR_ERR_INVALID_OPTION. */
DPR_API dpr_status dpr_reduce_segments_partial(dpr_ctx *ctx, const void *in, void *partial, size_t count,
                                               dpr_dtype dtype, dpr_op op, const dpr_segments *segments,
                                               uint64_t first_index, const dpr_options *options);
DPR_API dpr_status dpr_reduce_segments_partial_async(dpr_ctx *ctx, const void *in, void *partial, size_t count,
                                                     dpr_dtype dtype, dpr_op op, const dpr_segments *segments,
                                                     uint64_t first_index, const dpr_options *options,
                                                     dpr_stream stream);

/** dpr_plan_run() to a partial result. The strategy is chosen as by dpr_reduce_partial(), so it may be another one than
 * dpr_plan_strategy() names.
 *
 * Further errors: DPR_ERR_STRATEGY_UNABLE if the plan was made for a strategy by name, and this strategy writes no
 * partial results; DPR_ERR_INVALID_OPTION if the plan has an initial value. */
DPR_API dpr_status dpr_plan_run_partial(dpr_plan *plan, const void *in, void *partial, uint64_t first_index,
                                        dpr_stream stream);

/** Merges partial results in host memory, in their order, to one.
 *
 * @param partials  `n` partial results of the operation and the type, one behind the other; n is at least 1.
 * @param options   NULL, or options whose `nan` is that of the partial results. `init` and `stream` must be NULL. The
 *                  other options are checked and not used; finishing uses `divisor`, which no partial result has.
 * @param out       receives the merged partial result; may be in `partials`.
 *
 * Errors: DPR_ERR_INVALID_PARTIAL, DPR_ERR_EMPTY (n is 0), DPR_ERR_SIZE, and those of the arguments. Time: O(n). */
DPR_API dpr_status dpr_partial_merge(const void *partials, size_t n, dpr_dtype dtype, dpr_op op,
                                     const dpr_options *options, void *out);

/** Merges partial results in host memory as dpr_partial_merge() does, combines what that gives with options->init, if
 * there is one, and writes the result to *out, as dpr_reduce() does. DPR_ERR_EMPTY also for ARGMIN and ARGMAX of no
 * elements. */
DPR_API dpr_status dpr_partial_finish(const void *partials, size_t n, dpr_dtype dtype, dpr_op op,
                                      const dpr_options *options, void *out);

/** The same in a stream, for partial results in memory that the context's GPU reaches: device, pinned or managed. One
 * warp does the work; the bits are those that the host's functions give. May be captured in a CUDA graph. On a CPU
 * context `stream` must be NULL, and the work is done on return.
 *
 * The GPU cannot return a status: if a partial result belongs to something else, the merged one is all zeros, which
 * every later merge refuses, and finishing leaves *out as it is. ARGMIN and ARGMAX of no elements give -1. */
DPR_API dpr_status dpr_partial_merge_async(dpr_ctx *ctx, const void *partials, size_t n, dpr_dtype dtype, dpr_op op,
                                           const dpr_options *options, void *out, dpr_stream stream);
DPR_API dpr_status dpr_partial_finish_async(dpr_ctx *ctx, const void *partials, size_t n, dpr_dtype dtype, dpr_op op,
                                            const dpr_options *options, void *out, dpr_stream stream);

/* ---- Reductions from kernels ------------------------------------------------------------------------------------ */

/** A launcher serves reductions that the caller's own kernels ask for, by dpr::nested_reduce() and dpr::tail_reduce()
 * of dpr_nested.cuh (CUDA C++17; the header says how to compile and what a kernel may do). Kernels take it by value,
 * any number of them at once in any streams of its device. The members are for that header. They have the same places
 * in every version, and what they point to may differ: kernels that were compiled for another `version` launch nothing,
 * and do all work in line. */
typedef struct dpr_launcher {
    int32_t device;    /**< CUDA ordinal */
    uint32_t launches; /**< number of its launches that may be pending at a time */
    uint32_t within;   /**< 0 on the host's copy; in a continuation, 1 + the index of the launch that it continues */
    uint32_t version;  /**< of what `table` and `memory` point to */
    void *table;       /**< the library's device memory: the kernel that is launched */
    void *memory;      /**< device memory: the account, a slot for each launch, and queues */
    void *line;        /**< NULL on the host's copy; in a continuation called in line, the call that waits for it */
} dpr_launcher;

/** Makes a launcher on the context's device, and loads the code for nested launches there if that is not done yet.
 *
 * @param launches  number of the launcher's launches that may be pending at a time: at most the size of the device's
 *                  pool (ctx_options->pending_launches), and at most 2048. 0 and larger numbers mean that maximum.
 *                  Strategies dp.* and other launchers launch into the same pool. DPR_NO_LAUNCHES: none, and threads
 *                  do everything in line.
 * @param out       receives the launcher; the caller gives it back with dpr_launcher_destroy(), before the context.
 *
 * Waits for runs of engine `graph` in other threads, which nested launches must not meet (dpr_recursion_options).
 * Takes 0.8 MiB of device memory and 1.1 KiB for each launch: 3.1 MiB at most. Errors: DPR_ERR_NULL_POINTER,
 * DPR_ERR_INVALID_OPTION, DPR_ERR_STRATEGY_UNABLE (a CPU context, MPS, no code for the device, or cudaLimitStackSize
 * below 1 KiB, or lower than when the code for nested launches was loaded), DPR_ERR_OUT_OF_MEMORY, DPR_ERR_CUDA. */
DPR_API dpr_status dpr_launcher_create(dpr_ctx *ctx, int launches, dpr_launcher *out);

/** Writes the launcher's counters since it was made or last reported on to *out, and sets them to 0.
 *
 * @param report_size  bytes of *out, as in dpr_launch_options.
 *
 * The number of calls is `launched + refused + failed`, where a tail_reduce() by all blocks of a grid is one call.
 * The calling threads did those that were refused or failed, `in_line`. Depths count from the calling kernel.
 *
 * Waits, as cudaMemcpy does, for work in the legacy default stream and in streams that it waits for; work in other
 * streams (cudaStreamNonBlocking) must be done before.
 *
 * Errors: DPR_ERR_NULL_POINTER, DPR_ERR_INVALID_OPTION (report_size, or a launcher of another version of the library),
 * DPR_ERR_CUDA. */
DPR_API dpr_status dpr_launcher_report(const dpr_launcher *launcher, dpr_launch_report *out, size_t report_size);

/** Waits for the device's work, gives back what the launcher holds, and sets it to zeros. NULL, and a launcher of
 * zeros, are allowed. */
DPR_API void dpr_launcher_destroy(dpr_launcher *launcher);

/* ---- Recursion -------------------------------------------------------------------------------------------------- */

/** A recursion that a program defines in CUDA C++ or C++17 by DPR_RECURSION() of dpr_recursion.cuh, for
 * dpr_recursion_run() and dpr_recursion_enqueue(). */
typedef struct dpr_recursion dpr_recursion;

/** A span of time in which a thread of the CPU or a block of the GPU was at work in a run of a recursion. */
typedef struct dpr_recursion_event {
    const char *what;  /**< "divide": a level of tasks was divided; "solve": sub-trees were solved */
    int64_t worker;    /**< the number of the thread or block; for `naive` the number of the place on the device where
                            the block ran, and no two are at one place at a time */
    double begin, end; /**< in seconds. On the CPU since the call, on the GPU since the run's first span */
} dpr_recursion_event;

/** dpr_recursion_options.cutoff: serial() is not called. */
#define DPR_NO_CUTOFF UINT64_MAX

/** Options of a recursion. Start from DPR_RECURSION_OPTIONS_INIT. */
typedef struct dpr_recursion_options {
    size_t size;          /**< sizeof(dpr_recursion_options), set by DPR_RECURSION_OPTIONS_INIT */
    const char *engine;   /**< an engine's name (dpr_engine_name()). NULL: the library chooses. It begins with the
                             one that should be the fastest by what the roots cost, or by what larger problems took;
                             where neither is known, with the first engine that can run the recursion. Later calls with
                             similar roots run each engine that could be faster two to four times, and then stay with
                             the fastest. `graph` and `level` run only by name or with allow_nested, `naive` only by
                             name */
    uint64_t max_depth;   /**< a task that is deeper ends the run with DPR_ERR_LIMIT; roots have depth 0. 0: 4194304. At
                             most 2^30 */
    uint64_t max_tasks;   /**< a run that has more tasks than this ends with DPR_ERR_LIMIT. The engine looks now and
                             then, so some more may be solved. 0: no limit */
    uint64_t arena_tasks; /**< room for this many tasks that are handed from one thread or lane to another: at least
                             as many as roots, and at most 2^30. Engines of the GPU: nodes of device memory; a node
                             has 20 bytes and the larger of a task and a result, rounded up to their alignment. Engine
                             `cpu`: host memory for as many. If the recursion is deeper than a thread's stack has room
                             for (at most 256 levels), or if the children and results of a task take more than about 8
                             KiB, each thread may need more: about 16 divided tasks, with their children, for each level
                             of the recursion. Without room, threads and lanes solve their
                             tasks alone, which is slower, with the same results. 0: on the GPU as many as fit 512 MiB,
                             at most 2^23, but at least twice as many as roots; far fewer if similar runs had at most
                             2048 tasks. For `cpu` 2^22. Full stacks of lanes take up to 256 MiB more */
    int threads;          /**< threads of engine `cpu`, at most 1024. 0: as many as cpu.threads has. While another
                             call of the process uses them, the run has only the calling thread */
    int max_pending;      /**< at most this many launches by kernels are pending at a time. 0: as many as the device's
                               pool of pending launches has places. DPR_NO_LAUNCHES: none; engine `naive` then solves
                               each root in one thread, and for `level` and `graph` the host launches. The same applies
                               while cudaLimitStackSize is lower than when the code for nested launches was loaded */
    uint64_t cutoff; /**< of policies that have serial(): tasks whose cost() is at most this are solved by serial(),
                          as one task. 0: what the policy says. DPR_NO_CUTOFF, 2^64 - 1: none are */
    void (*trace)(void *trace_user, const dpr_recursion_event *event); /**< NULL, or called once for each span of
                               work, after a run that has succeeded, in the calling thread, in no order. At most 65536
                               spans of a run on the GPU are kept. Runs are somewhat slower with it, and the
                               choice of an engine for later calls ignores them */
    void *trace_user;                                                  /**< the first argument of trace() */
    double max_seconds; /**< a run that takes longer than this many seconds ends with DPR_ERR_LIMIT. The time counts
                           from the call; on the GPU, from the run's first kernel, and with a limit the call first waits
                             for the work in the stream. Engines `level`, `graph` and `naive` may also have to wait for
                             runs of other threads: at most for max_seconds, and then the call ends with DPR_ERR_LIMIT
                             without a run. The engine looks at the clock between calls of the policy's functions: on
                             the CPU about every 64 tasks of a thread, but not while it combines results of up to 256
                             levels. So the run may take somewhat longer. If a function does not return on the GPU, the
                             call gives up the kernels after 2 * max_seconds + 1 seconds, and dpr_last_cuda_error() is
                             cudaErrorNotReady: until the stream's work is done (cudaStreamSynchronize()), the GPU may
                             read and write what `data`, `roots` and `out` point to, and other calls may have to wait.
                             0: a day, and the call waits for all kernels */
    int allow_nested;   /**< 1: without an engine's name, the library may also choose `level` and `graph`, whose kernels
                             launch kernels and graphs. The caller promises that until the call returns no kernel of the
                             program's own launches kernels, and that `stream` waits for no other thread's run of a
                             recursion. A call that may choose these engines may load the code for nested launches and
                             measure what launches by kernels cost: once for a context, which takes some 0.1 s the first
                             time in a process, waits for the device's work, and takes a pool of pending launches
                             (dpr_ctx_create_ex()). If that fails, or if such an engine turns out to be unable, the
                             library chooses without it. 0: the library chooses neither, also if it has run. Other
                             values are DPR_ERR_INVALID_OPTION */
    int max_nesting; /**< engines `level` and `naive`: the greatest depth of launches by kernels; the host's kernel is
                          at depth 0. Where it is reached, `naive` solves a task's children, and all below them, in
                          one thread, and for `level` the host launches. 1 to 24; 0: the greatest depth that the
                          device takes, which is 24. For none see max_pending */
} dpr_recursion_options;

#define DPR_RECURSION_OPTIONS_INIT                                                                                     \
    { sizeof(dpr_recursion_options), NULL, 0, 0, 0, 0, 0, 0, NULL, NULL, 0.0, 0, 0 }
DPR_API void dpr_recursion_options_init(dpr_recursion_options *out, size_t size);

/** What a run of a recursion did. Start from DPR_RECURSION_REPORT_INIT. */
typedef struct dpr_recursion_report {
    size_t size;         /**< sizeof(dpr_recursion_report), set by DPR_RECURSION_REPORT_INIT */
    const char *engine;  /**< the engine that ran */
    const char *reason;  /**< why it ran, a clause */
    uint64_t tasks;      /**< tasks divided or solved, roots included */
    uint64_t deepest;    /**< depth of the deepest task; roots have depth 0 */
    uint64_t levels;     /**< levels that were divided one after another, before lanes began and where few lanes had
                              tasks; 0 on the CPU and for `naive` */
    uint64_t widest;     /**< the most tasks that one of these levels was divided into; 0 on the CPU */
    uint64_t rounds;     /**< `persistent`: how often lanes shared what was left. `host`, `level`, `graph`, and
                              policies with teams: phases, each of a level or of lanes. 0 for the others */
    uint64_t launches;   /**< kernels and graphs launched by the host, and kernels by kernels. A graph that launches
                              itself again counts once */
    uint64_t handed_out; /**< tasks written where any thread or lane may take them */
    uint64_t serialised; /**< how often there was no room for that */
    uint64_t steals;     /**< tasks that a thread took from another one; 0 on the GPU */
    double seconds;      /**< from the call to its results */
} dpr_recursion_report;

#define DPR_RECURSION_REPORT_INIT                                                                                      \
    { sizeof(dpr_recursion_report), NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0 }
DPR_API void dpr_recursion_report_init(dpr_recursion_report *out, size_t size);

/** Solves `n` tasks, each with all tasks that it is divided into, and returns when the results are there. Programs call
 * it through the function name_run() that DPR_RECURSION(name, policy) defines, which takes the other arguments.
 *
 * @param recursion  the table that DPR_RECURSION() makes.
 * @param roots      `n` tasks in memory of any kind that `ctx` reaches.
 * @param n          0 to 2^30; 0 does nothing.
 * @param data       the policy's data, in host memory; NULL if it has none. Pointers in it must be valid where the
 *                   engine runs: of device or managed memory for engines on the GPU. Not looked at if `n` is 0.
 * @param out        receives `n` results, in the order of the roots; memory like that of `roots`.
 * @param options    or NULL.
 * @param report     or NULL; unchanged if the call fails.
 * @param stream     the run comes after the work in it. NULL: after the work in the legacy default stream.
 *
 * The results have the same bits on every engine, with every option, if the policy keeps to what dpr_recursion.cuh asks
 * of it. All is the same in a context of the CPU, where engines of the GPU cannot run.
 *
 * Errors: DPR_ERR_NULL_POINTER, DPR_ERR_MISALIGNED, DPR_ERR_SIZE (n), DPR_ERR_INVALID_OPTION (also if the stream is
 * being captured), DPR_ERR_UNKNOWN_ENGINE, DPR_ERR_STRATEGY_UNABLE (the engine cannot run here, or the policy was not
 * compiled for the GPU's architecture), DPR_ERR_DIVIDE, DPR_ERR_LIMIT, DPR_ERR_OUT_OF_MEMORY, DPR_ERR_MEMORY_KIND,
 * DPR_ERR_WRONG_DEVICE, DPR_ERR_CUDA. */
DPR_API dpr_status dpr_recursion_run(dpr_ctx *ctx, const dpr_recursion *recursion, const void *roots, size_t n,
                                     const void *data, void *out, const dpr_recursion_options *options,
                                     dpr_recursion_report *report, dpr_stream stream);

/** How a run that dpr_recursion_enqueue() has enqueued ended. The GPU writes it when the run ends. It has no size,
 * because the policy's kernels write it, which must be compiled for this version of the library anyway. */
typedef struct dpr_recursion_outcome {
    uint64_t tasks;   /**< tasks divided or solved, roots included */
    uint32_t status;  /**< a dpr_status: DPR_OK if the results are written, otherwise DPR_ERR_DIVIDE, DPR_ERR_LIMIT,
                           DPR_ERR_OUT_OF_MEMORY (the arena was too small, and all memory for full stacks was taken)
                           or DPR_ERR_CUDA (a defect of the library: it lost tasks) */
    int32_t wrong;    /**< with DPR_ERR_DIVIDE the number that divide() returned. With DPR_ERR_LIMIT 0 if the limit
                           is max_tasks, 1 if it is max_seconds, and 2 if it is max_depth. Otherwise 0 */
    uint32_t deepest; /**< depth of the deepest task; roots have depth 0 */
    uint32_t rounds;  /**< as in dpr_recursion_report, like the next four */
    uint32_t levels;
    uint32_t widest;
    uint32_t handed_out;
    uint32_t serialised;
    uint32_t launched; /**< kernels launched by kernels: 0 for runs that are enqueued */
    uint32_t spans;    /**< spans of time that were noted: 0 for runs that are enqueued */
} dpr_recursion_outcome;

/** Enqueues the run of dpr_recursion_run() in `stream` and returns at once. Programs call it through the function
 * name_enqueue() that DPR_RECURSION(name, policy) defines, which takes the other arguments.
 *
 * @param ctx        of a GPU.
 * @param recursion  the table that DPR_RECURSION() makes.
 * @param roots      `n` tasks. Kernels read them when the run's turn comes.
 * @param n          0 to 2^30. With 0 the outcome becomes all zero, and roots, data and out are not looked at.
 * @param data       the policy's data, in host memory; NULL if it has none. The call copies them. What their pointers
 *                   point to must be memory that the GPU reaches, and stay valid until the run is done.
 * @param out        receives `n` results, in the order of the roots, if the run succeeds. If it fails, nothing is
 *                   written.
 * @param options    or NULL. `engine`: NULL or "persistent" for any stream; or "host" for a stream that is being
 *                   captured, if the driver is of CUDA 12.4 or newer: the graph then has a loop (a conditional node)
 *                   of launches. CUDA lets such a graph have one executable instance at a time, and no clones, and
 *                   be no child node; and the stream must have all SMs of the device. No other engine can be
 *                   enqueued. `trace` must be NULL.
 *                   `max_seconds` counts from the run's first kernel on; nobody gives up kernels that do not end.
 * @param outcome    receives how the run ended, after the results. dpr_recursion_check() makes a status of it.
 * @param stream     or NULL for the legacy default stream.
 *
 * `roots`, `out` and `outcome` are in memory that the GPU reaches (device, pinned or managed), and must stay valid
 * until the run is done. The outcome overlaps neither of the others. The results are those of dpr_recursion_run(), bit
 * by bit.
 *
 * The call may be captured in a CUDA graph. Each launch of the graph reads the roots, and writes the results and the
 * outcome anew. The captured call has memory of its own, which lives as long as the graph and every copy of it: the
 * arena, up to 512 MiB by default, or more if twice as many nodes as roots take more, and up to 256 MiB for full stacks
 * of lanes. options->arena_tasks bounds the arena: a graph of small runs needs few. All copies of a captured call share
 * that memory, so two of them must not run at once (dpr_reduce_async()). In a stream that is not being captured a run
 * takes as much, from a pool to which it goes back. If a captured call fails, CUDA may have invalidated the capture.
 *
 * The first call for a policy loads its kernel, and CUDA may wait for work of the device where it loads one. Calls that
 * must not wait come after one with n = 1.
 *
 * Errors: those of dpr_recursion_run(), except that DPR_ERR_DIVIDE and DPR_ERR_LIMIT come with the outcome alone;
 * DPR_ERR_STRATEGY_UNABLE if the engine cannot be enqueued, whose sentence says why; DPR_ERR_INVALID_OPTION for
 * options->trace; DPR_ERR_MEMORY_KIND for pageable memory; DPR_ERR_OUT_OF_MEMORY if there is no memory for the arena.
 */
DPR_API dpr_status dpr_recursion_enqueue(dpr_ctx *ctx, const dpr_recursion *recursion, const void *roots, size_t n,
                                         const void *data, void *out, const dpr_recursion_options *options,
                                         dpr_recursion_outcome *outcome, dpr_stream stream);

/** Returns how an enqueued run ended, and keeps a sentence for dpr_last_error() if that is an error. Programs call it
 * through the function name_check() that DPR_RECURSION(name, policy) defines, which takes the outcome alone.
 *
 * @param recursion  the table of the run.
 * @param outcome    in memory that the host reads (pinned, managed, or a copy), after the run is done.
 *
 * An outcome of zeros, or of an earlier run, looks like one of this run: set `status` to UINT32_MAX before, where a run
 * may not have happened.
 *
 * Errors: those that the outcome has. DPR_ERR_NULL_POINTER, DPR_ERR_MISALIGNED, DPR_ERR_MEMORY_KIND (device memory),
 * DPR_ERR_INVALID_OPTION (the recursion is of another version, or the outcome's status is none that a run writes). */
DPR_API dpr_status dpr_recursion_check(const dpr_recursion *recursion, const dpr_recursion_outcome *outcome);

/** The number of engines in this build. */
DPR_API size_t dpr_engine_count(void);

/** The name of engine i, e.g. "persistent", and what it does in one line; NULL for i >= dpr_engine_count(). */
DPR_API const char *dpr_engine_name(size_t i);
DPR_API const char *dpr_engine_text(size_t i);

#ifndef DPR_PLAIN_
/** Declares what DPR_RECURSION(name, policy) defines, for C: with the types of the policy's task, data (or void) and
 * result. */
#define DPR_RECURSION_DECLARE(name, task, data, result)                                                                \
    dpr_status name##_run(dpr_ctx *, const task *roots, size_t n, const data *, result *out,                           \
                          const dpr_recursion_options *, dpr_recursion_report *, dpr_stream);                          \
    dpr_status name##_enqueue(dpr_ctx *, const task *roots, size_t n, const data *, result *out,                       \
                              const dpr_recursion_options *, dpr_recursion_outcome *, dpr_stream);                     \
    dpr_status name##_check(const dpr_recursion_outcome *)
#endif

/* ---- Strategies ------------------------------------------------------------------------------------------------- */

/** The number of strategies in this build. */
DPR_API size_t dpr_strategy_count(void);

/** The name of strategy i, e.g. "flat.ticket", and what it does in one line; NULL for i >= dpr_strategy_count(). */
DPR_API const char *dpr_strategy_name(size_t i);
DPR_API const char *dpr_strategy_text(size_t i);

/** The number of the strategy whose name is `name`, in *out. A name that a strategy had in an earlier version also
 * works. DPR_ERR_NULL_POINTER; DPR_ERR_UNKNOWN_STRATEGY if no strategy of this build has that name. */
DPR_API dpr_status dpr_strategy_parse(const char *name, size_t *out);

/** What a strategy is there for. */
typedef enum dpr_role {
    DPR_ROLE_CANDIDATE = 0,     /**< the planner chooses among the candidates; each can also be asked for by name */
    DPR_ROLE_DEMONSTRATION = 1, /**< it shows a way to reduce, and runs only if its name or a block size is asked for */
    DPR_ROLE_NESTED = 2 /**< its kernels launch kernels; it runs only if its name is asked for, or, if takes_block is 1,
                           a block size */
} dpr_role;

/** A strategy's properties. Start from DPR_STRATEGY_INFO_INIT. */
typedef struct dpr_strategy_info {
    size_t size; /**< sizeof(dpr_strategy_info), set by DPR_STRATEGY_INFO_INIT */
    dpr_role role;
    int on_gpu;      /**< 1: it runs on a GPU; 0: on the CPU */
    int takes_block; /**< 1: dpr_launch_options.block sets its threads a block; 0: it cannot run if that is set */
    int reserved;    /**< 0 */
} dpr_strategy_info;

#define DPR_STRATEGY_INFO_INIT                                                                                         \
    { sizeof(dpr_strategy_info), DPR_ROLE_CANDIDATE, 0, 0, 0 }
DPR_API void dpr_strategy_info_init(dpr_strategy_info *out, size_t size);

/** Writes the properties of strategy i to *out. DPR_ERR_UNKNOWN_STRATEGY for i >= dpr_strategy_count(). */
DPR_API dpr_status dpr_strategy_describe(size_t i, dpr_strategy_info *out);

/* ---- Environment variables -------------------------------------------------------------------------------------- */

/** An environment variable that the library reads. Start from DPR_ENV_INFO_INIT. */
typedef struct dpr_env_info {
    size_t size;            /**< sizeof(dpr_env_info), set by DPR_ENV_INFO_INIT */
    const char *name;       /**< "DPR_NUM_THREADS" */
    const char *text;       /**< what it sets, in one line */
    const char *values;     /**< the values that are understood, in words */
    const char *by_default; /**< what holds if it is not set */
    const char *value;      /**< what it is set to in this process, in the environment's own memory; NULL: it is not
                               set */
    int understood;         /**< 0: the library ignores the value, or words of it; 1: it does not, or there is none */
    int reserved;           /**< 0 */
} dpr_env_info;

#define DPR_ENV_INFO_INIT                                                                                              \
    { sizeof(dpr_env_info), NULL, NULL, NULL, NULL, NULL, 0, 0 }
DPR_API void dpr_env_info_init(dpr_env_info *out, size_t size);

/** The number of environment variables that the library reads. */
DPR_API size_t dpr_env_count(void);

/** Writes the properties of variable i to *out, and what it is set to at this moment, which is not what it was set to
 * when the library read it if the program has changed it since. DPR_ERR_INVALID_OPTION for i >= dpr_env_count(). */
DPR_API dpr_status dpr_env_describe(size_t i, dpr_env_info *out);

/* ---- Machines --------------------------------------------------------------------------------------------------- */

/** The number of GPUs that can be used; 0 without a driver. The first call initialises the driver, and no device. */
DPR_API int dpr_device_count(void);

/** The reason why dpr_device_count() is 0, as a clause, e.g. "this build of dpr has no CUDA"; NULL if it is not 0. The
 * string lives as long as the process. */
DPR_API const char *dpr_device_absent(void);

/** The properties of a NUMA node of this computer. Start from DPR_NODE_INFO_INIT. */
typedef struct dpr_node_info {
    size_t size;           /**< sizeof(dpr_node_info), set by DPR_NODE_INFO_INIT */
    int number;            /**< the operating system's number of the node */
    int cores;             /**< the node's physical cores that this process may use */
    int threads;           /**< the node's hardware threads that this process may use */
    int reserved;          /**< 0 */
    uint64_t memory_bytes; /**< the node's memory; 0 if it is unknown */
    char cpus[128];        /**< the numbers of these hardware threads, e.g. "0-7,16-23"; cut if it is longer */
} dpr_node_info;

#define DPR_NODE_INFO_INIT                                                                                             \
    { sizeof(dpr_node_info), 0, 0, 0, 0, 0, "" }
DPR_API void dpr_node_info_init(dpr_node_info *out, size_t size);

/** Writes the properties of NUMA node i to *out; i counts nodes from 0 in the order of their numbers, and there is at
 * least one. DPR_ERR_INVALID_OPTION if there is no node i. */
DPR_API dpr_status dpr_node_describe(size_t i, dpr_node_info *out);

/** A machine is what the planner knows of a computer: capabilities of its CPU, and of one GPU or none. Any number of
 * threads may use one. */
typedef struct dpr_machine dpr_machine;

/** The machine that the context plans for. It belongs to the context; NULL for NULL. What its nested launches cost is
 * assumed until a strategy dp.* has been asked for by name. */
DPR_API const dpr_machine *dpr_ctx_machine(const dpr_ctx *ctx);

/** Reads the capabilities of this computer. The rates of the CPU are those that the process's wisdom has, if it has
 * any.
 *
 * @param device   CUDA ordinal of the machine's GPU, or DPR_DEVICE_CPU for a machine without one.
 * @param measure  0: no device is initialised, and costs of nested launches are assumed. 1: initialises the device and
 *                 measures these costs; a cost that cannot be measured stays assumed.
 * @param out      receives the machine; the caller gives it back with dpr_machine_destroy().
 *
 * Errors: DPR_ERR_NULL_POINTER, DPR_ERR_INVALID_OPTION (no device number), DPR_ERR_NO_DEVICE, DPR_ERR_OUT_OF_MEMORY,
 * DPR_ERR_CUDA. */
DPR_API dpr_status dpr_machine_read(int device, int measure, dpr_machine **out);

/** Reads a captured machine: the zero-terminated text that dpr_machine_format() wrote, perhaps on another computer.
 *
 * Each line is `key = value`. The keys are those of dpr_capability, cpu_name, and gpu_name for a machine with a GPU. #
 * starts a comment, except in a name. The caller gives the machine back with dpr_machine_destroy().
 *
 * Errors: DPR_ERR_NULL_POINTER, DPR_ERR_OUT_OF_MEMORY, and DPR_ERR_INVALID_OPTION with the key, and the line if there
 * is one, of what is unknown, malformed, out of its range or there twice, and of a number that is missing. */
DPR_API dpr_status dpr_machine_parse(const char *text, dpr_machine **out);

/** Writes the machine as text for dpr_machine_parse(), by the protocol of dpr_plan_explain(). */
DPR_API dpr_status dpr_machine_format(const dpr_machine *machine, char *text, size_t *len);

/** Gives the machine back; NULL is allowed. Not for the machine of a context. */
DPR_API void dpr_machine_destroy(dpr_machine *machine);

/** What a machine is called and where its GPU is. Start from DPR_MACHINE_INFO_INIT. The names live as long as the
 * machine. */
typedef struct dpr_machine_info {
    size_t size;          /**< sizeof(dpr_machine_info), set by DPR_MACHINE_INFO_INIT */
    const char *cpu_name; /**< the CPU's model name */
    const char *gpu_name; /**< NULL: the machine has no GPU */
    int near_node; /**< number of the NUMA node that is nearest to the GPU; -1 if it is unknown or there is no GPU */
    char pci[20];  /**< the GPU's PCI bus id, e.g. "0000:3b:00.0"; "" if it is unknown or there is no GPU */
} dpr_machine_info;

#define DPR_MACHINE_INFO_INIT                                                                                          \
    { sizeof(dpr_machine_info), NULL, NULL, -1, "" }
DPR_API void dpr_machine_info_init(dpr_machine_info *out, size_t size);

/** Writes the machine's names and places to *out. */
DPR_API dpr_status dpr_machine_describe(const dpr_machine *machine, dpr_machine_info *out);

/** One capability of a machine. Start from DPR_CAPABILITY_INIT. */
typedef struct dpr_capability {
    size_t size;      /**< sizeof(dpr_capability), set by DPR_CAPABILITY_INIT */
    const char *key;  /**< e.g. "cpu.cores" or "gpu.l2_bytes"; begins with "cpu." or "gpu." */
    const char *text; /**< what the value is and its unit, e.g. "L2 cache, bytes" */
    int64_t value;    /**< flags are 0 or 1 */
} dpr_capability;

#define DPR_CAPABILITY_INIT                                                                                            \
    { sizeof(dpr_capability), NULL, NULL, 0 }
DPR_API void dpr_capability_init(dpr_capability *out, size_t size);

/** Writes capability i of the machine to *out; those of the CPU come first. DPR_ERR_INVALID_OPTION if there is no
 * capability i; a machine without a GPU has only those of the CPU. */
DPR_API dpr_status dpr_machine_capability(const dpr_machine *machine, size_t i, dpr_capability *out);

/** A kernel's use of a GPU, and its theoretical occupancy by the CUDA toolkit's calculation. Start from
 * DPR_KERNEL_INFO_INIT. */
typedef struct dpr_kernel_info {
    size_t size;       /**< sizeof(dpr_kernel_info), set by DPR_KERNEL_INFO_INIT */
    int threads;       /**< most threads a block */
    int registers;     /**< registers a thread */
    int shared_bytes;  /**< shared memory a block, static and dynamic together, in bytes */
    int blocks_per_sm; /**< blocks that an SM holds at a time */
    double occupancy;  /**< threads of these blocks, divided by the most threads that an SM takes */
    const char *limit; /**< what leaves no room for a further block: "threads", "registers", "shared memory", "blocks";
                          or "does not fit" */
} dpr_kernel_info;

#define DPR_KERNEL_INFO_INIT                                                                                           \
    { sizeof(dpr_kernel_info), 0, 0, 0, 0, 0, NULL }
DPR_API void dpr_kernel_info_init(dpr_kernel_info *out, size_t size);

/** Describes the kernel with which problem->options->strategy solves the problem on the GPU of a context's machine or
 * of one from dpr_machine_read(). Initialises the GPU.
 *
 * Errors: DPR_ERR_NULL_POINTER; DPR_ERR_INVALID_OP, _INVALID_DTYPE, _UNSUPPORTED_PAIR, _SIZE, _EMPTY,
 * _INVALID_OPTION and _UNKNOWN_STRATEGY for the problem, and DPR_ERR_INVALID_OPTION if it names no strategy;
 * DPR_ERR_STRATEGY_UNABLE if the strategy cannot solve the problem or runs on the CPU; DPR_ERR_NO_DEVICE for a captured
 * machine; DPR_ERR_CUDA. */
DPR_API dpr_status dpr_kernel_describe(const dpr_machine *machine, const dpr_problem *problem, dpr_kernel_info *out);

/* ---- Decisions -------------------------------------------------------------------------------------------------- */

/** A decision is the planner's table for a problem on a machine: which strategy is chosen for which number of elements.
 * It does not change, and any number of threads may use it. */
typedef struct dpr_decision dpr_decision;

/** Decides as blocking calls (dpr_reduce_ex() and those with many results) do, for every number of elements at once,
 * and as many segments or results as the problem has, to within a factor of two. Runs nothing, except that the costs of
 * nested launches are measured if a strategy dp.* is asked for by name on a context's machine.
 *
 * @param machine  a context's: the decision is the one that the context's calls make, unless one of them was in a
 * stream whose SMs could not hold the chosen kernel. For any other machine, the number of blocks that a GPU holds
 * follows from what kernels declare. It may be destroyed before the decision.
 * @param problem  its count is checked, and changes the decision only with keys, which is made for as many runs as
 * there can be; calls that wait decide again when they know how many there are. Whether device_count is set matters
 * only with keys. The number there, the value at options->init and the numbers of segments are not read.
 * @param out      receives the decision; the caller gives it back with dpr_decision_destroy().
 *
 * Errors: those that dpr_plan_create() has for the problem; DPR_ERR_MEMORY_KIND if no strategy reaches the memory. */
DPR_API dpr_status dpr_decision_create(const dpr_machine *machine, const dpr_problem *problem, dpr_decision **out);

/** Gives the decision back; NULL is allowed. */
DPR_API void dpr_decision_destroy(dpr_decision *decision);

/** A range of numbers of elements for which one strategy is chosen. Start from DPR_STEP_INIT. */
typedef struct dpr_step {
    size_t size;       /**< sizeof(dpr_step), set by DPR_STEP_INIT */
    size_t from, upto; /**< the range, both ends included. The first step begins at 0; the last one ends at SIZE_MAX */
    size_t strategy;   /**< the strategy's number, for dpr_strategy_name() */
    int threads;       /**< most threads a block; on the CPU the number of threads */
    int max_blocks;    /**< most blocks of the grid; on the CPU 1 */
    int max_depth;     /**< most nested launches below each other; 0: its kernels launch none */
    int launch_measured;   /**< 1: launch_seconds was measured on this machine; 0: it is assumed */
    double launch_seconds; /**< seconds of one level of nested launches; 0 if there are none */
} dpr_step;

#define DPR_STEP_INIT                                                                                                  \
    { sizeof(dpr_step), 0, 0, 0, 0, 0, 0, 0, 0 }
DPR_API void dpr_step_init(dpr_step *out, size_t size);

/** Writes the step that `count` elements belong to to *out. The table is the step of 0 elements, then that of
 * out->upto + 1, and so on until out->upto is SIZE_MAX. */
DPR_API dpr_status dpr_decision_step(const dpr_decision *decision, size_t count, dpr_step *out);

/** What the planner expects of a strategy. Start from DPR_PREDICTION_INIT. */
typedef struct dpr_prediction {
    size_t size;         /**< sizeof(dpr_prediction), set by DPR_PREDICTION_INIT */
    double seconds;      /**< from the call to the result; 0 if the strategy cannot solve the problem */
    const char *refusal; /**< why it cannot, as a clause, e.g. "needs a GPU"; NULL: it can */
    int measured;        /**< 1: from times that were measured on this machine, of numbers of elements around `count`
                              or at most a factor of two away; 0: predicted, or extrapolated from other times */
    int reserved;        /**< 0 */
} dpr_prediction;

#define DPR_PREDICTION_INIT                                                                                            \
    { sizeof(dpr_prediction), 0, NULL, 0, 0 }
DPR_API void dpr_prediction_init(dpr_prediction *out, size_t size);

/** Writes what strategy i would take for `count` elements to *out. DPR_ERR_UNKNOWN_STRATEGY for
 * i >= dpr_strategy_count(). */
DPR_API dpr_status dpr_decision_predict(const dpr_decision *decision, size_t i, size_t count, dpr_prediction *out);

/** Tells whether one pass over keys and elements reduces the runs of `count` keys, if all arrays lie in
 * problem->memory, aligned to their elements: *refusal receives NULL if it does, and otherwise the reason as a clause,
 * e.g. "needs a GPU", in static storage. dpr_decision_step() and dpr_decision_predict() are about strategies
 * that reduce the runs after they are found. DPR_ERR_INVALID_OPTION if the problem has no keys. */
DPR_API dpr_status dpr_decision_one_pass(const dpr_decision *decision, size_t count, const char **refusal);

/** Describes the decision for `count` elements, as dpr_plan_explain() does and by its protocol. */
DPR_API dpr_status dpr_decision_explain(const dpr_decision *decision, size_t count, char *text, size_t *len);

/* ---- Wisdom ----------------------------------------------------------------------------------------------------- */

/** Wisdom is what has been measured: how long strategies take on a machine, for an operation, an element type, a kind
 * of memory, and numbers of elements. The planner multiplies its prediction for a strategy by the ratio of measured to
 * predicted time at the nearest numbers of elements that were measured. A figure for a number of elements that is more
 * than a factor of two beyond these is called extrapolated. For longer arrays it is at least the time that memory takes
 * to deliver them.
 *
 * A file of wisdom belongs to one version of dpr. It has at most 64 MiB and 2^20 times, of at most 64 CPUs and GPUs.
 * These are identified by name, capabilities and driver. The capabilities of a CPU include the cores and threads of the
 * process and its vector instructions. So with another cpuset (taskset), CPU quota, DPR_NUM_THREADS or DPR_CPU_ISA the
 * same CPU counts as another one, and explanations say that there are times which are not used. Times of other machines
 * are kept and not used. If not all fit, the processors that were written the longest time ago are left out.
 *
 * Before the first context is made, the process reads the file that the environment variable DPR_WISDOM names or,
 * without the variable, the site's /etc/dpr/wisdom and then the user's $XDG_STATE_HOME/dpr/wisdom (by default
 * ~/.local/state/dpr/wisdom). Files that do not exist are left out, and so are files that are refused:
 * dpr_wisdom_status() says why. The word none as DPR_WISDOM means no file. `dpr tune` measures, and writes the user's
 * file.
 *
 * A context uses the wisdom that the process had when it was made. */

/** Adds the wisdom of a file to the process's, whole or not at all; newer times replace older ones.
 *
 * @param path  the file; NULL: those that the process reads by itself. The first error ends the call.
 *
 * DPR_ERR_FILE if it cannot be read; DPR_ERR_WISDOM if the file is not wisdom, is incomplete, was edited, or belongs to
 * another version of dpr: the sentence names the file, the line and what is wrong. */
DPR_API dpr_status dpr_wisdom_import(const char *path);

/** Writes the process's wisdom to a file, together with what the file has already. Times that this process added take
 * the place of the file's, and the file's that of those which the process has only read. The file is written next to
 * its place, forced to the disk, and renamed, while a lock (`path`.lock) keeps other writers out: the file is always
 * whole, and no writer loses times, except where not all fit.
 *
 * @param path  the file; NULL: the one that DPR_WISDOM names, or the user's, whose folder is then made.
 *
 * DPR_ERR_FILE if it cannot be written, or another process holds the lock for 10 seconds; DPR_ERR_WISDOM if what is
 * there is refused or not all times fit, in which case it stays. */
DPR_API dpr_status dpr_wisdom_export(const char *path);

/** Forgets the process's wisdom. Contexts that are made later have none: files are not read again until
 * dpr_wisdom_import(), or after dpr_shutdown(). Files stay. */
DPR_API void dpr_wisdom_forget(void);

/** Adds a time that was measured to the process's wisdom.
 *
 * @param machine   a context's, on which it was measured (DPR_ERR_INVALID_OPTION for times on a GPU of another
 * machine).
 * @param problem   as for dpr_decision_create(); its count is the number of elements, at least 1. With
 *                  problem->options, the strategy that was measured is asked for by name. There are neither several
 *                  operations nor keys, and options->launch is NULL.
 * @param in_stream 1: a run in a stream; 0: a blocking call.
 * @param seconds   from 1e-12 to 1000. */
DPR_API dpr_status dpr_wisdom_add(const dpr_machine *machine, const dpr_problem *problem, int in_stream,
                                  double seconds);

/** Finds a time that dpr_wisdom_add() has added for this problem with this strategy and exactly this number of
 * elements, here or in a process that wrote a file; the parameters are those of dpr_wisdom_add(). DPR_ERR_WISDOM if
 * there is none.
 */
DPR_API dpr_status dpr_wisdom_find(const dpr_machine *machine, const dpr_problem *problem, int in_stream,
                                   double *seconds);

/** Writes the path of the file that dpr_wisdom_export(NULL) writes, by the protocol of dpr_plan_explain(). DPR_ERR_FILE
 * if there is none: DPR_WISDOM is "none", or no variable names the user's folder. */
DPR_API dpr_status dpr_wisdom_path(char *text, size_t *len);

/** Describes the process's wisdom: how many times of which processors there are, which files were read, and why files
 * were refused. By the protocol of dpr_plan_explain(). */
DPR_API dpr_status dpr_wisdom_status(char *text, size_t *len);

#undef DPR_ENUM_ENTRY_

#ifdef __cplusplus
}
#define DPR_STATIC_ASSERT_ static_assert
#else
#define DPR_STATIC_ASSERT_ _Static_assert
#endif

#ifndef DPR_PLAIN_
DPR_STATIC_ASSERT_(sizeof(dpr_status) == 4 && sizeof(dpr_dtype) == 4 && sizeof(dpr_op) == 4 && sizeof(dpr_kind) == 4
                       && sizeof(dpr_mode) == 4 && sizeof(dpr_effort) == 4 && sizeof(dpr_nan) == 4
                       && sizeof(dpr_memory) == 4 && sizeof(dpr_role) == 4 && sizeof(dpr_divisor) == 4
                       && sizeof(dpr_index) == 4,
                   "dpr needs enums of 32 bits: compile without -fshort-enums");
#endif
#undef DPR_STATIC_ASSERT_

#endif
