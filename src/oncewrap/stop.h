/*
 * The latest end of a stop.
 */
#ifndef STOP_H
#define STOP_H

#include <stdint.h>

/* Time (ms) after drain_timeout for all that is left. */
#define STOP_GRACE 3000

/*
 * To be called once, when the stop begins, with SIGTERM and SIGINT blocked in
 * all threads; drained_mono: when drain_timeout is over.  The process ends at
 * once, with status 0, at another of these signals, or STOP_GRACE after that
 * time, whatever its threads wait for.
 */
void stop_bound(int64_t drained_mono);

#endif
