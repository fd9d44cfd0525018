/*
 * The current configuration, behind a lock: taking a reference must not
 * overlap with dropping the box's own.  The lock is held for a few
 * instructions.
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>

#include "lock.h"
#include "confbox.h"

struct confbox {
	struct lock lock;
	struct conf *conf; /* one reference is the box's */
};

struct confbox *
confbox_new(struct conf *conf)
{
	struct confbox *box;

	assert(conf != NULL);
	if ((box = malloc(sizeof(*box))) == NULL)
		return NULL;
	lock_init(&box->lock, LOCK_CONF);
	box->conf = conf;
	return box;
}

void
confbox_free(struct confbox *box)
{
	if (box == NULL)
		return;
	conf_unref(box->conf);
	lock_destroy(&box->lock);
	free(box);
}

struct conf *
confbox_get(struct confbox *box)
{
	struct conf *conf;

	lock_take(&box->lock);
	conf = conf_ref(box->conf);
	lock_give(&box->lock);
	return conf;
}

void
confbox_set(struct confbox *box, struct conf *conf)
{
	struct conf *old;

	assert(conf != NULL);
	lock_take(&box->lock);
	old = box->conf;
	box->conf = conf;
	lock_give(&box->lock);
	conf_unref(old);
}
