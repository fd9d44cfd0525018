#!/bin/sh
# on_attention = /usr/local/lib/oncewrap/webhook.sh https://chat.example/hook
#
# Sends what needs attention to a webhook, as JSON Lines.  If that fails, curl's
# exit status says so, and the same lines come again with the next run.
set -eu
exec curl --silent --show-error --fail --max-time 20 \
    --header 'Content-Type: application/jsonl' --data-binary @- --output \
    /dev/null "$1"
