/*
 * The current configuration: replaced by SIGHUP, while requests under way
 * keep the one that they began with.
 */
#ifndef CONFBOX_H
#define CONFBOX_H

#include "conf.h"

struct confbox;

/* Takes over one reference. */
struct confbox *confbox_new(struct conf *);
void confbox_free(struct confbox *);

/* A reference to the current one; the caller drops it with conf_unref(). */
struct conf *confbox_get(struct confbox *);

/* Replaces it; takes over the reference. */
void confbox_set(struct confbox *, struct conf *);

#endif
