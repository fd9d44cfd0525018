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

# Sanitizers and hardening bring symbols of their own.
foreign='^(__(asan|lsan|msan|tsan|ubsan|sanitizer|sancov|odr_asan)|asan[.])'
foreign="$foreign|^(tsan[.]|sancov[.]|__start_|__stop_|__stack_chk|_GLOBAL_)"

# symbols LIBRARY...: lines "room U|D name", U for a name that is needed.
symbols()
{
	${NM:-nm} -A -g "$@" | awk -v foreign="$foreign" '
	NF < 3 || $NF ~ foreign { next }
	{
		n = split($1, part, ":")
		# "lib.a:foo.o:" in the first field, or "lib.a:foo.o:addr"
		for (i = 1; i <= n; i++)
			if (part[i] ~ /\.o$/)
				room = part[i]
		sub(/\.o$/, "", room)
		sub(/.*\//, "", room)
		sub(/^lib[a-z]*_a-/, "", room)
		kind = $(NF - 1)
		print room, (kind == "U" || kind == "w" ? "U" : "D"), $NF
		lines++
	}
	END { exit lines == 0 }'
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
