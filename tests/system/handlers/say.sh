#!/bin/sh
# Says all that a handler can, with oncectl.
set -e
PATH=${0%/*}:$PATH
oncectl checkpoint ordered
echo thanks | oncectl emit mail
printf 'Status: 201\n\n' | oncectl respond
