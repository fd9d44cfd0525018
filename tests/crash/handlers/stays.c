/*
 * Runs a CGI program for each request that it gets as FastCGI:
 *
 *	stays PROGRAM [ARGUMENT ...]
 *
 * What the program inherits is what this process inherited.  If a signal ends
 * the program, the same signal ends this process.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <fcgiapp.h>

static void
fail(const char *what)
{
	perror(what);
	exit(99);
}

static void
run(FCGX_Request *r, char **argv)
{
	char bytes[4096];
	int in, out, status, n;
	pid_t pid;

	if ((in = memfd_create("in", 0)) == -1 ||
	    (out = memfd_create("out", 0)) == -1)
		fail("memfd_create");
	while ((n = FCGX_GetStr(bytes, sizeof(bytes), r->in)) > 0)
		if (write(in, bytes, (size_t)n) != n)
			fail("write");
	lseek(in, 0, SEEK_SET);
	if ((pid = fork()) == -1)
		fail("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in, 0);
		dup2(out, 1);
		close(in);
		close(out);
		execve(argv[0], argv, r->envp);
		fail(argv[0]);
	}
	if (waitpid(pid, &status, 0) == -1)
		fail("waitpid");
	lseek(out, 0, SEEK_SET);
	while ((n = (int)read(out, bytes, sizeof(bytes))) > 0)
		FCGX_PutStr(bytes, n, r->out);
	close(in);
	close(out);
	if (WIFSIGNALED(status)) {
		signal(WTERMSIG(status), SIG_DFL);
		raise(WTERMSIG(status));
	}
	FCGX_SetExitStatus(WEXITSTATUS(status), r->out);
}

int
main(int argc, char **argv)
{
	FCGX_Request r;

	if (argc < 2)
		return 2;
	FCGX_Init();
	FCGX_InitRequest(&r, 0, 0);
	while (FCGX_Accept_r(&r) == 0) {
		run(&r, argv + 1);
		FCGX_Finish_r(&r);
	}
	return 0;
}
