<?php
/*
 * What PHP runs before a script of php-fpm, with `preset = php-fpm`: see
 * oncewrap.conf(5).
 *
 * php-fpm says of no script how it ended: one that died may leave a plain 500,
 * a cut 200, or a whole one.  So the answer of a request with a key is held back
 * until the script, its shutdown functions and its destructors have ended.  It
 * gets `Idempotency-Outcome: status`, by which its status decides as that of a
 * CGI program, unless there was a fatal error, an uncaught exception or a
 * timeout.  Without the field the outcome is unknown, and the key never runs
 * again by itself.
 *
 * A script that knows better says so itself, before it prints:
 *
 *	once_outcome('not-executed');	nothing was done: it may run again
 *	once_outcome('completed');	all is done
 *	once_outcome('unknown');
 *	once_outcome('status');		the status decides, whatever comes
 *
 * The last one, or completed, is for a script that sends its answer before it
 * ends: by fastcgi_finish_request(), or past this file's output buffer.
 *
 * An exit(3) looks like any other end here: say once_outcome('unknown') first.
 */

function once_outcome(string $word): void
{
	if (getenv('ONCE_KEY') !== false)
		header("Idempotency-Outcome: $word");
}

(function (): void {
	if (getenv('ONCE_KEY') === false)
		return;
	$ended = false;
	$died = function (): bool {
		$fatal = E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR |
		    E_USER_ERROR | E_RECOVERABLE_ERROR;
		$error = error_get_last();

		return ($error !== null && ($error['type'] & $fatal) !== 0) ||
		    connection_status() !== CONNECTION_NORMAL;
	};
	$said = function (): bool {
		foreach (headers_list() as $field)
			if (stripos($field, 'Idempotency-Outcome:') === 0)
				return true;
		return false;
	};
	/* The first of the shutdown functions, before one that clears the
	 * error. */
	register_shutdown_function(function () use (&$ended, $died): void {
		$ended = !$died();
	});
	/* The last to be called, when the buffer ends with the script. */
	ob_start(function (string $bytes, int $phase)
	    use (&$ended, $died, $said): string {
		if (($phase & PHP_OUTPUT_HANDLER_FINAL) !== 0 && $ended &&
		    !$died() && !$said())
			once_outcome('status');
		return $bytes;
	});
})();
