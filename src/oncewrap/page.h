/*
 * The operator's page, below admin_path: HTML without script.
 *
 * All users that the web server lets in may read.  Those in admin_users may
 * also resolve, forget, retry and drop: each act has a page that says what will
 * happen, and a form with a token (page_token.h).
 */
#ifndef PAGE_H
#define PAGE_H

#include "answer.h"
#include "conf.h"
#include "request.h"
#include "store.h"

/* Always fills in the answer, which the caller has initialised.  name: the path
 * after admin_path. */
void page_handle(struct store *store, const struct conf *conf,
    const struct request *rq, const char *name, struct answer *answer);

/*
 * Calls say for each line of refused.h: for what this process refused in the
 * last minute, and for callers with max_open_keys open outcomes, whichever
 * process refused them last, and when.
 */
void page_refusals(struct store *store, const struct conf *conf,
    void (*say)(void *arg, const char *line), void *arg);

#endif
