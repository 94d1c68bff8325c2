#define _POSIX_C_SOURCE 200809L /* clock_gettime() */
#include "mailbox.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "elapsed.h"

/* If more callers than MAILBOXES run at once, they wait for one another. A mailbox has whole cache lines of 64 bytes.
 */
enum { MAILBOXES = 64, LINE_WORDS = 32 };
_Static_assert((int)DPR_MAIL_WORDS <= (int)LINE_WORDS, "mailboxes do not overlap");

/* Polls between two readings of the clock: a few microseconds, because a pause instruction takes some 10 to 50 ns. */
enum { POLLS = 64 };

/* How long to poll. For a run that takes longer, the extra time of a wait through the driver is a small part. */
static const long patience_ns = 100000;

struct dpr_mailbox {
    _Atomic(uint64_t) *words; /* DPR_MAIL_WORDS of pinned memory */
    uint32_t tag;             /* of the last run; 0 before the first */
    size_t awaited;           /* while in `lost`: bytes of the result that may still come */
};

struct dpr_mail {
    pthread_mutex_t lock;
    pthread_cond_t returned;
    void *memory;
    int idle, lost_count; /* number of entries of `stack` and of `lost` */
    dpr_mailbox *stack[MAILBOXES], *lost[MAILBOXES];
    dpr_mailbox box[MAILBOXES];
};

cudaError_t dpr_mail_create(dpr_mail **out) {
    dpr_mail *mail = calloc(1, sizeof *mail);
    if (!mail)
        return cudaErrorMemoryAllocation;
    const size_t bytes = sizeof(uint64_t) * MAILBOXES * LINE_WORDS;
    const cudaError_t error = cudaHostAlloc(&mail->memory, bytes, cudaHostAllocMapped | cudaHostAllocPortable);
    if (error != cudaSuccess) {
        free(mail);
        return error;
    }
    memset(mail->memory, 0, bytes);
    pthread_mutex_init(&mail->lock, NULL);
    pthread_cond_init(&mail->returned, NULL);
    for (; mail->idle < MAILBOXES; mail->idle++) {
        dpr_mailbox *box = &mail->box[mail->idle];
        box->words = (_Atomic(uint64_t) *)mail->memory + (size_t)mail->idle * LINE_WORDS;
        mail->stack[mail->idle] = box;
    }
    *out = mail;
    return cudaSuccess;
}

void dpr_mail_destroy(dpr_mail *mail, int there) {
    if (!mail)
        return;
    if (there) {
        if (cudaFreeHost(mail->memory) != cudaSuccess)
            (void)cudaGetLastError();
        pthread_cond_destroy(&mail->returned); /* in a forked child it would wait for threads of the parent */
        pthread_mutex_destroy(&mail->lock);
    }
    free(mail);
}

int dpr_mailbox_arrived(const dpr_mailbox *box, size_t bytes) {
    for (size_t i = 0; i * sizeof(uint32_t) < bytes; i++)
        if (atomic_load_explicit(&box->words[i], memory_order_acquire) >> 32 != box->tag)
            return 0;
    return 1;
}

/* Moves lost mailboxes whose results have arrived since to the idle ones. */
static void find_lost(dpr_mail *mail) {
    int still = 0;
    for (int i = 0; i < mail->lost_count; i++) {
        dpr_mailbox *box = mail->lost[i];
        if (dpr_mailbox_arrived(box, box->awaited))
            mail->stack[mail->idle++] = box;
        else
            mail->lost[still++] = box;
    }
    mail->lost_count = still;
}

static dpr_mailbox *take(dpr_mail *mail, int waits) {
    pthread_mutex_lock(&mail->lock);
    if (mail->idle == 0)
        find_lost(mail);
    while (waits && mail->idle == 0 && mail->lost_count < MAILBOXES) {
        pthread_cond_wait(&mail->returned, &mail->lock);
        if (mail->idle == 0)
            find_lost(mail);
    }
    dpr_mailbox *box = mail->idle > 0 ? mail->stack[--mail->idle] : NULL;
    pthread_mutex_unlock(&mail->lock);
    return box;
}

/* Gives a mailbox that was taken its next tag. */
static dpr_mailbox *address_to(dpr_mailbox *box, void **address, uint32_t *tag) {
    if (!box)
        return NULL;
    if (++box->tag == 0) { /* words that short results did not write may have any earlier tag */
        for (int i = 0; i < DPR_MAIL_WORDS; i++)
            atomic_store_explicit(&box->words[i], 0, memory_order_relaxed);
        box->tag = 1;
    }
    *address = box->words;
    *tag = box->tag;
    return box;
}

dpr_mailbox *dpr_mailbox_take(dpr_mail *mail, void **address, uint32_t *tag) {
    return address_to(take(mail, 1), address, tag);
}

dpr_mailbox *dpr_mailbox_try(dpr_mail *mail, void **address, uint32_t *tag) {
    return address_to(take(mail, 0), address, tag);
}

static void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

int dpr_mailbox_wait(const dpr_mailbox *box, size_t bytes) {
    const struct timespec start = dpr_now();
    do {
        for (int i = 0; i < POLLS; i++) {
            if (dpr_mailbox_arrived(box, bytes))
                return 1;
            relax();
        }
    } while (dpr_ns_since(start) < patience_ns);
    return dpr_mailbox_arrived(box, bytes);
}

void dpr_mailbox_read(const dpr_mailbox *box, void *out, size_t bytes) {
    unsigned char *to = out;
    for (size_t i = 0; bytes > 0; i++) {
        const uint32_t part = (uint32_t)atomic_load_explicit(&box->words[i], memory_order_relaxed);
        const size_t size = bytes < sizeof part ? bytes : sizeof part;
        memcpy(to, &part, size);
        to += size;
        bytes -= size;
    }
}

void dpr_mailbox_return(dpr_mail *mail, dpr_mailbox *box, size_t bytes) {
    const int written = dpr_mailbox_arrived(box, bytes);
    pthread_mutex_lock(&mail->lock);
    if (written) {
        mail->stack[mail->idle++] = box;
        pthread_cond_signal(&mail->returned);
    } else {
        box->awaited = bytes;
        mail->lost[mail->lost_count++] = box;
        pthread_cond_broadcast(&mail->returned); /* if all are lost, nobody must wait any longer */
    }
    pthread_mutex_unlock(&mail->lock);
}
