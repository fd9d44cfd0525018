#!/usr/bin/perl
# Takes an order: {"item": "tea", "count": 2} becomes a line in the file that
# ORDERS names, else "orders" in the working directory.  Core modules only.
use strict;
use warnings;
use Fcntl qw(:flock);
use IO::Handle;
use JSON::PP;

sub answer {
	my ($status, $data, @fields) = @_;
	print "Status: $status\r\nContent-Type: application/json\r\n";
	print "$_\r\n" for @fields;
	print "\r\n", JSON::PP->new->canonical->encode($data), "\n";
	exit 0;
}

my $body = do { local $/; <STDIN> };
my $order = eval { decode_json($body // '') };
answer('400 Bad Request', { error => 'not a JSON object' })
    unless ref $order eq 'HASH';
my ($item, $count) = @$order{qw(item count)};
answer('422 Unprocessable Content', { error => 'item and count, please' })
    unless defined $item && !ref $item && $item =~ /\A[\w -]{1,64}\z/a
    && defined $count && !ref $count && $count =~ /\A[1-9]\d{0,5}\z/a;

# Until the line is written nothing has happened, and saying so lets the same
# key be sent again, whatever the status.
my $out;
open($out, '>>', $ENV{ORDERS} // 'orders')
    and flock($out, LOCK_EX)
    or answer('500 Internal Server Error', { error => 'no order book' },
	'Idempotency-Outcome: not-executed');

# From here on a failure dies: the outcome is unknown, and stays so.
my $id = sprintf 'ord_%d_%d', time, $$;
print $out "$id item=$item count=$count attempt=",
    $ENV{ONCE_ATTEMPT} // '-', ' key=', $ENV{ONCE_KEY} // '-', "\n"
    or die "orders: $!";
$out->flush or die "orders: $!";
$out->sync or die "orders: $!";
close $out or die "orders: $!";
answer('201 Created', { order => $id, item => $item, count => $count + 0 });
