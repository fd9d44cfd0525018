/*
 * The Reference of a request with a key: see reference.h.
 */
#include "config.h"

#include "reference.h"
#include "store_ops.h"

enum rc
store_reference(struct store *s, const struct store_identity *identity,
    char uuid[RECORD_UUID_LEN + 1])
{
	uint64_t number;
	enum rc rc = store_tx_number(s, identity, &number);

	return rc == RC_OK ? reference_bind(store_secret(s), number, uuid) : rc;
}
