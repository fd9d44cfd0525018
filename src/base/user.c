/*
 * Names and numbers of the system's user database.  It is read anew each time,
 * so a user that was added later needs no restart.
 */
#include "config.h"

#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>

#include "ascii.h"
#include "user.h"

bool
user_id(const char *text, id_t *id)
{
	int64_t n;
	const bool good = ascii_number(text, &n) && n < UINT_MAX;

	*id = good ? (id_t)n : 0;
	return good;
}

static bool
user_find_user(const char *name, struct user *user, char *scratch, size_t size)
{
	struct passwd pw, *found = NULL;
	id_t id;
	int n = USER_GROUPS_MAX;

	if (user_id(name, &id))
		(void)getpwuid_r(id, &pw, scratch, size, &found);
	else
		(void)getpwnam_r(name, &pw, scratch, size, &found);
	if (found == NULL)
		return false;
	user->uid = pw.pw_uid;
	user->gid = pw.pw_gid;
	if (getgrouplist(pw.pw_name, pw.pw_gid, user->groups, &n) == -1)
		n = USER_GROUPS_MAX;
	user->ngroups = (size_t)n;
	return true;
}

static bool
find_group(const char *name, gid_t *gid, char *scratch, size_t size)
{
	struct group gr, *found = NULL;
	id_t id;

	if (user_id(name, &id)) {
		*gid = id;
		return true;
	}
	(void)getgrnam_r(name, &gr, scratch, size, &found);
	if (found == NULL)
		return false;
	*gid = gr.gr_gid;
	return true;
}

bool
user_find(const char *user, const char *group, struct user *out, char *err,
    size_t errsize)
{
	char scratch[16 * 1024];
	bool known = false;
	id_t id;

	memset(out, 0, sizeof(*out));
	out->uid = geteuid();
	out->gid = getegid();
	if (user != NULL) {
		known = user_find_user(user, out, scratch, sizeof(scratch));
		if (!known && user_id(user, &id) && group != NULL)
			out->uid = (uid_t)id;
		else if (!known) {
			snprintf(err, errsize, "no such user: %s%s", user,
			    user_id(user, &id) ? "; its group must be named"
					       : "");
			return false;
		}
	}
	if (group != NULL &&
	    !find_group(group, &out->gid, scratch, sizeof(scratch))) {
		snprintf(err, errsize, "no such group: %s", group);
		return false;
	}
	if (group != NULL && !known) {
		out->groups[0] = out->gid;
		out->ngroups = 1;
	}
	out->change = out->uid != geteuid() || out->gid != getegid() ||
	    (geteuid() == 0 && (user != NULL || group != NULL));
	return true;
}

/* Whether this process has that capability now. */
static bool
has_capability(unsigned capability)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

	return syscall(SYS_capget, &head, sets) == 0 &&
	    (sets[CAP_TO_INDEX(capability)].effective &
		CAP_TO_MASK(capability)) != 0;
}

bool
user_may_trace(void)
{
	return has_capability(CAP_SYS_PTRACE);
}

bool
user_may_change(void)
{
	return has_capability(CAP_SETUID);
}

bool
user_may_become(const struct user *user, char *err, size_t errsize)
{
	/* Supplementary groups are always set, see child.c. */
	if (!user->change ||
	    (has_capability(CAP_SETGID) &&
		(user->uid == geteuid() || user_may_change())))
		return true;
	snprintf(err, errsize,
	    "to run a program as another user or group, oncewrap needs root, "
	    "or CAP_SETUID and CAP_SETGID");
	return false;
}

void
user_name(uid_t uid, char out[USER_NAME])
{
	struct passwd pw, *found = NULL;
	char scratch[4096];

	(void)getpwuid_r(uid, &pw, scratch, sizeof(scratch), &found);
	if (found != NULL)
		(void)snprintf(out, USER_NAME, "%s", pw.pw_name);
	else
		(void)snprintf(out, USER_NAME, "user %ld", (long)uid);
}
