# Sourced by the lints.  A lint is a list of checks, each a case in TAP.
#
# check NAME COMMAND...: COMMAND prints one complaint a line, and none means
# that all is well.  A command that fails is a failed case too.
# shellcheck shell=sh

: "${srcdir:=.}"
cases=0

check()
{
	name=$1
	shift
	cases=$((cases + 1))
	if complaints=$("$@" 2>&1) && [ -z "$complaints" ]; then
		echo "ok $cases - $name"
	else
		echo "not ok $cases - $name"
		printf '%s\n' "${complaints:-failed without a word}" |
		    sed 's/^/# /'
	fi
}

# sources PATTERN: the files of src with such a name.
sources()
{
	find "$srcdir/src" -type f -name "$1" | sort | grep . ||
	    echo "no-file-like-$1"
}

end()
{
	echo "1..$cases"
}
