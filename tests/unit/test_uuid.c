/*
 * uuid: texts as people copy them.
 */
#include "config.h"

#include "cases.h"

#include "uuid.h"

#define TEXT "123e4567-e89b-82d3-a456-42661417400f"

TEST(texts_as_people_copy_them)
{
	static const struct {
		const char *text;
		bool is;
	} cases[] = {
		{ TEXT, true },
		{ "urn:uuid:" TEXT, true },
		{ "URN:UUID:123E4567-E89B-82D3-A456-42661417400F", true },
		{ "  urn:uuid:" TEXT "\r\n", true },
		{ "", false },
		{ "urn:uuid:", false },
		{ "x", false },
		{ TEXT "0", false },
		{ TEXT " 0", false },
		{ "123e4567-e89b-82d3-a456-42661417400g", false },
		{ "123e4567-e89b-82d3-a456-4266141740", false },
		{ "123e4567 e89b-82d3-a456-42661417400f", false },
	};
	char uuid[UUID_LEN + 1];

	for (size_t i = 0; i < COUNT(cases); i++) {
		if (uuid_copied(cases[i].text, uuid) != cases[i].is)
			fail_msg("%s", cases[i].text);
		if (cases[i].is)
			assert_string_equal(uuid, TEXT);
	}
}
