/*
 * The input of oncectl: standard input, and files.
 */
#include "config.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "oncectl_answer.h"

#define READ_SIZE 65536

static bool
bad(const struct oncectl_input *in, const char *why)
{
	warnx("%s: %s", in->name != NULL ? in->name : "standard input", why);
	return false;
}

bool
oncectl_answer_bad(const char *why)
{
	const struct oncectl_input in = { NULL, 0, NULL };

	return bad(&in, why);
}

static bool
answer_read_all(int fd, struct oncectl_input *in, uint64_t max)
{
	char bytes[READ_SIZE];
	uint64_t room;
	ssize_t n;
	enum rc rc;

	in->length = 0;
	if ((in->spool = spool_new()) == NULL)
		return bad(in, rc_text(RC_NOMEM));
	for (;;) {
		n = read(fd, bytes, sizeof(bytes));
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return bad(in, strerror(errno));
		if (n == 0)
			return true;
		in->length += (uint64_t)n;
		room = max - spool_length(in->spool);
		if ((uint64_t)n > room)
			n = (ssize_t)room;
		rc = spool_write(in->spool, bytes, (size_t)n);
		if (rc != RC_OK)
			return bad(in, rc_text(rc));
	}
}

bool
oncectl_answer_read(struct oncectl_input *in, uint64_t max)
{
	bool good;
	int fd;

	if (in->name == NULL)
		return answer_read_all(STDIN_FILENO, in, max);
	if ((fd = open(in->name, O_RDONLY | O_CLOEXEC)) == -1)
		return bad(in, strerror(errno));
	good = answer_read_all(fd, in, max);
	close(fd);
	return good;
}

const void *
oncectl_answer_bytes(const struct oncectl_input *in)
{
	enum rc rc = RC_OK;
	const void *bytes = spool_bytes(in->spool, &rc);

	if (rc == RC_OK)
		return bytes != NULL ? bytes : "";
	bad(in, rc_text(rc));
	return NULL;
}

void
oncectl_answer_free(struct oncectl_input *in)
{
	spool_free(in->spool);
	in->spool = NULL;
}
