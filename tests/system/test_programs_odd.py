"""Odd programs without a key: what a client sees is what fcgiwrap shows it.

Named differences: a program that is not there is 404; the words of a 502; and
what a program leaves in the background is not waited for (test_cgi).
"""
import os

import beside
import fcgi
import servers
from answer import eq

DOCUMENT = r"printf 'Content-Type: text/plain\r\n\r\nbody'"

# What a program does, in shell; it has read its body.
ODD = {
    'document': DOCUMENT,
    'no_output': ':',
    'exit_1_without_output': 'exit 1',
    'exit_1': DOCUMENT + '; exit 1',
    'exit_75': DOCUMENT + '; exit 75',
    'killed_without_output': 'kill -9 $$',
    'killed_after_its_output': DOCUMENT + '; kill -9 $$',
    'terminated_after_its_output': DOCUMENT + '; kill -15 $$',
    'segmentation_fault_after_its_head':
        r"printf 'Content-Type: a/b\r\n\r\n'; kill -11 $$",
    'no_head': 'echo hello, world',
    'no_head_but_html': "echo '<html><body>hello</body></html>'",
    'perl_warning_in_front':
        r"printf 'odd at x.pl line 3.\nContent-Type: a/b\n\nbody'",
    'php_warning_in_front':
        r"printf 'Warning: odd in x on line 3\nContent-Type: a/b\n\nbody'",
    'empty_line_in_front': r"printf '\nContent-Type: a/b\n\nbody'",
    'crlf_in_front': r"printf '\r\nContent-Type: a/b\n\nbody'",
    'only_an_empty_line': r"printf '\n'",
    'nph': r"printf 'HTTP/1.0 202 Accepted\r\nContent-Type: a/b\r\n\r\nbody'",
    'nph_1_1': r"printf 'HTTP/1.1 404 Nope\nContent-Type: a/b\n\nbody'",
    'nph_and_status': r"printf 'HTTP/1.0 202 Accepted\r\nServer: x\r\n"
                      r"Status: 202 Accepted\r\nContent-Type: a/b\r\n\r\nb'",
    'nph_and_another_status': r"printf 'HTTP/1.0 200 OK\r\n"
                              r"Status: 404 No\r\nContent-Type: a/b\r\n\r\nb'",
    'status': r"printf 'Status: 201 Made\nContent-Type: a/b\n\nbody'",
    'status_alone': r"printf 'Status: 404\n\n'",
    'status_in_lower_case': r"printf 'status: 404\n\nbody'",
    'status_run_together': r"printf 'Status: 404OK\n\nbody'",
    'status_in_words': r"printf 'Status: OK\n\nbody'",
    'status_empty': r"printf 'Status:\nContent-Type: a/b\n\nbody'",
    'status_99': r"printf 'Status: 99\n\nbody'",
    'status_100': r"printf 'Status: 100\n\nbody'",
    'status_103': r"printf 'Status: 103\nLink: </a>\n\nbody'",
    'status_204_with_a_body': r"printf 'Status: 204\n\nbody'",
    'status_304_with_a_body': r"printf 'Status: 304\nETag: \"a\"\n\nbody'",
    'status_600': r"printf 'Status: 600\n\nbody'",
    'status_1000': r"printf 'Status: 1000\n\nbody'",
    'status_twice': r"printf 'Status: 201\nStatus: 404\n\nbody'",
    'status_401': r"printf 'Status: 401\nWWW-Authenticate: Basic\n\nno'",
    'status_500': r"printf 'Status: 500\nContent-Type: a/b\n\nno'",
    'status_502': r"printf 'Status: 502\nContent-Type: a/b\n\nno'",
    'location_absolute': r"printf 'Location: http://h/p?q=a\r\n\r\n'",
    'location_local': r"printf 'Location: /cgi-bin/document?x=1\r\n\r\n'",
    'location_local_missing': r"printf 'Location: /nowhere\r\n\r\n'",
    'location_local_with_status':
        r"printf 'Status: 303\r\nLocation: /cgi-bin/document\r\n\r\nsee'",
    'location_relative': r"printf 'Location: document\r\n\r\n'",
    'location_empty': r"printf 'Location:\r\n\r\n'",
    'head_of_30_kb': r'''printf 'Content-Type: a/b\n'
        i=0; while [ $i -lt 300 ]; do i=$((i+1))
            printf 'X-%03d: %094d\n' $i 0; done; printf '\nbody' ''',
    'head_of_70_kb': r'''printf 'Content-Type: a/b\n'
        i=0; while [ $i -lt 700 ]; do i=$((i+1))
            printf 'X-%03d: %094d\n' $i 0; done; printf '\nbody' ''',
    'field_of_20_kb': r"printf 'Content-Type: a/b\nX: %020000d\n\nbody' 0",
    'bare_lf': r"printf 'Content-Type: a/b\nX: y\n\nbody\n\r\n\n'",
    'cr_only': r"printf 'Content-Type: a/b\rX: y\r\rbody\r\r\n'",
    'lf_and_crlf': r"printf 'Content-Type: a/b\nX: y\r\n\nbody'",
    'crlf_and_lf': r"printf 'Content-Type: a/b\r\nX: y\n\r\nbody'",
    'cr_cr_lf': r"printf 'Content-Type: a/b\r\r\nX: y\r\r\n\r\r\nbody'",
    'cr_within_a_value': r"printf 'Content-Type: a/b\nX: y\rz\n\nbody'",
    'lf_cr': r"printf 'Content-Type: a/b\n\rX: y\n\r\n\rbody'",
    'head_without_end': r"printf 'Content-Type: a/b\n'",
    'head_cut_in_mid_line': r"printf 'Content-Type: a/b'",
    'head_in_single_bytes': r"for c in C o n t e n t - T y p e : a / b '\r' "
                            r"'\n' '\r' '\n' b; do printf $c; done",
    'stdout_closed_early': DOCUMENT + '; exec >&-; echo more >&2',
    'both_closed_early': DOCUMENT + '; exec >&- 2>&-; :',
    'stderr_only': 'echo trouble >&2',
    'stderr_only_20_kb': 'head -c 20000 /dev/zero | tr "\\0" x >&2',
    'stderr_and_output': 'echo trouble >&2; ' + DOCUMENT + '; echo x >&2',
    'content_length': r"printf 'Content-Type: a/b\nContent-Length: 4\n\nbody'",
    'content_length_too_small':
        r"printf 'Content-Type: a/b\nContent-Length: 3\n\nbody'",
    'content_length_too_large':
        r"printf 'Content-Type: a/b\nContent-Length: 5\n\nbody'",
    'content_length_twice': r"printf 'Content-Type: a/b\nContent-Length: 4\n"
                            r"Content-Length: 4\n\nbody'",
    'content_length_in_words':
        r"printf 'Content-Type: a/b\nContent-Length: x\n\nbody'",
    'content_type_twice':
        r"printf 'Content-Type: a/b\nContent-Type: a/c\n\nbody'",
    'content_type_empty': r"printf 'Content-Type:\n\nbody'",
    'no_field_of_the_three': r"printf 'X-Other: a\n\nbody'",
    'transfer_encoding': r"printf 'Content-Type: a/b\nTransfer-Encoding: "
                         r"chunked\n\n4\r\nbody\r\n0\r\n\r\n'",
    'connection': r"printf 'Content-Type: a/b\nConnection: close, X\n"
                  r"X: y\nKeep-Alive: 5\n\nbody'",
    'folded_line': r"printf 'Content-Type: a/b\nX: y\n z\n\nbody'",
    'blank_before_colon': r"printf 'Content-Type : a/b\nX : y\n\nbody'",
    'line_without_colon': r"printf 'Content-Type: a/b\nX y\n\nbody'",
    'empty_name': r"printf 'Content-Type: a/b\n: y\n\nbody'",
    'nul_in_the_head': r"printf 'Content-Type: a/b\nX: y\000z\n\nbody'",
    'high_bytes': r"printf 'Content-Type: a/b\nX: \351\377\n\n\000\377'",
    'cookies': r"printf 'Set-Cookie: a\nSet-Cookie: b\nX: 1\nX: 1\n"
               r"Content-Type: a/b\n\n'",
    'date_and_server': r"printf 'Content-Type: a/b\nServer: x\n\nbody'",
    'body_of_one_mb': r"printf 'Content-Type: a/b\n\n'; "
                      'head -c 1048576 /dev/zero',
}
# fcgiwrap says in its own words that there was no answer.
WORDS = ('no_output', 'exit_1_without_output', 'killed_without_output',
         'empty_line_in_front', 'crlf_in_front', 'only_an_empty_line',
         'stderr_only', 'stderr_only_20_kb')
# After CR CR LF fcgiwrap ends lines of the body in CR LF as well.


def kind(answer):
    """Status line and media type."""
    lines = answer.partition(b'\r\n\r\n')[0].lower().split(b'\r\n')
    return [lines[0]] + [line for line in lines
                         if line.startswith(b'content-type:')]


def test_what_a_client_sees_of_odd_programs_is_the_same(t):
    for name, body in ODD.items():
        t.write('cgi-bin/' + name, '#!/bin/sh\ncat >/dev/null\n' + body + '\n',
                0o755)
    web = beside.Beside(t, t.once())
    different = []
    for name in ODD:
        for method, sent in (('GET', b''), ('HEAD', b''),
                             ('POST', b'a=b'), ('PUT', b'x' * 3000)):
            ours, theirs = web.both('/cgi-bin/' + name, method, sent)
            if name in WORDS:
                eq(kind(ours), [b'http/1.1 502 bad gateway',
                                b'content-type: text/plain'], name)
                ours, theirs = kind(ours), kind(theirs)
            if ours != theirs:
                different.append('%s %s\n  ours   %.300r\n  theirs %.300r' %
                                 (method, name, ours, theirs))
    assert not different, '%d differ\n%s' % (len(different),
                                             '\n'.join(different))


# What SCRIPT_FILENAME names, and the status of oncewrap and of fcgiwrap.
NO_PROGRAMS = {
    'missing': (404, 403),
    'no/such/folder': (404, 403),
    'folder': (403, 403),
    'plain': (403, 403),
    'no_interpreter': (502, 502),
    'crlf_after_the_interpreter': (502, 502),
    'no_format': (502, 502),
}


def test_a_program_that_cannot_be_started_is_404_403_or_502(t):
    os.mkdir(t.path('folder'))
    t.write('plain', '#!/bin/sh\n', 0o644)
    t.write('no_interpreter', '#!/nowhere/sh\n', 0o755)
    t.write('crlf_after_the_interpreter', '#!/bin/sh\r\n', 0o755)
    t.write('no_format', 'text\n', 0o755)
    once, wrap = t.once(), servers.fcgiwrap(t)
    for name, expected in NO_PROGRAMS.items():
        for accept, type in (('*/*', 'text/plain'),
                             ('text/html,*/*;q=0.8', 'text/html')):
            params = fcgi.request_params(
                'GET', '/' + name, headers={'Accept': accept},
                params={'SCRIPT_FILENAME': t.path(name)})
            ours = fcgi.exchange(once.address, params)
            theirs = fcgi.exchange(wrap, params)
            eq((ours.status, theirs.status), expected, name)
            if expected[0] == 502:
                type = 'text/plain'
            eq(ours.get('Content-Type').partition(';')[0], type, ours)
            eq(ours.raw.count(b'</html>'), type.count('html'), ours)


def test_an_answer_with_its_length_is_taken_whole(t):
    t.write('cgi-bin/length', '#!/bin/sh\n' + ODD['content_length'], 0o755)
    web = beside.Beside(t, t.once())
    for _ in range(20):
        ours, theirs = web.both('/cgi-bin/length')
        eq(ours, theirs)
    web.once.stop()
    eq(web.once.log_lines('answer-not-taken'), [])
