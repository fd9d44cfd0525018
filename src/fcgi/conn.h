/*
 * A connection to a web server, and the thread that holds it: for the files of
 * mux alone.
 *
 *  1. A connection is either parked - on exactly one list of struct mux,
 *     guarded by mux->lock - or held by one thread, which alone touches it:
 *     the leader (leader.h) while it reads, or a worker (or the queue to the
 *     workers) while a whole request is with it.
 *  2. Only the leader takes a parked connection.  The thread that holds a
 *     connection may close it.
 *  3. epoll watches a parked connection once (EPOLLONESHOT).  A held
 *     connection gives no events, not even a hangup; parking arms it again.
 *  4. A request goes to a worker only when its last byte has been read, so no
 *     byte of a body can be taken for the next request.
 */
#ifndef CONN_H
#define CONN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "answer.h"
#include "buf.h"
#include "conf.h"
#include "fcgi.h"
#include "leader.h"
#include "lock.h"
#include "peers.h"
#include "request.h"
#include "spool.h"

/* Bytes of one read; also the most that may be read ahead of an answer. */
#define CONN_INPUT (32 * 1024)
/* How long (ms) a peer may take to close after this process has closed. */
#define CONN_LINGER 2000

enum conn_state {
	CONN_READING,  /* waits for input */
	CONN_REPLYING, /* fcgi.reply did not fit; no reading until it did */
	CONN_SENDING,  /* the answer did not fit */
	CONN_LINGERING /* all is sent; waits for the peer to close */
};

/* One request and its answer. */
struct exchange {
	struct conn *conn;
	struct conf *conf; /* NULL: no request has begun */
	struct request request;
	struct log_request log; /* what the log says of the request */
	struct buf path;
	/* the body as it arrives */
	struct spool *body;
	unsigned share; /* of the client: see conn_share_of() */
	uint64_t taken; /* bytes of the body that count there */
	uint64_t limit, declared, received;
	bool has_length; /* declared holds CONTENT_LENGTH */
	bool discard;    /* the body is read and dropped */
	/* the answer */
	struct answer answer;
	struct buf head;
	size_t body_len; /* bytes of the answer's body: none for HEAD */
	int app_status;
	uint64_t sent; /* bytes of records that the peer has taken */
	bool broken;   /* a write failed */
};

TAILQ_HEAD(conn_list, conn);

struct conn {
	struct mux *mux;
	int fd;
	bool watched; /* epoll knows the descriptor */
	bool served;  /* an answer was sent: the peer may close or go on */
	enum conn_state state;
	struct conn_list *list; /* the list that it is parked on, or NULL */
	TAILQ_ENTRY(conn) link;
	int64_t since;      /* mono; on the lists active and linger: parked */
	bool in_head;       /* the parameters of its request are not complete */
	int64_t head_since; /* mono */
	TAILQ_ENTRY(conn) head_link;
	bool in_body;       /* the parameters are complete, the body is not */
	int64_t body_since; /* mono */
	TAILQ_ENTRY(conn) body_link;
	struct fcgi fcgi;
	struct buf left; /* input that was read and not fed yet */
	struct exchange exchange;
};

struct mux {
	int epoll, wake, listen_fd;
	int stop_waiting; /* readable once no thread may wait for a peer */
	bool tcp;
	struct leader *leader;
	pthread_t thread; /* the standby thread */

	/* for the leader alone */
	unsigned whole;    /* requests that became whole in this round */
	unsigned taken;    /* connections accepted since mux_refuse() */
	unsigned streak;   /* rounds that looked at the listening socket only */
	int64_t resume_at; /* mono; accepting is paused until then, or 0 */
	int64_t warned_at; /* mono; when a lack of descriptors was logged */
	char input[CONN_INPUT];
	/* by body_link: the connections with in_body, longest first */
	struct conn_list bodies;

	atomic_uint nconns;
	/* ms; of the current configuration: the lists are in the order of
	 * their deadlines only if it is one for all connections */
	_Atomic int64_t io_timeout;
	struct lock lock;  /* guards the members below */
	struct conf *conf; /* of requests that begin */
	struct peers peers;
	pthread_cond_t refused_cond;
	struct conn_list queue;  /* whole requests, for the workers */
	struct conn_list idle;   /* between requests; longest first */
	struct conn_list active; /* in mid-request or mid-answer; by since */
	struct conn_list linger; /* by since */
	struct conn_list ready;  /* have input left, to be fed */
	/* by head_link, besides the list that each is parked on: the
	 * connections with in_head, longest first */
	struct conn_list heads;
	bool refusing, refused; /* new connections: asked for, and done */
	bool take_waiting;      /* but accept the connections in the backlog */
	bool stopping;          /* only requests that are arriving begin */
	bool looked;  /* ... each connection was checked for such requests */
	bool stopped; /* no request begins any more */
	bool closing;
	int64_t arrive_until; /* mono; when stopping */
	int64_t until;        /* mono; when closing */
};

/* Makes a connection of fd and takes fd over; NULL when there is no memory. */
struct conn *conn_new(struct mux *m, int fd);

/* Ends a connection in any state.  It must not be parked. */
void conn_close(struct conn *c);

/* Stops the events of a connection until it is parked again: needed if it was
 * taken before its event came. */
void conn_unwatch(struct conn *c);

/*
 * Parks a connection: it is served again when its descriptor is ready, or at
 * once if it has input left.  While mux stops, a connection that has been
 * served and has no further request is closed instead.  Once mux has stopped,
 * every connection that reads is closed.
 */
void conn_park(struct conn *c, enum conn_state state);

/*
 * What the bodies of one client take of spool_total.  The bodies of one address
 * together may take half of it, so that no client keeps the bodies of others
 * out; a body that is alone may take all.  CONN_SHARE_NONE: of clients without
 * an address, whose bodies have no limit but that of all.
 */
#define CONN_SHARE_NONE 0

/* The share of REMOTE_ADDR, which may be NULL. */
unsigned conn_share_of(const char *address);

/* Whether the share has room for more bytes of a body that has own bytes. */
bool conn_share_has_room(unsigned share, uint64_t own, uint64_t more);

void conn_share_take(unsigned share, uint64_t bytes);

/* Frees the body, with its part of the client's share. */
void conn_drop_body(struct exchange *x);

/* Whether its body has been arriving for longer than io_timeout: what it holds
 * may then be given to other requests that need it.  Called by the leader. */
bool conn_is_slow_body(const struct conn *c);

/* Takes a parked connection off its list.  mux->lock is held. */
void conn_take(struct conn *c);

/* Hands a whole request to the workers, or drops it once mux has stopped. */
void conn_queue(struct conn *c);

/* The answer is sent: goes on to the next request, or closes. */
void conn_next(struct conn *c);

/* Closes so that the last bytes sent reach the peer: with input unread, a
 * plain close() would reset the connection and destroy them. */
void conn_finish(struct conn *c);

/* The request in the log; NULL: none has begun. */
const struct log_request *conn_log(const struct conn *c);

/* Wakes the leader. */
void conn_wake(struct mux *m);

/*
 * Reads the available input, and parks the connection, hands it to the
 * workers, or ends it.  The caller leads and holds the connection, and no
 * longer holds it afterwards.
 */
void conn_read(struct conn *c);

/* --- new connections: only the leader calls these ----------------------- */

/* Whether a connection waits to be accepted. */
bool acceptor_waits(const struct mux *m);

/* Accepts some of the waiting connections and reads from them; returns their
 * number.  When there is no room it stops watching the socket until
 * mux->resume_at. */
unsigned acceptor_run(struct mux *m);

/* Watches the socket again. */
void acceptor_resume(struct mux *m);

/* Stops watching for good: the socket may be closed afterwards. */
void acceptor_stop(struct mux *m);

/* --- the end: only the leader calls these ------------------------------- */

/* Whether mux_refuse() or mux_stop() was called. */
bool mux_is_refusing(struct mux *m);

/* Makes one step towards the end.  True: it made one, so the round is over, as
 * there may be nothing more to wait for. */
bool mux_advance(struct mux *m);

/* Closes the parked connections of a list: all, or those that wait for a
 * request. */
void mux_close_all(struct mux *m, struct conn_list *list, bool all);

#endif
