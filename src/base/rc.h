/*
 * Return codes of all functions with effects.  Pure code returns verdicts of
 * its own; effects return enum rc, where 0 is success.  The function that has
 * errno or SQLite's message logs it, once, and returns rc to its caller.
 */
#ifndef RC_H
#define RC_H

enum rc {
	RC_OK = 0,
	RC_NOMEM,      /* no memory */
	RC_LIMIT,      /* a maximum of limit.h, or of the caller, was reached */
	RC_IO,         /* read, write or sync failed; errno was logged */
	RC_FULL,       /* no space is left */
	RC_READONLY,   /* a file may not be written: permission, or the mount */
	RC_BUSY,       /* another process holds the lock; time is up */
	RC_CORRUPT,    /* the data read cannot be the data that was written */
	RC_REPLACED,   /* a file of the store is not the one that was opened */
	RC_WENT_BACK,  /* the store lacks what this process has seen in it */
	RC_VERSION,    /* written by another release */
	RC_NOTFOUND,   /* there is no such thing */
	RC_EXISTS,     /* it exists already */
	RC_LOST,       /* the lease named is no longer the current one */
	RC_PENDING,    /* not done yet; it goes on without the caller */
	RC_UNRECORDED, /* not begun: outcomes cannot be recorded now */
	RC_UNSAFE,     /* the server is set up so that commits may be lost */
	RC_TIMEOUT,    /* the peer was silent for too long */
	RC_CLOSED,     /* the peer is gone, or this process is shutting down */
	RC_INVALID     /* malformed input or an argument out of range */
};

/* A short lower-case text in static storage; never NULL. */
const char *rc_text(enum rc rc);

#endif
