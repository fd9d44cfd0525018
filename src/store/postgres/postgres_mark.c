/*
 * See postgres_host.h.  The file has one line for the mark, and one for each
 * process that has held its lock there, the last ones:
 *
 *	oncewrap-host MARK MACHINE INODE DEVICE BOOT
 *	lock OWNER DEVICE
 *
 * No process has the first byte of the file as its name.  So that byte's lock
 * keeps readers and writers of the line apart.
 */
#include "config.h"

#include <sys/random.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "postgres_host.h"

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

static enum rc
mark_new(char mark[POSTGRES_MARK_LEN + 1])
{
	unsigned char bits[POSTGRES_MARK_LEN / 2];

	if (getrandom(bits, sizeof(bits), 0) != sizeof(bits))
		return RC_IO;
	for (size_t i = 0; i < sizeof(bits); i++)
		(void)snprintf(mark + 2 * i, 3, "%02x", bits[i]);
	return RC_OK;
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
	enum rc rc = RC_OK;

	if (fstat(f->fd, &st) == -1)
		return RC_IO;
	if ((int64_t)st.st_ino != at->inode ||
	    (uint64_t)st.st_dev != at->device)
		return RC_LOST;
	fits = mark_fits(f->text, at, mark, &same);
	if (!make)
		return fits ? RC_OK : RC_NOTFOUND;
	if (!fits)
		rc = mark_new(mark);
	if (rc != RC_OK || same)
		return rc;
	(void)mark_line(line, mark, at);
	/* Another folder's locks were not held here. */
	return mark_write(f, line, fits ? mark_locks(f->text) : "");
}

enum rc
postgres_mark_read(const struct liveness *l, const struct postgres_mark *at,
    bool make, char mark[POSTGRES_MARK_LEN + 1])
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
