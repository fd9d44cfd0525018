/*
 * Names of the files of attempts: numbers.  See attempt_lock.h.
 */
#include "config.h"

#include <sys/random.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
