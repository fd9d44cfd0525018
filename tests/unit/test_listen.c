/*
 * listen: sockets of every kind, made and inherited, and what is refused.
 * What touches descriptor 0 or 3 runs in a child.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

#include "listen.h"

static char dir[64], sock[80], spec[96];
static struct conf_error err;

static int
setup(void **state)
{
	(void)state;
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
teardown(void **state)
{
	(void)state;
	unlink(sock);
	return rmdir(dir);
}

static struct conf
conf_for(const char *socket)
{
	return (struct conf){ .file = "test.conf",
		.socket = socket,
		.socket_line = socket != NULL ? 7 : 0,
		.socket_mode = 0660 };
}

/* Opens what must be refused, with a message that begins and ends so. */
static void
refused(const struct conf *conf, const char *begin, const char *end)
{
	char *path = NULL;

	assert_int_equal(listen_open(conf, &path, &err), -1);
	assert_null(path);
	if (strncmp(err.text, begin, strlen(begin)) != 0 ||
	    strlen(err.text) < strlen(end) ||
	    strcmp(err.text + strlen(err.text) - strlen(end), end) != 0)
		fail_msg("\"%s\" is not \"%s...%s\"", err.text, begin, end);
}

static int
opened(const struct conf *conf, char **path)
{
	int fd = listen_open(conf, path, &err);

	if (fd == -1)
		fail_msg("%s", err.text);
	assert_true(fd > 2);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	return fd;
}

static int
connect_unix(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
		return fd;
	close(fd);
	return -1;
}

TEST(unix_socket_has_the_mode_asked_for)
{
	static const unsigned modes[] = { 0600, 0660, 0666 };

	for (size_t i = 0; i < COUNT(modes); i++) {
		struct conf conf = conf_for(spec);
		struct stat st;
		mode_t mask = umask(027);
		char *path;
		int fd, peer;

		conf.socket_mode = modes[i];
		fd = opened(&conf, &path);
		assert_int_equal(umask(mask), 027); /* put back */
		assert_string_equal(path, sock);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, modes[i]);
		peer = connect_unix(path);
		assert_true(peer != -1);
		close(peer);
		close(fd);
		unlink(path);
		free(path);
	}
}

/*
 * An attacker that may write the folder acts as early as possible: the socket's
 * name stands for another file as soon as it exists.
 */
static int (*stand_in)(const char *, const char *);
static char victim[96];

int
bind(int fd, __CONST_SOCKADDR_ARG addr, socklen_t len)
{
	long r = syscall(SYS_bind, fd, addr.__sockaddr__, len);

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
	char *path;
	int fd;

	snprintf(victim, sizeof(victim), "%s/victim", dir);
	fd = open(victim, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd != -1);
	close(fd);
	conf.socket_mode = 0666;
	for (size_t i = 0; i < 4; i++) {
		stand_in = links[i % 2];
		if (i >= 2 && geteuid() == 0) { /* has to be given away */
			conf.socket_user = "54321";
			conf.socket_user_line = 7;
			refused(&conf, "test.conf:7: ", "File exists");
		} else {
			fd = opened(&conf, &path);
			close(fd);
			unlink(path);
			free(path);
		}
		stand_in = NULL;
		assert_int_equal(stat(victim, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
		assert_int_equal(st.st_uid, geteuid());
	}
	unlink(victim);
}

TEST(a_bare_path_is_a_unix_socket)
{
	struct conf conf = conf_for(sock);
	char *path;
	int fd = opened(&conf, &path);

	assert_string_equal(path, sock);
	close(fd);
	unlink(path);
	free(path);
}

TEST(owner_by_number)
{
	struct conf conf = conf_for(spec);
	char uid[32], gid[32], *path;
	struct stat st;
	bool root = geteuid() == 0;
	int fd;

	snprintf(uid, sizeof(uid), "%u", root ? 54321 : geteuid());
	snprintf(gid, sizeof(gid), "%u", root ? 12345 : getegid());
	conf.socket_user = uid;
	conf.socket_group = gid;
	fd = opened(&conf, &path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, root ? 54321 : geteuid());
	assert_int_equal(st.st_gid, root ? 12345 : getegid());
	assert_int_equal(st.st_mode & 07777, 0660);
	close(fd);
	unlink(path);
	free(path);
}

TEST(unknown_owner_leaves_no_socket_behind)
{
	struct conf conf = conf_for(spec);

	conf.socket_user = "no-such-user";
	conf.socket_user_line = 8;
	refused(&conf, "test.conf:8: socket_user: ", "no-such-user");
	assert_int_equal(access(sock, F_OK), -1);
	/* Not 0, for want of bits. */
	conf.socket_user = "4294967296";
	refused(&conf, "test.conf:8: socket_user: ", "4294967296");
	assert_int_equal(access(sock, F_OK), -1);
	conf.socket_user = NULL;
	conf.socket_group = "no-such-group";
	conf.socket_group_line = 9;
	refused(&conf, "test.conf:9: socket_group: ", "no-such-group");
	assert_int_equal(access(sock, F_OK), -1);
}

TEST(socket_of_a_dead_process_is_replaced)
{
	struct conf conf = conf_for(spec);
	char *path, *again;
	int fd;

	close(opened(&conf, &path));
	fd = opened(&conf, &again);
	close(fd);
	unlink(path);
	free(path);
	free(again);
}

TEST(socket_in_use_is_refused_and_lives_on)
{
	struct conf conf = conf_for(spec);
	char *path;
	int fd = opened(&conf, &path), peer;

	refused(&conf, "test.conf:7: /tmp/", "in use by another process");
	peer = connect_unix(sock);
	assert_true(peer != -1);
	close(peer);
	close(fd);
	unlink(path);
	free(path);
}

TEST(socket_in_use_with_a_full_backlog_is_refused)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct conf conf = conf_for(spec);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), peer;

	memcpy(addr.sun_path, sock, strlen(sock) + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 0), 0);
	peer = connect_unix(sock);
	assert_true(peer != -1);
	refused(&conf, "test.conf:7: /tmp/", "in use by another process");
	close(peer);
	close(fd);
	unlink(sock);
}

TEST(a_file_in_the_way_is_refused_and_kept)
{
	struct conf conf = conf_for(spec);
	int fd = open(sock, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd != -1);
	close(fd);
	refused(&conf, "test.conf:7: /tmp/", "exists and is not a socket");
	assert_int_equal(access(sock, F_OK), 0);
	unlink(sock);
}

TEST(paths_that_cannot_be)
{
	char name[256] = "unix:/";
	struct conf conf = conf_for(name);

	memset(name + 6, 'x', 150);
	refused(&conf, "test.conf:7: /xxx", "longer than 107 bytes");
	conf = conf_for("unix:/no/such/directory/s");
	refused(&conf, "test.conf:7: /no/such", "No such file or directory");
	conf.socket_line = 0; /* from the command line */
	refused(&conf, "/no/such", "No such file or directory");
}

TEST(names_that_name_no_socket)
{
	static const struct {
		const char *name, *end;
	} bad[] = {
		{ "", "or fd:N" },
		{ "s", "or fd:N" },
		{ "udp:1", "or fd:N" },
		{ "fd:", "or fd:N" },
		{ "fd:-1", "or fd:N" },
		{ "fd:3x", "or fd:N" },
		{ "fd:99999999999999999999", "or fd:N" },
		{ "fd:987", "not a listening socket" },
		{ "tcp:", "[address]:port" },
		{ "tcp:localhost", "[address]:port" },
		{ "tcp::9000", "[address]:port" },
		{ "tcp:127.0.0.1:", "[address]:port" },
		{ "tcp:::1:9000", "[address]:port" },
		{ "tcp:[]:9000", "[address]:port" },
		{ "tcp:[::1]", "[address]:port" },
		{ "tcp:127.0.0.1:http", "" },
		{ "tcp:203.0.113.1:9000", "Cannot assign requested address" },
	};

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct conf conf = conf_for(bad[i].name);

		refused(&conf, "test.conf:7: ", bad[i].end);
	}
}

TEST(tcp_on_a_named_address)
{
	struct conf conf = conf_for("tcp:127.0.0.1:0");
	struct sockaddr_in addr;
	socklen_t len = sizeof(addr);
	char name[64], *path;
	int fd = opened(&conf, &path), peer;

	assert_null(path);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	assert_int_equal(addr.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	peer = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(peer, (struct sockaddr *)&addr, len), 0);
	close(peer);

	snprintf(name, sizeof(name), "tcp:127.0.0.1:%u", ntohs(addr.sin_port));
	conf = conf_for(name);
	refused(&conf, "test.conf:7: tcp:127.0.0.1:", "already in use");
	close(fd);
}

TEST(tcp_on_ipv6)
{
	struct conf conf = conf_for("tcp:[::1]:0");
	struct sockaddr_in6 addr = { .sin6_family = AF_INET6,
		.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	socklen_t len = sizeof(addr);
	int probe = socket(AF_INET6, SOCK_STREAM, 0), fd;
	char *path;

	if (probe == -1 ||
	    bind(probe, (struct sockaddr *)&addr, sizeof(addr)) == -1) {
		close(probe);
		skip(); /* no IPv6 here */
	}
	close(probe);
	fd = opened(&conf, &path);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	assert_int_equal(addr.sin6_family, AF_INET6);
	close(fd);
}

TEST(allow_peers_needs_a_unix_socket)
{
	char *peer[] = { (char[]){ "root" }, NULL };
	struct conf conf = conf_for("tcp:127.0.0.1:0");

	conf.allow_peers = (struct conf_list){ peer, 1 };
	conf.allow_peers_line = 11;
	refused(&conf, "test.conf:11: allow_peers: ", "unix socket only");
}

/* A socket that listens, or one that does not, at fd; close-on-exec off. */
static void
socket_at(int fd, bool listening)
{
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	/* An abstract name that the kernel chooses. */
	bind(s, (struct sockaddr *)&addr, sizeof(sa_family_t));
	if (listening)
		listen(s, 5);
	dup2(s, fd);
	if (s != fd)
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
child_fd_0(void)
{
	struct conf conf = conf_for(NULL);
	struct stat null, zero;
	char *path;
	int fd;

	socket_at(0, true);
	fd = listen_open(&conf, &path, &err);
	MUST(fd > 2 && path == NULL);
	MUST(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	MUST(fcntl(fd, F_GETFL) & O_NONBLOCK);
	MUST(stat("/dev/null", &null) == 0 && fstat(0, &zero) == 0);
	MUST(null.st_rdev == zero.st_rdev);
}

static void
child_fd_0_is_a_file(void)
{
	struct conf conf = conf_for(NULL);
	char *path;
	int fd = open("/dev/null", O_RDONLY);

	dup2(fd, 0);
	MUST(listen_open(&conf, &path, &err) == -1);
	MUST(strstr(err.text, "-s") != NULL);
	socket_at(0, false);
	MUST(listen_open(&conf, &path, &err) == -1);
	close(0);
	MUST(listen_open(&conf, &path, &err) == -1);
}

static void
child_fd_number(void)
{
	struct conf conf = conf_for("fd:9");
	char *path;

	socket_at(9, true);
	MUST(listen_open(&conf, &path, &err) == 9);
	MUST(fcntl(9, F_GETFD) & FD_CLOEXEC);
	MUST(fcntl(9, F_GETFL) & O_NONBLOCK);
	socket_at(9, false);
	MUST(listen_open(&conf, &path, &err) == -1);
	MUST(
	    strcmp(err.text, "test.conf:7: fd:9: not a listening socket") == 0);
}

static void
child_systemd(void)
{
	struct conf conf = conf_for(NULL);
	char *path;

	socket_at(3, true);
	set_listen_env("1", getpid());
	setenv("LISTEN_FDNAMES", "oncewrap.socket", 1);
	MUST(listen_open(&conf, &path, &err) == 3);
	MUST(fcntl(3, F_GETFD) & FD_CLOEXEC);
	MUST(getenv("LISTEN_FDS") == NULL && getenv("LISTEN_PID") == NULL);
	MUST(getenv("LISTEN_FDNAMES") == NULL);
}

static void
child_systemd_many(void)
{
	static const char *const bad[] = { "2", "x", "-1", "1x",
		"99999999999999999999" };
	struct conf conf = conf_for(NULL);
	char *path;

	socket_at(3, true);
	for (size_t i = 0; i < COUNT(bad); i++) {
		set_listen_env(bad[i], getpid());
		MUST(listen_open(&conf, &path, &err) == -1);
		MUST(strncmp(err.text, "LISTEN_FDS: ", 12) == 0);
		MUST(getenv("LISTEN_FDS") == NULL);
	}
	socket_at(3, false);
	set_listen_env("1", getpid());
	MUST(listen_open(&conf, &path, &err) == -1);
	MUST(strcmp(err.text, "LISTEN_FDS: not a listening socket") == 0);
}

static void
child_systemd_of_another(void)
{
	struct conf conf = conf_for(NULL);
	char *path;
	int fd;

	socket_at(3, true);
	socket_at(0, true);
	set_listen_env("1", getppid());
	fd = listen_open(&conf, &path, &err);
	MUST(fd > 3); /* descriptor 0, moved */
	socket_at(0, true);
	set_listen_env("0", getpid());
	MUST(listen_open(&conf, &path, &err) > 3);
}

static void
child_socket_named_and_systemd(void)
{
	struct conf conf = conf_for("fd:9");
	char *path;

	socket_at(3, true);
	socket_at(9, true);
	set_listen_env("1", getpid());
	MUST(listen_open(&conf, &path, &err) == 9);
	MUST(getenv("LISTEN_FDS") == NULL);
}

/* The unit of examples/ does both. */
static void
child_socket_named_is_the_one_of_systemd(void)
{
	struct conf conf = conf_for("fd:3");
	char *path;

	socket_at(3, true);
	set_listen_env("1", getpid());
	MUST(listen_open(&conf, &path, &err) == 3);
	MUST(fcntl(3, F_GETFD) & FD_CLOEXEC);
	MUST(getenv("LISTEN_FDS") == NULL);
}

static void
child_systemd_says_too_much(void)
{
	struct conf conf = conf_for("fd:9");
	char *path;

	socket_at(3, true);
	socket_at(5, true);
	socket_at(9, true);
	close(4);
	set_listen_env("2147483000", getpid());
	MUST(listen_open(&conf, &path, &err) == 9);
	MUST(fcntl(3, F_GETFD) == -1); /* closed: it is not asked for */
	MUST(fcntl(5, F_GETFD) != -1);
}

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
	TEST(name)                      \
	{                               \
		in_child(child_##name); \
	}

CHILD(fd_0)
CHILD(fd_0_is_a_file)
CHILD(fd_number)
CHILD(systemd)
CHILD(systemd_many)
CHILD(systemd_of_another)
CHILD(socket_named_and_systemd)
CHILD(socket_named_is_the_one_of_systemd)
CHILD(systemd_says_too_much)

GROUP(setup, teardown)
