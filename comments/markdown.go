package comments

import (
	"regexp"
	"slices"
	"strings"
)

// span is a part of a message, in bytes.
type span struct{ from, to int }

var (
	// address matches what follows a scheme or www., and paths of hosts, up to what ends an address
	// in a text.
	address = regexp.MustCompile("(?i)(?:[a-z][a-z0-9+.-]*://|www\\.|(?:[a-z0-9-]+\\.)+[a-z]{2,}(?::[0-9]+)?/)" +
		"[^\\s<>\"`，。、！？；：）】」』》]*")
	// destination matches where a link of Markdown leads.
	destination = regexp.MustCompile(`\]\([^()\s]*\)`)
	// fence matches the beginning of a fenced block, behind marks of quotes and lists.
	fence = regexp.MustCompile("^[ \t>]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*[ \t>]*(```+[^`]*|~~~+.*)$")
)

// verbatim returns the parts of a message in which no user is mentioned: code of Markdown,
// addresses of the web and where links lead. They are in order, and do not overlap.
func verbatim(message string) []span {
	spans := codeSpans(message)
	for _, at := range address.FindAllStringIndex(message, -1) {
		if at[0] > 0 && message[at[0]-1] == '@' { // the name of a user with a point
			continue
		}
		spans = append(spans, span{at[0], at[0] + balanced(message[at[0]:at[1]])})
	}
	for _, at := range destination.FindAllStringIndex(message, -1) {
		spans = append(spans, span{at[0], at[1]})
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	joined := spans[:0]
	for _, s := range spans {
		if last := len(joined) - 1; last >= 0 && s.from <= joined[last].to {
			joined[last].to = max(joined[last].to, s.to)
		} else {
			joined = append(joined, s)
		}
	}
	return joined
}

// balanced returns the length of text up to the first bracket that nothing before it opens.
func balanced(text string) int {
	round, square := 0, 0
	for i, r := range text {
		switch r {
		case '(':
			round++
		case ')':
			round--
		case '[':
			square++
		case ']':
			square--
		}
		if round < 0 || square < 0 {
			return i
		}
	}
	return len(text)
}

// codeSpans returns the fenced blocks and the inline code of a message.
func codeSpans(message string) (spans []span) {
	var closing string // of the fenced block that is open, "" outside of one
	quoted := false    // it is part of a quote
	block := 0         // where it, or the paragraph, begins
	at := 0
	for line := range strings.Lines(message) {
		text := strings.TrimRight(line, "\r\n")
		content := strings.TrimLeft(text, " \t>")
		quote := strings.Contains(text[:len(text)-len(content)], ">")
		if closing != "" && quoted && !quote { // the quote has ended, and the block with it
			spans, closing, block = append(spans, span{block, at}), "", at
		}
		switch opened := fence.FindStringSubmatch(text); {
		case closing != "":
			if rest, ok := strings.CutPrefix(content, closing); ok && strings.Trim(rest, closing[:1]+" \t") == "" {
				spans, closing, block = append(spans, span{block, at + len(line)}), "", at+len(line)
			}
		case opened != nil:
			spans = append(spans, inlineCode(message, block, at)...)
			marks := len(opened[1]) - len(strings.TrimLeft(opened[1], opened[1][:1]))
			closing, quoted, block = opened[1][:marks], quote, at
		case content == "": // the paragraph has ended
			spans = append(spans, inlineCode(message, block, at)...)
			block = at + len(line)
		}
		at += len(line)
	}
	if closing != "" {
		return append(spans, span{block, len(message)})
	}
	return append(spans, inlineCode(message, block, len(message))...)
}

// inlineCode returns the parts of a paragraph between two runs of as many backticks.
func inlineCode(message string, from, to int) (spans []span) {
	type run struct{ at, length int }
	var runs []run
	later := map[int][]int{} // indexes of runs by length
	for i := from; i < to; {
		if message[i] != '`' {
			i++
			continue
		}
		end := i
		for end < to && message[end] == '`' {
			end++
		}
		later[end-i] = append(later[end-i], len(runs))
		runs = append(runs, run{i, end - i})
		i = end
	}
	for i := 0; i < len(runs); i++ {
		opens, length := runs[i].at, runs[i].length
		if escaped(message, from, opens) {
			opens, length = opens+1, length-1
		}
		all := later[length]
		for len(all) > 0 && all[0] <= i {
			all = all[1:]
		}
		later[length] = all
		if length == 0 || len(all) == 0 {
			continue
		}
		closes := runs[all[0]]
		spans = append(spans, span{opens, closes.at + closes.length})
		i = all[0]
	}
	return spans
}

// escaped reports whether an odd number of backslashes stands before a place.
func escaped(message string, from, at int) bool {
	n := 0
	for at-n > from && message[at-n-1] == '\\' {
		n++
	}
	return n%2 == 1
}
