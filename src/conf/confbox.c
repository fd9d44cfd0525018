/*
 * The current configuration, behind a lock: taking a reference and dropping
 * the box's own must not cross.  The lock is held for a few instructions.
 */
#include "config.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "confbox.h"

struct confbox {
	pthread_mutex_t lock;
	struct conf *conf; /* one reference is the box's */
};

static void
lock(struct confbox *box)
{
	int error = pthread_mutex_lock(&box->lock);

	assert(error == 0);
}

static void
unlock(struct confbox *box)
{
	int error = pthread_mutex_unlock(&box->lock);

	assert(error == 0);
}

struct confbox *
confbox_new(struct conf *conf)
{
	struct confbox *box;

	assert(conf != NULL);
	if ((box = malloc(sizeof(*box))) == NULL)
		return NULL;
	if (pthread_mutex_init(&box->lock, NULL) != 0) {
		free(box);
		return NULL;
	}
	box->conf = conf;
	return box;
}

void
confbox_free(struct confbox *box)
{
	if (box == NULL)
		return;
	conf_unref(box->conf);
	(void)pthread_mutex_destroy(&box->lock);
	free(box);
}

struct conf *
confbox_get(struct confbox *box)
{
	struct conf *conf;

	lock(box);
	conf = conf_ref(box->conf);
	unlock(box);
	return conf;
}

void
confbox_set(struct confbox *box, struct conf *conf)
{
	struct conf *old;

	assert(conf != NULL);
	lock(box);
	old = box->conf;
	box->conf = conf;
	unlock(box);
	conf_unref(old);
}
