"""A case or two of each verb of a store, for a look at the other store; what
tests/run quick takes; and what a plain tests/run takes one in three of."""
import zlib

# Those that take the most: a fifth of the time of all.
LONG = (
    'async.three_processes_share_jobs_and_are_killed_ten_times',
    'async.thousand_accepted_jobs_and_ten_kills',
    'backup.it_gives_up_before_the_log_is_too_long',
    'crash.backlog_of_old_keys_does_not_hold_up_the_sweep',
    'examples.two_hosts_with_postgresql',
    'files.a_copy_from_between_two_checkpoints_of_one_log_is_noticed',
    'lifecycle.restart_under_load_loses_no_request',
    'memory.several_large_bodies_do_not_go_through_memory',
    'page.what_takes_long_is_gone_on_with',
    'php.a_script_of_php_fpm_that_died_never_runs_again_by_itself',
    'places.large_bodies_take_no_memory',
    'reload.valgrind_sees_nothing_that_is_freed_at_a_reload',
    'share.handlers_get_the_lock_under_load',
)

NAMES = (
    # reserve, finish, find, answer
    'states.released_key_completes_at_its_second_attempt',
    'states.timeout_is_unknown',
    'replay.bodies_around_64k',
    'replay.answer_survives_a_restart',
    'concurrent.hundred_duplicates_run_once_and_the_rest_get_409',
    'concurrent.waiters_of_one_process_see_the_end_in_another',
    'limits.keys_of_a_scope_above_max_active_keys_are_turned_away',
    'limits.new_key_of_a_caller_with_many_open_outcomes_is_turned_away',
    'store.locked_for_longer_than_busy_timeout',
    'store.outcome_overdue_stops_new_runs_until_it_is_recorded',
    # recover
    'crash.oncewrap_killed_in_mid_output',
    'liveness.a_sweep_removes_what_a_dead_oncewrap_left',
    'liveness.a_retry_resumes_at_once',
    # expire
    'states.reaper_deletes_completed_and_released_keys_past_retention',
    'clock.a_key_expires_on_time_whatever_the_clock_says',
    # accept, job, status
    'async.accepted_request_runs_later_and_its_result_is_the_replay',
    'async.queue_survives_sigkill',
    # due, claim, request, resolve
    'reconcile.completed_becomes_the_stored_answer',
    'reconcile.unknown_again_and_again_is_a_dead_letter',
    'resolve.completed_is_replayed_byte_for_byte',
    # what handlers say, and effects
    'say.an_order_is_taken_in_python',
    'say.a_superseded_attempt_lands_nothing_after_the_next_one',
    'say_sh.an_order_is_taken_with_oncectl',
    'outbox.effects_of_a_key_are_delivered_in_order',
    'outbox.dead_letter_is_retried_by_an_operator',
    # forget, list, stats, doctor, export, gauges, browse, health
    'resolve.forget_each_state_that_may_be',
    'oncectl.stats_by_scope',
    'oncectl.doctor_of_a_healthy_store',
    'outbox.export_has_keys_and_effects',
    'metrics.every_result_of_a_reservation_is_counted',
    'metrics.oncectl_prints_what_the_store_knows',
    'metrics.health_while_a_stranger_holds_the_lock',
    'page.find_by_what_a_customer_has',
    'page.key_page_shows_life_and_answer',
)

# What oncewrap and oncectl do besides, and each web server once.
QUICK = NAMES + (
    # the kinds of handlers
    'cgi.parameters_become_the_environment',
    'cgi.timeout_kills_what_is_deaf_to_term',
    'fastcgi.one_process_answers_many_requests',
    'fastcgi.resume_releases_what_left_nothing_behind',
    'application.php_fpm_answers_once',
    'php.php_cgi_needs_its_preset_alone',
    'passthrough.same_output_as_fcgiwrap_for_plain',
    # requests
    'answers.key_reused',
    'answers.outcome_not_recorded',
    'fcgi_raw.damaged_requests',
    'fcgi_raw.pipelined_requests_are_answered_in_turn',
    'fingerprint.same_json_value',
    'form_keys.keys_are_given_and_taken_by_all_that_share_a_store',
    'keys.malformed_values_are_refused',
    'keys.no_spelling_of_a_path_bypasses_a_route',
    'released.a_key_of_which_nothing_happened_takes_the_next_fingerprint',
    'webhooks.each_delivery_is_taken_once',
    # the life of the daemon
    'lifecycle.drain_timeout_ends_handlers_that_are_deaf_too',
    'lifecycle.sigterm_lets_handlers_finish',
    'lifecycle.check_of_bad_files_names_file_line_and_option',
    'lifecycle.tcp',
    'reload.attempts_under_way_outlive_their_configuration',
    'life.one_grep_for_a_key_shows_its_whole_life',
    'log.a_pipe_that_is_not_read',
    'systemd.systemd_is_told_of_each_change',
    'privileges.ambient_capabilities_do_not_reach_a_handler',
    'store.full_disk_runs_nothing_and_replays',
    'files.an_older_copy_under_a_newer_log_is_noticed',
    # each command of oncectl that NAMES has not
    'backup.a_copy_is_in_wal_mode_and_keeps_a_handlers_tables',
    'oncectl.ls_filters',
    'oncectl.show',
    'oncectl.stats',
    'operator.audit_finds_programs',
    'operator.forget_many_by_each_option',
    'operator.show_response_is_what_resolve_reads',
    'resolve.reap_deletes_what_is_past_its_retention_alone',
    'resolve.reconcile_tries_what_is_due',
    'resolve.sweep_after_kill_9_settles_what_was_left',
    'postgres_copy.everything_comes_along_counted_and_compared',
    'postgres_ops.an_operator_finds_what_the_daemon_has_stored',
    # the web servers
    'servers.first_retry_mismatch_with_lighttpd',
    'servers.first_retry_mismatch_with_lighttpd_bin_path',
    'servers.first_retry_mismatch_with_nginx',
    'servers.first_retry_mismatch_with_apache_proxy_fcgi',
    'servers.first_retry_mismatch_with_apache_fcgid',
    'page.behind_nginx',
)


def drawn(name, seed):
    """Whether a plain tests/run has it: one in three of what takes long."""
    long = name in LONG or name.startswith('postgres_')
    return not long or zlib.crc32((seed + name).encode()) % 3 == 0
