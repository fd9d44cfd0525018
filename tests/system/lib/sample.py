"""A case or two of each verb of a store, for a look at the other store."""

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
    'page.find_by_each',
    'page.key_page_shows_life_and_answer',
)
