/*
 * A handler that its oncewrap cannot signal: installed with root's setuid bit,
 * it becomes root for good, says so at FOLDER/gate.here, and stays.
 *
 *	stubborn FOLDER
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	char name[4096], line[32];
	int fd;

	if (argc != 2 || setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0)
		return 1;
	snprintf(name, sizeof(name), "%s/gate.here", argv[1]);
	snprintf(line, sizeof(line), "%ld\n", (long)getpid());
	if ((fd = open(name, O_WRONLY)) == -1 ||
	    write(fd, line, strlen(line)) != (ssize_t)strlen(line))
		return 1;
	close(fd);
	for (;;)
		pause();
}
