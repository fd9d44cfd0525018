"""Processes: their descendants, and those that were left behind."""
import ctypes
import os
import signal
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


def subreaper():
    """From now on orphaned descendants become children of this process."""
    if _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), 'prctl')


def end_with_parent():
    """In a child before its exec: SIGQUIT comes if its parent dies."""
    if _libc.prctl(PR_SET_PDEATHSIG, signal.SIGQUIT, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), 'prctl')


def read_each(folder, read):
    """{name: read(path)} of what is in a folder of /proc while it changes."""
    found = {}
    try:
        names = os.listdir(folder)
    except OSError:
        return found
    for name in names:
        try:
            found[name] = read(os.path.join(folder, name))
        except OSError:         # it has ended, or was closed, meanwhile
            pass
    return found


def text(path):
    with open(path) as f:
        return f.read()


def open_files(pid):
    """What the descriptors of a process are."""
    return list(read_each('/proc/%d/fd' % pid, os.readlink).values())


def children(pid):
    tasks = read_each('/proc/%d/task' % pid,
                      lambda task: text(task + '/children'))
    return [int(x) for found in tasks.values() for x in found.split()]


def descendants(pid):
    found = []
    todo = [pid]
    while todo:
        for child in children(todo.pop()):
            found.append(child)
            todo.append(child)
    return found


def describe(pid):
    try:
        with open('/proc/%d/cmdline' % pid, 'rb') as f:
            words = f.read().replace(b'\0', b' ').decode('utf-8', 'replace')
        return '%d %s' % (pid, words.strip()[:200] or state(pid) or '?')
    except OSError:
        return '%d (gone)' % pid


def stat(pid):
    """The fields of /proc/PID/stat after the name, or None."""
    try:
        with open('/proc/%d/stat' % pid) as f:
            return f.read().rpartition(')')[2].split()
    except OSError:
        return None


def state(pid):
    """R, S, Z, ... or None if there is no such process."""
    fields = stat(pid)
    return fields[0] if fields else None


def alive(pid):
    return state(pid) not in (None, 'Z', 'X')


def kill(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def reap():
    """Waits for every child that has ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        pass


def leftovers(grace=2.0):
    """Kills what still descends from this process, and says what it was."""
    until = time.monotonic() + grace
    while True:
        reap()
        found = descendants(os.getpid())
        if not found:
            return []
        if time.monotonic() > until:
            break
        time.sleep(0.01)
    described = [describe(pid) for pid in found]
    while found:
        for pid in found:
            kill(pid, signal.SIGKILL)
        wait_for_child(0.2)
        reap()
        found = descendants(os.getpid())
    return described


def wait_for_child(seconds):
    """Returns when a child has ended, at the latest after seconds."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    # A child may have ended before the signal was blocked: look first.
    try:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            signal.sigtimedwait([signal.SIGCHLD], seconds)
    except ChildProcessError:
        pass
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])


# --- threads ---

def thread_status(pid):
    """{thread: {field of its status: value}}"""
    tasks = read_each('/proc/%d/task' % pid,
                      lambda task: text(task + '/status'))
    return {int(task): {name: value.strip() for name, _, value in
                        (line.partition(':') for line in lines.splitlines())}
            for task, lines in tasks.items()}


def threads(pid):
    """{thread: (its name, how often it was taken off a processor)}"""
    return {task: (fields['Name'],
                   sum(int(fields[name + 'voluntary_ctxt_switches'])
                       for name in ('', 'non')))
            for task, fields in thread_status(pid).items()}


def thread_names(pid):
    """{name: number of threads}"""
    names = [name for name, _ in threads(pid).values()]
    return {name: names.count(name) for name in names}


def stirs(pid, seconds):
    """The threads that run within that time, by name."""
    before = threads(pid)
    time.sleep(seconds)
    after = threads(pid)
    return sorted(after[task][0] for task in after
                  if after[task] != before.get(task))
