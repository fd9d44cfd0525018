/*
 * Words for numbers.  An enum and its words as one list, so that they cannot
 * disagree:
 *
 *	#define COLORS(X) X(COLOR_RED, "red") X(COLOR_BLUE, "blue")
 *	enum color { COLORS(WORDS_ENUMERATOR) };
 *	static const char *const names[] = { COLORS(WORDS_WORD) };
 */
#ifndef WORDS_H
#define WORDS_H

#include <string.h>

#define WORDS_ENUMERATOR(name, word) name,
#define WORDS_WORD(name, word)       word,
/* NOLINTNEXTLINE(bugprone-macro-parentheses): it is a sum of words */
#define WORDS_ONE(name, word) +1

/* The index of a word in a list of n; n: it is not there. */
static inline unsigned
words_find(const char *const *words, unsigned n, const char *word)
{
	unsigned i = 0;

	while (i < n && strcmp(word, words[i]) != 0)
		i++;
	return i;
}

/* The number of values, as a constant expression. */
#define WORDS_COUNT(list) (0 list(WORDS_ONE))

/* The word behind a number: "1 key", "2 keys", "0 keys". */
#define PLURAL(n, one, many) ((n) == 1 ? (one) : (many))

#endif
