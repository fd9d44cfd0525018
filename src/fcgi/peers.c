/*
 * allow_peers: names -> user ids, once for each configuration.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "user.h"

#include "peers.h"

static bool
peers_resolve(const char *name, uid_t *uid)
{
	struct user user;
	char why[256];

	if (user_id(name, uid))
		return true;
	if (!user_find(name, NULL, &user, why, sizeof(why)))
		return false;
	*uid = user.uid;
	return true;
}

bool
peers_make(
    const struct conf_list *list, struct peers *peers, const char **unknown)
{
	size_t i;

	*unknown = NULL;
	memset(peers, 0, sizeof(*peers));
	if (list->n == 0) {
		peers->anyone = true;
		return true;
	}
	peers->uid = calloc(list->n, sizeof(*peers->uid));
	if (peers->uid == NULL)
		return false;
	for (i = 0; i < list->n; i++) {
		if (peers_resolve(list->item[i], &peers->uid[peers->n]))
			peers->n++;
		else if (*unknown == NULL)
			*unknown = list->item[i];
	}
	return true;
}

void
peers_free(struct peers *peers)
{
	free(peers->uid);
	memset(peers, 0, sizeof(*peers));
}

bool
peers_allow(const struct peers *peers, uid_t uid)
{
	size_t i;

	if (peers->anyone)
		return true;
	for (i = 0; i < peers->n; i++)
		if (peers->uid[i] == uid)
			return true;
	return false;
}
