# Makes tx_table.h from the queries of both stores, common.sql first: an X-macro
# list of the names that both have.

BEGIN {
	print "/* Made by shared.awk from sql/; do not edit. */"
	printf "\n#define TX_QUERIES(X)"
}

/^-- name: / && (FILENAME ~ /common[.]sql$/ || seen[$3]++) {
	printf " \\\n\tX(%s)", toupper($3)
}

END {
	print ""
}
