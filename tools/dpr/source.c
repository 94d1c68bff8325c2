#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "available.h"
#include "figures.h"
#include "progress.h"
#include "value.h"

static int fail_short(source *s, uint64_t missing) {
    return npy_fail(s->why, "is truncated: %" PRIu64 " byte%s of its %" PRIu64 " elements %s missing", missing,
                    missing == 1 ? "" : "s", s->array.count, missing == 1 ? "is" : "are");
}

static int fail_reading(source *s) {
    return npy_fail(s->why, "cannot be read: %s", strerror(errno));
}

/* ---- Reading ---------------------------------------------------------------------------------------------------- */

/* Reads up to `size` bytes, fewer only at the end. -1 with s->why on an error. */
static ssize_t read_fully(source *s, void *to, size_t size) {
    size_t got = s->held - s->used < size ? s->held - s->used : size;
    memcpy(to, s->begin + s->used, got);
    s->used += got;
    while (got < size && !s->ended) {
        const ssize_t n = read(s->fd, (unsigned char *)to + got, size - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_reading(s);
        s->ended = n == 0;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

/* Whether a regular file is still as it was: 0, or -1 with s->why. */
static int check_unchanged(source *s) {
    struct stat st;
    if (!s->regular)
        return 0;
    if (fstat(s->fd, &st) != 0)
        return fail_reading(s);
    if (st.st_size < s->at_start.st_size)
        return npy_fail(s->why, "was truncated from %lld to %lld bytes while it was read",
                        (long long)s->at_start.st_size, (long long)st.st_size);
    if (st.st_mtim.tv_sec != s->at_start.st_mtim.tv_sec || st.st_mtim.tv_nsec != s->at_start.st_mtim.tv_nsec)
        return npy_fail(s->why, "was changed while it was read");
    return 0;
}

/* ---- Mapping ---------------------------------------------------------------------------------------------------- */

/* Touching a mapped page that the file has no more raises SIGBUS in whichever thread does it, maybe a worker of the
 * library. The handler puts zero pages there, so that the reduction comes to its end, and unmap() reports it. */
static struct {
    _Atomic(char *) first, end; /* lock-free, so that the handler may use them */
    atomic_int hit;
    size_t page;
} guard;

static void on_bus_error(int number, siginfo_t *info, void *context) {
    (void)context;
    char *at = info->si_addr;
    if (at >= guard.first && at < guard.end) {
        int saved = errno;
        char *page = at - (uintptr_t)at % guard.page;
        void *zeros = mmap(page, (size_t)(guard.end - page), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        errno = saved;
        if (zeros != MAP_FAILED) {
            guard.hit = 1;
            return;
        }
    }
    signal(number, SIG_DFL); /* the fault repeats and ends the process */
}

static void install_guard(void) {
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    guard.page = (size_t)sysconf(_SC_PAGESIZE);
    sigaction(SIGBUS, &action, NULL);
}

/* Maps `bytes` from place `at` of the file on. 0, or -1, because some file systems cannot map. */
static int map_window(source *s, uint64_t at, size_t bytes, const void **in) {
    const size_t lead = (size_t)(at % guard.page), size = bytes + lead;
    char *map = mmap(NULL, size, PROT_READ, MAP_SHARED, s->fd, (off_t)(at - lead));
    if (map == MAP_FAILED)
        return -1;
    s->map = map;
    s->map_bytes = size;
    guard.hit = 0;
    guard.end = map + (size + guard.page - 1) / guard.page * guard.page;
    guard.first = map;
    madvise(map, size, MADV_SEQUENTIAL);
    /* The disk fetches the next window while this one is reduced. */
    posix_fadvise(s->fd, (off_t)(at + bytes), (off_t)bytes, POSIX_FADV_WILLNEED);
    *in = map + lead;
    return 0;
}

/* Ends the use of a mapped window. 0, or -1 with s->why if it was not all of the file as it was opened. */
static int unmap(source *s) {
    if (!s->map)
        return 0;
    guard.first = guard.end = NULL;
    munmap(s->map, s->map_bytes);
    s->map = NULL;
    if (check_unchanged(s) != 0)
        return -1;
    errno = EIO;
    return guard.hit ? fail_reading(s) : 0;
}

/* ---- Opening ---------------------------------------------------------------------------------------------------- */

/* The file as an array with a header. */
static int open_npy(source *s, const dpr_dtype *raw) {
    static char text[NPY_TEXT_BYTES + 1];
    size_t length;
    if (npy_prefix(s->begin, s->held, &s->used, &length, s->why) != 0)
        return -1;
    text[length] = 0;
    const ssize_t got = read_fully(s, text, length);
    int bad = got < 0;
    if (!bad && (size_t)got < length)
        bad = npy_fail(s->why, "the header is cut off: it claims %zu bytes and has %zd", length, got);
    bad = bad || npy_parse(text, length, raw, &s->array, s->why) != 0;
    if (!bad && raw && *raw != s->array.dtype)
        return npy_fail(s->why, "is a .npy file of %s, not of %s as asked for", dpr_dtype_name(s->array.dtype),
                        dpr_dtype_name(*raw));
    return bad ? -1 : 0;
}

/* The file as bare elements. */
static int open_raw(source *s, const dpr_dtype *raw) {
    if (!raw && s->held == 0)
        return npy_fail(s->why, "is empty");
    if (!raw)
        return npy_fail(s->why, "has no .npy header; --dtype says what the elements of a raw file are");
    s->array = (npy_header){.dtype = *raw, .dims = 1, .count = UINT64_MAX};
    return 0;
}

/* What the size of a regular file says about the array; `size` bytes are there from its first element on. */
static int check_size(source *s, uint64_t size) {
    const size_t element = dpr_dtype_size(s->array.dtype);
    if (s->array.count == UINT64_MAX && size % element)
        return npy_fail(s->why, "has %" PRIu64 " bytes, which is no multiple of the %zu of an element of %s", size,
                        element, dpr_dtype_name(s->array.dtype));
    if (s->array.count == UINT64_MAX)
        s->array.count = s->array.shape[0] = size / element;
    const uint64_t wanted = s->array.count * element;
    s->ignored = size > wanted;
    s->mapped = !s->array.swapped && s->data % dpr_dtype_alignment(s->array.dtype) == 0;
    return size < wanted ? fail_short(s, wanted - size) : 0;
}

static int open_fd(source *s, const char *file) {
    s->fd = strcmp(file, "-") == 0 ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (s->fd < 0)
        return npy_fail(s->why, "cannot be opened: %s", strerror(errno));
    if (fstat(s->fd, &s->at_start) != 0)
        return fail_reading(s);
    return 0;
}

int source_open(source *s, const char *file, const dpr_dtype *raw, size_t window) {
    *s = (source){.fd = -1};
    if (open_fd(s, file) != 0)
        return -1;
    const off_t start = lseek(s->fd, 0, SEEK_CUR);
    /* Files of the kernel claim to be regular and empty. */
    s->regular = S_ISREG(s->at_start.st_mode) && start >= 0 && s->at_start.st_size > start;
    const ssize_t got = read_fully(s, s->begin, sizeof s->begin);
    if (got < 0)
        return -1;
    s->held = (size_t)got;
    if ((npy_is(s->begin, s->held) ? open_npy(s, raw) : open_raw(s, raw)) != 0)
        return -1;
    s->data = (uint64_t)lseek(s->fd, 0, SEEK_CUR) - (s->held - s->used);
    if (s->regular && check_size(s, (uint64_t)s->at_start.st_size - s->data) != 0)
        return -1;
    const size_t element = dpr_dtype_size(s->array.dtype);
    install_guard();
    s->window = window / element + (window < element);
    if (s->window > s->array.count)
        s->window = (size_t)s->array.count;
    return 0;
}

int source_generate(source *s, dpr_dtype dtype, uint64_t bytes) {
    const uint64_t available = memory_available(), count = bytes / dpr_dtype_size(dtype);
    char wanted[32], there[32];
    *s = (source){.fd = -1, .generated = 1, .ended = 1};
    if (bytes > available)
        return npy_fail(s->why, "there is no memory for %s of generated data: %s are available",
                        figure_bytes(bytes, wanted), figure_bytes(available, there));
    s->array = (npy_header){.dtype = dtype, .dims = 1, .shape = {count}, .count = count};
    s->window = (size_t)count;
    return 0;
}

/* ---- Windows ---------------------------------------------------------------------------------------------------- */

/* To the machine's byte order; each part of a complex number by itself. */
static void swap_bytes(unsigned char *at, size_t count, dpr_dtype dtype) {
    size_t width = dpr_dtype_alignment(dtype);
    for (unsigned char *end = at + count * dpr_dtype_size(dtype); at < end; at += width)
        for (size_t i = 0; i < width / 2; i++) {
            unsigned char low = at[i];
            at[i] = at[width - 1 - i];
            at[width - 1 - i] = low;
        }
}

/* Fills the buffer with `count` elements, and shows how far that is. Returns their bytes. */
static ssize_t generate_window(source *s, size_t count) {
    enum { PIECE = 1 << 20 };
    const size_t element = dpr_dtype_size(s->array.dtype);
    for (size_t at = 0; at < count; at += PIECE) {
        const size_t n = count - at < PIECE ? count - at : PIECE;
        generate(s->array.dtype, at, s->buffer + at * element, n);
        progress_show((at + n) * element);
    }
    return (ssize_t)(count * element);
}

/* Fills the buffer with up to `count` elements, fewer only at the end of a pipe of bare elements. */
static int read_window(source *s, size_t count, size_t *got) {
    const size_t element = dpr_dtype_size(s->array.dtype), wanted = count * element;
    if (!s->buffer && posix_memalign((void **)&s->buffer, 64, s->window * element) != 0) {
        s->buffer = NULL;
        return npy_fail(s->why, "cannot be read: no memory for a window of %zu bytes", s->window * element);
    }
    const ssize_t bytes = s->generated ? generate_window(s, count) : read_fully(s, s->buffer, wanted);
    if (bytes < 0 || check_unchanged(s) != 0)
        return -1;
    if ((size_t)bytes < wanted && s->array.count != UINT64_MAX)
        return fail_short(s, (s->array.count - s->given) * element - (size_t)bytes);
    if ((size_t)bytes % element)
        return npy_fail(s->why, "ends in the middle of an element: %zu bytes of %zu", (size_t)bytes % element, element);
    *got = (size_t)bytes / element;
    if (s->array.swapped)
        swap_bytes(s->buffer, *got, s->array.dtype);
    return 0;
}

/* A pipe may go on after the array. */
static int look_for_more(source *s) {
    unsigned char byte;
    const ssize_t n = s->regular ? s->ignored : read_fully(s, &byte, 1);
    s->ignored = n > 0;
    return n < 0 ? -1 : 0;
}

int source_next(source *s, const void **in, size_t *count) {
    const size_t element = dpr_dtype_size(s->array.dtype);
    const uint64_t left = s->array.count - s->given, at = s->data + s->given * element;
    const size_t wanted = left < s->window ? (size_t)left : s->window;
    if (unmap(s) != 0)
        return -1;
    if (left == 0)
        return look_for_more(s);
    *count = wanted;
    if (s->mapped && map_window(s, at, wanted * element, in) != 0) {
        s->mapped = 0;
        s->used = s->held;
        s->ended = 0;
        if (lseek(s->fd, (off_t)at, SEEK_SET) < 0)
            return fail_reading(s);
    }
    if (!s->mapped && read_window(s, wanted, count) != 0)
        return -1;
    if (!s->mapped)
        *in = s->buffer;
    s->given += *count;
    if (*count < wanted)
        s->array.count = s->array.shape[0] = s->given;
    return *count > 0;
}

void source_close(source *s) {
    (void)unmap(s);
    free(s->buffer);
    if (s->fd > STDIN_FILENO)
        close(s->fd);
    *s = (source){.fd = -1};
}
