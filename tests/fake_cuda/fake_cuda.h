/* A CUDA runtime in host memory, put under the library by the linker (--wrap), with two healthy devices like an H200.
 *
 * Device memory cannot be touched by the host. Work is queued in its stream and done when the stream is waited for; a
 * kernel's result is computed by cpu.serial. Any call can be made to fail, and any kernel. What a real device would not
 * stand, such as a kernel on freed memory, is noted as a violation. */
#ifndef DPR_TESTS_FAKE_CUDA_H
#define DPR_TESTS_FAKE_CUDA_H

#include <cuda.h>
#include <cuda_runtime_api.h>

enum { FAKE_DEVICES = 2 };

/* Makes the call number `call` from here on (1 is the next one) return `error` without doing anything; 0: none. If it
 * is a wait, the work waited for is lost. Calls that only describe an error are not counted. */
void fake_fail_call(int call, cudaError_t error);

/* Begins to capture a stream, as another thread would in the global mode, right before the call number `call` from here
 * on; 0: never. And the name of that call, or NULL before it. */
void fake_capture_at(int call, cudaStream_t stream);
const char *fake_captured_call(void);

/* Has work done as soon as it is enqueued, in place of when its stream is waited for. */
void fake_set_eager(int on);

/* The next `count` kernels end without having done anything. */
void fake_drop_kernels(int count);

/* The next kernel faults when its turn comes: from then on all calls return `error`, as they do after a fault. */
void fake_fault_kernel(cudaError_t error);

/* What kernels were compiled for, from the next context on: compute capability times 10; 90 at first. */
void fake_set_code(int version);

/* Whether the process runs under MPS. Contexts that exist do not learn of it. */
void fake_set_mps(int runs);

/* Kernels launched so far that may start before the work ahead of them is done. */
int fake_programmatic_kernels(void);

/* Blocks of the largest grid that was launched since the call before. */
unsigned fake_largest_grid(void);

/* Modules loaded so far. */
int fake_module_loads(void);

/* Executable graphs made so far that kernels may launch. */
int fake_graphs_made(void);

/* How many launches, and how deep, the last run was allowed whose kernels launch others. Such a run reports one launch,
 * or none if none is allowed. */
unsigned fake_nested_launches(void);
unsigned fake_nested_depth(void);

/* What nested launches take there: a level, a tail-launched one, more for the first, each tile of dp.nosync, and memory
 * from when the first kernel of a module is asked for on a device. All else takes no time, for events. */
enum {
    FAKE_LEVEL_NS = 20000,
    FAKE_TAIL_NS = 30000,
    FAKE_FIRST_NS = 7000,
    FAKE_FAN_NS = 500,
    FAKE_MODULE_BYTES = 70 << 20
};

/* Stack of a thread; 1024 bytes at first. */
void fake_set_stack(size_t bytes);

/* Memory of each device; 1 GiB at first. */
void fake_set_memory(size_t bytes);

/* Has no event be reached and no work be done when it is asked for; and whoever waits, which could be for ever,
 * violates. */
void fake_set_busy(int on);

/* Has reports of runs say that a launch was refused: others have the pool's places. */
void fake_refuse_launches(int on);

/* Whether there is work in any stream that is not done. */
int fake_is_working(void);

/* Whether the host may touch managed memory while a kernel runs, from the next context on; it may at first. */
void fake_set_concurrent_managed(int on);

/* Calls so far that wait for all work: cudaDeviceSynchronize(), and those that give memory back. */
int fake_device_waits(void);

/* Calls since fake_fail_call(), and the name of the one that failed, or NULL. */
int fake_calls(void);
const char *fake_failed_call(void);

/* How many objects stay because this call, which has failed, was to give one back; 0 for NULL. */
int fake_lost_objects(const char *failed_call);

/* The first violation, or NULL; and forgetting it. */
const char *fake_violation(void);
void fake_forget_violation(void);

/* Allocations of all kinds, memory pools, streams, graphs and user objects that have not been given back. */
int fake_live_objects(void);

/* ---- Contexts ---- */

/* Whether the device's primary context is there. */
int fake_primary_is_made(int device);

/* A further context of a device's, and a green one with so many SMs, which shares the rest with the primary one. */
CUcontext fake_ctx_create(int device);
CUcontext fake_green_create(int device, int sms);

/* Has the driver refuse to say how many SMs a context has, as those without green contexts do. */
void fake_refuse_resources(int on);

/* The context is gone, with its memory and streams; its handle is not used again. */
void fake_ctx_destroy(CUcontext context);

/* Makes the context the calling thread's, and takes back what was last made so. */
void fake_ctx_push(CUcontext context);
CUcontext fake_ctx_pop(void);

/* The error that cudaGetLastError() would give in this thread. */
cudaError_t fake_last_error(void);

#endif
