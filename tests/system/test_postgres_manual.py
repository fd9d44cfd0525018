"""What the manual says of a PostgreSQL database: its commands are run."""
import os
import re

import base
from answer import eq, first, replay
from base import wait_until
from manual import literal, page
from test_outbox import section
from test_postgres_ops import HELLO, ctl, environment, servers

def full(t):
    server = servers(t).make('a')
    server.keep_promises()
    return server


def test_a_handler_orders_mails_and_answers_in_one_transaction(t):
    """examples/postgresql/order.sh, by a role of the functions alone."""
    block = literal('oncewrap-handler.7', 'once_response(:')
    example = os.path.join(base.EXAMPLES, 'postgresql', 'order.sh')
    with open(example) as f:
        assert block in f.read(), block
    server = full(t)
    conf = t.write('shop.conf', '[server]\ndatabase = %s\n' % server.uri())
    statements = literal('oncectl.1', 'CREATE DATABASE shop')
    for statement in statements.splitlines():
        server.sql(statement)
    eq(server.sql("SELECT rolname FROM pg_roles WHERE rolname IN "
                  "('oncewrap', 'shop_app') ORDER BY 1").split(),
       ['oncewrap', 'shop_app'])
    uri = server.uri(user='oncewrap').replace('/postgres?', '/shop?')
    eq(ctl(t, '-f', conf, '-d', uri, 'init', '--grant',
           'shop_app').returncode, 0)
    assert '.Dl oncectl -d postgresql://oncewrap@db/shop init --grant ' \
        'shop_app' in page('oncectl.1')
    server.command('psql', '-Xq', '-d', uri, '-c',
                   'CREATE TABLE shop_order(id uuid PRIMARY KEY, item text '
                   'NOT NULL); GRANT INSERT ON shop_order TO shop_app')
    # As shop_app, which has the right to nothing else.
    program = t.path('order.sh')
    with open(example) as f:
        t.write('order.sh', f.read().replace(
            '"$ONCE_DATABASE"', '"$(echo "$ONCE_DATABASE" | '
            'sed s/oncewrap@/shop_app@/)"'), 0o755)
    once = t.once(program, database=uri, env=environment(t), defaults={
        'share_database': 'yes', 'on_crash': 'resume'}, conf=section(
            'mail', t.sh('cat >> "$D/mails"', name='mail')))
    answer = once.post('k1', body='tea; DROP TABLE shop_order')
    first(answer, 201)
    eq(answer.body, b'ordered: tea; DROP TABLE shop_order')
    replay(once.post('k1', body='tea; DROP TABLE shop_order'), answer)
    wait_until(lambda: t.exists('mails') and t.read('mails') ==
               b'tea; DROP TABLE shop_order', 'the mail is sent')
    eq(server.command('psql', '-XAtq', '-d', uri, '-c',
                      'SELECT item FROM shop_order').strip(),
       'tea; DROP TABLE shop_order')


def test_the_password_is_in_the_file_that_the_manual_names(t):
    server = full(t)
    server.sql('CREATE DATABASE shop OWNER secret')
    line = literal('oncewrap.conf.5', 'db1:5432:shop:oncewrap')
    host, port, database, user, _ = line.strip().split(':')
    eq((port, database, user), ('5432', 'shop', 'oncewrap'))
    # The same line, with this server's names.
    t.write('pgpass', '%s:5432:shop:secret:s3kr\\:t/pw\n'
            % server.folder.replace(':', '\\:'), 0o600)
    once = t.once(t.sh(HELLO), database=server.uri(user='secret').replace(
        '/postgres?', '/shop?'), env=dict(
            environment(t), PGPASSFILE=t.path('pgpass')))
    first(once.post('k1'))
    assert 's3kr' not in once.log()
    run = ctl(t, '-d', once.database, 'ls', env=environment(t))
    eq(run.returncode, 1, run)
    assert b'PGPASSFILE)' in run.stderr, run


def test_the_commands_of_the_example_move_a_store(t):
    """Under "How to move": copy, init, doctor."""
    with open(os.path.join(base.EXAMPLES, 'postgresql', 'README')) as f:
        said = re.findall(r'^    oncectl (.*)$', f.read(), re.M)
    server = full(t)
    server.sql('CREATE ROLE oncewrap LOGIN')
    server.sql('CREATE DATABASE shop OWNER oncewrap')
    uri = server.uri(user='oncewrap').replace('/postgres?', '/shop?')
    old = t.once(t.sh(HELLO), name='old')
    answer = old.post('k1')
    first(answer)
    old.stop()
    assert len(said) == 3, said
    for line in said:
        words = [{'postgresql://oncewrap@db1,db2/shop': uri,
                  '/var/lib/oncewrap/oncewrap.db': old.database}.get(w, w)
                 for w in line.split()]
        run = ctl(t, *words, env=environment(t))
        eq(run.returncode, 0, (words, run))
    new = t.once(t.sh(HELLO), database=uri, env=environment(t))
    replay(new.post('k1'), answer)
