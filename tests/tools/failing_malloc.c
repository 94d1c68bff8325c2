/* Preloaded, makes one allocation of the program or of cJSON fail, not of other libraries: number DPR_FAIL_AT. When
 * that has happened there is a file DPR_FAIL_MARK. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static long calls;

static int is_meant(void *caller) {
    Dl_info from, program;
    if (!dladdr(caller, &from) || !dladdr((void *)getauxval(AT_ENTRY), &program))
        return 0;
    return from.dli_fbase == program.dli_fbase || strstr(from.dli_fname, "cjson");
}

static int fails(void *caller) {
    const char *number = getenv("DPR_FAIL_AT"), *mark = getenv("DPR_FAIL_MARK");
    if (!number || !mark || !is_meant(caller)
        || __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) != strtol(number, NULL, 10))
        return 0;
    (void)close(open(mark, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    errno = ENOMEM;
    return 1;
}

extern void *__libc_malloc(size_t size), *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size), *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t nmemb, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(nmemb, size);
}

void *realloc(void *ptr, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(ptr, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **memptr, size_t alignment, size_t size) {
    void *memory = fails(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
    if (!memory)
        return ENOMEM;
    *memptr = memory;
    return 0;
}
