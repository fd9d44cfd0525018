/*
 * The current configuration.  SIGHUP replaces it, while requests under way
 * keep the one that they began with.
 */
#ifndef CONFBOX_H
#define CONFBOX_H

#include "conf.h"

struct confbox;

/* Takes over one reference; NULL: no memory. */
struct confbox *confbox_new(struct conf *);
void confbox_free(struct confbox *);

/* Returns a reference to the current configuration; the caller drops it with
 * conf_unref(). */
struct conf *confbox_get(struct confbox *);

/* Replaces the current configuration; takes over the reference. */
void confbox_set(struct confbox *, struct conf *);

#endif
