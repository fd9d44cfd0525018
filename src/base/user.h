/*
 * Whose rights a handler gets: `user` and `group` of the configuration, as
 * names or numbers.
 */
#ifndef USER_H
#define USER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define USER_GROUPS_MAX 64

struct user {
	bool change; /* it is not who we are */
	uid_t uid;
	gid_t gid;
	gid_t groups[USER_GROUPS_MAX];
	size_t ngroups;
};

/* A user's or group's number, which need not be in the user database; false if
 * the text is none, or one that stands for no user. */
bool user_id(const char *text, id_t *id);

/*
 * A NULL user or group stays what it is; a user brings the groups it is in.
 * False with a sentence in err if there is no such user or group.
 */
bool user_find(const char *user, const char *group, struct user *out, char *err,
    size_t errsize);

#endif
