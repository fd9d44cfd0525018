#!/bin/sh
# An order as a plain CGI program whose own table is in the PostgreSQL database
# that oncewrap keeps its keys in: the order, the effect and the answer are one
# transaction.  The configuration:
#
#	[route /cgi-bin/order.sh]
#	key = required
#	on_crash = resume
#	share_database = yes
#
#	[effect mail]
#	program = /usr/lib/oncewrap/mail
#
# The table:
#
#	CREATE TABLE shop_order(id uuid PRIMARY KEY, item text NOT NULL);

item=$(head -c "${CONTENT_LENGTH:-0}")

psql -Xqt -v ON_ERROR_STOP=1 -v token="$ONCE_TOKEN" \
    -v id="$ONCE_DOWNSTREAM_KEY" -v item="$item" -d "$ONCE_DATABASE" \
    >/dev/null <<'EOT' || exit 75
BEGIN;
SELECT once_checkpoint(:'token', 'ordered');
INSERT INTO shop_order(id, item) VALUES (:'id', :'item');
SELECT once_outbox(:'token', 'mail', convert_to(:'item', 'UTF8'));
SELECT once_response(:'token', 201, 'Content-Type: text/plain',
    convert_to('ordered: ' || :'item', 'UTF8'));
COMMIT;
EOT
