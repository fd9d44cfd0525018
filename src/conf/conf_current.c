/*
 * The current configuration, behind a lock: taking a reference must not
 * overlap with dropping the box's own.  The lock is held for a few
 * instructions.
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>

#include "lock.h"
#include "conf_current.h"

struct conf_current {
	struct lock lock;
	struct conf *conf; /* one reference is the box's */
};

struct conf_current *
conf_current_new(struct conf *conf)
{
	struct conf_current *box;

	assert(conf != NULL);
	if ((box = malloc(sizeof(*box))) == NULL)
		return NULL;
	lock_init(&box->lock, LOCK_CONF);
	box->conf = conf;
	return box;
}

void
conf_current_free(struct conf_current *box)
{
	if (box == NULL)
		return;
	conf_unref(box->conf);
	lock_destroy(&box->lock);
	free(box);
}

struct conf *
conf_current_get(struct conf_current *box)
{
	struct conf *conf;

	lock_take(&box->lock);
	conf = conf_ref(box->conf);
	lock_give(&box->lock);
	return conf;
}

void
conf_current_set(struct conf_current *box, struct conf *conf)
{
	struct conf *old;

	assert(conf != NULL);
	lock_take(&box->lock);
	old = box->conf;
	box->conf = conf;
	lock_give(&box->lock);
	conf_unref(old);
}
