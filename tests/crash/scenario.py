"""What is going on when the process dies, and what comes after.

A scenario lives three times: as it comes to be, without a fault (perhaps not
at all); with the fault, until it is dead; and without again, where life.Life
checks what must hold.
"""
import os
import pwd
import signal

import base
import fcgi
import proc
from answer import eq, problem
from base import wait_until
from once import HASTY, Background, parallel

from lib.postgres import Proxy

from database import lock as lock_of, plant, sql
from outbox import effects, freed, said     # noqa: F401
from life import Life

KEYS = ['k%d' % i for i in range(8)]
LARGE = 'size=5000000'
# Ways through a gate after the death, more than retries need: a handler that
# is about to die may take one.
SOME = 20
ON_THE_WAY = ('COMMIT_SENT', 'COMMIT_FOUND', 'OWNER_MOVED')
PLACES = base.places()


def durable_at(place):
    """0: nothing of its key is, 1: the reservation, 2: the outcome."""
    at = PLACES.index(place)
    return (at >= PLACES.index('TAKEN')) + (at >= PLACES.index('FINISHED'))


def expected(fate, name, n):
    """[state], or none where it is open, of a lone request's key after a death
    there: nothing is durable yet, the reservation is, or the outcome is."""
    step = {'REQUEST': 0, 'FINGERPRINTED': 0, 'ATTEMPT_MADE': 0,
            'RESERVED': 1, 'ATTEMPT_NAMED': 1, 'HANDLER': 1, 'JUDGED': 1,
            'SETTLED': 2, 'ANSWER': 2,
            'ATTEMPT_GIVEN': 1, 'SESSION_MADE': 0}
    if name == 'OP_IN_QUEUE' and n > 1:
        return []       # the committer may have it already
    if name.startswith('PROCESS'):
        return []       # its process does not wait for the request
    if base.POSTGRES and name in ON_THE_WAY:
        return []       # the server may have it already
    # Of passages the first one is the start's, or the first sweep's; in
    # PostgreSQL these are no verbs, and a start has several commits.
    start = 1
    if base.POSTGRES and name == 'OP_ASKED':
        start = 0
    elif isinstance(n, str):
        n = int(n)
        start = 0 if base.POSTGRES else 1
    elif base.POSTGRES and name.startswith('COMMIT'):
        return [None]
    if name.startswith('PLACE_'):
        durable = durable_at(name[len('PLACE_'):])
    elif name in ('COMMIT_DONE', 'COMMIT_TOLD'):
        durable = n - start
    elif name.startswith('COMMIT') or name.startswith('OP'):
        durable = n - start - 1
    else:
        durable = step[name if name in step else name.split('_')[0]]
    lost = 'failed_retryable' if fate == 'resume' else 'unknown'
    return [[None, lost, 'completed'][max(durable, 0)]]


def alone(t, *point):
    life = Life(t, point)
    life.expected = {'k': state for state in expected(*point)}
    life.arm()
    life.post('k')
    life.over(['k'])


def as_user(t, *point):
    """The program's user is named."""
    life = Life(t, point, defaults={
        'user': pwd.getpwuid(os.geteuid()).pw_name})
    life.expected = {'k': state for state in expected(*point)}
    life.arm()
    life.post('k')
    life.over(['k'])


def duplicates(t, *point):
    """Four wait for the first one's answer, the rest is turned away."""
    life = Life(t, point, server={'workers': '8'},
                defaults={'concurrent': 'wait'})
    life.arm()
    if point[1] in ('REPLAY_FOUND', 'REPLAY_READ', 'ANSWER_READY',
                    'ANSWER_SENT'):
        for _ in range(2):
            parallel([lambda: life.post('k')] * 8)
    else:
        parallel([lambda: life.post('k')] * 8)
    life.over(['k'])


def waiting(t, *point):
    """Some wait for a run that stands at its gate; they look again and
    again."""
    life = Life(t, point, 'gate', defaults={'concurrent': 'wait'})
    gate = life.gate()
    life.arm()
    runs = [Background(lambda: life.post('k')) for _ in range(4)]
    life.dies()
    for run in runs:
        run.result()
    gate.open(SOME)
    life.over(['k'])


def many(t, *point):
    """Several keys, whose writes are committed as groups.  How large the
    groups are is chance: others follow, one by one, up to the commit that is
    meant."""
    life = Life(t, point, server={'workers': '8'})
    life.arm()
    for _ in range(3):
        parallel([lambda k=k: life.post(k) for k in KEYS])
    more = ['more%d' % n for n in range(5)]
    for key in more:
        life.post(key)
    life.over(KEYS + more)


def child(t, *point):
    """Its handler leaves a process behind, which outlives oncewrap."""
    life = Life(t, point, 'child')
    life.arm()
    life.post('k')
    life.over(['k'])


def child_sheds(t, *point):
    """The same, without the descriptor that it inherited."""
    life = Life(t, point, 'shed', 'child')
    life.arm()
    life.post('k')
    life.over(['k'])


def child_stays(t, *point):
    """The same, and it is still there when the attempt's time is up."""
    life = Life(t, point, 'child', defaults={'timeout': '2s',
                                             'kill_after': '100ms'})
    life.arm()
    life.post('k')
    life.over(['k'], stays=True)


def release(t, *point):
    """The first attempt is answered 503, the second is on its way."""
    life = Life(t, point, 'first=503')
    life.arm()
    life.post('k')
    life.post('k')
    life.over(['k'])


def found(t, *point, at='answer'):
    """The connection is lost in each third COMMIT, and comes back."""
    proxy = Proxy(base.POSTGRES)
    t.defer(proxy.close)
    life = Life(t, point)
    life.once.database = proxy.to(life.once.database)
    proxy.cut_commits(3, at)
    life.arm()
    # How many commits a request makes depends on what shares them.
    asked = 0
    while life.once.alive() and asked < len(KEYS):
        life.post(KEYS[asked])
        asked += 1
    life.dies()
    proxy.cut_commits(0)
    life.over(KEYS[:max(asked, 1)])


def found_undone(t, *point):
    """The same, and the COMMIT does not arrive."""
    found(t, *point, at='question')


def moving(t, *point):
    """The process shows that it lives while a handler runs."""
    life = Life(t, point, 'gate', server={'owner_timeout': '1s'})
    gate = life.gate()
    life.arm()
    run = Background(lambda: life.post('k'))
    life.dies()
    run.result()
    gate.open(SOME)
    life.over(['k'])


def replay(t, *point):
    """A stored answer is asked for."""
    life = Life(t, point)
    life.arm()
    life.post('k')
    life.post('k')
    life.over(['k'])


def replay_large(t, *point):
    """The same of an answer that is read apart from its record."""
    life = Life(t, point, 'size=5000')
    life.arm()
    life.post('k')
    life.post('k')
    life.over(['k'])


def meets(life, ask):
    """The process dies of a request that has no run of its own, or stores
    nothing; then it is asked again.  Returns the answer."""
    def dies():
        try:
            ask()
        except (OSError, fcgi.Closed):
            pass
    life.arm()
    run = Background(dies)
    life.dies()
    run.result()
    life.start_again()
    answer = ask()
    life.check_doctor()
    return answer


def page(t, *point):
    """An operator looks."""
    life = Life(t, point, server={'admin_path': '/once'})
    eq(meets(life, lambda: life.once.get('/once/')).status, 200)


def unguarded(t, *point):
    """A handler runs without a key, and its output is passed on."""
    life = Life(t, point)
    life.once.defaults['handler'] = t.sh('ledger; status 200; echo done')
    eq(meets(life, life.once.get).body, b'done\n')
    eq(life.once.ls(), [])


def cut_off(t, *point):
    """A body is shorter than its length."""
    life = Life(t, point)
    problem(meets(life, lambda: life.once.post('k', 'body', length=5)),
            'body-incomplete')
    eq((life.once.ls(), t.ledger()), ([], []))


def no_room(t, *point):
    """A request that is to be kept is longer than all that may be."""
    life = later(t, point, server={'max_kept': '2K'})
    problem(meets(life, lambda: life.once.post('k', 3000 * 'b')),
            'overloaded')
    eq((life.once.ls(), t.ledger()), ([], []))


def refused(t, *point, page=False):
    """A request without its key is turned away, perhaps with a page."""
    more = {}
    if page:
        t.write('pages/any.html', 'no')
        more['problem_pages'] = t.path('pages')
    life = Life(t, point, server=more, defaults={'key': 'required'})
    answer = meets(life, lambda: life.once.post(headers=(
        [('Accept', 'text/html')] * page)))
    eq((answer.status, answer.body == b'no'), (400, page), answer)
    eq((life.once.ls(), t.ledger()), ([], []))


def refused_page(t, *point):
    refused(t, *point, page=True)


def named(t, *point):
    """The handler is at a host with a name, and nobody is there."""
    life = Life(t, point)
    life.once.defaults['handler'] = 'tcp:localhost:1'
    answer = meets(life, lambda: life.once.post('k'))
    problem(answer, 'outcome-unknown')


def with_body(life, body, **more):
    """Every request has this body."""
    post = life.once.post
    life.once.post = lambda key, **kw: post(key, body=body, **more, **kw)


def small_body(t, *point):
    """The body is parsed apart."""
    life = Life(t, point)
    with_body(life, 5000 * 'b')
    life.arm()
    life.post('k')
    life.over(['k'])


def json_waits(t, *point):
    """Bodies are compared as JSON, and there is memory for one."""
    life = Life(t, point)
    with_body(life, '{"a": "%s"}' % ((12 << 20) * 'b'),
              type='application/json')
    life.arm()
    parallel([lambda k=k: life.post(k) for k in KEYS[:4]])
    life.over(KEYS[:4])


def compared(t, *point, size=5):
    """Since the first request, its route compares something else."""
    life = Life(t, point)
    with_body(life, size * 'b')
    life.start()
    life.post('k')
    life.once.stop()
    life.once.defaults['fingerprint_headers'] = 'X-Amount'
    life.arm()
    life.post('k')
    life.over(['k'])


def compared_large(t, *point):
    compared(t, *point, size=100_000)


def recovered(t, *point):
    """A retry finds that the process which ran its request is dead."""
    life = Life(t, point, 'gate')
    gate = life.gate()
    life.start()
    run = Background(lambda: life.post('k'))
    gate.wait()
    first = life.once
    life.once = t.once(life.handler, server=life.server,
                       defaults=life.defaults, name='other',
                       database=first.database, start=False)
    life.arm()
    wait_until(life.once.has_started, 'it has swept')
    first.kill()
    run.result()
    life.end_orphans()
    gate.open(SOME)
    life.post('k')
    life.over(['k'])


def child_lost(t, *point):
    """The handler is killed, and what it left behind lives."""
    life = Life(t, point, 'child', 'die')
    life.arm()
    run = Background(lambda: life.post('k'))
    life.dies()
    run.result()
    life.over(['k'])


def cancelled(t, *point):
    """A process that stays has no file any more: it gets no request."""
    life = Life(t, point)
    life.arm()
    wait_until(lambda: len(proc.children(life.once.pid)) == 2, 'processes')
    folder = life.once.local('-attempts')
    for name in os.listdir(folder):
        if name.endswith('.process'):
            os.unlink(os.path.join(folder, name))
    life.post('k')
    life.dies()
    life.start_again()
    eq(life.runs('k'), 0)
    wait_until(lambda: life.once.state('k') == 'failed_retryable',
               'it is released')
    life.check(['k'])


def large(t, *point):
    """An answer that fills the log and more than a socket takes at once."""
    life = Life(t, point, LARGE)
    life.arm()
    life.post('k')
    life.over(['k'])


def lost(t, *point):
    """The handler has no answer: it was killed."""
    life = Life(t, point, 'die')
    life.arm()
    life.post('k')
    life.over(['k'])


FINDS_OUT = r"""echo try >> "$D/tries"
test $(wc -l < "$D/tries") -gt 2 && outcome=completed || outcome=unknown
printf 'Status: 201\r\nIdempotency-Outcome: %s\r\n\r\nfound' $outcome"""


def reconciled(t, *point):
    """It is being found out what became of a key, at the third try."""
    life = Life(t, point, 'die', defaults={
        'on_crash': 'unknown', 'reconcile': t.sh(FINDS_OUT),
        'reconcile_after': '1ms', 'timeout': '2s', 'kill_after': '1ms'})
    life.arm()
    life.post('k')
    life.dies()
    life.start()
    life.once.wait_state('k', 'completed')
    for _ in range(2):
        again = life.once.post('k')
        eq((again.status, again.body, again.replayed), (201, b'found', 'true'))
    eq(len([d for d in t.ledger() if d.startswith('started')]), 1)


def reconciled_child(t, *point):
    """The same, and it is asked only when what the handler left behind has
    ended."""
    life = Life(t, point, 'shed', 'child', 'die', defaults={
        'on_crash': 'unknown', 'reconcile': t.sh(FINDS_OUT),
        'reconcile_after': '1ms', 'timeout': '2s', 'kill_after': '1ms'})
    life.arm()
    life.post('k')
    life.once.wait_log('event=reconciled.*still running', 2)
    eq(t.exists('tries'), False)
    life.end_orphans()
    life.dies()
    life.start()
    life.once.wait_state('k', 'completed')
    life.check_attempts()


def held(t, *point):
    """A stranger holds the lock when the outcome is to be stored."""
    life = Life(t, point, 'gate', server=HASTY)
    gate = life.gate()
    life.arm()
    run = Background(lambda: life.post('k'))
    gate.wait()
    lock = lock_of(t, life)
    gate.open()
    run.result()
    life.dies()
    lock.release()
    gate.open(SOME)
    life.over(['k'])


def lost_keys(t, point):
    """Three keys of a dead process, and one that is completed."""
    life = Life(t, point, 'gate')
    gate = life.gate()
    life.start()
    gate.open()
    life.post('done')
    gate.wait()
    runs = [Background(lambda k=k: life.post(k)) for k in KEYS[:3]]
    for _ in runs:
        gate.wait()
    life.once.kill()
    for run in runs:
        run.result()
    life.end_orphans()
    return life, gate


def swept(t, *point):
    """Attempts of a dead process are found at the start."""
    life, gate = lost_keys(t, point)
    life.arm()
    life.dies()
    gate.open(SOME)
    life.over(KEYS[:3] + ['done'])


def reaped(t, *point, **more):
    """Some keys are past their retention, and one is not."""
    life = Life(t, point)
    life.marked = bool(more)
    for path, retention in (('/short', '10ms'), ('/long', '1h')):
        life.once.routes[path] = {'retention': retention, **more}
    life.start()
    life.post('stays', path='/long')
    for key in KEYS[:3]:
        life.post(key, path='/short')
    life.once.kill()
    life.past.update(KEYS[:3])
    life.server['reap_interval'] = '50ms'
    life.once.server.update(life.server)
    life.arm()
    life.dies()
    life.over(KEYS[:3] + ['stays'])


def marked(t, *point):
    """The same, and a marker stays of those that are."""
    reaped(t, *point, on_expired='gone')


# Keys past their retention, as many as a busy week leaves; --all has more.
BACKLOG = int(os.environ.get('CRASH_BACKLOG', 20_000))
OLD = "SELECT count(*) FROM once_key WHERE substr(key, 1, 3) = 'old'"


def backlog(t, *point):
    """A process with a run dies while it deletes very many keys.  Its key is
    recovered before the rest of them is deleted."""
    life = Life(t, point, 'gate', server={'sweep_interval': '50ms'})
    gate = life.gate()
    life.start()
    gate.open()
    life.post('done')
    gate.wait()
    life.once.stop()
    plant(life, BACKLOG)
    life.arm()
    run = Background(lambda: life.post('k'))
    gate.wait()
    life.server['reap_interval'] = '10ms'
    life.once.server.update(life.server)
    life.once.write_conf()
    life.once.hup()
    life.dies()
    run.result()
    assert 0 < sql(life, OLD)[0] < BACKLOG
    life.other()
    lost = 'failed_retryable' if life.fate == 'resume' else 'unknown'
    left = wait_until(lambda: (lambda state, n: (n,) if state == lost else 0)(
        *sql(life, "SELECT state, (%s) FROM once_key WHERE key = 'k'" % OLD)),
        'the key is recovered')
    assert left[0] > 0, 'after the backlog'
    wait_until(lambda: sql(life, OLD)[0] < left[0], 'more are deleted')
    # A case has a minute.
    sql(life, "DELETE FROM once_key WHERE substr(key, 1, 3) = 'old' "
        "AND id > 3000")
    wait_until(lambda: sql(life, OLD)[0] == 0, 'all are deleted', 40)
    wait_until(lambda: life.once.log_lines('event=reaped'), 'it is logged')
    eq(len(life.once.log_lines('event=reaped')), 1)
    gate.open(SOME)
    life.check(['k', 'done'])


def fresh(t, *point):
    """There is no database yet."""
    life = Life(t, point)
    life.arm()
    life.dies()
    life.over(['k'])


def stopping(t, *point, **defaults):
    """SIGTERM while a handler stands at the gate, which then opens."""
    life = Life(t, point, 'gate', **defaults)
    gate = life.gate()
    life.arm()
    run = Background(lambda: life.post('k'))
    gate.wait()
    life.once.term()
    life.once.wait_log('event=stopping')
    if not defaults and point[1] != 'STOP_BEGUN':
        gate.open()
    life.dies()
    run.result()
    gate.open(SOME)
    life.over(['k'])


def stopping_late(t, *point):
    """The same, and the gate stays shut until drain_timeout is over."""
    stopping(t, *point, server={'drain_timeout': '100ms'})


def answering(t, point, *words):
    # A handler's environment does not say where the module of a build is.
    oncectl = t.write('oncectl', '#!/bin/sh\nONCEWRAP_MODULES=%s\nexport '
                      'ONCEWRAP_MODULES\nexec %s "$@"\n' % (
                          os.environ['ONCEWRAP_MODULES'], base.ONCECTL), 0o755)
    return Life(t, point, 'respond=' + oncectl, *words,
                defaults={'share_database': 'yes'})


def answered(t, *point):
    """The handler answers in a transaction of its own, and prints another
    answer."""
    life = answering(t, point)
    life.arm()
    life.post('k')
    life.over(['k'])


def answered_early(t, *point):
    """It has answered, and runs on; a second request comes meanwhile."""
    life = answering(t, point, 'late')
    life.early = True
    gate = life.gate()
    life.arm()
    run = Background(lambda: life.post('k'))
    gate.wait()
    life.post('k')
    life.dies()
    run.result()
    gate.open(SOME)
    life.over(['k'])


def answered_swept(t, *point):
    """It had answered when its oncewrap was killed: the next one finds so."""
    life = answering(t, point, 'late')
    gate = life.gate()
    life.start()
    run = Background(lambda: life.post('k'))
    gate.wait()
    life.once.kill()
    run.result()
    life.end_orphans()
    life.arm()
    life.dies()
    gate.open(SOME)
    life.over(['k'])
    eq(life.runs('k'), 1)


def later(t, point, *words, **more):
    return Life(t, point, *words, server={
        'status_path': '/jobs', 'async_workers': '1', **more.pop('server', {})
    }, stop=more.pop('stop', False), defaults={'async': 'always', **more})


def accepted(t, *point):
    """A request is answered 202, run later, and asked for again."""
    life = later(t, point)
    life.arm()
    life.post('k')
    if point[1].startswith('REPLAY'):
        life.once.wait_state('k', 'completed')
        life.post('k')
    if point[1] in ('STATUS_FOUND', 'PLACE_STATUS'):
        life.once.wait_state('k', 'completed')
        Background(lambda: life.once.get(resource(life, 'k')))
    life.dies()
    life.start_again()
    life.check_accepted(['k'])


def resource(life, key):
    """The path of its stored answer."""
    return '/jobs/%s/result' % sql(
        life, 'SELECT resource FROM once_key WHERE key = ?', (key,))


def resource_forgotten(t, *point):
    """A client that asks for a stored answer is told that there is none, if the
    key is gone after it was found."""
    life = later(t, point, stop=True)
    life.arm()
    life.post('k')
    life.once.wait_state('k', 'completed')
    path = resource(life, 'k')
    get = Background(lambda: life.once.get(path))
    wait_until(lambda: proc.state(life.once.pid) == 'T', 'it is stopped')
    life.once.ctl('forget', 'k')
    life.once.process.send_signal(signal.SIGCONT)
    problem(get.result(), 'not-found')
    problem(life.once.get(path), 'not-found')


def large_request(life):
    """Every request has a body that is stored in four pieces."""
    with_body(life, 400000 * 'b')


def nothing_is_staged(life):
    life.once.ctl('sweep')
    if base.POSTGRES:
        return      # nothing ever is
    eq(sql(life, 'SELECT count(*) FROM once_unnamed'), (0,))


def accepted_large(t, *point):
    """A large request is answered 202 and run later."""
    life = later(t, point)
    large_request(life)
    life.arm()
    life.post('k')
    life.dies()
    life.start_again()
    life.check_accepted(['k'])
    nothing_is_staged(life)


def kept_large(t, *point):
    """A large request is stored for a reconciler, and run at once."""
    life = Life(t, point, defaults={'reconcile': t.sh(FINDS_OUT),
                                    'reconcile_after': '1h'})
    large_request(life)
    life.arm()
    life.post('k')
    life.over(['k'])
    nothing_is_staged(life)


FINDS_LARGE = r"""echo try >> "$D/tries"
printf 'Status: 201\r\nIdempotency-Outcome: completed\r\n\r\n'
head -c 400000 /dev/zero | tr '\0' f"""


def settled_large(t, *point):
    """A reconciler has a large answer, which is stored in pieces without a
    lease."""
    life = Life(t, point, 'die', defaults={
        'on_crash': 'unknown', 'reconcile': t.sh(FINDS_LARGE),
        'reconcile_after': '1ms', 'timeout': '2s', 'kill_after': '1ms'})
    life.arm()
    life.post('k')
    life.dies()
    eq(life.once.state('k'), 'unknown')
    life.start()
    life.once.wait_state('k', 'completed')
    again = life.once.post('k')
    eq((again.status, again.body, again.replayed),
       (201, 400000 * b'f', 'true'))
    eq(len([d for d in t.ledger() if d.startswith('started')]), 1)
    nothing_is_staged(life)
    # A piece has 1 MiB on PostgreSQL, and 128 KiB on SQLite.
    eq(sql(life, 'SELECT count(*) FROM once_piece'),
       (1 if base.POSTGRES else 4,))


def accepted_many(t, *point):
    """The same of several, with one worker for them."""
    life = later(t, point, server={'workers': '8'})
    life.arm()
    parallel([lambda k=k: life.post(k) for k in KEYS])
    life.dies()
    life.start_again()
    life.check_accepted(KEYS)


def accepted_lost(t, *point):
    """Its first attempt is lost by itself."""
    life = later(t, point, 'die')
    life.arm()
    life.post('k')
    life.dies()
    life.start_again()
    life.check_accepted(['k'])


def accepted_stopping(t, *point):
    """SIGTERM while one of them stands at the gate, and one waits."""
    life = later(t, point, 'gate', server={'drain_timeout': '100ms'})
    gate = life.gate()
    life.arm()
    life.post('k')
    gate.wait()
    life.post('waits')
    life.once.term()
    life.dies()
    gate.open(SOME)
    life.start_again()
    life.check_accepted(['k', 'waits'])


def abandoned(t, *point):
    """A request is past its retention, and no worker has begun it."""
    life = later(t, point, 'gate')
    life.once.routes['/short'] = {'retention': '50ms', 'on_expired': 'gone'}
    gate = life.gate()
    life.start()
    life.post('k')
    gate.wait()
    life.post('short', path='/short')
    life.once.kill()
    life.end_orphans()
    past = wait_until(lambda: life.is_past('short'), 'it is past')
    eq(past['state'], 'pending')
    life.server['reap_interval'] = '50ms'
    life.once.server.update(life.server)
    life.arm()
    life.dies()
    gate.open(SOME)
    life.start_again()
    life.check_accepted(['k'])
    life.once.wait_state('short', 'expired')
    problem(life.once.post('short', path='/short'), 'key-expired')
    eq(life.runs('short'), 0)


def two(t, point):
    """A process that is stopped at the point, and another that sweeps."""
    life = Life(t, point, stop=True)
    life.arm()
    run = Background(lambda: life.post('k'))
    wait_until(lambda: proc.state(life.once.pid) == 'T', 'it is stopped')
    first = life.other()    # which has swept before it listens
    state = life.once.state('k')
    answer = life.once.post('k')
    if point[1] in ('SETTLED', 'ANSWER_READY'):
        eq((state, answer.status, answer.replayed),
           ('completed', 201, 'true'), answer)
    else:
        eq(state, 'in_progress')
        problem(answer, 'key-in-progress')
    return life, first, run


def stopped(t, *point):
    """It is killed: the other one finds out."""
    life, first, run = two(t, point)
    first.kill()
    run.result()
    wait_until(lambda: life.once.state('k') != 'in_progress', 'it is swept')
    life.check(['k'])


def forgotten(t, *point):
    """A key ends while its answer is about to be read, apart from the record:
    it is a new one."""
    life = Life(t, point, 'size=5000', stop=True)
    life.arm()
    life.post('k')
    run = Background(lambda: life.once.post('k'))
    wait_until(lambda: proc.state(life.once.pid) == 'T', 'it is stopped')
    life.once.ctl('forget', 'k')
    life.once.process.send_signal(signal.SIGCONT)
    answer = run.result()
    eq((answer.status, answer.replayed), (201, None), answer)


def continued(t, *point):
    """It goes on as if nothing had been."""
    life, first, run = two(t, point)
    first.process.send_signal(signal.SIGCONT)
    eq(run.result().status, 201)
    first.stop()
    life.check(['k'])
