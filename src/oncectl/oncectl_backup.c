/*
 * oncectl backup: a whole copy of the store while it is in use.
 */
#include "config.h"

#include <err.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "oncectl_print.h"
#include "oncectl.h"

/* Set by SIGINT, SIGTERM and SIGHUP: the copy is given up. */
static atomic_bool stop;

static void
backup_on_signal(int number)
{
	(void)number;
	atomic_store(&stop, true);
}

static void
catch_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = backup_on_signal;
	sa.sa_flags = SA_RESTART;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &sa, NULL);
	/* Then a limit of the file size is an error of write(2). */
	(void)signal(SIGXFSZ, SIG_IGN);
}

int
oncectl_backup(struct oncectl *ctl)
{
	struct store_backup what;
	struct store_copied copied;
	char why[1024], at[ONCECTL_PRINT_TIME];
	cJSON *o;
	enum rc rc;

	if (ctl->nargs != 1) {
		warnx("backup: name the FILE to make");
		return ONCECTL_USAGE;
	}
	memset(&what, 0, sizeof(what));
	what.file = ctl->arg[0];
	what.replace = (ctl->given & ONCECTL_YES) != 0;
	what.stop = &stop;
	/* A quarter is left for what is written until the daemon can reset
	 * its log. */
	what.max_log = ctl->conf->max_wal / 4 * 3;
	catch_signals();
	rc = store_backup(ctl->store, &what, &copied, why, sizeof(why));
	if (rc != RC_OK) {
		warnx("backup: %s", why);
		return ONCECTL_REFUSED;
	}
	if (!ctl->json) {
		printf("%s: %ju bytes, as of %s\n", what.file,
		    (uintmax_t)copied.bytes,
		    oncectl_print_time(copied.at_wall, at));
		return ONCECTL_DONE;
	}
	o = oncectl_print_object();
	oncectl_print_json_text(o, "file", what.file);
	oncectl_print_json_number(o, "bytes", (int64_t)copied.bytes);
	oncectl_print_json_time(o, "as_of", copied.at_wall);
	oncectl_print_json(o);
	return ONCECTL_DONE;
}
