/*
 * Copying all of another store: postgres_copy.c; and the rows that it reads:
 * postgres_copy_item.c.
 */
#ifndef POSTGRES_COPY_H
#define POSTGRES_COPY_H

#include "digest.h"
#include "postgres_impl.h"
#include "store_module.h"

struct postgres_copy {
	struct store *from, *to;
	struct pg *pg;
	struct store_transfer n; /* what was sent */
	int64_t last_key, last_effect;
	int64_t ahead; /* of the server's clock: ms before the source's time */
	int64_t tries; /* of the transaction: specs are noted for each */
	int sent;      /* statements whose results are not read */
	int batch;     /* those of them that are in the batch under way */
	size_t bytes;  /* of its large values */
	char *why;
	size_t size;
};

/* Gives the reason, and returns rc. */
enum rc postgres_copy_refuse(struct postgres_copy *c, enum rc rc,
    const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Ends the batch, and reads the results of those before it; or all. */
enum rc postgres_copy_batch(struct postgres_copy *c, bool all);

/* A key, or an effect, with all that is stored beside it. */
struct postgres_item {
	struct store_listed l;
	struct response answer; /* if it is not in .l */
	struct buf environment; /* of the stored request */
	struct spool *body, *request;
	struct store_output output;
	struct effect effect;
	struct spool *payload;
};

void postgres_item_init(struct postgres_item *it);
void postgres_item_free(struct postgres_item *it);

/* Both kinds of rows.  A store lists them in the order of their numbers. */
struct postgres_item_kind {
	const char *name;
	enum rc (*open)(struct store *s, struct store_cursor **cursor);
	/* Reads the next one.  RC_NOTFOUND: there is none. */
	enum rc (*read)(struct store *s, struct store_cursor *cursor,
	    struct postgres_item *it);
	/* Makes it what the target is to have. */
	enum rc (*convert)(struct postgres_copy *c, struct postgres_item *it);
	enum rc (*send)(
	    struct postgres_copy *c, const struct postgres_item *it);
	/* Adds all that the target is to have. */
	enum rc (*add)(struct digest *d, const struct postgres_item *it);
};
extern const struct postgres_item_kind postgres_item_key, postgres_item_effect;

#endif
