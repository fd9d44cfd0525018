/*
 * Bytes in memory, then in a file without a name.
 *
 * The directory belongs to this file, not to a spool: a spool may outlive the
 * configuration that it was made under, and opens its file late.
 *
 * Invariant: while .fd is -1, the bytes are in .memory; else all of them are
 * in the file.  .map is either NULL or a mapping of the whole file.
 */
#include "config.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "limit.h"
#include "log.h"
#include "spool.h"

/* A directory for spools.  It is never freed, because another thread may be
 * reading its name. */
struct directory {
	struct directory *next; /* of all that were used */
	char name[];
};
static struct directory *_Atomic directory; /* NULL: the default one */
static struct directory *directories;       /* used by spool_setup() */

static _Atomic uint64_t total = UINT64_MAX, used;

struct spool {
	struct buf memory;
	uint64_t length;
	uint64_t counted; /* of them, in used */
	int fd;
	void *map;
};

enum rc
spool_setup(const char *dir, uint64_t bytes)
{
	const char *name = dir != NULL ? dir : spool_default_dir();
	struct directory *d = directories;

	while (d != NULL && strcmp(d->name, name) != 0)
		d = d->next;
	if (d == NULL) {
		if ((d = malloc(sizeof(*d) + strlen(name) + 1)) == NULL)
			return RC_NOMEM;
		memcpy(d->name, name, strlen(name) + 1);
		d->next = directories;
		directories = d;
	}
	atomic_store(&directory, d);
	atomic_store(&total, bytes);
	return RC_OK;
}

bool
spool_has_room(uint64_t more)
{
	uint64_t most = atomic_load(&total), now = atomic_load(&used);

	return now <= most && more <= most - now;
}

uint64_t
spool_total(void)
{
	return atomic_load(&total);
}

const char *
spool_dir(void)
{
	const struct directory *d = atomic_load(&directory);

	return d != NULL ? d->name : spool_default_dir();
}

bool
spool_is_usable(char *why, size_t size)
{
	const char *dir = spool_dir();

	if (faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) == 0)
		return true;
	snprintf(why, size, "%s: no body above %d KiB can be stored there: %s",
	    dir, LIMIT_SPOOL_MEMORY >> 10, strerror(errno));
	return false;
}

static enum rc
spool_failed(const char *what)
{
	int error = errno;

	log_event(LOG_ERROR, "spool-error", NULL, LOG_S("dir", spool_dir()),
	    LOG_S("doing", what), LOG_S("message", strerror(error)));
	errno = error;
	return error == ENOSPC || error == EDQUOT || error == EFBIG ? RC_FULL
								    : RC_IO;
}

struct spool *
spool_new(void)
{
	struct spool *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->fd = -1;
	buf_init(&s->memory, LIMIT_SPOOL_MEMORY);
	return s;
}

static void
count_bytes(struct spool *s, size_t n)
{
	s->length += n;
	s->counted += n;
	atomic_fetch_add(&used, n);
}

void
spool_uncount(struct spool *s)
{
	atomic_fetch_sub(&used, s->counted);
	s->counted = 0;
}

static void
spool_unmap(struct spool *s)
{
	if (s->map != NULL)
		munmap(s->map, (size_t)s->length);
	s->map = NULL;
}

void
spool_free(struct spool *s)
{
	if (s == NULL)
		return;
	spool_unmap(s);
	if (s->fd != -1)
		close(s->fd);
	buf_free(&s->memory);
	spool_uncount(s);
	free(s);
}

static int
unlinked_file(const char *dir)
{
	char *name;
	int fd;

	if (asprintf(&name, "%s/oncewrap-XXXXXX", dir) == -1) {
		errno = ENOMEM;
		return -1;
	}
	fd = mkostemp(name, O_CLOEXEC);
	if (fd != -1)
		unlink(name);
	free(name);
	return fd;
}

static enum rc
spool_write_file(struct spool *s, const char *data, size_t n)
{
	ssize_t w;

	while (n > 0) {
		w = write(s->fd, data, n);
		if (w == -1 && errno == EINTR)
			continue;
		if (w == -1)
			return spool_failed("write");
		data += w;
		n -= (size_t)w;
	}
	return RC_OK;
}

static enum rc
move_to_file(struct spool *s)
{
	enum rc rc;

	s->fd = unlinked_file(spool_dir());
	if (s->fd == -1)
		return spool_failed("open");
	rc = spool_write_file(s, s->memory.data, s->memory.len);
	buf_free(&s->memory);
	return rc;
}

enum rc
spool_write(struct spool *s, const void *data, size_t n)
{
	enum rc rc;

	if (n == 0)
		return RC_OK;
	if (s->fd == -1 && n <= LIMIT_SPOOL_MEMORY - s->length) {
		if ((rc = buf_add(&s->memory, data, n)) == RC_OK)
			count_bytes(s, n);
		return rc;
	}
	spool_unmap(s);
	if (n > LIMIT_SIZE - s->length) {
		errno = EFBIG;
		return spool_failed("write");
	}
	if (s->fd == -1 && (rc = move_to_file(s)) != RC_OK)
		return rc;
	if ((rc = spool_write_file(s, data, n)) == RC_OK)
		count_bytes(s, n);
	return rc;
}

uint64_t
spool_length(const struct spool *s)
{
	return s->length;
}

const void *
spool_bytes(struct spool *s, enum rc *rc)
{
	void *p;

	*rc = RC_OK;
	if (s->fd == -1)
		return s->length > 0 ? s->memory.data : NULL;
	if (s->map == NULL) {
		p = mmap(
		    NULL, (size_t)s->length, PROT_READ, MAP_SHARED, s->fd, 0);
		if (p == MAP_FAILED) {
			*rc = errno == ENOMEM ? RC_NOMEM : RC_IO;
			(void)spool_failed("mmap");
			return NULL;
		}
		s->map = p;
	}
	return s->map;
}

int
spool_fd(const struct spool *s)
{
	return s->fd;
}

const char *
spool_default_dir(void)
{
	const char *dir = getenv("TMPDIR");

	return dir != NULL && dir[0] == '/' ? dir : "/tmp";
}
