/*
 * Accepted requests: kept with their keys, answered with 202, and run here.
 */
#ifndef PENDING_H
#define PENDING_H

#include <stdatomic.h>
#include <stdbool.h>

#include "confbox.h"
#include "pass.h"

struct pending;

/* Both must outlive it.  NULL: no memory. */
struct pending *pending_new(struct store *, struct confbox *);
void pending_free(struct pending *);

/*
 * Runs one request after the other, as they come due, until pending_halt().
 * For any number of threads; the programs die with the thread.
 */
void pending_run(struct pending *);

/* Nothing is begun any more; does not wait for what is under way. */
void pending_halt(struct pending *);

/*
 * The pass over requests that nobody has begun within their retention: each is
 * completed, with a problem as its answer.  One turn of it; logs each key.
 */
enum rc pending_expire(struct store *, const struct conf *, struct pass *);

#endif
