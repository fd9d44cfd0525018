/*
 * The listening socket: made here, or inherited.
 *
 * A unix socket is made with its mode, and gets its owner before anything
 * listens on it, so a wrong user can connect at no moment.  An inherited
 * socket is used unchanged, but it must listen.
 *
 * This runs once, before there are threads: umask(2) belongs to the process.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "address.h"
#include "systemd.h"
#include "user.h"

#include "listen.h"

/* Makes "file:line: text" of an option that is at fault (NULL: none is), as far
 * as file and line are known.  Returns -1, and leaves errno unchanged. */
static int __attribute__((format(printf, 4, 5)))
listen_fail(const struct conf *conf, const char *option, struct conf_error *err,
    const char *format, ...)
{
	const conf_line line =
	    option != NULL ? conf_line_of_server(conf, option) : 0;
	int saved = errno;
	size_t n = 0;
	va_list ap;

	err->text[0] = '\0';
	if (line != 0 && conf->file != NULL)
		n = (size_t)snprintf(
		    err->text, sizeof(err->text), "%s:%u: ", conf->file, line);
	if (n >= sizeof(err->text))
		n = 0;
	va_start(ap, format);
	vsnprintf(err->text + n, sizeof(err->text) - n, format, ap);
	va_end(ap);
	errno = saved;
	return -1;
}

/* errno says what failed with that socket. */
static int
listen_error(const struct conf *conf, const char *name, struct conf_error *err)
{
	return listen_fail(
	    conf, "socket", err, "%s: %s", name, strerror(errno));
}

static bool
is_listening(int fd)
{
	int on = 0;
	socklen_t len = sizeof(on);

	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len) == 0 &&
	    on != 0;
}

/*
 * Prepares an inherited socket: nonblocking, close-on-exec, and above the
 * standard descriptors, which then are /dev/null.
 */
static int
listen_adopt(int fd)
{
	int flags, null, moved = fd;

	if (fd <= STDERR_FILENO) {
		moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		if (moved == -1)
			return -1;
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
		/* dup2() clears close-on-exec: 0 to 2 are always open. */
		if (null == -1 || dup2(null, fd) == -1) {
			if (null != -1)
				close(null);
			close(moved);
			return -1;
		}
		close(null);
	}
	flags = fcntl(moved, F_GETFL);
	if (flags == -1 || fcntl(moved, F_SETFL, flags | O_NONBLOCK) == -1 ||
	    fcntl(moved, F_SETFD, FD_CLOEXEC) == -1)
		return -1;
	return moved;
}

/* Returns 0 if a process listens there, else the errno value of the attempt to
 * connect. */
static int
listen_knock(const struct sockaddr_un *addr)
{
	int fd, error = 0;

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return errno;
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == -1)
		error = errno;
	close(fd);
	/* EAGAIN: a process listens, but does not accept fast enough. */
	return error == EAGAIN ? 0 : error;
}

/*
 * Checks the file at the path of a unix socket, and removes it if it is the
 * socket of a process that is gone.
 */
static int
make_way(const struct conf *conf, const struct sockaddr_un *addr,
    struct conf_error *err)
{
	const char *path = addr->sun_path;
	unsigned wait;
	struct stat st;
	int error;

	if (lstat(path, &st) == -1) {
		if (errno == ENOENT)
			return 0;
		return listen_error(conf, path, err);
	}
	if (!S_ISSOCK(st.st_mode))
		return listen_fail(conf, "socket", err,
		    "%s: exists and is not a socket", path);
	/*
	 * A handler that was just being started when its oncewrap was killed
	 * holds the socket until it notices: try more than once.
	 */
	for (wait = 10; (error = listen_knock(addr)) == 0 && wait < 320;
	     wait *= 2)
		usleep(wait * 1000);
	if (error == 0)
		return listen_fail(conf, "socket", err,
		    "%s: already in use by another process", path);
	if (error != ECONNREFUSED && error != ENOENT)
		return listen_fail(
		    conf, "socket", err, "%s: %s", path, strerror(error));
	if (unlink(path) == -1 && errno != ENOENT)
		return listen_fail(conf, "socket", err,
		    "%s: cannot be replaced: %s", path, strerror(errno));
	return 0;
}

/* Resolves socket_user and socket_group; -1 where they are not set. */
static int
find_owner(
    const struct conf *conf, uid_t *uid, gid_t *gid, struct conf_error *err)
{
	struct user user;
	char why[256];

	*uid = (uid_t)-1;
	*gid = (gid_t)-1;
	if (conf->socket_user != NULL) {
		if (!user_id(conf->socket_user, &user.uid) &&
		    !user_find(
			conf->socket_user, NULL, &user, why, sizeof(why)))
			return listen_fail(
			    conf, "socket_user", err, "socket_user: %s", why);
		*uid = user.uid;
	}
	if (conf->socket_group != NULL) {
		if (!user_find(
			NULL, conf->socket_group, &user, why, sizeof(why)))
			return listen_fail(
			    conf, "socket_group", err, "socket_group: %s", why);
		*gid = user.gid;
	}
	return 0;
}

/*
 * Gives the socket's file its owner.  If other users may write the folder, the
 * name may stand for another file by now.  So the file is opened first, and is
 * changed only if it is a socket and has no other name.
 */
static int
listen_give(const struct conf *conf, const char *path, struct conf_error *err)
{
	struct stat st;
	uid_t uid;
	gid_t gid;
	int fd;

	if (find_owner(conf, &uid, &gid, err) == -1)
		return -1;
	if (uid == (uid_t)-1 && gid == (gid_t)-1)
		return 0;
	fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd != -1 && fstat(fd, &st) == 0) {
		errno = EEXIST;
		if (S_ISSOCK(st.st_mode) && st.st_nlink == 1 &&
		    fchownat(fd, "", uid, gid, AT_EMPTY_PATH) == 0) {
			close(fd);
			return 0;
		}
	}
	(void)listen_fail(conf,
	    conf->socket_user != NULL ? "socket_user" : "socket_group", err,
	    "%s: cannot change its owner: %s", path, strerror(errno));
	if (fd != -1)
		close(fd);
	return -1;
}

static int
open_unix(const struct conf *conf, const char *path, char **unlink_path,
    struct conf_error *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	bool bound = false;
	mode_t mask;
	int fd = -1, rc;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (make_way(conf, &addr, err) == -1)
		return -1;
	if ((*unlink_path = strdup(path)) == NULL) {
		listen_fail(conf, NULL, err, "no memory");
		goto out;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd == -1)
		goto fail;
	/* The file takes its mode from the socket, so that nothing has to be
	 * changed by name. */
	mask = umask(0);
	rc = fchmod(fd, (mode_t)conf->socket_mode);
	if (rc == 0)
		rc = bind(fd, (struct sockaddr *)&addr, sizeof(addr));
	umask(mask);
	if (rc == -1)
		goto fail;
	bound = true;
	if (listen_give(conf, path, err) == -1)
		goto out;
	if (listen(fd, SOMAXCONN) == 0)
		return fd;
fail:
	(void)listen_error(conf, path, err);
out:
	if (bound)
		unlink(path);
	if (fd != -1)
		close(fd);
	free(*unlink_path);
	*unlink_path = NULL;
	return -1;
}

static int
listen_on(const struct addrinfo *ai)
{
	int fd, error, on = 1;

	fd = socket(
	    ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == -1 ||
	    bind(fd, ai->ai_addr, ai->ai_addrlen) == -1 ||
	    listen(fd, SOMAXCONN) == -1) {
		error = errno;
		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

static int
open_tcp(const struct conf *conf, const char *where, struct conf_error *err)
{
	struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL, *ai;
	char host[ADDRESS_HOST];
	const char *port = address_split(where, host);
	int fd = -1, rc;

	rc = getaddrinfo(host, port, &hints, &found);
	if (rc != 0)
		return listen_fail(conf, "socket", err, "tcp:%s: %s", where,
		    rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
	for (ai = found; ai != NULL && fd == -1; ai = ai->ai_next)
		fd = listen_on(ai);
	if (fd == -1)
		listen_fail(
		    conf, "socket", err, "tcp:%s: %s", where, strerror(errno));
	freeaddrinfo(found);
	return fd;
}

static int
open_fd(
    const struct conf *conf, int fd, const char *name, struct conf_error *err)
{
	if (!is_listening(fd))
		return listen_fail(
		    conf, "socket", err, "%s: not a listening socket", name);
	fd = listen_adopt(fd);
	if (fd == -1)
		return listen_error(conf, name, err);
	return fd;
}

/* Returns the one socket that systemd passed. */
static int
open_systemd(const struct conf *conf, int fds, struct conf_error *err)
{
	if (fds == -1)
		return listen_fail(conf, NULL, err, "LISTEN_FDS: not a number");
	if (fds != 1)
		return listen_fail(conf, NULL, err,
		    "LISTEN_FDS: one socket is wanted, not %d; -s fd:N names "
		    "one",
		    fds);
	return open_fd(conf, SYSTEMD_FIRST, "LISTEN_FDS", err);
}

/* Closes the passed descriptors other than wanted (-1: all of them).  A socket
 * that is open and accepts nothing would keep its clients waiting. */
static void
close_others(int fds, long wanted)
{
	int i;

	for (i = SYSTEMD_FIRST; i < SYSTEMD_FIRST + fds; i++) {
		if (fcntl(i, F_GETFD) == -1)
			break; /* LISTEN_FDS is too large */
		if (i != wanted && is_listening(i))
			close(i);
	}
}

/* SO_PEERCRED names the peer on unix sockets only. */
static bool
peers_can_be_told(int fd)
{
	int domain = 0;
	socklen_t len = sizeof(domain);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
	    domain == AF_UNIX;
}

static int
open_any(const struct conf *conf, char **path, struct conf_error *err)
{
	const char *name = conf->socket;
	int fds = systemd_descriptors();
	const bool is_fd = name != NULL && strncmp(name, "fd:", 3) == 0;
	const int fd = is_fd ? (int)strtol(name + 3, NULL, 10) : -1;

	if (name == NULL && fds != 0)
		return open_systemd(conf, fds, err);
	if (name == NULL) {
		if (is_listening(STDIN_FILENO))
			return open_fd(conf, STDIN_FILENO, "descriptor 0", err);
		return listen_fail(conf, NULL, err,
		    "no socket to listen on: name one with -s or in the "
		    "configuration, or have the web server start oncewrap "
		    "with one as descriptor 0");
	}
	close_others(fds, fd);
	if (is_fd)
		return open_fd(conf, fd, name, err);
	if (strncmp(name, "unix:", 5) == 0)
		return open_unix(conf, name + 5, path, err);
	return open_tcp(conf, name + strlen("tcp:"), err);
}

int
listen_open(const struct conf *conf, char **path, struct conf_error *err)
{
	int fd;

	*path = NULL;
	fd = open_any(conf, path, err);
	if (fd == -1)
		return -1;
	if (conf->allow_peers.n > 0 && !peers_can_be_told(fd)) {
		close(fd);
		return listen_fail(conf, "allow_peers", err,
		    "allow_peers: works with a unix socket only");
	}
	return fd;
}
