/*
 * The users that may connect: those that allow_peers names.
 */
#ifndef PEERS_H
#define PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "conf.h"

struct peers {
	bool anyone;
	uid_t *uid; /* n of them */
	size_t n;
};

/*
 * Resolves names and numbers; an empty list allows any user.  A name that
 * cannot be resolved allows no user, and the first such name is in *unknown
 * (NULL if there is none).  False when there is no memory; then no user may
 * connect.
 */
bool peers_make(
    const struct conf_list *list, struct peers *peers, const char **unknown);
void peers_free(struct peers *peers);

bool peers_allow(const struct peers *peers, uid_t uid);

#endif
