"""The ride of examples/: killed at each phase, and at the mercy of its
provider; one ride, one charge, one receipt, one answer."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request

import base
import proc
import servers
from answer import DRAFT, eq, first, problem
from case import Gate
from once import Background

# Where the programs can be held: pause() in each.  In shell there is no
# transaction of the program's own, so none to be held in.
POINTS = {'ride.py': ('started', 'creating', 'ride_created', 'charging',
                      'recording', 'charged', 'answering', 'answered'),
          'ride.sh': ('started', 'creating', 'ride_created', 'charging',
                      'recording', 'charged', 'answered')}


class Rides:
    """The configuration and the programs as they are, over raw FastCGI."""

    def __init__(self, t, program, patience=20, more=()):
        self.t, self.program = t, program
        base.need('sqlite3')
        os.makedirs(t.path('cgi-bin'))
        os.makedirs(t.path('lib'))
        for name, folder in ((program, 'cgi-bin'), ('receipt.sh', 'lib')):
            shutil.copy(os.path.join(base.EXAMPLES, name), t.path(folder))
        provider = t.popen(
            [sys.executable, os.path.join(base.EXAMPLES, 'provider.py'),
             '--ledger', t.path('ledger')], 'provider.log',
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.url = provider.stdout.readline().decode().strip()
        env = dict(os.environ, PROVIDER=self.url,
                   PROVIDER_TIMEOUT=str(patience * base.SLOW),
                   PATH='%s:%s' % (base.BUILDDIR, os.environ['PATH']))
        self.once = t.once(start=False, env=env)
        self.once.write_conf(servers.example('oncewrap.conf', (
            ('/var/lib/oncewrap/oncewrap.db', self.once.database),
            ('/run/oncewrap/oncewrap.sock', self.once.socket),
            ('/usr/lib/oncewrap/', t.path('lib/'))) + tuple(more)))
        self.once.start()
        self.gate = Gate(t, 'cgi-bin/gate')

    def post(self, key, body=None, **order):
        order = dict({'to': "O'Hare", 'amount': 4200}, **order)
        return self.once.post(
            key, body or json.dumps(order), path='/cgi-bin/' + self.program,
            type='application/json', user='ann',
            params={'SCRIPT_FILENAME': self.t.path('cgi-bin', self.program)})

    # --- the provider ---

    def ask(self, path, data=None):
        with urllib.request.urlopen(self.url + path, data,
                                    base.WAIT * base.SLOW) as answer:
            return json.load(answer)

    def mood(self, *words):
        self.ask('/moods', ' '.join(words).encode())

    def charges(self):
        return self.ask('/charges')

    # --- what there is in the end ---

    def sql(self, text):
        run = self.t.run(['sqlite3', '-batch', '-json', '-cmd',
                          '.timeout 10000', self.once.database, text])
        eq(run.returncode, 0, run.stderr)
        return json.loads(run.stdout or b'[]')

    def receipts(self, key):
        try:
            lines = self.t.read('lib/receipts').decode().splitlines()
        except FileNotFoundError:
            return []
        return [line for line in lines if ' key=%s ' % key in line]

    def wait_delivered(self, key):
        def delivered():
            rows = [json.loads(line) for line in
                    self.once.ctl('outbox', 'ls', '--json').splitlines()]
            mine = [r for r in rows if r['key'] == key]
            return mine and all(r['state'] == 'delivered' for r in mine) \
                and mine
        return base.wait_until(delivered, 'the receipt of %s' % key)

    def there_is_one_of_each(self, key, answer, asked=None, **order):
        """Of the ride, its charge and its receipt; the retry's answer."""
        first(answer, 201)
        ride = answer.json()
        eq((ride['to'], ride['amount']), ("O'Hare", 4200), answer)
        eq(self.once.state(key), 'completed')
        again = self.post(key, **order)
        eq((again.status, again.replayed, again.body),
           (201, 'true', answer.body), again)
        eq(self.sql("SELECT rider, destination, amount, charge FROM ride"
                    " WHERE id = '%s'" % ride['ride']),
           [{'rider': 'ann', 'destination': "O'Hare", 'amount': 4200,
             'charge': ride['charge']}])
        charged = [c for c in self.charges() if c['key'] == ride['ride']]
        eq([c['charge'] for c in charged], [ride['charge']])
        if asked:
            eq(charged[0]['asked'], asked)
        effect, = self.wait_delivered(key)
        line, = self.receipts(key)
        assert ride['ride'] in line, line
        eq(effect['reference'].strip(),
           'receipts:%d' % (self.t.read('lib/receipts').decode()
                            .splitlines().index(line) + 1))

    def there_is_nothing_else(self, rides):
        """So many rides, charges and receipts in all, under as many names."""
        eq(len(self.sql('SELECT id FROM ride')), rides)
        eq(len(self.charges()), rides)
        lines = self.t.read('lib/receipts').decode().splitlines()
        effects = {re.search(r'effect=(\S+)', line).group(1)
                   for line in lines}
        eq((len(lines), len(effects)), (rides, rides))


def handler_killed(t, program):
    rides = Rides(t, program)
    for point in POINTS[program]:
        waiting = Background(lambda: rides.post(point, test=point))
        os.kill(rides.gate.wait(), signal.SIGKILL)
        answer = waiting.result()
        if point == 'answered':
            first(answer, 201)
        else:
            problem(answer, 'handler-failed', link=DRAFT)
            eq(rides.once.state(point), 'failed_retryable', point)
            answer = rides.post(point, test=point)
        rides.there_is_one_of_each(point, answer, test=point)
    rides.there_is_nothing_else(len(POINTS[program]))


def oncewrap_killed(t, program):
    rides = Rides(t, program)
    for point in POINTS[program]:
        conn = rides.once.begin(
            point, json.dumps({'to': "O'Hare", 'amount': 4200,
                               'test': point}),
            path='/cgi-bin/' + program, type='application/json', user='ann',
            params={'SCRIPT_FILENAME': t.path('cgi-bin', program)})
        handler = rides.gate.wait()
        rides.once.kill()
        conn.close()
        base.wait_until(lambda: not proc.alive(handler),
                        'the handler ends with oncewrap')
        rides.once.start()
        rides.once.wait_state(
            point, 'completed' if point == 'answered' else 'failed_retryable')
        answer = rides.post(point, test=point)
        if point == 'answered':
            # No client has seen the first answer.
            eq((answer.status, answer.replayed), (201, 'true'), answer)
            answer.fields.remove(('Idempotent-Replayed', 'true'))
        rides.there_is_one_of_each(point, answer, test=point)
    rides.there_is_nothing_else(len(POINTS[program]))


def test_handler_in_python_killed_at_each_point(t):
    handler_killed(t, 'ride.py')


def test_handler_in_shell_killed_at_each_point(t):
    handler_killed(t, 'ride.sh')


def test_oncewrap_killed_at_each_point_of_a_handler_in_python(t):
    oncewrap_killed(t, 'ride.py')


def test_oncewrap_killed_at_each_point_of_a_handler_in_shell(t):
    oncewrap_killed(t, 'ride.sh')


def undisturbed(t, program):
    rides = Rides(t, program)
    rides.there_is_one_of_each('k', rides.post('k'), asked=1)
    eq(rides.post('k', amount=7).status, 422)
    for order in ({'amount': 0}, {'amount': 'x'}, {'amount': 1.5}, {'to': 1}):
        key = 'bad %s' % order
        answer = rides.post('"%s"' % key.replace('"', "'"), **order)
        first(answer, 400)
    first(rides.post('deep', '[' * 100000), 400)
    rides.there_is_nothing_else(1)


def test_ride_in_python(t):
    undisturbed(t, 'ride.py')


def test_ride_in_shell(t):
    undisturbed(t, 'ride.sh')


def moods(t, program):
    """Mood, the first answer, and how often the provider was asked."""
    rides = Rides(t, program, patience=3)
    for mood, status, asked in (('fail', 503, 1), ('lost', 503, 2),
                                ('hang', 503, 2), ('twice', 201, 1)):
        rides.mood(mood)
        answer = rides.post(mood)
        first(answer, status)
        if status == 503:
            eq(rides.once.row(mood)['recovery_point'], 'ride_created', mood)
            answer = rides.post(mood)
        rides.there_is_one_of_each(mood, answer, asked)
    rides.there_is_nothing_else(4)

    rides.mood('decline')
    answer = rides.post('poor')
    first(answer, 402)
    eq(answer.json()['error'], 'card declined', answer)
    answer = rides.post('poor')
    eq((answer.status, answer.replayed), (402, 'true'), answer)
    eq((len(rides.charges()), rides.receipts('poor')), (4, []))


def test_provider_fails_loses_hangs_and_says_it_twice_in_python(t):
    moods(t, 'ride.py')


def test_provider_fails_loses_hangs_and_says_it_twice_in_shell(t):
    moods(t, 'ride.sh')


def timeout(t, program):
    """The provider hangs for longer than the route's timeout."""
    rides = Rides(t, program, more=(
        ('[route /cgi-bin/%s]\n' % program,
         '[route /cgi-bin/%s]\ntimeout = 5s\nkill_after = 5s\n' % program),))
    rides.mood('hang')
    problem(rides.post('k'), 'handler-timeout', link=DRAFT)
    eq(rides.once.state('k'), 'failed_retryable')
    rides.once.write_conf(
        t.read('once.conf').decode().replace('timeout = 5s\n', ''))
    rides.once.hup()
    rides.once.wait_log('event=reloaded')
    rides.there_is_one_of_each('k', rides.post('k'), asked=2)
    rides.there_is_nothing_else(1)


def test_handler_in_python_times_out_while_the_provider_hangs(t):
    timeout(t, 'ride.py')


def test_handler_in_shell_times_out_while_the_provider_hangs(t):
    timeout(t, 'ride.sh')


def test_next_attempt_waits_for_what_a_killed_script_left_behind(t):
    """sh is killed, its curl is not: it still waits for the provider."""
    rides = Rides(t, 'ride.sh')
    rides.mood('hang')
    waiting = Background(lambda: rides.post('k'))
    base.wait_until(rides.charges, 'the charge')
    shell, = proc.children(rides.once.pid)
    curl = proc.descendants(shell)[-1]
    os.kill(shell, signal.SIGKILL)
    base.wait_until(lambda: not proc.alive(shell), 'the shell is gone')
    assert proc.alive(curl)
    eq(rides.once.state('k'), 'in_progress')
    eq(rides.post('k').status, 409)
    rides.ask('/wake', b'')
    problem(waiting.result(), 'handler-failed', link=DRAFT)
    rides.there_is_one_of_each('k', rides.post('k'), asked=2)
    rides.there_is_nothing_else(1)


def test_receipt_killed_after_it_was_sent_is_not_sent_again(t):
    rides = Rides(t, 'ride.py')
    gate = Gate(t, 'lib/receipt')
    answer = rides.post('k')
    sender = gate.wait()
    eq(len(rides.receipts('k')), 1)
    for name in ('receipt.here', 'receipt.open'):
        os.unlink(t.path('lib', name))
    os.kill(sender, signal.SIGKILL)
    rides.there_is_one_of_each('k', answer, asked=1)
    row, = rides.wait_delivered('k')
    eq(row['attempts'], 2)
    rides.there_is_nothing_else(1)


def test_manual_has_the_program_as_it_is(t):
    """All of ride.py but what is for demonstrations, in its order."""
    with open(os.path.join(base.EXAMPLES, 'ride.py')) as f:
        program = f.read()
    program = program[program.index('import contextlib'):]
    program = re.sub(r'def pause\(.*?\n\n\n', '', program, flags=re.S)
    want = [line for line in program.splitlines()
            if line and 'pause(' not in line]
    with open(os.path.join(base.TOP, 'src', 'oncewrap-handler.7')) as f:
        manual = f.read()
    got = []
    for block in re.findall(r'\.Bd -literal\n(.*?)\.Ed', manual, re.S):
        lines = [re.sub(r'^\\&', '', line).replace('\\e', '\\')
                 for line in block.splitlines() if line]
        if lines[0] in want:
            got += lines
    eq(got, want)
