# Draws a key's life as SVG:
#
#	awk -f life.awk record.h record.c decide.c
#
# The states, the changes between them and what a retry gets are read from the
# three files.  This file has only their places and words.  A state or a change
# that the files have and the drawing has not, or the reverse, is an error, and
# nothing is printed.

BEGIN {
	W = 172
	H = 66
	# Where a state stands: the middle of its box, and its colour.
	place("pending", 210, 70, "wait")
	place("in_progress", 210, 280, "wait")
	place("completed", 560, 70, "good")
	place("unknown", 560, 280, "bad")
	place("failed_retryable", 560, 490, "plain")
	place("dead_letter", 820, 280, "bad")
	place("expired", 1030, 280, "plain")

	# How a change is drawn: its path, where its words stand, and what
	# causes it.
	draw("none pending", "M74 156 L118 108", 64, 112, "accepted|with 202")
	draw("none in_progress", "M74 194 L118 242", 62, 240, "reserved")
	draw("pending in_progress", "M210 103 V241", 210, 176, "taken up")
	draw("pending completed", "M296 70 H468", 385, 56,
	    "not begun in time: 408")
	draw("in_progress completed", "M300 247 L468 107", 385, 172,
	    "its answer is stored")
	draw("in_progress unknown", "M296 280 H468", 385, 266,
	    "it may have happened")
	draw("in_progress failed_retryable", "M300 309 L470 455", 412, 390,
	    "nothing happened:|released")
	draw("failed_retryable in_progress",
	    "M474 490 H300 Q210 490 210 400 V319", 370, 480,
	    "a retry: attempt + 1")
	draw("unknown completed", "M560 247 V109", 560, 178, "it happened")
	draw("unknown failed_retryable", "M560 313 V451", 560, 384,
	    "it did not happen")
	draw("unknown dead_letter", "M646 280 H728", 687, 262, "given up")
	draw("dead_letter completed", "M798 247 L652 107", 726, 178,
	    "it happened")
	draw("dead_letter failed_retryable", "M798 313 L652 453", 726, 384,
	    "it did not happen")
	draw("completed expired", "M646 70 H1000 Q1030 70 1030 100 V241",
	    850, 56,
	    "past its retention, if on_expired = gone")
	draw("failed_retryable expired",
	    "M646 490 H1000 Q1030 490 1030 460 V319", 850, 480,
	    "past its retention, if on_expired = gone")

	# What a decision is for the client.
	gets["BUSY"] = "202, 409, or it waits"
	gets["REPLAY"] = "the stored answer"
	gets["RUN"] = "a new run"
	gets["UNKNOWN"] = "409, never a run"
	gets["GONE"] = "410, no run"
}

function place(name, x, y, colour)
{
	boxes[++nboxes] = name
	x_of[name] = x
	y_of[name] = y
	colour_of[name] = colour
}

function draw(change, path, x, y, words)
{
	arrows[++narrows] = change
	path_of[change] = path
	lx[change] = x
	ly[change] = y
	words_of[change] = words
}

function error(what)
{
	print "life.awk: " what > "/dev/stderr"
	failed = 1
}

# The states: X(RECORD_PENDING, "pending")
/^\tX\(RECORD_[A-Z_]+, "/ {
	split($0, part, /[(",) ]+/)
	name_of[part[2]] = part[3]
	nstates++
}

# The changes: { RECORD_PENDING, RECORD_IN_PROGRESS, BY_RULE },
/^} changes\[\] = \{/ { in_table = 1; next }
in_table && /^};/ { in_table = 0 }
in_table && /^\t\{ / {
	gsub(/[{},|]/, " ")
	from = name_of[$1]
	to = name_of[$2]
	if (from == "" || to == "")
		error("a change of an unknown state: " $0)
	by = ($3 == "BY_RULE" ? "rule" : "operator")
	if ($4 == "BY_OPERATOR")
		by = "both"
	if (to != "none") {
		may[from " " to] = by
		order[++nchanges] = from " " to
	} else
		ends[from] = by
}

# The decisions: case RECORD_PENDING: ... return DECIDE_BUSY;
/^decide\(/ { in_decide = 1 }
in_decide && /^}/ { in_decide = 0 }
in_decide && /case RECORD_/ {
	gsub(/case|[ \t:]/, "")
	waiting[++nwaiting] = $0
}
in_decide && /return / {
	if (match($0, /DECIDE_[A-Z]+/))
		for (; nwaiting > 0; nwaiting--)
			decision[name_of[waiting[nwaiting]]] = \
			    substr($0, RSTART + 7, RLENGTH - 7)
}
in_decide && /break;/ { nwaiting = 0 }

function check(    i, name)
{
	if (nstates != nboxes + 1)
		error(nstates " states, and " nboxes " places for them")
	for (i = 1; i <= nchanges; i++)
		if (!(order[i] in path_of))
			error("no arrow is drawn for " order[i])
	for (i = 1; i <= narrows; i++)
		if (!(arrows[i] in may))
			error("an arrow is drawn that record.c does not " \
			    "allow: " arrows[i])
	for (i = 1; i <= nboxes; i++) {
		name = boxes[i]
		if (!(decision[name] in gets))
			error("what does a retry of " name " get?")
	}
}

function end_of(name)
{
	if (!(name in ends))
		return "never deleted"
	if (ends[name] == "operator")
		return "deleted by forget alone"
	return "deleted by age or forget"
}

# What the picture shows, for readers without it.
function described(    i, j, text, part)
{
	text = "A new key is "
	for (i = 0; i <= nboxes; i++) {
		if (i > 0)
			text = text " " boxes[i] ": a retry gets " \
			    gets[decision[boxes[i]]] "; the key "
		n = 0
		for (j = 1; j <= nchanges; j++) {
			split(order[j], part, " ")
			if (part[1] != (i == 0 ? "none" : boxes[i]))
				continue
			text = text (n++ ? ", or " : i == 0 ? "" : \
			    "becomes ") part[2] " (" words_of[order[j]] ")"
		}
		if (i > 0) {
			text = text (n > 0 ? ", and is " : "is ") \
			    end_of(boxes[i])
		}
		text = text "."
	}
	gsub(/\|/, " ", text)
	return text
}

function print_words(x, y, class, text,    line, n, i)
{
	n = split(text, line, "|")
	for (i = 1; i <= n; i++)
		printf "<text class=\"%s\" x=\"%d\" y=\"%d\">%s</text>\n",
		    class, x, y + (i - 1) * 16, line[i]
}

function print_box(name,    x, y)
{
	x = x_of[name] - W / 2
	y = y_of[name] - H / 2
	printf "<rect class=\"f-box f-%s\" x=\"%d\" y=\"%d\" " \
	    "width=\"%d\" height=\"%d\" rx=\"8\"/>\n",
	    colour_of[name], x, y, W, H
	print_words(x_of[name], y + 22, "f-name", name)
	print_words(x_of[name], y + 41, "f-words", gets[decision[name]])
	print_words(x_of[name], y + 57, "f-small", end_of(name))
}

END {
	check()
	if (failed)
		exit 1
	print "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"f\" " \
	    "viewBox=\"0 0 1130 556\" role=\"img\" " \
	    "aria-labelledby=\"life-title life-desc\">"
	print "<title id=\"life-title\">The life of a key</title>"
	print "<desc id=\"life-desc\">" described() "</desc>"
	print "@STYLE@"
	print "<defs><marker id=\"life-head\" viewBox=\"0 0 8 8\" refX=\"7\" " \
	    "refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" " \
	    "orient=\"auto-start-reverse\"><path class=\"f-head\" " \
	    "d=\"M0 0 L8 4 L0 8 z\"/></marker></defs>"
	for (i = 1; i <= narrows; i++)
		print "<path class=\"f-arrow\" " \
		    "marker-end=\"url(#life-head)\" " \
		    "d=\"" path_of[arrows[i]] "\"/>"
	print "<circle class=\"f-box f-plain\" cx=\"58\" cy=\"175\" r=\"24\"/>"
	print_words(58, 180, "f-words", "new")
	for (i = 1; i <= nboxes; i++)
		print_box(boxes[i])
	for (i = 1; i <= narrows; i++)
		print_words(lx[arrows[i]], ly[arrows[i]], "f-label",
		    words_of[arrows[i]])
	print_words(560, 545, "f-small", "In each box: the state, " \
	    "what a retry gets, and what deletes the key.")
	print "</svg>"
}
