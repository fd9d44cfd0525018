"""What an operator does with oncectl stands in the daemon's log, or in syslog;
and the act stands where neither can be written."""
import os
import pwd
import re

import base
from answer import eq, problem
from base import wait_until
from test_life import OWN_DEV, listen_as_syslog, parse, plant, tag

ME = pwd.getpwuid(os.getuid()).pw_name
LOST = ('[ "$QUERY_STRING" = emit ] || kill -9 $$; '
        'export ONCEWRAP_MODULES=%s; '
        'for i in 1 2; do printf x | %s emit mail >&2; done; status 201'
        % (base.MODULES, base.ONCECTL))


def unknown(t, *keys):
    """A daemon that logs into a file, and keys that are unknown."""
    os.mkdir(t.path('logs'))
    once = t.once(handler=t.sh(LOST), start=False,
                  conf='[effect mail]\nprogram = /bin/false\n',
                  defaults={'share_database': 'yes'},
                  server={'log': t.path('logs', 'log')})
    once.start(wait=False)
    wait_until(lambda: t.exists('logs/log') and
               b'event=started' in t.read('logs/log'), 'the start')
    for key in keys:
        problem(once.post(key, user='ann'), 'handler-failed', unknown=True)
    return once


def ctl(t, once, *args, config=None, status=0, **kw):
    """Runs oncectl -f; returns what it says on stderr."""
    run = t.run([base.ONCECTL, '-f', config or once.file] + list(args),
                whole=True, **kw)
    eq(run.returncode, status, run)
    return run.stderr.decode()


def operator(text):
    """(act, result, key or None, what else) of each act in a log."""
    acts = []
    for line in text.splitlines():
        if 'event=operator ' not in line:
            continue
        event, pairs = parse(line)
        eq(event, 'operator')
        eq(pairs.pop('user'), ME, line)
        if 'key' in pairs:
            eq((pairs.pop('path'), pairs.pop('scope')), ('/pay', tag('ann')))
        acts.append((pairs.pop('act'), pairs.pop('result'),
                     pairs.pop('key', None), pairs))
    return acts


def logged(t):
    return operator(t.read('logs/log').decode())


def test_each_act_on_keys_is_in_the_file(t):
    once = unknown(t, 'a', 'b', 'c', 'd')
    eq(ctl(t, once, 'resolve', 'a', '--not-executed'), '')
    ctl(t, once, 'resolve', 'b', '--completed', input=b'Status: 204\n\n')
    ctl(t, once, 'forget', 'a')
    ctl(t, once, 'forget', '--state', 'unknown', '--yes')
    # What is refused before the store is asked is no act, and so is a look.
    ctl(t, once, 'resolve', 'b', '--not-executed', status=1)
    ctl(t, once, 'ls')
    ctl(t, once, 'sweep')
    ctl(t, once, 'reap')
    eq(logged(t), [('not-executed', 'done', 'a', {}),
                   ('completed', 'done', 'b', {}),
                   ('forget', 'done', 'a', {}),
                   ('forget', 'done', 'c', {}),
                   ('forget', 'done', 'd', {}),
                   ('sweep', 'done', None, {'keys': '0'}),
                   ('reap', 'done', None, {'keys': '0'})])


def test_each_act_on_effects_is_in_the_file(t):
    once = unknown(t)
    eq(once.post('k', user='ann', query='emit').status, 201)
    wait_until(lambda: b'event=effect ' in t.read('logs/log'), 'a try')
    ctl(t, once, 'outbox', 'retry', '1')
    ctl(t, once, 'outbox', 'drop', '2')
    # Nor is it an act of an operator what a handler says.
    eq(logged(t), [('retry', 'done', 'k', {'effect': '1'}),
                   ('drop', 'done', 'k', {'effect': '2'})])


def test_the_user_of_sudo_is_named(t):
    base.need_root()
    once = unknown(t, 'k')
    ctl(t, once, 'forget', 'k', env=dict(os.environ, SUDO_USER='eve x'))
    eq(logged(t), [('forget', 'done', 'k', {'sudo_user': 'eve x'})])


def other(t, once, log):
    """A configuration with another log, for oncectl alone."""
    return t.write('other.conf', '[server]\ndatabase = %s\nlog = %s\n'
                   % (once.database, log))


def not_logged(says, log, why):
    """One line, which names the file and the reason."""
    eq(says, 'oncectl: the log has no line of this: %s: %s\n' % (log, why))


def no_syslog():
    if os.path.exists('/dev/log'):
        raise base.Skip('syslog runs')


def test_without_file_and_syslog_the_act_stands(t):
    no_syslog()
    once = unknown(t, 'a', 'b', 'c')
    log = t.path('logs', 'none')
    config = other(t, once, log)
    not_logged(ctl(t, once, 'forget', 'a', config=config), log,
               'No such file or directory')
    assert not t.exists('logs/none'), 'oncectl has made a log'
    # Once is enough for many.
    not_logged(ctl(t, once, 'forget', '--state', 'unknown', '--yes',
                   config=config), log, 'No such file or directory')
    not_logged(ctl(t, once, 'sweep', config=other(t, once, 'stderr')),
               'syslog', 'No such file or directory')
    eq(once.ls(), [])


def test_log_that_another_may_have_planted_is_not_written(t):
    base.need_root()
    no_syslog()
    once = unknown(t, *'abcd')
    plant(t)
    t.write('open/mine')
    os.chown(t.path('open', 'mine'), 12345, 12345)
    for key, name, why in (
            ('a', 'soft', 'Too many levels of symbolic links'),
            ('b', 'hard', 'Operation not permitted'),
            ('c', 'fifo', 'No such device or address'),
            ('d', 'mine', 'Operation not permitted')):
        log = t.path('open', name)
        not_logged(ctl(t, once, 'forget', key, config=other(t, once, log)),
                   log, why)
    eq((t.read('victim'), t.read('open/mine')), (b'as it was', b''))
    eq(once.ls(), [])


def test_root_writes_the_log_of_the_service(t):
    """Its folder belongs to that user, or to root, and no other writes it."""
    base.need_root()
    once = unknown(t, 'a', 'b')
    os.mkdir(t.path('own'), 0o755)
    t.write('own/log')
    os.chown(t.path('own', 'log'), 12345, 12345)
    config = other(t, once, t.path('own', 'log'))
    eq(ctl(t, once, 'forget', 'a', config=config), '')
    os.chown(t.path('own'), 12345, 12345)
    eq(ctl(t, once, 'forget', 'b', config=config), '')
    eq(operator(t.read('own/log').decode()),
       [('forget', 'done', 'a', {}), ('forget', 'done', 'b', {})])
    # A folder of a third user's is as good as one that all may write.
    os.chown(t.path('own'), 12346, 12346)
    size = len(t.read('own/log'))
    ctl(t, once, 'sweep', config=config)
    eq(len(t.read('own/log')), size)


def test_without_a_configuration_it_is_in_syslog(t):
    base.need_root()
    once = unknown(t, 'k')
    sock = listen_as_syslog(t)
    run = t.run([base.need('unshare'), '-m', '--propagation', 'private',
                 'sh', '-c', OWN_DEV, 'sh', base.ONCECTL, '-d', once.database,
                 'forget', 'k'], env=dict(os.environ, D=t.dir))
    eq((run.returncode, run.stderr), (0, b''), run)
    text = sock.recv(8192).decode()
    match = re.fullmatch(r'<30>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d '
                         r'oncectl\[\d+\]: (.*)', text)
    assert match, text
    eq(match.group(1), 'level=info event=operator path=/pay key=k scope=%s '
       'user=%s act=forget result=done' % (tag('ann'), ME))
    eq(logged(t), [])
