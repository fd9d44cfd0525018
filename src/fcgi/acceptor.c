/*
 * New connections: which may connect, and how many.
 *
 * When no descriptor or no room is left, a connection is closed for the new
 * one: the one that has been idle for longest or, if none is idle, the one
 * that has been sending its parameters for longest, or its body for longer than
 * io_timeout.  No other connection is closed while its body arrives, and none
 * after its request has arrived.  New connections then wait in the socket's
 * backlog until another one ends.  They lose nothing by it, and closing them
 * would make the web server report an error at once.
 */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "user.h"

#include "conn.h"
#include "acceptor.h"

/* Connections accepted in a row before the others are served. */
#define BURST 64
/* Rounds that accept one connection before two are tried. */
#define SINGLES 16
/* How long new connections are left waiting (ms). */
#define PAUSE 100
/* A connection may make way for another one if its head is older (ms). */
#define HEAD_GRACE 1000
/* The interval of warnings (ms). */
#define WARN_INTERVAL 10000

/* No room: new connections wait in the socket's backlog. */
static void
pause_accepting(struct mux *m, const char *why)
{
	int64_t now = clock_mono();

	if (m->warned_at == 0 || now - m->warned_at >= WARN_INTERVAL) {
		m->warned_at = now;
		log_event(
		    LOG_WARN, "accepting-paused", NULL, LOG_S("why", why));
	}
	loop_unwatch(m->loop, &m->listener);
	m->resume_at = now + PAUSE;
	mux_time(m, m->resume_at);
}

/*
 * Finds the connection that has been idle for longest.  A peer can send its
 * next request on another connection.  But a connection on which a request has
 * just arrived is left out, because closing would reset it.
 */
static struct conn *
find_idle(struct mux *m)
{
	struct conn *c;
	int unread;

	TAILQ_FOREACH(c, &m->idle, link)
	if (ioctl(c->fd, FIONREAD, &unread) == 0 && unread == 0)
		return c;
	return NULL;
}

/* Finds the connection that has been sending its parameters for longest, if
 * that is too long for a web server, which sends them at once. */
static struct conn *
find_slow(struct mux *m)
{
	struct conn *c = TAILQ_FIRST(&m->heads);

	return c != NULL && clock_mono() - c->arriving_since >= HEAD_GRACE
	    ? c
	    : NULL;
}

/* Finds the connection whose body has been arriving for longest, if that is too
 * long. */
static struct conn *
find_slow_body(struct mux *m)
{
	struct conn *c = TAILQ_FIRST(&m->bodies);

	/* One that is being read or written now is on no other list. */
	return c != NULL && c->list != NULL && conn_body_is_slow(c) ? c : NULL;
}

/* Closes a connection that holds no whole request, to make room for another
 * one. */
static bool
acceptor_make_room(struct mux *m)
{
	const char *slow = NULL;
	struct conn *c;

	if ((c = find_idle(m)) == NULL && (c = find_slow(m)) != NULL)
		slow = "reading the parameters";
	if (c == NULL && (c = find_slow_body(m)) != NULL)
		slow = "reading the body";
	if (c == NULL)
		return false;
	if (slow != NULL)
		log_event(LOG_INFO, "peer-stalled", conn_log(c),
		    LOG_S("while", slow), LOG_S("note", "its place is needed"));
	conn_close(c);
	return true;
}

static bool
is_allowed(const struct peers *peers, uid_t uid)
{
	size_t i;

	if (peers->anyone)
		return true;
	for (i = 0; i < peers->n; i++)
		if (peers->uid[i] == uid)
			return true;
	return false;
}

static bool
may_connect(struct mux *m, int fd)
{
	struct ucred cred = { .uid = (uid_t)-1 };
	socklen_t len = sizeof(cred);
	bool may;

	may = m->peers.anyone ||
	    (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
		is_allowed(&m->peers, cred.uid));
	if (may)
		return true;
	log_event(LOG_WARN, "peer-refused", NULL, LOG_I("uid", cred.uid),
	    LOG_I("pid", cred.pid));
	return false;
}

static void
accept_peer(struct mux *m, int fd)
{
	struct conn *c;
	int on = 1;

	if (!may_connect(m, fd)) {
		close(fd);
		return;
	}
	if (m->tcp)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	c = conn_new(m, fd);
	if (c == NULL) {
		log_event(LOG_ERROR, "connection-dropped", NULL,
		    LOG_S("why", "no memory"));
		close(fd);
		return;
	}
	conn_read(c); /* most have a request to read by now */
}

/* Without a free descriptor accept4() fails before it looks into the
 * backlog. */
static bool
anyone_waits(const struct mux *m)
{
	struct pollfd pfd = { .fd = m->listen_fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

/* Makes room for one more connection.  False: none waits, or accepting is
 * paused for that reason. */
static bool
have_room(struct mux *m, const char *why)
{
	if (!anyone_waits(m))
		return false;
	if (acceptor_make_room(m))
		return true;
	pause_accepting(m, why);
	return false;
}

/* Accepts one connection.  *fd: -1 for one that has failed.  False: there is
 * none, or no room. */
static bool
accept_one(struct mux *m, int *fd)
{
	int error;

	if (m->nconns >= m->owner.connections &&
	    !have_room(m, "too many connections"))
		return false;
	*fd = accept4(m->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (*fd != -1)
		return true;
	error = errno;
	if (error == EMFILE || error == ENFILE)
		return have_room(m, strerror(error));
	if (error == EAGAIN)
		return false;
	if (error == EINTR || error == ECONNABORTED)
		return true; /* it belongs to the new connection */
	pause_accepting(m, strerror(error));
	return false;
}

/*
 * An accept4() that finds nothing costs as much as one that finds a connection,
 * and more than a round of the loop.  So where connections come one by one, one
 * is tried in a round, and where they wait, many.
 */
static void
learn_accepts(struct mux *m, bool all)
{
	if (!all) {
		m->burst = 1;
		m->singles = SINGLES;
	} else if (m->singles > 0)
		m->singles--;
	else if (m->burst < BURST)
		m->burst *= 2;
}

unsigned
acceptor_run(struct mux *m)
{
	const unsigned burst = m->burst;
	unsigned accepted = 0, i;
	int fd;

	for (i = 0; i < burst && accept_one(m, &fd); i++)
		if (fd != -1) {
			accepted++;
			accept_peer(m, fd);
		}
	learn_accepts(m, i == burst);
	return accepted;
}

static void
acceptor_ready(struct loop_watch *w, unsigned events)
{
	struct mux *m = OWNER(w, struct mux, listener);

	(void)events;
	if (!m->refusing)
		(void)acceptor_run(m);
}

enum rc
acceptor_start(struct mux *m)
{
	m->burst = 1;
	m->listener = (struct loop_watch){ .ready = acceptor_ready, .fd = -1 };
	return loop_watch(m->loop, &m->listener, m->listen_fd, EPOLLIN);
}

void
acceptor_resume(struct mux *m)
{
	enum rc rc = loop_watch(m->loop, &m->listener, m->listen_fd, EPOLLIN);

	m->resume_at = 0;
	if (rc != RC_OK)
		pause_accepting(m, rc_text(rc));
}

void
acceptor_stop(struct mux *m)
{
	m->resume_at = 0;
	loop_unwatch(m->loop, &m->listener);
}

/* --- allow_peers: names -> user ids, once for each configuration ---------- */

static bool
find_peer(const char *name, uid_t *uid)
{
	struct user user;
	char why[256];

	if (user_id(name, uid))
		return true;
	if (!user_find(name, NULL, &user, why, sizeof(why)))
		return false;
	*uid = user.uid;
	return true;
}

bool
acceptor_find_peers(
    const struct conf_list *list, struct peers *peers, const char **unknown)
{
	size_t i;

	*unknown = NULL;
	memset(peers, 0, sizeof(*peers));
	if (list->n == 0) {
		peers->anyone = true;
		return true;
	}
	peers->uid = calloc(list->n, sizeof(*peers->uid));
	if (peers->uid == NULL)
		return false;
	for (i = 0; i < list->n; i++) {
		if (find_peer(list->item[i], &peers->uid[peers->n]))
			peers->n++;
		else if (*unknown == NULL)
			*unknown = list->item[i];
	}
	return true;
}

void
acceptor_free_peers(struct peers *peers)
{
	free(peers->uid);
	memset(peers, 0, sizeof(*peers));
}
