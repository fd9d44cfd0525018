/*
 * Members in the order of their names.
 */
#ifndef JSON_ORDER_H
#define JSON_ORDER_H

#include <stdbool.h>

#include "json_impl.h"

/* n members, linked by next from the first to the last, whose next says
 * nothing. */
struct json_members {
	uint32_t first, last, n;
};

/* Sorts the members of an object, in which n is not 0.  False: two of them have
 * one name. */
bool json_order(
    const char *text, struct json_member *member, struct json_members *list);

#endif
