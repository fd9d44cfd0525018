"""A request is stopped at each place of its way, and meanwhile its client goes,
the configuration is reloaded, or the daemon is to end.

A place is one of src/oncewrap/engine.c; its fault point stops the process.
At a place that no way before has, each thing happens to a request of its own,
else one of them; each has a daemon of its own.  At the end one more daemon is
asked what became of all.
"""
import os
import pwd
import signal
import socket
import threading

import base
import fcgi
import proc
from answer import eq, problem
from base import wait_until
from clocks import library

RUN = 'ledger "$ONCE_KEY$QUERY_STRING"; status 201; echo "$ONCE_KEY"'
GATED = 'ledger "$ONCE_KEY"; gate gate; status 201; echo "$ONCE_KEY"'
LARGE = RUN + '; head -c 300000 /dev/zero'
# It leaves a process behind.
LOST = 'ledger "$ONCE_KEY"; (gate left) & kill -9 $$'
ANSWERS = '''ledger "$ONCE_KEY"
printf 'Status: 201\\n\\nanswered' | %s respond; echo Status: 500; echo'''
HEAVY = {'body': '{"a":"%s"}' % (9000000 * 'b'), 'type': 'application/json'}
RESUME = {'on_crash': 'resume', 'timeout': '1h'}

OUT = fcgi.record(fcgi.STDOUT, 1, b'Status: 201\r\n\r\nx') + \
    fcgi.record(fcgi.END, 1, bytes(8))

# What happens to a request.  After "hurry" the daemon waits for no program.
THINGS = 'close', 'reload', 'stop', 'hurry'

# Another daemon has to die for the first, and files to be lost for the second;
# see tests/crash.
ELSEWHERE = {'RECOVER', 'CANCEL'}


class Way:
    """The places of a request, PLACE or PLACE:PASSAGE, and what makes it pass
    them.

    before: it came before, and was answered; then the route has these options.
    beside: begins others, and returns their connections.  early: comes after
    the request has begun.
    """

    def __init__(self, places, handler=RUN, want=201, guarded=True, server=None,
                 before=None, beside=None, early=None, asks=None, **route):
        self.places = places.split()
        self.handler, self.want, self.guarded = handler, want, guarded
        self.server, self.route = server or {}, route
        self.before, self.beside, self.early = before, beside, early
        self.asks = asks or {}


def same(stage, key):
    """The first one of its key runs."""
    conn = stage.ask(key)
    stage.gate.wait()
    return [conn]


def another(stage, key):
    """One with another key has the only slot."""
    return same(stage, key + '.other')


def heavy(stage, key):
    """One has all memory for JSON."""
    conn = stage.ask(key + '.other')
    stage.hold.wait()
    return [conn]


def has_memory(stage):
    stage.once.wait_gauge('json_waiting', 1)
    stage.hold.open(2)


def app(stage, address):
    """An application at an address."""
    s = socket.socket(socket.AF_INET if address else socket.AF_UNIX)
    s.bind(('127.0.0.1', 0) if address else stage.t.path('app.sock'))
    s.listen(64)
    stage.t.defer(s.close)
    threading.Thread(target=answer_all, args=(s, stage.t.path('ledger')),
                     daemon=True).start()
    return 'tcp:%s:%d' % (address, s.getsockname()[1]) if address else \
        'unix:' + stage.t.path('app.sock')


def answer_all(listener, ledger):
    while True:
        try:
            conn, _ = listener.accept()
        except OSError:
            return
        with conn:
            data = b''
            while not data.endswith(fcgi.record(fcgi.STDIN, 1)):
                if not (more := conn.recv(65536)):
                    break
                data += more
            else:
                with open(ledger, 'a') as f:
                    f.write('1 -\n')
                try:
                    conn.sendall(OUT)
                except OSError:
                    pass


def kinds(stage):
    return '%s %s' % (stage.t.program('kinds.py'), stage.t.dir)


def oncectl(stage):
    return stage.t.sh(ANSWERS % stage.t.program('oncectl'))


STAY = {'protocol': 'fastcgi', 'processes': '1'}
KINDS = {'query': '201'}
WAYS = {
    'program': Way(
        'BEGIN CHECK CHECKED LOOK LOOKED DECIDE SLOT PREPARE TAKE TAKEN '
        'RESPOND SPAWN BEGIN_RUN REACH NAME SEND OUTPUT RAN JUDGE FINISHED '
        'SETTLED RESULT TELL ANSWER REPLY'),
    'user': Way('SPAWN_AS BEGIN_RUN', user=pwd.getpwuid(os.geteuid()).pw_name),
    'process': Way('SLOT START BEGIN_RUN REACH NAME SEND OUTPUT RAN', kinds,
                   asks=KINDS, **STAY),
    'address': Way('START REACH SEND OUTPUT RAN', lambda s: app(s, None)),
    'name': Way('START_NAMED REACH OUTPUT', lambda s: app(s, 'localhost')),
    'stream': Way('CHECKED SLOT SPAWN REACH SEND STREAM STREAM:2',
                  guarded=False),
    'accepted': Way('LOOK PREPARE TAKE TAKEN RESPOND SHOW REPLY', want=202,
                    server={'status_path': '/jobs'}, **{'async': 'always'}),
    'no_room': Way('RESPOND_STORE', want=503,
                   server={'status_path': '/jobs', 'max_kept': '2K'},
                   **{'async': 'always'}, asks={'body': 3000 * 'b'}),
    'replay': Way('LOOKED DECIDE FETCH RESPOND REPLY', before={}),
    'large_replay': Way('FETCH_STORE REPLY', LARGE, before={}),
    'first': Way('FIRST WAITED LOOK:2', GATED, beside=same, concurrent='wait',
                 wait_time='1h'),
    'slot': Way('SLOT:2 LOOK:2', GATED, beside=another,
                server={'workers': '1'}),
    'small_body': Way('CHECK_SMALL', asks={'body': 5000 * 'b'}),
    'large_body': Way('CHECK_LARGE CHECKED SEND', asks={'body': 400000 * 'b'}),
    'json': Way('MEMORY CHECK_LARGE:2', asks=HEAVY, beside=heavy,
                early=has_memory, server={'admin_path': '/once'}),
    'large_answer': Way('OUTPUT SPOOL SPOOL:4 FINISHED REPLY', LARGE),
    'large_refused': Way('SPOOL CLEAN REPLY', LARGE + '; exit 1', want=502),
    'resume': Way('PREPARE_FILES NAME_FILES SETTLED_FILES CLEAN', **RESUME),
    'lost': Way('RAN LEFT PAUSE LEFT:2', LOST, want=502, **RESUME),
    'stays_resume': Way('START_FILES NAME_FILES CLEAN', kinds, asks=KINDS,
                        **STAY, **RESUME),
    'reconcile': Way('PREPARE_FILES TAKE SETTLED_FILES',
                     reconcile='/bin/false', asks={'body': 400000 * 'b'}),
    'other_spec': Way('COMPARE', before={'fingerprint_headers': 'X-A'}),
    'other_spec_large': Way('COMPARE_LARGE', asks={'body': 100000 * 'b'},
                            before={'fingerprint_headers': 'X-A'}),
    'answered': Way('TELL_FILES', oncectl, share_database='yes'),
    'cut_off': Way('CHECK_STORE', want=400, asks={'body': 'x', 'length': 2}),
    'refused': Way('REFUSE REPLY', want=400, guarded=False, key='required'),
    'page': Way('REFUSE_FILES', want=400, guarded=False, key='required',
                server={'problem_pages': '/usr'},
                asks={'headers': {'Accept': 'text/html'}}),
    'operator': Way('PAGE', want=200, guarded=False,
                    server={'admin_path': '/once'},
                    asks={'path': '/once/', 'method': 'GET'}),
    'status': Way('STATUS', want=404, guarded=False,
                  server={'status_path': '/jobs'},
                  asks={'path': '/jobs/none', 'method': 'GET'}),
}


class Stage:
    def __init__(self, t, way):
        self.t, self.way = t, way
        self.gate, self.left, self.hold = map(t.gate, ('gate', 'left', 'hold'))
        handler = way.handler
        self.handler = t.sh(handler) if isinstance(handler, str) else \
            handler(self)
        holds = way.beside is heavy and {
            'LD_PRELOAD': library(t, 'hold'), 'HOLD_GATE': t.path('hold')}
        self.once = t.once(self.handler, defaults=way.route, start=False,
                           server={'durability': 'normal', **way.server},
                           env={**os.environ, **(holds or {})})
        os.mkdir(t.path('new'))
        self.new = '%s %s' % (t.program('kinds.py'), t.path('new')) if \
            handler is kinds else '/bin/false'
        self.seen = []      # (key, its answer or None)

    def ask(self, key):
        if not self.way.guarded:
            key = None
        return self.once.begin(key, **self.way.asks)

    def start(self, place=None, thing=None):
        """Another daemon, which stops at that place."""
        once = self.once
        once.env.pop('ONCEWRAP_FAULT', None)
        if place:
            once.env['ONCEWRAP_FAULT'] = 'PLACE_%s:%s:stop' % place
        once.server['drain_timeout'] = '1ms' if thing == 'hurry' else '20s'
        once.defaults['handler'] = self.handler
        once.write_conf()
        once.start()

    def ends(self):
        """The daemon was told to end, and does."""
        eq(self.once.wait(), 0)
        assert self.once.log_lines('event=stopp|stop-f')[-1].endswith(
            'event=stopped status=0'), 'it ended otherwise'
        base.check_log(self.once.log())
        for gate in self.gate, self.left, self.hold:
            gate.shut()

    def go_on(self):
        self.once.process.send_signal(signal.SIGCONT)

    def play(self, place, thing):
        """A request is stopped there, and meanwhile that happens."""
        once, way = self.once, self.way
        key = '.'.join(place + (thing,))
        self.start(place, thing)
        beside = way.beside(self, key) if way.beside else []
        conn = self.ask(key)
        if way.early:
            way.early(self)
        wait_until(lambda: proc.state(once.pid) == 'T', key)
        if thing == 'close':
            conn.close()
        elif thing == 'reload':
            once.defaults['handler'] = self.new
            once.write_conf()
            once.hup()
        else:
            once.term()
        self.go_on()
        self.gate.open(2)
        self.left.open()
        answers = [get(c) for c in beside + [conn]]
        if thing == 'reload':
            once.wait_log('event=reloaded')
        if thing == 'reload' or thing == 'stop':
            eq([a and a.status for a in answers],
               len(answers) * [way.want], key)
        if thing != 'stop' and thing != 'hurry':
            eq(once.post('').code, 'key-invalid')
            once.term()
        self.ends()
        other = key if way.beside is same else key + '.other'
        self.seen += [(key, answers.pop())] + [(other, a) for a in answers]

    def prepare(self, keys):
        """The first requests of the keys."""
        self.start()
        for key in keys:
            eq(get(self.ask(key)).status, 201)
        self.once.stop()
        self.once.defaults.update(self.way.before)

    def check(self):
        """Whether what they got is true."""
        assert len(self.t.ledger()) <= len(self.seen), self.t.ledger()
        if not self.way.guarded:
            return
        self.start()
        wait_until(lambda: not any(
            row['state'] in ('pending', 'in_progress')
            for row in self.once.ls()), 'all have ended')
        states = {row['key']: row['state'] for row in self.once.ls()}
        for key in dict(self.seen):
            runs = [line for line in self.t.ledger()
                    if line.split()[1:] == [key]]
            assert len(runs) <= 1, key
            for gate in self.gate, self.left, self.hold:
                gate.open()
            again = get(self.ask(key))
            state = states.get(key)
            self.is_right(state, again, key)
            assert state or not runs, key
            for asked, answer in self.seen:
                if asked == key and answer:
                    is_true(answer, state, again)

    def is_right(self, state, again, key):
        """A retry gets that in that state."""
        if state == 'unknown':
            problem(again, 'outcome-unknown')
        elif state == 'completed':
            eq((again.status, again.replayed), (201, 'true'), key)
        else:
            assert state in (None, 'failed_retryable'), (key, state)
            eq((again.status, again.replayed), (self.way.want, None), key)


def is_true(answer, state, again):
    """What a client was told of a key with that state."""
    if answer.status == 201:
        eq((state, answer.body), ('completed', again.body), answer)
    elif answer.status == 202 or b'"outcome":"unknown"' in answer.body:
        assert state, str(answer)
    elif answer.code in ('overloaded', 'handler-failed', 'body-incomplete',
                         'handler-not-started'):
        assert state in (None, 'failed_retryable'), (state, str(answer))
    else:
        eq(answer.code, 'key-in-progress', answer)


def get(conn):
    """Its answer, or None if there is none."""
    try:
        return conn.answer()
    except (fcgi.Closed, OSError):
        return None


def plays():
    """{way: [((place, passage), thing)]}"""
    met, found = set(), {}
    for name, way in WAYS.items():
        found[name] = []
        for place in way.places:
            place, _, n = place.partition(':')
            things = THINGS if place not in met else \
                [THINGS[len(found[name]) % len(THINGS)]]
            met.add(place)
            found[name] += [((place, n or '1'), thing) for thing in things]
    return met, found


MET, PLAYS = plays()


def test_every_place_is_in_a_way(t):
    eq(set(base.places()) - MET, ELSEWHERE)


def case(way, plays):
    def test(t):
        stage = Stage(t, way)
        if way.before is not None:
            stage.prepare(['.'.join(place + (thing,))
                           for place, thing in plays])
        for play in plays:
            stage.play(*play)
        stage.check()
    return test


for _name, _way in WAYS.items():
    globals()['test_' + _name] = case(_way, PLAYS[_name])
