# Prints the first section of README.md as HTML: paragraphs, indented lines as
# they are, and `code`.  Its title is left to the page.

function escaped(s)
{
	gsub(/&/, "\\&amp;", s)
	gsub(/</, "\\&lt;", s)
	gsub(/>/, "\\&gt;", s)
	return s
}

# `code` in a paragraph.
function marked(s)
{
	while (match(s, /`[^`]*`/))
		s = substr(s, 1, RSTART - 1) "<code>" \
		    substr(s, RSTART + 1, RLENGTH - 2) "</code>" \
		    substr(s, RSTART + RLENGTH)
	return s
}

function flush()
{
	if (kind == "pre")
		printf "<pre tabindex=\"0\">%s</pre>\n", text
	else if (kind == "p")
		printf "<p>%s</p>\n", marked(text)
	kind = text = ""
}

# A heading is known by the line below it; so each line waits for the next.
function line(s)
{
	if (s ~ /^    /) {
		if (kind != "pre")
			flush()
		kind = "pre"
		while (blanks-- > 0 && text != "")
			text = text "\n"
		text = text escaped(substr(s, 5)) "\n"
	} else if (s == "") {
		if (kind == "p")
			flush()
	} else {
		if (kind != "p")
			flush()
		text = text (kind == "p" ? "\n" : "") escaped(s)
		kind = "p"
	}
	blanks = s == "" ? blanks + 1 : 0
}

/^(=+|-+)$/ {
	if (++headings == 2)
		exit
	held = ""
	next
}
{
	if (NR > 1)
		line(held)
	held = $0
}
END { flush() }
