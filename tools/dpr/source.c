#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- Messages --------------------------------------------------------------------------------------------------- */

static int fail(source *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int fail(source *s, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(s->why, sizeof s->why, format, args);
    va_end(args);
    return -1;
}

static int fail_short(source *s, uint64_t missing) {
    return fail(s, "is truncated: %" PRIu64 " byte%s of its %" PRIu64 " elements %s missing", missing,
                missing == 1 ? "" : "s", s->array.count, missing == 1 ? "is" : "are");
}

/* ---- Pages that vanish ------------------------------------------------------------------------------------------ */

/* Touching a mapped page that the file has no more raises SIGBUS in whichever thread does it, maybe a worker of the
 * library. The handler puts zero pages there, so that the reduction comes to its end, and source_check() discards it.
 */
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
    if (guard.page)
        return;
    struct sigaction action = {0};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
    guard.page = (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- Reading ---------------------------------------------------------------------------------------------------- */

/* Reads up to `size` bytes, fewer only at the end. -1 with s->why on an error. */
static ssize_t read_fully(source *s, unsigned char *to, size_t size) {
    size_t got = s->ahead_size - s->ahead_at;
    if (got > size)
        got = size;
    if (got)
        memcpy(to, s->ahead + s->ahead_at, got);
    s->ahead_at += got;
    while (got < size) {
        ssize_t n = read(s->fd, to + got, size - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail(s, "cannot be read: %s", strerror(errno));
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

/* Reads until at least `size` bytes are in `ahead`, if there are so many. */
static int look_ahead(source *s, size_t size) {
    ssize_t n = 0;
    while (n >= 0 && s->ahead_size < size) {
        n = read(s->fd, s->ahead + s->ahead_size, size - s->ahead_size);
        if (n < 0 && errno == EINTR)
            n = 0;
        else if (n == 0)
            break;
        else if (n > 0)
            s->ahead_size += (size_t)n;
    }
    return n < 0 ? fail(s, "cannot be read: %s", strerror(errno)) : 0;
}

/* ---- Opening ---------------------------------------------------------------------------------------------------- */

/* The file as an array with a header. */
static int open_npy(source *s, const source_request *request) {
    char why[NPY_WHY];
    size_t header;
    if (npy_prefix(s->ahead, s->ahead_size, &header, why) != 0)
        return fail(s, "is a broken .npy file: %s", why);
    if (look_ahead(s, header) != 0)
        return -1;
    if (npy_parse(s->ahead, s->ahead_size, request->raw, &s->array, why) != 0)
        return fail(s, "cannot be used as .npy file: %s", why);
    s->has_header = 1;
    s->ahead_at = s->array.bytes;
    if (request->raw && *request->raw != s->array.dtype)
        return fail(s, "is a .npy file of %s, not of %s as asked for", dpr_dtype_name(s->array.dtype),
                    dpr_dtype_name(*request->raw));
    return 0;
}

/* The file as bare elements; `size` bytes from where it is read, 0 if that is not known. */
static int open_raw(source *s, const source_request *request, uint64_t size) {
    if (!request->raw && s->ahead_size == 0)
        return fail(s, "is empty");
    if (!request->raw)
        return fail(s, "has no .npy header; --dtype says what the elements of a raw file are");
    s->array.dtype = *request->raw;
    s->array.dims = 1;
    s->array.count = UINT64_MAX;
    if (s->regular) {
        size_t element = dpr_dtype_size(s->array.dtype);
        if (size % element)
            return fail(s, "has %" PRIu64 " bytes, which is no multiple of the %zu of an element of %s", size, element,
                        dpr_dtype_name(s->array.dtype));
        s->array.count = s->array.shape[0] = size / element;
    }
    return 0;
}

/* Decides how a regular file is read; `start` is where its first byte of interest is. */
static int plan_regular(source *s, uint64_t start) {
    size_t element = dpr_dtype_size(s->array.dtype);
    uint64_t size = (uint64_t)s->at_start.st_size - start - s->array.bytes, wanted = s->array.count * element;
    if (size < wanted)
        return fail_short(s, wanted - size);
    s->ignored = size - wanted;
    s->data = start + s->array.bytes;
    s->mapped = !s->array.swapped && s->data % dpr_dtype_alignment(s->array.dtype) == 0;
    if (s->mapped && s->array.count) { /* some file systems cannot map */
        void *probe = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, s->fd, 0);
        if (probe == MAP_FAILED)
            s->mapped = 0;
        else
            munmap(probe, 1);
    }
    return 0;
}

static int open_fd(source *s, const char *file) {
    int standard = strcmp(file, "-") == 0;
    s->fd = standard ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (s->fd < 0)
        return fail(s, "cannot be opened: %s", strerror(errno));
    if (fstat(s->fd, &s->at_start) != 0)
        return fail(s, "cannot be read: %s", strerror(errno));
    if (S_ISDIR(s->at_start.st_mode))
        return fail(s, "cannot be read: %s", strerror(EISDIR));
    return 0;
}

int source_open(source *s, const source_request *request) {
    *s = (source){.fd = -1};
    if (open_fd(s, request->file) != 0)
        return -1;
    s->ahead = malloc(NPY_HEADER_BYTES);
    if (!s->ahead)
        return fail(s, "cannot be read: out of memory");
    off_t start = lseek(s->fd, 0, SEEK_CUR);
    /* Files of the kernel claim to be regular and empty. */
    s->regular = S_ISREG(s->at_start.st_mode) && start >= 0 && s->at_start.st_size > start;
    if (look_ahead(s, NPY_PREFIX_BYTES) != 0)
        return -1;
    int npy = npy_is(s->ahead, s->ahead_size);
    uint64_t size = s->regular ? (uint64_t)(s->at_start.st_size - start) : 0;
    if ((npy ? open_npy(s, request) : open_raw(s, request, size)) != 0)
        return -1;
    if (s->regular && plan_regular(s, (uint64_t)start) != 0)
        return -1;
    size_t element = dpr_dtype_size(s->array.dtype);
    s->window = request->window / element + (request->window < element);
    if (s->window > s->array.count)
        s->window = (size_t)s->array.count;
    install_guard();
    return 0;
}

/* ---- Windows ---------------------------------------------------------------------------------------------------- */

static void unmap(source *s) {
    guard.first = NULL;
    guard.end = NULL;
    if (s->map)
        munmap(s->map, s->map_bytes);
    s->map = NULL;
}

static int map_window(source *s, size_t count, const void **in) {
    size_t element = dpr_dtype_size(s->array.dtype), bytes = count * element;
    uint64_t at = s->data + s->given * element;
    size_t lead = (size_t)(at % guard.page);
    s->map_bytes = bytes + lead;
    void *map = mmap(NULL, s->map_bytes, PROT_READ, MAP_SHARED, s->fd, (off_t)(at - lead));
    if (map == MAP_FAILED)
        return fail(s, "cannot be mapped: %s", strerror(errno));
    s->map = map;
    guard.hit = 0;
    guard.end = (char *)map + (s->map_bytes + guard.page - 1) / guard.page * guard.page;
    guard.first = map;
    madvise(map, s->map_bytes, MADV_SEQUENTIAL);
    /* The disk fetches the next window while this one is reduced. */
    posix_fadvise(s->fd, (off_t)(at + bytes), (off_t)bytes, POSIX_FADV_WILLNEED);
    *in = (char *)map + lead;
    return 1;
}

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

/* A window of a pipe has no end to go by, so the buffer is that of a whole window from the start. */
static int read_window(source *s, size_t count, const void **in, size_t *got) {
    size_t element = dpr_dtype_size(s->array.dtype);
    if (!s->buffer && posix_memalign((void **)&s->buffer, 64, s->window * element) != 0) {
        s->buffer = NULL;
        return fail(s, "cannot be read: no memory for a window of %zu bytes", s->window * element);
    }
    ssize_t bytes = read_fully(s, s->buffer, count * element);
    if (bytes < 0)
        return -1;
    *got = (size_t)bytes / element;
    if (s->array.count != UINT64_MAX && *got < count)
        return fail_short(s, (s->array.count - s->given) * element - (size_t)bytes);
    if ((size_t)bytes % element)
        return fail(s, "ends in the middle of an element: %zu bytes of %zu", (size_t)bytes % element, element);
    if (s->array.swapped)
        swap_bytes(s->buffer, *got, s->array.dtype);
    *in = s->buffer;
    return *got > 0;
}

/* A pipe of .npy may go on after the array. */
static int look_for_more(source *s) {
    unsigned char byte;
    if (s->has_header && !s->regular) {
        ssize_t n = read_fully(s, &byte, 1);
        if (n < 0)
            return -1;
        s->ignored = (uint64_t)n;
    }
    return 0;
}

int source_next(source *s, const void **in, size_t *count, int *last) {
    unmap(s);
    uint64_t left = s->array.count == UINT64_MAX ? UINT64_MAX : s->array.count - s->given;
    if (left == 0)
        return look_for_more(s);
    *count = left < s->window ? (size_t)left : s->window;
    int status = s->mapped ? map_window(s, *count, in) : read_window(s, *count, in, count);
    if (status <= 0) {
        if (status == 0)
            s->array.count = s->array.shape[0] = s->given;
        return status;
    }
    s->given += *count;
    if (left == UINT64_MAX && *count < s->window) /* the pipe has ended */
        s->array.count = s->array.shape[0] = s->given;
    *last = s->given == s->array.count;
    return 1;
}

int source_check(source *s) {
    struct stat st;
    if (!s->regular)
        return 0;
    if (fstat(s->fd, &st) != 0)
        return fail(s, "cannot be read: %s", strerror(errno));
    if (st.st_size < s->at_start.st_size)
        return fail(s, "was truncated from %lld to %lld bytes while it was read", (long long)s->at_start.st_size,
                    (long long)st.st_size);
    if (s->mapped && guard.hit)
        return fail(s, "cannot be read: %s", strerror(EIO));
    if (st.st_mtim.tv_sec != s->at_start.st_mtim.tv_sec || st.st_mtim.tv_nsec != s->at_start.st_mtim.tv_nsec)
        return fail(s, "was changed while it was read");
    return 0;
}

void source_close(source *s) {
    unmap(s);
    free(s->buffer);
    free(s->ahead);
    if (s->fd > STDIN_FILENO)
        close(s->fd);
    *s = (source){.fd = -1};
}
