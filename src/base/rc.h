/*
 * Return codes of everything that touches the world.  Pure code returns
 * verdicts of its own; effects return enum rc, where 0 is success.  The place
 * that has errno or SQLite's message at hand logs it, once, and passes rc up.
 */
#ifndef RC_H
#define RC_H

enum rc {
	RC_OK = 0,
	RC_NOMEM,      /* no memory */
	RC_LIMIT,      /* a maximum of limit.h, or of the caller, was reached */
	RC_IO,         /* read, write or sync failed; errno was logged */
	RC_FULL,       /* no space left for it */
	RC_BUSY,       /* another process holds the lock; time is up */
	RC_CORRUPT,    /* what was read cannot be what was written */
	RC_REPLACED,   /* a file of the store is not the one that was opened */
	RC_WENT_BACK,  /* the store lacks what this process has seen in it */
	RC_VERSION,    /* written by a newer release */
	RC_NOTFOUND,   /* there is no such thing */
	RC_EXISTS,     /* there is one already */
	RC_LOST,       /* the lease named is no longer the current one */
	RC_PENDING,    /* not done yet; it goes on without the caller */
	RC_UNRECORDED, /* not begun: outcomes of others are not recorded yet */
	RC_TIMEOUT,    /* the peer was silent for too long */
	RC_CLOSED,     /* the peer is gone, or we are shutting down */
	RC_INVALID     /* malformed input or an argument out of range */
};

/* A short lower-case text in static storage; never NULL. */
const char *rc_text(enum rc);

#endif
