"""Histories that are made up: the checker must accept one, and refuse each
that says what must not be."""
import history
from history import Delivery, Effect, Event, Line, Ride, Route, Row

ROUTES = {'/unknown': Route(False, True, False),
          '/resume': Route(True, True, False),
          '/asked': Route(False, True, False, True),
          '/later': Route(True, True, False, later=True, says=True)}
A, B, C, D, E, F = (('u', '/unknown', 'a'), ('u', '/resume', 'b'),
                 ('u', '/unknown', 'c'), ('u', '/asked', 'd'),
                 ('u', '/asked', 'e'),
                    ('u', '/later', 'f'))


def run(identity, name, attempt, begin, what, deeds='started acted done',
        pid=10, parent=1, downstream=None):
    return [Line(deed, begin + i / 10, identity,
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
    attempt answered itself and died."""
    lines = run(A, 'a1', 1, 1, 'away', 'started done') + \
        run(A, 'a2', 2, 3, 'created') + \
        run(B, 'b1', 1, 1, '-', 'started', pid=11) + \
        run(B, 'b2', 2, 5, 'created') + \
        run(C, 'c1', 1, 1, 'exit') + run(D, 'd1', 1, 1, 'mute') + \
        run(E, 'e1', 1, 1, 'crashed', 'started done') + \
        run(E, 'e2', 2, 5, 'created') + \
        run(F, 'f1', 1, 1, '-', 'started acted saying', pid=11) + \
        run(F, 'f2', 2, 3, '-', 'started acted saying said', pid=12)
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
              said(F, 'f2', 6, 'said', replayed=True)]
    rows = [Row(A, 'completed', 2, 'Da'), Row(B, 'completed', 2, 'Db'),
            Row(C, 'unknown', 1, 'Dc'), Row(D, 'completed', 1, 'Dd'),
            Row(E, 'completed', 2, 'De'), Row(F, 'completed', 2, 'Df')]
    return dict(lines=lines, events=events, rows=rows, routes=ROUTES,
                deaths={11: 2.0}, rides=[Ride('f2', 'Df')],
                effects=[Effect('k', 'Df', 'delivered')],
                deliveries={Delivery('k', 'f2')})


def verdict(made):
    return history.Checker(**made).check()


def test_agreeing_is_accepted(t):
    assert verdict(good()) == [], verdict(good())


def replaced(items, old, new):
    assert old in items
    return [new if item == old else item for item in items]


def refuse(rule, change):
    def case(t):
        made = good()
        change(made)
        wrong = verdict(made)
        assert any(w.startswith(rule + ':') for w in wrong), \
            'not refused as "%s": %r' % (rule, wrong)
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


def answer(name, begin, **more):
    def change(made):
        made['events'] = [
            e._replace(**more) if (e.run, e.begin) == (name, begin) else e
            for e in made['events']]
    return change


def without(deed, name):
    def change(made):
        made['lines'] = [x for x in made['lines']
                         if (x.deed, x.run) != (deed, name)]
    return change


def made_of(**parts):
    return lambda made: made.update(parts)


def undead(made):
    made['deaths'].clear()


REFUSED = [
    ('a_run_after_a_final_one', 'ran again',
     more_lines(*run(A, 'a3', 3, 9, 'created'))),
    ('a_run_after_its_answer', 'ran after its answer',
     more_lines(*run(A, 'a3', 3, 9, 'created'))),
    ('an_attempt_twice', 'attempts rise',
     more_lines(*run(A, 'a3', 2, 9, 'created'))),
    ('a_lost_run_again_under_unknown', 'ran again',
     more_lines(*run(C, 'c2', 2, 1.5, 'created'))),
    ('a_run_again_that_nobody_killed', 'ran again', undead),
    ('a_run_that_acts_twice', 'deeds',
     more_lines(Line('acted', 9, A, 'Da', 2, 'a2', 10, 1, 'created'))),
    ('processes_of_two_attempts', 'overlap',
     more_lines(Line('overlap', 9, A, 'Da', 2, 'a2', 10, 1, '-'))),
    ('one_downstream_key_for_two', 'one downstream, one identity',
     more_lines(*run(C, 'c2', 3, 9, 'created', downstream='Da'))),
    ('other_fields_at_a_replay', 'answers differ', answer('a2', 5, head='i')),
    ('another_body_at_a_replay', 'bodies differ', answer('a2', 5, body='x')),
    ('another_run_at_a_replay', 'answers differ', answer('a2', 5, run='b2')),
    ('a_body_that_nobody_wrote', 'body is not what the handler wrote',
     answer('a2', 5, true=False)),
    ('a_first_answer_twice', 'first answer twice',
     answer('a2', 5, replayed=False)),
    ('a_replay_of_a_release', 'replay of what is not final',
     answer('a1', 1, replayed=True)),
    ('an_answer_of_no_run', 'answer of a run that never was',
     more_events(said(A, 'a9', 9))),
    ('an_answer_to_somebody_else', 'answer to another request',
     more_events(said(B, 'a2', 9))),
    ('an_answer_to_another_body', 'answer to another body',
     answer('a2', 5, asked='w')),
    ('an_answer_that_came_too_soon', 'answered before it ran',
     answer('b2', 5, end=4.5)),
    ('an_answer_that_was_not_given', 'answer that its run did not give',
     answer('a2', 3, status=404, what='refused')),
    ('an_answer_though_nobody_acted', 'nobody acted', without('acted', 'a2')),
    ('a_conflict_after_the_answer', 'not the answer that was seen',
     more_events(problem(A, 'key-in-progress', 9))),
    ('a_mismatch_for_the_same_body', 'not the answer that was seen',
     more_events(problem(A, 'key-reused', 9, 422))),
    ('unknown_after_the_answer', 'final and unknown',
     more_events(problem(A, 'outcome-unknown', 9))),
    ('an_answer_after_unknown', 'unknown no more',
     more_events(problem(C, 'key-in-progress', 9))),
    ('a_run_after_unknown', 'unknown, and ran again',
     more_lines(*run(C, 'c2', 2, 9, 'created'))),
    ('a_run_for_who_got_503', 'ran for nobody',
     lambda made: made.update(events=replaced(
         made['events'], nothing(B, 1),
         problem(B, 'store-unavailable', 1, 503)))),
    ('a_problem_of_another_kind', 'unexpected problem',
     more_events(problem(A, 'key-invalid', 9, 400))),
    ('found_by_nobody', 'answer that its run did not give',
     lambda made: made.update(routes=dict(ROUTES, **{
         '/asked': Route(False, True, False)}))),
    ('a_run_that_acted_found_not_to_have', 'ran again',
     more_lines(*run(D, 'd2', 2, 9, 'created'))),
    ('a_finding_that_is_not_kept', 'not the answer that was seen',
     more_events(problem(D, 'outcome-unknown', 9))),
    ('given_up_by_nobody', 'given up', row(C, state='dead_letter')),
    ('a_key_in_progress_at_the_end', 'stuck', row(B, state='in_progress')),
    ('a_run_that_is_not_recorded', 'ran without a record',
     lambda made: made['rows'].pop(0)),
    ('an_attempt_that_is_not_recorded', 'ran without a record',
     row(A, attempt=1)),
    ('another_downstream_key_in_the_store', 'ran without a record',
     row(A, downstream='X')),
    ('completed_by_nobody', 'completed, and nobody acted',
     row(C, state='completed')),
    ('released_after_it_acted', 'released, and it ran',
     row(A, state='failed_retryable')),
    ('unknown_after_it_was_answered', 'unknown, and it is known',
     row(A, state='unknown')),
    ('an_accepted_request_that_was_not_to_be', 'unexpected problem',
     more_events(problem(A, 'accepted', 0, 202))),
    ('accepted_after_the_answer', 'not the answer that was seen',
     more_events(problem(F, 'accepted', 9, 202))),
    ('a_run_after_one_that_had_answered', 'ran again',
     more_lines(*run(F, 'f3', 3, 9, 'created'))),
    ('a_transaction_that_is_lost', 'committed and lost',
     made_of(rides=[], effects=[], deliveries=set())),
    ('a_transaction_of_what_was_left_that_is_lost', 'committed and lost',
     more_lines(*run(A, 'a2', 2, 9, '-', 'late late-said'))),
    ('a_ride_of_what_was_superseded', 'two rides',
     made_of(lines=good()['lines'] + run(F, 'f1', 1, 9, '-', 'late late-said'),
             rides=[Ride('f2', 'Df'), Ride('f1', 'Df')])),
    ('an_answer_without_its_ride', 'answer that its run did not give',
     made_of(rides=[])),
    ('two_rides_of_a_key', 'two rides',
     made_of(rides=[Ride('f2', 'Df'), Ride('f1', 'Df')])),
    ('a_ride_of_another_key', 'a ride of nobody',
     made_of(rides=[Ride('a2', 'Da'), Ride('f2', 'Df')])),
    ('a_ride_that_is_unknown', 'a ride without its answer',
     row(F, state='unknown')),
    ('a_ride_that_is_released', 'a ride without its answer',
     row(F, state='failed_retryable')),
    ('an_answer_beside_what_was_committed',
     'not the answer that was committed', answer('f2', 4, run='f1')),
    ('a_ride_without_its_effect', 'a ride without its effect',
     made_of(effects=[])),
    ('an_effect_twice', 'a ride without its effect',
     made_of(effects=[Effect('k', 'Df', 'delivered'),
                      Effect('l', 'Df', 'delivered')])),
    ('an_effect_without_its_ride', 'an effect without its ride',
     made_of(effects=[Effect('k', 'Df', 'delivered'),
                      Effect('l', 'Da', 'delivered')])),
    ('an_effect_that_waits_for_ever', 'not delivered',
     made_of(effects=[Effect('k', 'Df', 'pending')])),
    ('an_effect_that_nobody_delivered', 'delivered by nobody',
     made_of(deliveries=set())),
    ('an_effect_with_two_keys', 'delivered, and not committed',
     made_of(deliveries={Delivery('k', 'f2'), Delivery('l', 'f2')})),
    ('an_effect_that_was_rolled_back', 'delivered, and not committed',
     made_of(deliveries={Delivery('k', 'f2'), Delivery('m', 'f1')})),
    ('an_identity_with_two_records', 'an identity twice',
     lambda made: made['rows'].append(made['rows'][0])),
]


def cases():
    return [('history.agreeing_is_accepted', test_agreeing_is_accepted)] + \
        [('history.refused.' + name, refuse(rule, change))
         for name, rule, change in REFUSED]
