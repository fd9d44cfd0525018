#!/bin/sh
# Sends a receipt: the program of [effect receipt].  The payload comes on stdin;
# "sending" is a line in the file "receipts" in this folder.
#
# It can be run again after it has done its work, when that could not be
# recorded.  ONCE_EFFECT_KEY is then the same, and a second line is not written.
# (A mail would have it in its Message-ID, a web hook in an Idempotency-Key.)
set -eu

exec 4>>receipts
flock 4
if ! grep -qF " effect=$ONCE_EFFECT_KEY " receipts; then
	printf 'receipt effect=%s key=%s %s\n' "$ONCE_EFFECT_KEY" \
	    "$ONCE_KEY" "$(cat)" >&4
	sync receipts
fi

# For demonstrations: waits here if these two FIFOs are there.
if [ -p receipt.here ]; then
	echo $$ >receipt.here
	read -r _ <receipt.open
fi

# What is kept as the reference of the effect.
echo "receipts:$(grep -nF " effect=$ONCE_EFFECT_KEY " receipts | cut -d: -f1)"
