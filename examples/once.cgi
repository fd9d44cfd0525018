#!/bin/sh
# For web servers that speak no FastCGI: busybox httpd, uhttpd, mod_cgi.  This
# CGI program hands its request to oncewrap.  The route names the program:
#
#	[route /cgi-bin/once.cgi/payments]
#	handler = /usr/lib/oncewrap/payments
#
# /cgi-bin/once.cgi/payments is then the address.  oncectl(1) says under "cgi"
# which fields such a web server hands on.
#
# To adapt: /run/oncewrap/oncewrap.sock  oncewrap's `socket`
#
# No "$@": a client may choose the arguments of a CGI program.
exec oncectl cgi unix:/run/oncewrap/oncewrap.sock
