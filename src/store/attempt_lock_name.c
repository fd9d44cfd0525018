/*
 * Names of the files of attempts: numbers.  And the files of processes that
 * stay, with their second names: see attempt_lock.h.
 */
#include "config.h"

#include <sys/random.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "attempt_lock_impl.h"

/* A name has 62 bits: those of the boot, then random ones. */
#define NAME_BITS 40
#define BOOT_BITS 22

void
attempt_lock_text_of(
    int64_t name, const char *kind, char text[ATTEMPT_LOCK_FILE_LEN])
{
	snprintf(text, ATTEMPT_LOCK_FILE_LEN, "%016" PRIx64 "%s",
	    (uint64_t)name, kind);
}

/* The bits of this boot, > 0; 0: the boot has no name. */
static int64_t
boot_bits(void)
{
	char id[CLOCK_BOOT_ID_LEN + 1];
	uint64_t hash = UINT64_C(14695981039346656037);
	const char *p;

	if (!clock_boot_id(id))
		return 0;
	for (p = id; *p != '\0'; p++)
		hash = (hash ^ (unsigned char)*p) * UINT64_C(1099511628211);
	hash = (hash >> 20) & ((UINT64_C(1) << BOOT_BITS) - 1);
	return hash == 0 ? 1 : (int64_t)hash;
}

bool
attempt_lock_is_past(int64_t name)
{
	int64_t made = name >> NAME_BITS, now = boot_bits();

	return made > 0 && now > 0 && made != now;
}

bool
attempt_lock_is_of_this_boot(int64_t name)
{
	const int64_t made = name >> NAME_BITS;

	return made > 0 && made == boot_bits();
}

int64_t
attempt_lock_new_name(void)
{
	uint64_t bits;

	if (getrandom(&bits, sizeof(bits), 0) != sizeof(bits))
		return 0;
	return boot_bits() << NAME_BITS | (int64_t)(bits >> (64 - NAME_BITS)) |
	    1;
}

int64_t
attempt_lock_name_of(const char *text, const char *kind)
{
	uint64_t name = strtoull(text, NULL, 16);
	char again[ATTEMPT_LOCK_FILE_LEN];

	if (name > INT64_MAX)
		return 0;
	attempt_lock_text_of((int64_t)name, kind, again);
	return strcmp(again, text) == 0 ? (int64_t)name : 0;
}

/* --- processes that stay -------------------------------------------------- */

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
