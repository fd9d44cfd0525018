/*
 * Members of a JSON object.  Included by tests only, after cases.h.
 */
#ifndef JSON_MEMBER_H
#define JSON_MEMBER_H

#include <cJSON.h>

static UNUSED const char *
text(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsString(item) ? item->valuestring : "(none)";
}

static UNUSED int
number(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsNumber(item) ? item->valueint : -1;
}

#endif
