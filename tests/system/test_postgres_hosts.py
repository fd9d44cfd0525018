"""Daemons of several hosts at one PostgreSQL server."""
import os

from answer import eq, first, replay
from once import Background
from test_postgres_ops import servers
from test_store import mount


def container(t, server, name, handler):
    """A daemon with a file system of its own for its state: the lock file has
    the same number as in any other such file system."""
    disk = t.path('disk-' + name)
    os.mkdir(disk)
    mount(t, disk, 'size=1m,mode=700')
    return t.once(handler, server={'durability': 'normal',
                                   'owner_timeout': '2s',
                                   'sweep_interval': '100ms'},
                  defaults={'on_crash': 'resume'}, database=server.uri(),
                  env=dict(os.environ, STATE_DIRECTORY=disk), name=name)


def test_containers_of_one_machine_with_one_name_are_two_hosts(t):
    server = servers(t).make('a')
    gate = t.gate()
    handler = t.sh('ledger; gate gate; status 200')
    a = container(t, server, 'a', handler)
    run = Background(lambda: a.post('k'))
    gate.wait()
    b = container(t, server, 'b', handler)
    eq(server.sql('SELECT count(DISTINCT host) FROM once_owner'), '1')
    b.wait_log('event=host-not-unique')
    b.ctl('sweep')
    eq(b.post('k').code, 'key-in-progress')
    gate.open(2)
    answer = run.result()
    first(answer)
    replay(b.post('k'), answer)
    first(b.post('l'))
    eq(len(t.ledger()), 2)
    for once in (a, b):
        eq(once.log_lines('event=store-went-back'), [])
