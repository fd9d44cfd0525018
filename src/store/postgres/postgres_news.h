/*
 * What this process's threads wait for: the end of a run, and work that was
 * made.  Other processes' news are found by polling.
 */
#ifndef POSTGRES_NEWS_H
#define POSTGRES_NEWS_H

#include <stdbool.h>
#include <stdint.h>

#include "lock.h"

struct postgres_news {
	struct lock lock;
	pthread_cond_t ended, made;
	uint64_t runs, work; /* generations */
	int fd;              /* store_news_to() */
};

void postgres_news_init(struct postgres_news *n);
void postgres_news_destroy(struct postgres_news *n); /* no thread waits */

/* A run has ended; work was made. */
void postgres_news_ended(struct postgres_news *n);
void postgres_news_made(struct postgres_news *n);

/* store_wait(), store_wait_work(), store_news_to() */
bool postgres_news_wait(
    struct postgres_news *n, uint64_t *generation, int64_t until_mono);
bool postgres_news_wait_work(
    struct postgres_news *n, uint64_t *generation, int64_t until_mono);
void postgres_news_fd(struct postgres_news *n, int fd);

#endif
