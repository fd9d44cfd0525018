/*
 * See postgres_host.h.
 */
#include "config.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "digest.h"
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

/* Whether it is there, and this user's. */
static bool
host_folder_is_ours(void)
{
	struct stat st;

	return lstat(FOLDER, &st) == 0 && S_ISDIR(st.st_mode) &&
	    st.st_uid == geteuid();
}

/* The folder's name, which the caller frees; NULL: no memory.  A daemon and an
 * operator of the same user, or root, must come to the same one. */
static char *
host_folder(void)
{
	const char *state = getenv("STATE_DIRECTORY");
	const char *run = getenv("XDG_RUNTIME_DIR");
	char *name;
	int n;

	/* systemd gives several folders with colons between them. */
	if (state != NULL && *state == '/')
		n = asprintf(&name, "%.*s", (int)strcspn(state, ":"), state);
	else if (geteuid() == 0 || host_folder_is_ours())
		n = asprintf(&name, FOLDER);
	else
		n = asprintf(&name, "%s/oncewrap-%ju",
		    run != NULL && *run == '/' ? run : "/tmp",
		    (uintmax_t)geteuid());
	return n == -1 ? NULL : name;
}

#define USER_SIZE 64

/* This process's user, by name or number. */
static void
host_user(char out[USER_SIZE])
{
	struct passwd pw, *found = NULL;
	char scratch[4096];

	(void)getpwuid_r(geteuid(), &pw, scratch, sizeof(scratch), &found);
	if (found != NULL)
		(void)snprintf(out, USER_SIZE, "%s", pw.pw_name);
	else
		(void)snprintf(out, USER_SIZE, "%ju", (uintmax_t)geteuid());
}

static enum rc
host_check(const char *folder, bool make, char *err, size_t errsize)
{
	char self[USER_SIZE];
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
	host_user(self);
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

void
postgres_host_explain(
    const struct postgres_host *host, int error, char *err, size_t errsize)
{
	char self[USER_SIZE];
	size_t n;

	snprintf(err, errsize,
	    "%s-lock: %s: it tells which of this host's processes live",
	    host->local, error != 0 ? strerror(error) : "cannot be locked");
	if (error != EACCES && error != EPERM)
		return;
	host_user(self);
	n = strlen(err);
	snprintf(err + n, errsize - n, ": chown %s %s-lock", self, host->local);
}

/* --- names ---------------------------------------------------------------- */

static enum rc
host_hash(const void *bytes, size_t len, const char *text,
    unsigned char out[DIGEST_LEN])
{
	struct digest d;

	digest_begin(&d);
	digest_bytes(&d, bytes, len);
	digest_text(&d, text);
	return digest_end(&d, out);
}

enum rc
postgres_host_store(struct postgres_host *host, const unsigned char *secret,
    const char *catalog)
{
	unsigned char h[DIGEST_LEN];
	enum rc rc = host_hash(secret, SCOPE_SECRET_LEN, catalog, h);

	if (rc != RC_OK)
		return rc;
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
	rc = postgres_mark_read(l, &at, make, mark);
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
	if ((rc = host_hash("", 0, host->name, hash)) != RC_OK) {
		snprintf(err, errsize, "%s", rc_text(rc));
		return rc;
	}
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
