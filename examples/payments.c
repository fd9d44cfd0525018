/*
 * A payment as a plain CGI program: reads {"amount": 4200} from stdin, charges
 * (appends a line to its ledger), and answers 201 with the payment's id.  It
 * has no memory of requests: run twice, it charges twice.
 *
 *	cc -o payments payments.c
 *
 * The same as a FastCGI program that stays (protocol = fastcgi), with libfcgi:
 *
 *	cc -DFASTCGI -o payments.fcgi payments.c -lfcgi
 *
 * The ledger is the file that PAYMENTS_LEDGER names, else "ledger" in the
 * working directory, which oncewrap makes the program's own folder.
 *
 * {"test": "busy"}  the first attempt is refused with 503, nothing charged
 * {"test": "down"}  every attempt is
 * {"test": "slow"}  waits until a process opens the FIFO "gate" in the working
 *                   directory for writing; without one, 5 seconds
 */
#define _POSIX_C_SOURCE 200809L

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef FASTCGI
#include <fcgi_stdio.h> /* stdin, stdout and stderr are the request's */
#endif

#define BODY_MAX 4095

static char body[BODY_MAX + 1];

static int
answer(const char *status, const char *text)
{
	printf("Status: %s\r\nContent-Type: application/json\r\n\r\n%s\n",
	    status, text);
	return fflush(stdout) != 0;
}

/* The value of a member, or NULL.  Enough of JSON for a flat object. */
static const char *
member(const char *name)
{
	const char *p = strstr(body, name);

	if (p == NULL)
		return NULL;
	p += strlen(name);
	p += strspn(p, " \t\r\n");
	if (*p++ != ':')
		return NULL;
	return p + strspn(p, " \t\r\n");
}

static int
test_is(const char *value)
{
	const char *p = member("\"test\"");

	return p != NULL && strncmp(p, value, strlen(value)) == 0;
}

static void
wait_at_gate(void)
{
	struct timespec five = { 5, 0 };
	int fd;

	/* A FIFO's open returns when the other side is opened too. */
	fd = open("gate", O_RDONLY);
	if (fd == -1)
		nanosleep(&five, NULL);
	else
		close(fd);
}

/* 0, or -1 if not even a random name could be had. */
static int
make_id(char id[21])
{
	unsigned char r[8];
	int fd, i, n;

	fd = open("/dev/urandom", O_RDONLY);
	if (fd == -1)
		return -1;
	n = (int)read(fd, r, sizeof(r));
	close(fd);
	if (n != (int)sizeof(r))
		return -1;
	memcpy(id, "pay_", 4);
	for (i = 0; i < 8; i++)
		snprintf(id + 4 + 2 * i, 3, "%02x", r[i]);
	return 0;
}

static int
open_ledger(void)
{
	const char *ledger = getenv("PAYMENTS_LEDGER");

	return open(ledger != NULL ? ledger : "ledger",
	    O_WRONLY | O_CREAT | O_APPEND, 0644);
}

/* One line in one write, on the disk when it returns 0. */
static int
charge(int fd, const char *id, long amount)
{
	const char *key = getenv("ONCE_KEY"), *attempt = getenv("ONCE_ATTEMPT");
	char line[512];
	int len;

	len = snprintf(line, sizeof(line),
	    "%s amount=%ld attempt=%s key=%.300s\n", id, amount,
	    attempt != NULL ? attempt : "-", key != NULL ? key : "-");
	if (write(fd, line, (size_t)len) != len || fsync(fd) != 0) {
		close(fd);
		return -1;
	}
	return close(fd);
}

static int
handle(void)
{
	const char *attempt = getenv("ONCE_ATTEMPT"), *p;
	char id[21], text[128], *end;
	long amount;
	size_t n;
	int fd;

	n = fread(body, 1, BODY_MAX, stdin);
	body[n] = '\0'; /* the request before may have been longer */
	if (ferror(stdin) || n == BODY_MAX)
		return answer(
		    "413 Content Too Large", "{\"error\": \"body too large\"}");
	p = member("\"amount\"");
	amount = p != NULL ? strtol(p, &end, 10) : 0;
	if (p == NULL || end == p || amount <= 0)
		return answer("400 Bad Request",
		    "{\"error\": \"amount missing, or not above 0\"}");

	/* Nothing has been charged yet: a 5xx says "send it again". */
	if (test_is("\"down\"") ||
	    (test_is("\"busy\"") &&
		(attempt == NULL || strcmp(attempt, "1") == 0)))
		return answer("503 Service Unavailable",
		    "{\"error\": \"the bank does not answer\"}");
	if (test_is("\"slow\""))
		wait_at_gate();
	if (make_id(id) != 0 || (fd = open_ledger()) == -1) {
		perror("payments: ledger");
		return answer(
		    "503 Service Unavailable", "{\"error\": \"no ledger\"}");
	}

	/*
	 * From here on the ledger may hold the charge, so a failure must not
	 * say "send it again": exit 1 leaves the outcome unknown.
	 */
	if (charge(fd, id, amount) != 0) {
		perror("payments: ledger");
		return 1;
	}
	snprintf(text, sizeof(text), "{\"payment\": \"%s\", \"amount\": %ld}",
	    id, amount);
	return answer("201 Created", text);
}

int
main(void)
{
#ifdef FASTCGI
	/* The environment is the request's until the next FCGI_Accept(). */
	while (FCGI_Accept() >= 0)
		FCGI_SetExitStatus(handle());
	return 0;
#else
	return handle();
#endif
}
