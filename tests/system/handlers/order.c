/*
 * Takes an order: its row, an effect, how far it is and its answer, in one
 * transaction of the database that it shares with oncewrap.
 *
 *	order FOLDER WORD ...	does one thing after the other:
 *
 *	order, rollback		the transaction, and how it ends
 *	size=N			its answer gets N bytes more
 *	gate=NAME		waits to be let through
 *	print=STATUS		prints another answer
 *	flood, garbage		10 MB of one; what is none
 *	outcome=WORD		one with an Idempotency-Outcome
 *	exit=N, signal=N, sleep	its end, or none
 *
 * A transaction leaves a line in FOLDER/ledger: how it ended, or the error.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

static const char *folder, *token;
static long size;

static const char *
need(const char *name)
{
	const char *value = getenv(name);

	if (value == NULL) {
		fprintf(stderr, "%s is missing\n", name);
		exit(99);
	}
	return value;
}

static FILE *
file(const char *name, const char *end, const char *mode)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s%s", folder, name, end);
	if ((f = fopen(path, mode)) == NULL) {
		perror(path);
		exit(98);
	}
	return f;
}

static void
ledger(const char *what, const char *more)
{
	FILE *f = file("ledger", "", "a");

	fprintf(f, "%s %s%s\n", need("ONCE_ATTEMPT"), what, more);
	fclose(f);
}

static void
gate(const char *name)
{
	FILE *f = file(name, ".here", "w");

	fprintf(f, "%d\n", (int)getpid());
	fclose(f);
	f = file(name, ".open", "r");
	(void)getc(f);
	fclose(f);
}

/* One insertion; a and b are bound after the token, or alone. */
static int
insert(sqlite3 *db, const char *sql, const char *a, const void *b, long n)
{
	sqlite3_stmt *s;
	int code, i = 0;

	code = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
	if (code != SQLITE_OK)
		return code;
	if (strstr(sql, "token") != NULL)
		sqlite3_bind_text(s, ++i, token, -1, SQLITE_STATIC);
	if (a != NULL)
		sqlite3_bind_text(s, ++i, a, -1, SQLITE_STATIC);
	if (b != NULL)
		sqlite3_bind_blob(s, ++i, b, (int)n, SQLITE_STATIC);
	code = sqlite3_step(s);
	sqlite3_finalize(s);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int
order_in(sqlite3 *db, const char *end)
{
	char *body;
	int code, n;

	code = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = insert(db,
		    "INSERT INTO once_checkpoint(token, recovery_point) "
		    "VALUES (?, ?)",
		    "ordered", NULL, 0);
	if (code == SQLITE_OK)
		code = insert(db, "INSERT INTO orders(note) VALUES (?)",
		    need("ONCE_KEY"), NULL, 0);
	if (code != SQLITE_OK)
		return code;
	body = malloc((size_t)size + 64);
	n = sprintf(body, "order %lld\n", sqlite3_last_insert_rowid(db));
	memset(body + n, 'x', (size_t)size);
	code = insert(db,
	    "INSERT INTO once_outbox(token, topic, payload) "
	    "VALUES (?, 'mail', ?)",
	    "thanks", NULL, 0);
	if (code == SQLITE_OK)
		code = insert(db,
		    "INSERT INTO once_response(token, status, headers, body) "
		    "VALUES (?, 201, ?, ?)",
		    "Content-Type: text/plain\r\nX-By: c\r\n"
		    "X-Twice: 1\r\nX-Twice: 2",
		    body, n + size);
	if (code == SQLITE_OK)
		code = sqlite3_exec(db, end, NULL, NULL, NULL);
	free(body);
	return code;
}

static void
order(const char *end)
{
	sqlite3 *db;
	int code;

	code = sqlite3_open(need("ONCE_DATABASE"), &db);
	sqlite3_busy_timeout(db, 5000);
	if (code == SQLITE_OK)
		code = order_in(db, end);
	if (code == SQLITE_OK)
		ledger(end, "");
	else
		ledger("error: ", sqlite3_errmsg(db));
	sqlite3_close(db);
}

static void
flood(void)
{
	long i;

	printf("Status: 200\r\n\r\n");
	for (i = 0; i < 10000000; i++)
		putchar('f');
	fflush(stdout);
}

static void
act(const char *word, const char *value)
{
	if (strcmp(word, "order") == 0)
		order("COMMIT");
	else if (strcmp(word, "rollback") == 0)
		order("ROLLBACK");
	else if (strcmp(word, "size") == 0)
		size = atol(value);
	else if (strcmp(word, "gate") == 0)
		gate(value);
	else if (strcmp(word, "print") == 0)
		printf("Status: %s\r\nX-Printed: yes\r\n\r\nprinted\n", value);
	else if (strcmp(word, "flood") == 0)
		flood();
	else if (strcmp(word, "garbage") == 0)
		printf("no head at all\n");
	else if (strcmp(word, "outcome") == 0)
		printf("Status: 200\r\nIdempotency-Outcome: %s\r\n\r\n", value);
	else if (strcmp(word, "exit") == 0)
		exit(atoi(value));
	else if (strcmp(word, "signal") == 0)
		raise(atoi(value));
	else if (strcmp(word, "sleep") == 0)
		pause();
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	char *value;
	int i;

	if (argc < 2)
		return 97;
	folder = argv[1];
	token = need("ONCE_TOKEN");
	for (i = 2; i < argc; i++) {
		if ((value = strchr(argv[i], '=')) != NULL)
			*value++ = '\0';
		act(argv[i], value != NULL ? value : "");
	}
	return 0;
}
