/*
 * The resources for operators below admin_path: metrics, health, page.
 */
#ifndef ADMIN_H
#define ADMIN_H

#include "answer.h"
#include "conf.h"
#include "request.h"
#include "store.h"

/* Always fills in the answer.  The path is below conf->admin_path. */
void admin_handle(struct store *store, const struct conf *conf,
    const struct request *rq, struct answer *answer);

#endif
