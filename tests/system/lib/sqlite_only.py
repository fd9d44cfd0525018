"""The cases that are about SQLite's store, and why PostgreSQL's has no such."""
import fnmatch

FILE = 'the store is a file, which is replaced, copied or damaged'
BACKUP = 'it copies a file; of PostgreSQL postgres_ops shows that backup ' \
    'names pg_dump'
MODE = 'owner and mode of the files; in PostgreSQL roles have rights, see ' \
    'postgres_say and postgres_grant'
LIBRARY = "the handler uses a library of SQLite's; order.py has both"
VIEWS = 'what views refuse; postgres_say has the same table for functions'
LOCK = 'the one write lock of a file, and which process holds it'
WAL = "the length of SQLite's log"
DISK = "the disk of oncewrap's host; a server with a full disk is RC_FULL, " \
    'see the unit tests of pg'
BOOT = 'another boot of a host leaves its keys to that one until ' \
    'owner_timeout'

TABLE = (
    ('backup.*', BACKUP),
    ('damage.*', FILE),
    ('files.*', FILE),
    ('idle.work_that_is_configured_is_polled_until_nothing_is_written',
     'PostgreSQL does not tell what other hosts write, so it is asked'),
    ('share.files_*', MODE),
    ('world.a_start_on_a_file_that_may_not_be_written', MODE),
    ('world.oncectl_on_a_database_that_may_not_be_read', MODE),
    ('world.oncectl_on_a_read_only_disk', MODE),
    ('world.a_database_that_becomes_immutable', MODE),
    ('share.a_name_that_stands_for_another_file_is_left_alone', MODE),
    ('share.a_handler_of_another_user_is_first_to_open_the_database', MODE),
    ('share.another_user_shares_in_c', LIBRARY),
    ('share.another_user_shares_in_perl', LIBRARY),
    ('share.a_*_that_sits_on_the_lock_is_named', LOCK),
    ('share.handlers_get_the_lock_under_load', LOCK),
    ('share.an_answer_that_cannot_be_synced_now_holds_up_no_other',
     "a handler's synchronous = NORMAL, which oncewrap makes up for"),
    ('lifecycle.drain_timeout_bounds_a_stop_while_the_disk_hangs', DISK),
    ('say.an_order_is_taken_in_c', LIBRARY),
    ('say.an_order_is_taken_in_perl', LIBRARY),
    ('say.nothing_is_left_of_what_was_rolled_back_in_c', LIBRARY),
    ('say.nothing_is_left_of_what_was_rolled_back_in_perl', LIBRARY),
    ('say.tokens_that_name_no_living_lease', VIEWS),
    ('say.recovery_points', VIEWS),
    ('say.topics_and_payloads', VIEWS),
    ('say.statuses', VIEWS),
    ('say.header_fields', VIEWS),
    ('say.values_of_another_type', VIEWS),
    ('ride.*', LIBRARY),
    ('readme.transaction_of_a_handler', LIBRARY),
    ('say_sh.*the_shell_of_sqlite3*', LIBRARY),
    ('say_sh.a_full_disk', DISK),
    ('say_sh.a_database_that_is_not_shared_with_that_user', MODE),
    ('say_sh.databases_that_are_none', FILE),
    ('say_sh.nothing_else_is_touched', FILE),
    ('liveness.a_held_lock_proves_life_whatever_the_boot_is_called', BOOT),
    ('liveness.a_child_is_found_whatever_the_boot_is_called', BOOT),
    ('liveness.where_proc_hides_other_users_a_key_is_not_free',
     'its oncectl is another user, which may not use the folder of the host'),
    ('outbox.topics_are_stored_though_the_store_was_locked_at_the_start',
     'in PostgreSQL a start writes a row for the process, so it waits for '
     'the lock, see store.locked_at_the_start'),
    ('loop.a_disk_that_hangs', DISK),
    ('store.missing_folder', FILE),
    ('store.file_that_is_no_database', FILE),
    ('store.database_of_another_program', FILE),
    ('store.database_that_is_a_folder', FILE),
    ('store.database_that_may_not_be_written', FILE),
    ('store.database_is_whole_after_all', FILE),
    ('store.wal_above_max_wal_is_unavailable_until_the_reader_ends', WAL),
    ('store.a_replay_that_is_not_read_keeps_no_transaction_open', WAL),
    ('store.a_large_answer_is_deleted_without_being_overwritten', WAL),
    ('store.after_a_sync_that_failed_*the_log_begins_anew', DISK),
    ('store.a_start_whose_commit_fails_takes_the_store_for_no_older_copy',
     DISK),
    ('store.a_group_whose_sync_failed_waits_for_a_new_log_together', DISK),
    ('store.*full_disk*', DISK),
    ('store.disk_full_of_accepted_work_is_emptied_by_doing_it', DISK),
    ('store.answer_too_large_for_the_disk_never_frees_the_key', DISK),
    ('store.no_space_for_one_neighbour_does_not_hurt_the_others', DISK),
    ('store.requests_that_wait_for_the_lock_hold_up_no_other',
     'the lock of all writes'),
    ('store.lock_not_had_for_busy_timeout_refuses_at_once_until_it_is',
     'one lock for all writes; in PostgreSQL one key may be locked, and each '
     'request waits for its own'),
    ('metrics.health_while_readers_keep_the_log_long', WAL),
    ('metrics.health_with_a_full_disk', DISK),
    ('metrics.health_when_the_database_was_replaced', FILE),
    ('attention.a_full_store_and_one_that_is_gone_are_told', FILE),
    ('oncectl.doctor_tells_of_a_file_that_is_no_database_any_more', FILE),
)


def reason(name):
    """Why the case is none of PostgreSQL's; None: it is."""
    for pattern, why in TABLE:
        if fnmatch.fnmatchcase(name, pattern):
            return why
    return None


def unused(names):
    """Patterns that no case has."""
    return [pattern for pattern, _ in TABLE
            if not fnmatch.filter(names, pattern)]
