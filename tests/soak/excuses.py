"""What may excuse a history, each thing with its time.

A death excuses only what lies around it: it cannot have lost a handler that
was yet to start, nor one whose end was already acted upon.
"""
import collections

# How long a handler may be seen at work after its oncewrap was killed.
LAST_BREATH = 2.0

# The ledger has whole milliseconds, rounded down.
MS = 0.001

# A process that was sent a signal, or a series of them, that may end it: sent
# is before the first, gone when a handler's was delivered, and when a daemon
# had ended.
Signal = collections.namedtuple('Signal', 'pid sent gone daemon')

# What an operator did: to an identity (forget), to a record (resolve); what
# filled the disk; or which daemon (its process) another host suspected.
Act = collections.namedtuple('Act', 'begin end what')

# The host slept for so many seconds, some time between.
Sleep = collections.namedtuple('Sleep', 'begin end seconds')


class Excuses:
    """reaper: the process that adopts what a daemon that ends leaves."""

    def __init__(self, signals=(), forgot=(), resolved=(), slept=(), full=(),
                 suspected=(), reaper=None):
        self.signals, self.slept, self.reaper = signals, slept, reaper
        self.suspicions = suspected
        self.forgot, self.resolved, self.full = forgot, resolved, full

    def died(self, pid, begin, end):
        """Whether that process may have, from begin until end."""
        return any(s.pid == pid and s.gone >= begin and s.sent < end + MS
                   for s in self.signals)

    def breathes_its_last(self, line, since=float('inf')):
        """Whether a handler's line was written when its daemon was dying,
        by a signal that was sent before since."""
        return any(s.daemon and s.sent < since and
                   s.sent < line.time + MS and
                   (line.parent == s.pid and line.time <= s.gone or
                    line.parent == self.reaper and
                    line.time < s.gone + LAST_BREATH)
                   for s in self.signals)

    def lost(self, run, timeout, end, went_on):
        """Whether a run may have been, by then, whatever it meant to do.
        went_on: when its process got its next request, and had neither died
        nor been too late."""
        first, own = run.first, min(end, went_on)
        return self.died(first.pid, first.time, own) or \
            self.died(first.parent, first.time, end) or \
            first.parent == self.reaper and self.breathes_its_last(first) or \
            timeout > 0 and own + MS >= first.born + timeout

    def forgotten(self, identity, begin, end):
        return self.in_time(self.forgot, identity, begin, end)

    def found_out(self, downstream, begin, end):
        """Whether an operator may have resolved it meanwhile."""
        return self.in_time(self.resolved, downstream, begin, end)

    def judged_before(self, downstream, acted, end):
        """Whether an operator, who looked before a run had acted, may have
        resolved that run's key: the verdict was on the attempt before."""
        return any(act.what == downstream and act.begin < acted + MS and
                   acted < act.end and act.begin < end
                   for act in self.resolved)

    def suspected(self, pid, begin, end):
        """Whether another host may have suspected that daemon meanwhile, and
        made unknown what it ran."""
        return self.in_time(self.suspicions, pid, begin, end)

    def suspected_one(self, begin, end):
        """Whether any daemon may have been suspected meanwhile."""
        return any(self.suspected(act.what, begin, end)
                   for act in self.suspicions)

    def no_room(self, begin, end):
        """Whether the disk may have been full meanwhile."""
        return self.in_time(self.full, 'disk', begin, end)

    @staticmethod
    def in_time(acts, what, begin, end):
        return any(a.what == what and a.end >= begin and a.begin < end + MS
                   for a in acts)

    def asleep(self, begin, end):
        """How long the host slept at most."""
        return sum(s.seconds for s in self.slept
                   if s.end >= begin and s.begin < end)
