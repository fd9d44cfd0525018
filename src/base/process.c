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
#include <time.h>
#include <unistd.h>

#include "buf.h"
#include "log.h"
#include "user.h"
#include "process.h"

/* Larger than any program's environment: with a stack of the usual size the
 * kernel's limit is 2 MiB. */
#define ENVIRON_MAX (8 << 20)

/* The tokens of one process that are kept; its own is the first. */
#define TOKENS_MAX 8

/* How often one list waits a millisecond for a process that is starting
 * another program. */
#define PAUSES_MAX 100

struct entry {
	pid_t pid, session;
	uint64_t started;
	bool ended;      /* it is a zombie without other threads */
	bool headless;   /* only its first thread has ended */
	int64_t environ; /* bytes of its environment; -1: not known */
	char token[PROCESS_TOKEN_LEN + 1];
};

struct process_list {
	struct entry *entry;
	size_t n, room;
	uint64_t space; /* all processes of that PID namespace; 0: not all */
	int pauses;
};

static int
open_of(pid_t pid, const char *what)
{
	char name[64];

	snprintf(name, sizeof(name), "/proc/%ld/%s", (long)pid, what);
	return open(name, O_RDONLY | O_CLOEXEC);
}

/* Indexes of the fields of stat, counted from the field after the program's
 * name (proc_pid_stat(5)).  The last two are the bounds of the environment: 0
 * to a reader who may not read it, and of no meaning until execve() has set the
 * bounds of the program's code. */
enum {
	STAT_STATE,
	STAT_SESSION = 3,
	STAT_FLAGS = 6,
	STAT_THREADS = 17,
	STAT_STARTED = 19,
	STAT_CODE_START = 23,
	STAT_ENV_START = 47,
	STAT_ENV_END = 48
};

#define KERNEL_THREAD 0x00200000UL /* PF_KTHREAD in the kernel's sched.h */

/* The name of the program may contain any byte; only numbers follow it. */
static bool
parse_stat(char *text, struct entry *e)
{
	char *p = strrchr(text, ')'), *field;
	unsigned long long code = 0, env_start = 0;
	int i;

	if (p == NULL || p[1] != ' ')
		return false;
	p += 2;
	e->environ = -1;
	for (i = 0; (field = strsep(&p, " ")) != NULL; i++) {
		if (i == STAT_STATE)
			e->ended = *field == 'Z' || *field == 'X';
		else if (i == STAT_SESSION)
			e->session = (pid_t)strtol(field, NULL, 10);
		else if (i == STAT_THREADS && e->ended) {
			e->headless = strtol(field, NULL, 10) > 1;
			e->ended = !e->headless;
		} else if (i == STAT_STARTED)
			e->started = strtoull(field, NULL, 10);
		else if (i == STAT_FLAGS &&
		    (strtoul(field, NULL, 10) & KERNEL_THREAD))
			e->environ = 0;
		else if (i == STAT_CODE_START)
			code = strtoull(field, NULL, 10);
		else if (i == STAT_ENV_START)
			env_start = strtoull(field, NULL, 10);
		else if (i == STAT_ENV_END && code != 0 && env_start != 0)
			e->environ =
			    (int64_t)(strtoull(field, NULL, 10) - env_start);
	}
	return i > STAT_STARTED;
}

/* The meaning of errno for a process.  RC_NOTFOUND: it has ended, or /proc
 * does not show it to this user.  Any other error, as too many open files,
 * says nothing about the process. */
static enum rc
process_error(void)
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
		return process_error();
	if ((n = read(fd, text, sizeof(text) - 1)) == -1)
		rc = process_error();
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

/* Adds an entry for each token in an environment, at most TOKENS_MAX of
 * them. */
static enum rc
add_tokens(struct process_list *list, struct entry *e, const struct buf *text)
{
	const size_t name = strlen(PROCESS_VARIABLE);
	const char *p = text->data, *end = p + text->len;
	enum rc rc = RC_OK;

	for (int i = 0; i < TOKENS_MAX && rc == RC_OK; i++) {
		p = memmem(p, (size_t)(end - p), PROCESS_VARIABLE, name);
		if (p == NULL || (size_t)(end - p) < name + PROCESS_TOKEN_LEN)
			break;
		p += name;
		memcpy(e->token, p, PROCESS_TOKEN_LEN);
		rc = process_add(list, e);
	}
	return rc;
}

/* A read that does not fill its room is the last one.  *cut: it read
 * nothing. */
static enum rc
read_whole(int fd, struct buf *out, bool *cut)
{
	const size_t room = 16 * 1024;
	ssize_t n;

	do {
		if (buf_reserve(out, room) != RC_OK)
			return RC_NOMEM;
		if ((n = read(fd, out->data + out->len, room)) == -1)
			return process_error();
		buf_commit(out, (size_t)n);
	} while (n == (ssize_t)room && out->max - out->len >= room);
	*cut = n == 0;
	return RC_OK;
}

/* /proc shows no environment of a thread that has ended.  A thread of the
 * process that has one; its first thread if there is none. */
static pid_t
living_thread(const struct entry *e)
{
	char name[64];
	pid_t thread = e->pid;
	struct dirent *d;
	DIR *dir;

	if (!e->headless)
		return thread;
	snprintf(name, sizeof(name), "/proc/%ld/task", (long)e->pid);
	if ((dir = opendir(name)) == NULL)
		return thread;
	while (thread == e->pid && (d = readdir(dir)) != NULL) {
		if (isdigit((unsigned char)d->d_name[0]))
			thread = (pid_t)strtol(d->d_name, NULL, 10);
	}
	closedir(dir);
	return thread;
}

/* *denied: the environment is another user's.  *again: it is not known, because
 * the thread was in execve(). */
static enum rc
try_environ(struct process_list *list, struct entry *e, pid_t thread,
    bool *denied, bool *again)
{
	const int fd = open_of(thread, "environ");
	struct entry now;
	struct buf text;
	bool cut = false;
	enum rc rc;

	*denied = fd == -1 && (errno == EACCES || errno == EPERM);
	*again = false;
	if (fd == -1)
		return process_error();
	buf_init(&text, ENVIRON_MAX);
	if ((rc = read_whole(fd, &text, &cut)) == RC_OK)
		rc = add_tokens(list, e, &text);
	close(fd);
	if (rc == RC_OK && cut) {
		rc = read_stat(thread, &now);
		*again = rc == RC_OK && !now.ended &&
		    now.environ != (int64_t)text.len;
	}
	buf_free(&text);
	return rc;
}

/* An environment reads as empty while execve() replaces the process's memory:
 * then it is read again.  *denied: it is another user's. */
static enum rc
read_environ(struct process_list *list, struct entry *e, bool *denied)
{
	const struct timespec millisecond = { .tv_nsec = 1000000 };
	pid_t thread;
	bool again;
	enum rc rc;

	for (;;) {
		thread = living_thread(e);
		rc = try_environ(list, e, thread, denied, &again);
		/* Another thread may live. */
		if (rc == RC_NOTFOUND && thread != e->pid && !*denied)
			again = true;
		if (!again || list->pauses == 0)
			return rc;
		list->pauses--;
		(void)nanosleep(&millisecond, NULL);
	}
}

/*
 * Reads the environment as the process's user.  setfsuid() changes the
 * calling thread alone, and does not let that user send signals to it.  Like
 * any change of a user it makes this process untraceable and without core
 * dumps, which is undone.  Only root may read the environment of root's
 * processes.
 */
static enum rc
read_environ_as_owner(struct process_list *list, struct entry *e)
{
	const int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	char name[32];
	struct stat st;
	int user, group;
	bool denied;
	enum rc rc;

	snprintf(name, sizeof(name), "/proc/%ld", (long)e->pid);
	if (stat(name, &st) == -1 || st.st_uid == 0)
		return RC_NOTFOUND;
	group = setfsgid(st.st_gid);
	user = setfsuid(st.st_uid);
	rc = read_environ(list, e, &denied);
	(void)setfsuid((uid_t)user);
	(void)setfsgid((gid_t)group);
	if (dumpable == 1)
		(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	return rc;
}

static enum rc
add_process(struct process_list *list, pid_t pid)
{
	bool denied = false;
	struct entry e;
	enum rc rc;

	if ((rc = read_stat(pid, &e)) == RC_OK &&
	    (rc = process_add(list, &e)) == RC_OK && !e.ended && e.environ != 0)
		rc = read_environ(list, &e, &denied);
	if (denied)
		rc = read_environ_as_owner(list, &e);
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

uint64_t
process_space(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* Whether /proc hides processes of other users.  Without new privileges a
 * handler's processes cannot become those of another user. */
static bool
hides_users(void)
{
	char line[1024], point[256];
	bool hides = false;
	FILE *mounts;

	if (user_may_trace() ||
	    (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 && !user_may_change()))
		return false;
	if ((mounts = fopen("/proc/self/mountinfo", "re")) == NULL)
		return true;
	/* The last mount in a place is on top. */
	while (fgets(line, sizeof(line), mounts) != NULL)
		if (sscanf(line, "%*s %*s %*s %*s %255s", point) == 1 &&
		    strcmp(point, "/proc") == 0)
			hides = strstr(line, "hidepid=") != NULL;
	fclose(mounts);
	return hides;
}

/* Whether /proc is that of this process's namespace, and hides nothing. */
static bool
shows_all(void)
{
	char text[32] = "";

	return readlink("/proc/self", text, sizeof(text) - 1) > 0 &&
	    strtol(text, NULL, 10) == (long)getpid() && !hides_users();
}

enum rc
process_list(struct process_list **out)
{
	struct process_list *list;
	enum rc rc;

	*out = NULL;
	if ((list = calloc(1, sizeof(*list))) == NULL)
		return RC_NOMEM;
	list->space = shows_all() ? process_space() : 0;
	list->pauses = PAUSES_MAX;
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

bool
process_list_shows(const struct process_list *list, uint64_t space)
{
	return space != 0 && space == list->space;
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

	if (s == NULL || s->id <= 0 || is_reused(list, s))
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
