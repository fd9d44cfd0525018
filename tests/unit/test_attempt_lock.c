/*
 * attempt_lock, process: what finds the processes that an attempt has started.
 */
#include "config.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "cases.h"

#include "clock.h"
#include "log.h"
#include "attempt_file.h"
#include "attempt_lock.h"

/* All processes are looked at: also those of another run of these tests. */
#define TOKEN token_of_run
#define OTHER "f123456789abcdef0123456789abcdef"

static char token_of_run[33];
static char dir[64], database[96], folder[128];

static int
setup(UNUSED void **state)
{
	int fd;

	log_set_level(LOG_ERROR + 1);
	snprintf(token_of_run, sizeof(token_of_run), "%032lx", (long)getpid());
	snprintf(dir, sizeof(dir), "/tmp/oncewrap-tree-XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(database, sizeof(database), "%s/db", dir);
	snprintf(folder, sizeof(folder), "%s-attempts", database);
	if ((fd = open(database, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) == -1)
		return -1;
	return close(fd);
}

static enum rc
remove_it(void *arg, int64_t name, const struct attempt_lock_note *note)
{
	int *n = arg;

	(void)note;
	(*n)++;
	attempt_lock_remove(database, name);
	return RC_OK;
}

/* How many files there were; none is left. */
static int
remove_all(void)
{
	int n = 0;

	assert_ok(attempt_lock_each(database, "", remove_it, &n));
	return n;
}

static int
teardown(UNUSED void **state)
{
	(void)remove_all();
	rmdir(folder);
	unlink(database);
	return rmdir(dir);
}

static bool
lives(int64_t name)
{
	struct process_list *list;
	bool is;

	assert_ok(process_list(&list));
	is = attempt_lock_lives(database, name, list);
	process_list_free(list);
	return is;
}

/* In place of the C library's: the first name cannot be opened, and what the
 * second names reads as empty so many times. */
static const char *cannot_open = "", *seems_empty = "";
static int empty_times;

int
open(const char *name, int flags, ...)
{
	mode_t mode = 0;
	va_list args;

	if (strcmp(name, cannot_open) == 0) {
		errno = EMFILE;
		return -1;
	}
	if (strcmp(name, seems_empty) == 0 && empty_times > 0) {
		empty_times--;
		name = "/dev/null";
	}
	va_start(args, flags);
	if (flags & O_CREAT)
		mode = va_arg(args, mode_t);
	va_end(args);
	return openat(AT_FDCWD, name, flags, mode);
}

static bool
has(const struct process_session *session, const char *token)
{
	struct process_list *list;
	bool is;

	assert_ok(process_list(&list));
	is = process_list_find(list, session, token) != 0;
	process_list_free(list);
	return is;
}

enum shed { SHED_SESSION = 1, SHED_ENVIRONMENT = 2 };

/* A variable before the token in its environment. */
static char before_token[40000] = "A=B";

/* A process of an attempt that holds no descriptor of it, and may have shed
 * more.  It has a session of its own, or this one's.  Its script writes a line
 * first. */
static pid_t
start_script(
    unsigned shed, const char *token, const char *program, const char *script)
{
	char variable[64], c;
	char *envp[] = { before_token, variable, NULL }, *none[] = { NULL };
	char *argv[] = { (char *)(uintptr_t)program, (char *)(uintptr_t) "-c",
		(char *)(uintptr_t)script, NULL };
	int ready[2];
	pid_t pid;

	snprintf(variable, sizeof(variable), "ONCE_TOKEN=%s-7", token);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	if ((pid = fork()) == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (shed & SHED_SESSION)
			setsid();
		dup2(ready[1], STDOUT_FILENO);
		execve(program, argv, shed & SHED_ENVIRONMENT ? none : envp);
		_exit(127);
	}
	assert_true(pid > 0);
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return pid;
}

static pid_t
start(unsigned shed, const char *token)
{
	return start_script(shed, token, "/bin/sh", "echo; exec sleep 60");
}

static void
end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

TEST(a_process_is_found_by_its_environment)
{
	siginfo_t info;
	pid_t pid = start(SHED_SESSION, TOKEN);

	assert_true(has(NULL, TOKEN));
	assert_false(has(NULL, OTHER));
	kill(pid, SIGKILL);
	/* dead, though not reaped */
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_false(has(NULL, TOKEN));
	end(pid);
	assert_false(has(NULL, TOKEN));
}

/* Where a shell's environment is large, the token may stand across the pieces
 * in which it is read. */
TEST(a_token_is_found_wherever_it_stands)
{
	pid_t pid;

	for (int length = 16320; length <= 16390; length += 7) {
		snprintf(
		    before_token, sizeof(before_token), "A=%0*d", length, 0);
		pid = start(SHED_SESSION, TOKEN);
		assert_true(has(NULL, TOKEN));
		end(pid);
	}
	strcpy(before_token, "A=B");
}

static void
run_on(const cpu_set_t *processors)
{
	assert_int_equal(
	    sched_setaffinity(0, sizeof(*processors), processors), 0);
}

/* While execve() replaces a program, /proc shows no environment. */
TEST(an_environment_that_reads_as_empty_is_read_again)
{
	pid_t pid = start(SHED_SESSION, TOKEN);
	char name[64];

	snprintf(name, sizeof(name), "/proc/%ld/environ", (long)pid);
	seems_empty = name;
	empty_times = 5;
	assert_true(has(NULL, TOKEN));
	assert_int_equal(empty_times, 0);
	seems_empty = "";
	end(pid);
}

/* On one processor the child is often stopped right there. */
TEST(a_process_is_found_while_it_starts_a_program)
{
	cpu_set_t all, one;
	int cpu = 0, i;
	pid_t pid;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	run_on(&one);
	pid = start_script(SHED_SESSION, TOKEN, "/bin/sh",
	    "export again='exec /bin/sh -c \"$again\"'; "
	    "echo; exec /bin/sh -c \"$again\"");
	for (i = 0; i < 50; i++)
		assert_true(has(NULL, TOKEN));
	end(pid);
	run_on(&all);
	assert_false(has(NULL, TOKEN));
}

TEST(a_process_is_found_by_its_session)
{
	struct process_session session, other;
	pid_t pid = start(SHED_SESSION | SHED_ENVIRONMENT, TOKEN);

	assert_true(process_session(pid, &session));
	assert_int_equal(session.id, pid);
	assert_true(has(&session, TOKEN));
	/* the number is another session's by now, or of other processes */
	other = session;
	other.started--;
	assert_false(has(&other, TOKEN));
	end(pid);
	assert_false(has(&session, TOKEN));
	assert_false(process_session(pid, &other));
}

/* The leader is gone, what it started is not. */
TEST(a_session_without_its_leader_is_found)
{
	struct process_session session;
	int ready[2], hold[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	if ((pid = fork()) == 0) {
		setsid();
		if (fork() == 0) {
			close(hold[1]);
			(void)!write(ready[1], "", 1);
			(void)!read(hold[0], &c, 1);
			_exit(0);
		}
		pause();
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_true(process_session(pid, &session));
	end(pid);
	assert_true(has(&session, TOKEN));
	close(ready[1]);
	close(hold[1]);
	assert_int_equal(read(ready[0], &c, 1), 0); /* it has ended */
	AWAIT(!has(&session, TOKEN));
	close(ready[0]);
	close(hold[0]);
}

/* Too many open files: others are read before and after. */
TEST(a_process_that_cannot_be_read_is_not_taken_for_ended)
{
	pid_t pid = start(SHED_SESSION, TOKEN);
	struct process_list *list;
	char name[64];

	cannot_open = name;
	snprintf(name, sizeof(name), "/proc/%ld/stat", (long)pid);
	assert_int_equal(process_list(&list), RC_IO);
	snprintf(name, sizeof(name), "/proc/%ld/environ", (long)pid);
	assert_int_equal(process_list(&list), RC_IO);
	end(pid);
	assert_ok(process_list(&list));
	process_list_free(list);
	cannot_open = "";
}

static bool
is_zombie(pid_t pid)
{
	char name[64], text[512] = "";
	int fd;

	snprintf(name, sizeof(name), "/proc/%ld/stat", (long)pid);
	assert_true((fd = open(name, O_RDONLY | O_CLOEXEC)) != -1);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	return strstr(text, ") Z ") != NULL;
}

static void *
outlive(void *arg)
{
	(void)arg;
	pause();
	return NULL;
}

/* To /proc a process whose first thread has ended is a zombie. */
TEST(a_process_without_its_first_thread_is_found)
{
	struct process_session session;
	pthread_t thread;
	char c = 0;
	int fd[2];
	pid_t pid;

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	if ((pid = fork()) == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setsid();
		if (pthread_create(&thread, NULL, outlive, NULL) != 0)
			_exit(1);
		(void)!write(fd[1], &c, 1);
		syscall(SYS_exit, 0); /* this thread's alone */
	}
	assert_int_equal(read(fd[0], &c, 1), 1);
	assert_true(process_session(pid, &session));
	AWAIT(is_zombie(pid));
	assert_true(has(&session, TOKEN));
	end(pid);
	assert_false(has(&session, TOKEN));
	close(fd[0]);
	close(fd[1]);
}

/* The other threads have its environment. */
TEST(a_process_without_its_first_thread_has_an_environment)
{
	pid_t pid = start_script(SHED_SESSION, TOKEN, "/usr/bin/python3",
	    "import ctypes, threading, time\n"
	    "threading.Thread(target=time.sleep, args=(60,)).start()\n"
	    "print(flush=True)\n"
	    "ctypes.CDLL(None).pthread_exit(None)\n");

	AWAIT(is_zombie(pid));
	assert_true(has(NULL, TOKEN));
	end(pid);
	assert_false(has(NULL, TOKEN));
}

TEST(an_attempt_lives_until_nothing_of_it_is_left)
{
	int held, note, copy;
	struct attempt_lock_note n;
	int64_t name;
	pid_t pid;

	assert_ok(attempt_lock_new(database, 5, &held, &note, &name));
	assert_true(name > 0);
	assert_true((fcntl(held, F_GETFD) & FD_CLOEXEC) != 0);
	assert_int_equal(fcntl(held, F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_true(lives(name));
	copy = fcntl(held, F_DUPFD_CLOEXEC, 0);
	close(held);
	assert_true(lives(name));
	close(copy);
	assert_false(lives(name)); /* its handler was never started */
	assert_ok(attempt_lock_read(database, name, &n));
	assert_true(n.space != 0 && n.space == process_space());
	assert_true(n.made > 0 && n.made <= clock_boot());

	assert_ok(attempt_lock_begin(note, TOKEN, 7));
	assert_false(lives(name));
	pid = start(SHED_SESSION, TOKEN);
	assert_true(lives(name));
	end(pid);
	pid = start(SHED_SESSION | SHED_ENVIRONMENT, TOKEN);
	assert_false(lives(name)); /* cannot be found */
	attempt_lock_started(note, pid);
	assert_true(lives(name));
	assert_ok(attempt_lock_read(database, name, &n));
	assert_int_equal(n.owner, 5);
	assert_int_equal(n.key, 7);
	assert_string_equal(n.token, TOKEN);
	assert_int_equal(n.session.id, pid);
	end(pid);
	assert_false(lives(name));
	close(note);
	/* what cannot be told counts as alive */
	assert_true(attempt_lock_lives(database, name, NULL));
	attempt_lock_remove(database, name);
	assert_true(lives(name));
	assert_true(lives(0));
	assert_true(lives(-1));
}

/* The same file by another name, as of another boot, or in that. */
static int64_t
renamed(int64_t name, int64_t boot)
{
	const int64_t other = name ^ boot << 40;
	char from[192], to[192];

	snprintf(
	    from, sizeof(from), "%s/%016llx", folder, (unsigned long long)name);
	snprintf(
	    to, sizeof(to), "%s/%016llx", folder, (unsigned long long)other);
	assert_int_equal(rename(from, to), 0);
	return other;
}

/* A power failure may have taken the file along.  A file that is there is a
 * better witness than the name of a boot: a container has its own. */
TEST(what_is_missing_of_another_boot_is_gone)
{
	int held, note;
	int64_t name;

	assert_ok(attempt_lock_new(database, 5, &held, &note, &name));
	assert_ok(attempt_lock_begin(note, TOKEN, 1));
	assert_false(attempt_file_is_past(name));
	assert_true(attempt_file_is_past(name ^ INT64_C(3) << 40));
	assert_false(lives(name ^ INT64_C(3) << 40));
	/* made when the boot's name could not be read */
	assert_false(attempt_file_is_past(name & ((INT64_C(1) << 40) - 1)));
	name = renamed(name, 3);
	assert_true(attempt_file_is_past(name));
	assert_true(lives(name));
	close(held);
	assert_false(lives(name));
	close(note);
}

/* An attempt with that first line, and a list of the processes here. */
static bool
lives_with(const char *line)
{
	int held, note;
	int64_t name;
	bool is;

	assert_ok(attempt_lock_new(database, 5, &held, &note, &name));
	assert_int_equal(ftruncate(note, 0), 0);
	assert_int_equal(pwrite(note, line, strlen(line), 0), strlen(line));
	assert_int_equal(lseek(note, 0, SEEK_END), strlen(line));
	assert_ok(attempt_lock_begin(note, TOKEN, 1));
	close(held);
	close(note);
	is = lives(name);
	attempt_lock_remove(database, name);
	return is;
}

TEST(what_cannot_be_seen_from_here_is_not_gone)
{
	const unsigned long long space = process_space();
	char line[128];

	snprintf(line, sizeof(line), "5 %llu 1\n", space);
	assert_false(lives_with(line));
	snprintf(line, sizeof(line), "5 %llu 1\n", space + 1);
	assert_true(lives_with(line));
	assert_true(lives_with("5 0 1\n"));
	assert_true(lives_with("5\n"));
	/* The kernel has booted since then. */
	snprintf(line, sizeof(line), "5 %llu %lld\n", space + 1,
	    (long long)clock_boot() + 100000);
	assert_false(lives_with(line));
}

TEST(a_folder_that_is_not_ours_is_not_believed)
{
	char elsewhere[128];
	int held, note;
	int64_t name;

	(void)remove_all();
	rmdir(folder);
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", dir);
	assert_int_equal(mkdir(elsewhere, 0700), 0);
	assert_int_equal(symlink(elsewhere, folder), 0);
	assert_int_equal(
	    attempt_lock_new(database, 5, &held, &note, &name), RC_IO);
	assert_int_equal(held, -1);
	assert_int_equal(note, -1);
	unlink(folder);
	assert_int_equal(mkdir(folder, 0770), 0);
	assert_int_equal(chmod(folder, 0770), 0);
	assert_int_equal(
	    attempt_lock_new(database, 5, &held, &note, &name), RC_IO);
	rmdir(folder);
	rmdir(elsewhere);
	assert_ok(attempt_lock_new(database, 5, &held, &note, &name));
	close(held);
	close(note);
}

/* A sweep removes the next file that is opened for reading, just before. */
static bool removed_first;

/* Where long has 32 bits, openat() is known by this name to the linker. */
#if __SIZEOF_LONG__ == 4
#define WRAP __wrap_openat64
#define REAL __real_openat64
#else
#define WRAP __wrap_openat
#define REAL __real_openat
#endif

int REAL(int at, const char *name, int flags, mode_t mode);
int WRAP(int at, const char *name, int flags, mode_t mode);
int
WRAP(int at, const char *name, int flags, mode_t mode)
{
	if (removed_first && (flags & (O_ACCMODE | O_DIRECTORY)) == O_RDONLY)
		removed_first = unlinkat(at, name, 0) != 0;
	return REAL(at, name, flags, mode);
}

TEST(a_file_that_a_sweep_removes_before_its_lock_is_made_again)
{
	int held, note;
	int64_t name;

	(void)remove_all();
	removed_first = true;
	assert_ok(attempt_lock_new(database, 5, &held, &note, &name));
	assert_false(removed_first);
	assert_true(attempt_lock_is_held(database, name));
	close(held);
	close(note);
	assert_int_equal(remove_all(), 1);
}

TEST(a_file_without_a_line_is_removed_unless_it_is_held)
{
	char path[192];
	int held, note, fd, n = 0;
	int64_t name;

	(void)remove_all();
	assert_ok(attempt_lock_new(database, 5, &held, &note, &name));
	assert_int_equal(ftruncate(note, 0), 0);
	assert_ok(attempt_lock_each(database, "", remove_it, &n));
	assert_int_equal(n, 0);
	snprintf(
	    path, sizeof(path), "%s/%016llx", folder, (unsigned long long)name);
	assert_int_equal(access(path, F_OK), 0);
	close(held);
	assert_ok(attempt_lock_each(database, "", remove_it, &n));
	assert_int_equal(n, 0);
	assert_int_equal(access(path, F_OK), -1);
	close(note);
	/* what is no file of ours stays */
	snprintf(path, sizeof(path), "%s/%s", folder, "README");
	assert_true((fd = open(path, O_WRONLY | O_CREAT, 0600)) != -1);
	close(fd);
	assert_int_equal(remove_all(), 0);
	assert_int_equal(unlink(path), 0);
}

static enum rc
remove_process(void *arg, int64_t name, const struct attempt_lock_note *note)
{
	int *n = arg;

	assert_string_equal(note->token, OTHER);
	(*n)++;
	attempt_file_remove(database, name, ATTEMPT_FILE_PROCESS);
	return RC_OK;
}

TEST(an_attempt_lives_as_long_as_the_process_that_acts_for_it)
{
	int held, note, of_process, its_note, n = 0;
	struct process_list *list;
	int64_t name, process;

	(void)remove_all();
	assert_ok(process_list(&list));
	assert_ok(attempt_lock_new(database, 5, &held, &note, &name));
	assert_ok(attempt_lock_begin(note, TOKEN, 1));
	assert_ok(attempt_lock_process_new(
	    database, 5, OTHER, &of_process, &its_note, &process));
	close(held);
	assert_false(attempt_lock_lives(database, name, list));
	assert_ok(attempt_lock_process_acts(database, name, process));
	assert_true(attempt_lock_is_held(database, name));
	assert_true(attempt_lock_lives(database, name, list));
	/* It acts for one attempt after another. */
	attempt_file_remove(database, name, ATTEMPT_FILE_BY);
	assert_false(attempt_lock_lives(database, name, list));
	assert_ok(attempt_lock_process_acts(database, name, process));
	/* The end of the process's own file is not its end. */
	assert_ok(attempt_lock_each(
	    database, ATTEMPT_FILE_PROCESS, remove_process, &n));
	assert_int_equal(n, 1);
	assert_true(attempt_lock_lives(database, name, list));
	close(of_process);
	assert_false(attempt_lock_lives(database, name, list));
	assert_true(attempt_lock_lives(database, name, NULL));
	/* The attempt's file takes the second name along. */
	assert_int_equal(remove_all(), 1);
	assert_int_equal(rmdir(folder), 0);
	process_list_free(list);
	close(note);
	close(its_note);
}

GROUP(setup, teardown)
