/*
 * A handler that does what the request's body says, and whose deeds outlive
 * it: each is a line of the ledger, synced before the next step.
 *
 *	deeds FOLDER[@PORT] [find | deliver]
 *
 * With PORT this is a guest of qemu, and a recorder on the host keeps the lines
 * instead of files in FOLDER (tests/vm/powercuts/recorder.py).
 *
 *	DEED TIME BORN KEY PATH USER DOWNSTREAM ATTEMPT RUN PID PARENT WHAT
 *
 * with TIME and BORN, since when the handler's process may have had this
 * request, in milliseconds, and DEED
 *
 *	started		first of all
 *	overlap		another attempt's processes were there
 *	acted		what it was asked to do
 *	saying, said	before and after it has committed, in the store's own
 *			database, a ride, its effect and its answer
 *	late, late-said	the same by what outlives it
 *	done		all but to answer and to end as WHAT says
 *
 * The body is one word that is not looked at, and one for each attempt, the
 * last of them for all that follow:
 *
 *	BEFORE.AFTER.SIZE.CHILD.WHAT
 *
 * milliseconds before and after the act, bytes of answer, milliseconds that a
 * process outlives it, and how it ends (see ends[]).  RUN differs from run to
 * run, and is in the answer.
 *
 * It is FastCGI, and stays, if descriptor 0 is a socket that listens.  Now and
 * then such a process ends before it reads a request, or after its answer.
 *
 * With find it says what became of the runs for ONCE_DOWNSTREAM_KEY, as a
 * program does that finds out what happened; now and then that fails.
 *
 * With deliver it delivers an effect, whose payload is a run: a line, synced,
 * of the file deliveries; before or after that it may fail, or die.
 */
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <fcgiapp.h>
#include <sqlite3.h>

/* The environment of each request that a process that stays gets. */
extern char **environ;

static FCGX_Request request;
static int stays;

static const char *folder, *key, *path, *user, *downstream, *attempt;
static char run[18]; /* a newline has room while it is read */
static long born;
static unsigned port; /* of the recorder, or 0 */

#define LEAVES (-1)

static const struct end {
	const char *name;
	int acts, status;        /* 0: no response */
	const char *fields;      /* of the response */
	int signal, exit_status; /* LEAVES: it ends without an end */
	const char *says;        /* after its own answer: what it prints */
} ends[] = {
	{ "created", 1, 201, "", 0, 0 },
	{ "refused", 1, 404, "", 0, 0 },
	{ "busy", 0, 429, "", 0, 0 },
	{ "failed", 0, 500, "", 0, 0 },
	{ "away", 0, 503, "", 0, 0 },
	{ "tempfail", 0, 503, "", 0, 75 },
	{ "tempfail-mute", 0, 0, "", 0, 75 },
	{ "not-executed", 0, 409, "Idempotency-Outcome: not-executed\r\n", 0,
	    0 },
	{ "gateway", 1, 502, "", 0, 0 },
	{ "unsure", 1, 202, "Idempotency-Outcome: unknown\r\n", 0, 0 },
	{ "mute", 1, 0, "", 0, 0 },
	{ "exit", 1, 201, "", 0, 1 },
	{ "killed", 1, 201, "", SIGKILL, 0 },
	{ "left", 1, 201, "", LEAVES, 0 },
	{ "crashed", 0, 0, "", SIGSEGV, 0 },
	{ "said-mute", 1, 0, "", 0, 0, "" },
	{ "said-garbage", 1, 0, "", 0, 0, "no field, no answer" },
	{ "said-failed", 1, 0, "", 0, 0, "Status: 500\r\n\r\nnobody's\n" },
	{ "said-exit", 1, 0, "", 0, 1, "Status: 200\r\n\r\nhalf" },
	{ "said-tempfail", 1, 0, "", 0, 75, "" },
	{ "said-killed", 1, 0, "", SIGKILL, 0, "" },
};

_Noreturn static void
fail(const char *what)
{
	perror(what);
	exit(99);
}

static long
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Start of this process (ms since boot), rounded down to a clock tick. */
static long
born_at(void)
{
	unsigned long long ticks = 0;
	char line[4096], *p;
	size_t n;
	FILE *f;

	if ((f = fopen("/proc/self/stat", "r")) == NULL)
		fail("/proc/self/stat");
	n = fread(line, 1, sizeof(line) - 1, f);
	line[n] = '\0';
	fclose(f);
	/* Field 22; the second is the name, in parentheses. */
	if ((p = strrchr(line, ')')) == NULL ||
	    sscanf(p + 1,
		" %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s"
		" %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
		&ticks) != 1)
		fail("starttime");
	return (long)(ticks * 1000 / (unsigned long long)sysconf(_SC_CLK_TCK));
}

static int
open_in_folder(const char *name, int flags)
{
	char file[4096];
	int fd;

	snprintf(file, sizeof(file), "%s/%s", folder, name);
	if ((fd = open(file, flags, 0666)) == -1)
		fail(file);
	return fd;
}

/* Says one line to the recorder, and waits for its answer of a line. */
static void
ask_recorder(const char *what, const char *line, char *answer, size_t size)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(0x0a000202) };
	size_t got = 0;
	FILE *f;
	int fd;

	if ((fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) == -1 ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) == -1 ||
	    (f = fdopen(fd, "r+")) == NULL)
		fail("recorder");
	if (fprintf(f, "%s %s", what, line) < 0 || fflush(f) == EOF)
		fail("recorder");
	if (fgets(answer, (int)size, f) != NULL)
		got = strcspn(answer, "\n");
	if (got == 0 || answer[got] != '\n')
		fail("recorder's answer");
	answer[got] = '\0';
	fclose(f);
}

/* The line is durable when this returns. */
static void
append(const char *name, const char *line)
{
	size_t n = strlen(line);
	char answer[32];
	int fd;

	if (port != 0) {
		ask_recorder(name, line, answer, sizeof(answer));
		return;
	}
	fd = open_in_folder(name, O_WRONLY | O_CREAT | O_APPEND);
	if (write(fd, line, n) != (ssize_t)n || fsync(fd) == -1)
		fail(name);
	close(fd);
}

static void
ledger(const char *deed, const char *what)
{
	char line[4096];

	snprintf(line, sizeof(line), "%s %ld %ld %s %s %s %s %s %s %d %d %s\n",
	    deed, now(), born, key, path, user, downstream, attempt, run,
	    (int)getpid(), (int)getppid(), what);
	append("ledger", line);
}

static void
pause_for(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

/* --- its request, as CGI or FastCGI ------------------------------------- */

static size_t
take(char *out, size_t size)
{
	if (!stays)
		return fread(out, 1, size, stdin);
	return (size_t)FCGX_GetStr(out, (int)size, request.in);
}

static void
print(const char *text, size_t n)
{
	if (stays ? FCGX_PutStr(text, (int)n, request.out) != (int)n
		  : fwrite(text, 1, n, stdout) != n)
		fail("output");
}

static void
flush(void)
{
	if ((stays ? FCGX_FFlush(request.out) : fflush(stdout)) != 0)
		fail("output");
}

/* Ends this process, if its end says so. */
static void
die_as(const struct end *end)
{
	if (end->signal == LEAVES && stays)
		_exit(0);
	if (end->signal != 0)
		raise(end->signal == LEAVES ? SIGKILL : end->signal);
}

/* Held until the last process of this run's tree is gone. */
static int
claim(void)
{
	char name[256];
	int fd;

	snprintf(name, sizeof(name), "claims/%s", downstream);
	fd = open_in_folder(name, O_RDWR | O_CREAT);
	if (flock(fd, LOCK_EX | LOCK_NB) == -1)
		ledger("overlap", "-");
	return fd;
}

static const char *
need(const char *name)
{
	const char *value = getenv(name);

	if (value == NULL)
		fail(name);
	return value;
}

/* The word of this attempt. */
static const char *
my_word(char *body)
{
	const char *word = NULL, *next;
	int i;

	for (i = 0, next = strtok(body, " "); next != NULL;
	     i++, next = strtok(NULL, " ")) {
		if (i > 0 && i <= atoi(attempt))
			word = next;
	}
	if (word == NULL)
		fail("body");
	return word;
}

static const struct end *
find_end(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		if (strcmp(ends[i].name, name) == 0)
			return &ends[i];
	}
	fail(name);
}

/*
 * Whether a run for that downstream key acted; run becomes its name.  A run
 * acts once, and only while its outcome is open.
 */
static int
find_act(void)
{
	char line[4096], of[64], name[17];
	int found = 0;
	FILE *f;

	if (port != 0) {
		snprintf(line, sizeof(line), "%s\n", downstream);
		ask_recorder("find", line, run, sizeof(run));
		return run[0] != '-';
	}
	if ((f = fdopen(open_in_folder("ledger", O_RDONLY), "r")) == NULL)
		fail("ledger");
	while (fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "acted %*s %*s %*s %*s %*s %63s %*s %16s", of,
			name) == 2 &&
		    strcmp(of, downstream) == 0) {
			memcpy(run, name, sizeof(name));
			found = 1;
		}
	}
	fclose(f);
	return found;
}

static int
find(unsigned long long luck)
{
	downstream = need("ONCE_DOWNSTREAM_KEY");
	if (!find_act()) {
		puts("Content-Type: text/plain\n"
		     "Idempotency-Outcome: not-executed\n");
		return 0;
	}
	if (luck % 8 == 0 && getenv("ONCE_KEY") != NULL)
		raise(SIGKILL);
	printf("Status: 201\nContent-Type: text/plain\n"
	       "Idempotency-Outcome: completed\nX-Run: %s\nX-Downstream: %s\n"
	       "X-What: resolved\nX-Variant: -\n\n%s\n",
	    run, downstream, run);
	return 0;
}

/* --- what it says itself -------------------------------------------------- */

/* Whether it was committed: the connection may be lost in COMMIT. */
enum said { NOT_SAID, MAY_BE_SAID, SAID };

static char *
body_of(long size)
{
	char *body = malloc((size_t)size + 18);
	long i;

	if (body == NULL)
		fail("memory");
	memcpy(body, run, 16);
	body[16] = '\n';
	for (i = 0; i < size; i++)
		body[17 + i] = run[i % 16];
	body[17 + size] = '\0';
	return body;
}

static void
answer(const struct end *end, const char *variant, long size)
{
	char head[1024], *body = body_of(size);
	int n;

	n = snprintf(head, sizeof(head),
	    "Status: %d\r\nContent-Type: text/plain\r\n%s"
	    "X-Run: %s\r\nX-Downstream: %s\r\nX-What: %s\r\n"
	    "X-Variant: %s\r\n\r\n",
	    end->status, end->fields, run, downstream, end->name, variant);
	print(head, (size_t)n);
	print(body, (size_t)size + 17);
	flush();
	free(body);
}

static int
execute(sqlite3 *db, char *sql)
{
	int code = sqlite3_exec(db, sql, NULL, NULL, NULL);

	sqlite3_free(sql);
	return code;
}

static int
respond(sqlite3 *db, const char *fields, const char *body)
{
	sqlite3_stmt *s = NULL;
	int code;

	code = sqlite3_prepare_v2(db,
	    "INSERT INTO once_response(token, status, headers, body)"
	    " VALUES (?1, 201, ?2, ?3)",
	    -1, &s, NULL);
	if (code == SQLITE_OK) {
		sqlite3_bind_text(s, 1, need("ONCE_TOKEN"), -1, SQLITE_STATIC);
		sqlite3_bind_text(s, 2, fields, -1, SQLITE_STATIC);
		sqlite3_bind_blob(s, 3, body, (int)strlen(body), SQLITE_STATIC);
		code = sqlite3_step(s) == SQLITE_DONE ? SQLITE_OK : 1;
	}
	sqlite3_finalize(s);
	return code;
}

/* --- in PostgreSQL -------------------------------------------------------- */

/* The library is not linked: guests of qemu do not have it. */
enum { COMMAND_OK = 1, TUPLES_OK = 2 }; /* of libpq-fe.h */

static void *(*connect_to)(const char *);
static void *(*exec_params)(void *, const char *, int, const unsigned *,
    const char *const *, const int *, const int *, int);
static int (*result_status)(const void *);
static void (*clear_result)(void *);
static void (*finish)(void *);

static void
load_libpq(void)
{
	void *pq = dlopen("libpq.so.5", RTLD_NOW);

	if (pq == NULL)
		fail("libpq.so.5");
	*(void **)&connect_to = dlsym(pq, "PQconnectdb");
	*(void **)&exec_params = dlsym(pq, "PQexecParams");
	*(void **)&result_status = dlsym(pq, "PQresultStatus");
	*(void **)&clear_result = dlsym(pq, "PQclear");
	*(void **)&finish = dlsym(pq, "PQfinish");
}

/* With the parameters that are not NULL. */
static int
pg(void *db, const char *sql, const char *a, const char *b, const char *c)
{
	const char *const values[] = { a, b, c };
	void *result;
	int n = 0, status;

	while (n < 3 && values[n] != NULL)
		n++;
	result = exec_params(db, sql, n, NULL, values, NULL, NULL, 0);
	status = result_status(result);
	clear_result(result);
	return status == COMMAND_OK || status == TUPLES_OK;
}

/* The role has the right to the three functions, and to its own table. */
static enum said
say_postgres(const char *fields, const char *body)
{
	const char *token = need("ONCE_TOKEN"), *uri = need("ONCE_DATABASE");
	char database[1024];
	enum said said = NOT_SAID;
	void *db;

	load_libpq();
	snprintf(database, sizeof(database), "%s%cuser=app&connect_timeout=10",
	    uri, strchr(uri, '?') == NULL ? '?' : '&');
	db = connect_to(database);
	if (pg(db, "BEGIN", NULL, NULL, NULL) &&
	    pg(db, "SELECT once_checkpoint($1, 'rode')", token, NULL, NULL) &&
	    pg(db, "INSERT INTO ride VALUES ($1, $2)", run, downstream, NULL) &&
	    pg(db, "SELECT once_outbox($1, 'mail', $2::bytea)", token, run,
		NULL) &&
	    pg(db, "SELECT once_response($1, 201, $2, $3::bytea)", token,
		fields, body))
		said = pg(db, "COMMIT", NULL, NULL, NULL) ? SAID : MAY_BE_SAID;
	finish(db);
	return said;
}

/* --- in a file ------------------------------------------------------------ */

static enum said
say_sqlite(const char *fields, const char *body)
{
	const char *token = need("ONCE_TOKEN");
	sqlite3 *db = NULL;
	int code;

	code = sqlite3_open_v2(
	    need("ONCE_DATABASE"), &db, SQLITE_OPEN_READWRITE, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_busy_timeout(db, 5000);
	if (code == SQLITE_OK)
		code = execute(db,
		    sqlite3_mprintf(
			"BEGIN IMMEDIATE;"
			"CREATE TABLE IF NOT EXISTS ride(run TEXT, downstream "
			"TEXT);"
			"INSERT INTO once_checkpoint VALUES (%Q, 'rode');"
			"INSERT INTO ride VALUES (%Q, %Q);"
			"INSERT INTO once_outbox VALUES (%Q, 'mail', %Q)",
			token, run, downstream, token, run));
	if (code == SQLITE_OK)
		code = respond(db, fields, body);
	if (code == SQLITE_OK)
		code = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	sqlite3_close(db);
	return code == SQLITE_OK ? SAID : NOT_SAID;
}

static enum said
say(const char *variant, long size)
{
	char fields[512], *body = body_of(size);
	enum said said;

	snprintf(fields, sizeof(fields),
	    "Content-Type: text/plain\nX-Run: %s\nX-Downstream: %s\n"
	    "X-What: said\nX-Variant: %s",
	    run, downstream, variant);
	if (strncmp(need("ONCE_DATABASE"), "postgresql:", 11) == 0)
		said = say_postgres(fields, body);
	else
		said = say_sqlite(fields, body);
	free(body);
	return said;
}

/*
 * A process that outlives this one.  A key that is released at the handler's
 * word may run beside it: it drops the claim before this returns.  In the end
 * it tries to say what its run may be too late for.
 */
static void
leave_behind(
    long ms, const struct end *end, int fd, const char *variant, long size)
{
	int ready[2];
	char byte;

	if (pipe(ready) == -1)
		fail("pipe");
	switch (fork()) {
	case -1:
		fail("fork");
	case 0:
		if ((!end->acts && end->signal == 0) || end->says != NULL)
			close(fd);
		close(ready[0]);
		close(ready[1]);
		pause_for(ms);
		if (getenv("ONCE_DATABASE") != NULL) {
			ledger("late", "-");
			if (say(variant, size) == SAID)
				ledger("late-said", "-");
		}
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) == -1)
		fail("ready");
	close(ready[0]);
}

static int
speak(const struct end *end, const char *variant, long size)
{
	ledger("saying", "-");
	switch (say(variant, size)) {
	case NOT_SAID:
		ledger("done", "tempfail-mute");
		return 75;
	case MAY_BE_SAID:
		ledger("done", "mute");
		return 0;
	case SAID:
		break;
	}
	ledger("said", "-");
	ledger("done", "said");
	print(end->says, strlen(end->says));
	flush();
	die_as(end);
	return end->exit_status;
}

static int
deliver(unsigned long long luck)
{
	char line[256], payload[17] = "";

	if (luck % 8 == 0)
		return 75;
	if (fread(payload, 1, 16, stdin) != 16)
		fail("payload");
	snprintf(
	    line, sizeof(line), "%s %s\n", need("ONCE_EFFECT_KEY"), payload);
	append("deliveries", line);
	if (luck % 8 == 1)
		raise(SIGKILL);
	return luck % 8 == 2;
}

/* One run, from its first line to its answer.  Returns its exit status. */
static int
act(unsigned long long id)
{
	char body[4096], variant[64], what[32];
	long before, after, size, child;
	const struct end *end;
	int fd, status;
	size_t n;

	key = need("ONCE_KEY");
	path = need("ONCE_PATH");
	user = need("REMOTE_USER");
	downstream = need("ONCE_DOWNSTREAM_KEY");
	attempt = need("ONCE_ATTEMPT");
	snprintf(run, sizeof(run), "%016llx", id);
	fd = claim();
	ledger("started", "-");
	n = take(body, sizeof(body) - 1);
	body[n] = '\0';
	if (sscanf(body, "%63s", variant) != 1 ||
	    sscanf(my_word(body), "%ld.%ld.%ld.%ld.%31s", &before, &after,
		&size, &child, what) != 5)
		fail("body");
	end = find_end(what);
	if (child > 0)
		leave_behind(child, end, fd, variant, size);
	pause_for(before);
	if (end->acts)
		ledger("acted", what);
	pause_for(after);
	if (end->says != NULL)
		status = speak(end, variant, size);
	else {
		ledger("done", what);
		if (end->status != 0)
			answer(end, variant, size);
		die_as(end);
		status = end->exit_status;
	}
	/* A process that stays has no part in what it leaves behind. */
	close(fd);
	return status;
}

static unsigned long long
draw(void)
{
	unsigned long long id;

	if (getrandom(&id, sizeof(id), 0) != sizeof(id))
		fail("getrandom");
	return id;
}

static int
stay(void)
{
	struct pollfd pfd = { .fd = 0, .events = POLLIN };
	unsigned long long id;

	stays = 1;
	if (FCGX_Init() != 0 || FCGX_InitRequest(&request, 0, 0) != 0)
		fail("libfcgi");
	signal(SIGTERM, SIG_DFL);
	for (;;) {
		/* Before it has read a byte. */
		if ((id = draw()) % 32 == 0 && poll(&pfd, 1, -1) == 1)
			return 0;
		if (FCGX_Accept_r(&request) != 0)
			return 0;
		environ = request.envp;
		FCGX_SetExitStatus(act(id), request.out);
		born = now();
		FCGX_Finish_r(&request);
		/* After it has answered. */
		if (id % 32 == 1)
			raise(SIGKILL);
		if (id % 32 == 2)
			return 0;
	}
}

int
main(int argc, char **argv)
{
	char *at;

	if (argc < 2)
		return 99;
	folder = argv[1];
	if ((at = strchr(argv[1], '@')) != NULL) {
		*at = '\0';
		port = (unsigned)strtoul(at + 1, NULL, 10);
	}
	if (argc == 3 && strcmp(argv[2], "find") == 0)
		return find(draw());
	if (argc == 3 && strcmp(argv[2], "deliver") == 0)
		return deliver(draw());
	born = born_at();
	return FCGX_IsCGI() ? act(draw()) : stay();
}
