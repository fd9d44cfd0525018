"""Histories that are made up: the checker must accept one, and refuse each
that says what must not be, for that reason and no other."""
import inspect
import re

import history
from excuses import Act, Excuses, Signal, Sleep
from history import Delivery, Effect, Event, Line, Ride, Route, Row

ROUTES = {'/unknown': Route(False),
          '/resume': Route(True),
          '/late': Route(True, timeout=0.5),
          '/asked': Route(False, asked=True),
          '/later': Route(True, later=True, says=True),
          '/short': Route(True, keeps=10),
          '/gone': Route(False, keeps=10, marker=5)}
A, B, C, D, E, F, G, H = (
    ('u', '/unknown', 'a'), ('u', '/resume', 'b'), ('u', '/unknown', 'c'),
    ('u', '/asked', 'd'), ('u', '/asked', 'e'), ('u', '/later', 'f'),
    ('u', '/short', 'g'), ('u', '/gone', 'h'))
DAEMON, HANDLER, KILLED, SPOKE, MUTE = 1, 10, 11, 12, 13     # process ids


def run(identity, name, attempt, begin, what, deeds='started acted done',
        pid=HANDLER, parent=DAEMON, downstream=None):
    return [Line(deed, begin + i / 10, begin, identity,
                 downstream or 'D' + identity[2], attempt, name, pid, parent,
                 what if deed in ('acted', 'done') else '-')
            for i, deed in enumerate(deeds.split())]


def said(identity, name, begin, what='created', replayed=False, **more):
    return Event(begin, begin + 1, identity, 'v', history.STATUS[what],
                 run=name, downstream='D' + identity[2], what=what,
                 variant='v', replayed=replayed, head='h',
                 body='b' + name)._replace(**more)


def problem(identity, code, begin, status=409, asked='v'):
    return Event(begin, begin + 1, identity, asked, status, code)


def nothing(identity, begin):
    return Event(begin, begin + 1, identity, 'v', None)


def good():
    """a: released, then answered; b: lost and resumed; c: unknown; d: found
    to have acted; e: found not to have; f: accepted, lost, and the second
    attempt answered itself and died; g: answered, and anew when it had aged; h:
    unknown, removed, and anew."""
    lines = run(A, 'a1', 1, 1, 'away', 'started done') + \
        run(A, 'a2', 2, 3, 'created') + \
        run(B, 'b1', 1, 1, '-', 'started', pid=KILLED) + \
        run(B, 'b2', 2, 5, 'created') + \
        run(C, 'c1', 1, 1, 'exit') + run(D, 'd1', 1, 1, 'mute') + \
        run(E, 'e1', 1, 1, 'crashed', 'started done') + \
        run(E, 'e2', 2, 5, 'created') + \
        run(F, 'f1', 1, 1, '-', 'started acted saying', pid=MUTE) + \
        run(F, 'f2', 2, 3, '-', 'started acted saying said', pid=SPOKE) + \
        run(G, 'g1', 1, 1, 'created') + \
        run(G, 'g2', 1, 12, 'created', downstream='D2') + \
        run(H, 'h1', 1, 1, 'exit') + \
        run(H, 'h2', 1, 12, 'created', downstream='D3')
    events = [said(A, 'a1', 1, 'away'), said(A, 'a2', 3),
              problem(A, 'key-in-progress', 3),
              said(A, 'a2', 5, replayed=True),
              problem(A, 'key-reused', 7, 422, 'w'),
              nothing(B, 1), said(B, 'b2', 5),
              problem(B, 'store-unavailable', 7, 503),
              problem(C, 'handler-failed', 1, 502),
              problem(C, 'outcome-unknown', 3),
              problem(D, 'handler-failed', 1, 502),
              problem(D, 'outcome-unknown', 3),
              said(D, 'd1', 5, 'resolved', replayed=True),
              problem(E, 'handler-failed', 1, 502),
              problem(E, 'outcome-unknown', 3), said(E, 'e2', 5),
              problem(F, 'accepted', 1, 202),
              said(F, 'f2', 4, 'said', replayed=True),
              said(F, 'f2', 6, 'said', replayed=True),
              said(G, 'g1', 1), said(G, 'g1', 5, replayed=True),
              said(G, 'g2', 12, downstream='D2'),
              problem(H, 'handler-failed', 1, 502),
              problem(H, 'outcome-unknown', 3),
              said(H, 'h2', 12, downstream='D3')]
    rows = [Row(A, 'completed', 2, 'Da'), Row(B, 'completed', 2, 'Db'),
            Row(C, 'unknown', 1, 'Dc'), Row(D, 'completed', 1, 'Dd'),
            Row(E, 'completed', 2, 'De'), Row(F, 'completed', 2, 'Df'),
            Row(G, 'completed', 1, 'D2'), Row(H, 'completed', 1, 'D3')]
    return dict(lines=lines, events=events, rows=rows, routes=ROUTES,
                signals=[Signal(KILLED, 2, 2, False),
                         Signal(MUTE, 2, 2, False),
                         Signal(SPOKE, 4, 4, False)],
                forgot=[Act(8, 9, H)], resolved=[], slept=[], full=[],
                suspected=[],
                rides=[Ride('f2', 'Df')],
                effects=[Effect('k', 'Df', 'delivered')],
                deliveries={Delivery('k', 'f2')})


def verdict(made, more=()):
    """The rules that are broken, with the deaths that are in more."""
    made = dict(made)
    excuses = Excuses(made.pop('signals') + list(more), made.pop('forgot'),
                      made.pop('resolved'), made.pop('slept'),
                      made.pop('full'), made.pop('suspected'), reaper=99)
    wrong = history.Checker(excuses=excuses, **made).check()
    return sorted({w.partition(':')[0] for w in wrong}), wrong


def all_die(begin, end):
    """Every process of a history was sent signals then."""
    return [Signal(pid, begin, end, pid == DAEMON)
            for pid in (DAEMON, HANDLER, KILLED, SPOKE, MUTE)]


# Before all that happened, and after it: neither excuses anything.
DEATHS = {'with no more deaths': [], 'with an earlier death':
          all_die(-4, -3.9), 'with a later death': all_die(100, 100.1)}


def expect(made, *rules):
    for when, deaths in DEATHS.items():
        broken, wrong = verdict(made, deaths)
        assert broken == sorted(rules), '%s: %r instead of %r: %r' % (
            when, broken, sorted(rules), wrong)


def test_agreeing_is_accepted(t):
    expect(good())


def test_every_rule_has_its_history(t):
    """And none is left without: what is never refused may be dead."""
    rules = set(re.findall(r"self\.no\(\s*'([^']+)'", inspect.getsource(
        history))) | {'final and unknown', 'unknown no more'}
    refused = {rule for _, rules, *_ in REFUSED + EXCUSED
               for rule in rules.split('; ')}
    assert rules == refused, rules ^ refused


def replaced(items, old, new):
    assert old in items
    return [new if item == old else item for item in items]


def refuse(rules, change):
    def case(t):
        made = good()
        change(made)
        expect(made, *rules.split('; '))
    return case


def excused(rules, change, excuse, *no_excuses):
    """Only that excuse is one."""
    def case(t):
        for offered in ({},) + no_excuses:
            made = good()
            change(made)
            for kind, items in offered.items():
                made[kind] += items
            expect(made, *rules.split('; '))
        made = good()
        change(made)
        for kind, items in excuse.items():
            made[kind] += items
        expect(made)
    return case


def more_lines(*lines):
    return lambda made: made['lines'].extend(lines)


def more_events(*events):
    return lambda made: made['events'].extend(events)


def row(identity, **more):
    def change(made):
        made['rows'] = [r._replace(**more) if r.identity == identity else r
                        for r in made['rows']]
    return change


def answer(name, when, **more):
    def change(made):
        made['events'] = [
            e._replace(**more) if (e.run, e.begin) == (name, when) else e
            for e in made['events']]
    return change


def without(deed, name):
    def change(made):
        made['lines'] = [x for x in made['lines']
                         if (x.deed, x.run) != (deed, name)]
    return change


def made_of(**parts):
    return lambda made: made.update(parts)


def both(*changes):
    def change(made):
        for each in changes:
            each(made)
    return change


def undead(made):
    made['signals'].clear()


def added(rows, lines, *events):
    def change(made):
        made['rows'] += rows
        made['lines'] += lines
        made['events'] += events
    return change


def again(path, what='created', second=5, deeds='started acted done', begin=1,
          pid=20, parent=21):
    """n: run twice, each time for a client that did not wait."""
    n = ('u', path, 'n')
    return added([Row(n, 'completed', 2, 'Dn')],
                 run(n, 'n1', 1, begin, what, deeds, pid, parent) +
                 run(n, 'n2', 2, second, 'created'),
                 nothing(n, 0.5), nothing(n, 0.6))


def stays(path, when, second=5):
    """n, run twice, and its first process got p's request meanwhile."""
    return both(again(path, second=second), added(
        [Row(P, 'completed', 1, 'Dp')],
        run(P, 'p1', 1, when, 'created', pid=20, parent=21),
        nothing(P, when - 0.5)))


def large(*events):
    """n: answered, and the answer was not kept."""
    n = ('u', '/short', 'n')
    return added([Row(n, 'completed', 1, 'Dn')], run(n, 'n1', 1, 1, 'created'),
                 said(n, 'n1', 1), problem(n, 'response-not-kept', 5, 410),
                 *events)


def runs_of(identity, name, *lines):
    """These instead."""
    def change(made):
        made['lines'] = [x for x in made['lines'] if x.run != name]
        at = [i for i, x in enumerate(made['lines'])
              if x.identity == identity]
        made['lines'][at[0]:at[0]] = lines
    return change


def late(identity, name, attempt, born):
    return [Line(deed, 9, born, identity, 'D' + identity[2], attempt, name, 30,
                 99, '-') for deed in history.LATE]


def sooner(made):
    """g, anew while it is kept."""
    made['lines'] = [x._replace(time=x.time - 3, born=x.born - 3)
                     if x.run == 'g2' else x for x in made['lines']]
    answer('g2', 12, begin=9, end=11.5)(made)


N, P, R = ('u', '/unknown', 'n'), ('u', '/unknown', 'p'), ('u', '/resume', 'n')

# Name; the rules that it breaks, and no others; what is changed.
REFUSED = [
    ('a_run_after_a_final_one', 'ran again', again('/unknown')),
    ('a_run_after_its_answer', 'ran after its answer', both(
        again('/resume'), more_events(said(R, 'n1', 1)),
        lambda made: made['signals'].append(Signal(20, 1.5, 1.6, False)))),
    ('a_run_of_a_handler_that_died_after_its_answer',
     'ran after its answer; ran again', both(
         again('/resume'), more_events(said(R, 'n1', 1)),
         lambda made: made['signals'].append(Signal(20, 3, 3.1, False)))),
    ('an_attempt_twice', 'attempts rise', added(
        [Row(N, 'completed', 1, 'Dn')],
        run(N, 'n1', 1, 1, 'away', 'started done') +
        run(N, 'n2', 1, 5, 'created'), nothing(N, 1), nothing(N, 5))),
    ('a_lost_run_again_under_unknown', 'ran again', both(
        again('/unknown', '-', deeds='started', pid=14),
        lambda made: made['signals'].append(Signal(14, 2, 2, False)))),
    ('a_run_again_that_was_not_killed', 'ended for no reason; ran again',
     undead),
    ('a_run_again_before_its_timeout', 'ran again',
     again('/late', second=1.4)),
    ('a_timeout_in_a_process_that_went_on', 'ran again',
     stays('/late', 1.3)),
    ('a_run_that_acts_twice', 'deeds',
     more_lines(Line('acted', 9, 3, A, 'Da', 2, 'a2', HANDLER, DAEMON,
                     'created'))),
    ('a_run_of_two_attempts', 'one run, one attempt',
     more_lines(Line('late', 9, 3, A, 'Da', 3, 'a2', HANDLER, DAEMON, '-'))),
    ('processes_of_two_attempts', 'overlap',
     more_lines(Line('overlap', 9, 3, A, 'Da', 2, 'a2', HANDLER, DAEMON,
                     '-'))),
    ('one_downstream_key_for_two', 'one downstream, one identity', added(
        [Row(N, 'failed_retryable', 1, 'Dn'), Row(P, 'completed', 2, 'Dn')],
        run(N, 'n1', 1, 1, 'away', 'started done') +
        run(P, 'p1', 2, 5, 'created', downstream='Dn'),
        nothing(N, 1), nothing(P, 5))),
    ('other_fields_at_a_replay', 'answers differ', answer('a2', 5, head='i')),
    ('another_body_at_a_replay', 'bodies differ', answer('a2', 5, body='x')),
    ('another_run_at_a_replay', 'answer to another request; answers differ',
     answer('a2', 5, run='b2')),
    ('a_body_that_no_handler_wrote', 'body is not what the handler wrote',
     answer('a2', 5, true=False)),
    ('a_first_answer_twice', 'first answer twice',
     more_events(said(A, 'a2', 3))),
    ('a_first_answer_after_the_answer',
     'first answer twice; not the answer that was seen',
     answer('a2', 5, replayed=False)),
    ('a_replay_of_a_release', 'replay of what is not final',
     both(answer('a1', 1, replayed=True), more_events(nothing(A, 1)))),
    ('an_answer_of_no_run', 'answer of a run that never was',
     more_events(said(A, 'a9', 2, 'away'))),
    ('an_answer_to_another_client', 'answer to another request',
     more_events(said(B, 'a1', 1, 'away'))),
    ('an_answer_to_another_body',
     'answer to another body; not the answer that was seen',
     answer('a2', 5, asked='w')),
    ('an_answer_that_came_too_soon', 'answered before it ran',
     answer('b2', 5, begin=4, end=4.5)),
    ('an_answer_that_was_not_given', 'answer that its run did not give',
     answer('a1', 1, status=429, what='busy')),
    ('an_answer_though_no_run_acted', 'no run acted', without('acted', 'a2')),
    ('a_conflict_after_the_answer', 'not the answer that was seen',
     more_events(problem(A, 'key-in-progress', 9))),
    ('a_mismatch_for_the_same_body', 'not the answer that was seen',
     more_events(problem(A, 'key-reused', 9, 422))),
    ('a_conflict_while_the_answer_is_kept', 'not the answer that was seen',
     more_events(problem(G, 'key-in-progress', 7))),
    ('a_kept_answer_that_is_kept_no_more', 'not the answer that was seen',
     both(large(said(('u', '/short', 'n'), 'n1', 3, replayed=True)),
          lambda made: made['full'].append(Act(1, 2, 'disk')))),
    ('an_answer_that_was_not_kept', 'kept after all',
     both(large(said(('u', '/short', 'n'), 'n1', 7, replayed=True)),
          lambda made: made['full'].append(Act(1, 2, 'disk')))),
    ('unknown_beside_the_answer', 'final and unknown',
     more_events(problem(A, 'outcome-unknown', 3.5))),
    ('unknown_after_the_answer',
     'final and unknown; not the answer that was seen',
     more_events(problem(A, 'outcome-unknown', 9))),
    ('an_answer_after_unknown', 'unknown no more',
     more_events(problem(C, 'key-in-progress', 9))),
    ('an_answer_after_unknown_of_what_ages', 'unknown no more',
     more_events(problem(H, 'key-expired', 5, 410))),
    ('a_run_after_unknown', 'unknown, and ran again', both(
        again('/resume'), more_events(problem(R, 'outcome-unknown', 2)),
        lambda made: made['signals'].append(Signal(20, 1.5, 1.6, False)))),
    ('a_run_of_a_daemon_that_died_after_unknown', 'unknown, and ran again',
     both(more_events(nothing(N, 0.5), problem(N, 'outcome-unknown', 1)),
          added([Row(N, 'unknown', 1, 'Dn')],
                run(N, 'n1', 1, 3, '-', 'started', parent=99)),
          lambda made: made['signals'].append(Signal(21, 2.5, 2.6, True)))),
    ('a_run_for_one_that_got_503', 'ran for no request',
     lambda made: made.update(events=replaced(
         made['events'], nothing(B, 1),
         problem(B, 'store-unavailable', 1, 503)))),
    ('a_run_for_one_that_came_later', 'ran for no request',
     lambda made: made.update(events=replaced(
         made['events'], nothing(B, 1), nothing(B, 2)))),
    ('a_run_for_one_that_was_answered_before', 'ran for no request',
     lambda made: made.update(events=replaced(
         made['events'], nothing(B, 1),
         problem(B, 'handler-failed', -1, 502)))),
    ('a_problem_of_another_kind', 'unexpected problem',
     more_events(problem(A, 'key-invalid', 0, 400))),
    ('found_without_a_verdict', 'answer that its run did not give', added(
        [Row(N, 'unknown', 1, 'Dn')], run(N, 'n1', 1, 1, 'exit'),
        nothing(N, 1), said(N, 'n1', 5, 'resolved', replayed=True))),
    ('a_run_that_acted_found_not_to_have', 'ran again',
     runs_of(E, 'e1', *run(E, 'e1', 1, 1, 'crashed'))),
    ('a_finding_that_is_not_kept', 'not the answer that was seen',
     more_events(problem(D, 'outcome-unknown', 9))),
    ('a_run_anew_before_it_had_aged', 'ran anew too soon', sooner),
    ('a_run_anew_of_what_is_kept', 'ran anew too soon', both(
        added([Row(N, 'completed', 1, 'D4')],
              run(N, 'n1', 1, 1, 'created') +
              run(N, 'n2', 1, 5, 'created', downstream='D4'),
              nothing(N, 1), nothing(N, 5)))),
    ('a_run_anew_of_what_was_unknown', 'ran anew, and was unknown', added(
        [Row(('u', '/gone', 'n'), 'completed', 1, 'D4')],
        run(('u', '/gone', 'n'), 'n1', 1, 1, 'exit') +
        run(('u', '/gone', 'n'), 'n2', 1, 40, 'created', downstream='D4'),
        nothing(('u', '/gone', 'n'), 1), nothing(('u', '/gone', 'n'), 40))),
    ('given_up_without_a_verdict', 'given up', row(C, state='dead_letter')),
    ('a_key_in_progress_at_the_end', 'stuck', row(B, state='in_progress')),
    ('a_run_that_is_not_recorded', 'ran without a record',
     lambda made: made['rows'].pop(0)),
    ('an_unknown_run_that_has_aged', 'ran without a record', added(
        [], run(('u', '/gone', 'n'), 'n1', 1, 1, 'exit'),
        nothing(('u', '/gone', 'n'), 1))),
    ('an_attempt_that_is_not_recorded', 'ran without a record',
     row(A, attempt=1)),
    ('another_downstream_key_in_the_store', 'ran without a record',
     row(A, downstream='X')),
    ('completed_without_a_run', 'completed, and no run acted',
     row(C, state='completed')),
    ('completed_without_a_run_and_to_age', 'completed, and no run acted', added(
        [Row(('u', '/gone', 'n'), 'completed', 1, 'Dn')],
        run(('u', '/gone', 'n'), 'n1', 1, 1, 'exit'),
        nothing(('u', '/gone', 'n'), 1))),
    ('released_after_it_acted', 'released, and it ran',
     row(A, state='failed_retryable')),
    ('unknown_after_it_was_answered', 'unknown, and it is known',
     row(A, state='unknown')),
    ('given_up_after_it_was_answered', 'unknown, and it is known',
     row(E, state='dead_letter')),
    ('an_accepted_request_that_was_not_to_be', 'unexpected problem',
     more_events(problem(A, 'accepted', 0, 202))),
    ('an_accepted_request_that_is_another_then', 'accepted at another place',
     more_events(problem(F, 'accepted', 2, 202)._replace(body='/jobs/2'))),
    ('an_accepted_request_that_is_forgotten', 'accepted and never run',
     more_events(problem(('u', '/later', 'i'), 'accepted', 1, 202))),
    ('accepted_after_the_answer', 'not the answer that was seen',
     more_events(problem(F, 'accepted', 9, 202))),
    ('a_run_after_one_that_had_answered', 'ran after its answer; ran again',
     both(row(F, attempt=3), more_lines(*run(F, 'f3', 3, 9, 'created')))),
    ('a_transaction_that_is_lost', 'answer that its run did not give; '
     'committed and lost; completed, and no run acted',
     made_of(rides=[], effects=[], deliveries=set())),
    ('a_transaction_of_what_was_left_that_is_lost', 'committed and lost',
     more_lines(*late(A, 'a2', 2, 3))),
    ('a_ride_of_what_was_superseded', 'a ride without its effect; '
     'not the answer that was committed; ran again; two rides', both(
         more_lines(*late(F, 'f1', 1, 1)),
         made_of(rides=[Ride('f2', 'Df'), Ride('f1', 'Df')]))),
    ('an_answer_without_its_ride', 'an effect without its ride; '
     'answer that its run did not give; committed and lost; '
     'completed, and no run acted; delivered, and not committed',
     made_of(rides=[])),
    ('a_ride_of_another_key', 'a ride of no run; a ride without its effect',
     made_of(rides=[Ride('a2', 'Da'), Ride('f2', 'Df')])),
    ('a_ride_that_is_unknown', 'a ride without its answer',
     row(F, state='unknown')),
    ('a_ride_that_is_released',
     'a ride without its answer; released, and it ran',
     row(F, state='failed_retryable')),
    ('an_answer_beside_what_was_committed', 'answer that its run did not '
     'give; answers differ; not the answer that was committed; '
     'ran after its answer', answer('f2', 4, run='f1')),
    ('a_ride_without_its_effect', 'a ride without its effect',
     made_of(effects=[], deliveries=set())),
    ('an_effect_twice', 'a ride without its effect',
     made_of(effects=[Effect('k', 'Df', 'delivered'),
                      Effect('l', 'Df', 'delivered')])),
    ('an_effect_without_its_ride', 'an effect without its ride',
     made_of(effects=[Effect('k', 'Df', 'delivered'),
                      Effect('l', 'Da', 'delivered')])),
    ('an_effect_that_waits_for_ever', 'not delivered',
     made_of(effects=[Effect('k', 'Df', 'pending')])),
    ('an_effect_that_no_program_delivered', 'delivered by no program',
     made_of(deliveries=set())),
    ('an_effect_with_two_keys', 'delivered, and not committed',
     made_of(deliveries={Delivery('k', 'f2'), Delivery('l', 'f2')})),
    ('an_effect_that_was_rolled_back', 'delivered, and not committed',
     made_of(deliveries={Delivery('k', 'f2'), Delivery('m', 'f1')})),
    ('an_identity_with_two_records', 'an identity twice',
     lambda made: made['rows'].append(made['rows'][0])),
]


def signal(pid, sent, gone, daemon=False):
    return {'signals': [Signal(pid, sent, gone, daemon)]}


def breath(made):
    """n: seen unknown, and at work then; its daemon was gone at its start."""
    more_events(nothing(N, 0.5), problem(N, 'outcome-unknown', 1))(made)
    added([Row(N, 'unknown', 1, 'Dn')],
          run(N, 'n1', 1, 3, '-', 'started', pid=20, parent=99))(made)


def overlapping(made):
    """n: told not to have acted, and run beside what it had left."""
    again('/asked', 'mute', deeds='started done')(made)
    second = [x for x in made['lines'] if x.run == 'n2']
    runs_of(('u', '/asked', 'n'), 'n2')(made)
    more_lines(second[0]._replace(deed='overlap'), *second)(made)


# ... changed so, it breaks these rules, unless there is that excuse; all that
# follow are none.
EXCUSED = [
    ('a_handler_that_was_killed', 'ran again', again('/resume'),
     signal(20, 3, 3.1), signal(20, 0.5, 0.6), signal(20, 5.5, 5.6),
     signal(22, 3, 3.1)),
    ('a_process_that_stays_and_was_killed', 'ran again', stays('/resume', 3),
     signal(20, 2, 2.1), signal(20, 3.5, 3.6), signal(22, 2, 2.1)),
    ('a_daemon_whose_process_went_on', 'ran again', stays('/resume', 3),
     signal(21, 3.5, 3.6, True), signal(21, 5.5, 5.6, True)),
    ('a_daemon_that_was_killed', 'ran again', again('/resume'),
     signal(21, 3, 3.1, True), signal(21, 0.5, 0.6, True),
     signal(21, 5.5, 5.6, True), signal(22, 3, 3.1, True)),
    ('a_daemon_that_ended_slowly', 'ran again', again('/resume'),
     signal(21, 0.2, 1.5, True), signal(21, 0.2, 0.9, True)),
    ('a_daemon_that_was_gone', 'ran again', again('/resume', parent=99),
     signal(21, 0.8, 0.9, True), signal(21, 0.8, 0.9),
     signal(21, -5, -4, True), signal(21, 3, 3.1, True)),
    ('a_last_breath', 'ended for no reason; unknown, and ran again', breath,
     signal(21, 1.5, 1.6, True), signal(21, 5, 5.1, True),
     signal(21, 0.1, 0.2, True), signal(21, 1.5, 1.6)),
    ('a_resolution', 'overlap', overlapping,
     {'resolved': [Act(3, 4, 'Dn')]}, {'resolved': [Act(6, 7, 'Dn')]},
     {'resolved': [Act(0.1, 0.2, 'Dn')]}, {'resolved': [Act(3, 4, 'Dd')]}),
    ('a_verdict_on_the_attempt_before', 'ran again', again('/asked', 'mute'),
     {'resolved': [Act(0.5, 4, 'Dn')]}, {'resolved': [Act(3.5, 4, 'Dn')]},
     {'resolved': [Act(0.1, 0.2, 'Dn')]}, {'resolved': [Act(0.5, 4, 'Dd')]}),
    ('a_removal', 'final and unknown; ran anew, and was unknown; '
     'unknown, and ran again', lambda made: made['forgot'].clear(),
     {'forgot': [Act(8, 9, H)]}, {'forgot': [Act(30, 31, H)]},
     {'forgot': [Act(0.1, 0.2, H)]}, {'forgot': [Act(8, 9, G)]}),
    ('a_removal_of_an_answer', 'not the answer that was seen',
     more_events(problem(G, 'key-in-progress', 7)),
     {'forgot': [Act(6, 6.5, G)]}, {'forgot': [Act(9, 10, G)]},
     {'forgot': [Act(0.1, 0.2, G)]}, {'forgot': [Act(6, 6.5, H)]}),
    ('a_sleep', 'ran anew too soon', sooner,
     {'slept': [Sleep(3, 3.1, 4)]}, {'slept': [Sleep(0.1, 0.2, 4)]},
     {'slept': [Sleep(20, 21, 4)]}, {'slept': [Sleep(3, 3.1, 1)]}),
    ('a_suspicion', 'final and unknown', added(
        [Row(N, 'completed', 1, 'Dn')],
        run(N, 'n1', 1, 1, 'created', pid=20, parent=21), nothing(N, 0.5),
        problem(N, 'outcome-unknown', 3), said(N, 'n1', 5, replayed=True)),
     {'suspected': [Act(2, 2.5, 21)]}, {'suspected': [Act(6, 7, 21)]},
     {'suspected': [Act(2, 2.5, 22)]}, {'suspected': [Act(-9, -8, 21)]}),
    ('a_suspicion_of_what_was_released', 'unknown, and ran again', both(
        again('/resume', 'away', deeds='started done'),
        more_events(problem(R, 'outcome-unknown', 2))),
     {'suspected': [Act(1.5, 1.6, 21)]}, {'suspected': [Act(6, 7, 21)]},
     {'suspected': [Act(1.5, 1.6, 22)]}),
    ('a_suspicion_of_what_never_started',
     'final and unknown; unknown, and ran again', added(
         [Row(N, 'completed', 1, 'Dn')],
         run(N, 'n1', 1, 4, 'created', pid=20, parent=21),
         nothing(N, 0.5), problem(N, 'outcome-unknown', 2),
         said(N, 'n1', 4)),
     {'suspected': [Act(1.5, 1.6, 22)]}, {'suspected': [Act(6, 7, 22)]},
     {'suspected': [Act(-9, -8, 22)]}),
    ('a_full_disk', 'not kept for no reason', large(),
     {'full': [Act(0.5, 1.5, 'disk')]}, {'full': [Act(0.1, 0.2, 'disk')]},
     {'full': [Act(7, 8, 'disk')]}),
    ('a_sleep_until_it_aged', 'not the answer that was seen',
     more_events(problem(G, 'key-in-progress', 7)),
     {'slept': [Sleep(3, 3.1, 4)]}, {'slept': [Sleep(0.1, 0.2, 4)]},
     {'slept': [Sleep(8.5, 9, 4)]}, {'slept': [Sleep(3, 3.1, 1)]}),
]


def test_a_timeout_that_had_come_is_accepted(t):
    made = good()
    again('/late', second=1.6)(made)
    expect(made)


def cases():
    return [('history.' + function.__name__[5:], function)
            for function in (test_agreeing_is_accepted,
                             test_every_rule_has_its_history,
                             test_a_timeout_that_had_come_is_accepted)] + \
        [('history.refused.' + name, refuse(rules, change))
         for name, rules, change in REFUSED] + \
        [('history.excused.' + name, excused(*of)) for name, *of in EXCUSED]
