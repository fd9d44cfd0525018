"""What handlers did, what clients saw, what the store says: all must agree.

This module only judges.  It starts nothing and asks nothing, so histories can
be made up to see whether it refuses them.

An identity is (user, path, key).  A record of it is named by its downstream
key; an identity has several, one after the other, where keys expire.
"""
import collections

from excuses import MS

INF = float('inf')

# How a handler's run ends, by the last word of its line (handlers/deeds.c).
FINAL = {'created', 'refused', 'said'}
RELEASED = {'busy', 'failed', 'away', 'tempfail', 'tempfail-mute',
            'not-executed'}
UNKNOWN = {'gateway', 'unsure', 'mute', 'exit'}
LOST = {'killed', 'crashed', 'left'}
STATUS = {'created': 201, 'refused': 404, 'busy': 429, 'failed': 500,
          'away': 503, 'tempfail': 503, 'not-executed': 409, 'gateway': 502,
          'unsure': 202, 'resolved': 201, 'said': 201}
# The answers of records that have come to an end.
STORED = FINAL | {'resolved'}

# Answers of oncewrap after which this request has run nothing ...
NOT_KEPT = 'response-not-kept'
NOT_RUN = {'key-in-progress', 'outcome-unknown', 'key-reused', 'key-expired',
           'store-unavailable', 'overloaded', 'too-many-keys', NOT_KEPT}
# ... and after which it may have.
MAY_HAVE_RUN = {'handler-failed', 'handler-timeout', 'handler-not-started',
                'outcome-not-recorded'}

# born: since when its process may have had this request.
Line = collections.namedtuple('Line', '''deed time born identity downstream
    attempt run pid parent what''')

# One request: when it began and ended, what was asked; status None: nothing,
# or too little, came back.  Of a handler's answer: run, downstream, what,
# variant (what it was asked), replayed, head and body as they are compared;
# whole: it arrived so; true: the body is one that the handler writes.
Event = collections.namedtuple('Event', '''begin end identity asked status
    code run downstream what variant replayed head body whole true''',
    defaults=(None,) * 7 + (False, None, None, True, True))

# A daemon that has a lease is stopped for so long at most, before it starts
# the run (s).
STOPPED = 5

# What is left behind of a run tries to answer, too.
LATE = ('late', 'late-said')

# The request will run without a retry; body is its status resource.
ACCEPTED = 'accepted'

# on_crash; for how many seconds a key is kept, and after them a marker of it;
# after how many a handler is ended (0: never); whether a program finds out
# what became of unknown keys; whether requests are accepted, and handlers may
# speak for themselves.
Route = collections.namedtuple('Route', '''resume keeps marker timeout asked
    later says''', defaults=(INF, 0, 0, False, False, False))

Row = collections.namedtuple('Row', 'identity state attempt downstream')

# What handlers committed themselves: rides, and effects, which are of a ride,
# as the database has them in the end; and each delivery.
Ride = collections.namedtuple('Ride', 'run downstream')
Effect = collections.namedtuple('Effect', 'key downstream state')
Delivery = collections.namedtuple('Delivery', 'key run')


def parse_ledger(text):
    lines = []
    for text_line in text.splitlines():
        (deed, time, born, key, path, user, downstream, attempt, run, pid,
         parent, what) = text_line.split(' ')
        lines.append(Line(deed, int(time) / 1000, int(born) / 1000,
                          (user, path, key), downstream, int(attempt), run,
                          int(pid), int(parent), what))
    return lines


def grouped(items, by):
    found = collections.defaultdict(list)
    for item in items:
        found[by(item)].append(item)
    return found


class Run:
    """One handler's lines."""

    def __init__(self, lines):
        self.lines = lines
        self.first = lines[0]
        self.deeds = {line.deed: line for line in lines}

    @property
    def what(self):
        return self.deeds['done'].what if 'done' in self.deeds else None

    @property
    def last_sign(self):
        """When it lived for certain, and was not settled."""
        return max(line.time for line in self.lines if line.deed not in LATE)


class Checker:
    """routes: {path: Route}; rows: the store at the end."""

    def __init__(self, lines, events, rows, routes, excuses, rides=(),
                 effects=(), deliveries=()):
        self.rides, self.effects = rides, effects
        self.deliveries = deliveries
        self.rode = {ride.run for ride in rides}
        self.lines, self.events, self.rows = lines, events, rows
        self.routes, self.excuses = routes, excuses
        self.wrong = []
        self.runs = {run: Run(of) for run, of in
                     grouped(lines, lambda x: x.run).items()}
        self.records = grouped(self.runs.values(),
                               lambda run: run.first.downstream)
        self.ran = grouped(self.runs.values(),
                           lambda run: run.first.identity)
        self.asked = grouped(events, lambda e: e.identity)
        for of in self.asked.values():
            of.sort(key=lambda e: e.begin)
        # A process that has got another request had lost none before it.
        self.went_on = {}
        for of in grouped((x for x in lines if x.deed == 'started'),
                          lambda x: x.pid).values():
            of.sort(key=lambda line: line.time)
            for line, after in zip(of, of[1:]):
                self.went_on[line.run] = after.time
        # When each run's end was seen at the latest: it is settled then.
        self.seen = {run: min(e.end for e in of) for run, of in grouped(
            (e for e in events if e.run), lambda e: e.run).items()}

    def no(self, rule, *what):
        self.wrong.append('%s: %s' % (rule, ' | '.join(map(str, what))))

    def check(self):
        """What is wrong, as lines of text."""
        for run in self.runs.values():
            self.check_run(run)
        for runs in self.records.values():
            self.check_record(runs)
        for event in self.events:
            self.check_event(event)
        self.check_answers()
        for identity, runs in self.ran.items():
            self.check_cause(identity, runs)
            self.check_anew(identity, runs)
        for identity, events in self.asked.items():
            self.check_after(events)
            self.check_not_kept(identity, events)
            self.check_accepted(identity, events)
            self.check_unknown(identity, events)
        self.check_rows()
        self.check_rides()
        self.check_effects()
        return self.wrong

    # --- what handlers did ---

    def route(self, run):
        return self.routes[run.first.identity[1]]

    def check_run(self, run):
        deeds = [line.deed for line in run.lines]
        if [d for d in deeds if d not in ('overlap',) + LATE] not in (
                ['started'], ['started', 'done'], ['started', 'acted'],
                ['started', 'acted', 'done'],
                ['started', 'acted', 'saying'],
                ['started', 'acted', 'saying', 'done'],
                ['started', 'acted', 'saying', 'said'],
                ['started', 'acted', 'saying', 'said', 'done']):
            self.no('deeds', *run.lines)
        if len({line[2:6] for line in run.lines}) != 1:
            self.no('one run, one attempt', *run.lines)

    def lost(self, run, by):
        """Whether it may have been by then, before its end was seen."""
        return self.excuses.lost(run, self.route(run).timeout,
                                 min(by, self.seen.get(run.first.run, INF)),
                                 self.went_on.get(run.first.run, INF))

    def may_be_released(self, run, by):
        if run.first.run in self.rode:
            return False    # it has answered, whatever became of it
        if run.what in RELEASED:
            return True
        route = self.route(run)
        if self.open(run, by) and route.asked and (
                'acted' not in run.deeds or self.excuses.judged_before(
                    run.first.downstream, run.deeds['acted'].time, by)):
            return True
        return route.resume and (run.what in LOST or self.lost(run, by))

    def open(self, run, by):
        """Whether the outcome of the run may be unknown."""
        return run.what in UNKNOWN | LOST or self.lost(run, by)

    def check_record(self, runs):
        """The runs of one record, in the order of the ledger."""
        if len({run.first.identity for run in runs}) != 1:
            self.no('one downstream, one identity',
                    *[run.first for run in runs])
        for before, after in zip(runs, runs[1:]):
            if after.first.attempt <= before.first.attempt:
                self.no('attempts rise', before.first, after.first)
            if not self.may_be_released(before, after.first.time):
                self.no('ran again', before.lines[-1], after.first)
        for run, after in zip(runs, runs[1:] + [None]):
            by = after.first.time if after else INF
            # What it said may be seen before it is lost.
            if run.what is None and not self.excuses.lost(
                    run, self.route(run).timeout, by,
                    self.went_on.get(run.first.run, INF)):
                self.no('ended for no reason', *run.lines)
            if 'overlap' in run.deeds and not self.may_overlap(
                    runs[0], run.first):
                self.no('overlap', runs[0].first, *run.lines)

    def may_overlap(self, before, line):
        """An operator need not wait for what was left behind."""
        return self.excuses.found_out(
            line.downstream, before.first.time, line.time)

    # --- what clients saw ---

    def check_event(self, e):
        if e.status is None:
            return
        if e.code is not None:
            if e.code not in NOT_RUN | MAY_HAVE_RUN and not (
                    e.code == ACCEPTED and self.routes[e.identity[1]].later):
                self.no('unexpected problem', e)
            return
        run = self.runs.get(e.run)
        if run is None:
            self.no('answer of a run that never was', e)
            return
        if (run.first.identity, run.first.downstream) != (
                e.identity, e.downstream):
            self.no('answer to another request', e, run.first)
        if e.status != STATUS.get(e.what) or not (
                run.what == e.what and e.what != 'said' or
                e.what == 'said' and e.run in self.rode or
                e.what == 'resolved' and e.replayed and
                self.open(run, e.end) and self.route(run).asked):
            self.no('answer that its run did not give', e, *run.lines)
        if e.what in STORED and 'acted' not in run.deeds and \
                'late' not in run.deeds:
            self.no('no run acted', e, *run.lines)
        if e.variant != e.asked and e.what != 'resolved':
            self.no('answer to another body', e)
        if not e.true:
            self.no('body is not what the handler wrote', e)
        if e.replayed and e.what not in STORED:
            self.no('replay of what is not final', e)
        if run.first.time > e.end:
            self.no('answered before it ran', e, run.first)

    def check_answers(self):
        """Of a record there is one final answer, given once and replayed."""
        seen = grouped((e for e in self.events if e.what in STORED),
                       lambda e: e.downstream)
        for downstream, events in seen.items():
            first = events[0]
            for e in events[1:]:
                if (e.status, e.run, e.head) != (
                        first.status, first.run, first.head):
                    self.no('answers differ', first, e)
            if len({e.body for e in events if e.whole}) > 1:
                self.no('bodies differ', *events)
            if len([e for e in events if not e.replayed]) > 1:
                self.no('first answer twice', *events)
            of = self.records.get(downstream)
            if of and of[-1].first.run != first.run:
                self.no('ran after its answer', first, of[-1].first)

    def check_cause(self, identity, runs):
        """Each run has a request of its own that may have run it: one that
        was there, and was not told that it ran nothing.  Of accepted ones it
        is enough that there is one, for each record."""
        events = self.asked.get(identity, [])
        if self.routes[identity[1]].later:
            runs = [of[0] for of in self.records.values()
                    if of[0].first.identity == identity]
        told = {e.run: e.begin for e in reversed(events)
                if e.run and not e.replayed}
        free = sorted((e for e in events if e.status is None or
                       e.code in MAY_HAVE_RUN | {ACCEPTED}),
                      key=lambda e: e.end if e.status else INF)
        for run in sorted(runs, key=lambda run: run.first.time):
            when = run.first.time
            if told.get(run.first.run, INF) < when + MS:
                continue
            cause = next((e for e in free if e.begin < when + MS and (
                e.end >= when or e.status in (None, 202))), None)
            if cause is None:
                self.no('ran for no request', run.first, *events)
            else:
                free.remove(cause)

    def check_accepted(self, identity, events):
        """It has one place until an operator removes it, and is run."""
        accepted = [e for e in events if e.code == ACCEPTED]
        for before, after in zip(accepted, accepted[1:]):
            if before.body != after.body and not self.excuses.forgotten(
                    identity, before.begin, after.end):
                self.no('accepted at another place', before, after)
        if accepted and identity not in self.ran and \
                not self.excuses.forgotten(identity, accepted[-1].begin, INF):
            self.no('accepted and never run', accepted[-1])

    def check_anew(self, identity, runs):
        """A record follows another one only when that has aged, or an
        operator has removed it."""
        for old, new in zip(runs, runs[1:]):
            begin, end = old.first.time, new.first.time
            if old.first.downstream == new.first.downstream or \
                    self.excuses.forgotten(identity, begin, end):
                continue
            route = self.route(old)
            if not self.may_age(old, end):
                self.no('ran anew, and was unknown', old.lines[-1], new.first)
            elif end + MS < old.last_sign + route.keeps + route.marker - \
                    self.excuses.asleep(begin, end):
                self.no('ran anew too soon', old.lines[-1], new.first)

    def may_age(self, run, by):
        return run.what in FINAL or run.first.run in self.rode or \
            self.may_be_released(run, by) or \
            self.route(run).asked and 'acted' in run.deeds

    def check_after(self, events):
        """What a client saw is what the later ones get, while it is kept."""
        finals = {}
        for e in sorted(events, key=lambda e: e.end):
            if e.what in STORED:
                finals.setdefault((e.downstream, e.replayed), e)
        for final in finals.values():
            for e in events:
                if e.begin > final.end and self.kept(final, e.end) and \
                        not self.agrees(final, e):
                    self.no('not the answer that was seen', final, e)

    def kept(self, final, end):
        """Whether a final answer was still there for certain."""
        run = self.runs.get(final.run)
        # An answer of no run is refused as such.
        return run is not None and self.is_kept(run, end)

    def is_kept(self, run, end):
        begin = run.last_sign
        return not self.excuses.forgotten(run.first.identity, begin, end) and \
            end < begin + self.route(run).keeps - \
            self.excuses.asleep(begin, end)

    @staticmethod
    def agrees(final, e):
        return e.status is None or \
            e.code in ('store-unavailable', 'overloaded') or \
            e.what in STORED and e.replayed and \
            e.downstream == final.downstream or \
            e.code == NOT_KEPT and not final.replayed or \
            e.code == 'key-reused' and e.asked != final.asked

    def check_not_kept(self, identity, events):
        """The disk had no room for it; and it stays so."""
        for e in events:
            if e.code != NOT_KEPT:
                continue
            run = max((run for run in self.ran.get(identity, []) if
                       run.what in FINAL and run.first.time < e.end),
                      key=lambda run: run.first.time, default=None)
            if run is None or not self.excuses.no_room(
                    run.first.time, e.end):
                self.no('not kept for no reason', e, run and run.first)
                continue
            for later in events:
                if later.begin > e.end and self.is_kept(run, later.end) and \
                        not self.agrees(e, later):
                    self.no('kept after all', e, later)

    def check_unknown(self, identity, events):
        """A key stays unknown until it is resolved or deleted."""
        if self.routes[identity[1]].asked:
            return
        for unknown in events:
            if unknown.code != 'outcome-unknown':
                continue
            for e in events:
                if not self.may_follow(unknown, e):
                    self.no('final and unknown' if e.what in STORED else
                            'unknown no more', unknown, e)
            for run in self.ran.get(identity, []):
                if not self.may_run_after(unknown, run.first):
                    self.no('unknown, and ran again', unknown, run.first)

    def may_follow(self, unknown, e):
        if self.excuses.forgotten(e.identity, unknown.begin, e.end) or \
                self.settled_late(unknown, e.end) or \
                self.never_started(unknown):
            return True
        if e.begin <= unknown.end:
            # At the same time, or before it.
            return e.what not in STORED or not self.kept(e, unknown.end)
        return e.code == 'outcome-unknown' or self.agrees(unknown, e)

    def may_run_after(self, unknown, line):
        return line.time <= unknown.end or \
            self.excuses.breathes_its_last(line, unknown.end) or \
            self.excuses.forgotten(line.identity, unknown.begin, line.time) \
            or self.was_suspected(line, unknown) \
            or self.settled_late(unknown, line.time) \
            or self.never_started(unknown)

    def was_suspected(self, line, unknown):
        """Whether the key may be unknown because the daemon of that run was
        suspected.  It may have been stopped just before it starts the run."""
        return line.time < unknown.end + STOPPED and self.excuses.suspected(
            line.parent, line.time - STOPPED, unknown.end)

    def settled_late(self, unknown, by):
        """Whether such a run may have ended the unknown by then, by its answer
        or its release."""
        return by >= unknown.begin and any(
            run.first.time <= by and
            self.was_suspected(run.first, unknown) and
            (run.what in FINAL or run.first.run in self.rode or
             self.may_be_released(run, by))
            for run in self.ran.get(unknown.identity, []))

    def never_started(self, unknown):
        """Whether it may be that of an attempt without a run: another host
        suspected its daemon, whose own host knows that it is dead, and what
        it had begun."""
        return self.excuses.suspected_one(
            unknown.begin - STOPPED, unknown.end) and any(
                e.run is None and e.code != 'outcome-unknown' and
                e.begin < unknown.end and e.end > unknown.begin - STOPPED and
                not self.ran_within(e)
                for e in self.asked[unknown.identity])

    def ran_within(self, e):
        return any(e.begin - MS <= run.first.time <= e.end + MS
                   for run in self.ran.get(e.identity, []))

    # --- what handlers said ---

    def check_rides(self):
        """A ride is there, with its answer, if its handler committed it, and
        once."""
        rows = {row.downstream: row for row in self.rows}
        for run in self.runs.values():
            if ('said' in run.deeds or 'late-said' in run.deeds) and \
                    run.first.run not in self.rode:
                self.no('committed and lost', *run.lines)
        for downstream, rides in grouped(
                self.rides, lambda ride: ride.downstream).items():
            run = self.runs.get(rides[0].run)
            row = rows.get(downstream)
            if len(rides) > 1:
                self.no('two rides', *rides)
            if run is None or not ({'saying', 'late'} & set(run.deeds)) or \
                    run.first.downstream != downstream:
                self.no('a ride of no run', rides)
            if row is None or row.state != 'completed':
                self.no('a ride without its answer', rides, row)
        rode = {ride.downstream: ride.run for ride in self.rides}
        for e in self.events:
            if e.what in STORED and rode.get(e.downstream, e.run) != e.run:
                self.no('not the answer that was committed', e)

    def check_effects(self):
        """Each ride has its effect, which is delivered with one key."""
        effects = grouped(self.effects, lambda e: e.downstream)
        for ride in self.rides:
            of = effects.pop(ride.downstream, [])
            if len(of) != 1:
                self.no('a ride without its effect', ride, *of)
            elif of[0].state != 'delivered':
                self.no('not delivered', ride, of[0])
            elif Delivery(of[0].key, ride.run) not in self.deliveries:
                self.no('delivered by no program', ride, of[0])
        if effects:
            self.no('an effect without its ride', *effects.values())
        keys = {(e.key, ride.run) for ride in self.rides
                for e in self.effects if e.downstream == ride.downstream}
        for delivery in self.deliveries:
            if tuple(delivery) not in keys:
                self.no('delivered, and not committed', delivery)

    # --- what the store says ---

    def check_rows(self):
        rows = {row.identity: row for row in self.rows}
        if len(rows) != len(self.rows):
            self.no('an identity twice', len(rows), len(self.rows))
        for row in self.rows:
            if row.state not in ('completed', 'failed_retryable', 'unknown',
                                 'expired', 'dead_letter'):
                self.no('stuck', row)
        for identity, runs in self.ran.items():
            last = runs[-1]
            row = rows.get(identity)
            if self.must_be_kept(last) and (
                    row is None or
                    row.downstream != last.first.downstream or
                    row.attempt < last.first.attempt):
                self.no('ran without a record', last.first, row)
            elif row and (row.downstream, row.attempt) == (
                    last.first.downstream, last.first.attempt):
                self.check_row(row, last)

    def must_be_kept(self, last):
        return not self.excuses.forgotten(
            last.first.identity, last.first.time, INF) and (
                self.route(last).keeps == INF or
                not self.may_age(last, INF))

    def check_row(self, row, last):
        """The record of a run that was its last."""
        asked = self.routes[row.identity[1]].asked
        if row.state == 'dead_letter' and not asked:
            self.no('given up', row)
        if row.state == 'completed' and last.what not in FINAL and \
                last.first.run not in self.rode and not (
                    asked and 'acted' in last.deeds):
            self.no('completed, and no run acted', row, *last.lines)
        if row.state == 'failed_retryable' and \
                not self.may_be_released(last, INF):
            self.no('released, and it ran', row, *last.lines)
        if row.state in ('unknown', 'dead_letter') and \
                last.what in FINAL | RELEASED and not self.lost(last, INF):
            self.no('unknown, and it is known', row, *last.lines)
