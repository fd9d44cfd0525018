"""The presets php-cgi and php-fpm: what became of a script of PHP."""
import os

import base
from answer import eq, first, problem, replay
from test_application import (COMPLETED, RETRYABLE, SCRIPT, UNKNOWN, Fpm, php,
                              remove)

# More ways to end, for both.
WAYS = r'''
    if ($w == 'exit') exit('x');
    if ($w == 'warning') { echo $undefined; trigger_error('odd'); }
    if ($w == 'memory') {
        ini_set('memory_limit', '8M');
        str_repeat('x', 1 << 24);
    }
    if ($w == 'late') { echo 'some'; flush(); throw new Exception('oops'); }
    if ($w == 'loop') { set_time_limit(1); for (;;); }
    if ($w == 'goto') header('Location: /there', true, 303);
    if ($w == 'clear') register_shutdown_function('error_clear_last');
    if ($w == 'shutdown') register_shutdown_function(function () {
        echo 'more';
        while (ob_get_level() > 0)
            ob_end_flush();
    });
    if ($w == 'after') register_shutdown_function('no_such_function_' . $w);
    if ($w == 'destroy') $GLOBALS['late'] = new class {
        function __destruct() { no_such_function(); }
    };
    if ($w == 'clean') ob_end_clean();
    if ($w == 'status') once_outcome('status');
'''
SCRIPT_OF_ALL = SCRIPT.replace("    if ($w == 'gate')", WAYS +
                               "    if ($w == 'gate')")
# The way, the status of the answer, the state of the key: the same for both.
SAME = (('201', 201, COMPLETED), ('404', 404, COMPLETED),
        ('goto', 303, COMPLETED), ('exit', 200, COMPLETED),
        ('warning', 200, COMPLETED), ('shutdown', 200, COMPLETED),
        ('503', 503, RETRYABLE), ('500', 500, RETRYABLE),
        ('504', 504, UNKNOWN), ('429', 429, RETRYABLE))
DIED = ('throw', 'late', 'fatal', 'cut', 'memory', 'loop', 'clear+fatal',
        'destroy')


def fpm_of_all(t, settings=(), pool=''):
    fpm = Fpm(t, pool, settings)
    t.write('app.php', SCRIPT_OF_ALL % t.dir)
    return fpm


def ends_are_told(t, once, more=()):
    for n, (query, status, state) in enumerate(SAME + tuple(more)):
        answer = once.post(query, query=query)
        eq((answer.status, once.state(query)), (status, state),
           '%s: %s' % (query, answer))
        eq(answer.get('Idempotency-Outcome'), None)
        eq(len(t.ledger()), n + 1)


def deaths_are_unknown(t, once):
    """Whatever the client got: it never runs again by itself."""
    for query in DIED:
        runs = len(t.ledger())
        answer = once.post(query, query=query)
        eq(once.state(query), UNKNOWN, '%s: %s' % (query, answer))
        problem(once.post(query, query=query), 'outcome-unknown')
        eq(len(t.ledger()), runs + 1)


def cgi(t, **defaults):
    base.need('php-cgi')
    script = t.write('app.php', SCRIPT_OF_ALL % t.dir)
    once = t.once(defaults=dict({'preset': 'php-cgi'}, **defaults))
    post = once.post
    once.post = lambda *args, **kw: post(
        *args, params={'SCRIPT_FILENAME': script}, **kw)
    return once


# --- php-cgi ---

def test_php_cgi_needs_its_preset_alone(t):
    """The script is not executable, and has no first line for it."""
    once = cgi(t, environment='LANG=C')
    answer = once.post('k', b'a=b', query='201+echo')
    first(answer, 201)
    assert answer.body.startswith(b'a=bdone '), answer
    replay(once.post('k', b'a=b', query='201+echo'), answer)
    eq(len(t.ledger()), 1)


def test_the_ends_of_a_script_of_php_cgi(t):
    ends_are_told(t, cgi(t), (('exit3', 502, UNKNOWN),))


def test_a_script_of_php_cgi_that_died_never_runs_again_by_itself(t):
    """With `exit_status = ignore` a 500 released it, and a cut 200 was
    stored."""
    deaths_are_unknown(t, cgi(t))


# --- php-fpm ---

def test_the_ends_of_a_script_of_php_fpm(t):
    fpm = fpm_of_all(t)
    once = php(t, fpm, preset='php-fpm')
    ends_are_told(t, once, (
        ('exit3', 200, COMPLETED), ('503+no', 503, RETRYABLE),
        ('503+yes', 503, COMPLETED),
        # The answer went out before the end was known.
        ('clean', 200, UNKNOWN),
        ('status+clean', 200, COMPLETED)))


def test_a_script_of_php_fpm_that_died_never_runs_again_by_itself(t):
    for shown in ('0', '1'):
        fpm = fpm_of_all(t, ('display_errors=' + shown,))
        once = php(t, fpm, preset='php-fpm')
        deaths_are_unknown(t, once)
        once.stop()
        fpm.stop()
        os.unlink(t.path('ledger'))
        remove(once)


def test_an_answer_that_php_fpm_sends_early(t):
    gate = t.gate()
    once = php(t, fpm_of_all(t), preset='php-fpm')
    for query, state in (('finish', UNKNOWN), ('yes+finish', COMPLETED),
                         ('status+finish', COMPLETED)):
        eq(once.post(query, query=query).body, b'early')
        eq(once.state(query), state)
        gate.wait()
        gate.open()


def test_php_value_of_the_web_server_stays(t):
    """Its own prepend wins, and can bring ours along."""
    own = t.write('own.php', '<?php header("X-Own: " . ini_get("precision"));')
    both = t.write('both.php', '<?php require "%s"; header("X-Own: both");'
                   % os.path.join(os.environ['ONCEWRAP_DATA'],
                                  'once-prepend.php'))
    once = t.once(handler='unix:' + fpm_of_all(t).socket,
                  defaults={'preset': 'php-fpm'})

    def post(key, value):
        return once.post(key, params={'SCRIPT_FILENAME': t.path('app.php'),
                                      'PHP_VALUE': value})
    for key, value, says, state in (
            ('other', 'precision=7', None, COMPLETED),
            ('own', 'precision=7\nauto_prepend_file=%s\n' % own, '7', UNKNOWN),
            ('both', 'auto_prepend_file = "%s"' % both, 'both', COMPLETED)):
        answer = post(key, value)
        eq((answer.get('X-Own'), once.state(key)), (says, state), answer)


def test_a_request_without_a_key_is_not_held_back(t):
    """Nor does its answer tell of an outcome."""
    gate = t.gate()
    fpm = fpm_of_all(t)
    t.write('app.php', '''<?php header('Content-Type: text/plain');
once_outcome('completed'); echo str_repeat('x', 100000); flush();
file_put_contents('%s/gate.here', getmypid() . "\\n");
fread(fopen('%s/gate.open', 'r'), 1);''' % (t.dir, t.dir))
    once = t.once(handler='unix:' + fpm.socket,
                  defaults={'preset': 'form php-fpm'})
    conn = once.begin(params={'SCRIPT_FILENAME': fpm.script})
    begun = conn.first_bytes(50000)
    gate.wait()
    gate.open()
    answer = conn.answer(read=begun)
    eq((len(answer.body), answer.get('Idempotency-Outcome')), (100000, None))
