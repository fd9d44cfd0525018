/*
 * See postgres_mark.h.  The file is one line:
 *
 *	oncewrap-host MARK MACHINE INODE DEVICE BOOT
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
#include <string.h>
#include <unistd.h>

#include "postgres_mark.h"

#define LINE_MAX_LEN 256

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
	char machine[33], boot[40], whole[LINE_MAX_LEN];
	uint64_t inode, device;

	if (sscanf(line,
		"oncewrap-host %32[0-9a-f] %32[0-9a-f] %16" SCNx64 " %16" SCNx64
		" %39[-0-9a-f]",
		mark, machine, &inode, &device, boot) != 5 ||
	    strlen(mark) != POSTGRES_MARK_LEN || strchr(line, '\n') == NULL)
		return false;
	(void)mark_line(whole, mark, at);
	*same = strcmp(line, whole) == 0;
	return strcmp(machine, at->machine) == 0 &&
	    inode == (uint64_t)at->inode &&
	    (device == at->device ||
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

static enum rc
mark_write(int fd, const char *mark, const struct postgres_mark *at)
{
	char line[LINE_MAX_LEN];
	const int n = mark_line(line, mark, at);

	if (ftruncate(fd, 0) == -1)
		return RC_IO;
	errno = ENOSPC; /* of a short write */
	return pwrite(fd, line, (size_t)n, 0) == n && fsync(fd) == 0 ? RC_OK
								     : RC_IO;
}

static enum rc
mark_find(int fd, const struct postgres_mark *at, bool make,
    char mark[POSTGRES_MARK_LEN + 1])
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1
	};
	char line[LINE_MAX_LEN];
	bool fits, same = false;
	struct stat st;
	enum rc rc = RC_OK;
	ssize_t n;

	if (fstat(fd, &st) == -1)
		return RC_IO;
	if ((int64_t)st.st_ino != at->inode ||
	    (uint64_t)st.st_dev != at->device)
		return RC_LOST;
	if (fcntl(fd, F_OFD_SETLKW, &lock) == -1 ||
	    (n = pread(fd, line, sizeof(line) - 1, 0)) == -1)
		return RC_IO;
	line[n] = '\0';
	fits = mark_fits(line, at, mark, &same);
	if (!make)
		return fits ? RC_OK : RC_NOTFOUND;
	if (!fits)
		rc = mark_new(mark);
	return rc == RC_OK && !same ? mark_write(fd, mark, at) : rc;
}

enum rc
postgres_mark_read(const char *file, const struct postgres_mark *at, bool make,
    char mark[POSTGRES_MARK_LEN + 1])
{
	const int fd = open(file, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	enum rc rc;
	int error;

	if (fd == -1)
		return RC_IO;
	rc = mark_find(fd, at, make, mark);
	error = errno;
	close(fd);
	errno = error;
	return rc;
}
