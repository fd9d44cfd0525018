#!/usr/bin/perl
# A program that stays (protocol = fastcgi), with Debian's libfcgi-perl: it
# counts what it was asked to do, once for each key.
#
#	handler  = /usr/lib/cgi-bin/stays.pl
#	protocol = fastcgi
use strict;
use warnings;
use FCGI;

my $deeds = 0;
my %env;
my $request = FCGI::Request(\*STDIN, \*STDOUT, \*STDERR, \%env);

while ($request->Accept() >= 0) {
	read(STDIN, my $body, $env{CONTENT_LENGTH} || 0);
	$deeds++;
	print "Status: 201 Created\r\nContent-Type: text/plain\r\n\r\n",
	    "deed $deeds of process $$: attempt ",
	    $env{ONCE_ATTEMPT} // '-', ", $body\n";
}
