<?php
// A form: GET prints it, POST adds a line to the file `orders` in its folder.

// By default a page with a session says no-store: the button Back would then
// fetch the form anew, with another key and the old values.
session_cache_limiter('private_no_expire');
session_cache_expire(0);
session_start();

function page($status, $text)
{
	http_response_code($status);
	header('Content-Type: text/html; charset=utf-8');
	echo "<!DOCTYPE html>\n<html lang=\"en\"><title>Order</title>\n$text\n";
	exit;
}

// Not there without oncewrap: then the form works as it always did.
$key = getenv('ONCE_FORM_KEY');
$hidden = $key === false ? ''
    : "<input type=\"hidden\" name=\"once_key\" value=\"$key\">\n";

if ($_SERVER['REQUEST_METHOD'] !== 'POST')
	page(200, "<form method=\"post\" action=\"?order\">\n$hidden" .
	    '<input name="item" value="' .
	    htmlspecialchars($_SESSION['item'] ?? 'tea') .
	    "\">\n<button>Order</button>\n</form>");

$item = preg_replace('/[\x00-\x1f]/', ' ', (string)($_POST['item'] ?? ''));
if ($item === '')
	page(400, '<p>An order needs an item.');
$_SESSION['item'] = $item;
$orders = __DIR__ . '/orders';
file_put_contents($orders, (getenv('ONCE_KEY') ?: '-') . " $item\n",
    FILE_APPEND | LOCK_EX);
page(200, '<p>Your order of ' . htmlspecialchars($item) . ' is number ' .
    count(file($orders)) . '.');
