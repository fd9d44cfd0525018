/*
 * A CGI program (RFC 3875) that hands its request to the socket of oncewrap,
 * for web servers that speak no FastCGI.
 *
 * The body is sent, and then the answer is read: oncewrap begins no program
 * before it has all of the body.  If it ends the connection before that, the
 * rest is not sent.  If the web server ends this program, the connection ends
 * with it: a request that has not arrived whole is not run, and one that runs
 * goes on.
 *
 * No signal is caught here, so no call ends with EINTR.
 */
#include "config.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "fcgi.h"
#include "limit.h"
#include "response.h"
#include "run_wait.h"
#include "oncectl.h"

/* How long to wait for a place in the socket's queue (ms). */
#define CONNECT_WAIT 5000

/* How long the rest of a body is read that the answer did not need (ms). */
#define DRAIN_WAIT 2000

/* oncewrap hands this variable on to the programs that it runs, so one that
 * has it is not the web server's. */
#define ROLE "FCGI_ROLE"

struct cgi {
	int fd;             /* the connection */
	uint64_t body_left; /* bytes of the body that are still to be read */
	struct fcgi_client client;
	bool answered; /* a part of the answer was copied */
};

/* Answers the request without oncewrap; sentence is for the client.  Unless
 * the status is 502, nothing was done. */
static int
cgi_refuse(int status, const char *sentence)
{
	const char *reason = response_reason(status);

	printf("Status: %d %s\r\nContent-Type: text/plain\r\n%s\r\n"
	       "%d %s\n%s\n",
	    status, reason, status == 503 ? "Retry-After: 5\r\n" : "", status,
	    reason, sentence);
	return status == 502 ? ONCECTL_REFUSED : ONCECTL_AGAIN;
}

/* --- the request ---------------------------------------------------------- */

/* The declared length of the body, or NULL.  busybox httpd takes bodies of POST
 * alone: of another one this program gets a part, and its length only as the
 * field that the client has sent. */
static const char *
cgi_declared(void)
{
	const char *length = getenv("CONTENT_LENGTH");

	if (length == NULL || *length == '\0')
		length = getenv("HTTP_CONTENT_LENGTH");
	return length != NULL && *length != '\0' ? length : NULL;
}

/* How many bytes of standard input are the body; false: a body of unknown
 * length is said to be chunked, and some web servers hand it on undecoded. */
static bool
cgi_body_length(uint64_t *n)
{
	const char *length = cgi_declared();
	const char *method = getenv("REQUEST_METHOD");
	const char *coding = getenv("HTTP_TRANSFER_ENCODING");

	if (length != NULL) {
		/* oncewrap refuses what is no number. */
		*n = strspn(length, "0123456789") == strlen(length)
		    ? strtoull(length, NULL, 10)
		    : 0;
		return true;
	}
	*n = UINT64_MAX;
	if (coding != NULL && *coding != '\0')
		return false;
	/* Some web servers leave the connection itself as standard input, which
	 * does not end before the client has its answer. */
	if (method == NULL || strcmp(method, "GET") == 0 ||
	    strcmp(method, "HEAD") == 0 || strcmp(method, "OPTIONS") == 0)
		*n = 0;
	return true;
}

/* Puts the request without its body into out. */
static enum rc
cgi_begin(struct buf *out)
{
	static char role[] = ROLE "=RESPONDER";
	const char *declared = cgi_declared();
	char length[64];
	size_t n = 0;
	char **variables;
	enum rc rc;

	while (environ[n] != NULL)
		n++;
	if ((variables = calloc(n + 3, sizeof(*variables))) == NULL)
		return RC_NOMEM;
	memcpy(variables, environ, n * sizeof(*variables));
	variables[n++] = role;
	if (declared != NULL && getenv("CONTENT_LENGTH") != declared) {
		snprintf(length, sizeof(length), "CONTENT_LENGTH=%s", declared);
		variables[n] = length;
	}
	rc = fcgi_client_begin(out, variables, "PATH");
	free(variables);
	return rc;
}

/* Writes all of it.  SIGPIPE is ignored. */
static bool
cgi_write(int fd, const void *bytes, size_t n)
{
	const char *p = bytes;
	ssize_t done;

	for (; n > 0; p += done, n -= (size_t)done)
		if ((done = write(fd, p, n)) == -1)
			return false;
	return true;
}

/* Sends the head, which is in out, and the body.  At the end of standard input
 * the body ends, however long it should be: oncewrap compares that with
 * CONTENT_LENGTH.  That the connection has ended is no error before the answer
 * was read. */
static enum rc
cgi_send(struct cgi *cgi, struct buf *out)
{
	char bytes[FCGI_CONTENT_MAX];
	size_t size;
	ssize_t n;
	enum rc rc;

	do {
		size = sizeof(bytes);
		if (size > cgi->body_left)
			size = (size_t)cgi->body_left;
		n = size > 0 ? read(STDIN_FILENO, bytes, size) : 0;
		if (n == -1)
			return RC_IO;
		cgi->body_left = n == 0 ? 0 : cgi->body_left - (size_t)n;
		if ((rc = fcgi_client_stdin(out, bytes, (size_t)n)) != RC_OK ||
		    !cgi_write(cgi->fd, out->data, out->len))
			return rc;
		buf_clear(out);
	} while (n > 0);
	return RC_OK;
}

/* --- the answer ----------------------------------------------------------- */

/* Copies what has come.  False: the answer is over, or the web server takes no
 * more of it. */
static bool
cgi_copy(struct cgi *cgi, const unsigned char *p, size_t len)
{
	struct fcgi_client *c = &cgi->client;
	size_t used;

	for (; len > 0; p += used, len -= used) {
		switch (fcgi_client_feed(c, p, len, &used)) {
		case FCGI_CLIENT_MORE:
			break;
		case FCGI_CLIENT_STDOUT:
			cgi->answered = true;
			if (!cgi_write(STDOUT_FILENO, c->bytes, c->len))
				return false;
			break;
		case FCGI_CLIENT_STDERR:
			(void)cgi_write(STDERR_FILENO, c->bytes, c->len);
			break;
		case FCGI_CLIENT_END:
		case FCGI_CLIENT_ERROR:
			return false;
		}
	}
	return true;
}

/* Copies the answer until it or the connection ends. */
static void
cgi_receive(struct cgi *cgi)
{
	unsigned char bytes[65536];
	ssize_t n;

	do
		n = read(cgi->fd, bytes, sizeof(bytes));
	while (n > 0 && cgi_copy(cgi, bytes, (size_t)n));
}

/* Says how it ended. */
static int
cgi_end(const struct cgi *cgi, const char *socket, enum rc rc)
{
	const struct fcgi_client *c = &cgi->client;

	if (rc == RC_OK && c->over && c->why == NULL && cgi->answered)
		return ONCECTL_DONE;
	warnx("%s: %s", socket,
	    rc != RC_OK          ? "the body of the request cannot be read"
		: c->why != NULL ? c->why
		: c->refused     ? "it has refused the request"
				 : "the answer is not whole");
	if (cgi->answered)
		return ONCECTL_REFUSED;
	if (rc != RC_OK)
		return cgi_refuse(400, "The request did not arrive whole.");
	if (c->refused)
		return cgi_refuse(503, "The request was not begun.");
	return cgi_refuse(502,
	    "There is no answer. The same request with the same key can be "
	    "sent again.");
}

/* The connection is there. */
static int
cgi_hand_over(struct cgi *cgi, const char *socket)
{
	struct buf out;
	int status;
	enum rc rc;

	/* run_wait_connect() has made it for poll(2). */
	(void)fcntl(cgi->fd, F_SETFL, 0);
	buf_init(&out, (size_t)2 * LIMIT_ENV + FCGI_CONTENT_MAX + 64);
	fcgi_client_init(&cgi->client);
	if ((rc = cgi_begin(&out)) == RC_OK) {
		rc = cgi_send(cgi, &out);
		if (rc == RC_OK)
			cgi_receive(cgi);
		status = cgi_end(cgi, socket, rc);
	} else {
		warnx("the variables of the request: %s", rc_text(rc));
		status =
		    cgi_refuse(400, "The fields of the request are too long.");
	}
	buf_free(&out);
	return status;
}

/* Reads what is left of the body: some web servers lose an answer that came
 * before they could hand on all of it. */
static void
cgi_drain(const struct cgi *cgi)
{
	const int64_t until = clock_mono() + DRAIN_WAIT;
	struct pollfd pfd = { .fd = STDIN_FILENO, .events = POLLIN };
	uint64_t left = cgi->body_left;
	char bytes[65536];
	ssize_t n = 1;

	while (left > 0 && n > 0 && clock_mono() < until &&
	    poll(&pfd, 1, DRAIN_WAIT) == 1) {
		n = read(STDIN_FILENO, bytes,
		    left < sizeof(bytes) ? (size_t)left : sizeof(bytes));
		left -= n > 0 ? (uint64_t)n : 0;
	}
}

/* Connects, and hands the request on. */
static int
cgi_run(struct cgi *cgi, const char *socket)
{
	const char *why;
	int status, error;

	cgi->fd =
	    run_wait_connect(socket, clock_mono() + CONNECT_WAIT, &error, &why);
	if (cgi->fd == -1) {
		warnx("%s: %s (%s)", socket, why, strerror(error));
		return cgi_refuse(503,
		    "The service cannot be reached, and nothing was done. The "
		    "same request can be sent again.");
	}
	status = cgi_hand_over(cgi, socket);
	close(cgi->fd);
	return status;
}

int
oncectl_cgi(struct oncectl *ctl)
{
	struct cgi cgi = { .fd = -1 };
	struct conf *conf = NULL;
	struct conf_error error = { "name the socket of oncewrap: unix:/path, "
				    "/path or tcp:host:port" };
	int status;

	(void)signal(SIGPIPE, SIG_IGN);
	if (!cgi_body_length(&cgi.body_left)) {
		status = cgi_refuse(411, "The request must say its length.");
	} else if (getenv(ROLE) != NULL) {
		warnx("oncewrap has run this program itself: its route needs a "
		      "handler");
		status = cgi_refuse(500, "The service is not set up.");
	} else if (ctl->nargs == 0 || (conf = conf_default(&error)) == NULL ||
	    !conf_set(conf, "socket", ctl->arg[0], &error) ||
	    strncmp(conf->socket, "fd:", 3) == 0) {
		warnx("cgi: %s", error.text);
		status = cgi_refuse(500, "The service is not set up.");
	} else {
		status = cgi_run(&cgi, conf->socket);
	}
	fflush(stdout);
	cgi_drain(&cgi);
	conf_unref(conf);
	return status;
}
