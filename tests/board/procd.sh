# What stands in for rc.common and procd: writes the calls of an init script to
# the file CALLS.
# shellcheck shell=ash

for call in open_instance set_param close_instance send_signal; do
	eval "procd_$call() { echo $call \"\$@\" >>\"\$CALLS\"; }"
done
# shellcheck source=/dev/null
. "$1"
case $2 in
start)	start_service ;;
reload)	reload_service ;;
esac
