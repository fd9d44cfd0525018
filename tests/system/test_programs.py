"""CGI programs that people run, from Debian's packages, as they come.

Each runs behind one lighttpd, once behind oncewrap and once behind fcgiwrap.
Without a key the answers are the same byte for byte, but for what is named
here: Date, and what a program draws anew at each run.  With a key, sent twice,
there is one effect, and the second answer is the first one's replay.
"""
import gzip
import os
import re
import shlex

import beside
import fcgi
import servers
from answer import eq, first
from base import need, wait_until

FORM = 'Content-Type: application/x-www-form-urlencoded'
# lighttpd adds or joins these.
SERVERS = ('date', 'server', 'connection', 'content-length', 'accept-ranges',
           'transfer-encoding', 'vary', 'idempotent-replayed')
# fcgiwrap, of a program that ended before it had read the whole body.
UNREAD = b'An error occurred while reading the request\n'
# The time of a run, to the second: the two runs may be in two of them.
CLOCK = [rb'\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d (GMT|[+]0000)',
         rb'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d']


class Programs(beside.Beside):
    """Both wrappers, and the folder cgi-bin."""

    def __init__(self, t, routes=None, **defaults):
        self.before_each = None
        self.masks = []
        # The second answer has the first one's cookies.
        defaults.setdefault('replay_drop', 'Date')
        super().__init__(t, t.once(routes=routes, defaults=defaults))

    def at(self, address, path):
        return 'http://%s:%d%s' % (address, self.port, path)

    def same(self, path, method='GET', body=b'', headers=(), says=None,
             status=None):
        """Both answers are the same; returns one of them."""
        answers = []
        for address in (beside.OURS, beside.THEIRS):
            if self.before_each:
                self.before_each()
            answer = wait_until(
                lambda to=address: self.taken(to, path, method, body,
                                              headers),
                'the program is faster than its body')
            for pattern in CLOCK + self.masks:
                answer = re.sub(pattern, b'...', answer)
            answers.append(answer)
        what = '%s %s' % (method, path)
        same_bytes(answers[0], answers[1], what)
        if says:
            assert says in answers[0], '%s: %r' % (what, answers[0][:2000])
        assert status is None or answers[0].startswith(
            b'HTTP/1.1 %d ' % status), '%s: %r' % (what, answers[0][:300])
        return answers[0]

    def taken(self, *request):
        """The answer, or None if it is fcgiwrap's own."""
        answer = self.ask(*request)
        return None if answer.endswith(UNREAD) else answer

    def post(self, path, key=None, body=b'', headers=(FORM,)):
        return servers.curl(self.t, self.at(beside.OURS, path), 'POST', key,
                            body, headers)

    def once_only(self, path, key, body=b'', headers=(FORM,), status=200):
        """The first answer to a key; the second is its replay."""
        answer = self.post(path, key, body, headers)
        first(answer, status)
        again = self.post(path, key, body, headers)
        eq((again.status, again.replayed, again.body),
           (status, 'true', answer.body), again)
        eq(kept(again), kept(answer), again)
        eq(self.once.state(key), 'completed')
        return answer


def same_bytes(ours, theirs, what):
    """Shows the place where they begin to differ."""
    if ours == theirs:
        return
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b),
              min(len(ours), len(theirs)))
    raise AssertionError('%s: differ at %d\n  ours   %r\n  theirs %r' % (
        what, at, ours[max(0, at - 100):at + 200],
        theirs[max(0, at - 100):at + 200]))


def kept(answer):
    """The fields that a replay has as well."""
    return sorted((n.lower(), v) for n, v in answer.fields
                  if n.lower() not in SERVERS)


def install(t, name, program, environment=(), arguments=''):
    """cgi-bin/NAME: the program with an environment, as wrappers give none."""
    t.write('cgi-bin/' + name, '#!/bin/sh\n' + ''.join(
        'export %s=%s\n' % (n, shlex.quote(v)) for n, v in environment) +
        'exec %s %s\n' % (program, arguments), 0o755)


def run(t, *argv, **kw):
    """A program that must succeed; its output as text."""
    cwd = kw.pop('cwd', t.dir)
    env = dict(os.environ, HOME=t.dir, USER='ann', LC_ALL='C.UTF-8',
               GIT_CONFIG_NOSYSTEM='1', **kw.pop('env', {}))
    done = t.run(list(argv), cwd=cwd, env=env, **kw)
    assert done.returncode == 0, '%s: exit %d: %s%s' % (
        ' '.join(argv), done.returncode, done.stdout.decode(errors='replace'),
        done.stderr.decode(errors='replace'))
    return done.stdout.decode('utf-8', 'replace')


def multipart(parts, boundary='7d2b0c'):
    """A form as browsers send it, of (name, file name or None, bytes)."""
    out = b''
    for name, file, content in parts:
        out += b'--%s\r\nContent-Disposition: form-data; name="%s"' % (
            boundary.encode(), name.encode())
        if file:
            out += b'; filename="%s"\r\nContent-Type: text/plain' % \
                file.encode()
        out += b'\r\n\r\n' + content + b'\r\n'
    return out + b'--%s--\r\n' % boundary.encode(), \
        ['Content-Type: multipart/form-data; boundary=' + boundary]


# --- git ---

GIT = ('-c', 'user.name=ann', '-c', 'user.email=ann@example.org',
       '-c', 'init.defaultBranch=main', '-c', 'safe.directory=*')


def git(t, *argv, **kw):
    return run(t, need('git'), *GIT, *argv, **kw)


def repository(t):
    """repos/r.git with two commits; a push writes to the ledger."""
    git(t, 'init', '-q', 'work')
    for i in (1, 2):
        t.write('work/file%d' % i, 'line %d\n' % i * 400)
        git(t, 'add', '.', cwd=t.path('work'))
        git(t, 'commit', '-qm', 'commit %d' % i, cwd=t.path('work'), env={
            'GIT_AUTHOR_DATE': '1700000000 +0000',
            'GIT_COMMITTER_DATE': '1700000000 +0000'})
    git(t, 'clone', '-q', '--bare', 'work', 'repos/r.git')
    git(t, 'config', 'http.receivepack', 'true', cwd=t.path('repos/r.git'))
    t.write('repos/r.git/hooks/post-receive',
            '#!/bin/sh\ncat >>"%s/ledger"\n' % t.dir, 0o755)


def pkt(line):
    return b'%04x' % (len(line) + 4) + line


def push_body(t, ref):
    """What a client sends to make a ref at the last commit."""
    head = git(t, 'rev-parse', 'HEAD', cwd=t.path('work')).strip().encode()
    pack = t.run([need('git'), *GIT, 'pack-objects', '--stdout', '-q'],
                 input=b'', cwd=t.path('work')).stdout
    return pkt(b'%s %s %s\0report-status' % (b'0' * 40, head, ref)) + \
        b'0000' + pack


def test_git_http_backend(t):
    repository(t)
    install(t, 'git', '/usr/lib/git-core/git-http-backend', [
        ('GIT_PROJECT_ROOT', t.path('repos')), ('GIT_HTTP_EXPORT_ALL', '1'),
        ('GIT_CONFIG_NOSYSTEM', '1'), ('HOME', t.dir),
        ('GIT_CONFIG_COUNT', '1'), ('GIT_CONFIG_KEY_0', 'safe.directory'),
        ('GIT_CONFIG_VALUE_0', '*')])
    web = Programs(t)
    repo = '/cgi-bin/git/r.git'
    head = git(t, 'rev-parse', 'HEAD', cwd=t.path('work')).strip()
    # The protocol, the older way of files, and what is not there.
    for service in ('upload', 'receive'):
        web.same('%s/info/refs?service=git-%s-pack' % (repo, service),
                 says=b'refs/heads/main', status=200)
    web.same(repo + '/info/refs?service=git-upload-pack',
             headers=['Git-Protocol: version=2'], says=b'version 2')
    web.same(repo + '/HEAD', says=b'ref: refs/heads/main')
    web.same(repo + '/nothing', status=404)
    web.same('/cgi-bin/git/missing.git/HEAD', status=404)
    web.same(repo + '/git-nothing-pack', 'POST', status=404)
    want = pkt(b'want %s no-progress\n' % head.encode()) + b'0000' + \
        pkt(b'done\n')
    kind = ['Content-Type: application/x-git-upload-pack-request']
    web.same(repo + '/git-upload-pack', 'POST', want, kind, says=b'PACK')
    web.same(repo + '/git-upload-pack', 'POST', gzip.compress(want, mtime=0),
             kind + ['Content-Encoding: gzip'], says=b'PACK')
    web.same(repo + '/git-upload-pack', 'POST', want, [
        'Content-Type: text/plain'], status=415)
    web.same(repo + '/git-upload-pack', 'POST', pkt(b'nonsense\n'), kind)

    # A push is one effect.
    kind = ['Content-Type: application/x-git-receive-pack-request']
    ref = t.path('repos/r.git/refs/heads/new')
    body = push_body(t, b'refs/heads/new')
    web.before_each = lambda: os.path.exists(ref) and os.unlink(ref)
    web.same(repo + '/git-receive-pack', 'POST', body, kind,
             says=b'ok refs/heads/new')
    web.before_each()
    eq(len(t.ledger()), 2)
    answer = web.once_only(repo + '/git-receive-pack', 'push', body, kind)
    assert b'ok refs/heads/new' in answer.body, answer
    eq(len(t.ledger()), 3)

    # git itself.
    for address in (beside.OURS, beside.THEIRS):
        name = 'clone-' + address
        git(t, 'clone', '-q', web.at(address, repo), name)
        eq(git(t, 'rev-parse', 'HEAD', cwd=t.path(name)).strip(), head)
        git(t, 'commit', '-q', '--allow-empty', '-m', 'more',
            cwd=t.path(name))
        git(t, '-c', 'http.extraHeader=Idempotency-Key: ' + address, 'push',
            '-q', 'origin', 'HEAD:refs/heads/' + name, cwd=t.path(name))
        eq(git(t, 'rev-parse', name, cwd=t.path('repos/r.git')),
           git(t, 'rev-parse', 'HEAD', cwd=t.path(name)))
    eq((web.once.state(beside.OURS), len(t.ledger())), ('completed', 5))


# --- fossil ---

def fossil(t, *argv, **kw):
    return run(t, need('fossil'), *argv, **kw)


def tickets(t):
    return int(fossil(t, 'sql', '-R', 'r.fossil',
                      'SELECT count(*) FROM ticket'))


def test_fossil(t):
    fossil(t, 'init', '--admin-user', 'ann', 'r.fossil')
    fossil(t, 'user', 'password', 'ann', 'secret', '-R', 'r.fossil')
    fossil(t, 'settings', 'backoffice-disable', '1', '-R', 'r.fossil')
    os.mkdir(t.path('work'))
    work = t.path('work')
    fossil(t, 'open', '../r.fossil', cwd=work)
    t.write('work/file', 'content\n')
    fossil(t, 'add', 'file', cwd=work)
    fossil(t, 'commit', '-m', 'one', '--no-warnings', cwd=work)
    t.write('cgi-bin/fossil', '#!%s\nrepository: %s\n' % (
        need('fossil'), t.path('r.fossil')), 0o755)
    web = Programs(t)
    # Nonces, and how long it took: 0.009s, 0.01s; so the length.
    web.masks = [rb'[0-9a-f]{48}', rb'generated in about\s+[\d.]+s',
                 rb'Content-Length: \d+']
    site = '/cgi-bin/fossil'
    for page, says in (('/timeline', b'one'), ('/dir?ci=tip', b'file'),
                       ('/ticket', b'icket'), ('/doc/tip/file', b'content'),
                       ('/timeline.rss', b'<rss'), ('/style.css', b'body')):
        web.same(site + page, says=says, status=200)
    web.same(site, status=302)
    web.same(site + '/nothing', status=404)
    # A captcha: its number, and its picture.
    web.masks += [rb'captcha-audio/\d+', rb'"cs" value="\d+"',
                  rb'(?s)<pre class="captcha">.*?</pre>']
    web.same(site + '/login', says=b'password', status=200)
    web.same(site + '/login', 'POST', b'u=ann&p=wrong&in=Login', [FORM])
    web.same(site + '/xfer', 'POST', b'nonsense', [
        'Content-Type: application/x-fossil-debug'])

    # A login arrives twice, with its cookie; a ticket is made once.
    answer = web.once_only(site + '/login', 'login',
                           b'u=ann&p=secret&in=Login', status=302)
    cookie = 'Cookie: ' + answer.get('Set-Cookie').partition(';')[0]
    form = servers.curl(t, web.at(beside.OURS, site + '/tktnew'), 'GET',
                        headers=[cookie])
    csrf = re.search(rb'name="csrf" value="(\w+)"', form.body).group(1)
    web.same(site + '/tktnew', headers=[cookie], says=b'New Ticket')
    ticket = b'csrf=' + csrf + b'&title=late&type=Incident&severity=Minor' \
        b'&icomment=It+is+late.&mutype=Markdown&submit=Submit'
    sent = [FORM, cookie,
            'Referer: ' + web.at(beside.OURS, site + '/tktnew')]
    answer = web.once_only(site + '/tktnew', 'ticket', ticket, sent,
                           status=302)
    assert '/tktview/' in answer.get('Location'), answer
    eq(tickets(t), 1)
    eq(web.post(site + '/tktnew', None, ticket, sent).status, 302)
    eq(tickets(t), 2)

    # fossil itself: a clone, and a push with a password.
    content = 'content\n'
    for address in (beside.OURS, beside.THEIRS):
        url = 'http://ann:secret@%s:%d%s' % (address, web.port, site)
        name = 'clone-' + address
        fossil(t, 'clone', '--once', url, name + '.fossil', '-A', 'ann')
        os.mkdir(t.path(name))
        fossil(t, 'open', '../%s.fossil' % name, cwd=t.path(name))
        eq(t.read(name + '/file').decode(), content)
        content += 'from %s\n' % address
        t.write(name + '/file', content)
        fossil(t, 'commit', '-m', address, '--no-warnings',
               cwd=t.path(name))
        fossil(t, 'push', '--once', url, cwd=t.path(name))
        eq(fossil(t, 'cat', 'file', '-R', 'r.fossil', '-r', 'tip'), content)


# --- CGI.pm ---

CGI_PM = r'''#!/usr/bin/perl
use strict;
use CGI;
my $q = CGI->new;
my $what = $q->param('what') // '';
open(my $ledger, '>>', 'DIR/ledger') or die;
print $ledger "$what\n" if $q->request_method eq 'POST';
close $ledger;
if ($what eq 'nph') {
	print $q->header(-nph => 1, -status => '202 Accepted',
	    -type => 'text/plain');
	print "taken\n";
} elsif ($what eq 'nph-redirect') {
	print $q->redirect(-uri => 'http://www.example/next', -nph => 1);
} elsif ($what eq 'redirect') {
	print $q->redirect('http://www.example/next?a=b');
} elsif ($what eq 'cookie') {
	print $q->header(-cookie => [$q->cookie(-name => 'a', -value => [1, 2]),
	    $q->cookie(-name => 'b', -value => 'x y')], -charset => 'utf-8');
} elsif ($what eq 'dump') {
	print $q->header, $q->start_html('Dump'), $q->Dump,
	    $q->textfield('name'), $q->end_html;
} elsif ($what eq 'upload') {
	my $file = $q->upload('file');
	my $size = 0;
	$size += length while <$file>;
	print $q->header('text/plain'), $q->param('file'), " $size ",
	    $q->uploadInfo($file)->{'Content-Type'}, "\n";
} elsif ($what eq 'die') {
	die "cannot go on";
} else {
	print $q->header('text/plain'), join(',', $q->multi_param), "\n",
	    $q->path_info, ' ', $q->self_url, "\n";
}
'''


def test_cgi_pm(t):
    t.write('cgi-bin/form', CGI_PM.replace('DIR', t.dir), 0o755)
    web = Programs(t)
    script = '/cgi-bin/form'
    for query, says in (('?a=1;b=2', b'a,b'), ('/path%20info?a=1', b'/path'),
                        ('?what=redirect', b'Location: http'),
                        ('?what=cookie', b'Set-Cookie: b=x%20y'),
                        ('?what=dump&name=%3Cx%3E', b'&lt;x&gt;'),
                        ('?what=nph', b'202 Accepted'),
                        ('?what=nph-redirect', b'Location: http'),
                        ('?what=die', b'502 Bad Gateway')):
        if 'die' in query:
            web.masks = [rb'(?s)Content-[tT]ype:.*']
        web.same(script + query, says=says)
        web.same(script + query, 'HEAD')
    web.masks = []
    body, headers = multipart([('what', None, b'upload'),
                               ('file', 'a.txt', b'line\n' * 50000)])
    web.same(script, 'POST', body, headers, says=b'a.txt 250000 text/plain')
    web.same(script, 'POST', b'what=dump&name=J%F6rg', [FORM], says=b'J')

    # Each is one effect, an NPH answer too; the boundary of an upload is new.
    for what, status in (('nph', 202), ('nph-redirect', 302),
                         ('redirect', 302), ('cookie', 200), ('dump', 200)):
        runs = len(t.ledger())
        web.once_only(script, what, b'what=' + what.encode(), status=status)
        eq(len(t.ledger()), runs + 1, what)
    assert web.once.log_lines('mended='), web.once.log()
    runs = len(t.ledger())
    answer = web.once_only(script, 'file', body, headers)
    eq(answer.body, b'a.txt 250000 text/plain\n')
    eq(len(t.ledger()), runs + 1)


# --- php-cgi ---

PHP = r'''<?php
session_save_path('DIR/sessions');
ini_set('session.use_strict_mode', '0');
$what = $_REQUEST['what'] ?? '';
if ($_SERVER['REQUEST_METHOD'] == 'POST')
	file_put_contents('DIR/ledger', "$what\n", FILE_APPEND);
switch ($what) {
case 'session':
	session_start();
	$_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1;
	echo "visit $_SESSION[n]\n";
	break;
case 'upload':
	$file = $_FILES['file'];
	move_uploaded_file($file['tmp_name'], 'DIR/uploaded');
	echo "$file[name] $file[size] ", sha1_file('DIR/uploaded'), "\n";
	break;
case 'status':
	http_response_code(404);
	header('X-A: 1');
	header('X-A: 2', false);
	setcookie('c', 'd');
	echo 'none';
	break;
case 'redirect':
	header('Location: /elsewhere', true, 303);
	break;
case 'exit':
	echo 'three';
	exit(3);
case 'fatal':
	echo 'before ';
	nothing();
default:
	echo $_SERVER['SCRIPT_NAME'], '|', $_SERVER['PATH_INFO'] ?? '', '|',
	    $_SERVER['QUERY_STRING'], '|', file_get_contents('php://input');
}
'''


def test_php_cgi(t):
    os.mkdir(t.path('sessions'))
    t.write('php/page.php', PHP.replace('DIR', t.dir))
    # php-cgi serves what SCRIPT_FILENAME names, for a server with an action.
    install(t, 'page', need('php-cgi'), [
        ('REDIRECT_STATUS', '200'),
        ('SCRIPT_FILENAME', t.path('php/page.php'))])
    web = Programs(t, routes={'/cgi-bin/page': {'exit_status': 'ignore'}})
    page = '/cgi-bin/page'
    session = ['Cookie: PHPSESSID=abcdefghijklmnopqrstuvwxyz']
    for query, says in (('', b'|'), ('/info?a=b%20c', b'a=b%20c'),
                        ('?what=status', b'404 Not Found'),
                        ('?what=redirect', b'303 See Other'),
                        ('?what=exit', b'three'), ('?what=fatal', b'')):
        web.same(page + query, says=says)
    web.before_each = lambda: fcgi.unlink(
        t.path('sessions/sess_abcdefghijklmnopqrstuvwxyz'))
    web.same(page + '?what=session', headers=session, says=b'visit 1')
    web.before_each = None
    body, headers = multipart([('what', None, b'upload'),
                               ('file', 'b.txt', b'text\n' * 40000)])
    web.same(page, 'POST', body, headers, says=b'b.txt 200000')
    web.same(page, 'POST', b'a=b', [FORM], says=b'|a=b')
    web.same(page, 'POST', b'{"a": 1}', ['Content-Type: application/json'],
             says=b'{"a": 1}')

    runs = len(t.ledger())
    answer = web.once_only(page, 'session', b'what=session', [FORM])
    eq(answer.body, b'visit 1\n')
    cookie = 'Cookie: ' + answer.get('Set-Cookie').partition(';')[0]
    eq(web.once_only(page, 'again', b'what=session', [FORM, cookie]).body,
       b'visit 2\n')
    web.once_only(page, 'file', body, headers)
    web.once_only(page, 'status', b'what=status', status=404)
    web.once_only(page, 'exit', b'what=exit')
    eq(len(t.ledger()), runs + 5)


# --- nagios ---

NAGIOS_CFG = '''
object_cache_file=DIR/objects.cache
status_file=DIR/status.dat
log_file=DIR/nagios.log
log_archive_path=DIR
temp_path=DIR
temp_file=DIR/nagios.tmp
check_external_commands=1
command_file=DIR/nagios.cmd
'''
NAGIOS_CGI_CFG = '''
main_config_file=DIR/nagios.cfg
physical_html_path=/usr/share/nagios4/htdocs
url_html_path=/nagios4
use_authentication=1
authorized_for_system_information=ann
authorized_for_system_commands=ann
authorized_for_configuration_information=ann
authorized_for_all_hosts=ann
authorized_for_all_services=ann
authorized_for_all_host_commands=ann
'''
NAGIOS_OBJECTS = '''
define timeperiod {
	timeperiod_name	always
	alias	always
	sunday	00:00-24:00
	}
define command {
	command_name	check
	command_line	/bin/true
	}
define contact {
	contact_name	ann
	service_notification_period	always
	host_notification_period	always
	service_notification_options	n
	host_notification_options	n
	service_notification_commands	check
	host_notification_commands	check
	}
define host {
	host_name	router
	address	192.0.2.1
	check_command	check
	check_period	always
	notification_period	always
	contacts	ann
	max_check_attempts	1
	}
'''


def test_nagios_cmd_cgi(t):
    for name, text in (('nagios.cfg', NAGIOS_CFG),
                       ('cgi.cfg', NAGIOS_CGI_CFG),
                       ('objects.cache', NAGIOS_OBJECTS)):
        t.write(name, text.replace('DIR', t.dir))
    t.write('status.dat', 'programstatus {\n\tnagios_pid=1\n'
            '\tcheck_external_commands=1\n\t}\n')
    os.mkfifo(t.path('nagios.cmd'))
    commands = os.open(t.path('nagios.cmd'), os.O_RDWR | os.O_NONBLOCK)
    t.defer(lambda: os.close(commands))
    for name in 'cmd', 'status', 'extinfo', 'statusjson':
        install(t, 'nagios-' + name,
                '/usr/lib/cgi-bin/nagios4/%s.cgi' % name, [
                    ('NAGIOS_CGI_CONFIG', t.path('cgi.cfg')),
                    ('REMOTE_USER', 'ann'), ('TZ', 'UTC')])
    web = Programs(t, routes={'/cgi-bin/nagios-statusjson': {
        'exit_status': 'ignore'}})
    # Made of the time: the form's number, and when it was drawn.
    web.masks = [rb'NagFormId=\w+', rb"'nagFormId' VALUE='\w+'",
                 rb'Last Updated: [\w :]+<', rb'"query_time": \d+']
    form = '/cgi-bin/nagios-cmd'
    web.same(form + '?cmd_typ=1&host=router', says=b'add a host comment')
    web.same('/cgi-bin/nagios-extinfo?type=1&host=router', says=b'router')
    web.same('/cgi-bin/nagios-status?host=all', says=b'Current Network')

    # Of a query that it does not know it says so, and exits with 254.
    json = '/cgi-bin/nagios-statusjson'
    web.same(json + '?query=hostlist', says=b'"type_code"')
    web.same(json + '?query=nothing', says=b'"type_code"')
    web.once_only(json, 'json', b'query=nothing')
    assert web.once.log_lines('key=json .*exit=254 '), web.once.log()

    def written():
        try:
            return os.read(commands, 65536).decode().splitlines()
        except BlockingIOError:
            return []

    comment = b'cmd_typ=1&cmd_mod=2&host=router&persistent=on&com_data=' + \
        b'it+is+slow&btnSubmit=Commit&nagFormId=7'
    sent = [FORM, 'Cookie: NagFormId=7']
    web.same(form, 'POST', comment, sent, says=b'successfully submitted')
    eq(len(written()), 2)
    web.same(form, 'POST', comment, [FORM, 'Cookie: NagFormId=8'])
    web.same(form, 'POST', b'cmd_typ=1&cmd_mod=2&btnSubmit=Commit', sent)
    eq(written(), [])
    answer = web.once_only(form, 'comment', comment, sent)
    assert b'successfully submitted' in answer.body, answer
    line, = written()
    assert line.endswith('ADD_HOST_COMMENT;router;1;ann;it is slow'), line


# --- cgit, gitweb, awstats: pages ---

def test_cgit(t):
    repository(t)
    t.write('cgitrc', 'virtual-root=/cgi-bin/cgit\nsnapshots=tar.gz\n'
            'scan-path=%s\n' % t.path('repos'))
    install(t, 'cgit', '/usr/lib/cgit/cgit.cgi', [
        ('CGIT_CONFIG', t.path('cgitrc')), ('HOME', t.dir),
        ('GIT_CONFIG_COUNT', '1'), ('GIT_CONFIG_KEY_0', 'safe.directory'),
        ('GIT_CONFIG_VALUE_0', '*')])
    web = Programs(t)
    # When it was drawn, and how long ago a commit was.
    web.masks = [rb'Last-Modified: [\w ,:]+', rb'Expires: [\w ,:]+',
                 rb'at [\d-]+ [\d:]+ \+0000', rb"data-ut='\d+'",
                 rb'\d+ min\.']
    for path, says in (('/', b'r.git'), ('/r.git/', b'commit 2'),
                       ('/r.git/log/', b'commit 1'),
                       ('/r.git/commit/', b'file2'),
                       ('/r.git/plain/file1', b'line 1'),
                       ('/r.git/tree/?id=nothing', b''),
                       ('/r.git/snapshot/r-main.tar.gz', b'\x1f\x8b'),
                       ('/missing/', b'No repositories found')):
        web.same('/cgi-bin/cgit' + path, says=says)
        web.same('/cgi-bin/cgit' + path, 'HEAD')
    web.once_only('/cgi-bin/cgit/r.git/log/', 'page')


def test_gitweb(t):
    repository(t)
    t.write('gitweb.conf', '$projectroot = "%s";\n$omit_owner = 1;\n'
            '$feature{"timed"}{"default"} = [0];\n' % t.path('repos'))
    install(t, 'gitweb', '/usr/lib/cgi-bin/gitweb.cgi', [
        ('GITWEB_CONFIG', t.path('gitweb.conf')), ('HOME', t.dir),
        ('GIT_CONFIG_COUNT', '1'), ('GIT_CONFIG_KEY_0', 'safe.directory'),
        ('GIT_CONFIG_VALUE_0', '*')])
    web = Programs(t)
    web.masks = [rb'\d+ (sec|min)s? ago', rb'Expires: [\w ,:]+']
    for query, says in (('', b'r.git'), ('?p=r.git', b'commit 2'),
                        ('?p=r.git;a=shortlog', b'commit 1'),
                        ('?p=r.git;a=blob_plain;f=file1', b'line 1'),
                        ('?p=missing.git', b'404')):
        web.same('/cgi-bin/gitweb' + query, says=says)


ACCESS = ''.join(
    '192.0.2.%d - - [03/Mar/2024:10:%02d:00 +0000] "GET /page%d HTTP/1.1" '
    '200 1234 "-" "Mozilla/5.0 (X11; Linux x86_64) Firefox/115.0"\n' %
    (i % 9 + 1, i, i % 4) for i in range(60))


def test_awstats(t):
    t.write('access.log', ACCESS)
    t.write('awstats/awstats.site.conf',
            'LogFile="%s"\nLogFormat=1\nSiteDomain="www.example"\n'
            'DirData="%s"\nDirIcons="/icon"\nDNSLookup=0\n'
            'HostAliases="localhost"\nAllowToUpdateStatsFromBrowser=1\n'
            'AllowFullYearView=3\nUseFramesWhenCGI=0\n' % (
                t.path('access.log'), t.path('awstats')))
    install(t, 'awstats', '/usr/lib/cgi-bin/awstats.pl', [
        ('TZ', 'UTC'), ('PERL_HASH_SEED', '0'), ('PERL_PERTURB_KEYS', '0'),
        ('AWSTATS_ENABLE_CONFIG_DIR', t.path('awstats'))])
    web = Programs(t, routes={'/cgi-bin/awstats': {'exit_status': 'ignore'}})
    page = '/cgi-bin/awstats?config=site&configdir=%s' % t.path('awstats')
    # When it was drawn.
    web.masks = [rb'(Last-Modified|Expires): [\w :]+\d{4}',
                 rb'\d\d \w{3} \d{4} (-|at) \d\d:\d\d(:\d\d)?']
    web.same(page + '&month=03&year=2024', says=b'Never updated')
    web.same('/cgi-bin/awstats?config=missing', says=b'Error')
    data = t.path('awstats/awstats032024.site.txt')
    sent = b'config=site&configdir=%s&update=1&month=03&year=2024' % t.path(
        'awstats').encode()
    answer = web.once_only('/cgi-bin/awstats', 'update', sent)
    assert b'/page1' in answer.body and os.path.exists(data), answer
    web.same(page + '&month=03&year=2024', says=b'/page1')
    # A page that says what is wrong, and exits with 1.
    answer = web.once_only('/cgi-bin/awstats', 'wrong', b'config=missing')
    assert b'Error' in answer.body, answer
    assert web.once.log_lines('event=run .*key=wrong .*exit=1 '), \
        web.once.log()


# --- mapserv, whose packages are large: in tests/run --all alone ---

MAP = '''MAP
	NAME "one"
	SIZE 60 40
	EXTENT 0 0 60 40
	IMAGECOLOR 255 255 200
	IMAGETYPE "png"
	PROJECTION
		"+proj=longlat +datum=WGS84 +no_defs"
	END
	WEB
		TEMPLATE "page.html"
		METADATA
			"ows_enable_request" "*"
			"ows_onlineresource" "http://www.example/cgi-bin/map"
			"ows_title" "one"
			"ows_srs" "EPSG:4326"
		END
	END
	LAYER
		NAME "square"
		TYPE POLYGON
		STATUS DEFAULT
		TEMPLATE "square.html"
		FEATURE
			POINTS 10 10 10 30 30 30 30 10 10 10 END
		END
		CLASS
			STYLE
				COLOR 200 0 0
			END
		END
	END
END
'''


def mapserv(t):
    t.write('map/one.map', MAP)
    t.write('map/page.html', '<!-- MapServer Template -->\n<p>[mapx]</p>\n')
    t.write('map/mapserver.conf',
            'CONFIG\n\tENV\n\t\tMS_MAP_PATTERN "."\n\tEND\nEND\n')
    install(t, 'map', '/usr/lib/cgi-bin/mapserv', [
        ('MAPSERVER_CONFIG_FILE', t.path('map/mapserver.conf')),
        ('MS_MAPFILE', t.path('map/one.map'))])
    web = Programs(t)
    wms = 'service=WMS&version=1.1.1&request='
    getmap = wms + 'GetMap&layers=square&styles=&srs=EPSG:4326' \
        '&bbox=0,0,60,40&width=60&height=40&format=image/png'
    for query, says in (('mode=map', b'\x89PNG'), ('mode=browse', b'<p>'),
                        (wms + 'GetCapabilities', b'<Name>square</Name>'),
                        (getmap, b'\x89PNG'), ('mode=nothing', b''),
                        (wms + 'Nothing', b'ServiceException')):
        web.same('/cgi-bin/map?' + query, says=says)
        web.same('/cgi-bin/map', 'POST', query.encode(), [FORM])
    web.once_only('/cgi-bin/map', 'map', getmap.encode())


if os.environ.get('TEST_ALL'):
    test_mapserv = mapserv
