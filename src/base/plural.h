/*
 * The word behind a number: "1 key", "2 keys", "0 keys".
 */
#ifndef PLURAL_H
#define PLURAL_H

#define PLURAL(n, one, many) ((n) == 1 ? (one) : (many))

#endif
