/*
 * The cases that the store on PostgreSQL does not have, each with its reason,
 * for all programs that tests/unit/on_postgresql runs.  Included by
 * store_fixture.h only.
 */
#ifndef ONLY_SQLITE_H
#define ONLY_SQLITE_H

#define NO_BAD_ROW "PostgreSQL's constraints refuse the row"
#define BAD_ROW(name)                               \
	{                                           \
		"test_store_rows", name, NO_BAD_ROW \
	}

/* A program without a case: all of its cases. */
static const struct {
	const char *program, *name, *why;
} only_sqlite[] = {
	{ "test_schema", NULL, "its version and its files" },
	{ "test_store_damage", NULL, "its files" },
	{ "test_store_faults", NULL, "its files" },
	{ "test_store_guard", NULL, "its files" },
	{ "test_store_pieces", NULL,
	    "it writes a large body in several transactions" },
	{ "test_store_recent", NULL, "its indexes" },
	{ "test_store_seal", NULL, "its handlers write views" },
	{ "test_views", NULL, "its handlers write views" },
	{ "test_write", NULL, "its committer" },
	{ "test_clock", "a_key_lives_past_2038", "it has this host's clock" },
	{ "test_outbox", "a_try_that_cannot_be_made_durable_is_none",
	    "its disk fails" },
	{ "test_outbox", "an_end_that_cannot_be_recorded_is_recorded_later",
	    "its disk fails" },
	{ "test_scheduler",
	    "work_of_this_process_wakes_it_though_it_sees_no_write",
	    "its file is watched" },
	{ "test_store", "what_reaping_frees_is_used_again",
	    "the pages of its file" },
	{ "test_store", "store_time_is_the_same_for_all",
	    "it has this host's clock, to the ms" },
	{ "test_store", "store_time_never_goes_back",
	    "it has this host's clock" },
	{ "test_store", "store_time_is_written_at_a_sweep",
	    "it has this host's clock" },
	{ "test_store", "bad_rows_do_not_end_a_list", NO_BAD_ROW },
	{ "test_store", "stats_count", "the size of its log" },
	{ "test_store", "doctor_finds", "damage to its file" },
	{ "test_store", "who_only_looks_writes_nothing",
	    "it has this host's clock" },
	{ "test_store_call", "a_lock_ends_calls_in_time_and_holds_up_no_lookup",
	    "one lock for all that write" },
	{ "test_store_call",
	    "what_is_in_memory_is_found_at_once_and_else_by_a_helper",
	    "its files" },
	{ "test_store_call", "a_lookup_sees_the_last_commit", "its files" },
	{ "test_store_call",
	    "a_kernel_that_tells_an_end_of_the_file_too_early_is_not_believed",
	    "its files" },
	{ "test_store_call",
	    "nothing_is_made_durable_where_commits_are_not_synced",
	    "its handlers' commits may not be synced" },
	{ "test_store_call", "what_is_synced_and_confirmed_is_durable",
	    "its mark of commits that are not synced" },
	{ "test_store_crowd",
	    "a_planted_count_of_kept_bytes_holds_up_no_outcome",
	    "its handlers write the table" },
	{ "test_store_job", "while_the_log_is_too_long_nothing_is_begun",
	    "max_wal" },
	{ "test_store_output", "a_row_that_makes_no_sense_is_refused",
	    "its columns take any type" },
	{ "test_store_resume", "by_another_lock_file_nothing_is_released",
	    "the name of its lock file" },
	BAD_ROW("of_two_keys_with_one_number_each_is_found"),
	BAD_ROW("doctor_names_a_key_with_the_number_of_another"),
	BAD_ROW("doctor_names_the_second_row_of_a_key"),
	BAD_ROW("a_key_that_is_to_be_reconciled_waits_for_no_bad_one"),
	BAD_ROW("a_sweep_settles_what_is_beside_a_bad_one"),
	BAD_ROW("a_planted_retention_holds_up_no_outcome"),
	BAD_ROW("reaping_and_lists_pass_by_bad_ones"),
	BAD_ROW("a_crowd_of_bad_rows_keeps_no_key_from_being_reaped"),
	BAD_ROW("effects_of_a_bad_row_keep_no_key_from_being_reaped"),
	BAD_ROW("a_bad_row_that_is_mended_is_reaped_at_once"),
	BAD_ROW("a_sweep_takes_a_crowd_of_bad_rows_in_parts"),
	BAD_ROW("a_bad_row_that_is_asked_for_is_no_answer_and_never_runs"),
	BAD_ROW("an_answer_that_makes_no_sense_is_not_given"),
	{ "test_store_rows", "a_planted_number_keeps_no_new_key_out",
	    "its last number" },
	{ "test_store_rows", "a_sweep_gets_past_many_owners_with_bad_rows_only",
	    "owners without a row are another host's" },
	{ "test_store_table",
	    "each_change_of_the_table_is_asked_when_it_is_made",
	    "a module finds by itself the function that is replaced" },
	{ "test_store_table",
	    "a_change_that_the_table_does_not_allow_is_not_made",
	    "a module finds by itself the function that is replaced" },
};

static void
only_sqlite_skip(void **state)
{
	(void)state;
	skip();
}

/* Makes of a case one that is skipped, whose name ends with the reason. */
static void
only_sqlite_replace(struct CMUnitTest *test, const char *why)
{
	static char names[COUNT(only_sqlite)][200];
	static size_t n;

	assert_true(n < COUNT(names));
	snprintf(
	    names[n], sizeof(names[n]), "%s: only SQLite: %s", test->name, why);
	memset(test, 0, sizeof(*test));
	test->name = names[n++];
	test->test_func = only_sqlite_skip;
}

/* Replaces the cases that the store does not have.  A row that fits no case is
 * an error. */
static size_t
only_sqlite_skip_some(struct CMUnitTest *tests, size_t n)
{
	for (size_t i = 0; is_postgresql() && i < COUNT(only_sqlite); i++) {
		size_t j = 0;

		if (strcmp(only_sqlite[i].program,
			program_invocation_short_name) != 0)
			continue;
		if (only_sqlite[i].name == NULL) {
			tests[0].name = "every case";
			n = 1;
		} else {
			while (j < n &&
			    strcmp(tests[j].name, only_sqlite[i].name) != 0)
				j++;
		}
		if (j == n) {
			print_error("no case: %s\n", only_sqlite[i].name);
			return 0;
		}
		only_sqlite_replace(&tests[j], only_sqlite[i].why);
	}
	return n;
}

#endif
