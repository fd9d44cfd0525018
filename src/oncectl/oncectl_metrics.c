/*
 * oncectl metrics: the store's gauges as text for Prometheus, for when no
 * oncewrap runs or can be asked.
 */
#include "config.h"

#include <stdio.h>

#include "limit.h"
#include "metrics.h"
#include "oncectl.h"

int
oncectl_metrics(struct oncectl *ctl)
{
	struct metrics_gauges gauges;
	struct buf text;
	enum rc rc;
	bool done;

	buf_init(&text, LIMIT_METRICS);
	do
		rc = store_tally(ctl->store, &done);
	while (rc == RC_OK && !done);
	if (rc == RC_OK)
		rc = store_gauges(ctl->store, &gauges);
	if (rc == RC_OK)
		rc = metrics_text(&gauges, true, &text);
	if (rc == RC_OK)
		fwrite(text.data, 1, text.len, stdout);
	buf_free(&text);
	return rc == RC_OK ? ONCECTL_DONE : oncectl_fail(ctl, rc);
}
