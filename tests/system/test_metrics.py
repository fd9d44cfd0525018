"""What <admin_path> says: metrics that move, and health."""
import math
import os
import re
import sqlite3

import base
from answer import eq, first, problem, replay
from base import wait_until
from clocks import library
from once import HASTY, Background, Lock, lock_outcome
from test_store import fill, mount

NAME = r'[a-zA-Z_:][a-zA-Z0-9_:]*'
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(r'(%s)(?:\{(%s(?:,%s)*)\})? (\S+)' % (NAME, LABEL, LABEL))
RESULTS = ('created', 'replay', 'in_progress', 'key_misuse', 'failed_retry',
           'unknown')
CODES = ('request-invalid', 'key-missing', 'key-invalid',
         'key-reused', 'key-in-progress', 'key-of-another', 'outcome-unknown',
         'key-expired', 'response-not-kept', 'scope-required',
         'body-too-large', 'body-incomplete', 'too-many-keys',
         'request-too-old', 'store-unavailable', 'overloaded',
         'handler-not-started', 'handler-failed', 'handler-timeout',
         'outcome-not-recorded', 'request-expired', 'not-found',
         'method-not-allowed')
STATES = ('pending', 'in_progress', 'completed', 'failed_retryable',
          'unknown', 'dead_letter', 'expired')


def number(text):
    assert re.fullmatch(r'-?\d+(\.\d+)?|[+-]Inf', text), 'value %r' % text
    return float(text)


class Family:
    def __init__(self, name, help):
        self.name, self.help, self.kind, self.samples = name, help, None, []


def check_histograms(family):
    """A family has one for each route, and one without that label."""
    routes = {}
    for name, labels, value in family.samples:
        match = re.fullmatch(r'(?:(route="(?:[^"\\]|\\.)*"),?)?(le="[^"]*")?',
                             labels)
        assert match, '%s{%s}' % (name, labels)
        routes.setdefault(match[1], []).append((name, match[2] or '', value))
    assert None in routes, family.name
    for samples in routes.values():
        check_histogram(family, samples)


def check_histogram(family, samples):
    buckets, others = [], {}
    for name, labels, value in samples:
        if name == family.name + '_bucket':
            buckets.append((number(labels[len('le="'):-1]), value))
        else:
            eq(labels, '', name)
            others[name[len(family.name):]] = value
    bounds = [b for b, _ in buckets]
    eq(bounds, sorted(set(bounds)), family.name)
    eq(bounds[-1], math.inf, family.name)
    counts = [n for _, n in buckets]
    eq(counts, sorted(counts), family.name)
    eq(sorted(others), ['_count', '_sum'], family.name)
    eq(others['_count'], counts[-1], family.name)


def parse(text):
    """{sample: value} of a text in exposition format 0.0.4, read as strictly
    as promtool does, its opinions on names included."""
    if isinstance(text, bytes):
        text = text.decode('ascii')
    assert text.endswith('\n') and '\r' not in text, repr(text[-20:])
    families, current, values = {}, None, {}
    for line in text[:-1].split('\n'):
        match = re.fullmatch(r'# HELP (%s) (\S.*)' % NAME, line)
        if match:
            name, help = match.groups()
            assert name not in families, '%s comes twice' % name
            assert name.startswith('oncewrap_'), name
            assert help.strip() == help and '\\' not in help, line
            current = families[name] = Family(name, help)
            continue
        match = re.fullmatch(r'# TYPE (%s) (counter|gauge|histogram)' % NAME,
                             line)
        if match:
            assert current and match.group(1) == current.name, line
            assert current.kind is None and not current.samples, line
            current.kind = match.group(2)
            continue
        match = SAMPLE.fullmatch(line)
        assert match, 'neither HELP, TYPE nor sample: %r' % line
        name, labels, value = match.groups()
        assert current and current.kind, 'sample before its TYPE: %r' % line
        endings = ('_bucket', '_sum', '_count') \
            if current.kind == 'histogram' else ('',)
        assert name in [current.name + e for e in endings], line
        key = '%s{%s}' % (name, labels) if labels else name
        assert key not in values, '%s comes twice' % key
        values[key] = number(value)
        assert values[key] >= 0, line
        current.samples.append((name, labels or '', values[key]))
    for family in families.values():
        assert family.kind, '%s has no TYPE' % family.name
        eq(family.name.endswith('_total'), family.kind == 'counter',
           family.name)
        assert not re.search('_(bucket|sum|count)$', family.name), family.name
        if family.kind == 'histogram':
            check_histograms(family)
    return values


ADMIN = '/once'


def start(t, body='ledger; status ${QUERY_STRING:-201}; echo done',
          server=None, **kw):
    return t.once(handler=t.sh(body),
                  server=dict({'admin_path': ADMIN}, **(server or {})), **kw)


def metrics(once):
    answer = once.get(ADMIN + '/metrics')
    eq(answer.status, 200, answer)
    eq(answer.get('Content-Type'), 'text/plain; version=0.0.4; charset=utf-8')
    eq(answer.get('Cache-Control'), 'no-store')
    return {k[len('oncewrap_'):]: v for k, v in parse(answer.body).items()}


def metrics_text(once):
    """The same where labels are not ASCII."""
    text = once.get(ADMIN + '/metrics').body.decode()
    return {k[len('oncewrap_'):]: v for k, v in parse(text).items()}


def reserved(values):
    return {r: values['reserve_total{result="%s"}' % r] for r in RESULTS
            if values['reserve_total{result="%s"}' % r]}


def busy(once, n):
    """Programs that run for requests."""
    eq(metrics(once)['workers_busy'], n)


def keys(values):
    return {s: values['keys{state="%s"}' % s] for s in STATES
            if values.get('keys{state="%s"}' % s)}


# --- the text ---

def test_all_families_are_there_from_the_start(t):
    once = start(t)
    wait_until(lambda: 'keys{state="completed"}' in metrics(once),
               'the keys are counted')
    values = metrics(once)
    want = ['reserve_total{result="%s"}' % r for r in RESULTS]
    want += ['refused_total{code="%s"}' % c for c in CODES]
    want += ['keys{state="%s"}' % s for s in STATES]
    want += ['reconcile_total{result="%s"}' % r
             for r in ('scheduled', 'resolved', 'failed')]
    want += ['outbox_total{result="%s"}' % r
             for r in ('delivered', 'retried', 'dead')]
    want += ['outbox{state="%s"}' % s
             for s in ('pending', 'delivered', 'dead_letter')]
    want += ['store_errors_total', 'swept_total', 'expired_total',
             'oldest_unknown_seconds', 'requests_waiting', 'programs_waiting',
             'json_waiting']
    eq({name: values[name] for name in want}, {name: 0.0 for name in want})
    eq(values['requests'], 1)
    busy(once, 0)
    for name in ('handler_seconds', 'commit_batch'):
        eq(values[name + '_count'], values[name + '_bucket{le="+Inf"}'])


def test_every_result_of_a_reservation_is_counted(t):
    gate = t.gate()
    once = start(t, 'ledger; case $QUERY_STRING in '
                 'run) gate gate; status 201;; '
                 'kill) kill -9 $$;; '
                 '*) status ${QUERY_STRING:-201};; esac')
    before = metrics(once)
    eq(reserved(before), {})
    first(once.post('a'), 201)
    eq(reserved(metrics(once)), {'created': 1})
    eq(once.post('a').replayed, 'true')
    eq(once.post('a').replayed, 'true')
    eq(reserved(metrics(once)), {'created': 1, 'replay': 2})
    problem(once.post('a', 'other'), 'key-reused')
    first(once.post('b', query='503'), 503)
    first(once.post('b', query='503'), 503)
    eq(reserved(metrics(once)), {'created': 2, 'replay': 2, 'key_misuse': 1,
                                 'failed_retry': 1})
    eq(once.post('c', query='kill').status, 502)
    problem(once.post('c', query='kill'), 'outcome-unknown')
    conn = once.begin('d', query='run')
    gate.wait()
    problem(once.post('d', query='run'), 'key-in-progress')
    now = metrics(once)
    eq(reserved(now), {'created': 4, 'replay': 2, 'key_misuse': 1,
                       'failed_retry': 1, 'unknown': 1, 'in_progress': 1})
    eq(keys(now).get('in_progress'), 1)
    eq(keys(now).get('unknown'), 1)
    busy(once, 1)
    # Four handlers of guarded requests have ended, and their changes are
    # five reservations and four outcomes.
    eq(now['handler_seconds_count'], 4)
    eq(now['commit_batch_sum'] - before['commit_batch_sum'], 9)
    assert 0 < now['commit_batch_count'] <= now['commit_batch_sum']
    gate.open()
    first(conn.answer(), 201)
    now = metrics(once)
    eq((now['handler_seconds_count'], keys(now).get('in_progress')),
       (5, None))


def under_way(once):
    """Requests but the one that asks; programs; and what requests wait for."""
    now = metrics(once)
    return (now['requests'] - 1, now['workers_busy'], now['programs_waiting'],
            now['json_waiting'], now['requests_waiting'])


def wait_under_way(once, *want):
    wait_until(lambda: under_way(once) == want, 'requests are %s' % (want,))


def test_requests_that_wait_are_counted(t):
    """For a program to end; for the first one of their key."""
    gate = t.gate()
    once = start(t, 'gate gate; status 201', server={'workers': '1'},
                 defaults={'concurrent': 'wait', 'wait_time': '10m'})
    conns = [once.begin('a')]
    gate.wait()
    wait_under_way(once, 1, 1, 0, 0, 0)
    conns.append(once.begin('b'))
    wait_under_way(once, 2, 1, 1, 0, 0)
    conns.append(once.begin(method='GET'))
    wait_under_way(once, 3, 1, 2, 0, 0)
    conns.append(once.begin('a'))
    wait_under_way(once, 4, 1, 2, 0, 1)
    for left in ((2, 1, 1, 0, 0), (1, 1, 0, 0, 0)):
        gate.open()
        gate.wait()
        wait_under_way(once, *left)
    gate.open()
    eq([conn.answer().status for conn in conns], [201] * 4)
    wait_under_way(once, 0, 0, 0, 0, 0)


def test_requests_that_wait_for_memory_are_counted(t):
    gate = t.gate('hold')
    os.environ.update(LD_PRELOAD=library(t, 'hold'), HOLD_GATE=t.path('hold'))
    once = start(t, 'status 201', server={'busy_timeout': '10m'})
    large = {'type': 'application/json',
             'body': '{"a":"%s"}' % ('x' * 15000000)}
    conns = [once.begin('a', **large)]
    gate.wait()
    conns.append(once.begin('b', **large))
    wait_under_way(once, 2, 0, 0, 1, 0)
    gate.open()
    gate.wait()
    wait_under_way(once, 1, 0, 0, 0, 0)
    gate.open()
    for conn in conns:
        first(conn.answer(), 201)
    wait_under_way(once, 0, 0, 0, 0, 0)


def refused(values):
    return {name[len('refused_total{code="'):-len('"}')]: value
            for name, value in values.items()
            if name.startswith('refused_total') and value}


def test_problems_are_counted_by_their_code(t):
    once = start(t, defaults={'key': 'required', 'max_request_body': '1K'})
    problem(once.post(None), 'key-missing')
    problem(once.post(None), 'key-missing')
    problem(once.post('k' * 300), 'key-invalid')
    problem(once.post('k', b'x' * 1025), 'body-too-large')
    first(once.post('k'), 201)
    problem(once.post('k', b'other'), 'key-reused')
    eq(refused(metrics(once)), {'key-missing': 2, 'key-invalid': 1,
                                'body-too-large': 1, 'key-reused': 1})


def test_requests_that_are_not_guarded_are_not_counted(t):
    once = start(t)
    first(once.get(), 201)
    first(once.post(), 201)
    values = metrics(once)
    eq((reserved(values), values['handler_seconds_count']), ({}, 0))


def test_seconds_of_a_handler(t):
    once = start(t, 'command sleep 0.3; status 201')
    first(once.post('a'), 201)
    values = metrics(once)
    eq(values['handler_seconds_bucket{le="0.25"}'], 0)
    eq(values['handler_seconds_bucket{le="60"}'], 1)
    assert 0.3 <= values['handler_seconds_sum'] < 20, values


def test_keys_that_end_by_age_are_counted_at_the_start(t):
    once = start(t)
    for i in range(5):
        first(once.post('a%d' % i), 201)
    first(once.post('b', query='503'), 503)
    once.stop()
    once.start()
    wait_until(lambda: 'keys{state="completed"}' in metrics(once),
               'the keys are counted')
    eq(keys(metrics(once)), {'completed': 5, 'failed_retryable': 1})


def test_swept_and_expired_keys_are_counted(t):
    once = start(t, 'ledger; case $QUERY_STRING in run) exec sleep 100;; '
                 '*) status 201;; esac',
                 server={'sweep_interval': '20ms', 'reap_interval': '20ms'},
                 defaults={'retention': '30ms'})
    first(once.post('a'), 201)
    wait_until(lambda: metrics(once)['expired_total'] == 1, 'it is reaped')
    once.begin('b', query='run')
    wait_until(lambda: once.state('b') == 'in_progress', 'it runs')
    other = t.once(handler=t.sh('status 200'), database=once.database,
                   server={'sweep_interval': '20ms', 'admin_path': ADMIN},
                   name='other')
    once.kill()
    # The keys may have been counted just before the sweep.
    values = wait_until(lambda: (
        lambda v: v['swept_total'] and 'unknown' in keys(v) and v)(
        metrics(other)), 'it is swept')
    eq((values['swept_total'], keys(values)['unknown']), (1, 1))


def test_age_of_the_oldest_unknown_key(t):
    once = start(t, 'kill -9 $$')
    eq(metrics(once)['oldest_unknown_seconds'], 0)
    eq(once.post('a').status, 502)
    once.sql('UPDATE once_key SET updated_at = updated_at - 3600000')
    eq(once.post('b').status, 502)
    age = metrics(once)['oldest_unknown_seconds']
    assert 3600 <= age < 3700, age


def test_oncectl_prints_what_the_store_knows(t):
    once = start(t)
    for i in range(3):
        first(once.post('a%d' % i), 201)
    first(once.post('b', query='503'), 503)
    first(once.post('c', query='504'), 504)
    values = parse(once.ctl('metrics'))
    values = {k[len('oncewrap_'):]: v for k, v in values.items()}
    eq(set(re.sub('{.*', '', k) for k in values),
       {'keys', 'outbox', 'kept_bytes', 'store_bytes',
        'oldest_unknown_seconds'})
    eq([values['keys{state="%s"}' % s] for s in STATES],
       [0, 0, 3, 1, 1, 0, 0])


def test_oncectl_counts_more_keys_than_one_read_does(t):
    once = start(t)
    first(once.post('a'), 201)
    first(once.post('b', query='503'), 503)
    once.stop()
    # Many that end in the same millisecond: no row is seen twice.
    once.plant(15000, key="'k' || n || k.state")
    values = parse(once.ctl('metrics'))
    eq([values['oncewrap_keys{state="%s"}' % s] for s in STATES],
       [0, 0, 15001, 15001, 0, 0, 0])


def test_oncectl_refuses_what_is_no_store(t):
    path = t.write('text.db', 'no database\n' * 100)
    run = t.run([base.ONCECTL, '-d', path, 'metrics'])
    eq((run.returncode, run.stdout), (1, b''))
    assert b'text.db' in run.stderr, run.stderr


# --- which paths are oncewrap's own ---

def test_nothing_below_admin_path_reaches_a_handler(t):
    once = start(t, routes={ADMIN: {'key': 'required'},
                            ADMIN + '/metrics': {'key': 'required'}})
    for path, status in ((ADMIN, 301), (ADMIN + '/', 200),
                         (ADMIN + '/metrics', 200), (ADMIN + '/health', 200),
                         (ADMIN + '/metrics/', 404),
                         (ADMIN + '/metrics/x', 404), (ADMIN + '/Metrics', 404),
                         ('/x/..' + ADMIN + '/none', 404),
                         ('/' + ADMIN + '//health', 200)):
        answer = once.get(path)
        eq(answer.status, status, path)
        plain = path.endswith(('/metrics', '/health'))
        assert answer.get('Content-Type').startswith(
            'text/plain;' if plain else 'text/html;'), path
    eq(once.get(ADMIN, info='/health').status, 200)
    eq(t.ledger(), [])
    first(once.get(ADMIN + 'wrap'), 201)
    eq(len(t.ledger()), 1)


def test_only_get_and_head(t):
    once = start(t)
    for method in ('POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'get'):
        for name in ('/metrics', '/health'):
            answer = once.request(method, ADMIN + name, key='k')
            eq((answer.status, answer.get('Allow')), (405, 'GET, HEAD'))
    eq(once.request('POST', ADMIN + '/none').status, 404)
    for name in ('/metrics', '/health'):
        answer = once.request('HEAD', ADMIN + name)
        eq((answer.status, answer.body), (200, b''))
    eq((t.ledger(), once.ls()), ([], []))


def test_a_body_for_admin_path_is_not_kept(t):
    once = start(t)
    eq(once.request('POST', ADMIN + '/metrics', b'x' * 3_000_000).status, 405)
    eq(once.request('GET', ADMIN + '/health', b'x' * 3_000_000).status, 200)
    first(once.post('a'), 201)


def test_without_admin_path_the_handler_is_asked(t):
    once = t.once(handler=t.sh('ledger; status 201'))
    first(once.get('/metrics'), 201)
    first(once.get('/health'), 201)
    eq(len(t.ledger()), 2)


def test_admin_path_comes_and_goes_with_a_reload(t):
    once = t.once(handler=t.sh('ledger; status 201'))
    first(once.get('/once/health'), 201)
    once.server['admin_path'] = '/once'
    once.write_conf()
    once.hup()
    once.wait_log('event=reloaded')
    eq(once.get('/once/health').body, b'ok\n')
    eq(len(t.ledger()), 1)


# --- routes ---

def of_route(values, route):
    """What was counted of a route; None: without that label."""
    label = 'route="%s"' % route
    return {re.sub(r'\{,?', '{', k.replace(label, '')).replace('{}', ''): v
            for k, v in values.items()
            if v and re.match('reserve|refused|handler_seconds_count', k) and
            (label in k if route else 'route=' not in k)}


def test_each_route_is_counted_by_itself(t):
    once = start(t, routes={'/pay': {'key': 'required'}, '/pay/late': {},
                            '/a"\\\xe9': {}})
    values = metrics_text(once)
    for sample in ('reserve_total{route="/pay",result="unknown"}',
                   'refused_total{route="/pay/late",code="key-missing"}',
                   'handler_seconds_count{route="/a\\"\\\\\xe9"}'):
        eq(values[sample], 0)
    answer = once.post('k')
    replay(once.post('k'), answer)
    problem(once.post(), 'key-missing')
    first(once.post('l', path='/pay/late'), 201)
    problem(once.post('', path='/a"\\\xe9'), 'key-invalid')
    first(once.post('m', path='/payments'), 201)
    first(once.get('/payments'), 201)
    eq(once.get(ADMIN + '/none').status, 404)
    want = {'/pay': {'reserve_total{result="created"}': 1,
                     'reserve_total{result="replay"}': 1,
                     'refused_total{code="key-missing"}': 1,
                     'handler_seconds_count': 1},
            '/pay/late': {'reserve_total{result="created"}': 1,
                          'handler_seconds_count': 1},
            '/a\\"\\\\\xe9': {'refused_total{code="key-invalid"}': 1},
            None: {'reserve_total{result="created"}': 1,
                   'refused_total{code="not-found"}': 1,
                   'handler_seconds_count': 1}}
    values = metrics_text(once)
    for route, counts in want.items():
        eq(of_route(values, route), counts)


def test_a_reload_sets_no_counter_of_a_route_back(t):
    once = start(t, routes={'/pay': {}, '/old': {}})
    first(once.post('a'), 201)
    first(once.post('b', path='/old'), 201)
    name = 'reserve_total{route="%s",result="created"}'
    del once.routes['/old']
    once.routes['/new'] = {}
    once.write_conf()
    once.hup()
    once.wait_log('event=reloaded')
    first(once.post('c'), 201)
    first(once.post('d', path='/new'), 201)
    first(once.post('e', path='/old'), 201)
    values = metrics(once)
    eq([values[name % route] for route in ('/pay', '/old', '/new')], [2, 1, 1])
    eq(values['reserve_total{result="created"}'], 1)


def test_more_routes_than_the_text_has_room_for(t):
    once = start(t, routes={'/%04d%s' % (n, '/long' * 40): {}
                            for n in range(1000)})
    for n in range(1000):
        problem(once.post('', path='/%04d%s' % (n, '/long' * 40)),
                'key-invalid')
    values = metrics(once)
    name = 'refused_total{%scode="key-invalid"}'
    with_label = [v for k, v in values.items()
                  if k.endswith('code="key-invalid"}') and 'route=' in k]
    assert 90 <= len(with_label) <= 300 and set(with_label) == {1}, with_label
    eq(values[name % ''], 1000 - len(with_label))


# --- health ---

def health(once, status, *texts):
    answer = once.get(ADMIN + '/health')
    eq(answer.status, status, answer)
    eq(answer.get('Content-Type'), 'text/plain; charset=utf-8')
    for text in texts:
        assert text in answer.body.decode(), str(answer)
    return answer


def test_healthy(t):
    once = start(t)
    eq(health(once, 200).body, b'ok\n')
    first(once.post('a'), 201)
    eq(health(once, 200).body, b'ok\n')
    eq(once.log_lines('event=unhealthy'), [])


def test_an_unknown_key_is_not_ill_health(t):
    once = start(t, 'kill -9 $$')
    eq(once.post('a').status, 502)
    eq(once.state('a'), 'unknown')
    health(once, 200)


def written(once):
    """What grows with each commit, but for a process's signs of life."""
    if base.POSTGRES:
        return once.sql('SELECT sum(seq) - (SELECT sum(beat) FROM once_owner) '
                        'FROM once_session')
    return os.path.getsize(once.database + '-wal')


def test_health_does_not_write_to_a_healthy_store(t):
    once = start(t)
    first(once.post('a'), 201)
    before = written(once), metrics(once)['commit_batch_count']
    for _ in range(50):
        health(once, 200)
    eq((written(once), metrics(once)['commit_batch_count']), before)


def test_health_while_a_stranger_holds_the_lock(t):
    once = start(t, server=HASTY)
    done = once.post('done')
    lock = Lock(t, once.database)
    health(once, 200)           # no client has been refused
    problem(once.post('k'), 'store-unavailable')
    health(once, 503, 'locked by another process' if base.POSTGRES else
           'another process holds the write lock')
    once.wait_log('level=warn event=unhealthy why=')
    assert metrics(once)['store_errors_total'] > 0
    replay(once.post('done'), done)
    lock.release()
    # The committer tries the lock every few ms.
    wait_until(lambda: once.get(ADMIN + '/health').status == 200,
               'it has the lock again')
    first(once.post('k'), 201)


def test_health_while_an_outcome_is_not_recorded(t):
    gate = t.gate()
    once = start(t, 'ledger; gate gate; status 201',
                 server=HASTY)
    lock = lock_outcome(t, once, gate, 'k')
    health(once, 503)
    lock.release()
    wait_until(lambda: once.state('k') == 'completed', 'it is recorded')
    wait_until(lambda: once.get(ADMIN + '/health').status == 200, 'healthy')
    eq(once.post('k').replayed, 'true')


def test_health_when_the_database_was_replaced(t):
    once = start(t)
    first(once.post('a'), 201)
    os.rename(once.database, t.path('aside'))
    health(once, 503, 'removed or replaced')
    problem(once.post('x'), 'store-unavailable', acted=True)
    t.write(os.path.basename(once.database), b'')
    health(once, 503, 'removed or replaced')
    os.rename(t.path('aside'), once.database)
    health(once, 200)
    first(once.post('b'), 201)


def test_health_without_the_folder_of_large_bodies(t):
    spool = t.path('spool')
    os.mkdir(spool)
    once = start(t, server={'spool_dir': spool})
    health(once, 200)
    os.rmdir(spool)
    health(once, 503, spool + ': no body above 64 KiB can be stored there: No '
           'such file or directory')
    answer = once.post('k', b'x' * 100000)
    problem(answer, 'store-unavailable', acted=True)
    eq(answer.json()['detail'],
       'The server could not store the request body; nothing ran.')
    (line,) = once.log_lines('event=body-unstorable')
    assert ' dir=%s why="No such file or directory"' % spool in line, line
    first(once.post('k', b'x' * 100), 201)
    os.mkdir(spool)
    health(once, 200)
    first(once.post('l', b'x' * 100000), 201)


def test_health_with_a_full_disk(t):
    os.mkdir(t.path('disk'))
    mount(t, t.path('disk'), 'size=2m')
    once = start(t, database=t.path('disk/once.db'),
                 server={'busy_timeout': '2s'})
    first(once.post('a'), 201)
    fill(t)

    def refused(n=[0]):
        n[0] += 1
        return once.post('k%d' % n[0]).status != 201
    wait_until(refused, 'the disk is full')
    health(once, 503, 'no space')
    assert once.database in once.get(ADMIN + '/health').body.decode()
    assert metrics(once)['store_errors_total'] > 0
    os.unlink(t.path('disk/filler'))
    # Without any other request in between.
    wait_until(lambda: once.get(ADMIN + '/health').status == 200, 'healthy')


def test_health_while_readers_keep_the_log_long(t):
    once = start(t, 'ledger; status 201; head -c 200000 /dev/zero',
                 server=dict(HASTY, max_wal='1M'))
    first(once.post('a'), 201)
    db = sqlite3.connect(once.database, isolation_level=None)
    db.execute('BEGIN')
    db.execute('SELECT count(*) FROM sqlite_master').fetchall()

    def told(n=[0]):
        # On a slow disk an outcome may be late meanwhile, which is another 503.
        n[0] += 1
        once.post('k%d' % n[0])
        return b'max_wal' in once.get(ADMIN + '/health').body
    wait_until(told, 'the limit is reached')
    health(once, 503, 'max_wal')
    db.execute('COMMIT')
    db.close()
    wait_until(lambda: once.get(ADMIN + '/health').status == 200, 'healthy')
    first(once.post('again'), 201)


# --- behind a web server ---

def test_through_a_real_server(t):
    once = start(t)
    server = t.server('lighttpd', once, inside="""
fastcgi.server = ( "/" => ((
	"socket" => "%s",
	"check-local" => "disable"
)))""" % once.socket)
    before = parse(server.curl(ADMIN + '/metrics', 'GET').body)
    first(server.curl('/pay', key='a', body='x'), 201)
    after = parse(server.curl(ADMIN + '/metrics', 'GET').body)
    name = 'oncewrap_reserve_total{result="created"}'
    eq(after[name] - before[name], 1)
    eq(server.curl(ADMIN + '/health', 'GET').body, b'ok\n')
    eq(server.curl(ADMIN + '/health', 'HEAD').status, 200)
    eq(server.curl(ADMIN + '/health', 'POST', body='x' * 100000).status, 405)
    eq(len(t.ledger()), 1)
