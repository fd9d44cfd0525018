# Makes queries_table.h from the files of sql/, and pg_table.h from those of
# sql/postgres (-v prefix=PG_): one X-macro list for each file, named after it,
# of X(NAME, "text", reason).  rows.sql and common.sql are read for both.
#
#	-- name: foo		begins a statement
#	-- scan: reason		its plan may scan a table, and why; one that
#				begins with SQLite is none for PostgreSQL
#	-- list: foo		begins a part of later statements, mostly
#				columns: $foo stands for it
#	?+1			the first parameter after those with a number
#				of their own; ?+2 is the next one
#
# SQLite has no casts such as ::bigint, and needs none.
#
# The output has no comments and no line breaks.  A statement ends where the
# next one begins, so that a trigger may contain semicolons.

# The text with its lists.
function expanded(text,	  list)
{
	while (match(text, /\$[a-z_]+/)) {
		list = substr(text, RSTART + 1, RLENGTH - 1)
		if (!(list in lists)) {
			print FILENAME ": " name ": no list " list \
			    > "/dev/stderr"
			failed = 1
			return text
		}
		text = substr(text, 1, RSTART - 1) lists[list] \
		    substr(text, RSTART + RLENGTH)
	}
	return text
}

# The number that the highest parameter has.
function highest(text,	  n, max)
{
	while (match(text, /[?$][0-9]+/)) {
		n = substr(text, RSTART + 1, RLENGTH - 1) + 0
		if (n > max)
			max = n
		text = substr(text, RSTART + RLENGTH)
	}
	return max + 0
}

# The text with the numbers of its last parameters, ?+1 and so on.
function numbered(text,	  base)
{
	base = highest(text)
	while (match(text, /[?$][+][0-9]+/))
		text = substr(text, 1, RSTART) \
		    base + substr(text, RSTART + 2, RLENGTH - 2) \
		    substr(text, RSTART + RLENGTH)
	return text
}

function flush()
{
	if (name == "")
		return
	if (is_list) {
		lists[name] = text
		name = ""
		return
	}
	sub(/;[ ]*$/, "", text)
	text = numbered(expanded(text))
	if (text == "") {
		print FILENAME ": " name " is empty" > "/dev/stderr"
		failed = 1
	}
	if (dollar)
		gsub(/\?/, "$", text)
	else
		gsub(/::[a-z]+/, "", text)
	gsub(/\\/, "&&", text)
	gsub(/"/, "\\\"", text)
	printf " \\\n\tX(%s, \"%s;\", %s)", toupper(name), text, reason
	name = ""
}

BEGIN {
	print "/* Made by queries.awk from sql/; do not edit. */"
}

# PostgreSQL writes a parameter as $1.
FNR == 1 && FILENAME ~ /postgres\// {
	dollar = 1
}

# The statements of common.sql belong to the list before it; rows.sql has none.
FNR == 1 && FILENAME !~ /(common|rows)[.]sql$/ {
	flush()
	list = FILENAME
	sub(/^.*\//, "", list)
	sub(/\.sql$/, "", list)
	gsub(/-/, "_", list)
	printf "\n\n#define %s%s(X)", prefix, toupper(list)
}

/^-- (name|list): / {
	flush()
	name = $3
	is_list = $2 == "list:"
	text = ""
	reason = "NULL"
	if (seen[name]++) {
		print FILENAME ":" FNR ": " name " again" > "/dev/stderr"
		failed = 1
	}
	next
}

/^-- scan: / {
	if (dollar && $3 == "SQLite")
		next
	reason = "\"" substr($0, 10) "\""
	next
}

{
	sub(/--.*$/, "")
	gsub(/[ \t]+/, " ")
	sub(/^ /, "")
	sub(/ $/, "")
	if ($0 != "" && name == "") {
		print FILENAME ":" FNR ": text without a name" > "/dev/stderr"
		failed = 1
	}
	if ($0 != "")
		text = text (text == "" ? "" : " ") $0
}

END {
	flush()
	print ""
	exit failed
}
