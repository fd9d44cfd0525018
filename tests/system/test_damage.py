"""Damaged pages of what is stored beside a key: they keep nothing else up."""
import os
import sqlite3

from answer import eq, first, problem, replay
from base import wait_until
from once import Background, elapsed

ASYNC = {'Prefer': 'respond-async'}
OK = 'ledger; status 201; echo x'
LARGE = 1500000


def once_with(t, body=OK, server=None, fault=None, **defaults):
    env = dict(os.environ)
    if fault:
        env['ONCEWRAP_FAULT'] = fault
    return t.once(handler=t.sh(body), env=env, defaults={
        'async': 'prefer', **defaults}, server={
        'admin_path': '/admin', 'status_path': '/jobs',
        'sweep_interval': '100ms', 'reap_interval': '100ms',
        'busy_timeout': '1s', **(server or {})},
        routes={'/other': {'handler': t.sh(OK)}})


def write_over(once, pages, data, at=0):
    """Writes over the beginning of these pages of the database's file."""
    with open(once.database, 'r+b') as f:
        for page in pages:
            f.seek((page - 1) * page_size(once) + at)
            f.write(data)


def page_size(once):
    with sqlite3.connect(once.database) as db:
        return db.execute('PRAGMA page_size').fetchone()[0]


def damage(once, body):
    """Makes nonsense of some pages in the middle of that body, which repeats 32
    bytes; nothing of it is in the log any more."""
    with sqlite3.connect(once.database) as db:
        db.execute('PRAGMA wal_checkpoint(TRUNCATE)')
    size = page_size(once)
    with open(once.database, 'rb') as f:
        data = f.read()
    pages = [i // size + 1 for i in range(0, len(data), size)
             if body[:32] in data[i:i + size]]
    assert len(pages) > 50, pages
    write_over(once, pages[40:44], b'\xff' * 4 + bytes(size - 4))


def dies(once, body):
    """The daemon ends at the fault point, with the body half stored."""
    once.begin('k', body, headers=ASYNC)
    assert once.wait() != 0
    once.process = None


def body_of(text):
    return (text * 32)[:32] * (LARGE // 32)


def goes_on(once, n=5):
    """New keys run, and the daemon says that it is well."""
    for i in range(n):
        first(once.post('after-%d' % i, path='/other'), 201)
    eq(once.get('/admin/health').status, 200)


def test_pieces_of_a_dead_process_in_an_index_alone(t):
    once = once_with(t, fault='PIECE_STORED:+3')
    dies(once, body_of(b'k'))
    with sqlite3.connect(once.database) as db:
        db.execute('PRAGMA wal_checkpoint(TRUNCATE)')
        root, = db.execute("SELECT rootpage FROM sqlite_schema "
                           "WHERE name = 'once_unnamed'").fetchone()
        eq(db.execute('SELECT count(*) FROM once_unnamed').fetchone(), (1,))
    write_over(once, [root], b'\0\0', at=3)  # it has no cells
    del once.env['ONCEWRAP_FAULT']
    once.start()
    goes_on(once)
    once.stop()


def test_damaged_pieces_of_a_dead_process_end_no_sweep(t):
    body = body_of(b'pieces')
    once = once_with(t, fault='PIECE_STORED:+11')
    dies(once, body)
    damage(once, body)
    del once.env['ONCEWRAP_FAULT']
    once.start()
    once.wait_log('event=bad-row .*table=once_unnamed')
    goes_on(once)
    assert 'pass-failed' not in once.log(), once.log()


def test_damaged_request_does_not_keep_its_key_from_its_end(t):
    body = body_of(b'request')
    gate = t.gate()
    once = once_with(t, 'gate gate; ' + OK, server={'async_workers': '1'},
                     retention='2s')
    for key in 'busy', 'busy-too':
        once.post(key, headers=ASYNC)
    gate.wait()
    once.post('k', body, headers=ASYNC)
    eq(once.state('k'), 'pending')
    once.kill()
    damage(once, body)
    once.start()
    wait_until(lambda: not [r for r in once.ls() if r['state'] == 'pending'],
               'the request has expired')
    once.wait_log('event=bad-row .*table=once_piece')
    goes_on(once)
    gate.open(9)


def test_damaged_request_does_not_keep_a_run_from_its_outcome(t):
    body = body_of(b'request')
    gate = t.gate()
    once = once_with(t, 'gate gate; ' + OK, reconcile=t.sh('exit 1'))
    run = Background(lambda: once.post('k', body))
    gate.wait()
    damage(once, body)
    gate.open()
    answer = run.result()
    first(answer, 201)
    replay(once.post('k', body), answer)
    goes_on(once)
    eq(len(t.ledger()), 6)


def test_damaged_answer_keeps_no_key_from_its_end(t):
    body = body_of(b'answer')
    once = once_with(t, 'ledger; status 201; cat', retention='2s')
    first(once.post('k', body), 201)
    damage(once, body)
    for i in range(20):
        first(once.post('n%d' % i, b'x'), 201)
    wait_until(lambda: once.ls() == [], 'all keys have gone')
    once.wait_log('event=bad-row .*table=once_piece')
    goes_on(once)


def test_damaged_new_keys_are_no_good_health(t):
    once = once_with(t)
    for i in range(300):
        once.post('key-%05d' % i)
    once.stop()
    with sqlite3.connect(once.database) as db:
        db.execute('PRAGMA wal_checkpoint(TRUNCATE)')
    size = page_size(once)
    with open(once.database, 'rb') as f:
        data = f.read()
    page, = {i // size + 1 for i in range(0, len(data), size)
             if b'key-00250' in data[i:i + size]}
    write_over(once, [page], bytes(size))
    once.start()
    for i in range(200):
        answer = once.post('n%d' % i)
        if answer.status != 201:
            break
    problem(answer, 'store-unavailable', acted=True)
    for _ in range(3):
        eq(once.get('/admin/health').status, 503)
        # What is there is found, which is a write of another kind.
        eq(once.post('n0').replayed, 'true')
    problem(once.post('again'), 'store-unavailable', acted=True)


def test_large_request_is_not_refused_because_of_itself(t):
    once = once_with(t, server={'max_store': '4M'})
    eq(once.post('k', bytes(6000000), headers=ASYNC).status, 202)
    # What it takes is counted for the next one.
    once.wait_state('k', 'completed')


