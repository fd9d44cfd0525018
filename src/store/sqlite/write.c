/*
 * Lists of writes.
 */
#include "config.h"

#include <stddef.h>

#include "write.h"

void
write_list_init(struct write_list *l)
{
	l->first = NULL;
	l->last = &l->first;
	l->n = 0;
}

void
write_list_add(struct write_list *l, struct write *w)
{
	w->next = NULL;
	*l->last = w;
	l->last = &w->next;
	l->n++;
}

struct write *
write_list_take(struct write_list *l)
{
	struct write *w = l->first;

	if (w == NULL)
		return NULL;
	l->n--;
	l->first = w->next;
	if (l->first == NULL)
		l->last = &l->first;
	w->next = NULL;
	return w;
}

bool
write_list_remove(struct write_list *l, struct write *w)
{
	struct write **p;

	for (p = &l->first; *p != NULL; p = &(*p)->next) {
		if (*p != w)
			continue;
		l->n--;
		*p = w->next;
		if (l->last == &w->next)
			l->last = p;
		return true;
	}
	return false;
}
