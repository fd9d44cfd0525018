#!/usr/bin/perl
# Takes an order; see order.c, which takes the same words.
use strict;
use warnings;
use DBI;

my ($folder, @words) = @ARGV;
my $token = $ENV{ONCE_TOKEN};
my $size = 0;
binmode STDOUT;
$| = 1;

sub ledger {
	open my $file, '>>', "$folder/ledger" or die "ledger: $!";
	print $file "$ENV{ONCE_ATTEMPT} $_[0]\n";
	close $file;
}

sub gate {
	my ($name) = @_;
	open my $here, '>', "$folder/$name.here" or die "gate: $!";
	print $here "$$\n";
	close $here;
	open my $way, '<', "$folder/$name.open" or die "gate: $!";
	<$way>;
}

sub order {
	my ($end) = @_;
	my $db = DBI->connect("dbi:SQLite:dbname=$ENV{ONCE_DATABASE}", '', '',
	    { RaiseError => 1, PrintError => 0, AutoCommit => 1,
		sqlite_use_immediate_transaction => 1 });
	$db->sqlite_busy_timeout(5000);
	eval {
		$db->begin_work;
		$db->do("INSERT INTO once_checkpoint(token, recovery_point) "
		    . "VALUES (?, 'ordered')", undef, $token);
		$db->do('INSERT INTO orders(note) VALUES (?)', undef,
		    $ENV{ONCE_KEY});
		my $id = $db->sqlite_last_insert_rowid;
		$db->do("INSERT INTO once_outbox(token, topic, payload) "
		    . "VALUES (?, 'mail', ?)", undef, $token, 'thanks');
		$db->do('INSERT INTO once_response(token, status, headers, '
		    . 'body) VALUES (?, ?, ?, ?)', undef, $token, 201,
		    "Content-Type: text/plain\r\nX-By: perl\r\n"
		    . "X-Twice: 1\r\nX-Twice: 2",
		    "order $id\n" . 'x' x $size);
		$end eq 'COMMIT' ? $db->commit : $db->rollback;
		ledger($end);
		1;
	} or do {
		my $why = $db->errstr // $@;
		ledger("error: $why");
	};
	eval { $db->disconnect };
}

for (@words) {
	my ($word, $value) = split /=/, $_, 2;
	if ($word eq 'order') { order('COMMIT') }
	elsif ($word eq 'rollback') { order('ROLLBACK') }
	elsif ($word eq 'gate') { gate($value) }
	elsif ($word eq 'size') { $size = $value }
	elsif ($word eq 'print') {
		print "Status: $value\r\nX-Printed: yes\r\n\r\nprinted\n";
	}
	elsif ($word eq 'flood') {
		print "Status: 200\r\n\r\n", 'f' x 10000000;
	}
	elsif ($word eq 'garbage') { print "no head at all\n" }
	elsif ($word eq 'outcome') {
		print "Status: 200\r\nIdempotency-Outcome: $value\r\n\r\n";
	}
	elsif ($word eq 'exit') { exit $value }
	elsif ($word eq 'signal') {
		kill $value, $$;
		sleep 1000;
	}
	elsif ($word eq 'sleep') { sleep 1000 }
}
