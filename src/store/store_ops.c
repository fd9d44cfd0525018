/*
 * The store that a process has opened: each call goes to its kind.
 */
#include "config.h"

#include <sys/eventfd.h>
#include <sys/inotify.h>

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "conf_value.h"
#include "store_files.h"
#include "store_module.h"
#include "store_ops.h"

static const struct store_ops *
ops_of(const struct store *store)
{
	return store_base_of(store)->ops;
}

/* clang-format off */
#define X(type, name, parameters, arguments)	\
	type					\
	store_##name parameters			\
	{					\
		return ops_of(s)->name arguments; \
	}
STORE_OPS(X)
#undef X
/* clang-format on */

const unsigned char *
store_secret(const struct store *s)
{
	return store_base_of(s)->secret;
}

const char *
store_database(const struct store *s)
{
	return store_base_of(s)->database;
}

const char *
store_folder(const struct store *s)
{
	return store_base_of(s)->folder;
}

enum rc
store_open(struct store **store, const struct store_options *options, char *err,
    size_t errsize)
{
	const struct store_module *module;
	enum rc rc;

	if (!conf_text_is_postgresql(options->database))
		return sqlite_open(store, options, err, errsize);
	if ((rc = store_module_load(&module, err, errsize)) != RC_OK)
		return rc;
	return module->open(store, options, err, errsize);
}

void
store_close(struct store *store)
{
	if (store != NULL)
		ops_of(store)->close(store);
}

/* --- store time ----------------------------------------------------------- */

/* Where time stands still, a second less: the scheduler waits so long before it
 * looks again for what is due next. */
int64_t
store_now(const struct store *s)
{
	const struct store_base *b = store_base_of(s);
	const int64_t stands = b->stands;

	return stands != 0 ? stands - 1000 : clock_boot() + b->ahead;
}

/* With a server, store time is the server's wall clock. */
int64_t
store_wall(const struct store *s, int64_t store_time)
{
	const struct store_base *b = store_base_of(s);

	return b->file == NULL ? store_time
			       : clock_wall_at_boot() + store_time - b->ahead;
}

/* --- the store that is loaded --------------------------------------------- */

#define MODULE "oncewrap-postgresql.so"

static enum rc
module_of(
    void *handle, const struct store_module **module, char *err, size_t errsize)
{
	const struct store_module *m = dlsym(handle, "oncewrap_postgresql");

	if (m == NULL || strcmp(m->version, PACKAGE_VERSION) != 0) {
		snprintf(err, errsize,
		    "%s is of version %s, and this program of %s: install "
		    "both anew",
		    MODULE, m != NULL ? m->version : "unknown",
		    PACKAGE_VERSION);
		return RC_VERSION;
	}
	*module = m;
	return RC_OK;
}

enum rc
store_module_load(const struct store_module **module, char *err, size_t errsize)
{
	const char *folder = secure_getenv("ONCEWRAP_MODULES");
	char name[4096];
	void *handle;

	if (folder == NULL || *folder == '\0')
		folder = MODULES;
	(void)snprintf(name, sizeof(name), "%s/" MODULE, folder);
	/* It stays loaded: a library's threads and exit handlers may need
	 * it. */
	handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (handle == NULL) {
		snprintf(err, errsize,
		    "a PostgreSQL database needs the package "
		    "oncewrap-postgresql: %s",
		    dlerror());
		return RC_NOTFOUND;
	}
	return module_of(handle, module, err, errsize);
}

/* --- work of this process ------------------------------------------------- */

int
store_news_open(void)
{
	return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void
store_news_made(int news)
{
	const uint64_t one = 1;

	if (news != -1 && write(news, &one, sizeof(one)) == -1)
		assert(errno == EAGAIN); /* it is readable already */
}

int
store_news(const struct store *s)
{
	return store_base_of(s)->news;
}

void
store_wake(struct store *s)
{
	store_news_made(store_news(s));
}

/* --- other processes ------------------------------------------------------ */

/*
 * Each commit is written to the write-ahead log, by write(2), and the log stays
 * the same file as long as this process has the database open.  A server tells
 * nothing of what others commit: its work is found by polling.
 */
int
store_watch(const struct store *s)
{
	const char *file = store_base_of(s)->file;
	char name[4096];
	int fd;

	if (file == NULL ||
	    (size_t)snprintf(name, sizeof(name), "%s-wal", file) >=
		sizeof(name))
		return -1;
	if ((fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) == -1)
		return -1;
	if (inotify_add_watch(fd, name, IN_MODIFY) == -1) {
		close(fd);
		return -1;
	}
	return fd;
}

enum rc
store_watch_read(int fd)
{
	_Alignas(struct inotify_event) char bytes[1024];
	const struct inotify_event *event;
	enum rc rc = RC_NOTFOUND;
	ssize_t n, at;

	while ((n = read(fd, bytes, sizeof(bytes))) > 0) {
		for (at = 0; at < n;
		     at += (ssize_t)(sizeof(*event) + event->len)) {
			event = (const void *)(bytes + at);
			if ((event->mask & IN_IGNORED) != 0)
				return RC_LOST;
		}
		rc = RC_OK;
	}
	return rc;
}

/* --- handlers that share the database ------------------------------------- */

void
store_share_files(struct store *s)
{
	if (store_base(s)->file != NULL)
		store_files_share(store_base(s)->file);
}

void
store_share_begin(struct store *s)
{
	atomic_store(&store_base(s)->shared, true);
	atomic_fetch_add(&store_base(s)->sharing, 1);
}

void
store_share_end(struct store *s)
{
	atomic_fetch_sub(&store_base(s)->sharing, 1);
}

/* --- a copy --------------------------------------------------------------- */

enum rc
store_backup(struct store *s, const struct store_backup *what,
    struct store_copied *copied, char *why, size_t size)
{
	if (store_base(s)->file != NULL)
		return sqlite_backup(s, what, copied, why, size);
	memset(copied, 0, sizeof(*copied));
	snprintf(why, size,
	    "%s: a copy of a PostgreSQL database is made by pg_dump(1), which "
	    "copies all of one moment",
	    store_database(s));
	return RC_INVALID;
}

/* --- what the functions of every store take and give ---------------------- */

void
store_inline_answer_init(struct store_inline_answer *small)
{
	small->is = false;
	response_init(&small->response);
	buf_init(&small->body, STORE_INLINE);
}

void
store_inline_answer_free(struct store_inline_answer *small)
{
	response_free(&small->response);
	buf_free(&small->body);
	store_inline_answer_init(small);
}

void
store_listed_free(struct store_listed *listed)
{
	record_free(&listed->key);
	store_inline_answer_free(&listed->answer);
}

void
store_changes_free(struct store_change *changes, int n)
{
	for (int i = 0; i < n; i++) {
		free((void *)(uintptr_t)changes[i].scope);
		free((void *)(uintptr_t)changes[i].path);
		free((void *)(uintptr_t)changes[i].key);
		memset(&changes[i], 0, sizeof(changes[i]));
	}
}

void
store_scopes_free(struct store_scope *scopes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(scopes[i].scope);
		scopes[i].scope = NULL;
	}
}
