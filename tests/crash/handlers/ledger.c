/*
 * A handler whose deeds outlive it: each is a line of the ledger, synced
 * before the next step.
 *
 *	ledger FOLDER [OPTION ...]
 *
 *	started KEY ATTEMPT TOKEN	first of all
 *	acted KEY ATTEMPT TOKEN		what it was asked to do
 *	responded KEY ATTEMPT TOKEN	its answer is in the store
 *	overlap KEY ATTEMPT TOKEN	another attempt's process tree was there
 *
 * The answer is 201, and its body differs from run to run.  Options:
 *
 *	shed		what is left behind closes the descriptors above 2 but
 *			that of the claim
 *	child		a process is left behind, which holds what it inherited
 *	gate		writes its id to FOLDER/gate.here, and reads a byte of
 *			FOLDER/gate.open before it acts
 *	size=N		so many bytes of body more
 *	first=STATUS	the answer of the first attempt
 *	die		the first attempt has no answer: it kills itself
 *	respond=ONCECTL	its answer is given by that program, and stands,
 *			whatever it prints then
 *	late		after that it goes through the gate
 */
#include <sys/file.h>

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *folder, *key, *attempt, *token;

static void
fail(const char *what)
{
	perror(what);
	exit(99);
}

static int
open_in_folder(const char *name, int flags)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if ((fd = open(path, flags, 0666)) == -1)
		fail(path);
	return fd;
}

static void
ledger(const char *deed)
{
	char line[4096];
	int fd, n;

	n = snprintf(
	    line, sizeof(line), "%s %s %s %s\n", deed, key, attempt, token);
	fd = open_in_folder("ledger", O_WRONLY | O_CREAT | O_APPEND);
	if (write(fd, line, (size_t)n) != n || fsync(fd) == -1)
		fail("ledger");
	close(fd);
}

/* Held until the last process of this run's tree is gone. */
static int
claim(void)
{
	char name[256];
	int fd;

	snprintf(name, sizeof(name), "claim-%s", key);
	fd = open_in_folder(name, O_RDWR | O_CREAT);
	if (flock(fd, LOCK_EX | LOCK_NB) == -1)
		ledger("overlap");
	return fd;
}

static void
be_child(bool sheds, int claimed)
{
	int fd;

	for (fd = 3; sheds && fd < 64; fd++)
		if (fd != claimed)
			close(fd);
	pause();
	_exit(0);
}

static void
gate(void)
{
	char line[256];
	int fd, n;

	n = snprintf(line, sizeof(line), "%ld\n", (long)getpid());
	fd = open_in_folder("gate.here", O_WRONLY);
	if (write(fd, line, (size_t)n) != n)
		fail("here");
	close(fd);
	fd = open_in_folder("gate.open", O_RDONLY);
	if (read(fd, line, 1) != 1)
		fail("open");
	close(fd);
}

static const char *
need(const char *name)
{
	const char *value = getenv(name);

	if (value == NULL)
		fail(name);
	return value;
}

static void
print(FILE *f, const char *status)
{
	fprintf(f,
	    "Status: %s\r\nContent-Type: text/plain\r\nSet-Cookie: a=b\r\n"
	    "X-Run: %s\r\nX-Run: again\r\n\r\n%s\n",
	    status, token, token);
}

static void
respond(const char *oncectl)
{
	char command[4096];
	FILE *f;

	snprintf(command, sizeof(command), "'%s' respond", oncectl);
	if ((f = popen(command, "w")) == NULL)
		fail(command);
	print(f, "201");
	if (pclose(f) != 0)
		fail("respond");
	ledger("responded");
}

int
main(int argc, char **argv)
{
	const char *first = NULL, *oncectl = NULL;
	bool late = false, sheds = false;
	long size = 0;
	int i, claimed;

	if (argc < 2)
		return 99;
	folder = argv[1];
	key = need("ONCE_KEY");
	attempt = need("ONCE_ATTEMPT");
	token = need("ONCE_TOKEN");
	claimed = claim();
	ledger("started");
	for (i = 2; i < argc; i++) {
		if (strcmp(argv[i], "gate") == 0)
			gate();
		else if (strncmp(argv[i], "size=", 5) == 0)
			size = atol(argv[i] + 5);
		else if (strncmp(argv[i], "first=", 6) == 0)
			first = argv[i] + 6;
		else if (strncmp(argv[i], "respond=", 8) == 0)
			oncectl = argv[i] + 8;
		else if (strcmp(argv[i], "late") == 0)
			late = true;
		else if (strcmp(argv[i], "shed") == 0)
			sheds = true;
		else if (strcmp(argv[i], "child") == 0 && fork() == 0)
			be_child(sheds, claimed);
	}
	ledger("acted");
	if (strcmp(argv[argc - 1], "die") == 0 && strcmp(attempt, "1") == 0)
		kill(getpid(), SIGKILL);
	if (oncectl != NULL) {
		respond(oncectl);
		if (late)
			gate();
		first = "500";
	}
	print(
	    stdout, first != NULL && strcmp(attempt, "1") == 0 ? first : "201");
	while (size-- > 0)
		putchar('a' + (int)(size % 23));
	return 0;
}
