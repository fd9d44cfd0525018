/*
 * The current configuration.  SIGHUP replaces it, while requests under way
 * keep the one that they began with.
 */
#ifndef CONF_CURRENT_H
#define CONF_CURRENT_H

#include "conf.h"

struct conf_current;

/* Takes over one reference; NULL: no memory. */
struct conf_current *conf_current_new(struct conf *);
void conf_current_free(struct conf_current *);

/* Returns a reference to the current configuration; the caller drops it with
 * conf_unref(). */
struct conf *conf_current_get(struct conf_current *);

/* Replaces the current configuration; takes over the reference. */
void conf_current_set(struct conf_current *, struct conf *);

#endif
