<?php
/*
 * Says what became of a request, for oncewrap with `outcome = explicit`:
 *
 *	auto_prepend_file = /usr/share/doc/oncewrap/examples/once-prepend.php
 *
 * php-fpm answers END_REQUEST with status 0 however a script ends: a script
 * that died may leave a plain 500, a cut 200, or a whole one.  So the answer is
 * held back until the script has ended, and gets Idempotency-Outcome: completed
 * only if it ended without a fatal error, an uncaught exception or a timeout,
 * and its status is below 500.  Without the field the outcome is unknown, and
 * the key never runs again by itself.
 *
 * A script that knows better says so itself, before it prints:
 *
 *	once_outcome('not-executed');	nothing was done: it may run again
 *	once_outcome('completed');	all is done; before
 *					fastcgi_finish_request(), for example
 *	once_outcome('unknown');
 *
 * An exit(3) looks like any other end here: say once_outcome('unknown') first.
 */

function once_outcome(string $word): void
{
	header("Idempotency-Outcome: $word");
}

(function (): void {
	$said = function (): bool {
		foreach (headers_list() as $field)
			if (stripos($field, 'Idempotency-Outcome:') === 0)
				return true;
		return false;
	};
	ob_start();
	register_shutdown_function(function () use ($said): void {
		$fatal = E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR |
		    E_USER_ERROR | E_RECOVERABLE_ERROR;
		$error = error_get_last();

		if (($error !== null && ($error['type'] & $fatal) !== 0) ||
		    connection_status() !== CONNECTION_NORMAL ||
		    http_response_code() >= 500 || headers_sent() || $said())
			return;
		once_outcome('completed');
	});
})();
