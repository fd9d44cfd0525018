"""One lighttpd, two addresses: oncewrap behind one, fcgiwrap behind the other.

Both addresses have the same port and the same folder of programs, so what a
program is told differs in SERVER_ADDR only.
"""
import re
import socket

import base
import servers

OURS, THEIRS = '127.0.0.1', '127.0.0.2'
# What lighttpd says itself, at each answer anew.
VOLATILE = ('date',)


class Beside(servers.Server):
    """A lighttpd with both; .once is the oncewrap, .wrap fcgiwrap's socket."""

    def __init__(self, t, once, before='', inside=''):
        self.wrap = servers.fcgiwrap(t)
        super().__init__(t, 'lighttpd', once, before=before, inside=inside)

    def lighttpd(self):
        for address in (OURS, THEIRS):
            # Taken by another program: start() tries another port.
            with socket.socket() as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind((address, self.port))
        inside, self.inside = self.inside, '''
$SERVER["socket"] == "%s:%d" {
	$HTTP["url"] =~ "^/cgi-bin/" {
		fastcgi.server = ( "/cgi-bin/" => ((
			"socket" => "%s", "disable-time" => 0
		)))
	}
}
%s''' % (THEIRS, self.port, self.wrap, self.inside)
        try:
            return super().lighttpd()
        finally:
            self.inside = inside

    def raw_to(self, address, data):
        """Sends bytes; all that comes back until the end."""
        with socket.create_connection((address, self.port)) as s:
            s.settimeout(base.WAIT * base.SLOW)
            s.sendall(data)
            out = b''
            while True:
                try:
                    more = s.recv(65536)
                except ConnectionResetError:
                    return out + b'<reset>'
                if not more:
                    return out
                out += more

    def ask(self, address, path, method='GET', body=b'', headers=()):
        """An answer as bytes, without what is volatile."""
        lines = ['%s %s HTTP/1.1' % (method, path),
                 'Host: www.example', 'Connection: close'] + list(headers)
        if body or method in ('POST', 'PUT', 'PATCH'):
            lines.append('Content-Length: %d' % len(body))
        data = '\r\n'.join(lines + ['', '']).encode('latin-1') + body
        return without(self.raw_to(address, data), VOLATILE)

    def both(self, *request):
        """(ours, theirs): both answers to a request, see ask()."""
        return tuple(self.ask(address, *request)
                     for address in (OURS, THEIRS))


def without(answer, names):
    """An answer as bytes without the fields of those names."""
    for name in names:
        answer = re.sub(rb'\r\n%s:[^\r\n]*' % name.encode(), b'', answer,
                        flags=re.I)
    return answer
