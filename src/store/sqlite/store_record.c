/*
 * See store_record.h.
 */
#include "config.h"

#include "clock.h"
#include "sqlite_tx.h"
#include "store_record.h"

enum rc
store_record_read(struct db *db, int64_t id, struct record *r)
{
	struct sqlite_tx t;
	enum rc rc;

	sqlite_tx_begin(&t, db, 0);
	rc = store_change_read(&t.tx, id, true, r);
	sqlite_tx_end(&t);
	return rc;
}

struct step_time
store_record_time(int64_t now)
{
	return (
	    struct step_time){ .now = now, .age = now, .wall = clock_wall() };
}

enum rc
store_record_insert(struct db *db, const struct store_identity *identity,
    int64_t number, const struct record *r)
{
	const struct row_value value = { .number = number };
	struct sqlite_tx t;

	sqlite_tx_begin(&t, db, 0);
	return store_change_insert(&t.tx, identity, &value, r);
}

enum rc
store_record_write(struct db *db, const struct record *was,
    const struct record *r, const struct step *s,
    const struct kept_columns *answer)
{
	struct sqlite_tx t;

	sqlite_tx_begin(&t, db, 0);
	return store_change_write(&t.tx, was, r, s, answer);
}
