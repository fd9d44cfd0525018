/*
 * See json_order.h.
 *
 * Many members are dealt out, by one byte of their names after the other, into
 * piles whose names begin alike.  Each byte is looked at once, so the steps
 * grow with the length of the names alone.  The largest pile is dealt out by
 * the same loop, and the others, which have at most half of the members, by
 * recursion.  Few members are merged.  qsort(3) promises no bound on its steps,
 * and the members come from strangers.
 */
#include "config.h"

#include <stddef.h>
#include <string.h>

#include "json_string.h"
#include "json_order.h"

/* So many members cost more to deal out than to merge. */
#define FEW 64

/* The end of a list that is merged. */
#define NONE UINT32_MAX

struct sorter {
	const char *text;
	struct json_member *member;
	bool duplicate; /* two members have one name */
};

/* --- few members ---------------------------------------------------------- */

/* Merges two sorted lists.  Two members of one name are compared in one of the
 * merges, because both are in order. */
static uint32_t
merge(struct sorter *s, uint32_t a, uint32_t b)
{
	uint32_t head, *tail = &head, *from;
	int order;

	while (a != NONE && b != NONE) {
		order = json_string_order(
		    s->text + s->member[a].name, s->text + s->member[b].name);
		if (order == 0)
			s->duplicate = true;
		from = order <= 0 ? &a : &b;
		*tail = *from;
		tail = &s->member[*from].next;
		*from = *tail;
	}
	*tail = a != NONE ? a : b;
	return head;
}

/* Takes n members off the list, and returns them as a sorted list. */
static uint32_t
sort_few(struct sorter *s, uint32_t *list, uint32_t n)
{
	uint32_t a, b;

	if (n == 1) {
		a = *list;
		*list = s->member[a].next;
		s->member[a].next = NONE;
		return a;
	}
	a = sort_few(s, list, n / 2);
	b = sort_few(s, list, n - n / 2);
	return merge(s, a, b);
}

/* --- many members --------------------------------------------------------- */

static void
chain(struct sorter *s, struct json_members *to, struct json_members more)
{
	if (to->n == 0) {
		*to = more;
	} else if (more.n > 0) {
		s->member[to->last].next = more.first;
		to->last = more.last;
		to->n += more.n;
	}
}

/* Makes a pile of the members that have the same byte there. */
static void
deal(struct sorter *s, const struct json_members *list, size_t at,
    struct json_members pile[JSON_STRING_RANKS])
{
	uint32_t m = list->first, next, i;
	const char *p;

	memset(pile, 0, JSON_STRING_RANKS * sizeof(*pile));
	for (i = 0; i < list->n; i++, m = next) {
		next = s->member[m].next;
		p = s->text + s->member[m].name + at;
		chain(s, &pile[json_string_rank(&p)],
		    (struct json_members){ m, m, 1 });
	}
	s->duplicate = s->duplicate || pile[0].n > 1;
}

/* Where the next byte of their names is, of members that have the same byte at
 * that place. */
static size_t
behind(const struct sorter *s, const struct json_members *list, size_t at)
{
	const char *name = s->text + s->member[list->first].name;
	const char *p = name + at;

	(void)json_string_rank(&p);
	return (size_t)(p - name);
}

/* Sorts members whose names are the same up to that place. */
static void
sort(struct sorter *s, struct json_members *list, size_t at)
{
	struct json_members pile[JSON_STRING_RANKS], before = { 0, 0, 0 };
	struct json_members after = before, more;
	uint32_t m;
	int i, most;

	while (list->n > FEW) {
		deal(s, list, at, pile);
		if (s->duplicate)
			return;
		for (i = most = 0; i < JSON_STRING_RANKS; i++)
			if (pile[i].n > pile[most].n)
				most = i;
		more = (struct json_members){ 0, 0, 0 };
		for (i = 0; i < JSON_STRING_RANKS; i++) {
			if (i == most || pile[i].n == 0)
				continue;
			sort(s, &pile[i], behind(s, &pile[i], at));
			chain(s, i < most ? &before : &more, pile[i]);
		}
		chain(s, &more, after);
		after = more;
		*list = pile[most];
		at = behind(s, list, at);
	}
	m = list->first;
	list->first = sort_few(s, &m, list->n);
	for (m = list->first; m != NONE; m = s->member[m].next)
		list->last = m;
	chain(s, &before, *list);
	chain(s, &before, after);
	*list = before;
}

bool
json_order(
    const char *text, struct json_member *member, struct json_members *list)
{
	struct sorter s = { text, member, false };

	sort(&s, list, 1); /* behind the quote */
	return !s.duplicate;
}
