"""oncectl and the operator's page on a real PostgreSQL server."""
import json
import os

import base
from answer import eq, first, problem, replay
from base import wait_until
from lib.postgres import Server, Servers
from once import Background

HELLO = 'printf "Content-Type: text/plain\\n\\nhello $ONCE_KEY"'
UNKNOWN = 'echo "Content-Type: text/plain"; echo; kill -9 $$'


def servers(t):
    s = Servers()
    t.defer(s.close)
    return s


def environment(t):
    path = t.path('state')
    os.makedirs(path, mode=0o700, exist_ok=True)
    return dict(os.environ, STATE_DIRECTORY=path)


def has(text, words):
    assert words in text, (words, text)


def ctl(t, *args, env=None):
    return t.run([base.ONCECTL] + list(args), env=env)


def refused(run, says):
    eq((run.returncode, run.stdout), (1, b''), run)
    has(run.stderr.decode(), says)


def daemon(t, server, handler=HELLO, options=None, **kw):
    return t.once(t.sh(handler), server={'durability': 'normal',
                                         'owner_timeout': '2s',
                                         **(options or {})},
                  database=server.uri(), env=environment(t), **kw)


def test_init_makes_the_tables_and_grants_no_more_than_the_functions(t):
    server = servers(t).make('a')
    server.sql('CREATE ROLE shop LOGIN')
    conf = t.write('normal.conf', '[server]\ndurability = normal\n'
                   'database = %s\n' % server.uri())
    for _ in range(2):
        done = ctl(t, '-f', conf, 'init', '--grant', 'shop')
        eq(done.returncode, 0)
    eq(server.sql("SELECT count(*) FROM once_meta"), '1')
    eq(server.sql("SELECT count(*) FROM unnest(ARRAY["
                  "'once_checkpoint(text, text)',"
                  "'once_outbox(text, text, bytea)',"
                  "'once_response(text, integer, text, bytea)']) f "
                  "WHERE has_function_privilege('shop', f, 'EXECUTE')"), '3')
    eq(server.sql("SELECT count(*) FROM pg_tables WHERE tablename LIKE "
                  "'once%' AND has_table_privilege('shop', "
                  "tablename::text, 'SELECT')"), '0')
    refused(ctl(t, '-f', conf, 'init', '--grant', 'nobody'),
            'role "nobody" does not exist')


def test_durability_full_is_refused_where_the_server_does_not_sync(t):
    server = servers(t).make('a')
    refused(ctl(t, '-d', server.uri(), 'init'),
            "the server's setting fsync is off")


def test_an_operator_finds_what_the_daemon_has_stored(t):
    server = servers(t).make('a')
    once = daemon(t, server)
    first(once.post('k1'))
    first(once.post('k2', path='/other'))
    once.ctl('init', status=1)
    eq([r['key'] for r in once.ls()], ['k1', 'k2'])
    eq([r['key'] for r in once.ls('--path', '/other')], ['k2'])
    eq(once.ls('--state', 'unknown'), [])
    row = once.row('k1')
    eq(row['state'], 'completed')
    found = once.ctl('--json', 'show', '--downstream', row['downstream'])
    has(found, '"k1"')
    has(once.ctl('show', 'k1', '--response'), 'hello k1')
    stats = once.ctl('stats')
    has(stats, 'completed: 2\n')
    # A log is the whole server's.
    assert 'wal' not in stats, stats
    eq(sorted(json.loads(once.ctl('stats', '--json'))),
       ['answer_bytes', 'database_bytes', 'keys', 'oldest_unknown'])
    has(once.ctl('metrics'), 'oncewrap_keys{state="in_progress"} 0')
    once.ctl('forget', 'k2')
    eq([r['key'] for r in once.ls()], ['k1'])
    refused(ctl(t, '-d', server.uri(), 'backup', t.path('copy')), 'pg_dump(1)')
    # The server syncs nothing; all else is well.
    bad = [line for line in once.ctl('doctor', status=1).splitlines()
           if line.startswith('BAD')]
    eq([line.split()[1] for line in bad], ['durability', 'summary'])
    has(bad[0], 'setting fsync is off, so a commit may be lost: turn it on')


def test_doctor_and_lists_say_which_rows_make_no_sense(t):
    server = servers(t).make('a')
    once = daemon(t, server)
    for key in ('k1', 'k2', 'k3'):
        first(once.post(key))
    server.sql("UPDATE once_key SET path = 'no-slash' WHERE key = 'k2'")
    server.sql("UPDATE once_key SET key = 'k4' WHERE key = 'k3'")
    eq([r['key'] for r in once.ls()], ['k1', 'k4'])
    has(once.ctl('doctor', status=1), '2 without sense')
    for verb in (['show'], ['forget'], ['resolve', '--not-executed']):
        refused(ctl(t, '-d', server.uri(), *verb, 'k2'),
                'k2: the row of that key makes no sense')
    refused(ctl(t, '-d', server.uri(), 'show', 'k5'), 'k5: no such key')


def test_the_page_shows_keys_and_health_says_what_is_off(t):
    server = servers(t).make('a')
    once = daemon(t, server, UNKNOWN, {'admin_path': '/admin'})
    problem(once.post('k1'), 'handler-failed', unknown=True)
    has(once.get('/admin/').body.decode(), 'k1')
    eq(once.get('/admin/health').status, 200)
    server.freeze()
    try:
        eq(once.get('/admin/health').status, 503)
    finally:
        server.thaw()
    wait_until(lambda: once.get('/admin/health').status == 200,
               'the store is healthy again')


def test_a_setting_that_is_off_later_stops_new_runs(t):
    group = servers(t)
    server = group.make('a')
    for name in ('fsync', 'full_page_writes'):
        server.set(name, 'on')
    once = daemon(t, server, options={'durability': 'full',
                                      'admin_path': '/admin'})
    answer = once.post('k1')
    first(answer)
    server.set('fsync', 'off')
    once.wait_log('event=store-unsafe')
    has(once.get('/admin/health').body.decode(), 'fsync')
    problem(once.post('k2'), 'store-unavailable')
    replay(once.post('k1'), answer)
    server.set('fsync', 'on')
    wait_until(lambda: once.post('k3').status == 200, 'it runs again')


def test_a_promoted_standby_without_the_last_commits_needs_accept_loss(t):
    group = servers(t)
    old = group.make('a')
    standby = group.make('b', 'a')
    uri = 'postgresql:///postgres?host=%s,%s&user=postgres' % (
        old.folder, standby.folder)
    once = t.once(t.sh(HELLO), server={
        'durability': 'normal', 'owner_timeout': '2s',
        'admin_path': '/admin'}, database=uri, env=environment(t))
    kept = once.post('k1')
    first(kept)
    old.caught_up(standby)
    # The standby gets no more.
    standby.sql('SELECT pg_wal_replay_pause()')
    standby.stop()
    first(once.post('k2'))
    old.kill()
    standby.start()
    standby.sql('SELECT pg_wal_replay_resume()')
    standby.promote()
    once.wait_log('event=store-went-back')
    answer = once.post('k3')
    problem(answer, 'store-unavailable', acted=True)
    has(answer.body.decode(), 'store-went-back')
    has(once.get('/admin/health').body.decode(), 'store-went-back')
    has(once.ctl('accept-loss'), 'accepted: daemons that wait go on ')
    once.wait_log('event=loss-accepted')
    replay(once.post('k1'), kept)
    first(once.post('k2'))      # its first run is what was lost
    first(once.post('k3'))
    eq(once.get('/admin/health').status, 200)


def beats(server):
    """Waits until the process has moved, and so has read once_meta."""
    def beat():
        return int(server.sql('SELECT beat FROM once_owner'))
    before = beat()
    wait_until(lambda: beat() > before + 1, 'the process moves')


def test_a_loss_that_was_accepted_before_is_not_the_next_one(t):
    server = servers(t).make('a')
    once = daemon(t, server, options={'admin_path': '/admin'})
    first(once.post('k1'))
    has(once.ctl('accept-loss'), 'nothing changes for the others; only their '
        'logs and health tell whether one waits (store-went-back)')
    beats(server)
    server.sql('UPDATE once_session SET seq = 0')
    server.restart()
    once.wait_log('event=store-went-back')
    for n in range(3):
        has(once.get('/admin/health').body.decode(), 'store-went-back')
        problem(once.post('k2'), 'store-unavailable', acted=True)
    eq(once.log_lines('event=loss-accepted'), [])
    has(once.ctl('accept-loss'), 'accepted')
    once.wait_log('event=loss-accepted')
    first(once.post('k2'))


def restored(t, server):
    """Dumps the database; the function that is returned restores it in place,
    beside the daemon's connections."""
    dump = os.path.join(server.folder, 'dump')
    server.command('pg_dump', '-Fc', '-f', dump, '-d', server.uri())
    return lambda *options: server.command(
        'pg_restore', '-d', server.uri(), *(options or ['--clean']), dump)


def test_a_restore_in_place_is_noticed_before_anything_runs(t):
    server = servers(t).make('a')
    gate = t.gate()
    once = daemon(t, server, 'ledger "$ONCE_KEY"; gate gate; status 201',
                  options={'admin_path': '/admin', 'owner_timeout': '1h'})

    def together(*keys):
        posts = [Background(lambda key=key: once.post(key)) for key in keys]
        return [post.result() for post in posts]
    gate.open(20)
    # Several connections have written before the dump, and not since.
    for answer in together('a', 'b', 'c', 'd'):
        first(answer, 201)
    restore = restored(t, server)
    first(once.post('lost'), 201)
    runs = len(t.ledger())
    restore()
    for answer in together('lost', 'a', 'lost', 'b', 'lost', 'c', 'new',
                           'lost'):
        problem(answer, 'store-unavailable', acted=True)
        has(answer.body.decode(), 'store-went-back')
    eq(len(t.ledger()), runs)
    eq(len(once.log_lines('event=store-went-back')), 1)
    has(once.get('/admin/health').body.decode(), 'store-went-back')
    has(once.ctl('accept-loss'), 'accepted')


def test_rows_that_are_restored_are_not_taken_for_those_of_before(t):
    """Nothing was written since the dump by this process; another one may
    have."""
    server = servers(t).make('a')
    once = daemon(t, server)
    first(once.post('a'))
    restore = restored(t, server)
    # What is accepted now is forgotten by the restore.
    has(once.ctl('accept-loss'), 'accepted')
    beats(server)
    server.sql('DO $$ DECLARE t text; BEGIN FOR t IN SELECT tablename FROM '
               "pg_tables WHERE tablename LIKE 'once%' LOOP "
               "EXECUTE 'DELETE FROM ' || t; END LOOP; END $$")
    restore('--data-only')
    problem(once.post('a'), 'store-unavailable', acted=True)
    once.wait_log('event=store-went-back')
    has(once.ctl('accept-loss'), 'accepted')
    once.wait_log('event=loss-accepted')
    wait_until(lambda: once.post('a').status == 200, 'it goes on')


def test_copy_takes_all_of_an_sqlite_store_along(t):
    server = servers(t).make('a')
    big = t.sh('printf "Status: 201\\nX-A: b\\n\\n"; '
               'head -c 500000 /dev/zero | tr "\\0" x')
    old = t.once(t.sh(HELLO), routes={
        '/big': {'handler': big},
        '/lost': {'handler': t.sh(UNKNOWN), 'reconcile': '/bin/false',
                  'reconcile_after': '1h'}}, name='old')
    answer = old.post('k1')
    first(answer)
    large = old.post('k2', path='/big')
    eq((large.status, len(large.body)), (201, 500000))
    problem(old.post('k3', path='/lost', body=b'body of k3'),
            'handler-failed', unknown=True)
    before = old.ls()
    conf = t.write('normal.conf', '[server]\ndurability = normal\n')
    copy = ['-f', conf, '-d', old.database, '--json', 'copy',
            '--to', server.uri()]
    refused(ctl(t, *copy), 'a daemon uses it')
    old.stop()
    done = ctl(t, *copy)
    eq((done.returncode, done.stderr), (0, b''))
    counts = json.loads(done.stdout)
    eq((counts['keys'], counts['requests']), (3, 1))
    refused(ctl(t, *copy), 'has keys or effects already: name a database '
            'without any')
    new = daemon(t, server, routes=old.routes)
    for was, now in zip(before, new.ls()):
        for name in ('key', 'path', 'scope', 'state', 'attempt', 'status',
                     'downstream', 'created_at', 'updated_at'):
            eq(now[name], was[name])
        for name in ('expires_at', 'reconcile_after'):
            eq(bool(now[name]), bool(was[name]))
    replay(new.post('k1'), answer)
    replay(new.post('k2', path='/big'), large)
    problem(new.post('k3', path='/lost', body=b'body of k3'),
            'outcome-unknown', unknown=True)
    first(new.post('k4'))
    eq(new.row('k2')['downstream'], before[1]['downstream'])


def test_a_refusal_names_the_database_and_the_cure(t):
    server = servers(t).make('a')
    server.keep_promises()
    once = t.once(t.sh(HELLO), name='old', database=t.path('old.db'))
    once.stop()
    file = once.database
    uri = server.uri()
    eq(ctl(t, '-d', uri, 'init').returncode, 0)
    for database, words, says in (
            (file, ['init'], 'init: %s: only for a PostgreSQL database, whose '
             'name begins with postgresql://; oncewrap makes an SQLite '
             'database at its first start' % file),
            (file, ['accept-loss'], 'accept-loss: %s: only for a PostgreSQL '
             'database, whose name begins with postgresql://; with an SQLite '
             'database, oncewrap goes on after a restart' % file),
            (file, ['accept-clock'], 'accept-clock: %s: only for a PostgreSQL '
             'database, whose name begins with postgresql://; with an SQLite '
             'database, time does not follow the wall clock' % file),
            (file, ['copy', '--to', 'x'], 'copy: --to x: not the URI of a '
             'PostgreSQL database, which begins with postgresql://; "oncectl '
             'backup" copies into a file'),
            (file, ['copy', '--to', 'host=h password=s3kr'],
             'copy: --to: not the URI of a PostgreSQL'),
            (uri, ['copy', '--to', uri], uri + ': only an SQLite database '
             'is copied; pg_dump(1) copies a PostgreSQL one')):
        run = ctl(t, '-d', database, *words)
        refused(run, says)
        assert b's3kr' not in run.stderr, run


def test_copy_tells_what_it_has_copied(t):
    server = servers(t).make('a')
    server.keep_promises()
    old = t.once(t.sh(HELLO), name='old')
    first(old.post('k1'))
    old.stop()
    done = ctl(t, '-d', old.database, 'copy', '--to', server.uri())
    eq((done.returncode, done.stdout, done.stderr),
       (0, b'copied and compared:\nkeys: 1\nanswer_bytes: 8\nrequests: 0\n'
        b'outputs: 0\neffects: 0\npayload_bytes: 0\n', b''))


def test_a_check_warns_of_a_database_that_no_start_would_open(t):
    path = t.path('c.conf')
    for query, modules, says in (
            ('', None, None),
            ('?bad=s3*kr', None, 'not a URI or conninfo string of '
             'PostgreSQL: invalid URI query parameter: ...'),
            ('', t.path('nowhere'), 'a PostgreSQL database needs the package '
             'oncewrap-postgresql: ')):
        t.write('c.conf', '[server]\n'
                'database = postgresql://u:s3*kr@h/d%s\n' % query)
        run = t.run([base.ONCEWRAP, '-t', '-f', path], env=dict(
            os.environ, ONCEWRAP_MODULES=modules or base.MODULES))
        eq((run.returncode, run.stdout), (0, b'ok: 0 routes\n'), run)
        if says is None:
            eq(run.stderr, b'')
        else:
            has(run.stderr.decode(), '%s:2: warning: database: %s'
                % (path, says))
        assert b's3*' not in run.stderr and b'*kr' not in run.stderr, run


def test_without_the_module_the_error_names_its_package(t):
    nowhere = dict(os.environ, ONCEWRAP_MODULES=t.path('nowhere'))
    for uri in ('postgresql://u:secret@h/d', 'postgres://u:secret@h/d'):
        for command in (['ls'], ['init'], ['backup', t.path('copy')]):
            run = ctl(t, '-d', uri, *command, env=nowhere)
            refused(run, 'needs the package oncewrap-postgresql')
            assert b'secret' not in run.stderr, run
        run = t.run([base.ONCEWRAP, '-d', uri, '-s', t.path('s')],
                    env=nowhere)
        refused(run, 'needs the package oncewrap-postgresql')
        assert b'secret' not in run.stderr, run
    refused(ctl(t, '-d', t.path('x.db'), 'init'),
            'only for a PostgreSQL database')
