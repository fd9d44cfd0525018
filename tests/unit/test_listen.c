/*
 * listen: sockets made and inherited, and what is refused; the life of a socket
 * is for the system tests.  What touches descriptor 0 or 3 runs in a child.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

#include "conf_option.h"
#include "listen.h"

static char dir[64], sock[80], spec[96];
static struct conf_error err;

/* The socket of a case, and the path that it is to be removed by. */
static int fd = -1;
static char *path;

static int
setup(UNUSED void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/test_listen.XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(sock, sizeof(sock), "%s/s", dir);
	snprintf(spec, sizeof(spec), "unix:%s", sock);
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_PID");
	return 0;
}

static int
teardown(UNUSED void **state)
{
	return rmdir(dir);
}

static int
remove_socket(UNUSED void **state)
{
	if (fd != -1)
		close(fd);
	fd = -1;
	unlink(sock);
	free(path);
	path = NULL;
	return 0;
}

AROUND_EACH(NULL, remove_socket)

static void
set_line(struct conf *conf, const char *option, conf_line line)
{
	conf->origin
	    .line[conf_option_index(conf_option_find(CONF_SERVER, option))] =
	    line;
}

static struct conf
conf_for(const char *socket)
{
	struct conf conf = {
		.file = "test.conf", .socket = socket, .socket_mode = 0660
	};

	set_line(&conf, "socket", socket != NULL ? 7 : 0);
	return conf;
}

/* Opens what must be refused, with a message that begins and ends so. */
static void
refused(const struct conf *conf, const char *begin, const char *end)
{
	char *none = NULL;

	assert_int_equal(listen_open(conf, &none, &err), -1);
	assert_null(none);
	if (strncmp(err.text, begin, strlen(begin)) != 0 ||
	    strlen(err.text) < strlen(end) ||
	    strcmp(err.text + strlen(err.text) - strlen(end), end) != 0)
		fail_msg("\"%s\" is not \"%s...%s\"", err.text, begin, end);
}

static void
opened(const struct conf *conf)
{
	(void)remove_socket(NULL);
	fd = listen_open(conf, &path, &err);
	if (fd == -1)
		fail_msg("%s", err.text);
	assert_true(fd > 2);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

/*
 * An attacker that may write the folder acts as early as possible: the socket's
 * name stands for another file as soon as it exists.
 */
static int (*stand_in)(const char *, const char *);
static char victim[96];

int
bind(int s, __CONST_SOCKADDR_ARG addr, socklen_t len)
{
	long r = syscall(SYS_bind, s, addr.__sockaddr__, len);

	if (r == 0 && stand_in != NULL) {
		assert_int_equal(unlink(sock), 0);
		assert_int_equal(stand_in(victim, sock), 0);
	}
	return (int)r;
}

TEST(no_other_file_is_changed_by_the_sockets_name)
{
	int (*const links[])(const char *, const char *) = { symlink, link };
	struct conf conf = conf_for(spec);
	struct stat st;
	int file;

	snprintf(victim, sizeof(victim), "%s/victim", dir);
	file = open(victim, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(file != -1);
	close(file);
	conf.socket_mode = 0666;
	for (size_t i = 0; i < 4; i++) {
		stand_in = links[i % 2];
		if (i >= 2 && geteuid() == 0) { /* has to be given away */
			conf.socket_user = "54321";
			set_line(&conf, "socket_user", 7);
			refused(&conf, "test.conf:7: ", "File exists");
		} else
			opened(&conf);
		stand_in = NULL;
		(void)remove_socket(NULL);
		assert_int_equal(stat(victim, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
		assert_int_equal(st.st_uid, geteuid());
	}
	unlink(victim);
}

TEST(owner_by_number)
{
	struct conf conf = conf_for(spec);
	char uid[32], gid[32];
	struct stat st;
	bool root = geteuid() == 0;

	snprintf(uid, sizeof(uid), "%u", root ? 54321 : geteuid());
	snprintf(gid, sizeof(gid), "%u", root ? 12345 : getegid());
	conf.socket_user = uid;
	conf.socket_group = gid;
	opened(&conf);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, root ? 54321 : geteuid());
	assert_int_equal(st.st_gid, root ? 12345 : getegid());
	assert_int_equal(st.st_mode & 07777, 0660);
}

TEST(unknown_owner_leaves_no_socket_behind)
{
	struct conf conf = conf_for(spec);

	conf.socket_user = "no-such-user";
	set_line(&conf, "socket_user", 8);
	refused(&conf, "test.conf:8: socket_user: ", "no-such-user");
	assert_int_equal(access(sock, F_OK), -1);
	/* Not 0, for want of bits. */
	conf.socket_user = "4294967296";
	refused(&conf, "test.conf:8: socket_user: ", "4294967296");
	assert_int_equal(access(sock, F_OK), -1);
	conf.socket_user = NULL;
	conf.socket_group = "no-such-group";
	set_line(&conf, "socket_group", 9);
	refused(&conf, "test.conf:9: socket_group: ", "no-such-group");
	assert_int_equal(access(sock, F_OK), -1);
}

TEST(socket_in_use_with_a_full_backlog_is_refused)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct conf conf = conf_for(spec);
	int peer = socket(AF_UNIX, SOCK_STREAM, 0);

	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	memcpy(addr.sun_path, sock, strlen(sock) + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 0), 0);
	assert_int_equal(
	    connect(peer, (struct sockaddr *)&addr, sizeof(addr)), 0);
	refused(&conf, "test.conf:7: /tmp/", "in use by another process");
	close(peer);
}

TEST(names_that_name_no_socket)
{
	static const struct {
		const char *name, *end;
	} bad[] = {
		{ "fd:987", "not a listening socket" },
		{ "tcp:203.0.113.1:9000", "Cannot assign requested address" },
	};

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct conf conf = conf_for(bad[i].name);

		refused(&conf, "test.conf:7: ", bad[i].end);
	}
}

TEST(allow_peers_needs_a_unix_socket)
{
	char *peer[] = { (char[]){ "root" }, NULL };
	struct conf conf = conf_for("tcp:127.0.0.1:0");

	conf.allow_peers = (struct conf_list){ peer, 1 };
	set_line(&conf, "allow_peers", 11);
	refused(&conf, "test.conf:11: allow_peers: ", "unix socket only");
}

/* At that descriptor a socket that listens, or one that does not; close-on-exec
 * off. */
static void
socket_at(int at, bool listening)
{
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	/* An abstract name that the kernel chooses. */
	bind(s, (struct sockaddr *)&addr, sizeof(sa_family_t));
	if (listening)
		listen(s, 5);
	dup2(s, at);
	if (s != at)
		close(s);
}

static void
set_listen_env(const char *fds, pid_t pid)
{
	char text[32];

	snprintf(text, sizeof(text), "%d", (int)pid);
	setenv("LISTEN_PID", text, 1);
	setenv("LISTEN_FDS", fds, 1);
}

/*
 * Each case of what is inherited runs in a child that exits 0 if all is well,
 * and else with the line that failed, modulo 256.
 */
#define MUST(x)                                \
	do {                                   \
		if (!(x))                      \
			_exit(__LINE__ % 256); \
	} while (0)

static void
in_child(void (*body)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid != -1);
	if (pid == 0) {
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("status %x, line %d", status, WEXITSTATUS(status));
}

#define CHILD(name)                     \
	static void child_##name(void); \
	TEST(name)                      \
	{                               \
		in_child(child_##name); \
	}                               \
	static void child_##name(void)

/* Gives that descriptor, non-blocking and not inherited further. */
static void
must_open(const char *socket, int want)
{
	struct conf conf = conf_for(socket);

	MUST(listen_open(&conf, &path, &err) == want);
	MUST(fcntl(want, F_GETFD) & FD_CLOEXEC);
	MUST(fcntl(want, F_GETFL) & O_NONBLOCK);
	MUST(getenv("LISTEN_FDS") == NULL && getenv("LISTEN_PID") == NULL);
}

static void
must_fail(const char *socket, const char *why)
{
	struct conf conf = conf_for(socket);

	MUST(listen_open(&conf, &path, &err) == -1);
	MUST(strstr(err.text, why) != NULL);
	MUST(getenv("LISTEN_FDS") == NULL);
}

CHILD(fd_0)
{
	struct conf conf = conf_for(NULL);
	struct stat null, zero;

	socket_at(0, true);
	fd = listen_open(&conf, &path, &err);
	MUST(fd > 2 && path == NULL);
	MUST(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	MUST(fcntl(fd, F_GETFL) & O_NONBLOCK);
	MUST(stat("/dev/null", &null) == 0 && fstat(0, &zero) == 0);
	MUST(null.st_rdev == zero.st_rdev);
}

CHILD(systemd_many)
{
	static const char *const bad[] = { "2", "x", "-1", "1x",
		"99999999999999999999" };

	socket_at(3, true);
	for (size_t i = 0; i < COUNT(bad); i++) {
		set_listen_env(bad[i], getpid());
		must_fail(NULL, "LISTEN_FDS: ");
	}
	socket_at(3, false);
	set_listen_env("1", getpid());
	must_fail(NULL, "LISTEN_FDS: not a listening socket");
}

CHILD(systemd_says_too_much)
{
	socket_at(3, true);
	socket_at(5, true);
	socket_at(9, true);
	close(4);
	set_listen_env("2147483000", getpid());
	must_open("fd:9", 9);
	MUST(fcntl(3, F_GETFD) == -1); /* closed: it is not asked for */
	MUST(fcntl(5, F_GETFD) != -1);
}

GROUP(setup, teardown)
