"""The aims, and how what was measured is held against them."""
import random
import statistics


class Aim:
    """of: (configuration, number); to: the configuration it is divided by.
    Without an aim it is only shown."""

    def __init__(self, name, what, sign, aim, of, to=None, unit=''):
        self.name, self.what, self.sign, self.aim = name, what, sign, aim
        self.of, self.to, self.unit = of, to, unit

    def needs(self):
        return [self.of[0]] + ([self.to] if self.to else [])

    def values(self, results, number=None):
        """One for each round in which all of it was measured."""
        name, number = self.of[0], number or self.of[1]
        found = []
        for result in results:
            if all(number in result.get(need, ()) for need in self.needs()):
                value = result[name][number]
                found.append(value / result[self.to][number] if self.to
                             else value)
        return found

    def show(self, value):
        return ('%.2f' if self.to else '%.1f') % value

    def target(self):
        if self.aim is None:
            return ''
        return '%s %s%s' % (self.sign, '%.2f' % self.aim if self.to else
                            '%g' % self.aim, self.unit)

    def verdict(self, value):
        if self.aim is None:
            return ''
        met = value >= self.aim if self.sign == '>=' else value <= self.aim
        return 'met' if met else 'not met'

    def row(self, results):
        """What, value, aim, verdict, the same by CPU: as texts."""
        values = self.values(results)
        if not values:
            return self.what, '-', self.target(), 'not measured', ''
        median = statistics.median(values)
        text = self.show(median)
        if len(values) > 1:
            text += ' (%s-%s)' % (self.show(min(values)),
                                  self.show(max(values)))
        cpu = self.values(results, 'cpu') if self.to else []
        return (self.what, text + self.unit, self.target(),
                self.verdict(median),
                '%.2f' % (1 / statistics.median(cpu)) if cpu else '')


def ratio(name, what, aim, of, to):
    return Aim(name, what, '>=', aim, (of, 'rate'), to)


def most(name, what, aim, of, number, unit):
    return Aim(name, what, '<=', aim, (of, number), None, unit)


AIMS = [
    ratio('replay', 'replay, 100,000 keys / bare libfcgi responder', 0.95,
          'once_replay', 'bare_replay'),
    ratio('first', 'first run, durable / fcgiwrap, 32 children', 1.10,
          'once_first', 'wrap_first'),
    ratio('stays-wrap', 'first run, durable, own FastCGI program, 128 '
          'connections / fcgiwrap, the same as CGI', 5.0,
          'once_stays', 'wrap_crowd'),
    ratio('stays-direct', 'the same / the same program, no keys', 0.40,
          'once_stays', 'stay_direct'),
    ratio('stays-go', 'the same / Go net/http, lock in Redis, each write '
          'synced', 1.0, 'once_stays', 'go_crowd'),
    ratio('php', 'first run, durable, php-fpm / the same php-fpm, no keys',
          0.60, 'fpm_once', 'fpm_direct'),
    ratio('pass', 'pass-through / fcgiwrap, 32 children', 1.15,
          'once_pass', 'wrap_pass'),
    ratio('slow32', 'first run, syncs take 10 ms more, 32 workers / '
          'the same without', 0.38, 'once_first_slow', 'once_first'),
    ratio('slow128', 'first run, syncs take 10 ms more, 128 workers / '
          'the same without', 0.70, 'once_first_128_slow', 'once_first_128'),
    ratio('many-replay', 'replay of any of 10,000,000 keys, 256 MB / '
          '1,000 keys', 0.80, 'many_replay', 'few_replay'),
    ratio('many-recent', 'the same, of the 100,000 newest keys', 0.80,
          'recent_replay', 'few_replay'),
    ratio('many-first', 'first run, 10,000,000 keys, 256 MB / 1,000 keys',
          0.80, 'many_first', 'few_first'),
    ratio('busy', '409 to duplicates of a running key, 100 connections / '
          'bare libfcgi responder', 0.90, 'once_busy', 'bare_busy'),
    ratio('pg-first', 'first run, PostgreSQL, own FastCGI program, 128 '
          'connections / pgbench, insert + update by key', 0.50,
          'pg_stays', 'bound_first'),
    ratio('pg-sqlite', 'the same / the same with SQLite', None,
          'pg_stays', 'once_stays'),
    ratio('pg-two', 'the same, two daemons / one', 1.0, 'pg_two', 'pg_stays'),
    ratio('pg-two', 'the same, each daemon with a quarter of a processor of '
          'its own', 1.0, 'pg_small_two', 'pg_small'),
    ratio('pg-far', 'first run, PostgreSQL, 20 ms away, 8 connections / '
          'pgbench, insert + update by key', 1.0, 'pg_far', 'bound_far'),
    ratio('pg-replay', 'replay, PostgreSQL, 100,000 keys / pgbench, select by '
          'key', 0.50, 'pg_replay', 'bound_replay'),
    ratio('pg-many', 'replay of any of 10,000,000 keys, PostgreSQL / 1,000 '
          'keys', 0.80, 'pg_many_replay', 'pg_few_replay'),
    ratio('pg-many', 'first run, 10,000,000 keys, PostgreSQL / 1,000 keys',
          0.80, 'pg_many_first', 'pg_few_first'),
    most('bytes', 'written for a lone first request, empty table', 14,
         'bytes_empty', 'kib', ' KiB'),
    most('bytes', 'written for a lone first request, 100,000 keys', 18,
         'bytes_filled', 'kib', ' KiB'),
    most('memory', 'resident, 32 workers, idle', 8, 'memory', 'idle', ' MiB'),
    most('memory', 'resident, 32 workers, after load', 16, 'memory',
         'loaded', ' MiB'),
    most('start', 'exec to the first request served, 10,000,000 keys', 20,
         'start', 'ms', ' ms'),
    most('size', 'program, stripped', 250, 'size', 'kib', ' KiB'),
]

# Side by side: what, and the configuration.
SERVERS = [
    ('replay', [('oncewrap', 'once_replay'),
                ('bare libfcgi responder', 'bare_replay'),
                ('Express, Redis', 'express_replay'),
                ('the same, no lighttpd', 'express_direct_replay')]),
    ('first run', [('oncewrap', 'once_first'),
                   ('fcgiwrap, not kept', 'wrap_first'),
                   ('lighttpd mod_cgi, not kept', 'cgi_first'),
                   ('Express, Redis', 'express_first'),
                   ('the same, no lighttpd', 'express_direct_first')]),
    ('128 connections', [('oncewrap, program stays', 'once_stays'),
                         ('the program, not kept', 'stay_direct'),
                         ('fcgiwrap, not kept', 'wrap_crowd'),
                         ('Go, Redis', 'go_crowd'),
                         ('the same, no lighttpd', 'go_direct')]),
    ('PostgreSQL', [('oncewrap, program stays', 'pg_stays'),
                    ('the same, two daemons', 'pg_two'),
                    ('one, a quarter of a processor', 'pg_small'),
                    ('two, a quarter each', 'pg_small_two'),
                    ('pgbench, insert + update', 'bound_first'),
                    ('oncewrap, replays', 'pg_replay'),
                    ('pgbench, select', 'bound_replay')]),
    ('php-fpm', [('oncewrap', 'fpm_once'),
                 ('php-fpm, not kept', 'fpm_direct')]),
    ('pass-through', [('oncewrap', 'once_pass'),
                      ('fcgiwrap', 'wrap_pass')]),
]


def wanted(name, filters):
    return not filters or any(name.startswith(f) for f in filters)


def selected(filters):
    """The aims, and the configurations that they need, each once."""
    aims = [aim for aim in AIMS if wanted(aim.name, filters)]
    configurations = []
    for aim in aims:
        configurations += aim.needs()
    if not filters or 'servers' in filters:
        for _, group in SERVERS:
            configurations += [configuration for _, configuration in group]
    return aims, list(dict.fromkeys(configurations))


def order(aims, configurations):
    """All of them: what is compared close together, in no order."""
    groups = [aim.needs() for aim in aims] + [
        [configuration] for configuration in configurations]
    random.shuffle(groups)
    for group in groups:
        random.shuffle(group)
    return list(dict.fromkeys(name for group in groups for name in group))
