"""What -t and the log say of a world that does not fit the configuration."""
import os
import pwd
import re
import socket
import subprocess

import base
from answer import eq, problem

SERVER = '[server]\ndatabase = %(dir)s/once.db\nsocket = unix:%(dir)s/sock\n'


def check(t, text, *args, **kw):
    """The warnings of -t, as (line, option, sentence)."""
    path = t.write('world.conf', text % {'dir': t.dir})
    run = t.run([base.ONCEWRAP, '-t', '-f', path] + list(args), **kw)
    eq(run.returncode, 0, run)
    assert re.fullmatch(rb'ok: \d+ routes?\n', run.stdout), run
    found = []
    for line in run.stderr.decode().splitlines():
        match = re.fullmatch(r'%s:(\d+): warning: ([a-z_]+): (.*)'
                             % re.escape(path), line)
        assert match, line
        found.append((int(match.group(1)), match.group(2),
                      match.group(3).replace(t.dir, 'D')))
    return found


def test_a_world_that_fits_is_no_warning(t):
    handler = t.sh('status 200')
    eq(check(t, SERVER + 'spool_dir = %(dir)s\nlog = %(dir)s/log\n'
             '[defaults]\nhandler = ' + handler + '\n'
             'directory = %(dir)s\n[effect mail]\nprogram = /bin/true\n'), [])
    assert not t.exists('once.db') and not t.exists('log')


PROGRAMS = (
    ('nothing', None, 0, 'D/nothing: there is no such program'),
    ('plain', '#!/bin/sh\n', 0o644, 'D/plain: is not executable: chmod +x it'),
    ('crlf', '#!/bin/sh\r\necho\r\n', 0o755,
     'D/crlf: its first line ends in CR LF, so the kernel looks for an '
     'interpreter with CR in its name: write LF alone'),
    ('gone', '#! /usr/bin/perll -w\n', 0o755,
     'D/gone: its interpreter cannot be run: /usr/bin/perll: there is no such '
     'program'),
    ('folder', '#!/usr\n', 0o755,
     'D/folder: its interpreter cannot be run: /usr: is a folder, not a '
     'program'),
    ('env', '#!/usr/bin/env no-such-python\n', 0o755,
     'D/env: its interpreter "no-such-python" is in no folder of PATH'),
    ('none', '#!\n', 0o755, 'D/none: names no interpreter after #!'),
    ('text', 'echo hello\n', 0o755,
     'D/text: is neither a program nor begins with #!'),
    ('empty', '', 0o755, 'D/empty: is neither a program nor begins with #!'),
    ('mark', b'\xef\xbb\xbf#!/bin/sh\n', 0o755,
     'D/mark: begins with a byte order mark, which hides its #!: save it '
     'without'),
)


def test_programs_that_cannot_run(t):
    for option, place in (('handler', '[defaults]'), ('handler', '[route /a]'),
                          ('reconcile', '[route /a]'),
                          ('program', '[effect mail]')):
        for name, content, mode, sentence in PROGRAMS:
            if content is not None:
                t.write(name, content, mode)
            eq(check(t, SERVER + '%s\n%s = %%(dir)s/%s arg\n'
                     % (place, option, name)), [(5, option, sentence)])


def test_a_folder_as_a_program(t):
    eq(check(t, SERVER + '[defaults]\nhandler = %(dir)s\n'),
       [(5, 'handler', 'D: is a folder, not a program')])


def test_programs_that_run_are_no_warning(t):
    t.write('env', '#!/usr/bin/env sh\n', 0o755)
    t.write('blank', '#! \t/bin/sh\n', 0o755)
    t.write('last', '#!/bin/sh', 0o755)
    for program in ('env', 'blank', 'last'):
        eq(check(t, SERVER + '[defaults]\nhandler = %%(dir)s/%s\n' % program),
           [])


def test_a_program_that_its_user_may_not_run(t):
    base.need_root()
    t.write('private', '#!/bin/sh\n', 0o700)
    os.chmod(t.dir, 0o755)
    eq(check(t, SERVER + '[defaults]\nhandler = %(dir)s/private\n'), [])
    uid = pwd.getpwnam('nobody').pw_uid
    eq(check(t, SERVER + '[defaults]\nuser = nobody\n'
             'handler = %(dir)s/private\n'),
       [(6, 'handler', 'D/private: user %d may not execute it: it belongs to '
         'user 0, mode 0700' % uid)])


def test_a_program_in_a_folder_that_its_user_may_not_enter(t):
    base.need_root()
    os.makedirs(t.path('closed', 'deep'), 0o755)
    t.write('closed/deep/run', '#!/bin/sh\n', 0o755)
    os.chmod(t.dir, 0o755)
    os.chmod(t.path('closed'), 0o700)
    text = '[defaults]\nhandler = %(dir)s/closed/deep/run\n'
    eq(check(t, SERVER + text), [])
    why = ': user %d may not enter the folder D/closed' % (
        pwd.getpwnam('nobody').pw_uid)
    eq(check(t, SERVER + text + 'reconcile = %(dir)s/closed/deep/run\n'
             'directory = %(dir)s/closed/deep\nuser = nobody\n'
             '[effect mail]\nprogram = %(dir)s/closed/deep/run\n'
             'user = nobody\n'),
       [(5, 'handler', 'D/closed/deep/run' + why),
        (6, 'reconcile', 'D/closed/deep/run' + why),
        (7, 'directory', 'D/closed/deep' + why),
        (10, 'program', 'D/closed/deep/run' + why)])


def test_stars_are_no_patterns(t):
    star = '"%s": a * stands for itself here, and not for other names'
    eq(check(t, SERVER + 'status_path = /jobs*\nadmin_path = /once/*\n'
             'spool_dir = /tmp/*\n'
             '[route /pay/*]\nhandler = /bin/true\n'
             '[route /b]\nhandler = /usr/lib/cgi-bin/*\n'
             'directory = /srv/*\n'),
       [(4, 'status_path', star % '/jobs*'),
        (5, 'admin_path', star % '/once/*'),
        (6, 'spool_dir', star % '/tmp/*'),
        (7, 'route', star % '/pay/*'),
        (10, 'handler', star % '/usr/lib/cgi-bin/*'),
        (11, 'directory', star % '/srv/*')])


def test_a_star_hides_no_other_warning_of_its_route(t):
    star = '"%s": a * stands for itself here, and not for other names'
    eq(check(t, SERVER + '[route /pay/*]\nhandler = %(dir)s/none\n'
             'reconcile = %(dir)s\ndirectory = %(dir)s/none\n'),
       [(4, 'route', star % '/pay/*'),
        (5, 'handler', 'D/none: there is no such program'),
        (6, 'reconcile', 'D: is a folder, not a program'),
        (7, 'directory', 'D/none: No such file or directory')])


def test_folders_that_are_missing(t):
    none = 'there is no such folder: create it for ' + \
        pwd.getpwuid(os.geteuid()).pw_name
    eq(check(t, '[server]\ndatabase = %(dir)s/a/once.db\n'
             'socket = unix:%(dir)s/b/sock\nlog = %(dir)s/c/log\n'
             'spool_dir = %(dir)s/d\n[defaults]\ndirectory = %(dir)s/e\n'),
       [(2, 'database', 'D/a: ' + none), (3, 'socket', 'D/b: ' + none),
        (4, 'log', 'D/c: ' + none), (5, 'spool_dir', 'D/d: ' + none),
        (7, 'directory', 'D/e: No such file or directory')])


def test_the_php_of_the_command_line_as_a_handler(t):
    for name, warned in (('bin/php', True), ('bin/php8.2', True),
                         ('bin/php-cgi', False), ('bin/phpunit', False),
                         ('cgi-bin/php', False), ('php', False)):
        os.makedirs(os.path.dirname(t.path(name)), exist_ok=True)
        path = t.write(name, '#!/bin/sh\n', 0o755)
        eq(check(t, SERVER + '[defaults]\nhandler = %s\n'
                 '[effect mail]\nprogram = %s\n' % (path, path)),
           [(5, 'handler', 'D/%s: is the PHP of the command line, which '
             'prints no CGI response: name php-cgi instead' % name)]
           if warned else [])


def test_an_interpreter_without_its_script(t):
    os.mkdir(t.path('bin'))
    t.write('there.pl')
    for name, arg, warned in (('perl', '%(dir)s/gone.pl', True),
                              ('python3.11', '%(dir)s/gone.pl', True),
                              ('perl', '%(dir)s/there.pl', False),
                              ('perl', '-w', False), ('perl', '', False),
                              ('perltidy', '%(dir)s/gone.pl', False)):
        t.write('bin/' + name, '#!/bin/sh\n', 0o755)
        for option, place in (('handler', '[defaults]'),
                              ('reconcile', '[route /a]')):
            eq(check(t, SERVER + '%s\n%s = %%(dir)s/bin/%s %s\n'
                     % (place, option, name, arg)),
               [(5, option, 'D/gone.pl: there is no such script')]
               if warned else [])


def test_php_cgi_with_the_address_of_php_fpm(t):
    app = listening(t.path('app'))
    why = 'is an address, which tells no exit status, so with preset = ' \
        'php-cgi the cut answer of a script that died counts as whole: ' \
        'write php-fpm instead of php-cgi'
    for address in 'unix:%(dir)s/app', 'tcp:127.0.0.1:9':
        eq(check(t, SERVER + '[route /a]\npreset = php-cgi\nhandler = %s\n'
                 '[route /b]\npreset = form\nhandler = %s\n'
                 % (address, address)), [(6, 'handler', why)])
    app.close()


def test_users_of_a_page_that_is_not_there(t):
    users = 'admin_users = ann\n'
    eq(check(t, SERVER + users),
       [(4, 'admin_users', 'without admin_path there is no page on which '
         'they could act: set admin_path')])
    eq(check(t, SERVER + users + 'admin_path = /once\n'), [])


GUARDS_NOTHING = '"%s" is no registered method, and guards nothing if no ' \
    'client sends it: write one such as POST, PUT, PATCH or DELETE, or unsafe'
SETS_IT = '"%s" is no variable that a web server sends by itself, and tells ' \
    'no callers apart unless yours sets it: a field such as X-User is ' \
    'HTTP_X_USER'

# option, name, whether it is known
NAMES = (
    ('methods', 'PSOT', False), ('methods', 'ALL', False),
    ('methods', 'UNSAFE', False), ('methods', 'FROBNICATE', False),
    ('methods', 'P', False), ('methods', 'X' * 200, False),
    ('methods', 'PUT', True), ('methods', 'unsafe', True),
    ('methods', 'BIND', True), ('methods', 'PURGE', True),
    ('methods', 'VERSION-CONTROL', True),
    ('scope', 'REMOTE_USRE', False), ('scope', 'REMOTE_USER_', False),
    ('scope', 'REMOTE_', False), ('scope', 'SSL', False),
    ('scope', 'TENANT', False),
    ('scope', 'REMOTE_ADDR', True), ('scope', 'SSL_CLIENT_S_DN_CN', True),
    ('scope', 'HTTP_AUTHORIZATION', True), ('scope', 'HTTP_X_TENANT', True),
    ('scope', 'cookie:seesion', True),
)


def test_names_that_no_request_has(t):
    """Once for a line, however many routes inherit it."""
    wanted, lines = [], ''
    for n, (option, name, known) in enumerate(NAMES):
        lines += '[route /%d]\n%s = %s\n' % (n, option, name)
        if not known:
            why = GUARDS_NOTHING if option == 'methods' else SETS_IT
            wanted.append((5 + 2 * n, option, why % name))
    eq(check(t, SERVER + lines), wanted)
    eq(check(t, SERVER + '[route /b]\n[defaults]\nmethods = POST PSOT PUTT\n'
             '[route /a]\n[route /c]\nmethods = POST\n'),
       [(6, 'methods', GUARDS_NOTHING % name) for name in ('PSOT', 'PUTT')])


def test_a_route_that_no_request_reaches(t):
    why = '[route %s] is below %s, so no request reaches it: name another path'
    eq(check(t, SERVER + 'admin_path = /once\nstatus_path = /jobs\n'
             '[route /once]\n[route /jobs/pay]\n[route /oncemore]\n'
             '[route /job]\n[route /once/a]\n'),
       [(6, 'route', why % ('/once', 'admin_path = /once')),
        (7, 'route', why % ('/jobs/pay', 'status_path = /jobs')),
        (10, 'route', why % ('/once/a', 'admin_path = /once'))])


def test_forms_without_a_scope(t):
    why = 'none, with preset = form: a browser whose address and cookies ' \
        'both change gets key-of-another for its own key: name what tells ' \
        'users apart, such as REMOTE_USER or cookie:NAME'
    eq(check(t, SERVER + '[defaults]\nscope = none\n[route /a]\npreset = form\n'
             '[route /b]\npreset = form\nscope = REMOTE_USER\n'
             '[route /c]\n[route /d]\nscope = none\npreset = form\n'),
       [(5, 'scope', why), (13, 'scope', why)])


def test_php_fpm_that_does_not_say_how_a_script_ended(t):
    os.mkdir(t.path('data'))
    os.mkdir(t.path('php'))
    apps = [listening(t.path('php', 'fpm')), listening(t.path('app'))]
    text = '[route /a]\nhandler = unix:%(dir)s/php/fpm\noutcome = explicit\n' \
        '[route /b]\nhandler = unix:%(dir)s/php/fpm\npreset = php-fpm\n' \
        '[route /c]\nhandler = unix:%(dir)s/app\noutcome = explicit\n' \
        '[route /d]\nhandler = unix:%(dir)s/php/fpm\n'
    env = dict(os.environ, ONCEWRAP_DATA=t.path('data'))
    missing = 'D/data/once-prepend.php: No such file or directory: without ' \
        'this file PHP runs no script: install it, or take php-fpm out of ' \
        'preset'
    explicit = 'php-fpm says no outcome, so each key becomes unknown unless ' \
        'PHP runs once-prepend.php first: add php-fpm to preset'
    eq(check(t, SERVER + text, env=env),
       [(6, 'outcome', explicit), (9, 'preset', missing)])
    t.write('data/once-prepend.php')
    eq(check(t, SERVER + text, env=env), [(6, 'outcome', explicit)])
    for app in apps:
        app.close()


def test_a_folder_as_the_database(t):
    os.mkdir(t.path('keys'))
    folder = 'D/keys: is a folder: name a file in it'
    eq(check(t, '[server]\ndatabase = %(dir)s/keys\n'),
       [(2, 'database', folder)])


LINK = 'is not a regular file with one name: name one that is no link'


def test_a_log_that_cannot_be_opened_by_this_user(t):
    base.need_root()
    t.write('log')
    os.symlink(t.path('log'), t.path('link'))
    eq(check(t, SERVER + 'log = %(dir)s/link\n'),
       [(4, 'log', 'D/link: ' + LINK)])
    os.chown(t.path('log'), 12345, 12345)
    eq(check(t, SERVER + 'log = %(dir)s/log\n'), [])
    # A user of that group may have put it there.
    os.mkdir(t.path('logs'))
    os.chmod(t.path('logs'), 0o770)
    os.rename(t.path('log'), t.path('logs', 'log'))
    eq(check(t, SERVER + 'log = %(dir)s/logs/log\n'),
       [(4, 'log', 'D/logs/log: belongs to user 12345: run oncewrap and its '
         '-t as that user, or name another file'),
        (4, 'log', 'D/logs: users of its group may write this folder, and put '
         'files of their own there: name another one')])


def test_files_in_the_way(t):
    t.write('file')
    os.symlink(t.path('file'), t.path('link'))
    eq(check(t, '[server]\ndatabase = %(dir)s/link\n'
             'socket = unix:%(dir)s/file\nlog = %(dir)s\n'
             'spool_dir = %(dir)s/file\n[defaults]\n'
             'directory = %(dir)s/file\n'),
       [(2, 'database', 'D/link: ' + LINK),
        (3, 'socket', 'D/file: is there and is no socket: remove it'),
        (4, 'log', 'D: is a folder: name a file in it'),
        (5, 'spool_dir', 'D/file: is not a folder'),
        (7, 'directory', 'D/file: is not a folder')])


def test_a_database_of_another_user(t):
    base.need_root()
    t.write('once.db', '', 0o600)
    os.chown(t.path('once.db'), 12345, 12345)
    (found,) = check(t, SERVER)
    eq(found, (2, 'database', 'D/once.db: belongs to user 12345, and not to '
               'root or the owner of its folder: chown it if it is yours'))
    (found,) = [x for x in check(t, SERVER, **as_nobody(t))
                if x[1] == 'database']
    eq(found[2], NOT_MINE)
    eq(check(t, SERVER, **as_nobody(t, 0o777)),
       [(2, 'database', 'D/once.db: belongs to user 12345, and not to nobody, '
         'root or the owner of its folder: chown it if it is yours'),
        (3, 'socket', OPEN % 'D: all users')])
    os.chmod(t.dir, 0o755)
    os.chown(t.dir, 12345, 12345)
    eq(check(t, SERVER), [])


OPEN = '%s may write this folder, and put files of their own there: name ' \
    'another one'


def test_a_folder_of_the_socket_or_log_that_others_may_write(t):
    for mode, said in ((0o775, 'users of its group'), (0o757, 'all users'),
                       (0o1777, 'all users'), (0o2770, 'users of its group'),
                       (0o755, None)):
        os.makedirs(t.path('open'), exist_ok=True)
        os.chmod(t.path('open'), mode)
        why = OPEN % ('D/open: %s' % said)
        for prefix in ('', 'unix:'):
            eq(check(t, '[server]\nsocket = %s%%(dir)s/open/s\n'
                     'database = %%(dir)s/once.db\n'
                     'log = %%(dir)s/open/log\n' % prefix),
               [(2, 'socket', why), (4, 'log', why)] if said else [])
    eq(check(t, '[server]\nsocket = tcp:127.0.0.1:1\nlog = stderr\n'
             'database = %(dir)s/once.db\n'), [])


def as_nobody(t, mode=0o755):
    user = pwd.getpwnam('nobody')
    os.chmod(t.dir, mode)
    return {'user': user.pw_uid, 'group': user.pw_gid, 'extra_groups': []}


NOT_MINE = ('D: nobody may not write this folder, which belongs to root, mode '
            '0755: name a folder that belongs to nobody, for example one '
            'below /var/lib')


def test_folders_of_another_user(t):
    base.need_root()
    eq(check(t, SERVER + 'spool_dir = %(dir)s\n', **as_nobody(t)),
       [(2, 'database', NOT_MINE), (3, 'socket', NOT_MINE),
        (4, 'spool_dir', NOT_MINE)])


def test_folders_and_files_that_are_closed(t):
    """The cure gives no folder of the system away."""
    base.need_root()
    nobody = as_nobody(t)
    os.makedirs(t.path('closed', 'deep'), 0o755)
    os.chmod(t.path('closed'), 0o700)
    os.mkdir(t.path('mine'), 0o500)
    os.chown(t.path('mine'), nobody['user'], nobody['group'])
    os.mkdir(t.path('own'))
    t.write('own/once.db', '', 0o400)
    t.write('own/log', '', 0o400)
    for name in ('own', 'own/once.db', 'own/log'):
        os.chown(t.path(name), nobody['user'], nobody['group'])
    text = '[server]\ndatabase = %(dir)s/closed/deep/once.db\n' \
        'socket = unix:%(dir)s/mine/sock\nlog = %(dir)s/closed/deep/log\n' \
        'spool_dir = %(dir)s/closed/deep\n'
    enter = ('D/closed: nobody may not enter this folder, which belongs to '
             'root, mode 0700: name a folder that belongs to nobody, for '
             'example one below /var/lib')
    eq(check(t, text), [])
    eq(check(t, text, **nobody),
       [(2, 'database', enter),
        (3, 'socket', 'D/mine: nobody may not write this folder, which is its '
         'own, mode 0500: chmod u+wx it'),
        (4, 'log', enter), (5, 'spool_dir', enter)])
    own = 'D/own/%s: nobody may not %s this file, which is its own, mode ' \
        '0400: chmod u+rw it'
    eq(check(t, '[server]\ndatabase = %(dir)s/own/once.db\n'
             'log = %(dir)s/own/log\nspool_dir = /tmp\n', **nobody),
       [(2, 'database', own % ('once.db', 'read and write')),
        (3, 'log', own % ('log', 'write'))])


def test_users_that_this_user_may_not_become(t):
    base.need_root()
    needs = ('to run a program as another user or group, oncewrap needs root, '
             'or CAP_SETUID and CAP_SETGID')
    text = '[server]\ndatabase = /tmp/once.db\nspool_dir = /tmp\n' \
        '[defaults]\nuser = www-data\n' \
        '[route /a]\nhandler = /bin/true\nreconcile = /bin/true\n' \
        '[route /b]\nuser = nobody\nhandler = /bin/true\n' \
        '[route /c]\nuser = nobody\ngroup = www-data\n' \
        '[effect mail]\nuser = root\nprogram = /bin/true\n'
    eq(check(t, text), [])
    eq(check(t, text, **as_nobody(t)),
       [(5, 'user', needs), (14, 'group', needs), (16, 'user', needs)])


def test_a_number_without_an_account_and_its_group(t):
    base.need_root()
    text = SERVER + '[defaults]\nhandler = /bin/true\nuser = 12345\n'
    eq(check(t, text + 'group = 100\n'), [])
    for group, line, says in (('', 6, 'user: no such user: 12345; its group '
                               'must be named'),
                              ('group = no-such', 7,
                               'group: no such group: no-such')):
        path = t.write('world.conf', text % {'dir': t.dir} + group + '\n')
        run = t.run([base.ONCEWRAP, '-t', '-f', path])
        eq((run.returncode, run.stderr.decode()),
           (1, '%s:%d: %s\n' % (path, line, says)))


def test_what_a_flag_names_has_no_line(t):
    path = t.write('world.conf', SERVER % {'dir': t.dir})
    run = t.run([base.ONCEWRAP, '-t', '-f', path, '-d', t.path('no', 'db')])
    eq(run.returncode, 0)
    eq(run.stderr.decode(), '%s: warning: database: %s: there is no such '
       'folder: create it for %s\n'
       % (path, t.path('no'), pwd.getpwuid(os.geteuid()).pw_name))
    run = t.run([base.ONCEWRAP, '-t', '--', t.path('none')])
    eq((run.returncode, run.stderr.decode()),
       (0, 'oncewrap: warning: handler: %s: there is no such program\n'
        % t.path('none')))


def listening(path, mode=0o666):
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    s.listen(0)
    os.chmod(path, mode)
    return s


START = ': start the application, or name the socket that it listens on'


def test_an_application_that_is_not_there(t):
    """Route by route; one that listens is no warning, were it ever so busy."""
    t.write('file')
    busy = listening(t.path('busy'))
    waits = socket.socket(socket.AF_UNIX)
    waits.connect(t.path('busy'))
    listening(t.path('old')).close()
    eq(check(t, SERVER + '[defaults]\nhandler = unix:%(dir)s/none\n'
             '[route /file]\nhandler = unix:%(dir)s/file\n'
             '[route /deep]\nhandler = unix:%(dir)s/file/sock\n'
             '[route /old]\nhandler = unix:%(dir)s/old\n'
             '[route /star]\nhandler = unix:%(dir)s/*\n'
             '[route /busy]\nhandler = unix:%(dir)s/busy\n'
             '[route /same]\n[route /tcp]\nhandler = tcp:127.0.0.1:1\n'),
       [(5, 'handler', 'D/none: No such file or directory' + START),
        (7, 'handler', 'D/file: Connection refused' + START),
        (9, 'handler', 'D/file/sock: Not a directory' + START),
        (11, 'handler', 'D/old: Connection refused' + START),
        (13, 'handler', '"unix:D/*": a * stands for itself here, and not for '
         'other names')])
    waits.close()
    busy.close()


NO_EFFECT = 'has no effect in [%s], whose handler is an address: take it ' \
    'out, and set the like where the application at %s is started'


def test_options_that_have_no_effect_for_their_handler(t):
    own = {'kill_after': '1s', 'directory': t.dir, 'umask': '027',
           'no_new_privs': 'yes', 'user': str(os.geteuid()),
           'group': str(os.getegid()),
           'processes': '2', 'max_requests': '5'}
    lines = ''.join('%s = %s\n' % (name, own[name]) for name in own)
    tcp = 'handler = tcp:127.0.0.1:1\n'
    common = 'environment = TZ\ntimeout = 9s\nexit_status = ignore\n'
    for section in ('route /pay', 'defaults'):
        eq(check(t, SERVER + '[%s]\n' % section + tcp + lines + common),
           [(line, name, NO_EFFECT % (section, 'tcp:127.0.0.1:1'))
            for line, name in enumerate(own, 6)])
    # The reconciler is a program that is started, for each try.
    eq(check(t, SERVER + '[route /pay]\nreconcile = /bin/true\n' + tcp
             + lines), [])
    eq(check(t, SERVER + '[route /pay]\nhandler = /bin/true\n' + lines), [])
    # Other routes may use those of the defaults.
    eq(check(t, SERVER + '[defaults]\n' + tcp + lines + '[route /a]\n'), [])


def test_an_application_that_takes_no_connection_of_this_user(t):
    base.need_root()
    nobody = as_nobody(t)
    os.mkdir(t.path('closed'), 0o700)
    sockets = [listening(t.path('app'), 0o660),
               listening(t.path('open'), 0o666),
               listening(t.path('closed', 'app'))]
    text = '[route /a]\nhandler = unix:%(dir)s/app\n' \
        '[route /b]\nhandler = unix:%(dir)s/open\n' \
        '[route /c]\nhandler = unix:%(dir)s/closed/app\n'
    server = '[server]\ndatabase = /tmp/once.db\n'
    eq(check(t, server + text), [])
    eq(check(t, server + text, **nobody),
       [(4, 'handler', 'D/app: nobody may not connect to this socket, which '
         'belongs to root, mode 0660: have the application make it for nobody '
         '(php-fpm: listen.owner)'),
        (8, 'handler', 'D/closed: nobody may not enter this folder, which '
         'belongs to root, mode 0700: name a folder that belongs to nobody, '
         'for example one below /var/lib')])
    for s in sockets:
        s.close()


# --- starts and runs ---

def start(t, *args, **kw):
    """(error, cure) of a start that fails."""
    run = t.run([base.ONCEWRAP] + list(args), stdin=subprocess.DEVNULL, **kw)
    eq(run.returncode, 1, run)
    lines = run.stderr.decode().splitlines()
    for line in lines:
        assert re.match(r'ts=\S+Z level=\w+ event=[a-z-]+', line), line
    (line,) = [x for x in lines if 'event=not-started' in x]
    match = re.search(r' error="?(.*?)"?(?: cure="(.*)")?$', line)
    return [x and x.replace(t.dir, 'D') for x in match.groups()]


def test_a_start_names_cause_and_cure(t):
    base.need_root()
    sock = 'unix:' + t.path('sock')
    eq(start(t, '-s', sock, '-d', t.path('no', 'once.db')),
       ['database D/no/once.db: No such file or directory',
        'D/no: there is no such folder: create it for root'])
    nobody = as_nobody(t)
    os.mkdir(t.path('mine'))
    os.chown(t.path('mine'), nobody['user'], nobody['group'])
    mine = 'unix:' + t.path('mine', 'sock')
    eq(start(t, '-s', mine, '-d', t.path('once.db'), **nobody),
       ['database D/once.db: Permission denied', NOT_MINE])
    eq(start(t, '-s', sock, '-d', t.path('mine', 'once.db'), **nobody),
       ['D/sock: Permission denied', NOT_MINE])
    t.write('mine/root.db', '', 0o600)
    error, cure = start(t, '-s', mine, '-d', t.path('mine', 'root.db'),
                        **nobody)
    assert error.startswith('database D/mine/root.db: '), error
    eq(cure, 'D/mine/root.db: nobody may not read and write this file, which '
       'belongs to root, mode 0600: name another file, or chown it to nobody '
       'if it is oncewrap\'s')


MAY_NOT = 'nobody may not read and write this file, which %s, mode %s: %s'


def test_a_start_on_a_file_that_may_not_be_written(t):
    base.need_root()
    nobody = as_nobody(t)
    os.mkdir(t.path('mine'))
    os.chown(t.path('mine'), nobody['user'], nobody['group'])
    once = t.once(owner='nobody', database=t.path('mine', 'db'), user='nobody',
                  server={'socket': 'unix:' + t.path('mine', 's')},
                  listen=False)
    once.wait_log('event=started')
    once.kill()         # the log and its index stay
    for name in 'db', 'db-wal', 'db-shm', 'db-lock':
        path = t.path('mine', name)
        for owner, mode, cure in (
                (nobody['user'], 0o400, 'chmod u+rw it'),
                (0, 0o644, 'name another file, or chown it to nobody if it '
                           'is oncewrap\'s')):
            os.chown(path, owner, nobody['group'])
            os.chmod(path, mode)
            cure = 'D/mine/%s: %s' % (name, MAY_NOT % (
                'is its own' if owner else 'belongs to root', '0%o' % mode,
                cure))
            eq(start(t, '-s', 'unix:' + t.path('mine', 's'), '-d',
                     t.path('mine', 'db'), **nobody),
               ['database D/mine/%s: Permission denied' % name, cure])
            eq(check(t, '[server]\ndatabase = %(dir)s/mine/db\n', **nobody),
               [(2, 'database', cure)])
        os.chown(path, nobody['user'], nobody['group'])
        os.chmod(path, 0o600)
    once.start()
    once.wait_log('event=started', 2)


def test_a_database_that_becomes_immutable(t):
    """It says which file and the cure, and goes on by itself."""
    base.need_root()
    chattr = base.need('chattr')
    once = t.once(handler=t.sh('status 201'), server={'admin_path': '/once'})
    eq(once.post('a').status, 201)
    files = [once.database, once.database + '-wal']
    if subprocess.run([chattr, '+i'] + files,
                      stderr=subprocess.DEVNULL).returncode != 0:
        raise base.Skip('needs a file system with chattr +i')

    def heal():
        subprocess.run([chattr, '-i'] + files, check=False)
    t.defer(heal)
    problem(once.post('b'), 'store-unavailable')
    health = once.get('/once/health')
    eq((health.status, health.body.decode()),
       (503, 'the database cannot be written: %s: root may not write it, '
             'whatever its mode: chattr -i it\n' % once.database))
    eq(once.log_lines('event=bad-row'), [])
    heal()
    eq(once.get('/once/health').status, 200)
    eq(once.post('b').status, 201)


def test_oncectl_on_a_database_that_may_not_be_read(t):
    base.need_root()
    nobody = as_nobody(t)
    once = t.once(handler=t.sh('status 201'))
    once.stop()
    os.chmod(once.database, 0o640)
    run = t.run([base.ONCECTL, '-d', once.database, 'ls'], **nobody)
    eq((run.returncode, run.stdout), (1, b''))
    eq(run.stderr.decode().replace(t.dir, 'D'),
       'oncectl: database D/once.db: Permission denied: nobody may not read '
       'this file, which belongs to root, mode 0640: run this as root\n')
    os.chmod(once.database, 0o644)
    may_not = MAY_NOT % ('belongs to root', '0644', 'run this as root\n')
    for mode, start in ((0o755, 'database D/once.db: Permission denied'),
                        (0o777, 'D/once.db')):
        os.chmod(t.dir, mode)   # 0777: nobody may make the log
        run = t.run([base.ONCECTL, '-d', once.database, 'sweep'], **nobody)
        eq(run.returncode, 1)
        eq(run.stderr.decode().splitlines(True)[-1].replace(t.dir, 'D'),
           'oncectl: %s: %s' % (start, may_not))


def test_a_start_on_a_read_only_disk(t):
    base.need_root()
    os.mkdir(t.path('disk'))
    mount = base.need('mount')
    subprocess.run([mount, '-t', 'tmpfs', '-o', 'ro', 'none', t.path('disk')],
                   check=True)
    t.defer(lambda: subprocess.run([base.need('umount'), t.path('disk')],
                                   check=True))
    cure = ('D/disk: is on a file system that is mounted read-only: remount '
            'it, or name a folder elsewhere')
    eq(start(t, '-s', 'unix:' + t.path('sock'), '-d',
             t.path('disk', 'once.db')),
       ['database D/disk/once.db: Read-only file system', cure])
    eq(check(t, '[server]\ndatabase = %(dir)s/disk/once.db\n'),
       [(2, 'database', cure)])


def test_oncectl_on_a_read_only_disk(t):
    base.need_root()
    disk = t.path('disk')
    os.mkdir(disk)
    subprocess.run([base.need('mount'), '-t', 'tmpfs', 'none', disk],
                   check=True)
    t.defer(lambda: subprocess.run([base.need('umount'), disk], check=True))
    once = t.once(handler=t.sh('status 201'),
                  database=t.path('disk', 'once.db'))
    once.post('k')
    once.stop()
    subprocess.run([base.need('mount'), '-o', 'remount,ro', disk], check=True)
    for command in (['ls'], ['show', 'k'], ['doctor'], ['sweep'],
                    ['forget', 'k', '--yes'],
                    ['resolve', 'k', '--not-executed']):
        run = t.run([base.ONCECTL, '-d', once.database] + command)
        eq(run.returncode, 1)
        assert b'is on a file system that is mounted read-only' in run.stderr
    run = t.run([base.ONCECTL, '-d', t.path('disk', 'other.db'), 'ls'])
    assert b'read-only' not in run.stderr, run.stderr


def test_a_run_that_cannot_start_is_explained_in_the_log(t):
    once = t.once(handler=t.path('handler'))
    for name, content, mode, sentence in PROGRAMS:
        if name in ('text', 'empty', 'env', 'none', 'folder'):
            continue
        if content is not None:
            t.write('handler', content, mode)
        problem(once.post(name), 'handler-not-started')
        (line,) = once.log_lines('event=handler-not-started .* key=%s '
                                 % name)
        want = sentence.replace('D/' + name, t.path('handler'))
        assert 'why="%s"' % want in line, line
        assert ' step=exec ' in line, line


def test_flags_are_named_with_their_range(t):
    for args, text in (
            (('-w', '0'), '-w: "0" is out of range (1 to 1024)'),
            (('-w', '1025'), '-w: "1025" is out of range (1 to 1024)'),
            (('-w', 'x'), '-w: "x" is not a number'),
            (('-w', ''), '-w: the value is empty: write one, or leave the '
             'option out'),
            (('-s', 'tcp:x'), '-s: "tcp:x" is not unix:/path, /path, '
             'tcp:host:port or fd:N'),
            (('-d', 'file:x'), '-d: "file:x" is not a file'),
            (('-d', 'a\nb'), '-d: byte 0x0a is not allowed'),
            (('--', 'bin/x'), '--: the program "bin/x" is not an absolute '
             'path')):
        for first in ((), ('-t',)):
            run = t.run([base.ONCEWRAP, *first, *args],
                        stdin=subprocess.DEVNULL)
            eq((run.returncode, run.stdout, run.stderr.decode()),
               (1, b'', 'oncewrap: %s\n' % text))
