"""oncectl: what operators and programs are told, and its exit status."""
import datetime
import json
import re
import sqlite3

import base
from answer import UUID, eq, first
from once import parallel
from test_outbox import section

FIELDS = ['scope', 'path', 'key', 'state', 'attempt', 'status',
          'recovery_point', 'downstream', 'created_at', 'updated_at',
          'locked_until', 'expires_at', 'reconcile_after', 'last_error',
          'method', 'peer', 'instance']
TIMES = ('created_at', 'updated_at', 'locked_until', 'expires_at',
         'reconcile_after')


def filled(t):
    """A store with a key in each state."""
    gate = t.gate()
    once = t.once(handler=t.sh(
        'ledger; case $QUERY_STRING in 201) status 201; echo answer;; '
        '503) status 503;; kill) kill -9 $$;; '
        'run) gate gate; status 200;; esac'))
    first(once.post('done', query='201', user='ann'), 201)
    first(once.post('free', query='503'), 503)
    eq(once.post('lost', query='kill').status, 502)
    conn = once.begin('runs', query='run', path='/other')
    gate.wait()
    t.defer(lambda: (gate.open(), conn.answer()))
    return once


def tool(t, *args, env=None):
    return t.run([base.ONCECTL] + list(args), env=env)


def test_ls_json_has_exactly_the_fields_in_order(t):
    once = filled(t)
    for line in once.ctl('ls', '--json').splitlines():
        eq(list(json.loads(line)), FIELDS)


def test_ls_json_values(t):
    once = filled(t)
    rows = {r['key']: r for r in once.ls()}
    eq({k: (r['scope'], r['path'], r['state'], r['attempt'], r['status'])
        for k, r in rows.items()},
       {'done': ('ann', '/pay', 'completed', 1, 201),
        'free': ('', '/pay', 'failed_retryable', 1, rows['free']['status']),
        'lost': ('', '/pay', 'unknown', 1, None),
        'runs': ('', '/other', 'in_progress', 1, None)})
    now = datetime.datetime.now(datetime.timezone.utc)
    for row in rows.values():
        assert re.fullmatch(UUID, row['downstream']), row
        for name in TIMES:
            if row[name] is not None:
                assert re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d'
                                    r'(\.\d+)?Z', row[name]), row
        created = datetime.datetime.fromisoformat(
            row['created_at'].replace('Z', '+00:00'))
        assert abs((now - created).total_seconds()) < 60, row
    for key, (locked, expires) in {
            'done': (False, True), 'free': (False, True),
            'lost': (False, False), 'runs': (True, False)}.items():
        eq((rows[key]['locked_until'] is not None,
            rows[key]['expires_at'] is not None), (locked, expires), key)
    assert rows['lost']['last_error'], rows['lost']
    assert not rows['done']['last_error'], rows['done']


def test_ls_filters(t):
    once = filled(t)

    def keys(*args):
        return sorted(r['key'] for r in once.ls(*args))
    eq(keys(), ['done', 'free', 'lost', 'runs'])
    eq(keys('--state', 'unknown'), ['lost'])
    eq(keys('--state', 'in_progress'), ['runs'])
    eq(keys('--state', 'expired'), [])
    eq(keys('--scope', 'ann'), ['done'])
    eq(keys('--scope', ''), ['free', 'lost', 'runs'])
    eq(keys('--path', '/other'), ['runs'])
    eq(keys('--path', '/pay', '--scope', '', '--state', 'unknown'), ['lost'])
    eq(keys('--older', '1h'), [])
    base.wait_until(lambda: len(keys('--older', '50ms')) == 4,
                    'all are older than 50 ms')


def test_ls_table(t):
    once = filled(t)
    lines = once.ctl('ls').splitlines()
    eq(len(lines), 5, lines)
    for key in ('done', 'free', 'lost', 'runs'):
        eq(sum(key in line.split() for line in lines), 1, lines)


def test_ls_of_an_empty_store(t):
    once = t.once(handler=t.sh('status 200'))
    eq(once.ctl('ls', '--json'), '')
    once.ctl('ls')


def test_ls_with_strange_keys_stays_one_object_a_line(t):
    once = t.once(handler=t.sh('status 200'))
    keys = ['a b', 'quote " back \\\\slash', '{"json":1}', "it's"]
    for key in keys:
        quoted = '"%s"' % key.replace('\\\\', '\\').replace(
            '\\', '\\\\').replace('"', '\\"')
        eq(once.post(quoted).status, 200)
    eq({r['key'] for r in once.ls()},
       {k.replace('\\\\', '\\') for k in keys})
    path = '/with\nnewline\x1b[31m'
    eq(once.post('p', path=path).status, 200)
    eq(once.row('p')['path'], path)
    assert '\x1b' not in once.ctl('ls'), 'a table with control bytes'
    eq(len(once.ctl('ls').splitlines()), len(keys) + 2)


def test_show(t):
    once = filled(t)
    row = json.loads(once.ctl('show', '--json', 'done'))
    for name, value in once.row('done').items():
        eq(row.get(name), value, name)
    text = once.ctl('show', 'done')
    for part in ('done', 'ann', '/pay', 'completed', '201'):
        assert part in text, text


def test_show_of_a_key_without_a_scope(t):
    once = t.once(handler=t.sh('status 201'))
    first(once.post('k'), 201)
    lines = once.ctl('show', 'k').splitlines()
    assert 'scope: -' in lines, lines


def test_show_of_no_such_key(t):
    once = filled(t)
    run = tool(t, '-d', once.database, 'show', 'missing')
    eq((run.returncode, run.stdout), (1, b''), run)
    assert b'missing' in run.stderr, run


def test_show_of_several_is_refused_with_their_list(t):
    once = t.once(handler=t.sh('status 201'))
    once.post('k', user='ann')
    once.post('k', user='bob')
    once.post('k', user='bob', path='/other')
    run = tool(t, '-d', once.database, 'show', 'k')
    eq(run.returncode, 1, run)
    for part in (b'ann', b'bob', b'/other'):
        assert part in run.stderr + run.stdout, run
    eq(json.loads(once.ctl('show', '--json', 'k', '--scope', 'ann'))
       ['scope'], 'ann')
    row = json.loads(once.ctl('show', '--json', 'k', '--scope', 'bob',
                              '--path', '/other'))
    eq((row['scope'], row['path']), ('bob', '/other'))


def test_show_of_many_is_refused_with_some(t):
    once = t.once(handler=t.sh('status 201'))
    users = ['user%02d' % i for i in range(22)]
    for user in users:
        once.post('k', user=user)
    more = b'there are more'
    for path, said in (('/pay', 20), ('/none', 0)):
        run = tool(t, '-d', once.database, 'show', 'k', '--path', path)
        eq(run.returncode, 1, run)
        eq(len([user for user in users if user.encode() in run.stderr]), said)
        eq(more in run.stderr, said != 0, run)
    once.ctl('forget', '--scope', users[3], '--yes')
    once.ctl('forget', '--scope', users[5], '--yes')
    run = tool(t, '-d', once.database, 'show', 'k')
    eq(len([user for user in users if user.encode() in run.stderr]), 20, run)
    assert more not in run.stderr, run


def test_show_by_downstream_key(t):
    once = filled(t)
    row = once.row('lost')
    shown = json.loads(once.ctl('show', '--json', '--downstream',
                                row['downstream']))
    eq(shown['key'], 'lost')
    eq(tool(t, '-d', once.database, 'show', '--downstream',
            '00000000-0000-4000-8000-000000000000').returncode, 1)


def test_stats(t):
    once = filled(t)
    stats = json.loads(once.ctl('stats', '--json'))
    text = json.dumps(stats)
    for state in ('completed', 'failed_retryable', 'unknown',
                  'in_progress'):
        assert state in text, stats
    table = once.ctl('stats')
    assert 'completed' in table and 'unknown' in table, table


def test_one_of_a_kind_is_told_without_a_plural(t):
    once = t.once(t.sh('printf 1 | ONCEWRAP_MODULES=%s %s emit mail; '
                       'kill -9 $$' % (base.MODULES, base.ONCECTL)),
                  defaults={'share_database': 'yes'},
                  conf=section('mail', t.sh('exit 75', name='mail'),
                               backoff='1h'))
    eq(once.post('lost').status, 502)
    other = t.write('other.conf', '')
    doctor = once.ctl('-f', other, 'doctor', status=1)
    for says in ('1 that no program reconciles: "oncectl ls --state '
                 'unknown" lists, "oncectl resolve" settles\n',
                 '1 pending for an [effect] section that there is not: '
                 'mail\n'):
        assert says in doctor, doctor
    once.ctl('resolve', 'lost', '--completed', input=b'Status: 200\n\n1')
    assert 'answer_bytes: 1\n' in once.ctl('stats')
    eq(once.ctl('sweep'), '0 keys settled\n')


def test_stats_by_scope(t):
    once = filled(t)
    first(once.post('again', query='201', user='ann'), 201)
    scopes = [json.loads(line) for line in
              once.ctl('stats', '--by-scope', '--json').splitlines()]
    eq([list(s) for s in scopes],
       [['scope', 'keys']] * 2)
    eq([s['scope'] for s in scopes], ['', 'ann'])
    eq({k: v for k, v in scopes[0]['keys'].items() if v},
       {'in_progress': 1, 'failed_retryable': 1, 'unknown': 1})
    eq({k: v for k, v in scopes[1]['keys'].items() if v}, {'completed': 2})
    eq(list(scopes[0]['keys']), list(scopes[1]['keys']))
    table = once.ctl('stats', '--by-scope').splitlines()
    eq((len(table), table[0].split()[-1], table[2].split()),
       (3, 'SCOPE', ['0', '0', '2', '0', '0', '0', '0', 'ann']),
       table)


def test_stats_by_scope_of_more_scopes_than_are_read_at_once(t):
    once = t.once(handler=t.sh('status 201'))
    once.post('k', user='template')
    once.stop()
    once.plant(2000, scope="'s' || substr('' || (100000 + n), 2)")
    scopes = [json.loads(line)['scope'] for line in
              once.ctl('stats', '--by-scope', '--json').splitlines()]
    eq(scopes, ['s%05d' % n for n in range(1, 2001)] + ['template'])


def test_export_has_every_key(t):
    once = filled(t)
    rows = [json.loads(line) for line in once.ctl('export').splitlines()]
    eq([list(r) for r in rows], [FIELDS] * 4)
    eq({r['key'] for r in rows}, {'done', 'free', 'lost', 'runs'})
    eq(once.ctl('export', '--json'), once.ctl('export'))


def test_export_since(t):
    once = filled(t)

    def keys(since):
        return sorted(json.loads(line)['key'] for line in
                      once.ctl('export', '--since', since).splitlines())
    changed = once.row('lost')['updated_at']
    assert 'lost' in keys(changed), changed
    when = datetime.datetime.fromisoformat(changed.replace('Z', '+00:00'))
    after = when + datetime.timedelta(milliseconds=1)
    assert 'lost' not in keys(after.isoformat()), after
    east = when.astimezone(datetime.timezone(datetime.timedelta(hours=5.5)))
    eq(keys(east.isoformat()), keys(changed))
    eq(len(keys('1h')), 4)
    base.wait_until(lambda: keys('20ms') == [], 'nothing has just changed')


def test_times_that_are_none(t):
    once = t.once(handler=t.sh('status 201'))
    for time in ('', 'x', '2026-13-01T00:00:00Z', '2026-02-29T00:00:00Z',
                 '2026-01-01', '2026-01-01T00:00:00', '2026-01-01T00:00:00ZZ',
                 '2026-01-01T24:00:00Z', '2026-01-01T00:00:00.Z',
                 '2026-01-01T00:00:00+0100', '1969-12-31T23:59:59Z', '-1s'):
        run = tool(t, '-d', once.database, 'export', '--since=' + time)
        eq((run.returncode, run.stdout), (2, b''), (time, run))
    for time in ('2024-02-29t23:59:60.123456z', '2026-01-01T00:00:00-11:59'):
        once.ctl('export', '--since', time)


def doctor(t, once):
    """(exit status, {name: (ok, text)}) of its checks."""
    run = tool(t, '-d', once.database, 'doctor', '--json')
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    eq([list(line) for line in lines], [['ok', 'name', 'text']] * len(lines))
    eq(lines[-1]['name'], 'summary')
    return run.returncode, {f['name']: (f['ok'], f['text']) for f in lines}


def test_doctor_of_a_healthy_store(t):
    once = t.once(handler=t.sh('status 201'))
    once.post('k')
    status, found = doctor(t, once)
    eq((status, [n for n, f in found.items() if not f[0]]), (0, []), found)
    assert 'all is well' in once.ctl('doctor').splitlines()[-1]


def test_doctor_names_what_is_missing_of_the_schema(t):
    once = t.once(handler=t.sh('status 201'))
    once.post('k')
    if base.POSTGRES:
        names = [n for n, in once.sql(
            "SELECT indexname FROM pg_indexes WHERE indexname LIKE 'once%' "
            "AND indexname NOT LIKE '%key' AND indexname NOT LIKE '%seq'")]
        assert len(names) >= 6, names
        for name in names:
            (whole,), = once.sql('SELECT indexdef FROM pg_indexes '
                                 'WHERE indexname = ?', name)
            once.sql('DROP INDEX ' + name)
            status, found = doctor(t, once)
            once.sql(whole)
            ok, text = found['schema']
            assert (status, ok) == (1, False) and name in text, found
        return
    once.stop()
    with open(once.database, 'rb') as f:
        whole = f.read()
    db = sqlite3.connect(once.database)
    names = [n for n, in db.execute(
        "SELECT name FROM sqlite_schema WHERE sql IS NOT NULL AND "
        "type = 'index'")]
    db.close()
    assert len(names) >= 6, names
    for name in names:
        t.write('once.db', whole)
        db = sqlite3.connect(once.database)
        db.execute('DROP INDEX ' + name)
        db.commit()
        db.close()
        status, found = doctor(t, once)
        ok, text = found['schema']
        assert (status, ok) == (1, False) and name in text, found


def test_doctor_tells_of_requests_and_bodies_without_a_key(t):
    once = t.once(handler=t.sh('status 201'))
    once.post('k')
    (id_of_k,), = once.sql('SELECT id FROM once_key')
    for id in (77, id_of_k):
        once.sql('INSERT INTO once_request VALUES (?, ?, ?, 0, 0)', id, b'',
                 b'')
    once.sql('INSERT INTO once_piece VALUES (77, 1, ?)' if base.POSTGRES else
             'INSERT INTO once_piece VALUES (77 * 65536 + 1, ?)', b'\0')
    status, found = doctor(t, once)
    eq((status, found['requests'][0], found['bodies'][0]),
       (1, False, False), found)
    assert found['requests'][1].startswith('2 '), found
    assert all(w in found['summary'][1] for w in ('requests', 'bodies')), found


def test_options_are_written_in_full(t):
    once = t.once(handler=t.sh('kill -9 $$'))
    once.post('k')
    for args, name, whole in (
            (('resolve', 'k', '--not'), '--not', '--not-executed'),
            (('resolve', '--complete', 'k'), '--complete', '--completed'),
            (('ls', '--sta', 'unknown'), '--sta', '--state'),
            (('ls', '--sta=unknown'), '--sta', '--state')):
        run = t.run([base.ONCECTL, '-d', once.database] + list(args),
                    input=b'Status: 200\n\n')
        eq((run.returncode, run.stdout, run.stderr.decode()),
           (2, b'', 'oncectl: %s: write it in full: %s\n' % (name, whole)))
    eq(once.state('k'), 'unknown')
    eq(once.ctl('ls', '--state=unknown'), once.ctl('ls', '--state', 'unknown'))
    # A value may look like an option.
    eq(once.ctl('ls', '--scope', '--sta'), '')


def test_doctor_tells_of_leases_of_the_dead(t):
    gate = t.gate()
    once = t.once(handler=t.sh('gate gate; status 201'))
    conn = once.begin('k')
    gate.wait()
    eq(doctor(t, once)[1]['leases'][0], True)
    once.kill()
    conn.close()
    status, found = doctor(t, once)
    assert status == 1 and 'oncectl sweep' in found['leases'][1], found
    once.ctl('sweep')
    eq(doctor(t, once)[1]['leases'][0], True)


def test_doctor_tells_of_a_file_that_is_no_database_any_more(t):
    once = t.once(handler=t.sh('status 201; head -c 300000 /dev/zero'))
    for i in range(5):
        once.post('k%d' % i)
    once.stop()
    with open(once.database, 'r+b') as f:
        f.seek(0, 2)
        size = f.tell()
        f.seek(size // 2 // 4096 * 4096)
        f.write(b'\xff' * 4096)
    status, found = doctor(t, once)
    eq((status, found['integrity'][0]), (1, False), found)


def test_doctor_after_oncewrap_has_ended(t):
    once = t.once(handler=t.sh('status 201'))
    once.post('k')
    once.stop()
    once.ctl('doctor')


def test_doctor_tells_of_unknown_keys(t):
    once = t.once(handler=t.sh('kill -9 $$'))
    once.post('k')
    status, found = doctor(t, once)
    ok, text = found['unknown']
    assert (status, ok) == (1, False) and 'oncectl resolve' in text, found
    assert 'unknown' in found['summary'][1], found


def test_database_from_the_environment_and_a_configuration(t):
    once = filled(t)
    env = {'PATH': '/usr/bin:/bin', 'ONCE_DATABASE': once.database,
           'ONCEWRAP_MODULES': base.MODULES}
    run = tool(t, 'ls', '--json', env=env)
    eq((run.returncode, len(run.stdout.splitlines())), (0, 4), run)
    run = tool(t, '-f', once.file, 'ls', '--json')
    eq((run.returncode, len(run.stdout.splitlines())), (0, 4), run)


def test_missing_database_is_not_made(t):
    path = t.path('missing.db')
    run = tool(t, '-d', path, 'ls')
    assert run.returncode == 1 and path.encode() in run.stderr, run
    assert not t.exists('missing.db')


def test_no_database(t):
    path = t.write('text.db', 'no database, none at all\n' * 100)
    run = tool(t, '-d', path, 'ls')
    assert run.returncode == 1 and path.encode() in run.stderr, run


def test_usage_errors(t):
    once = t.once(handler=t.sh('status 201'))
    for args in ([], ['nonsense'], ['ls', '--nonsense'], ['show'],
                 ['ls', '--state', 'nonsense'], ['ls', '--older', 'x'],
                 ['ls', 'extra'], ['show', 'a', 'b'], ['ls', '--scope'],
                 ['resolve', 'k'], ['resolve', '--completed'],
                 ['resolve', 'k', '--completed', '--not-executed'],
                 ['resolve', 'k', '--downstream', 'x', '--not-executed'],
                 ['ls', '--completed'], ['forget'], ['forget', 'a', 'b'],
                 ['sweep', 'k'], ['reap', '--older', '1d'],
                 ['export', 'k'], ['stats', '--since', '1d'],
                 ['doctor', '--by-scope']):
        run = tool(t, '-d', once.database, *args)
        eq((run.returncode, run.stdout), (2, b''), (args, run))
        assert run.stderr, args


def test_what_names_no_key_is_told_each_way_to_name_some(t):
    once = t.once(handler=t.sh('status 201'))
    for args in (['forget'], ['resolve', '--not-executed'],
                 ['resolve', '--not-executed', '--yes']):
        run = tool(t, '-d', once.database, *args)
        eq((run.returncode, run.stderr.decode()), (
            2, 'oncectl: %s: name a KEY, --downstream or --instance, or which '
            'keys by --state, --scope, --path, --older and --peer\n' %
            args[0]))
    for more in ([], ['--state', 'unknown']):
        run = tool(t, '-d', once.database, 'resolve', '--completed', *more)
        eq((run.returncode, run.stderr.decode()), (
            2, 'oncectl: resolve: --completed is said of one key: name it by '
            'KEY, --downstream or --instance\n'))


def test_help(t):
    for flag in ('-h', '--help', 'help'):
        run = tool(t, flag)
        eq((run.returncode, run.stderr), (0, b''), run)
        assert b'oncectl resolve KEY' in run.stdout, run.stdout
    run = tool(t, 'help', 'resolve')
    eq((run.returncode, run.stdout), (0, tool(t, 'resolve', '-h').stdout), run)
    eq(tool(t, 'help', 'nonsense').returncode, 2)


def test_a_usage_error_is_not_hidden_by_a_list(t):
    run = tool(t, 'nonsense')
    lines = run.stderr.decode().splitlines()
    eq(lines[0], 'oncectl: nonsense: no such command')
    assert len(lines) <= 4 and '--help' in lines[-1], lines


def test_an_unknown_state_is_named_with_those_there_are(t):
    once = t.once(handler=t.sh('status 201'))
    for args, state in ((['ls'], 'failed_retryable'),
                        (['outbox', 'ls'], 'delivered')):
        run = tool(t, '-d', once.database, *args, '--state', 'unkown')
        assert '"unkown"' in run.stderr.decode(), run
        assert state in run.stderr.decode(), run


def test_it_reads_while_oncewrap_is_busy(t):
    once = t.once(handler=t.sh('status 201'))
    for i in range(20):
        once.post('k%d' % i)
        eq(len(once.ls()), i + 1)


def test_many_keys(t):
    once = t.once(handler=t.sh('status 201'), server={'workers': '4'})
    parallel([lambda n=n: [once.post('k%d-%d' % (n, i)) for i in range(75)]
              for n in range(4)])
    eq(len({r['key'] for r in once.ls()}), 300)
