/*
 * Any user can read /proc/PID/stat.  Only the process's own user, or a process
 * with CAP_SYS_PTRACE, can read /proc/PID/environ.  A daemon that only has
 * CAP_SETUID and CAP_SETGID, to start handlers as other users, opens it as the
 * user of the process.
 */
#include "config.h"

#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "process.h"

/* Larger than any program's environment: with a stack of the usual size the
 * kernel's limit is 2 MiB. */
#define ENVIRON_MAX (8 << 20)

/* The tokens of one process that are kept; its own is the first. */
#define TOKENS_MAX 8

struct entry {
	pid_t pid, session;
	uint64_t started;
	bool ended; /* it is a zombie without other threads */
	char token[PROCESS_TOKEN_LEN + 1];
};

struct process_list {
	struct entry *entry;
	size_t n, room;
	uint64_t space;
};

static uint64_t
own_space(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

static int
open_of(pid_t pid, const char *what)
{
	char name[64];

	snprintf(name, sizeof(name), "/proc/%ld/%s", (long)pid, what);
	return open(name, O_RDONLY | O_CLOEXEC);
}

/* Indexes of the fields of stat, counted from the field after the program's
 * name. */
enum { STAT_STATE, STAT_SESSION = 3, STAT_THREADS = 17, STAT_STARTED = 19 };

/* The name of the program may contain any byte; only numbers follow it. */
static bool
parse_stat(char *text, struct entry *e)
{
	char *p = strrchr(text, ')'), *field;
	int i;

	if (p == NULL || p[1] != ' ')
		return false;
	p += 2;
	for (i = 0; (field = strsep(&p, " ")) != NULL; i++) {
		if (i == STAT_STATE)
			e->ended = *field == 'Z' || *field == 'X';
		else if (i == STAT_SESSION)
			e->session = (pid_t)strtol(field, NULL, 10);
		else if (i == STAT_THREADS && strtol(field, NULL, 10) > 1)
			e->ended = false; /* only its first thread has ended */
		else if (i == STAT_STARTED)
			e->started = strtoull(field, NULL, 10);
	}
	return i > STAT_STARTED;
}

/* The meaning of errno for a process.  RC_NOTFOUND: it has ended, or /proc
 * does not show it to this user.  Any other error, as too many open files,
 * says nothing about the process. */
static enum rc
hidden(void)
{
	switch (errno) {
	case ENOENT:
	case ESRCH:
	case EACCES:
	case EPERM:
	case EIO: /* the environment does not exist any more */
		return RC_NOTFOUND;
	default:
		return RC_IO;
	}
}

static enum rc
read_stat(pid_t pid, struct entry *e)
{
	char text[1024];
	enum rc rc = RC_OK;
	ssize_t n;
	int fd;

	memset(e, 0, sizeof(*e));
	e->pid = pid;
	if ((fd = open_of(pid, "stat")) == -1)
		return hidden();
	if ((n = read(fd, text, sizeof(text) - 1)) == -1)
		rc = hidden();
	close(fd);
	if (rc != RC_OK)
		return rc;
	text[n] = '\0';
	return parse_stat(text, e) ? RC_OK : RC_NOTFOUND;
}

bool
process_session(pid_t pid, struct process_session *session)
{
	struct entry e;

	memset(session, 0, sizeof(*session));
	if (read_stat(pid, &e) != RC_OK)
		return false;
	session->id = pid;
	session->started = e.started;
	session->space = own_space();
	return true;
}

static enum rc
process_add(struct process_list *list, const struct entry *e)
{
	size_t room = list->room > 0 ? 2 * list->room : 256;
	struct entry *more;

	if (list->n == list->room) {
		more = reallocarray(list->entry, room, sizeof(*more));
		if (more == NULL)
			return RC_NOMEM;
		list->entry = more;
		list->room = room;
	}
	list->entry[list->n++] = *e;
	return RC_OK;
}

/* Adds an entry for each token in len bytes of an environment, at most *left
 * of them. */
static enum rc
add_tokens(struct process_list *list, struct entry *e, const char *bytes,
    size_t len, int *left)
{
	const size_t name = strlen(PROCESS_VARIABLE);
	const char *p = bytes, *end = bytes + len;
	enum rc rc = RC_OK;

	while (rc == RC_OK && *left > 0 &&
	    (p = memmem(p, (size_t)(end - p), PROCESS_VARIABLE, name)) !=
		NULL) {
		p += name;
		if ((size_t)(end - p) < PROCESS_TOKEN_LEN)
			break;
		memcpy(e->token, p, PROCESS_TOKEN_LEN);
		rc = process_add(list, e);
		(*left)--;
	}
	return rc;
}

/*
 * Opens a file of the process as the process's user.  setfsuid() changes the
 * calling thread alone, and does not let that user send signals to it.  Like
 * any change of a user it makes this process untraceable and without core
 * dumps, which is undone.  Only root may read the environment of root's
 * processes.
 */
static int
open_as_owner(pid_t pid, const char *what)
{
	const int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	char name[32];
	struct stat st;
	int fd, user, group, error;

	snprintf(name, sizeof(name), "/proc/%ld", (long)pid);
	if (stat(name, &st) == -1 || st.st_uid == 0)
		return -1;
	group = setfsgid(st.st_gid);
	user = setfsuid(st.st_uid);
	fd = open_of(pid, what);
	error = errno;
	(void)setfsuid((uid_t)user);
	(void)setfsgid((gid_t)group);
	if (dumpable == 1)
		(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	errno = error;
	return fd;
}

static int
open_environ(pid_t pid)
{
	int fd = open_of(pid, "environ");

	if (fd == -1 && (errno == EACCES || errno == EPERM))
		fd = open_as_owner(pid, "environ");
	return fd;
}

/* Reads the environment in pieces, which overlap by the length of a token. */
static enum rc
read_environ(struct process_list *list, struct entry *e)
{
	const size_t overlap = strlen(PROCESS_VARIABLE) + PROCESS_TOKEN_LEN - 1;
	char bytes[16 * 1024];
	size_t have = 0, total = 0;
	int fd, left = TOKENS_MAX;
	enum rc rc = RC_OK;
	ssize_t n;

	if ((fd = open_environ(e->pid)) == -1)
		return hidden();
	while (rc == RC_OK && left > 0 && total < ENVIRON_MAX &&
	    (n = read(fd, bytes + have, sizeof(bytes) - have)) != 0) {
		if (n == -1) {
			rc = hidden();
			break;
		}
		total += (size_t)n;
		have += (size_t)n;
		rc = add_tokens(list, e, bytes, have, &left);
		if (have > overlap) {
			memmove(bytes, bytes + have - overlap, overlap);
			have = overlap;
		}
	}
	close(fd);
	return rc;
}

static enum rc
add_process(struct process_list *list, pid_t pid)
{
	struct entry e;
	enum rc rc;

	if ((rc = read_stat(pid, &e)) == RC_OK &&
	    (rc = process_add(list, &e)) == RC_OK && !e.ended)
		rc = read_environ(list, &e);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

static enum rc
process_read_all(struct process_list *list)
{
	struct dirent *d;
	enum rc rc = RC_OK;
	DIR *dir;

	if ((dir = opendir("/proc")) == NULL)
		return RC_IO;
	while (rc == RC_OK && (errno = 0, d = readdir(dir)) != NULL) {
		if (isdigit((unsigned char)d->d_name[0]))
			rc = add_process(
			    list, (pid_t)strtol(d->d_name, NULL, 10));
	}
	if (rc == RC_OK && errno != 0)
		rc = RC_IO;
	closedir(dir);
	return rc;
}

enum rc
process_list(struct process_list **out)
{
	struct process_list *list;
	enum rc rc;

	*out = NULL;
	if ((list = calloc(1, sizeof(*list))) == NULL)
		return RC_NOMEM;
	list->space = own_space();
	if ((rc = process_read_all(list)) == RC_OK)
		rc = process_read_all(list);
	/* If /proc shows anything, it shows at least this process. */
	if (rc == RC_OK && list->n == 0)
		rc = RC_IO;
	if (rc == RC_OK) {
		*out = list;
		return RC_OK;
	}
	log_event(LOG_ERROR, "liveness-error", NULL, LOG_S("file", "/proc"),
	    LOG_S("doing", "read"), LOG_S("message", rc_text(rc)));
	process_list_free(list);
	return rc;
}

void
process_list_free(struct process_list *list)
{
	if (list == NULL)
		return;
	free(list->entry);
	free(list);
}

/* Whether the session's number was reused: the process of that number is not
 * the session's leader. */
static bool
is_reused(const struct process_list *list, const struct process_session *s)
{
	size_t i;

	for (i = 0; i < list->n; i++) {
		if (list->entry[i].pid == s->id &&
		    list->entry[i].started != s->started)
			return true;
	}
	return false;
}

static pid_t
find_session(const struct process_list *list, const struct process_session *s)
{
	size_t i;

	if (s == NULL || s->id <= 0 || s->space != list->space ||
	    is_reused(list, s))
		return 0;
	for (i = 0; i < list->n; i++) {
		if (!list->entry[i].ended && list->entry[i].session == s->id &&
		    list->entry[i].started >= s->started)
			return list->entry[i].pid;
	}
	return 0;
}

pid_t
process_list_find(const struct process_list *list,
    const struct process_session *session, const char token[PROCESS_TOKEN_LEN])
{
	size_t i;

	for (i = 0; i < list->n; i++) {
		if (!list->entry[i].ended && list->entry[i].token[0] != '\0' &&
		    memcmp(list->entry[i].token, token, PROCESS_TOKEN_LEN) == 0)
			return list->entry[i].pid;
	}
	return find_session(list, session);
}
