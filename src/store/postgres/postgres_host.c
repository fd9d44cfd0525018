/*
 * See postgres_host.h.
 */
#include "config.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "digest.h"
#include "user.h"
#include "uuid.h"
#include "postgres_host.h"

void
postgres_host_machine(char id[33])
{
	static const char none[] = "00000000000000000000000000000000";
	FILE *f = fopen("/etc/machine-id", "re");

	if (f == NULL || fgets(id, 33, f) == NULL ||
	    strspn(id, "0123456789abcdef") != 32)
		memcpy(id, none, sizeof(none));
	if (f != NULL)
		(void)fclose(f);
}

#define FOLDER "/var/lib/oncewrap"

/* The folder's name, which the caller frees; NULL: no memory. */
static char *
host_folder(void)
{
	const char *state = getenv("STATE_DIRECTORY");

	/* systemd gives several folders with colons between them. */
	return state != NULL && *state == '/'
	    ? strndup(state, strcspn(state, ":"))
	    : strdup(FOLDER);
}

static enum rc
host_check(const char *folder, bool make, char *err, size_t errsize)
{
	char self[USER_NAME];
	struct stat st;

	if (make && mkdir(folder, 0700) == -1 && errno != EEXIST) {
		snprintf(err, errsize,
		    "%s: %s: it is for files that name this host's processes: "
		    "make it, or name another folder in STATE_DIRECTORY",
		    folder, strerror(errno));
		return RC_IO;
	}
	if (lstat(folder, &st) == -1 && !make && errno == ENOENT) {
		snprintf(err, errsize, "%s: there is no such folder", folder);
		return RC_NOTFOUND;
	}
	/* Root looks at the processes of a daemon of another user. */
	if (lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) &&
	    (st.st_uid == geteuid() || geteuid() == 0) &&
	    (st.st_mode & 022) == 0)
		return RC_OK;
	user_name(geteuid(), self);
	snprintf(err, errsize,
	    "%s: is for files that name this host's processes, and must be a "
	    "folder of %s that no other user can write: chown and chmod it, or "
	    "name another folder in STATE_DIRECTORY",
	    folder, self);
	return RC_IO;
}

enum rc
postgres_host_check(char *err, size_t errsize)
{
	char *folder = host_folder();
	enum rc rc = RC_NOMEM;

	if (folder != NULL)
		rc = host_check(folder, false, err, errsize);
	free(folder);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/* --- the mark ------------------------------------------------------------- */

/*
 * The lock file has one line for the mark, and one for each process that has
 * held its lock there, the last ones:
 *
 *	oncewrap-host MARK MACHINE INODE DEVICE BOOT
 *	lock OWNER DEVICE
 *
 * No process has the first byte of the file as its name.  So that byte's lock
 * keeps readers and writers of the line apart.
 */

/* Where a lock file is. */
struct postgres_mark {
	const char *machine; /* 32 digits */
	const char *boot;    /* the kernel's id of it; "": not known */
	int64_t inode;
	uint64_t device;
};

#define LINE_MAX_LEN 256

/* Bytes of the file at most: some 400 processes. */
#define FILE_MAX_LEN 16384

/* The line up to its end; what the mark cannot be told from is no mark. */
static int
mark_line(
    char line[LINE_MAX_LEN], const char *mark, const struct postgres_mark *at)
{
	return snprintf(line, LINE_MAX_LEN,
	    "oncewrap-host %s %s %016" PRIx64 " %016" PRIx64 " %s\n", mark,
	    at->machine, (uint64_t)at->inode, at->device,
	    at->boot[0] != '\0' ? at->boot : "-");
}

/* Whether the line names a mark that was made there; *same: the line need not
 * be written anew. */
static bool
mark_fits(const char *line, const struct postgres_mark *at,
    char mark[POSTGRES_MARK_LEN + 1], bool *same)
{
	char machine[33], boot[40], inode[17], device[17];
	char whole[LINE_MAX_LEN];

	if (sscanf(line,
		"oncewrap-host %32[0-9a-f] %32[0-9a-f] %16[0-9a-f] "
		"%16[0-9a-f] %39[-0-9a-f]",
		mark, machine, inode, device, boot) != 5 ||
	    strlen(mark) != POSTGRES_MARK_LEN || strchr(line, '\n') == NULL)
		return false;
	(void)mark_line(whole, mark, at);
	*same = strncmp(line, whole, strlen(whole)) == 0;
	return strcmp(machine, at->machine) == 0 &&
	    strtoull(inode, NULL, 16) == (uint64_t)at->inode &&
	    (strtoull(device, NULL, 16) == at->device ||
		(at->boot[0] != '\0' && strcmp(boot, at->boot) != 0));
}

/* An open lock file, and what is in it.  Other readers and writers are kept out
 * until it is closed. */
struct mark_file {
	int fd;
	char text[FILE_MAX_LEN + 1];
};

/* Closes it, and leaves errno as it is. */
static void
mark_close(const struct mark_file *f)
{
	const int error = errno;

	close(f->fd);
	errno = error;
}

/* RC_IO: errno says why. */
static enum rc
mark_open(struct mark_file *f, const struct liveness *l)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1
	};
	ssize_t n = -1;

	f->fd = open(liveness_name(l), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (f->fd == -1)
		return RC_IO;
	if (fcntl(f->fd, F_OFD_SETLKW, &lock) == 0)
		n = pread(f->fd, f->text, FILE_MAX_LEN, 0);
	if (n == -1) {
		mark_close(f);
		return RC_IO;
	}
	f->text[n] = '\0';
	return RC_OK;
}

/* Replaces all of the file. */
static enum rc
mark_write(const struct mark_file *f, const char *line, const char *locks)
{
	char text[LINE_MAX_LEN + FILE_MAX_LEN + 1];
	const int n = snprintf(text, sizeof(text), "%s%s", line, locks);

	if (ftruncate(f->fd, 0) == -1)
		return RC_IO;
	errno = ENOSPC; /* of a short write */
	return pwrite(f->fd, text, (size_t)n, 0) == n && fsync(f->fd) == 0
	    ? RC_OK
	    : RC_IO;
}

/* What follows the first line. */
static const char *
mark_locks(const char *text)
{
	const char *end = strchr(text, '\n');

	return end != NULL ? end + 1 : "";
}

static enum rc
mark_find(const struct mark_file *f, const struct postgres_mark *at, bool make,
    char mark[POSTGRES_MARK_LEN + 1])
{
	char line[LINE_MAX_LEN];
	bool fits, same = false;
	struct stat st;

	if (fstat(f->fd, &st) == -1)
		return RC_IO;
	if ((int64_t)st.st_ino != at->inode ||
	    (uint64_t)st.st_dev != at->device)
		return RC_LOST;
	fits = mark_fits(f->text, at, mark, &same);
	if (!make)
		return fits ? RC_OK : RC_NOTFOUND;
	if (!fits)
		uuid_digits(mark);
	if (same)
		return RC_OK;
	(void)mark_line(line, mark, at);
	/* Another folder's locks were not held here. */
	return mark_write(f, line, fits ? mark_locks(f->text) : "");
}

/*
 * Reads the mark of the lock file, hexadecimal digits.  make: makes it if the
 * file has none, or one that was made elsewhere, and syncs the file; else
 * RC_NOTFOUND.  RC_LOST: the file of that name is another one.  RC_IO: errno
 * says why.
 */
static enum rc
mark_read(const struct liveness *l, const struct postgres_mark *at, bool make,
    char mark[POSTGRES_MARK_LEN + 1])
{
	struct mark_file f;
	enum rc rc = mark_open(&f, l);

	if (rc != RC_OK)
		return rc;
	rc = mark_find(&f, at, make, mark);
	mark_close(&f);
	return rc;
}

/* --- processes that have held their locks --------------------------------- */

#define LOCK_LEN 40

static void
lock_line(char line[LOCK_LEN], const struct liveness *l, int64_t owner)
{
	(void)snprintf(line, LOCK_LEN, "lock %016" PRIx64 " %016" PRIx64 "\n",
	    (uint64_t)owner, liveness_device(l));
}

static enum rc
lock_add(struct mark_file *f, const char *line)
{
	char first[LINE_MAX_LEN], *const text = f->text;
	const char *locks = strchr(text, '\n');
	size_t n = locks != NULL ? (size_t)(++locks - text) : 0;

	if (n == 0 || n >= sizeof(first))
		return RC_LOST;
	memcpy(first, text, n);
	first[n] = '\0';
	n = strlen(text);
	if (n + LOCK_LEN > FILE_MAX_LEN) /* the older half goes */
		locks = mark_locks(text + n / 2);
	n = strlen(locks);
	memmove(text, locks, n);
	/* A line that a loss of power cut off makes no other one. */
	if (n > 0 && text[n - 1] != '\n')
		text[n - 1] = '\n';
	memcpy(text + n, line, strlen(line) + 1);
	return mark_write(f, first, text);
}

enum rc
postgres_host_holds(const struct liveness *l)
{
	char line[LOCK_LEN];
	struct mark_file f;
	enum rc rc = mark_open(&f, l);

	if (rc != RC_OK)
		return rc;
	lock_line(line, l, liveness_self(l));
	rc = lock_add(&f, line);
	mark_close(&f);
	return rc;
}

bool
postgres_host_held(const struct liveness *l, int64_t owner)
{
	char line[LOCK_LEN];
	struct mark_file f;
	bool held;

	if (mark_open(&f, l) != RC_OK)
		return false;
	lock_line(line, l, owner);
	held = strstr(mark_locks(f.text), line) != NULL;
	mark_close(&f);
	return held;
}

/* --- names ---------------------------------------------------------------- */

static void
host_hash(const void *bytes, size_t len, const char *text,
    unsigned char out[DIGEST_LEN])
{
	struct digest d;

	digest_begin(&d);
	digest_bytes(&d, bytes, len);
	digest_text(&d, text);
	digest_end(&d, out);
}

enum rc
postgres_host_store(struct postgres_host *host, const unsigned char *secret,
    const char *catalog)
{
	unsigned char h[DIGEST_LEN];

	host_hash(secret, SCOPE_SECRET_LEN, catalog, h);
	if (asprintf(&host->local, "%s/postgresql-%02x%02x%02x%02x%02x%02x",
		host->folder, h[0], h[1], h[2], h[3], h[4], h[5]) != -1)
		return RC_OK;
	host->local = NULL;
	return RC_NOMEM;
}

enum rc
postgres_host_open(
    struct postgres_host *host, bool make, char *err, size_t errsize)
{
	postgres_host_free(host);
	memset(host, 0, sizeof(*host));
	if ((host->folder = host_folder()) != NULL)
		return host_check(host->folder, make, err, errsize);
	snprintf(err, errsize, "%s", rc_text(RC_NOMEM));
	return RC_NOMEM;
}

enum rc
postgres_host_name(struct postgres_host *host, const struct liveness *l,
    bool make, char *err, size_t errsize)
{
	char machine[33], boot[CLOCK_BOOT_ID_LEN + 1],
	    mark[POSTGRES_MARK_LEN + 1];
	/* A boot that is not known is of one process alone. */
	const bool known = clock_boot_id(boot);
	const struct postgres_mark at = { machine, boot, liveness_file(l),
		liveness_device(l) };
	unsigned char hash[DIGEST_LEN];
	uint64_t bits = 0;
	enum rc rc;

	postgres_host_machine(machine);
	rc = mark_read(l, &at, make, mark);
	if (rc == RC_NOTFOUND)
		snprintf(err, errsize,
		    "%s: is a copy, in which no daemon has run",
		    liveness_name(l));
	else if (rc != RC_OK)
		snprintf(err, errsize, "%s: %s: it names this host",
		    liveness_name(l),
		    rc == RC_IO ? strerror(errno) : rc_text(rc));
	if (rc != RC_OK)
		return rc;
	(void)snprintf(host->boot, sizeof(host->boot), "%s-%016" PRIx64, boot,
	    known ? at.device : (uint64_t)liveness_self(l));
	(void)snprintf(host->name, sizeof(host->name), "%s-%s", machine, mark);
	host_hash("", 0, host->name, hash);
	for (int i = 0; i < 8; i++)
		bits = bits << 8 | hash[i];
	host->number = (int64_t)(bits >> 2) | 1;
	return RC_OK;
}

void
postgres_host_free(struct postgres_host *host)
{
	free(host->folder);
	free(host->local);
	host->folder = host->local = NULL;
}
