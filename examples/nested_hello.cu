/* Kernels that launch kernels: every thread says hello; then the first thread of each block launches a block of half as
 * many threads, until one is left or the depth is reached:
 *
 *     level 0   8 threads --> level 1   4 threads --> level 2   2 threads --> level 3   1 thread
 *
 * A parent never waits for its child: there is no way to do that, and here no need. The greetings go to a log in device
 * memory and not to printf(), so that they can be counted, checked and sorted. */
#include <tuple>

#include "example.cuh"

namespace {

constexpr unsigned most_threads = 1024, most_blocks = 512, no_launch = ~0u;

struct greeting {
    unsigned launch, level, block, thread;
};

struct launch {
    unsigned parent;       /* number of the launch whose kernel made it; no_launch: the host */
    unsigned parent_block; /* the block that made it */
    unsigned level, blocks, threads;
    int error; /* what cudaGetLastError() said on the device */
};

/* In device memory; what does not fit is counted all the same. */
struct log_of {
    greeting *greetings;
    launch *launches;
    unsigned *counts; /* of greetings, and of launches */
    unsigned most_greetings, most_launches;
};

__device__ void say_hello(const log_of &log, unsigned self, unsigned level) {
    const unsigned place = atomicAdd(&log.counts[0], 1);
    if (place < log.most_greetings)
        log.greetings[place] = {self, level, blockIdx.x, threadIdx.x};
}

/* The kernel of launch number `self`. */
__global__ void nested_hello(log_of log, unsigned self, unsigned level, unsigned depth) {
    say_hello(log, self, level);
    const unsigned half = blockDim.x / 2;
    if (threadIdx.x != 0 || half == 0 || level == depth)
        return;
    /* A place in the log is leave to launch: there are no more than the host has made room for. */
    const unsigned child = atomicAdd(&log.counts[1], 1);
    if (child >= log.most_launches)
        return;
    nested_hello<<<1, half>>>(log, child, level + 1, depth);
    log.launches[child] = {self, blockIdx.x, level + 1, 1, half, cudaGetLastError()};
}

struct arguments {
    unsigned size = 8, depth = 24, blocks = 2;
    bool by_level = false;
};

[[noreturn]] void usage(FILE *to, const char *program, int code) {
    std::fprintf(to,
                 "usage: %s [--size THREADS] [--blocks BLOCKS] [--depth LEVELS] [--by-level] [--check]\n"
                 "Every thread says hello, and each block launches one of half its size.\n"
                 "  --size     threads of the first blocks: 1 to %u (default: 8)\n"
                 "  --blocks   blocks of the first launch: 1 to %u (default: 2)\n"
                 "  --depth    levels below the first, at most (default: 24)\n"
                 "  --by-level greetings in the order of their levels; else as they came\n"
                 "  --check    several sizes, and no greetings\n",
                 program, most_threads, most_blocks);
    std::exit(code);
}

unsigned number_in(const char *text, unsigned least, unsigned most, const char *what) {
    char *end = nullptr;
    const unsigned long value = text ? std::strtoul(text, &end, 10) : 0;
    if (!text || end == text || *end || *text == '-' || value < least || value > most) {
        std::fprintf(stderr, "%s is '%s'; it should be a number from %u to %u\n", what, text ? text : "", least, most);
        std::exit(EXAMPLE_USAGE);
    }
    return static_cast<unsigned>(value);
}

arguments read_arguments(int argc, char **argv) {
    arguments a;
    for (int i = 1; i < argc; ++i) {
        const char *option = argv[i];
        if (std::strcmp(option, "--check") == 0)
            example_checks = true;
        else if (std::strcmp(option, "--by-level") == 0)
            a.by_level = true;
        else if (std::strcmp(option, "--size") == 0)
            a.size = number_in(argv[++i], 1, most_threads, option);
        else if (std::strcmp(option, "--blocks") == 0)
            a.blocks = number_in(argv[++i], 1, most_blocks, option);
        else if (std::strcmp(option, "--depth") == 0)
            a.depth = number_in(argv[++i], 0, 24, option);
        else if (std::strcmp(option, "--help") == 0)
            usage(stdout, argv[0], EXAMPLE_OK);
        else
            usage(stderr, argv[0], EXAMPLE_USAGE);
    }
    return a;
}

unsigned levels_below(const arguments &a) {
    unsigned levels = 0;
    for (unsigned size = a.size; size > 1 && levels < a.depth; size /= 2)
        ++levels;
    return levels;
}

struct outcome {
    std::vector<greeting> greetings;
    std::vector<launch> launches;
};

/* A launch keeps its place among the device's pending ones until all below it are done, and with too many of them the
 * device can hang: so there are twice as many places as launches. Devices have 2048 at first. */
void make_room(size_t launches) {
    size_t places;
    TRY(cudaDeviceGetLimit(&places, cudaLimitDevRuntimePendingLaunchCount));
    if (places < 2 * launches)
        TRY(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 2 * launches));
}

outcome run(const arguments &a) {
    log_of log = {};
    log.most_launches = 1 + a.blocks * levels_below(a);
    make_room(log.most_launches);
    log.most_greetings = 2 * a.blocks * a.size; /* more than size + size/2 + size/4... */
    TRY(cudaMalloc(&log.greetings, log.most_greetings * sizeof(greeting)));
    TRY(cudaMalloc(&log.launches, log.most_launches * sizeof(launch)));
    TRY(cudaMalloc(&log.counts, 2 * sizeof(unsigned)));
    const launch first = {no_launch, 0, 0, a.blocks, a.size, 0};
    const unsigned none_and_one[] = {0, 1};
    TRY(cudaMemcpy(log.launches, &first, sizeof first, cudaMemcpyHostToDevice));
    TRY(cudaMemcpy(log.counts, none_and_one, sizeof none_and_one, cudaMemcpyHostToDevice));
    nested_hello<<<a.blocks, a.size>>>(log, 0, 0, a.depth);
    TRY(cudaGetLastError());
    TRY(cudaDeviceSynchronize()); /* a grid is done when all below it are */
    unsigned counts[2];
    TRY(cudaMemcpy(counts, log.counts, sizeof counts, cudaMemcpyDeviceToHost));
    outcome got;
    got.greetings.resize(std::min(counts[0], log.most_greetings));
    got.launches.resize(std::min(counts[1], log.most_launches));
    expect(counts[0] <= log.most_greetings && counts[1] <= log.most_launches, "the log has room for everything");
    TRY(cudaMemcpy(got.greetings.data(), log.greetings, got.greetings.size() * sizeof(greeting),
                   cudaMemcpyDeviceToHost));
    TRY(cudaMemcpy(got.launches.data(), log.launches, got.launches.size() * sizeof(launch), cudaMemcpyDeviceToHost));
    TRY(cudaFree(log.greetings));
    TRY(cudaFree(log.launches));
    TRY(cudaFree(log.counts));
    return got;
}

/* Each block of a launch has one child, of half its threads, and every thread of every launch has said hello once. */
void check(const arguments &a, const outcome &got) {
    const unsigned levels = levels_below(a);
    expect(got.launches.size() == 1 + a.blocks * levels, "as many launches as blocks have halves");
    std::vector<unsigned> children(got.launches.size(), 0);
    for (size_t i = 1; i < got.launches.size(); ++i) {
        const launch &l = got.launches[i];
        if (!expect(l.error == 0 && l.parent < got.launches.size(), "the device's launch has worked"))
            return;
        const launch &parent = got.launches[l.parent];
        ++children[l.parent];
        expect(l.level == parent.level + 1 && l.threads == parent.threads / 2,
               "a child has half of its parent's threads");
    }
    std::vector<std::vector<unsigned>> said(got.launches.size());
    for (size_t i = 0; i < got.launches.size(); ++i) {
        const launch &l = got.launches[i];
        expect(children[i] == (l.level < levels ? l.blocks : 0), "each block has its child");
        said[i].assign(l.blocks * l.threads, 0);
    }
    for (const greeting &g : got.greetings) {
        const launch &l = got.launches[g.launch];
        if (expect(g.level == l.level && g.block < l.blocks && g.thread < l.threads, "a greeting is of its launch"))
            ++said[g.launch][g.block * l.threads + g.thread];
    }
    for (const std::vector<unsigned> &of_launch : said)
        expect(std::all_of(of_launch.begin(), of_launch.end(), [](unsigned n) { return n == 1; }),
               "every thread has said hello once");
}

void print_greetings(const arguments &a, outcome &got) {
    if (a.by_level)
        std::stable_sort(got.greetings.begin(), got.greetings.end(), [](const greeting &x, const greeting &y) {
            return std::make_tuple(x.level, x.launch, x.block, x.thread)
                   < std::make_tuple(y.level, y.launch, y.block, y.thread);
        });
    for (const greeting &g : got.greetings)
        std::printf("level %u, launch %u: hello from thread %u of block %u\n", g.level, g.launch, g.thread, g.block);
}

/* What was launched below launch number `of`, deeper ones further to the right. */
void draw(const outcome &got, unsigned of) {
    const launch &l = got.launches[of];
    std::printf("%*slaunch %u: %u block%s of %u thread%s", 4 * static_cast<int>(l.level), "", of, l.blocks,
                l.blocks == 1 ? "" : "s", l.threads, l.threads == 1 ? "" : "s");
    if (l.parent != no_launch)
        std::printf(", by block %u of launch %u", l.parent_block, l.parent);
    std::printf("\n");
    for (unsigned i = 1; i < got.launches.size(); ++i)
        if (got.launches[i].parent == of)
            draw(got, i);
}

} // namespace

int main(int argc, char **argv) {
    const arguments asked = read_arguments(argc, argv);
    const cudaDeviceProp device = example_device(7, 0);
    int mps = 0;
    TRY(cudaDeviceGetAttribute(&mps, cudaDevAttrMpsEnabled, 0));
    if (mps) {
        std::puts("skipped: kernels cannot launch kernels under MPS");
        return EXAMPLE_SKIPPED;
    }
    if (example_checks) {
        for (const arguments &a : {arguments{8, 24, 2}, arguments{1, 24, 3}, arguments{1000, 24, 5},
                                   arguments{1024, 3, 512}, arguments{7, 0, 1}})
            check(a, run(a));
        return example_end();
    }
    outcome got = run(asked);
    check(asked, got);
    std::printf("%s\n", device.name);
    print_greetings(asked, got);
    std::printf("\n");
    draw(got, 0);
    return example_end();
}
