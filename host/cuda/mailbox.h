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

/* No run may be in flight. Pinned memory goes with the CUDA context, unless that is still `there`. NULL is
 * allowed. */
void dpr_mail_destroy(dpr_mail *mail, int there);

/* A mailbox for `run`, whose `out` and `tag` are set to it. Waits while other threads use all of them; NULL if all are
 * lost to runs that never wrote their results. */
dpr_mailbox *dpr_mailbox_take(dpr_mail *mail, dpr_run *run);

/* Waits for a result of `bytes` bytes, for some 100 us at most. Whether it is there. */
int dpr_mailbox_wait(const dpr_mailbox *box, size_t bytes);

/* Whether it is there. */
int dpr_mailbox_arrived(const dpr_mailbox *box, size_t bytes);

/* Copies the result, which is there. */
void dpr_mailbox_read(const dpr_mailbox *box, void *out, size_t bytes);

/* Gives a mailbox back. One to which a run was enqueued (`bytes`; 0 where none was) is used again only when that run's
 * result is there, so that a late store cannot be taken for the result of another run. */
void dpr_mailbox_return(dpr_mail *mail, dpr_mailbox *box, size_t bytes);

#endif
