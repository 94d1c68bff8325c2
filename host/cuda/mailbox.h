/* Mailboxes of one device: where the host waits for a result without asking the driver (DPR_MAIL_WORDS). Only in builds
 * with CUDA. Any number of threads may use them at once. */
#ifndef DPR_HOST_CUDA_MAILBOX_H
#define DPR_HOST_CUDA_MAILBOX_H

#include <cuda_runtime_api.h>

#include "strategy.h"

typedef struct dpr_mail dpr_mail;       /* all of them */
typedef struct dpr_mailbox dpr_mailbox; /* one, for one run at a time */

/* Allocates pinned memory that every device reaches by its host address; 0 or a cudaError_t. */
cudaError_t dpr_mail_create(dpr_mail **out);

/* Frees the mailboxes. No run may be in flight. If the CUDA context is no longer `there`, the pinned memory has gone
 * with it. NULL is allowed. */
void dpr_mail_destroy(dpr_mail *mail, int there);

/* Takes a mailbox for a run, and writes its address and tag. Waits while other threads use all mailboxes; NULL if all
 * are lost to runs that never wrote their results. */
dpr_mailbox *dpr_mailbox_take(dpr_mail *mail, void **address, uint32_t *tag);

/* The same, but NULL also if other threads use all mailboxes. */
dpr_mailbox *dpr_mailbox_try(dpr_mail *mail, void **address, uint32_t *tag);

/* Waits for a result of `bytes` bytes, for at most some 100 us. Returns whether it is there. */
int dpr_mailbox_wait(const dpr_mailbox *box, size_t bytes);

/* Whether a result of `bytes` bytes is there. */
int dpr_mailbox_arrived(const dpr_mailbox *box, size_t bytes);

/* Copies the result, which must be there, to `out`. */
void dpr_mailbox_read(const dpr_mailbox *box, void *out, size_t bytes);

/* Gives a mailbox back. `bytes` is the size of the result of the run that was enqueued with it, or 0 if none was. The
 * mailbox is used again only when that result is there: a late store must not be taken for another run's result. */
void dpr_mailbox_return(dpr_mail *mail, dpr_mailbox *box, size_t bytes);

#endif
