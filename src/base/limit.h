/*
 * Every maximum, named, in one list.  They also bound the values that a user
 * may set.  Sizes are in bytes unless the name says otherwise.
 */
#ifndef LIMIT_H
#define LIMIT_H

#include <stdint.h>

/* The most that can be in memory or mapped: a whole number of MiB, to be
 * readable in messages.  Where size_t has 32 bits it bounds every size. */
#define LIMIT_SIZE (UINT64_C(0) + SIZE_MAX / (1024 * 1024) * (1024 * 1024))

/* FastCGI: one request's parameters, all names and values together. */
#define LIMIT_PARAMS      (256 * 1024)
#define LIMIT_PARAM_COUNT 1024
/* Requests under way at once, those that wait included; and connections, idle
 * ones included. */
#define LIMIT_REQUESTS    10000
#define LIMIT_CONNECTIONS 12288

/* CGI: the size of a response's head, and the number of its fields. */
#define LIMIT_HEAD (64 * 1024)
/* Bytes of what oncewrap adds to such a head. */
#define LIMIT_OWN_FIELDS 1024
#define LIMIT_FIELDS     256
#define LIMIT_REASON     64

/* Bodies up to this size stay in memory; larger ones go to an unlinked
 * file. */
#define LIMIT_SPOOL_MEMORY (64 * 1024)

/* Keys and identities. */
#define LIMIT_KEY 4096
/* Alternatives of key_from. */
#define LIMIT_KEY_FROM 16
#define LIMIT_PATH     (16 * 1024)
#define LIMIT_SCOPE    (16 * 1024)
/* A client's address, as text. */
#define LIMIT_PEER 63

/* A method that is stored with a key. */
#define LIMIT_METHOD 31

/* JSON: the nesting depth of objects and arrays (at most 128). */
#define LIMIT_JSON_DEPTH 128
/* Texts longer than LIMIT_JSON are compared as bytes.  LIMIT_JSON_MEMORY
 * bounds the memory of all comparisons together, besides the texts.
 * LIMIT_JSON_SMALL of it is for texts that stay in memory, so that they do not
 * wait for long ones. */
#define LIMIT_JSON        (16 * 1024 * 1024)
#define LIMIT_JSON_MEMORY (64 * 1024 * 1024)
#define LIMIT_JSON_SMALL  (4 * 1024 * 1024)

/* Forms: a name, as it is sent; the head of a part; the boundary (RFC 2046,
 * section 5.1.1 has 70). */
#define LIMIT_FORM_NAME     (3 * LIMIT_CONF_LINE)
#define LIMIT_FORM_HEAD     (16 * 1024)
#define LIMIT_FORM_BOUNDARY 200

/* The fingerprint spec of a fingerprint, as text. */
#define LIMIT_FINGERPRINT_SPEC (64 * 1024)

/* Configuration. */
#define LIMIT_CONF_FILE     (1024 * 1024)
#define LIMIT_CONF_LINE     4096 /* without comment and outer blanks */
#define LIMIT_CONF_ROUTES   1024
#define LIMIT_CONF_EFFECTS  256
#define LIMIT_CONF_LIST     256  /* items of one list */
#define LIMIT_WORKERS       1024 /* programs */
#define LIMIT_PROCESSES     1024 /* of one route */
#define LIMIT_ASYNC_WORKERS 64   /* threads */
/* Requests that are accepted and not begun.  Each new one counts them, at
 * about 0.1 us for each. */
#define LIMIT_ASYNC_QUEUE 10000
#define LIMIT_KEYS        1000000 /* of one scope: active, new in a second */
#define LIMIT_OPEN_KEYS   100000  /* of one scope: each new key counts them */

/* The body of a stored request: it is one value in the store. */
#define LIMIT_KEPT_BODY (16 * 1024 * 1024)

/* Environment of a handler: the number of variables, and all their bytes. */
#define LIMIT_ENV_COUNT (LIMIT_PARAM_COUNT + 64)
#define LIMIT_ENV       (LIMIT_PARAMS + 64 * 1024)

/* One line of a handler's stderr in the log; longer lines are cut. */
#define LIMIT_STDERR_LINE 1024

/* The bytes that are stored of the output of an effect's program. */
#define LIMIT_REFERENCE 4096

/* A form of the operator's page, with an answer that an operator gives. */
#define LIMIT_ADMIN_BODY (4 * 1024 * 1024)

/* The text of all metrics, and the labels of all routes with what follows a
 * label: each route has 45 samples. */
#define LIMIT_METRICS_ROUTES (32 * 1024)
#define LIMIT_METRICS        (64 * 1024 + 45 * LIMIT_METRICS_ROUTES)

/* A problem document: a page may have a link of 4096 bytes that are escaped, or
 * be a page of the operator, of LIMIT_PROBLEM_PAGE bytes before its values. */
#define LIMIT_PROBLEM      (128 * 1024)
#define LIMIT_PROBLEM_PAGE (64 * 1024)

/* What a handler writes in a transaction of its own: the body of a response or
 * the payload of an effect, and a recovery point.  The triggers of
 * sql/schema.sql have these numbers too. */
#define LIMIT_SAID           (16 * 1024 * 1024)
#define LIMIT_RECOVERY_POINT 63

/* The bytes that are stored of an answer that was not accepted. */
#define LIMIT_REFUSED 4096
/* The end of what a program wrote to stderr, which is stored. */
#define LIMIT_ERRORS 2048

/* The text of an error that is stored with a key. */
#define LIMIT_LAST_ERROR 256

/* Values of Retry-After (s). */
#define RETRY_AFTER_BUSY    1
#define RETRY_AFTER_STORE   5
#define RETRY_AFTER_UNKNOWN 30

#endif
