"""What handlers did, what clients saw, what the store says: all must agree.

It does nothing but judge: it starts and asks nobody, so that histories can be
made up to see whether it refuses them.

An identity is (user, path, key).  A record of it is named by its downstream
key; an identity has several, one after the other, where keys expire.
"""
import collections

# How a handler's run ends, by the last word of its line (handlers/deeds.c).
FINAL = {'created', 'refused', 'said'}
RELEASED = {'busy', 'failed', 'away', 'tempfail', 'tempfail-mute',
            'not-executed'}
UNKNOWN = {'gateway', 'unsure', 'mute', 'exit'}
LOST = {'killed', 'crashed'}
STATUS = {'created': 201, 'refused': 404, 'busy': 429, 'failed': 500,
          'away': 503, 'tempfail': 503, 'not-executed': 409, 'gateway': 502,
          'unsure': 202, 'resolved': 201, 'said': 201}
# The answers of records that have come to an end.
STORED = FINAL | {'resolved'}

# Answers of oncewrap after which this request has run nothing ...
NOT_RUN = {'key-in-progress', 'outcome-unknown', 'key-reused', 'key-expired',
           'store-unavailable', 'overloaded', 'too-many-keys'}
# ... and after which it may have.
MAY_HAVE_RUN = {'handler-failed', 'handler-timeout', 'handler-not-started',
                'outcome-not-recorded'}

# How long a handler may be seen at work after its oncewrap was killed.
LAST_BREATH = 2.0

Line = collections.namedtuple('Line', '''deed time identity downstream attempt
    run pid parent what''')

# One request: when it began and ended, what was asked; status None: nothing,
# or too little, came back.  Of a handler's answer: run, downstream, what,
# variant (what it was asked), replayed, head and body as they are compared;
# whole: it arrived so; true: the body is one that the handler writes.
Event = collections.namedtuple('Event', '''begin end identity asked status
    code run downstream what variant replayed head body whole true''',
    defaults=(None,) * 7 + (False, None, None, True, True))

# What is left behind of a run tries to answer, too.
LATE = ('late', 'late-said')

# It will be run, whoever asks.
ACCEPTED = 'accepted'

# on_crash; whether keys stay as long as the history; whether a timeout can
# end a handler; whether somebody finds out what became of unknown keys;
# whether requests are accepted, and handlers may speak for themselves.
Route = collections.namedtuple('Route', '''resume stays timeout asked
    later says''', defaults=(False,) * 3)

Row = collections.namedtuple('Row', 'identity state attempt downstream')

# What handlers committed themselves: rides, and effects, which are of a ride,
# as the database has them in the end; and each delivery.
Ride = collections.namedtuple('Ride', 'run downstream')
Effect = collections.namedtuple('Effect', 'key downstream state')
Delivery = collections.namedtuple('Delivery', 'key run')


def parse_ledger(text):
    lines = []
    for text_line in text.splitlines():
        (deed, time, key, path, user, downstream, attempt, run, pid, parent,
         what) = text_line.split(' ')
        lines.append(Line(deed, int(time) / 1000, (user, path, key),
                          downstream, int(attempt), run, int(pid),
                          int(parent), what))
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


class Checker:
    """routes: {path: Route}; rows: the store at the end; deaths: {pid: when
    it was first sent a signal}."""

    def __init__(self, lines, events, rows, routes, deaths, rides=(),
                 effects=(), deliveries=()):
        self.rides, self.effects = rides, effects
        self.deliveries = deliveries
        self.rode = {ride.run for ride in rides}
        self.lines, self.events, self.rows = lines, events, rows
        self.routes, self.deaths = routes, deaths
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
        for identity, events in self.asked.items():
            self.check_count(identity, events)
            self.check_after(identity, events)
        self.check_rows()
        self.check_rides()
        self.check_effects()
        return self.wrong

    # --- what handlers did ---

    def check_run(self, run):
        deeds = [line.deed for line in run.lines]
        # A reconciler is asked, after a few ms here, while what a lost
        # handler left behind may live: its word counts, as the manual says.
        if 'overlap' in deeds and \
                not self.routes[run.first.identity[1]].asked:
            self.no('overlap', *run.lines)
        if [d for d in deeds if d not in ('overlap',) + LATE] not in (
                ['started'], ['started', 'done'], ['started', 'acted'],
                ['started', 'acted', 'done'],
                ['started', 'acted', 'saying'],
                ['started', 'acted', 'saying', 'done'],
                ['started', 'acted', 'saying', 'said'],
                ['started', 'acted', 'saying', 'said', 'done']):
            self.no('deeds', *run.lines)
        if len({line[2:5] for line in run.lines}) != 1:
            self.no('one run, one attempt', *run.lines)

    def lost(self, run):
        """Whether it may have been, whatever it meant to do."""
        if run.first.run in self.rode:
            return False
        return run.what in LOST or run.first.pid in self.deaths or \
            run.first.parent in self.deaths or \
            self.routes[run.first.identity[1]].timeout

    def may_be_released(self, run):
        if run.first.run in self.rode:
            return False    # it has answered, whatever became of it
        if run.what in RELEASED:
            return True
        route = self.routes[run.first.identity[1]]
        if route.asked and 'acted' not in run.deeds and self.open(run):
            return True
        return route.resume and self.lost(run)

    def open(self, run):
        """Whether nobody may know what became of it."""
        return run.what in UNKNOWN | {None} or self.lost(run)

    def check_record(self, runs):
        """The runs of one record, in the order of the ledger."""
        if len({run.first.identity for run in runs}) != 1:
            self.no('one downstream, one identity',
                    *[run.first for run in runs])
        for before, after in zip(runs, runs[1:]):
            if after.first.attempt <= before.first.attempt:
                self.no('attempts rise', before.first, after.first)
            if not self.may_be_released(before):
                self.no('ran again', before.lines[-1], after.first)

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
                self.open(run) and self.routes[e.identity[1]].asked):
            self.no('answer that its run did not give', e, *run.lines)
        if e.what in STORED and 'acted' not in run.deeds and \
                'late' not in run.deeds:
            self.no('nobody acted', e, *run.lines)
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

    def check_count(self, identity, events):
        """No run without a request that may have run it."""
        if self.routes[identity[1]].later:
            return
        could = [e for e in events if e.status is None or
                 e.code in MAY_HAVE_RUN or
                 (e.code is None and not e.replayed)]
        runs = self.ran[identity]
        if len(runs) > len(could):
            self.no('ran for nobody', identity, *(
                [run.first for run in runs] + could))

    def check_after(self, identity, events):
        """What a client saw is what the later ones get."""
        route = self.routes[identity[1]]
        if not route.stays:
            return
        final = min((e for e in events if e.what in STORED),
                    key=lambda e: e.end, default=None)
        unknown = min((e for e in events if e.code == 'outcome-unknown' and
                       not route.asked), key=lambda e: e.end, default=None)
        if final and unknown:
            self.no('final and unknown', final, unknown)
        for e in events:
            if e.status is None or e.code in ('store-unavailable',
                                              'overloaded'):
                continue
            if final and e.begin > final.end and not (
                    e.what in STORED and e.replayed or
                    e.code == 'key-reused' and e.asked != final.asked):
                self.no('not the answer that was seen', final, e)
            if unknown and e.begin > unknown.end and not (
                    e.code == 'outcome-unknown' or
                    e.code == 'key-reused' and e.asked != unknown.asked):
                self.no('unknown no more', unknown, e)
        if unknown:
            self.check_unknown(identity, unknown)

    def check_unknown(self, identity, unknown):
        for run in self.ran[identity]:
            first = run.first
            if first.time > unknown.end and not self.dying(first):
                self.no('unknown, and ran again', unknown, first)

    def dying(self, line):
        when = self.deaths.get(line.parent)
        return when is not None and line.time < when + LAST_BREATH

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
                self.no('a ride of nobody', rides)
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
                self.no('delivered by nobody', ride, of[0])
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
        for downstream, runs in self.records.items():
            last = runs[-1]
            if not self.routes[last.first.identity[1]].stays:
                continue
            row = rows.get(last.first.identity)
            if row is None or row.downstream != downstream or \
                    row.attempt < last.first.attempt:
                self.no('ran without a record', last.first, row)
                continue
            if row.attempt == last.first.attempt:
                self.check_row(row, last)

    def check_row(self, row, last):
        """The record of a run that was its last."""
        asked = self.routes[row.identity[1]].asked
        if row.state == 'dead_letter' and not asked:
            self.no('given up', row)
        if row.state == 'completed' and last.what not in FINAL and \
                last.first.run not in self.rode and not (
                    asked and 'acted' in last.deeds):
            self.no('completed, and nobody acted', row, *last.lines)
        if row.state == 'failed_retryable' and not self.may_be_released(last):
            self.no('released, and it ran', row, *last.lines)
        if row.state == 'unknown' and last.what in FINAL | RELEASED and \
                not self.lost(last):
            self.no('unknown, and it is known', row, *last.lines)
