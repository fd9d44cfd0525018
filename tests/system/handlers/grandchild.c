/*
 * A handler that answers and leaves a process behind, which keeps its stdout
 * and stderr open until SIGTERM: as `command &` in a script does.  The
 * grandchild's process id is the body of the answer.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	pid_t pid;

	pid = fork();
	if (pid == -1)
		return 1;
	if (pid == 0) {
		/* With "new" in a session of its own, as daemons are. */
		if (argc > 1 && strcmp(argv[1], "new") == 0)
			setsid();
		signal(SIGHUP, SIG_IGN);
		pause();
		_exit(0);
	}
	printf("Content-Type: text/plain\r\n\r\n%ld\n", (long)pid);
	return 0;
}
