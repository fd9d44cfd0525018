/*
 * The resources for operators below admin_path: metrics and health, for
 * programs, and the operator's page, HTML without script.
 *
 * All users that the web server lets in may read.  Those in admin_users may
 * also resolve, forget, retry and drop: each act has a page that says what will
 * happen, and a form with a token (page_value.h).
 */
#ifndef PAGE_H
#define PAGE_H

#include "answer.h"
#include "conf.h"
#include "request.h"
#include "store.h"

/* Always fills in the answer.  The path is below conf->admin_path. */
void page_handle(struct store *store, const struct conf *conf,
    const struct request *rq, struct answer *answer);

#endif
