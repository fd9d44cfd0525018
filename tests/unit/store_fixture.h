/*
 * A store in a directory of its own, and the words that its tests are written
 * in.  It is in SQLite, or in PostgreSQL if TEST_DATABASE is set.  Included by
 * tests only.
 */
#ifndef STORE_FIXTURE_H
#define STORE_FIXTURE_H

#include <sys/prctl.h>
#include <sys/wait.h>

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <sqlite3.h>

#include "clock.h"
#include "handler_api.h"
#include "limit.h"
#include "log.h"
#include "metrics.h"
#include "store_admits.h"
#include "store_module.h"
#include "store_operator.h"
#include "store_outbox.h"

#define SKIP_CASES only_sqlite_skip_some
#include "cases.h"

/* How long a caller waits, ms; tests of that wait less long. */
#ifndef PATIENCE
#define PATIENCE 30000
#endif

#include "store_postgres.h"

#include "only_sqlite.h"

/* The test's folder, and its database: a file in it; or a schema. */
static char dir[64], file[96], schema[64], uri[512];
static struct store *store;

static const char *
textf(const char *, ...) __attribute__((format(printf, 1, 2)));

/* It lives until the eighth next call. */
static UNUSED const char *
textf(const char *format, ...)
{
	static _Thread_local char texts[8][1100];
	static _Thread_local unsigned calls;
	char *text = texts[calls++ % COUNT(texts)];
	va_list ap;

	va_start(ap, format);
	assert_true(vsnprintf(text, sizeof(texts[0]), format, ap) <
	    (int)sizeof(texts[0]));
	va_end(ap);
	return text;
}

static UNUSED struct store_options
options(void)
{
	struct store_options o;

	memset(&o, 0, sizeof(o));
	o.database = is_postgresql() ? uri : file;
	o.mode = 0600;
	o.durability = CONF_DURABILITY_NORMAL;
	o.busy_timeout = PATIENCE;
	o.owner_timeout = 30000;
	o.max_wal = 64 * 1024 * 1024;
	o.create = true;
	return o;
}

static UNUSED struct store *
open_with(struct store_options o)
{
	struct store *s;
	char err[256] = "";

	if (store_open(&s, &o, err, sizeof(err)) != RC_OK)
		fail_msg("%s", err);
	return s;
}

static UNUSED struct store *
open_store(void)
{
	return open_with(options());
}

static UNUSED void
reopen_with(struct store_options o)
{
	store_close(store);
	store = open_with(o);
}

static UNUSED void
reopen(void)
{
	reopen_with(options());
}

static UNUSED void
empty_folder(const char *folder)
{
	char name[400];
	struct dirent *e;
	DIR *d = opendir(folder);

	while (d != NULL && (e = readdir(d)) != NULL) {
		snprintf(name, sizeof(name), "%s/%s", folder, e->d_name);
		if (e->d_name[0] != '.')
			unlink(name);
	}
	if (d != NULL)
		closedir(d);
}

/* Makes the schema of the test anew, with the tables of a store. */
static UNUSED void
new_tables(void)
{
	const struct store_module *module;
	struct store_options o = options();
	char err[512] = "";

	new_schema(schema, true);
	if (store_module_load(&module, err, sizeof(err)) != RC_OK ||
	    module->init(&o, NULL, err, sizeof(err)) != RC_OK)
		fail_msg("%s", err);
}

/* Nothing is left of the test's files. */
static UNUSED void
empty_files(void)
{
	char name[400];
	struct dirent *e;
	DIR *d;

	empty_folder(dir);
	d = opendir(dir);
	while (d != NULL && (e = readdir(d)) != NULL) {
		snprintf(name, sizeof(name), "%s/%s", dir, e->d_name);
		if (e->d_name[0] != '.') {
			empty_folder(name);
			rmdir(name);
		}
	}
	if (d != NULL)
		closedir(d);
}

/* Nothing is left of the store. */
static UNUSED void
empty_dir(void)
{
	if (is_postgresql())
		new_tables();
	empty_files();
}

/* For tests that open it themselves. */
static UNUSED int
setup_dir(void **state)
{
	(void)state;
	log_set_level(LOG_ERROR + 1);
	snprintf(dir, sizeof(dir), "/tmp/oncewrap-store-XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
#ifdef VFS_H
	vfs_watch(dir);
#endif
	snprintf(file, sizeof(file), "%s/db", dir);
	if (is_postgresql()) {
		snprintf(
		    schema, sizeof(schema), "once_%s", dir + strlen(dir) - 6);
		schema_uri(schema, uri, sizeof(uri));
		setenv("STATE_DIRECTORY", dir, 1);
		new_tables();
	}
	store = NULL;
	return 0;
}

static UNUSED int
setup(void **state)
{
	if (setup_dir(state) != 0)
		return -1;
	store = open_store();
	return 0;
}

/* Each commit is synced: for disks that fail. */
static UNUSED int
setup_synced(void **state)
{
	struct store_options o;

	if (setup_dir(state) != 0)
		return -1;
	o = options();
	o.durability = CONF_DURABILITY_FULL;
	store = open_with(o);
	return 0;
}

/* The store has the first n of these topics. */
static UNUSED int
add_topics(size_t n)
{
	char mail[] = "mail", sms[] = "sms";
	char *topics[] = { mail, sms };

	return store_topics(store, topics, n, topics, 0) == RC_OK ? 0 : -1;
}

/* The store has the topics of two effects. */
static UNUSED int
setup_topics(void **state)
{
	return setup(state) != 0 ? -1 : add_topics(2);
}

static UNUSED int
teardown(void **state)
{
	(void)state;
#ifdef VFS_H
	(void)vfs_record_end();
#endif
	store_close(store);
	store = NULL;
	empty_files();
	if (is_postgresql())
		new_schema(schema, false);
	return rmdir(dir);
}

#ifdef VFS_H
static UNUSED int
begin_group(UNUSED void **state)
{
	vfs_install();
	return 0;
}
#endif

#define STORE_TEST(name)  TEST_WITH(name, setup, teardown)
#define DIR_TEST(name)    TEST_WITH(name, setup_dir, teardown)
#define TOPICS_TEST(name) TEST_WITH(name, setup_topics, teardown)

/* The beginning of the names of the files about this host's processes. */
static UNUSED const char *
local_files(void)
{
	static char name[400];
	struct dirent *e;
	char *end;
	DIR *d;

	if (!is_postgresql())
		return file;
	name[0] = '\0';
	assert_non_null(d = opendir(dir));
	while (name[0] == '\0' && (e = readdir(d)) != NULL)
		if ((end = strstr(e->d_name, "-lock")) != NULL)
			snprintf(name, sizeof(name), "%s/%.*s", dir,
			    (int)(end - e->d_name), e->d_name);
	closedir(d);
	return name;
}

static UNUSED void
rest(int64_t ms)
{
	usleep((useconds_t)ms * 1000);
}

/* --- other processes ---------------------------------------------------- */

/* What a forked child does first: it dies with us, and a check that fails in
 * it ends it, where cmocka would go on with the next test. */
static UNUSED void
be_child(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("CMOCKA_TEST_ABORT", "1", 1);
}

static UNUSED void
kill_and_wait(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

#include "store_sql.h"
#include "store_words.h"
#include "store_kinds.h"
#include "store_verbs.h"
#include "store_passes.h"

#endif
