"""Effects that are on their way when the process dies.

  O1  What a handler has committed is delivered, always with the same key.
  O2  What it has not committed is not.
  O3  Those of a key come in order; the one that was under way may come again,
      and nothing else does.
"""
import itertools
import json

from answer import eq, problem
from base import wait_until
from once import Background

import database
from life import Life

KEYS = ['a', 'b']
EFFECTS = ['0', '1', '2']
SOME = 20       # ways through a gate, more than are needed

# Passed after the handler has ended, which it does after its commit.
OVER = ('HANDLER_EXITED', 'JUDGED', 'SETTLED', 'ANSWER_READY', 'ANSWER_SENT')

# An order, its effects and its answer, in one transaction.
END = 'out(b"Status: 500\\r\\n\\r\\nnobody sees it")'
RECEIPT = 'echo "$ONCE_KEY $(cat) $ONCE_EFFECT_KEY" >> "$D/receipts"; '


def orders(t, point, deliver=''):
    life = Life(t, point, defaults={'share_database': 'yes'})
    life.once.defaults['handler'] = t.py(database.order() + END)
    database.make_orders(life)
    life.once.conf = '[effect mail]\nbackoff = 1ms\nprogram = %s\n' % \
        t.sh(RECEIPT + deliver)
    return life


def receipts(t):
    """(key, payload, effect key) of each delivery."""
    if not t.exists('receipts'):
        return []
    return [tuple(line.split()) for line in
            t.read('receipts').decode().splitlines()]


def outbox(life):
    return [json.loads(line) for line in
            life.once.ctl('outbox', 'ls', '--json').splitlines()]


def answered(life, key):
    """Whether there is an order, as a client learns that retries."""
    answer = life.final(key)
    if answer.status != 201:
        problem(answer, 'outcome-unknown')
        eq(life.fate, 'unknown', answer)
        return False
    eq(answer.body, key.encode(), answer)
    return True


def delivered(life):
    wait_until(lambda: all(row['state'] == 'delivered'
                           for row in outbox(life)), 'all is delivered')


def check(life, repeated):
    t = life.t
    wanted = [key for key in KEYS if answered(life, key)]
    eq(sorted(database.orders(life)), wanted)
    delivered(life)
    found = receipts(t)
    for key in KEYS:
        once = [p for p, _ in itertools.groupby(
            r[1] for r in found if r[0] == key)]
        eq(once, EFFECTS if key in wanted else [], 'O1 to O3 of ' + key)
    eq(len({r[2] for r in found}), len({r[:2] for r in found}), 'O1')
    extra = len(found) - len(EFFECTS) * len(wanted)
    assert extra <= repeated, 'O3: %d again: %r' % (extra, found)
    life.check_doctor()


def effects(t, *point):
    """Two orders and their effects."""
    life = orders(t, point)
    life.arm()
    runs = [Background(lambda k=k: life.post(k)) for k in KEYS]
    life.dies()
    for run in runs:
        run.result()
    life.end_orphans()
    life.start()
    check(life, 2)


def said(t, *point):
    """An order, its effects and its answer, and then 500: whatever the
    handler and the process came to, that is the answer."""
    life = orders(t, point)
    life.arm()
    life.post('a')
    life.dies()
    life.end_orphans()
    life.start()
    if point[1] in OVER:
        life.once.wait_state('a', 'completed')
    for _, answer in life.seen:
        if not answer.broken:
            eq((answer.status, answer.body), (201, b'a'), answer)
    check(life, 2)


def freed(t, *point):
    """A dead process was delivering two, which is found at the start."""
    life = orders(t, point, 'gate gate')
    gate = life.gate()
    life.start()
    for key in KEYS:
        eq(life.post(key).status, 201)
    for _ in KEYS:
        gate.wait()
    life.once.kill()
    life.end_orphans()
    life.arm()
    life.dies()
    gate.open(SOME)
    life.start()
    check(life, 2)
