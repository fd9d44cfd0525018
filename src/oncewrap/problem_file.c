/*
 * The names of the files are made of the code and of a language tag, which has
 * letters, digits and hyphens only: see prefer_languages().  A page is a
 * regular file of a bounded size in the folder itself, and never a link or a
 * device.
 *
 * Files are read anew for each problem, so a page that is changed is shown
 * without a reload.  The folder may be slow, so the loop must not read it.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "limit.h"
#include "log.h"
#include "problem_file.h"

/* Reads an open file.  NULL, or why it is no page. */
static const char *
problem_file_load(int fd, struct buf *bytes)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) == -1)
		return strerror(errno);
	if (!S_ISREG(st.st_mode))
		return "it is no regular file";
	do {
		/* One byte more than allowed shows that there are more. */
		if (buf_reserve(bytes, LIMIT_PROBLEM_PAGE + 1 - bytes->len) !=
		    RC_OK)
			return "no memory";
		n = read(fd, bytes->data + bytes->len,
		    LIMIT_PROBLEM_PAGE + 1 - bytes->len);
		if (n > 0)
			buf_commit(bytes, (size_t)n);
	} while (n > 0 && bytes->len <= LIMIT_PROBLEM_PAGE);
	if (n == -1)
		return strerror(errno);
	return bytes->len > LIMIT_PROBLEM_PAGE ? "it is longer than 64K" : NULL;
}

/* language: "" for the file without one.  False: there is no such page. */
static bool
problem_file_try(struct problem_file *file, int folder, const char *stem,
    const char *language, const struct request *rq)
{
	char name[128];
	const char *why;
	int fd;

	(void)snprintf(name, sizeof(name), "%s%s%s.html", stem,
	    *language != '\0' ? "." : "", language);
	fd = openat(folder, name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd == -1 && errno == ENOENT)
		return false;
	buf_clear(&file->bytes);
	if (fd != -1) {
		why = problem_file_load(fd, &file->bytes);
		close(fd);
	} else
		why =
		    errno == ELOOP ? "it is a symbolic link" : strerror(errno);
	if (why != NULL) {
		log_event(LOG_WARN, "problem-page", rq->log,
		    LOG_S("file", name), LOG_S("why", why));
		return false;
	}
	file->page.bytes = file->bytes.data;
	file->page.len = file->bytes.len;
	file->page.language = language;
	return true;
}

/* Removes the last subtag, and a single letter before it (RFC 4647, section
 * 3.4).  False: there is no other. */
static bool
shorten(char *tag)
{
	char *hyphen = strrchr(tag, '-');

	if (hyphen == NULL)
		return false;
	*hyphen = '\0';
	if (hyphen - tag > 2 && hyphen[-2] == '-')
		hyphen[-2] = '\0';
	return true;
}

/* The pages without a language, and ours, stand for English. */
static bool
read_best(struct problem_file *file, int folder, const char *stem,
    const struct request *rq)
{
	char *tag = file->language;
	bool english = false;

	for (size_t i = 0; i < file->languages.n && !english; i++) {
		(void)stpcpy(tag, file->languages.item[i].tag);
		do {
			if (problem_file_try(file, folder, stem, tag, rq))
				return true;
			english = strcmp(tag, "en") == 0;
		} while (shorten(tag));
	}
	return problem_file_try(file, folder, stem, "", rq);
}

void
problem_file_read(struct problem_file *file, const char *folder,
    enum problem_code code, const struct request *rq)
{
	int fd;

	memset(file, 0, sizeof(*file));
	buf_init(&file->bytes, LIMIT_PROBLEM_PAGE + 1);
	fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1) {
		log_event(LOG_WARN, "problem-page", rq->log,
		    LOG_S("file", folder), LOG_S("why", strerror(errno)));
		return;
	}
	prefer_languages(rq, &file->languages);
	if (!read_best(file, fd, problem_name(code), rq))
		(void)read_best(file, fd, "any", rq);
	close(fd);
}

void
problem_file_free(struct problem_file *file)
{
	buf_free(&file->bytes);
}

static bool
is_stem(const char *name, size_t n)
{
#define NAME(unused, id, name) name,
	static const char *const stems[] = { METRICS_CODES(NAME, ) "any" };
#undef NAME

	for (size_t i = 0; i < sizeof(stems) / sizeof(stems[0]); i++)
		if (strlen(stems[i]) == n && memcmp(stems[i], name, n) == 0)
			return true;
	return false;
}

/* Whether the file of that name is no page, or one that can be found. */
static bool
is_page_name(const char *name)
{
	const char *end = strrchr(name, '.'), *dot = strchr(name, '.');

	if (end == NULL || strcmp(end, ".html") != 0)
		return true;
	if (!is_stem(name, (size_t)(dot - name)))
		return false;
	return dot == end ||
	    dot + 1 +
		strspn(dot + 1, "abcdefghijklmnopqrstuvwxyz0123456789-") ==
	    end;
}

bool
problem_file_names(const char *folder, char *why, size_t size)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	bool good = true;

	while (good && dir != NULL && (entry = readdir(dir)) != NULL) {
		if (is_page_name(entry->d_name))
			continue;
		(void)snprintf(why, size,
		    "%s/%s: is never shown: name it as a code of a problem, or "
		    "any, and perhaps a language in lower case, such as "
		    "key-reused.de.html",
		    folder, entry->d_name);
		good = false;
	}
	if (dir != NULL)
		(void)closedir(dir);
	return good;
}
