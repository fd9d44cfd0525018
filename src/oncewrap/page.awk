# Makes C of the templates of page.html: -v part=h gives the declarations, else
# the code.
#
#	<!-- template foo: text name, number n -->
#
# begins a template, up to the next one.  It becomes the function
# page_html_foo(struct html *, const char *name, int64_t n), and {name} in it
# stands for the value.  The kinds of values are those of html.h: text, query,
# lines (a pointer and a length) and number.  There is no kind that is not
# escaped.
#
# Tabs at the beginning of a line are left out.

function complain(why)
{
	print FILENAME ":" FNR ": " why > "/dev/stderr"
	failed = 1
}

function quoted(text)
{
	gsub(/\\/, "&&", text)
	gsub(/"/, "\\\"", text)
	gsub(/\n/, "\\n\"\n\t    \"", text)
	return "\"" text "\""
}

# For each value what form has for its kind, with its name for NAME.
function each(form, before, after,	i, one, out)
{
	for (i = 0; i < n; i++) {
		one = form[kind[i]]
		gsub(/NAME/, arg[i], one)
		out = out before one after
	}
	return out
}

function heading()
{
	return "page_html_" template "(struct html *html" \
	    each(parameter, ", ") ")"
}

function parts(text,	  i, out, name)
{
	while (match(text, /\{[a-z_]+\}/)) {
		name = substr(text, RSTART + 1, RLENGTH - 2)
		for (i = 0; i < n && arg[i] != name; i++)
			continue
		if (i == n)
			complain(template ": no value " name)
		used[name] = 1
		out = out "\t{ " quoted(substr(text, 1, RSTART - 1)) \
		    ",\n\t    HTML_" toupper(kind[i]) ", " i " },\n"
		text = substr(text, RSTART + RLENGTH)
	}
	return out "\t{ " quoted(text) ",\n\t    HTML_NOTHING, 0 },\n"
}

function flush(	  i, body)
{
	if (template == "")
		return
	sub(/\n+$/, "\n", text)
	if (part == "h") {
		print "void " heading() ";"
		return
	}
	split("", used)
	body = parts(text)
	for (i = 0; i < n; i++)
		if (!(arg[i] in used))
			complain(template ": " arg[i] " is not used")
	print "\nstatic const struct html_part " template "_parts[] = {"
	printf "%s};\n", body
	print "\nvoid\n" heading() "\n{"
	print "\tconst union html_value values[] = {"
	printf "%s\t\t{ .number = 0 },\n\t};\n\n", \
	    each(value, "\t\t", ",\n")
	print "\thtml_render(html, " template "_parts, values);\n}"
	names[count++] = template
	counts[template] = n
}

BEGIN {
	parameter["text"] = parameter["query"] = "const char *NAME"
	parameter["lines"] = "const void *NAME, size_t NAME_len"
	parameter["number"] = "int64_t NAME"
	value["text"] = value["query"] = "{ .text = NAME }"
	value["lines"] = "{ .text = NAME, .len = NAME_len }"
	value["number"] = "{ .number = NAME }"
	print "/* Made by page.awk from page.html; do not edit. */"
	if (part == "h") {
		print "#ifndef PAGE_HTML_H\n#define PAGE_HTML_H\n"
		print "#include \"html.h\"\n"
	} else
		print "#include \"config.h\"\n\n#include \"page_html.h\""
}

/^<!-- template / {
	flush()
	line = $0
	sub(/^<!-- template /, "", line)
	sub(/ *-->$/, "", line)
	template = line
	sub(/:.*/, "", template)
	if (seen[template]++)
		complain(template " again")
	sub(/^[a-z0-9_]*:? */, "", line)
	n = split(line, part_of, /, */)
	for (i = 1; i <= n; i++) {
		split(part_of[i], word, " ")
		kind[i - 1] = word[1]
		arg[i - 1] = word[2]
		if (!(word[1] in parameter))
			complain(template ": no kind " word[1])
	}
	text = ""
	next
}

template == "" { next }

{
	sub(/^\t+/, "")
	text = text $0 "\n"
}

END {
	flush()
	if (part == "h") {
		print "\n/* All templates, for the tests. */"
		print "extern const struct html_template" \
		    " page_html_templates[];"
		print "extern const size_t page_html_count;\n\n#endif"
	} else {
		print "\nconst struct html_template page_html_templates[] = {"
		for (i = 0; i < count; i++)
			print "\t{ \"" names[i] "\", " names[i] "_parts, " \
			    counts[names[i]] " },"
		print "};\nconst size_t page_html_count = " count ";"
	}
	exit failed
}
