/*
 * spool: lengths around the limit of memory, in pieces of all kinds; the file
 * has no name and is not inherited; a full disk.
 */
#include "config.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "cases.h"

#include "limit.h"
#include "log.h"
#include "spool.h"

static char dir[] = "/tmp/oncewrap-spool-XXXXXX";

static int
make_dir(UNUSED void **state)
{
	log_set_level(LOG_ERROR + 1);
	return mkdtemp(dir) == NULL || spool_setup(dir, UINT64_MAX) != RC_OK;
}

static int
remove_dir(UNUSED void **state)
{
	return rmdir(dir); /* fails if anything is left there */
}

/* No period that divides a piece or a page. */
static unsigned char
byte_at(size_t i)
{
	return (unsigned char)(i * 31 + i / 251);
}

static const struct row {
	const char *name;
	size_t length, piece;
	bool file;
} rows[] = {
	{ "nothing", 0, 1, false },
	{ "one byte", 1, 1, false },
	{ "bytes one by one", 3000, 1, false },
	{ "up to the limit at once", LIMIT_SPOOL_MEMORY, LIMIT_SPOOL_MEMORY,
	    false },
	{ "up to the limit in odd pieces", LIMIT_SPOOL_MEMORY, 4097, false },
	{ "one more than the limit at once", LIMIT_SPOOL_MEMORY + 1,
	    LIMIT_SPOOL_MEMORY + 1, true },
	{ "one more than the limit, last", LIMIT_SPOOL_MEMORY + 1,
	    LIMIT_SPOOL_MEMORY, true },
	{ "past the limit in odd pieces", LIMIT_SPOOL_MEMORY * 3 + 5, 4099,
	    true },
	{ "16 MB", 16 * 1024 * 1024, 65536, true },
};

TEST(what_is_written_is_read)
{
	unsigned char *data = malloc(17 * 1024 * 1024);
	const void *p;
	struct spool *s;
	size_t i, done, n;
	enum rc rc;

	assert_non_null(data);
	for (i = 0; i < 17 * 1024 * 1024; i++)
		data[i] = byte_at(i);
	for (i = 0; i < COUNT(rows); i++) {
		s = spool_new();
		assert_non_null(s);
		for (done = 0; done < rows[i].length; done += n) {
			n = rows[i].length - done < rows[i].piece
			    ? rows[i].length - done
			    : rows[i].piece;
			assert_ok(spool_write(s, data + done, n));
		}
		rc = RC_IO;
		p = spool_bytes(s, &rc);
		if (rc != RC_OK || spool_length(s) != rows[i].length ||
		    (p == NULL) != (rows[i].length == 0) ||
		    (p != NULL && memcmp(p, data, rows[i].length) != 0) ||
		    (spool_fd(s) != -1) != rows[i].file)
			fail_msg("%s", rows[i].name);
		spool_free(s);
	}
	free(data);
}

TEST(it_is_read_and_written_on)
{
	static unsigned char data[LIMIT_SPOOL_MEMORY];
	struct spool *s = spool_new();
	const unsigned char *p;
	size_t i, n;
	enum rc rc;

	for (n = 1; n <= 5; n++) {
		memset(data, (int)n, sizeof(data));
		assert_ok(spool_write(s, data, sizeof(data)));
		assert_ok(spool_write(s, data, 0));
		p = spool_bytes(s, &rc);
		assert_ok(rc);
		assert_int_equal(spool_length(s), n * sizeof(data));
		for (i = 0; i < n; i++) {
			assert_int_equal(p[i * sizeof(data)], i + 1);
			assert_int_equal(p[(i + 1) * sizeof(data) - 1], i + 1);
		}
		assert_ptr_equal(p, spool_bytes(s, &rc));
	}
	spool_free(s);
}

TEST(the_file_has_no_name_and_is_not_inherited)
{
	static char data[LIMIT_SPOOL_MEMORY + 1];
	struct spool *s = spool_new();
	struct dirent *e;
	struct stat st;
	DIR *d;
	int n = 0;

	assert_ok(spool_write(s, data, sizeof(data)));
	assert_true(spool_fd(s) > 2);
	assert_int_equal(fcntl(spool_fd(s), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(fstat(spool_fd(s), &st), 0);
	assert_int_equal(st.st_nlink, 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	d = opendir(dir);
	assert_non_null(d);
	while ((e = readdir(d)) != NULL)
		n += e->d_name[0] != '.';
	closedir(d);
	assert_int_equal(n, 0);
	spool_free(s);
}

TEST(no_such_directory)
{
	static char data[LIMIT_SPOOL_MEMORY + 1];
	struct spool *s = spool_new();

	assert_ok(spool_setup("/nonexistent/oncewrap", UINT64_MAX));
	assert_ok(spool_write(s, data, LIMIT_SPOOL_MEMORY));
	assert_int_equal(spool_write(s, data, 1), RC_IO);
	spool_free(s);
	assert_ok(spool_setup(dir, UINT64_MAX));
}

TEST(the_directory_is_that_of_the_last_setup)
{
	static char data[LIMIT_SPOOL_MEMORY + 1];
	struct spool *s = spool_new();
	char *name = strdup("/nonexistent/oncewrap");

	assert_non_null(name);
	assert_ok(spool_setup(name, UINT64_MAX));
	memset(name, 'x', strlen(name)); /* as free() would */
	free(name);
	assert_ok(spool_setup(dir, UINT64_MAX));
	assert_ok(spool_write(s, data, sizeof(data)));
	spool_free(s);
}

TEST(all_spools_together_have_a_total)
{
	static char data[LIMIT_SPOOL_MEMORY + 1];
	struct spool *file = spool_new(), *memory = spool_new();

	assert_ok(spool_setup(dir, sizeof(data) + 10));
	assert_true(spool_has_room(sizeof(data) + 10));
	assert_false(spool_has_room(sizeof(data) + 11));
	assert_ok(spool_write(file, data, sizeof(data)));
	assert_ok(spool_write(memory, data, 10));
	assert_true(spool_has_room(0));
	assert_false(spool_has_room(1));
	/* the output of a run is taken all the same */
	assert_ok(spool_write(memory, data, 1));
	assert_false(spool_has_room(0));
	spool_free(file);
	assert_true(spool_has_room(sizeof(data) - 1));
	spool_free(memory);
	assert_true(spool_has_room(sizeof(data) + 10));
	assert_ok(spool_setup(dir, UINT64_MAX));
}

TEST(no_room)
{
	static char data[LIMIT_SPOOL_MEMORY];
	struct rlimit old, small;
	struct spool *s = spool_new();
	enum rc rc;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = LIMIT_SPOOL_MEMORY * 2 - 1;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	rc = spool_write(s, data, sizeof(data));
	assert_ok(rc);
	rc = spool_write(s, data, sizeof(data));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(rc, RC_FULL);
	spool_free(s);
}

TEST(the_default_directory)
{
	setenv("TMPDIR", "/var/tmp", 1);
	assert_string_equal(spool_default_dir(), "/var/tmp");
	setenv("TMPDIR", "", 1);
	assert_string_equal(spool_default_dir(), "/tmp");
	setenv("TMPDIR", "relative", 1);
	assert_string_equal(spool_default_dir(), "/tmp");
	unsetenv("TMPDIR");
	assert_string_equal(spool_default_dir(), "/tmp");
}

TEST(freeing_nothing)
{
	spool_free(NULL);
}

GROUP(make_dir, remove_dir)
