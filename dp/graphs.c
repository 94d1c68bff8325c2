#include "graphs.h"

#include <pthread.h>
#include <stdlib.h>

#include "cuda/driver.h"

/* Kept on a device, the last ones given back. */
enum { MOST_KEPT = 16 };

struct dpr_graphs {
    pthread_mutex_t lock;
    dpr_kept_graph *idle;      /* the latest first */
    dpr_kept_graph *abandoned; /* those that may be in flight */
};

dpr_graphs *dpr_graphs_create(void) {
    dpr_graphs *graphs = calloc(1, sizeof *graphs);
    if (graphs)
        pthread_mutex_init(&graphs->lock, NULL);
    return graphs;
}

/* Returns the first error. Waits for what is in flight. */
static cudaError_t destroy(dpr_kept_graph *g, int there) {
    cudaError_t error = cudaSuccess;
    if (there && g->executable)
        error = cudaGraphExecDestroy(g->executable);
    if (there && g->graph) {
        const cudaError_t also = cudaGraphDestroy(g->graph);
        error = error == cudaSuccess ? also : error;
    }
    free(g);
    return error;
}

static void destroy_all(dpr_kept_graph *first, int there) {
    for (dpr_kept_graph *g = first, *next; g; g = next) {
        next = g->next;
        if (destroy(g, there) != cudaSuccess)
            (void)cudaGetLastError();
    }
}

void dpr_graphs_destroy(dpr_graphs *graphs, int there) {
    if (!graphs)
        return;
    destroy_all(graphs->idle, there);
    destroy_all(graphs->abandoned, there);
    pthread_mutex_destroy(&graphs->lock);
    free(graphs);
}

/* ---- Making ---- */

static cudaError_t fill(dpr_kept_graph *g, const CUDA_KERNEL_NODE_PARAMS *kernels) {
    cudaError_t error = cudaGraphCreate(&g->graph, 0);
    for (int i = 0; i < DPR_KEPT_KERNELS && error == cudaSuccess; i++) {
        g->functions[i] = kernels[i].func;
        error = (cudaError_t)dpr_driver()->graph_add_kernel(&g->nodes[i], g->graph, i > 0 ? &g->nodes[i - 1] : NULL,
                                                            i > 0, &kernels[i]);
    }
    if (error == cudaSuccess)
        error = cudaGraphInstantiate(&g->executable, g->graph, cudaGraphInstantiateFlagDeviceLaunch);
    return error;
}

static cudaError_t make(const CUDA_KERNEL_NODE_PARAMS *kernels, dpr_kept_graph **out) {
    dpr_kept_graph *g = calloc(1, sizeof *g);
    if (!g)
        return cudaErrorMemoryAllocation;
    const cudaError_t error = fill(g, kernels);
    if (error == cudaSuccess)
        *out = g;
    else
        (void)destroy(g, 1);
    return error;
}

static cudaError_t set(dpr_kept_graph *g, const CUDA_KERNEL_NODE_PARAMS *kernels) {
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < DPR_KEPT_KERNELS && error == cudaSuccess; i++)
        error = (cudaError_t)dpr_driver()->graph_set_kernel(g->executable, g->nodes[i], &kernels[i]);
    return error;
}

/* ---- Keeping ---- */

/* Removes a graph of these kernels from the list; NULL if there is none. */
static dpr_kept_graph *take_idle(dpr_graphs *graphs, const CUDA_KERNEL_NODE_PARAMS *kernels) {
    pthread_mutex_lock(&graphs->lock);
    dpr_kept_graph **at = &graphs->idle;
    while (*at && ((*at)->functions[0] != kernels[0].func || (*at)->functions[1] != kernels[1].func))
        at = &(*at)->next;
    dpr_kept_graph *g = *at;
    if (g)
        *at = g->next;
    pthread_mutex_unlock(&graphs->lock);
    return g;
}

cudaError_t dpr_graphs_take(dpr_graphs *graphs, const CUDA_KERNEL_NODE_PARAMS *kernels, dpr_kept_graph **out) {
    dpr_kept_graph *g = take_idle(graphs, kernels);
    if (!g)
        return make(kernels, out);
    const cudaError_t error = set(g, kernels);
    if (error == cudaSuccess)
        *out = g;
    else
        (void)destroy(g, 1);
    return error;
}

/* Puts the graph into the list, and removes those for which there is no place. */
static dpr_kept_graph *keep(dpr_graphs *graphs, dpr_kept_graph *g) {
    pthread_mutex_lock(&graphs->lock);
    g->next = graphs->idle;
    graphs->idle = g;
    for (int kept = 1; kept < MOST_KEPT && g; kept++)
        g = g->next;
    dpr_kept_graph *surplus = g ? g->next : NULL;
    if (g)
        g->next = NULL;
    pthread_mutex_unlock(&graphs->lock);
    return surplus;
}

cudaError_t dpr_graphs_give_back(dpr_graphs *graphs, dpr_kept_graph *g, int is_done) {
    if (!is_done)
        return destroy(g, 1);
    destroy_all(keep(graphs, g), 1);
    return cudaSuccess;
}

void dpr_graphs_abandon(dpr_graphs *graphs, dpr_kept_graph *g) {
    pthread_mutex_lock(&graphs->lock);
    g->next = graphs->abandoned;
    graphs->abandoned = g;
    pthread_mutex_unlock(&graphs->lock);
}
