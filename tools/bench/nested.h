/* What launches from kernels cost on a GPU, compared with launches by the host, in graphs and of graphs.
 *
 * A process of its own measures it, because the size of the launch pool is settled when a process first launches from a
 * kernel, and because a device that hangs may take the process with it. */
#ifndef DPR_BENCH_NESTED_H
#define DPR_BENCH_NESTED_H

/* `dpr bench NESTED_PART DEVICE PENDING SECONDS ACCURACY` sets the size of the launch pool to PENDING and measures a
 * tail launch; if PENDING is 0, the pool keeps its size, and all kinds of launches are measured. It writes one line, a
 * JSON object:
 *
 *     pending          places of the launch pool
 *     loaded_bytes     device memory that loading kernels that launch kernels took
 *     reserved_bytes   and what was taken when the first of them had run, as cudaMemGetInfo() shows it, which counts
 *                      other programs, too
 *     device_bytes     both
 *     length, fan      levels of the chains of kernels, at most; blocks of the fan-outs, and launches from each
 *     launches         a row for each kind: the first four members above, `launch`, its time, or `why` there is none
 *
 * After a measurement the process ends at once: with code 0 unless the device hangs. */
#define NESTED_PART "--nested-part"
int nested_part_main(int argc, char **argv);

#endif
