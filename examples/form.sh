#!/bin/sh
# A form: GET prints it, POST adds a line to the file `orders` in its folder.
set -eu

page()
{
	printf 'Status: %s\r\nContent-Type: text/html; charset=utf-8\r\n' "$1"
	printf '\r\n<!DOCTYPE html>\n<html lang="en"><title>Order</title>\n'
	cat
}

form()
{
	echo '<form method="post" action="?order">'
	# Not there without oncewrap: then the form works as it always did.
	[ -z "${ONCE_FORM_KEY:-}" ] ||
	    echo "<input type=\"hidden\" name=\"once_key\"" \
		"value=\"$ONCE_FORM_KEY\">"
	cat <<-'EOT'
		<select name="item"><option>tea<option>coffee</select>
		<button>Order</button>
		</form>
	EOT
}

if [ "${REQUEST_METHOD:-GET}" != POST ]; then
	form | page '200 OK'
	exit 0
fi
body=$(head -c "${CONTENT_LENGTH:-0}")
# No value that is taken needs to be decoded.
case "&$body&" in
*'&item=tea&'*)	item=tea ;;
*'&item=coffee&'*)	item=coffee ;;
*)	echo '<p>There is no such item.' | page '400 Bad Request'
	exit 0 ;;
esac
echo "${ONCE_KEY:--} $item" >>orders
echo "<p>Your order of $item is number $(wc -l <orders)." | page '200 OK'
