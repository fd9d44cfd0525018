/*
 * The files of processes that stay, and their second names: see attempt_lock.h.
 */
#include "config.h"

#include <unistd.h>

#include "attempt_lock_impl.h"

enum rc
attempt_lock_process_new(const char *database, int64_t owner, const char *token,
    int *held, int *note, int64_t *name)
{
	enum rc rc;

	rc = attempt_lock_new_file(
	    database, owner, ATTEMPT_LOCK_OF_PROCESS, held, note, name);
	if (rc == RC_OK &&
	    (rc = attempt_lock_begin(*note, token, 0)) != RC_OK) {
		attempt_lock_close_both(held, note);
		attempt_lock_process_remove(database, *name);
	}
	return rc;
}

void
attempt_lock_process_remove(const char *database, int64_t process)
{
	attempt_lock_remove_file(database, process, ATTEMPT_LOCK_OF_PROCESS);
}

enum rc
attempt_lock_process_acts(const char *database, int64_t name, int64_t process)
{
	char from[ATTEMPT_LOCK_FILE_LEN], to[ATTEMPT_LOCK_FILE_LEN];
	enum rc rc = RC_OK;
	int folder;

	if ((folder = attempt_lock_open_folder(database, false)) == -1)
		return attempt_lock_failed(database, "open");
	attempt_lock_text_of(process, ATTEMPT_LOCK_OF_PROCESS, from);
	attempt_lock_text_of(name, ATTEMPT_LOCK_OF_BY, to);
	if (linkat(folder, from, folder, to, 0) == -1)
		rc = attempt_lock_failed(database, "link a file");
	close(folder);
	return rc;
}

void
attempt_lock_process_acted(const char *database, int64_t name)
{
	attempt_lock_remove_file(database, name, ATTEMPT_LOCK_OF_BY);
}

enum rc
attempt_lock_process_each(const char *database,
    enum rc (*visit)(void *, int64_t, const struct attempt_lock_note *),
    void *arg)
{
	return attempt_lock_each_of(
	    database, ATTEMPT_LOCK_OF_PROCESS, visit, arg);
}
