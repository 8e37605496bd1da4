package openai

import "strings"

// thinking splits the text of an answer that begins with <think> into the reasoning of the model,
// up to </think>, and the answer.
type thinking struct {
	held  string // text that is held back
	state thinkingState
}

type thinkingState int

const (
	undecided thinkingState = iota
	inside
	trimming // white space between the reasoning and the answer
	answering
)

const thinkBegins, thinkEnds = "<think>", "</think>"

// part returns what a piece of text adds to the reasoning and to the answer. If last is set, it
// holds nothing back.
func (t *thinking) part(text string, last bool) (thought, said string) {
	t.held += text
	if t.state == undecided {
		begun := strings.TrimLeft(t.held, " \t\r\n")
		switch {
		case strings.HasPrefix(begun, thinkBegins):
			t.held, t.state = begun[len(thinkBegins):], inside
		case !last && strings.HasPrefix(thinkBegins, begun):
			return "", ""
		default:
			t.state = answering
		}
	}
	if t.state == inside {
		before, after, ended := strings.Cut(t.held, thinkEnds)
		if !ended {
			keep := 0 // of </think>, which may be split over two pieces
			for n := min(len(thinkEnds)-1, len(t.held)); n > 0 && !last; n-- {
				if strings.HasSuffix(t.held, thinkEnds[:n]) {
					keep = n
					break
				}
			}
			thought, t.held = t.held[:len(t.held)-keep], t.held[len(t.held)-keep:]
			return thought, ""
		}
		thought, t.held, t.state = before, after, trimming
	}
	if t.state == trimming {
		if t.held = strings.TrimLeft(t.held, " \t\r\n"); t.held == "" {
			return thought, ""
		}
		t.state = answering
	}
	said, t.held = t.held, ""
	return thought, said
}
