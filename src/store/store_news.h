/*
 * What this process's threads wait for: the end of a run, and work that was
 * made.  Other processes' news are found by polling, or by a watch.
 */
#ifndef STORE_NEWS_H
#define STORE_NEWS_H

#include <stdint.h>

#include "lock.h"

struct store_news {
	struct lock lock;
	pthread_cond_t ended, made;
	uint64_t runs, work; /* generations */
	int fd;              /* store_news_to() */
};

void store_news_init(struct store_news *n);
void store_news_destroy(struct store_news *n); /* no thread waits */

/* A run has ended; work was made. */
void store_news_ended(struct store_news *n);
void store_news_made(struct store_news *n);

#endif
