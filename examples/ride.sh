#!/bin/sh
# Orders a ride, as ride.py does: {"to": "airport", "amount": 4200}.
#
# In shell a phase is not one transaction: the rides are written with sqlite3,
# the record of the request with oncectl.  So each step on the rides is one that
# may be done twice, named by ONCE_DOWNSTREAM_KEY, and its recovery point comes
# behind it.  Only the receipt and the answer must not come apart: one call of
# oncectl is one transaction.
#
# Needs share_database = yes and on_crash = resume; see oncewrap-handler(7).
# PROVIDER names the payment provider; curl and sqlite3 are in PATH.
# Descriptor 3 is not ours: a shell script uses 4 and on.
set -u

ride=$ONCE_DOWNSTREAM_KEY
newline='
'

# answer STATUS JSON: a CGI response.
answer()
{
	printf 'Status: %s\r\nContent-Type: application/json\r\n\r\n%s\n' \
	    "$1" "$2"
}

# Whatever went wrong: what is not recorded has not happened, and the next
# attempt goes on from there.  75 says so.
try_again()
{
	echo "ride.sh: $*" >&2
	answer '503 Service Unavailable' '{"error": "try again later"}'
	exit 75
}

# A literal of SQL.
quote()
{
	printf "'%s'" "$(printf '%s' "$1" | sed "s/'/''/g")"
}

# On stdin, for ps(1) shows arguments to every user.
sql()
{
	printf '%s;\n' "$1" | sqlite3 -init /dev/null -batch -bail \
	    -cmd '.timeout 10000' "$ONCE_DATABASE"
}

# For demonstrations: {"test": "charged"} waits there in the first attempt, if
# these two FIFOs are there.
pause()
{
	if [ "$test" = "$1" ] && [ "$ONCE_ATTEMPT" = 1 ] &&
	    [ -p gate.here ]; then
		echo $$ >gate.here
		read -r _ <gate.open
	fi
}

order=$(head -c 4096)
order=$(quote "$order")
test=$(sql "SELECT CASE WHEN json_type(j, '\$.to') = 'text'
    AND json_type(j, '\$.amount') = 'integer'
    AND json_extract(j, '\$.amount') BETWEEN 1 AND 999999
    THEN coalesce(json_extract(j, '\$.test'), 'no') END
    FROM (SELECT CASE WHEN json_valid($order) THEN $order END AS j)") ||
    try_again 'order: no database'
if [ -z "$test" ]; then
	answer '400 Bad Request' '{"error": "to and amount, please"}'
	exit 0
fi

point=$ONCE_RECOVERY_POINT
pause "$point"

if [ "$point" = started ]; then
	sql "BEGIN IMMEDIATE;
	    CREATE TABLE IF NOT EXISTS ride(id TEXT PRIMARY KEY, rider TEXT,
		destination TEXT, amount INTEGER, charge TEXT);
	    INSERT OR IGNORE INTO ride(id, rider, destination, amount)
	    SELECT '$ride', $(quote "$ONCE_SCOPE"), json_extract(j, '\$.to'),
		json_extract(j, '\$.amount') FROM (SELECT $order AS j);
	    COMMIT" || try_again 'ride: not written'
	pause creating
	point=ride_created
	oncectl checkpoint $point || try_again "$point: not recorded"
	pause $point
fi

if [ "$point" = ride_created ]; then
	charge=$(sql "SELECT json_object('amount', amount) FROM ride
	    WHERE id = '$ride'") || try_again 'ride: not read'
	# Asked again with this key, the provider says what it said before: it
	# is all one whether the first answer was lost.
	said=$(curl -s -m "${PROVIDER_TIMEOUT:-10}" -w '\n%{http_code}' \
	    -H 'Content-Type: application/json' -d "$charge" \
	    -H "Idempotency-Key: $ONCE_DOWNSTREAM_KEY" \
	    "${PROVIDER:-http://127.0.0.1:8402}/charges") ||
	    try_again "provider: curl ended with $?"
	pause charging
	case ${said##*"$newline"} in
	201)	said=$(quote "${said%"$newline"*}") ;;
	402)	answer '402 Payment Required' '{"error": "card declined"}' |
		    oncectl respond || try_again 'answer: not recorded'
		exit 0 ;;
	*)	try_again "provider: status ${said##*"$newline"}" ;;
	esac
	sql "UPDATE ride SET charge = json_extract($said, '\$.charge')
	    WHERE id = '$ride'" || try_again 'charge: not written'
	pause recording
	point=charged
	oncectl checkpoint $point || try_again "$point: not recorded"
	pause $point
fi

receipt=$(sql "SELECT json_object('ride', id, 'amount', amount) FROM ride
    WHERE id = '$ride'") || try_again 'ride: not read'
ride=$(sql "SELECT json_object('ride', id, 'to', destination, 'amount', amount,
    'charge', charge) FROM ride WHERE id = '$ride'") ||
    try_again 'ride: not read'
answer '201 Created' "$ride" |
    oncectl respond --emit receipt=/dev/fd/4 4<<EOT ||
$receipt
EOT
    try_again 'answer: not recorded'
pause answered
