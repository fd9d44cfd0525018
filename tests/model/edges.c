/*
 * Prints what record.c allows, as tests/model/run reads it from the model:
 * "state NAME", "rule FROM TO", "operator FROM TO".
 */
#include "config.h"

#include <stdio.h>

#include "record.h"

int
main(void)
{
	enum record_state from, to;

	for (from = 0; from < RECORD_NSTATES; from++) {
		printf("state %s\n", record_state_name(from));
		for (to = 0; to < RECORD_NSTATES; to++) {
			if (record_may_change(from, to, false))
				printf("rule %s %s\n", record_state_name(from),
				    record_state_name(to));
			if (record_may_change(from, to, true))
				printf("operator %s %s\n",
				    record_state_name(from),
				    record_state_name(to));
		}
	}
	return 0;
}
