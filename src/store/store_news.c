/*
 * See store_news.h.
 */
#include "config.h"

#include <sys/inotify.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "clock.h"
#include "leader.h"
#include "store_ops.h"

/* Ends of runs by other processes are found by looking that often (ms). */
#define LOOK 100

void
store_news_init(struct store_news *n)
{
	lock_init(&n->lock, LOCK_COMMITTER);
	lock_cond_init(&n->ended);
	lock_cond_init(&n->made);
	n->runs = n->work = 1;
	n->fd = -1;
}

void
store_news_destroy(struct store_news *n)
{
	pthread_cond_destroy(&n->ended);
	pthread_cond_destroy(&n->made);
	lock_destroy(&n->lock);
}

void
store_news_ended(struct store_news *n)
{
	lock_take(&n->lock);
	n->runs++;
	pthread_cond_broadcast(&n->ended);
	lock_give(&n->lock);
}

void
store_news_made(struct store_news *n)
{
	const uint64_t one = 1;

	lock_take(&n->lock);
	n->work++;
	pthread_cond_broadcast(&n->made);
	if (n->fd != -1 && write(n->fd, &one, sizeof(one)) == -1)
		assert(errno == EAGAIN); /* it is readable already */
	lock_give(&n->lock);
}

static struct store_news *
news_of(struct store *s)
{
	return &store_base(s)->news;
}

bool
store_wait(struct store *s, uint64_t *generation, int64_t until_mono)
{
	const int64_t now = clock_mono(), look = now + LOOK;
	struct store_news *n = news_of(s);

	if (now >= until_mono)
		return false;
	leader_yield();
	lock_take(&n->lock);
	while (n->runs == *generation)
		if (!lock_wait(&n->lock, &n->ended,
			look < until_mono ? look : until_mono))
			break;
	*generation = n->runs;
	lock_give(&n->lock);
	return true;
}

bool
store_wait_work(struct store *s, uint64_t *generation, int64_t until_mono)
{
	struct store_news *n = news_of(s);
	bool news;

	lock_take(&n->lock);
	while (n->work == *generation)
		if (!lock_wait(&n->lock, &n->made, until_mono))
			break;
	news = n->work != *generation;
	*generation = n->work;
	lock_give(&n->lock);
	return news;
}

void
store_wake(struct store *s)
{
	store_news_made(news_of(s));
}

void
store_news_to(struct store *s, int fd)
{
	struct store_news *n = news_of(s);

	lock_take(&n->lock);
	n->fd = fd;
	lock_give(&n->lock);
}

/* --- other processes ------------------------------------------------------ */

/*
 * Each commit is written to the write-ahead log, by write(2), and the log stays
 * the same file as long as this process has the database open.  A server tells
 * nothing of what others commit: its work is found by polling.
 */
int
store_watch(const struct store *s)
{
	const char *file = store_base_of(s)->file;
	char name[4096];
	int fd;

	if (file == NULL ||
	    (size_t)snprintf(name, sizeof(name), "%s-wal", file) >=
		sizeof(name))
		return -1;
	if ((fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) == -1)
		return -1;
	if (inotify_add_watch(fd, name, IN_MODIFY) == -1) {
		close(fd);
		return -1;
	}
	return fd;
}

enum rc
store_watch_read(int fd)
{
	_Alignas(struct inotify_event) char bytes[1024];
	const struct inotify_event *event;
	enum rc rc = RC_NOTFOUND;
	ssize_t n, at;

	while ((n = read(fd, bytes, sizeof(bytes))) > 0) {
		for (at = 0; at < n;
		     at += (ssize_t)(sizeof(*event) + event->len)) {
			event = (const void *)(bytes + at);
			if ((event->mask & IN_IGNORED) != 0)
				return RC_LOST;
		}
		rc = RC_OK;
	}
	return rc;
}
