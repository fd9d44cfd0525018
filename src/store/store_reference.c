/*
 * The Reference of a request with a key: see sealed.h.
 */
#include "config.h"

#include <string.h>

#include "sealed.h"
#include "store_ops.h"
#include "uuid.h"

enum rc
store_reference(struct store *s, const struct store_identity *identity,
    char uuid[RECORD_UUID_LEN + 1])
{
	unsigned char bytes[16];
	uint64_t number;
	enum rc rc;

	if (!uuid_parse(uuid, bytes))
		return RC_INVALID;
	rc = store_tx_number(s, identity, &number);
	if (rc == RC_OK)
		rc = sealed_reference(store_secret(s), number, bytes);
	if (rc == RC_OK)
		uuid_text(bytes, uuid);
	return rc;
}

enum rc
store_referenced(struct store *s, const char *instance, uint64_t *number)
{
	char uuid[RECORD_UUID_LEN + 1];
	unsigned char bytes[16];

	if (!uuid_copied(instance, uuid) || !uuid_parse(uuid, bytes))
		return RC_INVALID;
	return sealed_reference_number(store_secret(s), bytes, number);
}

enum store_instance
store_instance_kind(struct store *s, const char *instance)
{
	uint64_t number;
	enum rc rc = store_referenced(s, instance, &number);

	if (rc == RC_INVALID)
		return STORE_INSTANCE_NONE;
	return rc == RC_OK ? STORE_INSTANCE_OURS : STORE_INSTANCE_FOREIGN;
}

const char *
store_instance_warning(const struct record *key, const char *instance)
{
	char uuid[UUID_LEN + 1];

	if (uuid_copied(instance, uuid) && strcmp(uuid, key->instance) == 0)
		return NULL;
	return "The request with that Reference did not begin the last attempt "
	       "of this key: it was a replay, or refused, or an earlier "
	       "attempt. The log says which.";
}
