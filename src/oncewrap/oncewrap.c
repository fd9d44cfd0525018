/*
 * oncewrap: the daemon.  main() reads as a checklist; it stops its parts in the
 * opposite order of their start.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "attention.h"
#include "check.h"
#include "clock.h"
#include "conf.h"
#include "conf_value.h"
#include "fault.h"
#include "limit.h"
#include "listen.h"
#include "log.h"
#include "maintenance.h"
#include "outbox.h"
#include "words.h"
#include "run.h"
#include "serve.h"
#include "settings.h"
#include "spool.h"
#include "store.h"
#include "systemd.h"
#include "thread.h"
#include "world.h"

/* Descriptors needed: connections, and for each program its pipes and files. */
#define DESCRIPTORS (LIMIT_CONNECTIONS + 8 * LIMIT_WORKERS)

/* How long (ms) a request that is arriving at the stop may take. */
#define ARRIVING 1000

/* Time (ms) after the last handler's end for responses to leave. */
#define DRAIN_GRACE 2000

/* Time (ms) for the program on_attention at the stop. */
#define LAST_WORDS 10000

struct daemon {
	struct settings settings;
	struct conf *conf; /* the current one; for the main thread */
	struct conf *start;
	int listener;
	bool own_listener; /* this process opened the socket */
	char *socket_path; /* to remove, if it is still this file: */
	struct stat socket_file;
	struct store *store;
	bool topics; /* the store has the configured topics */
	struct serve *serve;
};

/* --- reloading ---------------------------------------------------------- */

static void
reload_conf(struct daemon *d)
{
	struct conf *old = d->conf, *new;
	struct conf_error err;

	systemd_notify("RELOADING=1\nMONOTONIC_USEC=%" PRId64, clock_mono_us());
	/* Before anything can fail: logrotate(8) has moved the file. */
	settings_reopen_log(old->log);
	new = settings_load(&d->settings, &err);
	if (new == NULL ||
	    !settings_reload(d->store, d->serve, old, new, &err)) {
		/* The old configuration stays. */
		log_event(
		    LOG_ERROR, "reload-failed", NULL, LOG_S("error", err.text));
		systemd_notify(
		    "READY=1\nSTATUS=The last reload failed: %s", err.text);
		conf_unref(new);
		return;
	}
	settings_warn_of_start(d->start, new);
	d->conf = new;
	conf_unref(old);
	log_event(LOG_INFO, "reloaded", NULL,
	    LOG_S("file", d->settings.file != NULL ? d->settings.file : ""));
	systemd_notify("READY=1\nSTATUS=");
}

/* --- the parts ---------------------------------------------------------- */

/* Without topics in the store, handlers cannot emit effects. */
static void
put_topics(struct daemon *d)
{
	enum rc rc = outbox_topics(d->store, NULL, d->conf);

	d->topics = rc == RC_OK;
	if (rc != RC_OK)
		log_event(LOG_ERROR, "topics-not-stored", NULL,
		    LOG_S("why", rc_text(rc)));
}

static bool
oncewrap_open_store(struct daemon *d, const struct conf *conf)
{
	const struct store_options so = { .database = conf->database,
		.mode = conf_shares_database(conf) ? 0660 : 0600,
		.durability = conf->durability,
		.busy_timeout = conf->busy_timeout,
		.owner_timeout = conf->owner_timeout,
		.max_wal = conf->max_wal,
		.workers = conf->workers,
		.create = true };
	struct maintenance_pass pass = { .until = INT64_MAX };
	char err[512];
	enum rc rc;

	if (store_open(&d->store, &so, err, sizeof(err)) != RC_OK) {
		world_not_started(err, world_database,
		    conf_text_is_postgresql(conf->database) ? NULL
							    : conf->database);
		return false;
	}
	if (conf_shares_database(conf))
		store_share_files(d->store);
	FAULT(STORE_OPENED);
	put_topics(d);
	if ((rc = maintenance_recover(d->store, &pass)) != RC_OK)
		maintenance_failed(d->store, "sweep", rc);
	return true;
}

/* Returns 0, or the exit status after a failure. */
static int
oncewrap_start(struct daemon *d, struct conf *conf)
{
	struct conf_error err;

	d->listener = listen_open(conf, &d->socket_path, &err);
	if (d->listener == -1) {
		world_not_started(err.text, world_socket, conf->socket);
		/* No socket was given at all: that is wrong usage. */
		return conf->socket == NULL ? settings_usage(stderr)
					    : EXIT_FAILURE;
	}
	d->own_listener =
	    conf->socket != NULL && strncmp(conf->socket, "fd:", 3) != 0;
	if (d->socket_path != NULL &&
	    lstat(d->socket_path, &d->socket_file) == -1)
		memset(&d->socket_file, 0, sizeof(d->socket_file));
	if (!oncewrap_open_store(d, conf))
		return EXIT_FAILURE;
	if (serve_start(&d->serve, conf, d->listener, d->store) != RC_OK) {
		world_not_started("no memory or threads", NULL, NULL);
		return EXIT_FAILURE;
	}
	settings_log_started(d->store, conf);
	systemd_notify("READY=1");
	return 0;
}

/* --- the end ------------------------------------------------------------ */

/* Time (ms) after drain_timeout for all that is left. */
#define STOP_GRACE 3000

/* A thread of its own waits for the end, because the other threads may wait for
 * a disk, a lock or a server, for any time.  To the store this end is a crash:
 * what is not recorded counts as lost. */

/* Time (us) for the last line to reach the reader of the log. */
#define LAST_LINE 50000

static int64_t stop_end_mono;

/* Waits for one of the signals, at most that time (ms); -1: none came. */
static int
wait_signal(const sigset_t *signals, int64_t ms)
{
	const struct timespec ts = { .tv_sec = (time_t)(ms / 1000),
		.tv_nsec = (long)(ms % 1000) * 1000000 };

	return sigtimedwait(signals, NULL, &ts);
}

static void *
stop_main(void *unused)
{
	sigset_t signals;
	int64_t left;

	(void)unused;
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	while ((left = stop_end_mono - clock_mono()) > 0)
		if (wait_signal(&signals, left) != -1)
			_exit(EXIT_SUCCESS);
	log_event(LOG_WARN, "stop-forced", NULL,
	    LOG_S("note",
		"drain_timeout is over: what is not recorded by now counts as "
		"lost"));
	usleep(LAST_LINE);
	_exit(EXIT_SUCCESS);
}

/* To be called once, when the stop begins, with SIGTERM and SIGINT blocked in
 * all threads; drained_mono: when drain_timeout is over.  The process ends at
 * once, with status 0, at another of these signals, or STOP_GRACE after that
 * time, whatever its threads wait for. */
static void
stop_until(int64_t drained_mono)
{
	pthread_t thread;
	int error;

	stop_end_mono = drained_mono + STOP_GRACE;
	error = thread_start(&thread, "stop", THREAD_STACK, stop_main, NULL);
	if (error == 0)
		(void)pthread_detach(thread);
	else
		log_event(LOG_ERROR, "thread-not-started", NULL,
		    LOG_S("why", strerror(error)));
}

/* Waits for the requests and other work under way.  From until_mono on it ends
 * their handlers, and no more requests are reserved. */
static void
drain_requests(struct daemon *d, int64_t until_mono)
{
	int64_t left;
	bool ending = false;
	sigset_t ended;

	sigemptyset(&ended);
	sigaddset(&ended, SIGUSR1);
	while (!serve_ended(d->serve)) {
		left = until_mono - clock_mono();
		if (left <= 0 && !ending) {
			log_event(LOG_WARN, "drain-timeout", NULL,
			    LOG_S("note", "the handlers are being ended"));
			FAULT(STOP_DRAIN);
			/* First: no request is to get the slot of a handler
			 * that is ended. */
			serve_drain(d->serve);
			run_drain();
			ending = true;
		}
		(void)wait_signal(&ended, ending ? 1000 : left);
	}
	FAULT(STOP_DRAINED);
}

/* Removes the socket, unless another process has put its own socket in its
 * place. */
static void
remove_socket(struct daemon *d)
{
	struct stat st;

	if (d->socket_path != NULL && lstat(d->socket_path, &st) == 0 &&
	    st.st_dev == d->socket_file.st_dev &&
	    st.st_ino == d->socket_file.st_ino)
		unlink(d->socket_path);
	free(d->socket_path);
	d->socket_path = NULL;
}

static void
close_listener(struct daemon *d)
{
	/* The name is removed before the socket is closed: after that another
	 * file could get its inode number. */
	remove_socket(d);
	if (d->listener != -1)
		close(d->listener);
	d->listener = -1;
}

/*
 * Stops accepting without losing a request that a web server has sent, or is
 * about to send on a connection that it has: waiting connections are accepted,
 * and arriving requests are read.  The socket's name is removed first.  From
 * then on a new connection is refused instead of kept waiting, and a successor
 * may take the name.
 */
static void
stop_receiving(struct daemon *d, int64_t until_mono)
{
	const int64_t arrived = clock_mono() + ARRIVING;

	remove_socket(d);
	serve_refuse(d->serve, d->own_listener);
	close_listener(d);
	serve_stop(d->serve, arrived < until_mono ? arrived : until_mono);
}

/* An operator is told what is still to be told, such as the keys of handlers
 * that have just been ended.  The time for it ends before that of the stop. */
static void
tell_last(const struct daemon *d, int64_t drained_mono)
{
	int64_t left = drained_mono + DRAIN_GRACE - clock_mono();

	if (left > LAST_WORDS)
		left = LAST_WORDS;
	attention_end(d->conf, left > 0 ? left : 0);
}

static void
oncewrap_stop(struct daemon *d)
{
	const int64_t until = clock_mono() + d->conf->drain_timeout;

	if (d->serve != NULL) {
		stop_until(until);
		stop_receiving(d, until);
		FAULT(STOP_BEGUN);
		drain_requests(d, until);
		serve_close(d->serve, clock_mono() + DRAIN_GRACE);
	}
	tell_last(d, until);
	serve_end(d->serve);
	FAULT(STOP_STORE);
	store_close(d->store);
	FAULT(STOP_CLOSED);
	close_listener(d);
	conf_unref(d->conf);
	conf_unref(d->start);
}

/* A connection needs a descriptor, a run needs several; the usual soft limit of
 * 1024 is for programs that use select(2). */
static void
raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == -1 ||
	    limit.rlim_cur >= DESCRIPTORS)
		return;
	limit.rlim_cur =
	    limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
	if (setrlimit(RLIMIT_NOFILE, &limit) == -1)
		log_event(LOG_WARN, "descriptors", NULL,
		    LOG_S("error", strerror(errno)));
}

static void
oncewrap_serve(struct daemon *d, const sigset_t *signals)
{
	int sig = 0;

	while (sig != SIGTERM && sig != SIGINT) {
		/* The database may have been locked at the start. */
		sig = d->topics ? sigwaitinfo(signals, NULL)
				: wait_signal(signals, 1000);
		if (sig == -1 && !d->topics)
			put_topics(d);
		else if (sig == SIGHUP)
			reload_conf(d);
	}
	log_event(LOG_INFO, "stopping", NULL, LOG_I("signal", sig));
	systemd_notify("STOPPING=1");
}

/* All threads inherit the mask; only sigwaitinfo() takes signals.  A write to a
 * closed pipe is an error, and does not end the process. */
static void
block_signals(sigset_t *taken)
{
	sigset_t all;

	sigfillset(&all);
	sigdelset(&all, SIGBUS); /* see db_log.c */
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	sigemptyset(taken);
	sigaddset(taken, SIGTERM);
	sigaddset(taken, SIGINT);
	sigaddset(taken, SIGHUP);
	sigaddset(taken, SIGUSR1);
}

/* Returns the exit status. */
static int
run_daemon(struct daemon *d, struct conf *conf, const sigset_t *signals)
{
	struct conf_error err;
	int status, error;

	log_echo(true);
	if ((error = log_open(conf->log)) != 0) {
		snprintf(err.text, sizeof(err.text), "log %.300s: %s",
		    conf->log, strerror(error));
		world_not_started(err.text, world_log, conf->log);
		conf_unref(conf);
		return EXIT_FAILURE;
	}
	d->conf = conf;
	d->start = conf_ref(conf);
	attention_configure(conf, NULL);
	if (spool_setup(conf->spool_dir, conf->spool_total) != RC_OK) {
		world_not_started("no memory", NULL, NULL);
		return EXIT_FAILURE;
	}
	raise_descriptors();
	if ((status = oncewrap_start(d, conf)) == 0) {
		log_echo(false);
		oncewrap_serve(d, signals);
	}
	oncewrap_stop(d);
	log_event(LOG_INFO, "stopped", NULL, LOG_I("status", status));
	return status;
}

/* -t */
static int
oncewrap_check(struct conf *conf)
{
	check_warn(conf);
	printf("ok: %zu %s\n", conf->nroutes,
	    PLURAL(conf->nroutes, "route", "routes"));
	conf_unref(conf);
	return EXIT_SUCCESS;
}

int
main(int argc, char **argv)
{
	struct daemon d = { .listener = -1 };
	struct conf_error err;
	struct conf *conf;
	sigset_t signals;
	int status;

	if (!settings_parse(argc, argv, &d.settings, &status))
		return status;

#ifdef M_ARENA_MAX
	/* By default the GNU C library keeps free memory apart for each of up
	 * to 8 threads a processor, but one thread handles all requests. */
	(void)mallopt(M_ARENA_MAX, 2);
	/* By default the size from which a block goes back to the system grows
	 * up to 32 MiB with the blocks that are freed. */
	(void)mallopt(M_MMAP_THRESHOLD, 256 * 1024);
#endif

	if (run_init() != RC_OK || log_start() != 0) {
		world_not_started("no descriptors or threads", NULL, NULL);
		return EXIT_FAILURE;
	}
	if (!d.settings.test)
		block_signals(&signals);
	if ((conf = settings_load(&d.settings, &err)) == NULL) {
		log_text(LOG_ERROR, err.text);
		status = EXIT_FAILURE;
	} else if (d.settings.test)
		status = oncewrap_check(conf);
	else
		status = run_daemon(&d, conf, &signals);
	log_stop();
	return status;
}
