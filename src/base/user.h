/*
 * The user and group that a handler runs as: `user` and `group` of the
 * configuration, as names or numbers.
 */
#ifndef USER_H
#define USER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define USER_GROUPS_MAX 64

struct user {
	bool change; /* it differs from this process */
	uid_t uid;
	gid_t gid;
	gid_t groups[USER_GROUPS_MAX];
	size_t ngroups;
};

/* Finds the number of a user or group, which need not be in the user database.
 * False if the text is no number, or a number that stands for no user. */
bool user_id(const char *text, id_t *id);

/* Whether this process may start a program as that user.  False with a sentence
 * in err if the kernel will refuse it. */
bool user_may_become(const struct user *user, char *err, size_t errsize);

/* Whether this process may see all processes (CAP_SYS_PTRACE); and whether it
 * may become another user (CAP_SETUID). */
bool user_may_trace(void);
bool user_may_change(void);

/*
 * A NULL user or group means this process's own.  A user also brings its
 * supplementary groups.  A user that is a number without an account needs a
 * group, and has no other.  False with a sentence in err if there is no such
 * user or group.
 */
bool user_find(const char *user, const char *group, struct user *out, char *err,
    size_t errsize);

/* "www-data", or "user 1234". */
#define USER_NAME 64
void user_name(uid_t uid, char out[USER_NAME]);

#endif
