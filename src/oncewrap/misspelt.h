/*
 * Names of a configuration that are well-formed and match nothing: a guard
 * that a slip of the pen has switched off.
 */
#ifndef MISSPELT_H
#define MISSPELT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Whether no request is likely to have the name: an item of `methods`, one of
 * `scope`, or the name of a header field.  True: why is a sentence that names
 * the cure.  A field of any name may be sent, so only one that is near a known
 * field is misspelt.
 */
bool misspelt_method(const char *name, char *why, size_t size);
bool misspelt_scope(const char *name, char *why, size_t size);
bool misspelt_field(const char *name, char *why, size_t size);

#endif
