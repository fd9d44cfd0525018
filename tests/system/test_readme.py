"""README.md, and what the manual says of installing and of web servers: their
commands run, and print what they say."""
import os
import pwd
import re
import signal

import base
import manual
import proc
import servers
import test_application
import test_examples
import test_servers
from answer import eq, first



def text_of(*path):
    with open(os.path.join(base.TOP, *path)) as f:
        return f.read()


README = text_of('README.md')


def blocks(text=README):
    """The indented blocks, without the indentation."""
    out = []
    for block in re.findall(r'(?:^    .*\n|^\n(?=(?:\n)*    ))+', text, re.M):
        lines = [line[4:] for line in block.strip('\n').split('\n')]
        out.append('\n'.join(lines) + '\n')
    return out


def masked(text):
    """The same text for each run: times, the payment's id, the version."""
    for pattern, mask in ((r'\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT', 'TIME'),
                          (r'pay_[0-9a-f]{16}', 'PAYMENT'),
                          (r'lighttpd/[0-9.]+', 'lighttpd/VERSION')):
        text, n = re.subn(pattern, mask, text)
        assert n > 0, 'no %s in %s' % (mask, text)
    return text


def test_first_request_and_its_replay_are_as_printed(t):
    (first, again) = [b for b in blocks() if 'HTTP/1.1 201 Created' in b]
    command, said, printed = first.partition('HTTP/1.1 ')
    assert command.startswith('$ curl -i http://localhost/'), command
    server, _ = test_examples.setup(t, 'payments')
    command = command[2:].replace('http://localhost', server.url)
    got = []
    for wanted in (said + printed, again):
        run = t.run(['sh', '-c', command.replace('curl', 'curl -s')])
        eq(run.returncode, 0, run.stderr)
        got.append(run.stdout.decode().replace('\r', ''))
        eq(masked(got[-1]).strip(), masked(wanted).strip())
    for answers in (got, [first, again]):
        payments = {re.search('pay_[0-9a-f]*', a).group() for a in answers}
        eq(len(payments), 1, answers)
    eq(len(test_examples.lines(t, 'ledger')), 1)


def test_readme_is_short(t):
    lines = README.splitlines()
    assert len(lines) <= 220, len(lines)
    eq([line for line in lines if len(line) > 80 and line[0] != '|'], [])


# --- every block is run, or compared with what a test runs ---

# Where a block may be besides README.md.
OTHERS = [b for page in ('oncewrap.8', 'oncewrap-handler.7')
          for b in manual.literals(page)] + \
    blocks(text_of('packaging', 'README')) + \
    blocks(text_of('examples', 'postgresql', 'README'))


def block(word):
    """The one block with that text, of README.md or of the others."""
    (found,) = [b for b in blocks() if word in b] or \
        [b for b in OTHERS if word in b]
    return found


def is_configuration(text):
    return re.match(r'\[(server|route|effect)', text) is not None


# Blocks of configurations of web servers, and their kinds in servers.py.
SERVED = {'alias.url': 'lighttpd',
          'ProxyFCGIBackendType': 'apache-proxy-fcgi',
          'FcgidWrapper': 'apache-fcgid',
          'alias /usr/lib/': 'nginx'}

# Blocks of commands that want more of a machine than a case may have, and the
# lines of the test that runs them: (block, file, line).
ELSEWHERE = (
    ('autoreconf -i', 'tests/run', 'autoreconf -i'),
    ('autoreconf -i', 'tests/run', '"$top/configure" "$@"'),
    ('./examples/run', 'tests/run', 'examples/run'),
    ('./examples/postgresql/run', 'tests/system/test_examples.py',
     "os.path.join(base.EXAMPLES, 'postgresql', 'run')"),
    ('CREATE ROLE oncewrap', 'tests/system/test_postgres_manual.py',
     "server.sql('CREATE DATABASE shop OWNER oncewrap')"),
    ('copy --to postgresql:', 'tests/system/test_postgres_manual.py',
     "re.findall(r'^    oncectl (.*)$'"),
    ('db1,db2/shop init', 'tests/system/test_postgres_manual.py',
     "re.findall(r'^    oncectl (.*)$'"),
    ('db1,db2/shop doctor', 'tests/system/test_postgres_manual.py',
     "re.findall(r'^    oncectl (.*)$'"),
    ('daemon-reload', 'tests/vm/lib/service.py',
     "systemctl('daemon-reload')"),
    ('daemon-reload', 'tests/vm/lib/service.py',
     "systemctl('enable', '--now', 'oncewrap.socket')"),
    ('dpkg-buildpackage', 'tests/package/run', 'dpkg-buildpackage -us -uc'))

# What the cases below run, and what is no command.
HERE = ('HTTP/1.1 201 Created', 'ls --state unknown')
TEXT = ('client -> lighttpd',)


def test_no_block_is_left_out(t):
    left = [b for b in blocks() if not is_configuration(b) and
            not any(word in b for word in HERE + TEXT) and
            not any(word in b for word in SERVED) and
            not any(word in b for word, _, _ in ELSEWHERE)]
    eq(left, [])
    assert len(blocks()) > 10, len(blocks())
    for word, file, line in ELSEWHERE:
        block(word)
        assert line in text_of(file), '%s does not have %s' % (file, line)


def test_configurations_are_accepted(t):
    found = [b for b in blocks() + OTHERS if is_configuration(b)]
    assert len(found) >= 4, found
    for text in found:
        path = t.write('readme.conf', text)
        run = t.run([base.ONCEWRAP, '-t', '-f', path])
        eq(run.returncode, 0, text + run.stderr.decode())


def from_readme(name, replacements):
    """What servers.example() does, with a block of README.md."""
    (word,) = [w for w, kind in SERVED.items() if name == kind + '.conf']
    text = block(word)
    if name == 'nginx.conf':
        text = 'server {\nlisten 80;\n%s}\n' % text
    for old, new in replacements:
        assert old in text, (old, text)
        text = text.replace(old, new)
    return text


def serve(t, kind):
    servers.example = from_readme
    server, _ = test_servers.setup(
        t, kind, test_servers.OK + '; echo " $REMOTE_USER"')
    # A name that nothing has verified does not get through.
    answer = server.curl(key='"k"', body='body', args=['-u', 'eve:secret'])
    first(answer, 201, b'done\nbody \n')
    again = server.curl(key='"k"', body='body')
    eq((again.status, again.replayed, again.body),
       (201, 'true', answer.body), again)
    eq(t.ledger(), ['1 '])


def test_lines_for_lighttpd(t):
    serve(t, 'lighttpd')


def test_lines_for_apache_with_mod_proxy_fcgi(t):
    serve(t, 'apache-proxy-fcgi')


def test_lines_for_apache_with_mod_fcgid(t):
    serve(t, 'apache-fcgid')


def test_lines_for_nginx(t):
    serve(t, 'nginx')


def test_libraries_are_those_that_the_tests_install(t):
    wanted = block('autoreconf -i').partition('autoreconf')[0]
    wanted = set(wanted.replace('\\\n', '').split()[2:])
    build = re.search('^build="([^"]*)"', text_of('tests', 'packages'),
                      re.M).group(1)
    eq(set(build.split()) - {'libc6-dev'}, wanted)


def test_make_install_brings_what_is_named(t):
    root = t.path('root')
    run = t.run([base.need('make'), '-C', base.BUILDDIR, 'install',
                 'prefix=/usr', 'DESTDIR=' + root],
                env=dict(os.environ, MAKEFLAGS=''))
    eq(run.returncode, 0, run.stderr)
    found = {os.path.relpath(os.path.join(folder, file), root)
             for folder, _, files in os.walk(root) for file in files}
    # test_install.py has these.
    found = {name for name in found if not re.match(
        'usr/(share/doc|lib/(systemd|sysusers.d|tmpfiles.d))/', name)}
    eq(found, {'usr/sbin/oncewrap', 'usr/bin/oncectl',
               'usr/share/man/man1/oncectl.1',
               'usr/share/man/man5/oncewrap.conf.5',
               'usr/share/man/man7/oncewrap-handler.7',
               'usr/share/man/man8/oncewrap.8',
               'usr/share/bash-completion/completions/oncectl',
               'usr/share/oncewrap/once-prepend.php'} |
       ({'usr/lib/oncewrap/oncewrap-postgresql.so'} if os.path.exists(
           os.path.join(base.BUILDDIR, 'oncewrap-postgresql.so')) else set()))


def test_run_as_the_user_of_the_programs(t):
    base.need_root()
    base.need('runuser')
    once = t.once(start=False)
    once.socket = once.address = t.path('run/oncewrap/oncewrap.sock')
    once.write_conf('[server]\ndatabase = %s\nsocket = unix:%s\n' %
                    (t.path('var/lib/oncewrap/oncewrap.db'), once.socket))
    os.chmod(t.dir, 0o755)
    for folder in ('run', 'var', 'var/lib'):
        os.mkdir(t.path(folder))
    lines = block('install -d').strip().split('\n')
    for line in lines[:-1]:
        line = line.replace(' /run', ' ' + t.path('run')).replace(
            ' /var', ' ' + t.path('var'))
        run = t.run(['sh', '-c', line])
        eq(run.returncode, 0, run.stderr)
    words = lines[-1].split()
    at = words.index('/usr/sbin/oncewrap')
    eq(words[at + 1:], ['-f', '/etc/oncewrap.conf'])
    once.prefix = words[:at]
    once.start()
    # runuser is its parent, and dies of a signal before it ends.
    (pid,) = proc.descendants(once.pid)
    once.term = lambda: os.kill(pid, signal.SIGTERM)
    eq(pwd.getpwuid(os.stat(once.socket).st_uid).pw_name, 'www-data')


def under_lighttpd(t, word, once):
    """A lighttpd that has nothing of oncewrap but that block."""
    text = block(word).replace('/run/oncewrap/oncewrap.sock', once.socket)
    os.chmod(once.socket, 0o666)
    return t.server('lighttpd-block', once, before='server.modules = '
                    '( "mod_fastcgi" )\n' + text)


def under_nginx(t, word, once):
    """An nginx that has that block besides the example."""
    os.chmod(once.socket, 0o666)
    return t.server('nginx', once, inside=block(word).replace(
        '/run/oncewrap/oncewrap.sock', once.socket))


def hands_on_a_path_without_a_file(t, under, word):
    once = t.once(t.sh('status 201; echo "$SCRIPT_NAME$PATH_INFO"'),
                  routes={'/payments': {'key': 'required'}})
    server = under(t, word, once)
    answer = server.curl('/payments/17', key='k')
    first(answer, 201)
    eq(answer.body, b'/payments/17\n')
    eq(server.curl('/payments/17', key='k').replayed, 'true')
    eq(server.curl('/payments/17', key='k', body='other').code, 'key-reused')
    eq(server.curl('/paymentsx', 'GET').status, 404)


def test_lighttpd_hands_on_a_path_without_a_file(t):
    hands_on_a_path_without_a_file(t, under_lighttpd, '"^/payments(')


def test_nginx_hands_on_a_path_without_a_file(t):
    hands_on_a_path_without_a_file(t, under_nginx, 'location ~ ^/payments(')


def test_lighttpd_hands_on_the_scripts_of_php_fpm(t):
    fpm = test_application.Fpm(t)
    conf = re.search(r'^\[route /shop\]\n(?:.+\n)+', block('[route /shop]'),
                     re.M).group()
    once = t.once(conf=conf.replace('/run/php/php8.2-fpm.sock', fpm.socket))
    server = under_lighttpd(t, '"^/shop/"', once)
    t.write('htdocs/shop/api.php', '<?php http_response_code(201);'
            'file_put_contents("%s", "run\\n", FILE_APPEND);'
            'echo "thanks for " . file_get_contents("php://input");' %
            t.path('ledger'))
    for path in ('/shop/api.php', '/shop/api.php/orders'):
        answer = server.curl(path, key='k', body='tea')
        first(answer, 201)
        eq(answer.body, b'thanks for tea')
        eq(server.curl(path, key='k', body='tea').replayed, 'true')
    eq(len(t.ledger()), 2)
    # A script that is not there: its key is unknown, and a GET tells why.
    eq(server.curl('/shop/none.php', 'GET').status, 404)


def test_commands_of_operators(t):
    gate = t.gate()
    once = t.once(t.sh('gate gate; kill -9 $$'))
    held = [test_application.Background(lambda k=k: once.post(k))
            for k in ('KEY', 'lost')]
    for _ in held:
        gate.wait()
        gate.open()
    for run in held:
        run.result()
    lines = block('ls --state unknown').strip().split('\n')
    eq(len(lines), 3, lines)
    said = []
    lines += re.findall(r'^\.Ql (oncectl .* audit .*)$',
                        manual.page('oncewrap.8'), re.M)
    for line in lines:
        line = line.replace('/etc/oncewrap.conf', once.file).replace(
            '/usr/lib/cgi-bin', t.dir).replace('-f FILE', '-f ' + once.file)
        if '--not-executed' in line:
            line = line.replace('KEY', 'lost')
        t.write('cgi-response', 'Status: 201\n\ndone\n')
        run = t.run(['sh', '-c', line.replace('oncectl', base.ONCECTL, 1)],
                    cwd=t.dir)
        said.append((run.returncode, run.stdout.decode() +
                     run.stderr.decode()))
    eq([status for status, _ in said], [0, 0, 0, 1], said)
    assert 'KEY' in said[0][1] and 'lost' in said[0][1], said
    eq((once.state('KEY'), once.state('lost')),
       ('completed', 'failed_retryable'))


def test_long_work_is_accepted_as_printed(t):
    conf = block('status_path')
    assert conf.startswith('[server]\n'), conf
    gate = t.gate()
    once = t.once(start=False)
    handler = t.sh('gate gate; status 201; echo done', 'report')
    once.write_conf('[server]\ndatabase = %s\nsocket = unix:%s\n' %
                    (once.database, once.socket) + conf[len('[server]\n'):] +
                    'handler = %s\n' % handler)
    once.start()
    # "must be handed on all the same"
    lines = block('"^/payments(').replace('/run/oncewrap/oncewrap.sock',
                                          once.socket)
    os.chmod(once.socket, 0o666)
    server = t.server('lighttpd-block', once, before='server.modules = '
                      '( "mod_fastcgi" )\n' + ''.join(
                          lines.replace('/payments', path)
                          for path in ('/jobs', '/cgi-bin/report')))
    answer = server.curl('/cgi-bin/report', key='k', body='{}',
                         headers=['Prefer: respond-async'])
    head, _, body = block('HTTP/1.1 202').partition('\n\n')
    eq(answer.status, 202, answer)
    for line in head.split('\n')[1:]:
        name, value = line.split(': ')
        got = answer.get(name)
        if name == 'Location':
            got, value = [re.sub('[0-9a-f]{32}$', 'ID', v)
                          for v in (got, value)]
        eq(got, value, answer)
    members = re.findall(r'"(\w+)":', body)
    eq(members, re.findall(r'"(\w+)": ?', answer.body.decode())[
        :len(members)])
    place = answer.get('Location')
    eq(server.curl(place + '/result', 'GET').status, 404)
    gate.wait()
    gate.open()
    once.wait_state('k', 'completed')
    for again in (server.curl(place + '/result', 'GET'),
                  server.curl('/cgi-bin/report', key='k', body='{}')):
        eq((again.status, again.body), (201, b'done\n'), again)


def test_transaction_of_a_handler(t):
    sql = block('BEGIN IMMEDIATE;').replace(
        'INSERT INTO ride ...', "INSERT INTO ride VALUES ('$ONCE_KEY');")
    sql = sql.replace('$ONCE_TOKEN', "'$ONCE_TOKEN'")
    assert sql.count('INSERT') == 3, sql
    once = t.once(t.sh('sqlite3 -bail "$ONCE_DATABASE" <<END >&2\n'
                       '.timeout 5000\nCREATE TABLE IF NOT EXISTS '
                       'ride (key);\n%sEND\n' % sql),
                  defaults={'share_database': 'yes'},
                  conf='[effect receipt]\nprogram = %s\n' %
                  t.sh('cat >"$D/receipt.part"; mv "$D/receipt.part" '
                       '"$D/receipt"'))
    base.need('sqlite3')
    answer = once.post('k')
    first(answer, 201)
    eq(answer.body, b'on its way')
    t.wait_file('receipt')
    eq(t.read('receipt'), b'...')
