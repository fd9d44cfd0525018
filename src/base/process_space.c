/*
 * Whose processes /proc shows to this process.
 */
#include "config.h"

#include <sys/prctl.h>
#include <sys/stat.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process.h"
#include "user.h"

uint64_t
process_space(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/*
 * Whether /proc hides processes of other users.  Without new privileges a
 * handler's processes cannot become those of another user.
 */
static bool
hides_users(void)
{
	char line[1024], point[256];
	bool hides = false;
	FILE *mounts;

	if (user_may_trace() ||
	    (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 && !user_may_change()))
		return false;
	if ((mounts = fopen("/proc/self/mountinfo", "re")) == NULL)
		return true;
	/* The last mount in a place is on top. */
	while (fgets(line, sizeof(line), mounts) != NULL)
		if (sscanf(line, "%*s %*s %*s %*s %255s", point) == 1 &&
		    strcmp(point, "/proc") == 0)
			hides = strstr(line, "hidepid=") != NULL;
	fclose(mounts);
	return hides;
}

bool
process_shows_all(void)
{
	char text[32] = "";

	return readlink("/proc/self", text, sizeof(text) - 1) > 0 &&
	    strtol(text, NULL, 10) == (long)getpid() && !hides_users();
}
