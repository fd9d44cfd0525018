"""README.md: its commands run, and print what it says that they print."""
import os
import re

import base
import test_examples
from answer import eq

with open(os.path.join(base.TOP, 'README.md')) as f:
    README = f.read()


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
