/*
 * What a misspelled name was meant to be.
 */
#ifndef CONF_NEAR_H
#define CONF_NEAR_H

#include <stddef.h>

/*
 * The number of letters to insert, delete, change, or swap with the next one
 * that makes one name of the other.  Upper and lower case, and "-" and "_",
 * are the same.  A name that is too long to be one is far from all.
 */
size_t conf_near_distance(const char *a, const char *b);

#endif
