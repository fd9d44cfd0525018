/*
 * Copying the rows of another store: see postgres_copy.c.
 */
#ifndef POSTGRES_COPY_H
#define POSTGRES_COPY_H

#include "digest.h"
#include "pg_array.h"
#include "postgres_impl.h"

struct postgres_copy {
	struct store *from, *to;
	struct pg *pg;
	struct store_transfer n;                    /* what was sent */
	unsigned char fingerprint_spec[DIGEST_LEN]; /* the last one */
	char *fingerprint_spec_text;
	int64_t last_key, last_effect;
	int64_t ahead; /* of the server's clock: ms before the source's time */
	int sent;      /* statements whose results are not read */
	int batch;     /* those of them that are in the batch under way */
	struct pg_arrays keys; /* rows of the batch */
	size_t bytes;          /* of its large values */
	char *why;
	size_t size;
};

/* Gives the reason, and returns rc. */
enum rc postgres_copy_refuse(struct postgres_copy *c, enum rc rc,
    const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Sends all keys, or all effects, with what belongs to them.  The results of
 * the last statements are read by postgres_copy_end(). */
enum rc postgres_copy_keys(struct postgres_copy *c);
enum rc postgres_copy_effects(struct postgres_copy *c);
enum rc postgres_copy_end(struct postgres_copy *c);

/* Store time of the source as a time of the server; 0 stays 0. */
int64_t postgres_copy_time(const struct postgres_copy *c, int64_t at);
/* The same of the next try of an effect that has the turn; 0 is at once. */
int64_t postgres_copy_next(const struct postgres_copy *c, int64_t at);

/* Reads both stores, and compares all.  RC_CORRUPT: they differ. */
enum rc postgres_copy_compare(struct postgres_copy *c);

#endif
