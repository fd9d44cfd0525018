/*
 * Texts of return codes.
 */
#include "config.h"

#include "rc.h"

const char *
rc_text(enum rc rc)
{
	static const char *const texts[] = { RC_LIST(WORDS_WORD) };

	return texts[rc];
}
