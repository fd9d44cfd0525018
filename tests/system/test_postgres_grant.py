"""A handler whose role has no right but to the three functions."""
import base
from answer import eq, first, replay

from lib.postgres import Server, program
from test_say import EFFECTS

SAYS = '''
oncectl=%s/oncectl
ledger "$ONCE_DATABASE"
"$oncectl" checkpoint charged || exit 75
printf thanks | "$oncectl" emit mail || exit 75
printf 'Status: 201\\n\\nsaid\\n' | "$oncectl" respond || exit 75
kill -9 $$'''


class Shop:
    """A server; a daemon as its owner, and handlers as the role shop."""

    def __init__(self, t, handler, grant=True):
        self.t = t
        self.server = Server(t.path('server'))
        t.defer(self.server.stop)
        self.server.keep_promises()
        for sql in ('CREATE ROLE owner LOGIN', 'CREATE ROLE shop LOGIN',
                    'CREATE DATABASE shop OWNER owner'):
            self.server.sql(sql)
        uri = self.server.uri(user='%s').replace('/postgres?', '/shop?')
        self.mine, self.theirs = uri % 'owner', uri % 'shop'
        self.once = t.once(handler=t.sh(
            'ONCE_DATABASE="%s"\nexport ONCE_DATABASE\n' % self.theirs +
            handler), database=self.mine, conf=EFFECTS, start=False,
            defaults={'share_database': 'yes'})
        self.once.ctl('init', *(['--grant', 'shop'] if grant else []))
        self.once.start()

    def refused(self, sql):
        """As the role shop."""
        run = self.t.run([program('psql'), '-XAtq', '-d', self.theirs, '-c',
                          sql])
        eq((run.returncode, run.stdout), (1, b''), run)
        assert b'permission denied' in run.stderr, run.stderr


def test_a_role_with_the_functions_alone_says_all_with_oncectl(t):
    shop = Shop(t, SAYS % t.handlers)
    answer = shop.once.post('k')
    first(answer, 201, b'said\n')
    replay(shop.once.post('k'), answer)
    eq(shop.once.effects(), [('mail', b'thanks')])
    eq(shop.once.row('k')['recovery_point'], 'charged')
    eq(len(t.ledger()), 1)


def test_the_role_has_no_other_right(t):
    shop = Shop(t, 'status 201')
    first(shop.once.post('k'), 201)
    for table in ('meta', 'owner', 'session', 'kept', 'fingerprint_spec', 'key',
                  'request', 'piece', 'refused', 'topic',
                  'effect'):
        shop.refused('SELECT * FROM once_' + table)
    shop.refused("UPDATE once_key SET state = 'completed'")
    shop.refused('DELETE FROM once_key')
    shop.refused('INSERT INTO once_topic VALUES (decode(\'00\', \'hex\'))')
    shop.refused("SELECT nextval('once_key_id')")
    for command in (['ls'], ['sweep'], ['forget', 'k'], ['doctor']):
        run = t.run([base.ONCECTL, '-d', shop.theirs] + command)
        eq((run.returncode, run.stdout), (1, b''), run)
        assert b'permission denied' in run.stderr, run.stderr


def test_a_role_without_the_grant_says_nothing(t):
    shop = Shop(t, SAYS % t.handlers, grant=False)
    eq(shop.once.post('k').status, 503)
    eq((shop.once.state('k'), shop.once.effects()), ('failed_retryable', []))
    shop.once.wait_log('event=handler-stderr .*permission denied for function'
                       ' once_checkpoint')
    # It is granted while the daemon runs.
    shop.once.ctl('init', '--grant', 'shop')
    first(shop.once.post('k'), 201, b'said\n')


def test_the_uri_of_a_handler_has_no_password(t):
    server = Server(t.path('server'))
    t.defer(server.stop)
    server.keep_promises()
    server.sql('CREATE DATABASE shop OWNER secret')
    uri = server.uri(user='secret').replace('/postgres?', '/shop?')
    once = t.once(handler=t.sh('ledger "$ONCE_DATABASE"; status 201; env'),
                  database=uri + '&password=s3kr:t%2Fpw',
                  defaults={'share_database': 'yes'})
    first(once.post('k'), 201)
    (seen,), = [line.split()[1:] for line in t.ledger()]
    eq(seen, uri)
    for text in (seen, once.post('k').body.decode(), once.log()):
        assert 's3kr' not in text, text
