/*
 * How long small writes wait beside large ones.
 *
 *	beside DIRECTORY STREAMS BYTES SECONDS [requests|resolved]
 *
 * STREAMS threads store answers of that many BYTES, or requests of that many,
 * or answers to keys whose outcome was unknown, one after the other, in a
 * database in DIRECTORY.  Another thread reserves
 * keys and stores small answers meanwhile.  The program prints how long each
 * such write took (ms), and the number of large bodies.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "spool.h"
#include "store.h"
#include "store_operator.h"
#include "../unit/store_admits.h"

#define MOST 200000

static struct store *store;
static size_t bytes;
static atomic_bool over;
static atomic_int large;
static bool requests; /* they are large, not the answers */
static bool resolved; /* the answers are to keys without a lease */
static double took[MOST];
static int key[64]; /* tells the streams apart */

static void
must(enum rc rc, const char *what)
{
	if (rc == RC_OK)
		return;
	fprintf(stderr, "beside: %s: %s\n", what, rc_text(rc));
	exit(1);
}

/* length: of the request that is kept; 0: none is kept. */
static void
reserve(const char *name, const void *body, size_t length,
    struct store_lease *lease)
{
	struct store_attempt attempt = { .fd = -1, .note = -1, .lock = 1 };
	struct store_reservation w;
	enum decision decision;
	struct record found;

	memset(&w, 0, sizeof(w));
	w.identity.key = name;
	w.identity.path = "/payments";
	w.identity.scope = "customer";
	w.fingerprint_spec = "1";
	w.lease = 60000;
	w.retention = 86400000;
	if (length > 0) {
		w.attempt = &attempt;
		w.reconcile_delay = 60000;
		w.environment = "A=b";
		w.environment_len = 4;
		w.body = body;
		w.body_len = length;
	}
	must(store_reserve(store, &w, lease, &decision, &found), "reserve");
	record_free(&found);
}

static void
leave_unknown(const struct store_lease *lease)
{
	struct store_outcome *s = store_outcome_new(store);
	struct store_finished done;

	s->state = RECORD_UNKNOWN;
	must(store_finish(store, lease, 86400000, &s, &done), "leave unknown");
	store_outcome_free(s);
}

static void
settle(const struct store_lease *lease, size_t n, bool leased)
{
	struct store_outcome *s = store_outcome_new(store);
	static const char block[65536];
	struct store_finished done;
	enum rc rc;
	size_t i;

	s->state = RECORD_COMPLETED;
	s->keep = true;
	s->response.status = 200;
	s->body = spool_new();
	for (i = 0; i < n; i += sizeof(block))
		must(spool_write(s->body, block,
			 n - i < sizeof(block) ? n - i : sizeof(block)),
		    "spool");
	s->response.body = spool_bytes(s->body, &rc);
	s->response.body_len = n;
	if (leased)
		must(store_finish(store, lease, 86400000, &s, &done), "settle");
	else
		must(store_resolve_by_operator(store, lease->id, 1, &s),
		    "resolve");
	store_outcome_free(s);
}

static void *
stream(void *arg)
{
	char *body = requests ? calloc(1, bytes) : NULL;
	struct store_lease lease;
	char name[64];
	int i;

	for (i = 0; !atomic_load(&over); i++) {
		snprintf(name, sizeof(name), "large-%p-%d", arg, i);
		reserve(name, body, body != NULL ? bytes : 0, &lease);
		if (resolved)
			leave_unknown(&lease);
		settle(&lease, requests ? 100 : bytes, !resolved);
		atomic_fetch_add(&large, 1);
	}
	free(body);
	return NULL;
}

static int
by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int
small_ones(int64_t until)
{
	struct store_lease lease;
	int64_t begun;
	char name[32];
	int n;

	for (n = 0; n + 1 < MOST && clock_mono() < until; n += 2) {
		snprintf(name, sizeof(name), "small-%d", n);
		begun = clock_mono_us();
		reserve(name, NULL, 0, &lease);
		took[n] = (double)(clock_mono_us() - begun) / 1e3;
		begun = clock_mono_us();
		settle(&lease, 100, true);
		took[n + 1] = (double)(clock_mono_us() - begun) / 1e3;
	}
	return n;
}

int
main(int argc, char **argv)
{
	pthread_t thread[64];
	struct store_options o;
	char file[4096], err[256];
	int i, n, streams;

	requests = argc == 6 && strcmp(argv[5], "requests") == 0;
	resolved = argc == 6 && strcmp(argv[5], "resolved") == 0;
	if ((argc != 5 && !requests && !resolved) ||
	    (streams = atoi(argv[2])) < 0 || streams > 64) {
		fprintf(stderr,
		    "usage: beside directory streams bytes seconds "
		    "[requests|resolved]\n");
		return 2;
	}
	bytes = (size_t)atoll(argv[3]);
	memset(&o, 0, sizeof(o));
	snprintf(file, sizeof(file), "%s/beside.db", argv[1]);
	o.database = file;
	o.mode = 0600;
	o.create = true;
	o.durability = CONF_DURABILITY_FULL;
	o.busy_timeout = 60000;
	o.max_wal = 1024 * 1024 * 1024;
	must(spool_setup(argv[1], UINT64_MAX), "spool");
	must(store_open(&store, &o, err, sizeof(err)), file);
	for (i = 0; i < streams; i++)
		if (pthread_create(&thread[i], NULL, stream, &key[i]) != 0)
			return 1;
	n = small_ones(clock_mono() + 1000 * atoll(argv[4]));
	atomic_store(&over, true);
	for (i = 0; i < streams; i++)
		pthread_join(thread[i], NULL);
	store_close(store);
	if (n == 0)
		return 1;
	qsort(took, (size_t)n, sizeof(took[0]), by_size);
	printf("small %d  median %.2f  p99 %.2f  most %.2f  large %d\n", n,
	    took[n / 2], took[n - 1 - n / 100], took[n - 1],
	    atomic_load(&large));
	return 0;
}
