/*
 * The store on PostgreSQL, which is a module: a program that stores in a file
 * does not need the library libpq.
 */
#ifndef STORE_MODULE_H
#define STORE_MODULE_H

#include "store.h"

struct handler_api_write;

/* What was copied, by kind. */
struct store_transfer {
	int64_t keys, answer_bytes, requests, outputs, effects, payload_bytes;
};

/* What the module has, in its symbol oncewrap_postgresql. */
struct store_module {
	/* of the program that it was built for */
	const char *version;
	/* RC_OK: such a URI can be read.  On failure err gets a sentence
	 * without secrets.  Nothing is connected to. */
	enum rc (*check)(const char *database, char *err, size_t errsize);
	/* store_open() */
	enum rc (*open)(struct store **, const struct store_options *,
	    char *err, size_t errsize);
	/* handler_api_say() */
	enum rc (*handler_api_say)(const char *database, int64_t patience,
	    const struct handler_api_write *, char *why, size_t size);

	/*
	 * What only operators of this kind of store do.  On failure err gets a
	 * sentence.
	 */

	/* Makes the tables unless they are there, and gives the role (NULL:
	 * none) the right to what a handler needs. */
	enum rc (*init)(const struct store_options *, const char *role,
	    char *err, size_t errsize);

	/* Copies all that the store `from` has into an empty one, in one
	 * transaction.  RC_BUSY: a process uses one of them.  RC_EXISTS: it is
	 * not empty. */
	enum rc (*copy)(struct store *, struct store *from,
	    struct store_transfer *, char *err, size_t errsize);

	/* Lets processes go on that wait because the store went back
	 * (RC_WENT_BACK). */
	enum rc (*accept_loss)(struct store *, char *err, size_t errsize);

	/* Lets store time go on, which stands still because the server's clock
	 * has jumped ahead. */
	enum rc (*accept_clock)(struct store *, char *err, size_t errsize);
};

/*
 * Loads the module, once, from the folder that the environment's
 * ONCEWRAP_MODULES names, or that it was installed in.  RC_NOTFOUND,
 * RC_VERSION: err (of errsize bytes) gets a sentence.
 */
enum rc store_module_load(
    const struct store_module **module, char *err, size_t errsize);

#endif
