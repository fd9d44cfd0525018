/*
 * Private to the files that read a JSON text and what was read of it.
 */
#ifndef JSON_IMPL_H
#define JSON_IMPL_H

#include <stdint.h>

#include "buf.h"
#include "limit.h"
#include "json.h"

/*
 * A member of an object.  Members are numbered in the order of their names in
 * the text: those inside a member's value come next after it.
 *
 * The members of one object are a ring, in the order of their names.
 */
struct json_member {
	uint32_t name; /* offset of the opening quote */
	uint32_t next; /* in the ring; with JSON_LAST in the last member */
};

#define JSON_LAST UINT32_C(0x80000000)
_Static_assert(LIMIT_JSON < JSON_LAST, "offsets and numbers have 31 bits");

struct json {
	/* The text without blanks, with canonical strings and numbers, and the
	 * members in the order in which they came. */
	struct buf text;
	struct json_member *member;
};

#endif
