/*
 * Every maximum, named, in one list.  What a user may set is bounded by these
 * too.  Bytes unless the name says otherwise.
 */
#ifndef LIMIT_H
#define LIMIT_H

#include <stdint.h>

/* What can be in memory or mapped at all: a whole number of MiB, so that it
 * reads well.  Where size_t has 32 bits it bounds every size. */
#define LIMIT_SIZE (UINT64_C(0) + SIZE_MAX / (1024 * 1024) * (1024 * 1024))

/* FastCGI: one request's parameters, all names and values together. */
#define LIMIT_PARAMS      (256 * 1024)
#define LIMIT_PARAM_COUNT 1024
/* Connections open at once, idle ones included. */
#define LIMIT_CONNECTIONS 4096

/* CGI: the head of a response, and fields in it. */
#define LIMIT_HEAD   (64 * 1024)
#define LIMIT_FIELDS 256
#define LIMIT_REASON 64

/* Bodies up to this stay in memory, larger ones go to an unlinked file. */
#define LIMIT_SPOOL_MEMORY (64 * 1024)

/* Keys and identities. */
#define LIMIT_KEY   4096
#define LIMIT_PATH  (16 * 1024)
#define LIMIT_SCOPE (16 * 1024)

/* JSON: members and elements within members and elements (at most 128). */
#define LIMIT_JSON_DEPTH 128
/* Longer texts are compared as bytes; and what all comparisons together may
 * take, besides the texts. */
#define LIMIT_JSON        (16 * 1024 * 1024)
#define LIMIT_JSON_MEMORY (64 * 1024 * 1024)

/* How a fingerprint was made, as text. */
#define LIMIT_RECIPE (64 * 1024)

/* Configuration. */
#define LIMIT_CONF_FILE     (1024 * 1024)
#define LIMIT_CONF_LINE     4096 /* without blanks around it and comment */
#define LIMIT_CONF_ROUTES   1024
#define LIMIT_CONF_EFFECTS  256
#define LIMIT_CONF_LIST     256  /* items of one list */
#define LIMIT_WORKERS       1024 /* threads */
#define LIMIT_ASYNC_WORKERS 64   /* threads */
/* Requests accepted and not begun: counted at each, some 0.1 us apiece. */
#define LIMIT_ASYNC_QUEUE 10000
#define LIMIT_KEYS        1000000 /* of one scope: at once, a second */
#define LIMIT_OPEN_KEYS   100000  /* of one scope: counted at each new key */

/* The body of a request that is kept: it is one value in the store. */
#define LIMIT_KEPT_BODY (16 * 1024 * 1024)

/* Environment of a handler: variables, and bytes in all. */
#define LIMIT_ENV_COUNT (LIMIT_PARAM_COUNT + 64)
#define LIMIT_ENV       (LIMIT_PARAMS + 64 * 1024)

/* One line of a handler's stderr in the log; longer ones are cut. */
#define LIMIT_STDERR_LINE 1024

/* What is kept of what the program of an effect prints. */
#define LIMIT_REFERENCE 4096

/* The text of all metrics. */
#define LIMIT_METRICS (64 * 1024)

/* A problem document. */
#define LIMIT_PROBLEM 4096

/* What a handler says in a transaction of its own: the body of an answer or
 * the payload of an effect, and a recovery point.  The triggers of
 * sql/migrate-003.sql have these numbers too. */
#define LIMIT_SAID           (16 * 1024 * 1024)
#define LIMIT_RECOVERY_POINT 63

/* Text of an error kept with a key. */
#define LIMIT_LAST_ERROR 256

/* Seconds named in Retry-After. */
#define RETRY_AFTER_BUSY    1
#define RETRY_AFTER_STORE   5
#define RETRY_AFTER_UNKNOWN 30

#endif
