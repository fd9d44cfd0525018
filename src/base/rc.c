/*
 * Texts of return codes.
 */
#include "config.h"

#include <assert.h>
#include <stddef.h>

#include "rc.h"

const char *
rc_text(enum rc rc)
{
	static const char *const texts[] = { RC_LIST(WORDS_WORD) };

	assert((size_t)rc < sizeof(texts) / sizeof(texts[0]));
	return texts[rc];
}
