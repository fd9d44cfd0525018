"""The fault points, and where the scenarios meet each.

TABLE says which scenarios die at a point, and at which passages; PLACES says
that of the places of a request.  A point of src/base/fault.h or a place of
src/oncewrap/engine.c that they do not name fails, and so does one that a
scenario does not pass.
"""
import collections
import os
import random
import re
import subprocess
import tempfile

import base
import life
import scenario

ALL = ('alone', 'duplicates', 'many', 'child')

# A request that is accepted: it is queued, its lease is taken, its outcome is
# stored; and the way of its run.
QUEUED = [('accepted', n) for n in (2, 3, 4)] + \
    [('accepted_many', n) for n in (3, 6, 9)]
LATER = [('accepted', 1), ('accepted_many', 3)]
LATER_LOST = LATER + [('accepted_lost', 1)]
# A handler's own answer: the commits of the lease and of the confirmation; or,
# for a client that asks while the handler runs on, the commit in between, which
# makes the answer durable.
SEALED = [('answered', 2), ('answered', 3), ('answered_early', 3),
          ('answered_swept', 2)]
# What a handler committed is made durable: its answer; and each of its effects
# when it is taken up.
HARDENED = [('answered', 1), ('answered_early', 1), ('answered_swept', 1)] + \
    [('effects', n) for n in (1, 2, 3, 5)]
# Pieces are stored that no key names yet.
STAGED = ('accepted_large', 'kept_large', 'settled_large')
# The way of a request.  With the second passage a retry is on its way: after
# a release, or to be answered from the store.
WAY = [(s, 1) for s in ALL] + [('many', 5), ('release', 2)]
REPLAYED = [('replay', 2)]
# It has put effects beside its answer.
SAID = [('said', 1)]
# Every write passes: the clock's at the start, the reservation, the outcome.
# Eight keys are two writes each, and two transactions at least.
WRITE = [(s, n) for s in ALL for n in (1, 2, 3)] + \
    [('release', 4), ('release', 5), ('large', 3), ('swept', 2),
     ('reaped', 2), ('marked', 2), ('lost', 3),
     ('accepted_lost', 4), ('abandoned', 2), ('abandoned', 3)] + QUEUED + \
    SEALED + \
    [('effects', n) for n in range(3, 10)] + \
    [('freed', 2), ('freed', 3), ('said', 3), ('said', 4)]
OPERATION = WRITE + [('many', n) for n in range(4, 18)]

# Where an attempt's processes have to be found, its file is there before it.
ATTEMPT = [(s, 1) for s in ALL] + [('many', 5), ('release', 2),
                                   ('child_sheds', 1)]
RESUMED = {
    'ATTEMPT_MADE': ATTEMPT,
    'ATTEMPT_NAMED': ATTEMPT,
    'ATTEMPT_SWEPT': [('swept', 1), ('swept', 2)],
    'HANDLER_STARTED': [('child_sheds', 1)],
    'HANDLER_OUTPUT': [('child_sheds', 1)],
    'HANDLER_EXITED': [('child_sheds', 1)],
    'JUDGED': [('child_sheds', 1)],
}

TABLE = {
    'REQUEST_READ': WAY + REPLAYED + [('duplicates', 5), ('accepted', 1)],
    'REQUEST_TAKEN': WAY + REPLAYED + [('duplicates', 5), ('accepted', 1)],
    'FINGERPRINTED': WAY + REPLAYED + [('duplicates', 5), ('accepted', 1)],
    'WAIT_OVER': [('waiting', 1), ('waiting', 3)],
    'OP_ASKED': OPERATION,
    'OP_IN_QUEUE': OPERATION,
    'COMMIT_IDLE': WRITE,
    'COMMIT_BEGUN': WRITE,
    'COMMIT_OP': OPERATION,
    'COMMIT_READY': WRITE,
    'COMMIT_DONE': WRITE,
    'HARDEN_BEFORE': HARDENED,
    'HARDEN_AFTER': HARDENED,
    'COMMIT_TOLD': OPERATION,
    'CHECKPOINT_BEFORE': [('large', 1)],
    'CHECKPOINT_AFTER': [('large', 1)],
    # 39 pieces, the last of which is in the transaction of the outcome.  Of
    # a request, and of a reconciler's answer, there are four.
    'PIECE_WRITTEN': [('large', n) for n in (1, 20, 39)] +
    [(s, n) for s in STAGED for n in (1, 2, 4)],
    'PIECE_STORED': [('large', n) for n in (1, 38)] +
    [(s, n) for s in STAGED for n in (1, 3)],
    'RESERVED': WAY,
    'ACCEPTED': LATER,
    'JOB_CLAIMED': LATER_LOST,
    'HANDLER_START': WAY + LATER,
    'HANDLER_STARTED': SAID + WAY + LATER,
    'HANDLER_OUTPUT': SAID + WAY + LATER + [('large', 1), ('large', 9)],
    'HANDLER_EXITED': SAID + WAY + LATER_LOST + [('large', 1), ('lost', 1),
                                          ('answered', 1)],
    'JUDGED': SAID + WAY + LATER_LOST + [
        ('large', 1), ('lost', 1), ('answered', 1)],
    'SETTLED': SAID + WAY + LATER_LOST + [
        ('large', 1), ('lost', 1), ('answered', 1)],
    'SETTLE_LEFT': [('held', 1)],
    'ANSWER_READY': SAID + WAY + REPLAYED + LATER + [
        ('large', 1), ('duplicates', 8), ('answered', 1),
        ('answered_early', 1)],
    'ANSWER_SENT': SAID + WAY + REPLAYED + LATER + [
        ('large', 1), ('duplicates', 8), ('lost', 1), ('answered', 1),
        ('answered_early', 1)],
    'REPLAY_FOUND': [('replay', 1), ('duplicates', 1), ('accepted', 1),
                     ('answered_early', 1)],
    'REPLAY_READ': [('replay', 1), ('duplicates', 1), ('accepted', 1),
                    ('answered_early', 1)],
    'STATUS_FOUND': [('accepted', 1)],
    'RECOVER_BEFORE': [('swept', 1)],
    'RECOVER_AFTER': [('swept', 1)],
    'RECOVER_KEY': [('swept', 1), ('swept', 2), ('swept', 3),
                  ('answered_swept', 1)],
    'STORE_OPENED': [('swept', 1), ('fresh', 1)],
    'EXPIRE_BEFORE': [('reaped', 1), ('marked', 1)],
    'EXPIRE_AFTER': [('reaped', 1), ('marked', 1)],
    'EXPIRE_KEY': [('reaped', 1), ('reaped', 2), ('marked', 1), ('marked', 2),
                 ('backlog', 700)],
    'RECONCILE_CLAIMED': [('reconciled', 1), ('reconciled', 2),
                          ('reconciled_child', 1)],
    'RECONCILE_RAN': [('reconciled', 1), ('reconciled', 2),
                      ('reconciled_child', 1)],
    'EFFECT_BEGUN': [('effects', n) for n in (1, 2, 4, 6)],
    'EFFECT_RAN': [('effects', n) for n in (1, 2, 4, 6)],
    'EFFECT_RECORDED': [('effects', n) for n in (1, 2, 4, 6)],
    'RECOVER_EFFECTS': [('freed', 1)],
    'SCHEMA_FILE': [('fresh', 1)],
    'SCHEMA_STEP': [('fresh', n) for n in (1, 2, 9, 14, 20, 27, 28)],
    'SCHEMA_READY': [('fresh', 1)],
    'SCHEMA_DONE': [('fresh', 1)],
    'STOP_BEGUN': [('stopping', 1), ('stopping_late', 1),
                   ('accepted_stopping', 1)],
    'STOP_DRAIN': [('stopping_late', 1), ('accepted_stopping', 1)],
    'STOP_DRAINED': [('stopping', 1), ('stopping_late', 1),
                     ('accepted_stopping', 1)],
    'STOP_STORE': [('stopping', 1), ('stopping_late', 1),
                   ('accepted_stopping', 1)],
    'STOP_CLOSED': [('stopping', 1), ('stopping_late', 1),
                    ('accepted_stopping', 1)],
}

# One store alone has these.
SQLITE = ('OP_IN_QUEUE', 'COMMIT_IDLE', 'COMMIT_BEGUN', 'COMMIT_OP',
          'HARDEN_BEFORE', 'HARDEN_AFTER', 'COMMIT_TOLD', 'CHECKPOINT_BEFORE',
          'CHECKPOINT_AFTER', 'PIECE_STORED', 'SCHEMA_FILE', 'SCHEMA_STEP',
          'SCHEMA_READY')
POSTGRES = ('COMMIT_SENT', 'COMMIT_FOUND', 'OWNER_MOVED', 'SESSION_MADE')



def after(first, last=None):
    """Passages that are counted after the start."""
    return ['+%d' % n for n in range(first, (last or first) + 1)]


# In PostgreSQL a write is a transaction of its own, or in a group: the eight
# reservations and outcomes of "many" make a group each, or more, and those of
# the five keys that follow ten.  Some transactions are the start's; its first
# sweep has none.
COMMIT = [(s, n) for s in ALL for n in [1, 3] + after(1, 2)] + \
    [('many', n) for n in after(3, 9)] + \
    [(s, n) for s in ('reaped', 'swept', 'abandoned', 'freed')
     for n in after(1, 2)] + \
    [(s, n) for s in ('marked', 'answered_swept') for n in after(1)] + \
    [(s, n) for s in ('answered', 'large', 'lost') for n in after(2)] + \
    [(s, n) for s in ('release', 'said') for n in after(3, 4)] + \
    [('accepted', n) for n in after(1, 3)] + \
    [('accepted_lost', n) for n in after(2, 3)] + \
    [('accepted_many', n) for n in ('+2', '+5', '+8')] + \
    [('effects', n) for n in after(1, 9)]

IN_POSTGRES = {
    'OP_ASKED': [(s, n) for s in ALL for n in (1, 2)] +
    [('many', n) for n in range(3, 17)] +
    [('release', 3), ('release', 4), ('large', 2), ('lost', 2),
     ('accepted', 1), ('accepted', 2), ('accepted_lost', 2),
     ('accepted_many', 3), ('accepted_many', 6), ('answered', 2),
     ('effects', 3), ('effects', 4), ('said', 2)],
    'COMMIT_READY': COMMIT,
    'COMMIT_SENT': COMMIT,
    'COMMIT_DONE': COMMIT,
    'COMMIT_FOUND': [('found', n) for n in (1, 2)] +
    [('found_undone', n) for n in (1, 2, 3)],
    'SESSION_MADE': [('alone', 1)],
    'OWNER_MOVED': [('alone', 1), ('moving', 2), ('moving', 4)],
    # A handler's answer has five pieces.
    'PIECE_WRITTEN': [('large', n) for n in (1, 2, 5)] +
    [('settled_large', 1)],
}

# With handlers that stay: what is theirs alone, and the way of a run.
STAYS = {
    'PROCESS_MARKED': [('alone', 1), ('alone', 2), ('child', 2)],
    'PROCESS_STARTED': [('alone', 1), ('alone', 2), ('child', 2)],
    'ATTEMPT_GIVEN': [(s, 1) for s in ALL] + [
        ('many', 5), ('release', 2), ('child_sheds', 1), ('lost', 1)],
}
for _name in ('HANDLER_START', 'HANDLER_STARTED', 'HANDLER_OUTPUT', 'JUDGED',
              'HANDLER_EXITED', 'SETTLED', 'ANSWER_SENT', 'STOP_BEGUN',
              'STOP_DRAIN', 'STOP_DRAINED', 'STOP_STORE', 'STOP_CLOSED'):
    STAYS[_name] = [play for play in TABLE[_name] if play[0] in (
        'alone', 'many', 'child', 'release', 'large', 'lost', 'accepted',
        'stopping', 'stopping_late')]

# The places of a request: [FATE.][stays_]SCENARIO[:PASSAGE], without a fate
# for each of them.
PLACES = {
    'BEGIN': 'alone replay:2',
    'PAGE': 'page',
    'STATUS': 'accepted',
    'MEMORY': 'json_waits',
    'CHECK': 'alone',
    'CHECK_SMALL': 'small_body',
    'CHECK_LARGE': 'kept_large json_waits:2',
    'CHECK_STORE': 'cut_off',
    'CHECKED': 'alone unguarded',
    'LOOK': 'alone duplicates:5 replay:2',
    'LOOKED': 'alone duplicates:5 replay:2',
    'COMPARE': 'compared',
    'COMPARE_LARGE': 'compared_large',
    'DECIDE': 'alone duplicates:5 replay:2',
    'RECOVER': 'recovered',
    'FETCH': 'replay',
    'FETCH_STORE': 'replay_large',
    'FIRST': 'waiting waiting:3',
    'WAITED': 'waiting waiting:3',
    'SLOT': 'alone unguarded',
    'PREPARE': 'unknown.alone unknown.accepted',
    'PREPARE_FILES': 'resume.alone resume.accepted kept_large',
    'TAKE': 'alone many:5 accepted',
    'TAKEN': 'alone many:5 accepted',
    'RESPOND': 'alone replay:2 accepted',
    'RESPOND_STORE': 'no_room',
    'SHOW': 'accepted',
    'START': 'unknown.stays_alone',
    'START_NAMED': 'unknown.named',
    'START_FILES': 'resume.stays_alone',
    'SPAWN': 'alone many:5 unguarded',
    'SPAWN_AS': 'as_user',
    'BEGIN_RUN': 'alone many:5 stays_alone',
    'REACH': 'alone many:5 stays_alone',
    'NAME': 'unknown.alone unknown.stays_alone',
    'NAME_FILES': 'resume.alone resume.stays_alone',
    'CANCEL': 'resume.stays_cancelled',
    'SEND': 'alone many:5 stays_alone',
    'OUTPUT': 'alone large:5 stays_alone',
    'SPOOL': 'large large:9',
    'STREAM': 'unguarded unguarded:2',
    'RAN': 'alone large lost',
    'LEFT': 'resume.lost resume.child_lost:2',
    'PAUSE': 'resume.child_lost resume.child_lost:2',
    'JUDGE': 'alone large lost',
    'FINISHED': 'alone large lost',
    'SETTLED': 'unknown.alone unknown.large',
    'SETTLED_FILES': 'resume.alone resume.lost',
    'RESULT': 'alone large lost',
    'TELL': 'alone release:2 lost',
    'TELL_FILES': 'answered',
    'ANSWER': 'alone replay:2 accepted',
    'REFUSE': 'refused',
    'REFUSE_FILES': 'refused_page',
    'REPLY': 'alone replay:2 refused',
    'CLEAN': 'resume.alone resume.lost kept_large',
}

# Where a process is stopped, not killed, while another one sweeps.
STOPPED = ('RESERVED', 'HANDLER_STARTED', 'HANDLER_OUTPUT', 'HANDLER_EXITED',
           'JUDGED', 'SETTLED', 'ANSWER_READY')

# Where its tree outlives an attempt, and stays beyond its deadline.
REMAINS = ('HANDLER_OUTPUT', 'HANDLER_EXITED', 'JUDGED')


def listed():
    """The names in src/base/fault.h, in order."""
    with open(os.path.join(base.TOP, 'src', 'base', 'fault.h')) as f:
        return re.findall(r'^ \*\t([A-Z_]+)$', f.read(), re.MULTILINE)


def of_places(fate):
    """(name, function) of each case of the places."""
    for name, plays in PLACES.items():
        for play in plays.split():
            play, _, n = play.partition(':')
            only, dot, play = play.rpartition('.')
            if dot and only != fate:
                continue
            run = case
            if play.startswith('stays_'):
                run, play = stays, play[len('stays_'):]
            point = 'PLACE_' + name, n or 1
            yield ('%s.%s%s.%s.%s' % ((fate, 'stays_' * (run is stays), play) +
                                      point),
                   run(getattr(scenario, play), fate, point[0], int(n or 1)))


def fates():
    """The words for on_crash that this oncewrap knows."""
    found = []
    for word in ('unknown', 'resume'):
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as f:
            f.write('[defaults]\non_crash = %s\n' % word)
            f.flush()
            if subprocess.run([base.ONCEWRAP, '-t', '-f', f.name],
                              capture_output=True).returncode == 0:
                found.append(word)
    return found


def case(play, *args):
    return lambda t: play(t, *args)


def stays(play, *args):
    def run(t):
        life.STAYS = True       # each case is a process of its own
        play(t, *args)
    return run


def not_met(t):
    raise AssertionError('no scenario meets this point: add it to TABLE')


def cases():
    """[(name, function)], every point under every fate."""
    found = []
    names = listed()
    table, absent = TABLE, POSTGRES
    if base.POSTGRES:
        table, absent = {**TABLE, **IN_POSTGRES}, SQLITE
    names = [name for name in names if name not in absent]
    table = {name: table[name] for name in table if name not in absent}
    for name in sorted((set(table) | set(RESUMED) | set(STAYS)) -
                       set(names)):
        found.append(('list.%s.is_not_in_fault_h' % name, not_met))
    for name in sorted(set(PLACES) ^ set(scenario.PLACES)):
        found.append(('list.none.PLACE_%s' % name, not_met))
    for fate in fates():
        for name in names:
            if name not in table and name not in RESUMED and \
                    name not in STAYS:
                found.append(('%s.none.%s' % (fate, name), not_met))
            more = RESUMED.get(name, []) if fate == 'resume' else []
            for play, n in table.get(name, []) + more:
                found.append(('%s.%s.%s.%s' % (fate, play, name, n),
                              case(getattr(scenario, play), fate, name, n)))
        for name, plays in STAYS.items():
            for play, n in plays:
                found.append(('%s.stays_%s.%s.%d' % (fate, play, name, n),
                              stays(getattr(scenario, play), fate, name, n)))
        found += of_places(fate)
        for name in STOPPED:
            found.append(('%s.stopped.%s.1' % (fate, name),
                          case(scenario.stopped, fate, name, 1)))
            found.append(('%s.continued.%s.1' % (fate, name),
                          case(scenario.continued, fate, name, 1)))
        found.append(('%s.forgotten.REPLAY_FOUND.1' % fate,
                      case(scenario.forgotten, fate, 'REPLAY_FOUND', 1)))
        found.append(('%s.resource_forgotten.STATUS_FOUND.1' % fate,
                      case(scenario.resource_forgotten, fate, 'STATUS_FOUND',
                           1)))
        for name in REMAINS if fate == 'resume' else ():
            found.append(('%s.child_stays.%s.1' % (fate, name),
                          case(scenario.child_stays, fate, name, 1)))
    return found


def sample(found, seed, times):
    """Those in which each point and each scenario of each fate stands so many
    times, or as often as it can; the seed says which."""
    rest = list(found)
    random.Random(seed).shuffle(rest)
    met = collections.Counter()
    taken = set()
    for name, _ in rest:
        fate, play, point, _ = name.split('.')
        if met[fate, play] < times or met[fate, point] < times:
            met.update([(fate, play), (fate, point)])
            taken.add(name)
    return [one for one in found if one[0] in taken]
