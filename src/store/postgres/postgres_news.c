/*
 * See postgres_news.h.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

#include "clock.h"
#include "leader.h"
#include "postgres_news.h"

/* Ends of runs by other processes are found by looking that often (ms). */
#define LOOK 100

void
postgres_news_init(struct postgres_news *n)
{
	lock_init(&n->lock, LOCK_COMMITTER);
	lock_cond_init(&n->ended);
	lock_cond_init(&n->made);
	n->runs = n->work = 1;
	n->fd = -1;
}

void
postgres_news_destroy(struct postgres_news *n)
{
	pthread_cond_destroy(&n->ended);
	pthread_cond_destroy(&n->made);
	lock_destroy(&n->lock);
}

void
postgres_news_ended(struct postgres_news *n)
{
	lock_take(&n->lock);
	n->runs++;
	pthread_cond_broadcast(&n->ended);
	lock_give(&n->lock);
}

void
postgres_news_made(struct postgres_news *n)
{
	const uint64_t one = 1;

	lock_take(&n->lock);
	n->work++;
	pthread_cond_broadcast(&n->made);
	if (n->fd != -1 && write(n->fd, &one, sizeof(one)) == -1)
		assert(errno == EAGAIN); /* it is readable already */
	lock_give(&n->lock);
}

bool
postgres_news_wait(struct postgres_news *n, uint64_t *generation, int64_t until)
{
	const int64_t now = clock_mono(), look = now + LOOK;

	if (now >= until)
		return false;
	leader_yield();
	lock_take(&n->lock);
	while (n->runs == *generation)
		if (!lock_wait(
			&n->lock, &n->ended, look < until ? look : until))
			break;
	*generation = n->runs;
	lock_give(&n->lock);
	return true;
}

bool
postgres_news_wait_work(
    struct postgres_news *n, uint64_t *generation, int64_t until)
{
	bool news;

	lock_take(&n->lock);
	while (n->work == *generation)
		if (!lock_wait(&n->lock, &n->made, until))
			break;
	news = n->work != *generation;
	*generation = n->work;
	lock_give(&n->lock);
	return news;
}

void
postgres_news_fd(struct postgres_news *n, int fd)
{
	lock_take(&n->lock);
	n->fd = fd;
	lock_give(&n->lock);
}
