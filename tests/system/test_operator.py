"""oncectl at the shell: the stored answer, many keys to forget, what needs no
key, and help."""
import base64
import json
import os
import pty
import re

import base
from answer import eq, first, problem
from test_resolve import ANSWER, ctl, refused, unknown

COMMANDS = ('ls show resolve forget backup sweep reap reconcile outbox export '
            'stats doctor metrics init copy accept-loss accept-clock audit '
            'cgi checkpoint emit respond').split()


# --- show --response ------------------------------------------------------

def test_show_response_is_what_resolve_reads(t):
    """The answer of one key, given to another one, is the same answer."""
    once = unknown(t, handler='case $QUERY_STRING in 201) status 201 "As Told";'
                   ' printf "a\\0b\\377";; *) kill -9 $$;; esac')
    first(once.post('done', query='201'), 201)
    shown = ctl(t, once, 'show', 'done', '--response')
    eq((shown.returncode, shown.stderr), (0, b''), shown)
    eq(shown.stdout, b'Status: 201 As Told\r\nContent-Type: text/plain\r\n'
       b'\r\na\0b\377')
    once.ctl('resolve', 'k', '--completed', input=shown.stdout)
    eq(ctl(t, once, 'show', 'k', '--response').stdout, shown.stdout)
    answer = once.post('k')
    eq((answer.status, answer.body, answer.replayed),
       (201, b'a\0b\377', 'true'), answer)


def test_show_response_of_a_large_answer(t):
    once = t.once(handler=t.py('out(b"Content-Type: a/b\\n\\n" + '
                               'bytes(range(256)) * 20000)'))
    body = once.post('k').body
    eq(len(body), 5120000)
    shown = ctl(t, once, 'show', 'k', '--response').stdout
    eq(shown, b'Status: 200 OK\r\nContent-Type: a/b\r\n\r\n' + body)
    told = json.loads(once.ctl('show', 'k', '--response', '--json'))
    assert base64.b64decode(told['body_base64']) == body


def test_show_response_as_json(t):
    once = unknown(t)
    once.ctl('resolve', 'k', '--completed', input=ANSWER)
    told = json.loads(once.ctl('--json', 'show', '--response', 'k'))
    eq(told, {'scope': '', 'path': '/pay', 'key': 'k', 'status': 201,
              'fields': [{'name': 'Content-Type', 'value': 'text/plain'},
                         {'name': 'X-Twice', 'value': 'a'},
                         {'name': 'X-Twice', 'value': 'b'}],
              'body_base64': base64.b64encode(
                  b'given by hand\x00\xff\n').decode()})


def test_show_response_of_a_redirect(t):
    once = t.once(handler=t.sh(r'printf "Location: /there\n\n"'))
    once.post('k')
    eq(ctl(t, once, 'show', 'k', '--response').stdout,
       b'Location: /there\r\n\r\n')


def test_show_response_leaves_out_what_a_replay_does(t):
    """An answer that the handler committed itself has all its fields."""
    once = t.once(handler=t.py(
        'import shared\n'
        'db = shared.connect()\n'
        'db.execute("INSERT INTO once_response(token, status, headers, '
        'body) VALUES (?, 201, ?, ?)",'
        ' (os.environ["ONCE_TOKEN"], "Set-Cookie: a\\nX-Not: b\\nX-Yes: c",'
        ' "hello"))'),
        defaults={'share_database': 'yes', 'replay_drop': 'X-Not'})
    eq(once.post('k').status, 201)
    shown = t.run([base.ONCECTL, '-f', once.file, 'show', 'k', '--response'])
    eq(shown.stdout, b'Status: 201 Created\r\nSet-Cookie: a\r\n'
       b'X-Yes: c\r\n\r\nhello', shown)
    replayed = once.post('k')
    eq((replayed.get('Set-Cookie'), replayed.get('X-Not')), ('a', None))


def test_show_response_where_there_is_none(t):
    once = unknown(t, handler='case $QUERY_STRING in big) status 200; '
                   'echo large;; free) status 503;; *) kill -9 $$;; esac',
                   defaults={'max_response': '3'})
    once.post('free', query='free')
    first(once.post('big', query='big'), 200)
    eq(once.post('big', query='big').code, 'response-not-kept')
    for key, says in (('k', 'is unknown: it has no stored answer'),
                      ('free', 'is failed_retryable: it has no stored answer'),
                      ('big', 'is completed: its answer was not kept'),
                      ('none', 'no such key')):
        refused(t, once, 'show', key, '--response', says=says)


def read_all(leader):
    """What a terminal got; nobody has its other end any more."""
    found = b''
    try:
        while part := os.read(leader, 65536):
            found += part
    except OSError:     # EIO is its end
        pass
    return found


def test_an_answer_does_not_act_on_a_terminal(t):
    once = t.once(handler=t.sh(r'status 200; printf "\033[2Ja\\\\\0b\tc\r\nd"'))
    first(once.post('k'), 200)
    leader, follower = pty.openpty()
    t.defer(lambda: os.close(leader))
    process = t.popen([base.ONCECTL, '-d', once.database, 'show', 'k',
                       '--response'], stdout=follower)
    eq(process.wait(base.WAIT * base.SLOW), 0)
    os.close(follower)
    seen = read_all(leader)
    assert seen.endswith(b'\r\n\r\n\\x1b[2Ja\\\\\\x00b\tc\r\nd'), seen


# --- forget, many ---------------------------------------------------------

MANY = ('case $QUERY_STRING in kill) kill -9 $$;; gate) gate gate;; '
        '503) status 503; exit;; esac; status 200')


def many(t):
    """Seven keys: two unknown, two completed, one released, one of ann's and
    one on another path."""
    once = t.once(handler=t.sh(MANY))
    for key in ('lost1', 'lost2'):
        once.post(key, query='kill')
    for key in ('done1', 'done2'):
        first(once.post(key), 200)
    once.post('free', query='503')
    first(once.post('done1', user='ann'), 200)
    first(once.post('done1', path='/other'), 200)
    return once


def left(once):
    return sorted((r['scope'], r['path'], r['key']) for r in once.ls())


def test_forget_many_asks_with_the_count(t):
    once = many(t)
    for input in (b'', b'n\n', b'\n', b'y', b'  y\n', b'no\n'):
        run = ctl(t, once, 'forget', '--state', 'unknown', input=input)
        eq((run.returncode, run.stdout), (1, b''), (input, run))
        assert b'forget 2 keys? [y/N] ' in run.stderr, run
        assert b'no key was forgotten' in run.stderr, run
        eq(len(left(once)), 7)
    run = ctl(t, once, 'forget', '--state', 'unknown', input=b'yes\n')
    eq((run.returncode, run.stdout), (0, b'2 keys forgotten\n'), run)
    eq(left(once), [('', '/other', 'done1'), ('', '/pay', 'done1'),
                    ('', '/pay', 'done2'), ('', '/pay', 'free'),
                    ('ann', '/pay', 'done1')])
    once.ctl('doctor')


def test_forget_many_by_each_option(t):
    once = many(t)
    for args, n in ((['--scope', 'ann'], 1), (['--path', '/other'], 1),
                    (['--older', '1d'], 0), (['--state', 'expired'], 0),
                    (['--scope', '', '--state', 'completed'], 2),
                    (['--scope', 'ann'], 0), (['--older', '1ms'], 3)):
        run = ctl(t, once, 'forget', '--yes', *args)
        eq((run.returncode, run.stdout.decode(), run.stderr),
           (0, '%d key%s forgotten\n' % (n, '' if n == 1 else 's'), b''),
           (args, run))
    eq(left(once), [])
    # A forgotten key is new.
    first(once.post('lost1'), 200)


def test_forget_of_more_keys_than_a_transaction_takes(t):
    once = t.once(handler=t.sh('status 200'))
    for i in range(45):
        first(once.post('k%d' % i), 200)
    eq(once.ctl('forget', '--path', '/pay', '--yes'), '45 keys forgotten\n')
    eq(left(once), [])
    once.ctl('doctor')


def test_forget_many_as_json_names_each_key(t):
    once = many(t)
    lines = once.ctl('forget', '--state', 'unknown', '--yes', '--json')
    eq([json.loads(line) for line in lines.splitlines()],
       [{'scope': '', 'path': '/pay', 'key': key, 'from': 'unknown',
         'to': None} for key in ('lost1', 'lost2')])


def test_forget_many_leaves_what_runs(t):
    gate = t.gate()
    once = t.once(handler=t.sh(MANY))
    first(once.post('done'), 200)
    conn = once.begin('runs', query='gate')
    gate.wait()
    run = ctl(t, once, 'forget', '--scope', '', input=b'y\n')
    eq((run.returncode, run.stdout), (0, b'1 key forgotten\n'), run)
    assert b'forget 1 key (1 in progress stays)? ' in run.stderr, run
    eq(left(once), [('', '/pay', 'runs')])
    refused(t, once, 'forget', '--state', 'in_progress', '--yes',
            says='in_progress')
    gate.open()
    eq(conn.answer().status, 200)
    eq(once.state('runs'), 'completed')


def test_forget_many_forgets_what_it_counted(t):
    """A key that comes, and one that is settled, while the question waits."""
    once = many(t)
    process = t.popen([base.ONCECTL, '-d', once.database, 'forget', '--state',
                       'unknown'], stdin=-1, stdout=-1, stderr=-1)
    asked = b''
    while not asked.endswith(b'? [y/N] '):
        asked += os.read(process.stderr.fileno(), 1000)
    eq(asked, b'forget 2 keys? [y/N] ')
    once.post('lost3', query='kill')
    once.ctl('resolve', 'lost1', '--not-executed')
    out, said = process.communicate(b'y\n', base.WAIT)
    eq((process.returncode, out), (0, b'1 key forgotten\n'), said)
    assert b'1 changed meanwhile, and stay' in said, said
    eq([(r['key'], r['state']) for r in once.ls() if 'lost' in r['key']],
       [('lost1', 'failed_retryable'), ('lost3', 'unknown')])


def test_forget_of_everything_has_to_be_said(t):
    once = many(t)
    for args in ([], ['--yes'], ['done2', '--state', 'completed'],
                 ['done2', '--older', '1ms'], ['--state', 'nonsense']):
        run = ctl(t, once, 'forget', *args, input=b'y\n')
        eq((run.returncode, run.stdout), (2, b''), (args, run))
        assert run.stderr, args
    eq(len(left(once)), 7)
    # --yes changes nothing where nothing is asked.
    eq(once.ctl('forget', 'done2', '--yes'),
       'key done2 of no scope: completed -> forgotten\n')


# --- audit ----------------------------------------------------------------

CONF = """[server]
database = nowhere.db
status_path = /jobs
[defaults]
%s
[route /strict]
key = required
[route /old]
key = ignore
[route /loose]
[route /strict/form]
preset = form
[route /hook]
preset = webhook
key_from = header:X-Id
[route /odd]
key = required
methods = PATCH
"""


def audit(t, text, *args, status=1):
    """Its findings, (kind, path, where, key, why), and what it warns of."""
    run = t.run([base.ONCECTL, '--json', 'audit', '-f',
                 t.write('audit.conf', text)] + list(args))
    eq(run.returncode, status, run)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    for line in lines:
        eq(list(line), ['kind', 'path', 'where', 'key', 'why'])
    return ([tuple(line.values()) for line in lines], run.stderr.decode())


def test_audit_names_each_route_that_needs_no_key(t):
    found, said = audit(t, CONF % '')
    file = t.path('audit.conf')
    eq(sorted(found), [
        ('route', '/loose', file + ':10', 'optional', 'key = optional'),
        ('route', '/odd', file + ':16', 'required',
         'POST is not in methods'),
        ('route', '/old', file + ':8', 'ignore', 'key = ignore'),
        ('route', '/strict/form', file + ':11', 'optional', 'key = optional')])
    assert '--docroot' in said and '[defaults]' in said, said
    found, said = audit(t, CONF % 'handler = /bin/true')
    eq((found[0][:2], said), (('defaults', '/'), ''))
    eq(audit(t, '[server]\ndatabase = x\n')[0],
       [('defaults', '/', file, 'optional', 'key = optional')])


def test_audit_is_content_where_a_key_is_required(t):
    for text in ('[defaults]\nkey = required\n',
                 '[defaults]\nkey = required\n[route /a]\n',
                 '[defaults]\nkey = required\nmethods = unsafe\n'):
        eq(audit(t, text, status=0), ([], ''))
    run = t.run([base.ONCECTL, 'audit', '-f', t.path('audit.conf')])
    eq((run.returncode, run.stderr), (0, b''), run)
    assert b'a key is required' in run.stdout, run


def test_audit_finds_programs(t):
    def program(name, mode=0o755):
        os.makedirs(os.path.dirname(t.path(name)), exist_ok=True)
        return t.write(name, '#!/bin/sh\n', mode)
    files = [program('www/' + name) for name in (
        'a b', 'deep/er/pay.pl', 'loose/one', 'old/one')]
    program('www/strict/one')
    program('www/jobs/never')
    program('www/page.html', 0o644)
    program('www/pay.php', 0o644)
    program('bin/paid')
    os.symlink(t.path('bin/paid'), t.path('www/link'))
    os.symlink('/nowhere', t.path('www/dangling'))
    os.symlink(t.path('www'), t.path('www/deep/loop'))
    found, said = audit(t, CONF % '', '--docroot', t.path('www'))
    eq([(path, where, key) for kind, path, where, key, _ in found
        if kind == 'program'],
       [('/a b', files[0], 'optional'),
        ('/deep/er/pay.pl', files[1], 'optional'),
        ('/link', t.path('www/link'), 'optional'),
        ('/loose/one', files[2], 'optional'),
        ('/old/one', files[3], 'ignore')])
    assert 'deep/loop: a link to a folder' in said, said
    assert '[defaults]' not in said, said
    # A handler runs what is not executable, too.
    found, _ = audit(t, '[defaults]\nhandler = /usr/bin/php-cgi\n',
                     '--docroot', t.path('www'))
    assert '/pay.php' in [f[1] for f in found], found
    assert '/page.html' not in [f[1] for f in found], found


def test_audit_writes_no_controls_of_file_names(t):
    name = 'x\x1b]0;owned\x07'
    os.makedirs(t.path('www'))
    os.symlink(t.path('www'), t.path('www/' + name))
    _, said = audit(t, CONF % '', '--docroot', t.path('www'))
    assert 'x\\x1b]0;owned\\x07: a link' in said, said
    assert '\x1b' not in said, said
    _, said = audit(t, CONF % '', '--docroot', t.path('www/' + name + '/no'))
    assert '\\x07/no: No such file' in said, said
    assert '\x1b' not in said, said


def test_audit_of_a_folder_with_another_path(t):
    os.mkdir(t.path('bin'))
    for name in ('pay', 'list'):
        t.write('bin/' + name, '', 0o755)
    text = '[route /cgi-bin/pay]\nkey = required\n'
    for prefix in ('/cgi-bin=', '/cgi-bin/='):
        found, said = audit(t, text, '--docroot', prefix + t.path('bin'))
        eq([f[1:3] for f in found], [('/cgi-bin/list', t.path('bin/list'))])
        eq(said, '')
    found, said = audit(t, text, '--docroot', 'cgi-bin=' + t.path('bin'))
    eq(found, [])
    assert 'cgi-bin=' in said and 'No such file' in said, said
    # Several folders; what cannot be read is no clean bill.
    found, said = audit(t, '[defaults]\nkey = required\n', '--docroot',
                        t.path('bin'), '--docroot', t.path('gone'))
    eq(found, [])
    assert 'gone: No such file' in said, said


def test_audit_needs_a_configuration(t):
    run = t.run([base.ONCECTL, 'audit', '-d', t.path('once.db')])
    eq((run.returncode, run.stdout), (2, b''), run)
    assert b'needs a configuration: -f' in run.stderr, run
    run = t.run([base.ONCECTL, 'audit', '-f', t.write('bad.conf', 'x\n')])
    eq((run.returncode, run.stdout), (1, b''), run)
    assert b'bad.conf:1:' in run.stderr, run


# --- help -----------------------------------------------------------------

def test_each_command_has_help(t):
    """It needs no database, wherever it stands, and exits with 0."""
    listed = t.run([base.ONCECTL, '--help']).stdout.decode()
    eq(re.findall(r'^       oncectl ([a-z-]+)', listed, re.M), COMMANDS)
    for command in COMMANDS:
        for args in ([command, '--help'], ['-h', command],
                     ['--json', command, 'some', 'thing', '-h']):
            run = t.run([base.ONCECTL] + args, env={'PATH': '/bin'})
            eq((run.returncode, run.stderr), (0, b''), (args, run))
            text = run.stdout.decode()
            assert text.startswith('usage: oncectl ') and \
                command in text.split('\n')[0], text
            assert 'oncectl(1)' in text and text.count('\n') > 3, text
            assert max(map(len, text.split('\n'))) <= 80, text


def test_the_manual_has_what_help_has(t):
    """Each command and each of its options, in that command's part."""
    with open(os.path.join(base.TOP, 'src', 'oncectl.1')) as f:
        page = f.read()
    for command in COMMANDS:
        usage = t.run([base.ONCECTL, command, '--help']).stdout.decode()
        usage = usage.split('\n\n')[0].replace('[--json]', '')
        parts = re.findall(r'^\.(?:It )?Cm %s\b.*?(?=^\.El|^\.It (?:Xo$|Cm '
                           r'(?!%s)))' % (command, command), page, re.M | re.S)
        assert parts, '%s is not in oncectl(1)' % command
        for option in re.findall(r'--([a-z-]+)', usage):
            assert any(re.search(r'Fl -%s\b' % option, part)
                       for part in parts), (command, option)


def test_help_for_what_is_no_command(t):
    run = t.run([base.ONCECTL, 'nonsense', '--help'])
    eq((run.returncode, run.stdout), (2, b''), run)
    assert b'nonsense: no such command' in run.stderr, run


# --- completion -----------------------------------------------------------

COMPLETE = r'''
source "$0" || exit 1
complete -p oncectl >&2 || exit 1
program=$1
shift
COMP_WORDS=("$program" "$@") COMP_CWORD=$#
_oncectl "$program" "${COMP_WORDS[COMP_CWORD]}" \
    "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
'''


def completed(t, *words):
    """What bash offers for the last word."""
    run = t.run([base.need('bash'), '--norc', '-c', COMPLETE,
                 os.path.join(base.TOP, 'packaging', 'bash-completion',
                              'oncectl'), base.ONCECTL] + list(words),
                cwd=t.dir)
    eq((run.returncode, run.stderr),
       (0, b'complete -F _oncectl oncectl\n'), run)
    return run.stdout.decode().split()


def test_completion_of_commands(t):
    eq(sorted(completed(t, '')), sorted(COMMANDS))
    eq(completed(t, 're'), ['reap', 'reconcile', 'resolve', 'respond'])
    eq(completed(t, '-d', 'once.db', '--json', 'sh'), ['show'])
    eq(completed(t, 'outbox', ''), ['drop', 'ls', 'retry'])
    eq(completed(t, '-d', 'ls', 'outbox', 're'), ['retry'])
    eq(completed(t, 'nonsense', 'x'), [])
    eq(completed(t, 'show', 'so'), [])


def test_completion_of_options_is_what_a_command_takes(t):
    always = ['--help', '--json', '-V', '-d', '-f', '-h']
    for command, options in {
            'show': ['--downstream', '--instance', '--output', '--path',
                     '--response', '--scope'],
            'forget': ['--downstream', '--instance', '--older', '--path',
                       '--peer', '--scope', '--state', '--yes'],
            'resolve': ['--completed', '--downstream', '--instance',
                        '--not-executed', '--older', '--path', '--peer',
                        '--scope', '--state', '--yes'],
            'ls': ['--older', '--path', '--peer', '--scope', '--since',
                   '--state', '--until'],
            'backup': ['--yes'], 'audit': ['--docroot'], 'copy': ['--to'],
            'init': ['--grant'], 'accept-loss': [], 'accept-clock': [],
            'sweep': []}.items():
        eq(sorted(completed(t, command, '-')), sorted(always + options))
        for option in options:
            run = t.run([base.ONCECTL, command, option, 'x', '--help'])
            assert run.returncode in (0, 2) and \
                b'unrecognized' not in run.stderr, run
    eq(completed(t, 'ls', '--st'), ['--state'])


def test_completion_of_values(t):
    eq(completed(t, 'ls', '--state', 'p'), ['pending'])
    eq(len(completed(t, 'ls', '--state', '')), 7)
    for state in completed(t, 'ls', '--state', ''):
        run = t.run([base.ONCECTL, '-d', 'nowhere', 'ls', '--state', state])
        assert b'not a state' not in run.stderr, run
    eq(completed(t, 'outbox', 'ls', '--state', 'd'),
       ['delivered', 'dead_letter'])
    t.write('here.conf')
    eq(completed(t, '-f', 'he'), ['here.conf'])
    eq(completed(t, 'backup', 'he'), ['here.conf'])
    os.mkdir(t.path('root'))
    eq(completed(t, 'audit', '--docroot', 'ro'), ['root'])
    eq(completed(t, 'ls', '--scope', ''), [])
