#!/bin/sh
# on_attention = /usr/local/lib/oncewrap/mail.sh root
#
# Mails what needs attention, by the system's sendmail.
set -eu
to=${1:-root}
lines=$(cat)
{
	printf 'To: %s\n' "$to"
	printf 'Subject: oncewrap on %s: %d to look at\n' "$(uname -n)" \
	    "$(printf '%s\n' "$lines" | grep -c .)"
	printf 'Content-Type: text/plain; charset=utf-8\n\n'
	printf '%s\n' "$lines"
	printf '\nSee oncectl ls --state unknown, and --state dead_letter.\n'
} | sendmail -oi -t
