#!/bin/sh
# on_attention = /usr/local/lib/oncewrap/lamp.sh /sys/class/leds/red:status
#
# Lights a lamp until someone puts it out: a LED of the kernel, or a GPIO that
# is exported as an output (/sys/class/gpio/gpio17).  The user of oncewrap must
# be allowed to write there; in a unit, ReadWritePaths opens it.
#
#     echo 0 >/sys/class/leds/red:status/brightness
set -eu
cat >/dev/null
for file in brightness value; do
	[ ! -e "$1/$file" ] || exec sh -c 'echo 1 >"$0"' "$1/$file"
done
echo "$1: neither a LED nor a GPIO" >&2
exit 1
