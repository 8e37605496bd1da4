package httpapi_test

import (
	"os"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/httpapi"
)

// exchange is a request in a transcript with its answer.
type exchange struct {
	at             string // the file and line
	route          string
	method, target string
	asked          []string // the headers of the request
	body           string
	status         string
	header         map[string]string
	answer         string
}

// exchanges returns what is in the transcripts.
func exchanges(t *testing.T) (all []exchange) {
	t.Helper()
	for _, file := range transcripts(t) {
		text, err := os.ReadFile(file)
		is.New(t).NoErr(err)
		lines := strings.Split(string(text), "\n")
		for i := 0; i < len(lines); i++ {
			if !strings.HasPrefix(lines[i], "> ") {
				continue
			}
			x := exchange{at: file, header: map[string]string{}}
			i = x.readRequest(lines, i)
			i = x.readAnswer(lines, i)
			x.route = httpapi.RouteOf(x.method, x.target)
			all = append(all, x)
		}
	}
	return all
}

// readRequest reads the lines of a request, and returns the index of the first line of the answer.
func (x *exchange) readRequest(lines []string, i int) int {
	x.method, x.target, _ = strings.Cut(lines[i][2:], " ")
	x.target, x.body, _ = strings.Cut(x.target, " ")
	for i++; strings.HasPrefix(lines[i], "> "); i++ {
		x.asked = append(x.asked, lines[i][2:])
	}
	if lines[i] == ">" {
		for i++; strings.HasPrefix(lines[i], ">"); i++ {
			x.body += strings.TrimPrefix(lines[i][1:], " ") + "\n"
		}
	}
	return i
}

// readAnswer reads the lines of an answer, and returns the index of the last one.
func (x *exchange) readAnswer(lines []string, i int) int {
	x.status = lines[i][:3]
	for i++; i < len(lines) && strings.Contains(lines[i], ": ") && !strings.HasPrefix(lines[i], " "); i++ {
		name, value, _ := strings.Cut(lines[i], ": ")
		x.header[name] = value
	}
	for ; i < len(lines) && (strings.HasPrefix(lines[i], "  ")); i++ {
		x.answer += lines[i][2:] + "\n"
	}
	return i - 1
}

// isJSON reports whether the answer has a JSON body.
func (x *exchange) isJSON() bool {
	kind := x.header["Content-Type"]
	return x.answer != "" && (kind == "" || strings.HasSuffix(kind, "json"))
}

// json returns the answer, with numbers in place of those that a transcript does not show.
func (x *exchange) json() string {
	return strings.NewReplacer("<MS>", "1", "<TIME>", "2026-11-20T20:31:00.123Z").Replace(x.answer)
}

// sends returns the JSON of the request, "" for another body.
func (x *exchange) sends() string {
	for _, h := range x.asked {
		if strings.HasPrefix(h, "Content-Type: ") && !strings.Contains(h, "json") {
			return ""
		}
	}
	return strings.TrimSpace(x.body)
}
