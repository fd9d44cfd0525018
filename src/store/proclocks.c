/*
 * See proclocks.h.
 */
#include "config.h"

#include <sys/sysmacros.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proclocks.h"

/*
 * The kernel gives the list a page at a time and continues by the number of
 * locks shown so far.  If locks vanish meanwhile, a lock may be left out, so
 * the list is read more than once.
 */
#define LOOKS 5

/* A line: "1: POSIX  ADVISORY  WRITE 4711 fe:01:42 120 120". */
static bool
is_it(char *line, const struct proclocks *what, pid_t *pid)
{
	enum { NUMBER, KIND, HOW, MODE, PID, FILE_ID, START, END, NWORDS };
	char *word[NWORDS], *rest = line, *inode, *minor;
	int i;

	for (i = 0; i < NWORDS; i++)
		if ((word[i] = strtok_r(NULL, " \n", &rest)) == NULL)
			return false;
	if (strcmp(word[KIND], "POSIX") != 0 ||
	    (what->write && strcmp(word[MODE], "WRITE") != 0) ||
	    (inode = strrchr(word[FILE_ID], ':')) == NULL ||
	    strtoull(inode + 1, NULL, 10) != what->ino ||
	    strtoull(word[START], NULL, 10) > what->byte)
		return false;
	if (what->dev != 0 &&
	    ((minor = strchr(word[FILE_ID], ':')) == inode ||
		makedev(strtoul(word[FILE_ID], NULL, 16),
		    strtoul(minor + 1, NULL, 16)) != what->dev))
		return false;
	*pid = (pid_t)strtol(word[PID], NULL, 10);
	return *pid > 0 && *pid != getpid() &&
	    (strcmp(word[END], "EOF") == 0 ||
		strtoull(word[END], NULL, 10) >= what->byte);
}

static pid_t
proclocks_look(const struct proclocks *what)
{
	char line[256];
	pid_t pid = 0;
	FILE *locks;

	if ((locks = fopen("/proc/locks", "re")) == NULL)
		return 0;
	while (fgets(line, sizeof(line), locks) != NULL)
		if (is_it(line, what, &pid)) {
			fclose(locks);
			return pid;
		}
	fclose(locks);
	return 0;
}

pid_t
proclocks_holder(const struct proclocks *what)
{
	pid_t pid = 0;

	for (int i = 0; i < LOOKS && pid == 0; i++)
		pid = proclocks_look(what);
	return pid;
}
