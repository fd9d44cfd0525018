"""Cases of the disk itself: it forgets what it may, and nothing else."""
import random

from disk import BLOCK, COMMIT, SECTOR, SUPER, Platter

BLOCKS = 64


def block(text):
    return text.encode() * BLOCK


def fresh(lies=False):
    return Platter(block('.') * BLOCKS, lies)


def fates(act, lies=False):
    """What block 0 may be after a cut, over many of them; act(platter) is
    what was written before."""
    found = set()
    for seed in range(200):
        platter = fresh(lies)
        act(platter)
        for i in range(1, BLOCKS):      # others that have fates
            platter.write(i * BLOCK, block('x'))
        platter.cut(random.Random(seed))
        assert platter.seen == platter.durable
        assert not platter.cache
        found.add(platter.read(0, BLOCK))
    return found


def whole(found):
    return {data for data in found if len(set(data)) == 1}


def flushed_stays(t):
    def act(platter):
        platter.write(0, block('a'))
        platter.flush()
    assert fates(act) == {block('a')}


def fua_stays(t):
    def act(platter):
        platter.write(0, block('a'))
        platter.write(0, block('b'), fua=True)
    assert fates(act) == {block('b')}


def unflushed_may_go(t):
    """Each of the writes to a block may be the last that reached it."""
    def act(platter):
        platter.write(0, block('a'))
        platter.write(0, block('b'))
    assert whole(fates(act)) == {block('.'), block('a'), block('b')}


def unflushed_may_be_torn(t):
    """At sectors, and nowhere else."""
    def act(platter):
        platter.write(0, block('a'))
    torn = [data for data in fates(act) if len(set(data)) > 1]
    assert torn
    for data in torn:
        for at in range(0, BLOCK, SECTOR):
            assert data[at:at + SECTOR] in (b'a' * SECTOR, b'.' * SECTOR)


def what_ext4_needs_whole_is_not_torn(t):
    for start in COMMIT, 56 * b's' + SUPER:
        data = start.ljust(2 * SECTOR, b'c')
        found = fates(lambda platter: platter.write(4 * SECTOR, data))
        assert {block[4 * SECTOR:6 * SECTOR] for block in found} == \
            {data, b'.' * len(data)}


def flushed_sectors_of_a_torn_block_stay(t):
    def act(platter):
        platter.write(0, block('a'))
        platter.flush()
        platter.write(SECTOR, b'b' * SECTOR)
    for data in fates(act):
        assert set(data[:SECTOR] + data[2 * SECTOR:]) == {ord('a')}


def what_is_dropped_is_counted(t):
    for seed in range(100):
        platter = fresh()
        for i in range(BLOCKS):
            platter.write(i * BLOCK, block('x'))
        loss = platter.cut(random.Random(seed))
        got = [platter.read(i * BLOCK, BLOCK) for i in range(BLOCKS)]
        assert loss.unflushed == BLOCKS
        assert loss.dropped == len([b for b in got if b != block('x')])
        assert loss.torn == len([b for b in got if len(set(b)) > 1])


def a_lie_loses_what_was_flushed(t):
    def act(platter):
        platter.write(0, block('a'), fua=True)
        platter.flush()
    assert fates(act, lies=True) == {block('.'), block('a')}


def cases():
    return [('disk.' + case.__name__, case) for case in (
        flushed_stays, fua_stays, unflushed_may_go, unflushed_may_be_torn,
        what_ext4_needs_whole_is_not_torn,
        flushed_sectors_of_a_torn_block_stay, what_is_dropped_is_counted,
        a_lie_loses_what_was_flushed)]
