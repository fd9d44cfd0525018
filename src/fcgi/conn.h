/*
 * A connection to a web server: for the files of mux alone.
 *
 *  1. A connection is either parked - on exactly one list of struct mux - or
 *     held: it is being read, or its request is with the owner of mux, or a
 *     helper writes a part of its body.
 *  2. The loop may watch a held connection too, because each change of a watch
 *     costs a system call; but its first event ends the watch (conn.c), and
 *     nothing is read.
 *  3. A request is given to the owner only when its last byte has been read, so
 *     no byte of a body can be taken for the next request.
 *  4. The owner's functions and conn_read() may end any connection.  So nothing
 *     touches a connection after them, and mux looks at its lists anew.
 */
#ifndef CONN_H
#define CONN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "answer.h"
#include "buf.h"
#include "conf.h"
#include "fcgi.h"
#include "mux.h"
#include "request.h"
#include "spool.h"

/* Bytes of one read; also the most that may be read ahead of an answer. */
#define CONN_INPUT (32 * 1024)
/* How long (ms) a peer may take to close after this process has closed. */
#define CONN_LINGER 2000

enum conn_state {
	CONN_READING,   /* waits for input */
	CONN_REPLYING,  /* fcgi.reply did not fit; no reading until it did */
	CONN_STREAMING, /* a part of output did not fit */
	CONN_SENDING,   /* the answer did not fit */
	CONN_LINGERING  /* all is sent; waits for the peer to close */
};

/* What follows some input. */
enum conn_step {
	CONN_MORE,    /* all input is used up */
	CONN_WHOLE,   /* a request is complete */
	CONN_BLOCKED, /* a reply waits for the peer */
	CONN_FINISH,  /* all is sent: close */
	CONN_DROP     /* close at once; an unexpected end is logged */
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
	struct conn_part *part; /* what a helper writes to it, or NULL */
	unsigned share;         /* of the client: see conn_body.c */
	uint64_t taken;         /* bytes of the body that count there */
	uint64_t limit, declared, received;
	bool has_length; /* declared holds CONTENT_LENGTH */
	bool discard;    /* the body is read and dropped */
	/* the answer */
	struct answer answer;
	struct buf head;
	size_t body_len; /* bytes of the answer's body: none for HEAD */
	int app_status;
	uint64_t sent; /* bytes of records that the peer has taken */
	/* a stream */
	struct buf unsent; /* records that the peer has not taken */
	void (*room)(void *arg);
	void *room_arg;
	bool broken; /* a write failed */
};

TAILQ_HEAD(conn_list, conn);

struct conn {
	struct mux *mux;
	int fd;
	struct loop_watch watch;
	bool served; /* an answer was sent: the peer may close or go on */
	enum conn_state state;
	struct conn_list *list; /* the list that it is parked on, or NULL */
	TAILQ_ENTRY(conn) link;
	int64_t since; /* mono; on lists with deadlines: parked */
	/* heads or bodies: what of its request is not complete yet; or NULL */
	struct conn_list *arriving;
	int64_t arriving_since; /* mono */
	TAILQ_ENTRY(conn) arriving_link;
	struct fcgi fcgi;
	struct buf left; /* input that was read and not fed yet */
	struct exchange exchange;
};

struct mux {
	struct mux_owner owner;
	struct loop *loop;
	int listen_fd;
	struct loop_watch listener;
	bool tcp;
	struct conf *conf; /* of requests that begin */
	struct peers peers;
	/* ms; of the current configuration: the lists are in the order of
	 * their deadlines only if it is one for all connections */
	int64_t io_timeout;

	unsigned nconns;
	struct conn_list idle;    /* between requests; longest first */
	struct conn_list reading; /* in mid-request; by since */
	struct conn_list sending; /* in mid-answer; by since */
	struct conn_list linger;  /* by since */
	struct conn_list ready;   /* have input left, to be fed */
	unsigned nwriting;        /* a helper writes a part of their bodies */
	size_t unwritten;         /* bytes of these parts */
	unsigned nfreeing;        /* files that a helper frees */
	/* by arriving_link, besides the list that each is parked on; longest
	 * first */
	struct conn_list heads;  /* the parameters are not complete */
	struct conn_list bodies; /* they are, and the body is not */
	struct loop_timer timer; /* the first deadline, or before it */
	/* sent to itself for the list ready, and for the end */
	struct loop_message again;
	bool is_again; /* it is on its way */
	char input[CONN_INPUT];

	/* accepting */
	unsigned burst;    /* connections that are accepted in a row */
	unsigned singles;  /* before it may grow */
	int64_t resume_at; /* mono; accepting is paused until then, or 0 */
	int64_t warned_at; /* mono; when a lack of descriptors was logged */

	/* the end */
	unsigned accepted;      /* connections since mux_refuse() */
	bool refusing, refused; /* new connections: asked for, and done */
	bool take_waiting;      /* but accept the connections in the backlog */
	bool stopping;          /* only requests that are arriving begin */
	bool looked;  /* ... each connection was checked for such requests */
	bool stopped; /* no request begins any more */
	bool hasty;   /* no stream waits for its peer */
	bool closing, closed;
	int64_t arrive_until; /* mono; when stopping */
	int64_t until;        /* mono; when closing */
};

/* --- mux.c ---------------------------------------------------------------- */

/* The timer shall come at that time (mono) or before it. */
void mux_time(struct mux *m, int64_t at);

/* mux shall look again, and the list ready be served. */
void mux_again(struct mux *m);

/* --- conn.c --------------------------------------------------------------- */

/* Makes a connection of fd and takes fd over; NULL when there is no memory. */
struct conn *conn_new(struct mux *m, int fd);

/* Ends a connection, parked or held. */
void conn_close(struct conn *c);

/* Closes all connections of a list. */
void conn_close_all(struct conn_list *list);

/* Parks a connection until its descriptor is ready.  False: it cannot be
 * watched (logged), and is still held. */
bool conn_wait(struct conn *c, enum conn_state state);

/*
 * Parks a connection: it is served again when its descriptor is ready, or soon
 * if it has input left.  While mux stops, a connection that has been served and
 * has no further request is closed instead.  Once mux has stopped, every
 * connection that reads is closed.
 */
void conn_park(struct conn *c, enum conn_state state);

/* Takes a connection off its list, if it is on one. */
void conn_take(struct conn *c);

/* Gives a whole request to the owner, or drops it once mux has stopped. */
void conn_give(struct conn *c);

/* The answer is sent: goes on to the next request, or closes. */
void conn_next(struct conn *c);

/* Closes so that the last bytes sent reach the peer: with input unread, a
 * plain close() would reset the connection and destroy them. */
void conn_finish(struct conn *c);

/* The request in the log; NULL: none has begun. */
const struct log_request *conn_log(const struct conn *c);

/* --- conn_read.c, conn_body.c --------------------------------------------- */

/* Reads some of the available input and goes on as that says.  The connection
 * is held, and is no longer the caller's. */
void conn_read(struct conn *c);

/* Goes on after some input. */
void conn_go(struct conn *c, enum conn_step step);

/* The parameters are complete: sets what the body may be. */
void conn_body_begin(struct exchange *x);

/* Takes some bytes of the body. */
void conn_body_add(struct exchange *x, const void *data, size_t len);

/* The body is complete. */
void conn_body_end(struct exchange *x);

/* Frees the body; state says what is wrong with it.  The rest is only
 * drained. */
void conn_body_spoil(struct exchange *x, enum body_state state);

/* Frees a spool, which may be NULL; a helper does that if it is a file. */
void conn_body_free(struct mux *m, struct spool *s);

/* Frees the body, with its part of the client's share. */
void conn_body_drop(struct exchange *x);

/* Whether a part of the body has to be written by a helper before the next
 * step; then conn_go() is called with that step afterwards. */
bool conn_body_writes(struct conn *c, enum conn_step step);

/* Whether its body has been arriving for longer than io_timeout: what it holds
 * may then be given to other requests that need it. */
bool conn_body_is_slow(const struct conn *c);

/* --- exchange.c ----------------------------------------------------------- */

/* Sends what the peer did not take at once.  Afterwards the connection is
 * parked, at its next request, or ended; or its stream goes on. */
void exchange_send(struct exchange *x);

/* A parked stream is given up: its peer takes nothing. */
void exchange_give_up(struct exchange *x);

#endif
