/*
 * When the committer begins.  A sync takes as long for one operation as for
 * many, and who comes when it has just begun waits for the rest of it and then
 * for his own: on a slow disk the callers fall into two halves, each waiting
 * while the other's sync goes on, and a request that needs two syncs waits for
 * four.
 *
 * So the committer waits for those it has just told, who tend to come back,
 * and for one more at a time: that costs each of the n that are queued the
 * time it takes, and spares one a sync.  It is worth it for the length of a
 * sync divided by n, and to be wrong costs no more than that.  Where so many
 * come during a sync that the next one is full anyway, the pause is shorter
 * than the time between two of them, and nobody waits.
 *
 * Nothing is locked meanwhile.
 */
#include "config.h"

#include <time.h>

#include "clock.h"
#include "committer_impl.h"

/* A disk that is faster than this is not waited for: us. */
#define SLOW 2000

void
committer_took(struct committer *c, int64_t us)
{
	c->took[1] = c->took[0];
	c->took[0] = us;
}

/* How long a sync takes; one that happened to be slow does not count. */
static int64_t
cost(const struct committer *c)
{
	return c->took[0] < c->took[1] ? c->took[0] : c->took[1];
}

/* False: nobody has come for so long. */
static bool
one_more(struct committer *c, int64_t until_us)
{
	struct timespec ts;
	unsigned n = c->queue.n;

	ts.tv_sec = (time_t)(until_us / 1000000);
	ts.tv_nsec = (long)(until_us % 1000000) * 1000;
	while (c->queue.n <= n && !c->closing)
		if (pthread_cond_timedwait(&c->work, &c->mutex, &ts) != 0)
			break;
	return c->queue.n > n;
}

void
committer_gather(struct committer *c)
{
	int64_t end, now, sync = cost(c);

	if (sync < SLOW)
		return;
	now = clock_mono_us();
	for (end = now + sync; now < end; now = clock_mono_us()) {
		if (c->closing || c->queue.n >= c->expected ||
		    !one_more(c, now + sync / (c->queue.n + 1)))
			break;
	}
}
