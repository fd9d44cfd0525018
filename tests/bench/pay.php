<?php
// What program.c does, for php-fpm.
file_get_contents('php://input');
http_response_code(201);
header('Content-Type: application/json');
echo '{"id":"ch_3MmlLrLkdIwHu7ix0snN0B15","object":"charge",' .
    '"amount":1099,"currency":"eur","status":"succeeded"}' . "\n";
