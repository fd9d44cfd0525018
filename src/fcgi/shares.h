/*
 * What the bodies of one client take of spool_total.  The bodies of one address
 * together may take half of it, so that no client keeps the bodies of others
 * out; a body that is alone may take all.
 */
#ifndef SHARES_H
#define SHARES_H

#include <stdbool.h>
#include <stdint.h>

/* A share; SHARES_NONE: of clients without an address, whose bodies have no
 * limit but that of all. */
#define SHARES_NONE 0

/* The share of REMOTE_ADDR, which may be NULL. */
unsigned shares_of(const char *address);

/* Whether the share has room for more bytes of a body that has own bytes. */
bool shares_have_room(unsigned share, uint64_t own, uint64_t more);

void shares_take(unsigned share, uint64_t bytes);
void shares_give(unsigned share, uint64_t bytes);

#endif
