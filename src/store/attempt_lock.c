/*
 * The file has up to three lines: the owner's name, its PID namespace and the
 * time since boot; token and number of the key; the session and its leader's
 * start time.  A line without its end is ignored.
 */
#include "config.h"

#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "attempt_file.h"
#include "attempt_lock.h"

/* Names are random: a second try is almost never needed. */
#define NEW_TRIES 8

#define NOTE_MAX 256

static enum rc
lock_failed(const char *database, const char *what)
{
	int error = errno;

	log_event(LOG_ERROR, "liveness-error", NULL,
	    LOG_S("folder-of", database), LOG_S("doing", what),
	    LOG_S("message", strerror(error)));
	return error == ENOSPC || error == EDQUOT ? RC_FULL : RC_IO;
}

static int
set_lock(int fd, int command, short type, struct flock *lock)
{
	memset(lock, 0, sizeof(*lock));
	lock->l_type = type;
	lock->l_whence = SEEK_SET; /* to the end of the file */
	return fcntl(fd, command, lock);
}

/* One try to create a file.  EEXIST: the name is taken, or the file was removed
 * before it was locked. */
static int
make_file(int folder, const char *text, int *held, int *note)
{
	struct stat st, owner;
	struct flock lock;

	*held = -1;
	*note = openat(folder, text,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (*note == -1)
		return errno;
	*held = openat(folder, text, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (*held == -1)
		return errno == ENOENT ? EEXIST : errno;
	if (set_lock(*held, F_OFD_SETLK, F_RDLCK, &lock) == -1 ||
	    fstat(*held, &st) == -1 || fstat(folder, &owner) == -1)
		return errno;
	if (st.st_nlink == 0)
		return EEXIST;
	if (geteuid() == 0 && owner.st_uid != 0 &&
	    fchown(*held, owner.st_uid, owner.st_gid) == -1)
		return errno;
	return 0;
}

static void
close_both(int *held, int *note)
{
	if (*held != -1)
		close(*held);
	if (*note != -1)
		close(*note);
	*held = *note = -1;
}

static enum rc
new_file(const char *database, int64_t owner, const char *kind, int *held,
    int *note, int64_t *name)
{
	char text[ATTEMPT_FILE_LEN], line[NOTE_MAX];
	int folder, error = EEXIST, tries;
	enum rc rc = RC_OK;

	*held = *note = -1;
	if ((folder = attempt_file_folder(database, true)) == -1)
		return lock_failed(database, "open");
	for (tries = 0; tries < NEW_TRIES && error == EEXIST; tries++) {
		*name = attempt_file_new_name();
		attempt_file_text(*name, kind, text);
		error = make_file(folder, text, held, note);
		if (error != 0)
			close_both(held, note);
	}
	if (error == 0) {
		snprintf(line, sizeof(line),
		    "%016" PRIx64 " %" PRIu64 " %" PRId64 "\n", (uint64_t)owner,
		    process_space(), clock_boot());
		if (write(*note, line, strlen(line)) != (ssize_t)strlen(line)) {
			error = errno;
			close_both(held, note);
			(void)unlinkat(folder, text, 0);
		}
	}
	if (error != 0) {
		errno = error;
		rc = lock_failed(database, "make a file");
	}
	close(folder);
	return error == EEXIST ? RC_BUSY : rc;
}

enum rc
attempt_lock_new(
    const char *database, int64_t owner, int *held, int *note, int64_t *name)
{
	return new_file(database, owner, "", held, note, name);
}

static bool
note_add_line(int note, enum log_level level, const char *line)
{
	const size_t n = strlen(line);

	if (write(note, line, n) == (ssize_t)n)
		return true;
	log_event(level, "liveness-error", NULL, LOG_S("doing", "write"),
	    LOG_S("message", strerror(errno)));
	return false;
}

enum rc
attempt_lock_begin(int note, const char *token, int64_t key)
{
	char line[NOTE_MAX];

	snprintf(line, sizeof(line), "%s %" PRId64 "\n", token, key);
	return note_add_line(note, LOG_ERROR, line) ? RC_OK : RC_IO;
}

void
attempt_lock_started(int note, pid_t pid)
{
	struct process_session s;
	char line[NOTE_MAX];

	if (!process_session(pid, &s))
		return;
	snprintf(
	    line, sizeof(line), "%ld %" PRIu64 "\n", (long)s.id, s.started);
	/* Without the line, the lock and the token are left. */
	(void)note_add_line(note, LOG_WARN, line);
}

/* --- looking ------------------------------------------------------------ */

static bool
is_held(int fd)
{
	struct flock lock;

	return set_lock(fd, F_OFD_GETLK, F_WRLCK, &lock) == -1 ||
	    lock.l_type != F_UNLCK;
}

/* The next complete line; NULL: none. */
static char *
next_line(char **rest)
{
	return strchr(*rest, '\n') != NULL ? strsep(rest, "\n") : NULL;
}

static enum rc
read_note(int fd, struct attempt_lock_note *note)
{
	char text[NOTE_MAX], *line, *rest = text;
	ssize_t n;

	memset(note, 0, sizeof(*note));
	if ((n = pread(fd, text, sizeof(text) - 1, 0)) == -1)
		return RC_IO;
	text[n] = '\0';
	if ((line = next_line(&rest)) == NULL)
		return RC_NOTFOUND;
	note->owner = (int64_t)strtoull(line, &line, 16);
	note->space = strtoull(line, &line, 10);
	note->made = strtoll(line, NULL, 10);
	if ((line = next_line(&rest)) == NULL)
		return RC_OK;
	if (strcspn(line, " ") != RECORD_TOKEN_LEN)
		return RC_CORRUPT;
	memcpy(note->token, line, RECORD_TOKEN_LEN);
	note->key = strtoll(line + RECORD_TOKEN_LEN, NULL, 10);
	if ((line = next_line(&rest)) == NULL)
		return RC_OK;
	note->session.id = (pid_t)strtol(line, &line, 10);
	note->session.started = strtoull(line, NULL, 10);
	return RC_OK;
}

/* What a file tells.  One that cannot be opened counts as held. */
struct look {
	bool there, held;
	enum rc rc; /* of its note */
	struct attempt_lock_note note;
};

static struct look
file_look(const char *database, int64_t name, const char *kind)
{
	struct look l = { .there = true, .held = true, .rc = RC_IO };
	int fd = attempt_file_open(database, name, kind);

	if (fd == -1) {
		if (errno == ENOENT)
			l = (struct look){ .rc = RC_NOTFOUND };
		return l;
	}
	l.held = is_held(fd);
	l.rc = read_note(fd, &l.note);
	close(fd);
	return l;
}

enum rc
attempt_lock_read(
    const char *database, int64_t name, struct attempt_lock_note *note)
{
	const struct look l = file_look(database, name, "");

	*note = l.note;
	return l.rc;
}

bool
attempt_lock_is_held(const char *database, int64_t name)
{
	return file_look(database, name, "").held ||
	    file_look(database, name, ATTEMPT_FILE_BY).held;
}

/* Whether a process with the note's token or session may live. */
static bool
note_lives(const struct attempt_lock_note *n, const struct process_list *list)
{
	if (n->token[0] == '\0' || clock_boot() < n->made)
		return false;
	return list == NULL || !process_list_shows(list, n->space) ||
	    process_list_find(list, &n->session, n->token) != 0;
}

/* Whether processes of that file may live.  A file that is missing or empty
 * counts as missing says. */
static bool
file_lives(const char *database, int64_t name, const char *kind,
    const struct process_list *list, bool missing)
{
	const struct look l = file_look(database, name, kind);

	if (!l.held && l.rc == RC_NOTFOUND)
		return missing;
	return l.held || l.rc != RC_OK || note_lives(&l.note, list);
}

bool
attempt_lock_lives(
    const char *database, int64_t name, const struct process_list *list)
{
	return name <= 0 ||
	    file_lives(database, name, "", list, !attempt_file_is_past(name)) ||
	    file_lives(database, name, ATTEMPT_FILE_BY, list, false);
}

static pid_t
process_of(const char *database, int64_t name, const char *kind,
    const struct process_list *list)
{
	const struct look l = file_look(database, name, kind);

	return l.rc == RC_OK && process_list_shows(list, l.note.space)
	    ? process_list_find(list, &l.note.session, l.note.token)
	    : 0;
}

pid_t
attempt_lock_process(
    const char *database, int64_t name, const struct process_list *list)
{
	const pid_t pid = process_of(database, name, "", list);

	return pid != 0 ? pid
			: process_of(database, name, ATTEMPT_FILE_BY, list);
}

void
attempt_lock_remove(const char *database, int64_t name)
{
	/* In this order: without the first file the second one is not found. */
	attempt_file_remove(database, name, ATTEMPT_FILE_BY);
	attempt_file_remove(database, name, "");
}

static enum rc
visit_file(const char *database, int64_t name, const char *kind,
    enum rc (*visit)(void *, int64_t, const struct attempt_lock_note *),
    void *arg)
{
	const struct look l = file_look(database, name, kind);

	/* Its maker died before it wrote a line; or it has not locked the file
	 * yet, and then makes another one. */
	if (l.there && !l.held && l.rc == RC_NOTFOUND)
		attempt_file_remove(database, name, kind);
	return l.rc == RC_OK ? visit(arg, name, &l.note) : RC_OK;
}

enum rc
attempt_lock_each(const char *database, const char *kind,
    enum rc (*visit)(void *, int64_t, const struct attempt_lock_note *),
    void *arg)
{
	int64_t name;
	struct dirent *d;
	enum rc rc = RC_OK;
	DIR *dir;
	int fd;

	if ((fd = attempt_file_folder(database, false)) == -1)
		return errno == ENOENT ? RC_OK : lock_failed(database, "open");
	if ((dir = fdopendir(fd)) == NULL) {
		close(fd);
		return RC_NOMEM;
	}
	while (rc == RC_OK && (d = readdir(dir)) != NULL) {
		if ((name = attempt_file_number(d->d_name, kind)) > 0)
			rc = visit_file(database, name, kind, visit, arg);
	}
	closedir(dir);
	return rc;
}

/* --- processes that stay -------------------------------------------------- */

enum rc
attempt_lock_process_new(const char *database, int64_t owner, const char *token,
    int *held, int *note, int64_t *name)
{
	enum rc rc;

	rc = new_file(database, owner, ATTEMPT_FILE_PROCESS, held, note, name);
	if (rc == RC_OK &&
	    (rc = attempt_lock_begin(*note, token, 0)) != RC_OK) {
		close_both(held, note);
		attempt_file_remove(database, *name, ATTEMPT_FILE_PROCESS);
	}
	return rc;
}

enum rc
attempt_lock_process_acts(const char *database, int64_t name, int64_t process)
{
	char from[ATTEMPT_FILE_LEN], to[ATTEMPT_FILE_LEN];
	enum rc rc = RC_OK;
	int folder;

	if ((folder = attempt_file_folder(database, false)) == -1)
		return lock_failed(database, "open");
	attempt_file_text(process, ATTEMPT_FILE_PROCESS, from);
	attempt_file_text(name, ATTEMPT_FILE_BY, to);
	if (linkat(folder, from, folder, to, 0) == -1)
		rc = lock_failed(database, "link a file");
	close(folder);
	return rc;
}
