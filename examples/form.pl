#!/usr/bin/perl
# A form: GET prints it, POST adds a line to the file `orders` in its folder.
use strict;
use warnings;

sub page {
	my ($status, $text) = @_;
	print "Status: $status\r\nContent-Type: text/html; charset=utf-8\r\n\r\n",
	    "<!DOCTYPE html>\n<html lang=\"en\"><title>Order</title>\n$text\n";
	exit 0;
}

# Decodes a name or value of a form.
sub decode {
	my ($text) = @_;
	$text =~ tr/+/ /;
	$text =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge;
	return $text;
}

sub html {
	my ($text) = @_;
	$text =~ s/([&<>"])/'&#' . ord($1) . ';'/ge;
	return $text;
}

if (($ENV{REQUEST_METHOD} // 'GET') ne 'POST') {
	# Not there without oncewrap: then the form works as it always did.
	my $key = $ENV{ONCE_FORM_KEY};
	page('200 OK', "<form method=\"post\" action=\"?order\">\n" . (defined $key ?
	    "<input type=\"hidden\" name=\"once_key\" value=\"$key\">\n" : '') .
	    "<input name=\"item\" value=\"tea\">\n<button>Order</button>\n" .
	    '</form>');
}
read STDIN, my $body, $ENV{CONTENT_LENGTH} // 0;
my %field = map { my ($n, $v) = split /=/, $_, 2; (decode($n), decode($v // '')) }
    split /&/, $body;
my $item = $field{item} // '';
$item =~ s/[\x00-\x1f]/ /g;
page('400 Bad Request', '<p>An order needs an item.') if $item eq '';
open my $orders, '>>', 'orders' or die "orders: $!";
print $orders $ENV{ONCE_KEY} // '-', " $item\n";
close $orders or die "orders: $!";
open $orders, '<', 'orders' or die "orders: $!";
my $number = () = <$orders>;
page('200 OK', '<p>Your order of ' . html($item) . " is number $number.");
