/*
 * What the committer tells threads that wait: keys that are no longer in
 * progress, and work.
 */
#include "config.h"

#include "store_impl.h"

bool
sqlite_wait(struct store *store, uint64_t *generation, int64_t until_mono)
{
	return committer_wait(store->committer, generation, until_mono);
}

bool
sqlite_wait_work(struct store *store, uint64_t *generation, int64_t until_mono)
{
	return committer_wait_work(store->committer, generation, until_mono);
}

void
sqlite_wake(struct store *store)
{
	committer_wake(store->committer);
}

void
sqlite_news_to(struct store *store, int fd)
{
	committer_news_to(store->committer, fd);
}
