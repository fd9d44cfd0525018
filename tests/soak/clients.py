"""Clients that ask again and again, and do not always wait for the answer."""
import hashlib
import random
import threading
import time

import fcgi

import history

USERS = ['u1', 'u2']
KEYS = 6            # in use at once, of a user on a path
TURN = 0.06         # how often a request moves on to a new one

# Left out of what is compared: of a replay alone, or of the clock.
VOLATILE = {'idempotent-replayed', 'idempotency-expires'}
LARGE = 600000


def draw(rng, pairs):
    return rng.choices([x for x, _ in pairs], [n for _, n in pairs])[0]


ENDS = [('created', 14), ('refused', 3), ('away', 3), ('busy', 2),
        ('failed', 2), ('tempfail', 2), ('tempfail-mute', 1),
        ('not-executed', 2), ('gateway', 1), ('unsure', 1), ('mute', 1),
        ('exit', 1), ('killed', 2), ('crashed', 1), ('left', 1)]
SAYS = [('said-mute', 3), ('said-garbage', 2), ('said-failed', 2),
        ('said-exit', 2), ('said-tempfail', 2), ('said-killed', 3)]
assert {what for what, _ in ENDS} | {'said'} == history.FINAL | \
    history.RELEASED | history.UNKNOWN | history.LOST


class Clients:
    """n threads; ask(seconds) lets them ask for so long."""

    def __init__(self, seed, n, routes):
        self.seed, self.n = seed, n
        self.paths = list(routes)
        self.large = {p for p, route in routes.items()
                      if route.keeps < history.INF}
        self.says = {p for p, route in routes.items() if route.says}
        self.addresses = []     # of the processes that can be asked
        self.events = []
        self.errors = []
        self.base = {}
        self.over = threading.Event()
        self.threads = []

    # --- what is asked ---

    def body(self, identity, variant):
        """The body of a request: the same at each retry."""
        rng = random.Random('%s %s %s' % (self.seed, identity, variant))
        words = [variant]
        attempts = rng.randint(1, 4)
        for attempt in range(attempts):
            last = attempt == attempts - 1 and rng.random() < 0.8
            ends = ENDS
            if identity[1] in self.says:
                ends = SAYS + [('created', 4)] if last else SAYS + ENDS
            words.append('%d.%d.%d.%d.%s' % (
                draw(rng, [(0, 3), (rng.randint(1, 150), 1)]),
                draw(rng, [(0, 3), (rng.randint(1, 150), 1)]),
                draw(rng, [(0, 4), (rng.randint(1, 5000), 4),
                           (LARGE * (identity[1] in self.large), 1)]),
                draw(rng, [(0, 2), (rng.randint(1, 1500), 1)]),
                'created' if last and ends is ENDS else draw(rng, ends)))
        return ' '.join(words).encode()

    def pick(self, rng):
        user, path = rng.choice(USERS), rng.choice(self.paths)
        base = self.base.get((user, path), 0)
        if rng.random() < TURN:
            self.base[user, path] = base = base + 1
        key = '%s-%d' % (path[1:], base + int(KEYS * rng.random()))
        return (user, path, key), draw(rng, [('v', 30), ('w', 1)])

    # --- asking ---

    def ask(self, identity, variant, patience, address=None):
        """One request, as an event."""
        user, path, key = identity
        body = self.body(identity, variant)
        params = fcgi.request_params('POST', path, body, key=key, user=user)
        begin = time.monotonic()
        answer = None
        try:
            address = address or random.choice(self.addresses)
            answer = fcgi.exchange(address, params, body, patience)
        except (OSError, fcgi.Closed, IndexError):
            pass        # gone, not there yet, or too slow
        except AssertionError as error:
            # It died before the whole head was sent.
            if 'no end of head' not in str(error):
                raise
        event = self.event(begin, time.monotonic(), identity, variant, answer)
        self.events.append(event)
        if event.code == history.ACCEPTED and random.random() < 0.5:
            event = self.poll(identity, variant, address,
                              answer.get('Location')) or event
        return event

    def poll(self, identity, variant, address, place):
        """What became of an accepted request, or None if it takes long."""
        until = time.monotonic() + 1
        while time.monotonic() < until and not self.over.is_set():
            begin = time.monotonic()
            try:
                answer = fcgi.exchange(address, fcgi.request_params(
                    'GET', place + '/result', user=identity[0]), b'', 5)
            except (OSError, fcgi.Closed, AssertionError):
                return None
            if answer.code not in ('not-found', 'store-unavailable'):
                # The key may have been released meanwhile, and accepted with
                # the other body: a resource has the answer of its key.
                event = self.event(begin, time.monotonic(), identity,
                                   answer.get('X-Variant') or variant, answer)
                self.events.append(event)
                return event
            time.sleep(0.05)
        return None

    @staticmethod
    def event(begin, end, identity, variant, answer):
        event = history.Event(begin, end, identity, variant, None)
        if answer is None:
            return event
        event = event._replace(status=answer.status, code=answer.code)
        name = answer.get('X-Run')
        if name is None and answer.status == 202 and answer.get('Location'):
            return event._replace(code=history.ACCEPTED,
                                  body=answer.get('Location'))
        if name is None:
            return event._replace(code=answer.code or 'none: %s' % answer)
        want = name.encode()
        size = max(0, len(answer.body) - 17)
        want += b'\n' + want * (size // 16) + want[:size % 16]
        return event._replace(
            run=name, downstream=answer.get('X-Downstream'),
            what=answer.get('X-What'), variant=answer.get('X-Variant'),
            replayed=answer.replayed == 'true', whole=not answer.broken,
            head=tuple(f for f in answer.fields
                       if f[0].lower() not in VOLATILE),
            body=hashlib.sha256(answer.body).hexdigest()[:16],
            true=answer.body == want[:len(answer.body)])

    def one(self, rng):
        """Asks, and again, until it has an answer or gives up."""
        identity, variant = self.pick(rng)
        for _ in range(rng.randint(1, 6)):
            patience = draw(rng, [(rng.uniform(0.01, 0.3), 2), (2, 3),
                                  (15, 5)])
            event = self.ask(identity, variant, patience)
            known = event.what in history.STORED or \
                event.code in ('outcome-unknown', 'key-reused')
            if known and rng.random() < 0.7 or self.over.is_set():
                return
            time.sleep(draw(rng, [(0, 1), (rng.uniform(0, 0.2), 3)]))

    def work(self, number):
        rng = random.Random('%s client %d' % (self.seed, number))
        try:
            while not self.over.is_set():
                self.one(rng)
        except Exception as error:      # noqa: told at the end
            self.errors.append('%s: %s' % (type(error).__name__, error))

    def start(self):
        self.threads = [threading.Thread(target=self.work, args=(i,),
                                         daemon=True) for i in range(self.n)]
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join(30)
            assert not thread.is_alive(), 'a client waits for ever'
        assert not self.errors, self.errors

    def each_again(self, address):
        """Every identity once more, as it was asked first."""
        first = {}
        for event in self.events:
            if event.variant == event.asked or event.identity not in first:
                first.setdefault(event.identity, event.asked)
        for identity, variant in first.items():
            self.ask(identity, variant, 15, address)
