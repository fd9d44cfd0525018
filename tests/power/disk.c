/*
 * A disk that forgets what was not synced.  See disk.h.
 *
 * It must not know SQLite, nor what the files mean.
 */
#include "config.h"

#include <sys/stat.h>

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "disk.h"

#define NAMES 16

enum fate { OPEN, LOST, KEPT };

struct item {
	size_t event;
	enum fate fate;
};

struct content {
	unsigned char *data;
	size_t n, room;
};

struct name {
	const char *name;
	int file; /* -1: it is not there */
};

struct disk {
	const struct disk_trace *trace;
	size_t next;
	uint64_t epoch;
	struct content *base; /* of each file: what must be there */
	struct name names[NAMES];
	size_t nnames;
	struct item *item; /* what came after that */
	size_t nitems, items_room;
	struct disk_unit *unit;
	size_t nunits, units_room;
	bool counted; /* unit is up to date */
};

/* A test has no way to go on without memory. */
static void *
grown(void *p, size_t *room, size_t n, size_t size)
{
	if (n <= *room)
		return p;
	*room = n * 2;
	p = realloc(p, *room * size);
	if (p == NULL)
		abort();
	return p;
}

/* --- traces ------------------------------------------------------------- */

struct disk_trace *
disk_trace_new(void)
{
	struct disk_trace *t = calloc(1, sizeof(*t));

	if (t == NULL)
		abort();
	return t;
}

void
disk_trace_free(struct disk_trace *t)
{
	size_t i;

	if (t == NULL)
		return;
	for (i = 0; i < t->n; i++) {
		free(t->event[i].data);
		free(t->event[i].name);
	}
	free(t->event);
	free(t);
}

void
disk_trace_add(struct disk_trace *t, enum disk_what what, int file,
    const char *name, int64_t offset, const void *data, size_t n)
{
	struct disk_event *e;

	t->event = grown(t->event, &t->room, t->n + 1, sizeof(*e));
	e = &t->event[t->n++];
	memset(e, 0, sizeof(*e));
	e->what = what;
	e->file = what == DISK_CREATE ? t->files++ : file;
	e->offset = offset;
	e->n = n;
	if ((name != NULL && (e->name = strdup(name)) == NULL) ||
	    (n > 0 && (e->data = malloc(n)) == NULL))
		abort();
	if (n > 0)
		memcpy(e->data, data, n);
}

int
disk_trace_find(const struct disk_trace *t, const char *name)
{
	const struct disk_event *e;
	size_t i;

	for (i = t->n; i-- > 0;) {
		e = &t->event[i];
		if (e->name != NULL && strcmp(e->name, name) == 0)
			return e->what == DISK_CREATE ? e->file : -1;
	}
	return -1;
}

/* --- the state after so many events ------------------------------------- */

struct disk *
disk_new(const struct disk_trace *t)
{
	struct disk *d = calloc(1, sizeof(*d));

	if (d == NULL)
		abort();
	d->trace = t;
	d->base = calloc((size_t)t->files + 1, sizeof(*d->base));
	if (d->base == NULL)
		abort();
	return d;
}

void
disk_free(struct disk *d)
{
	int i;

	if (d == NULL)
		return;
	for (i = 0; i < d->trace->files; i++)
		free(d->base[i].data);
	free(d->base);
	free(d->item);
	free(d->unit);
	free(d);
}

static void
resize(struct content *c, size_t n)
{
	c->data = grown(c->data, &c->room, n, 1);
	if (n > c->n)
		memset(c->data + c->n, 0, n - c->n);
	c->n = n;
}

static void
put(struct content *c, size_t offset, const void *data, size_t n)
{
	if (offset + n > c->n)
		resize(c, offset + n);
	memcpy(c->data + offset, data, n);
}

static void
set_name(struct name *names, size_t *n, const struct disk_event *e)
{
	size_t i;

	for (i = 0; i < *n; i++)
		if (strcmp(names[i].name, e->name) == 0)
			break;
	if (i == *n) {
		assert(*n < NAMES);
		++*n;
	}
	names[i].name = e->name;
	names[i].file = e->what == DISK_CREATE ? e->file : -1;
}

static bool
is_name(const struct disk_event *e)
{
	return e->what == DISK_CREATE || e->what == DISK_DELETE;
}

/* What is kept becomes what must be there, unless something that may or may
 * not be there comes before it. */
static void
fold(struct disk *d)
{
	bool *blocked = calloc((size_t)d->trace->files + 1, sizeof(*blocked));
	const struct disk_event *e;
	size_t i, kept = 0, domain;

	if (blocked == NULL)
		abort();
	for (i = 0; i < d->nitems; i++) {
		e = &d->trace->event[d->item[i].event];
		domain = (size_t)(is_name(e) ? d->trace->files : e->file);
		if (d->item[i].fate != KEPT || blocked[domain]) {
			blocked[domain] = true;
			d->item[kept++] = d->item[i];
		} else if (is_name(e))
			set_name(d->names, &d->nnames, e);
		else if (e->what == DISK_WRITE)
			put(&d->base[e->file], (size_t)e->offset, e->data,
			    e->n);
		else
			resize(&d->base[e->file], (size_t)e->offset);
	}
	d->nitems = kept;
	free(blocked);
}

static void
sync_items(struct disk *d, const struct disk_event *s, enum fate fate)
{
	const struct disk_event *e;
	size_t i;

	for (i = 0; i < d->nitems; i++) {
		e = &d->trace->event[d->item[i].event];
		if (d->item[i].fate != OPEN ||
		    is_name(e) != (s->what == DISK_SYNC_NAMES) ||
		    (!is_name(e) && e->file != s->file))
			continue;
		d->item[i].fate = fate;
		if (fate == KEPT)
			d->epoch++;
	}
	fold(d);
}

bool
disk_advance(struct disk *d)
{
	const struct disk_event *e;

	if (d->next == d->trace->n)
		return false;
	e = &d->trace->event[d->next];
	d->counted = false;
	switch (e->what) {
	case DISK_CREATE:
	case DISK_DELETE:
	case DISK_WRITE:
	case DISK_TRUNCATE:
		d->item = grown(
		    d->item, &d->items_room, d->nitems + 1, sizeof(*d->item));
		d->item[d->nitems].event = d->next;
		d->item[d->nitems++].fate = OPEN;
		break;
	case DISK_SYNC:
	case DISK_SYNC_NAMES:
		sync_items(d, e, KEPT);
		break;
	case DISK_SYNC_LOST:
		sync_items(d, e, LOST);
		break;
	}
	d->next++;
	return true;
}

uint64_t
disk_epoch(const struct disk *d)
{
	return d->epoch;
}

/* --- what survives ------------------------------------------------------ */

static void
add_unit(struct disk *d, size_t event, int64_t offset, size_t n)
{
	struct disk_unit *u;

	d->unit =
	    grown(d->unit, &d->units_room, d->nunits + 1, sizeof(*d->unit));
	u = &d->unit[d->nunits++];
	u->event = event;
	u->offset = offset;
	u->n = n;
}

const struct disk_unit *
disk_units(struct disk *d, size_t *n)
{
	const struct disk_event *e;
	size_t i, done, part;

	if (!d->counted) {
		d->nunits = 0;
		for (i = 0; i < d->nitems; i++) {
			if (d->item[i].fate == KEPT)
				continue;
			e = &d->trace->event[d->item[i].event];
			for (done = 0; done < e->n; done += part) {
				part = DISK_SECTOR -
				    ((size_t)e->offset + done) % DISK_SECTOR;
				if (part > e->n - done)
					part = e->n - done;
				add_unit(d, d->item[i].event,
				    e->offset + (int64_t)done, part);
			}
			if (e->n == 0)
				add_unit(d, d->item[i].event, 0, 0);
		}
		d->counted = true;
	}
	*n = d->nunits;
	return d->unit;
}

static void
apply(struct content *c, const struct disk_event *e, int64_t offset, size_t n,
    bool keep, bool grow)
{
	if (e->what == DISK_TRUNCATE) {
		if (keep)
			resize(c, (size_t)e->offset);
	} else if (keep)
		put(c, (size_t)offset, e->data + (offset - e->offset), n);
	else if (grow && (size_t)offset + n > c->n)
		resize(c, (size_t)offset + n);
}

static void
content_of(struct disk *d, int file, const unsigned char *keep, bool grow,
    struct content *c)
{
	const struct disk_event *e;
	size_t i, u = 0;

	memset(c, 0, sizeof(*c));
	if (d->base[file].n > 0)
		put(c, 0, d->base[file].data, d->base[file].n);
	for (i = 0; i < d->nitems; i++) {
		e = &d->trace->event[d->item[i].event];
		if (d->item[i].fate == KEPT) {
			if (!is_name(e) && e->file == file)
				apply(c, e, e->offset, e->n, true, false);
			continue;
		}
		for (; u < d->nunits && d->unit[u].event == d->item[i].event;
		     u++)
			if (!is_name(e) && e->file == file)
				apply(c, e, d->unit[u].offset, d->unit[u].n,
				    keep == NULL || keep[u] != 0, grow);
	}
}

static bool
write_file(const char *dir, const char *name, const struct content *c)
{
	char path[512];
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd == -1)
		return false;
	if (c->n > 0)
		n = write(fd, c->data, c->n);
	return close(fd) == 0 && n == (ssize_t)c->n;
}

bool
disk_make(struct disk *d, const unsigned char *keep, bool grow, const char *dir)
{
	struct name names[NAMES];
	const struct disk_event *e;
	struct content c;
	size_t i, u = 0, n, units;
	bool ok = true;

	(void)disk_units(d, &units);
	memcpy(names, d->names, sizeof(names));
	n = d->nnames;
	for (i = 0; i < d->nitems; i++) {
		e = &d->trace->event[d->item[i].event];
		if (d->item[i].fate == KEPT) {
			if (is_name(e))
				set_name(names, &n, e);
			continue;
		}
		for (; u < units && d->unit[u].event == d->item[i].event; u++)
			if (is_name(e) && (keep == NULL || keep[u] != 0))
				set_name(names, &n, e);
	}
	for (i = 0; i < n && ok; i++) {
		if (names[i].file == -1)
			continue;
		content_of(d, names[i].file, keep, grow, &c);
		ok = write_file(dir, names[i].name, &c);
		free(c.data);
	}
	return ok;
}

bool
disk_empty(const char *dir)
{
	char path[768];
	struct dirent *e;
	bool ok = true;
	DIR *d;

	if (mkdir(dir, 0700) == 0)
		return true;
	d = opendir(dir);
	if (d == NULL)
		return false;
	while ((e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (unlink(path) == -1)
			ok = false;
	}
	closedir(d);
	return ok;
}
