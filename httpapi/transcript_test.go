package httpapi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/chat/confirmations"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata with what SQLite answers")

// TestTranscripts replays the conversations in testdata on both databases. A line of one says:
//
//	# …                      a note for the reader
//	@dana                    who calls from here on: one of people, or nobody
//	! +24h                   so much time passes
//	! work                   the queue does its jobs, once in a conversation
//	! confirm <id>           a call of the assistant waits for the caller, with the next of the ids <CONFIRMATION-0>, …
//	> PUT /api/colors/red …  a request with its JSON body; "> Name: value" lines are headers; a body that is not JSON, or
//	>                        is long, comes after a line with > alone
//
// All other lines are the answer: status, the headers that matter, and the body indented by two
// spaces. Credentials are random: they are written <SESSION-1>, <TOKEN-1>… in the order they
// appear, also in later requests; so are <STATE-1> and <BROWSER-1> of a login at a provider, and
// <VIEW-1> in the page of an app. Archives are shown unpacked. In a file whose name begins with
// host-, a host has added the domain drivers of domains_test.go.
func TestTranscripts(t *testing.T) {
	files := transcripts(t)
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
				want, err := os.ReadFile(file)
				is.New(t).NoErr(err)
				s := &script{w: newWorld(t, open, hostOf(file)), given: map[string]string{}}
				got := s.replay(t, string(want))
				if *update && strings.Contains(t.Name(), "sqlite") {
					is.New(t).NoErr(os.WriteFile(file, []byte(got), 0o644))
					return
				}
				compare(t, file, string(want), got)
			})
		}
	})
}

// hostOf returns what the host of a transcript configures.
func hostOf(file string) func(*tenantcontent.Config) {
	if strings.HasPrefix(filepath.Base(file), "host-") {
		return withDrivers
	}
	return func(*tenantcontent.Config) {}
}

// TestTranscriptsBelowAPath replays the conversations with a service that is mounted below a path.
// The answers differ in nothing but that path: in links, Location, the addresses that providers are
// given, and cookies.
func TestTranscriptsBelowAPath(t *testing.T) {
	for _, file := range transcripts(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			is.New(t).NoErr(err)
			w := newWorld(t, dbtest.SQLite, hostOf(file), func(c *tenantcontent.Config) {
				c.BaseURL = baseURL + "/content/"
			})
			s := &script{w: w, mount: "/content", given: map[string]string{}}
			compare(t, file, string(want), s.replay(t, string(want)))
			if strings.Contains(string(want), "https://content.example/") && s.moved == 0 {
				t.Error("no link has the path")
			}
		})
	}
}

// transcripts are the files in testdata except for that of TestQueries.
func transcripts(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	is.New(t).NoErr(err)
	return slices.DeleteFunc(files, func(file string) bool { return file == queriesFile })
}

// compare reports the first line that differs.
func compare(t *testing.T, file, want, got string) {
	t.Helper()
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		if i >= len(w) || i >= len(g) || w[i] != g[i] {
			t.Fatalf("%s:%d differs (go test ./httpapi -run Transcripts -update rewrites it)\nwant: %s\n got: %s",
				file, i+1,
				strings.Join(w[min(i, len(w)):min(i+3, len(w))], "\n      "),
				strings.Join(g[min(i, len(g)):min(i+3, len(g))], "\n      "))
		}
	}
}

// script is one conversation.
type script struct {
	w      *world
	caller string            // "" for nobody
	given  map[string]string // credential to its name
	counts [5]int            // sessions, tokens, archives, logins at a provider and view tokens named so far
	mount  string            // path that the service is mounted below
	moved  int               // answers that had the path
}

// replay returns the conversation with the answers of now.
func (s *script) replay(t *testing.T, text string) string {
	var out strings.Builder
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	answered := false // what follows is the answer of before
	for i := 0; i < len(lines); i++ {
		switch line := lines[i]; {
		case strings.HasPrefix(line, ">"):
			from := i
			for i+1 < len(lines) && strings.HasPrefix(lines[i+1], ">") {
				i++
			}
			request := lines[from : i+1]
			fmt.Fprintf(&out, "%s\n%s\n", strings.Join(request, "\n"), s.answer(t, request))
			answered = true
			continue
		case strings.HasPrefix(line, "@"):
			s.caller = strings.TrimPrefix(line[1:], "nobody")
		case line == "! work":
			s.w.workOff(t)
		case strings.HasPrefix(line, "! handler "):
			s.handler(t, strings.SplitN(line, " ", 5)[2:])
		case strings.HasPrefix(line, "! confirm "):
			s.confirm(t, strings.TrimPrefix(line, "! confirm "))
		case strings.HasPrefix(line, "! "):
			d, err := time.ParseDuration(strings.TrimPrefix(line[2:], "+"))
			is.New(t).NoErr(err)
			s.w.pass(d)
		case !strings.HasPrefix(line, "#") && answered:
			continue
		}
		answered = false
		out.WriteString(lines[i] + "\n")
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}

// handler does what a handler of an app does with the caller's rights: id of the app, function, and
// its arguments as JSON.
func (s *script) handler(t *testing.T, words []string) {
	ctx := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: s.caller})
	_, err := s.w.app.Messages.Functions(words[0])[words[1]](ctx, json.RawMessage(words[2]))
	is.New(t).NoErr(err)
}

// confirm asks the caller to confirm a call of an assistant, as a conversation on another server.
func (s *script) confirm(t *testing.T, assistant string) {
	id := make(chan string)
	go func() {
		ctx := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: s.caller})
		_, _ = s.w.app.Confirmations.Ask(ctx, assistant, "user "+s.caller, func(c confirmations.Confirmation) error {
			id <- c.ID
			return nil
		})
	}()
	s.given[<-id] = fmt.Sprintf("<CONFIRMATION-%d>", len(s.given))
}

// answer sends a request and writes what comes back.
func (s *script) answer(t *testing.T, request []string) string {
	first, rest := strings.TrimPrefix(request[0], "> "), request[1:]
	method, target, _ := strings.Cut(first, " ")
	target, body, _ := strings.Cut(target, " ")
	var headers []string
	for len(rest) > 0 && strings.HasPrefix(rest[0], "> ") {
		headers, rest = append(headers, s.filled(rest[0][2:])), rest[1:]
	}
	for i, line := range rest {
		if i > 0 {
			body += strings.TrimPrefix(strings.TrimPrefix(line, ">"), " ") + "\n"
		}
	}
	r := s.w.request(t, s.caller, method, s.mount+s.filled(target), s.filled(body), headers...)
	return s.unmounted(s.format(t, s.w.send(r), r.Header))
}

// unmounted takes the path that the service is mounted below out of an answer.
func (s *script) unmounted(text string) string {
	if s.mount == "" {
		return text
	}
	plain := text
	for _, at := range []string{baseURL, url.QueryEscape(baseURL), "Path=", "\nLocation: "} {
		path := s.mount
		if strings.Contains(at, "%") {
			path = url.QueryEscape(path)
		}
		if at == "Path=" {
			plain = strings.ReplaceAll(plain, at+path+";", at+"/;")
		}
		plain = strings.ReplaceAll(plain, at+path, at)
	}
	if plain != text {
		s.moved++
	}
	return plain
}

// shown are the headers that a transcript shows.
var shown = []string{
	"Location", "Allow", "Set-Cookie", "Content-Disposition", "Content-Range", "WWW-Authenticate",
	"Retry-After",
}

func (s *script) format(t *testing.T, a answer, asked http.Header) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d %s\n", a.status, http.StatusText(a.status))
	for _, name := range shown {
		for _, v := range a.header.Values(name) {
			fmt.Fprintf(&out, "%s: %s\n", name, v)
		}
	}
	kind := a.header.Get("Content-Type")
	if kind != "" && kind != "application/json; charset=utf-8" {
		fmt.Fprintf(&out, "Content-Type: %s\n", kind)
	}
	if asked.Get("X-Request-Id") != "" && asked.Get("X-Request-Id") == a.header.Get("X-Request-Id") {
		fmt.Fprintf(&out, "X-Request-Id: %s\n", a.header.Get("X-Request-Id"))
	}
	if (kind == "application/json; charset=utf-8" || kind == "application/hal+json" ||
		kind == "application/scim+json") && a.body != "" {
		var b bytes.Buffer
		is.New(t).NoErr(json.Indent(&b, []byte(a.body), "", "  "))
		a.body = b.String()
	}
	if kind == "application/gzip" {
		a.body = s.archive(t, a.body)
	}
	if a.body != "" {
		fmt.Fprintf(&out, "  %s\n", strings.ReplaceAll(strings.TrimRight(a.body, "\n"), "\n", "\n  "))
	}
	return s.named(out.String())
}

var (
	loginCookie = regexp.MustCompile(`sso-([A-Za-z0-9_-]{16})=([A-Za-z0-9_.-]+)`)
	took        = regexp.MustCompile(`"(durationMs|averageMs)": \d+`)
	loggedAt    = regexp.MustCompile(`"time": "20[^"]*"`)
	peak        = regexp.MustCompile(`"memoryPeakBytes": "[1-9]\d*"`)
	viewToken   = regexp.MustCompile(`~[A-Za-z0-9_-]{40,}\.[A-Za-z0-9_-]{43}`)
	certificate = regexp.MustCompile(`"(fingerprint|certificate)": "[^"]{64,}"`)
	locked      = regexp.MustCompile(`"editingSession": "[0-9a-f]{32}"`)
)

var credential = regexp.MustCompile(`tc([apstv])\.[a-z]+\.[A-Za-z0-9_.-]{43,}|eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{43}`)

// named writes names for credentials, filled the other way round.
func (s *script) named(text string) string {
	for _, login := range loginCookie.FindAllStringSubmatch(text, -1) {
		if s.given[login[1]] == "" {
			s.counts[3]++
			s.given[login[1]] = fmt.Sprintf("<STATE-%d>", s.counts[3])
			s.given[login[2]] = fmt.Sprintf("<BROWSER-%d>", s.counts[3])
		}
	}
	for secret, name := range s.given {
		if strings.HasPrefix(name, "<STATE") || strings.HasPrefix(name, "<BROWSER") {
			text = strings.ReplaceAll(text, secret, name)
		}
	}
	text = took.ReplaceAllString(text, `"$1": <MS>`)
	text = loggedAt.ReplaceAllString(text, `"time": "<TIME>"`)
	text = peak.ReplaceAllString(text, `"memoryPeakBytes": "<BYTES>"`)
	text = certificate.ReplaceAllString(text, `"$1": "<CERTIFICATE>"`)
	text = locked.ReplaceAllString(text, `"editingSession": "<LOCK>"`)
	text = viewToken.ReplaceAllStringFunc(text, func(token string) string {
		if s.given[token] == "" {
			s.counts[4]++
			s.given[token] = fmt.Sprintf("<VIEW-%d>", s.counts[4])
		}
		return s.given[token]
	})
	return credential.ReplaceAllStringFunc(text, func(secret string) string {
		if s.given[secret] == "" {
			kind := map[byte]int{'s': 0, 'a': 1, 'p': 1, 't': 1, 'v': 1, 'J': 1}[secret[2]]
			s.counts[kind]++
			s.given[secret] = fmt.Sprintf("<%s-%d>", [...]string{"SESSION", "TOKEN"}[kind], s.counts[kind])
		}
		return s.given[secret]
	})
}

func (s *script) filled(text string) string {
	for secret, name := range s.given {
		text = strings.ReplaceAll(text, name, secret)
	}
	return text
}

// TestEveryRouteHasATranscript fails for a route that no transcript calls with success.
func TestEveryRouteHasATranscript(t *testing.T) {
	served := map[string]bool{}
	eachExchange(t, func(_, request, status string) {
		method, target, _ := strings.Cut(strings.TrimPrefix(request, "> "), " ")
		target, _, _ = strings.Cut(target, " ")
		if status < "4" {
			served[httpapi.RouteOf(method, target)] = true
		}
	})
	for _, r := range httpapi.Routes() {
		if !served[r.Name] {
			t.Errorf("no transcript has a successful %s %s", r.Method, r.Pattern)
		}
	}
}

// TestTranscriptsShowNoInsides looks for what no answer may ever hold.
func TestTranscriptsShowNoInsides(t *testing.T) {
	insides := regexp.MustCompile(`(?i)\bselect \b|\binsert into\b|\bwhere ` +
		`tenant|tc_[a-z]+|sqlstate|sql:|sqlite|postgres|pgdriver|goroutine|` +
		`\.go:|panic|runtime error|invalid character|unexpected EOF|strconv\.|\bjson: ` +
		`(cannot|unknown|invalid)|mime: |url: |cannot unmarshal|nil pointer|\bEOF\b|argon2|passwordHash|secretHash`)
	files, clean := transcripts(t), map[string]bool{} // most lines are there many times
	for _, file := range files {
		text, err := os.ReadFile(file)
		is.New(t).NoErr(err)
		for i, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, ">") || strings.HasPrefix(line, "#") || clean[strings.TrimSpace(line)] {
				continue
			}
			if clean[strings.TrimSpace(line)] = !insides.MatchString(line); !clean[strings.TrimSpace(line)] {
				t.Errorf("%s:%d: %s", file, i+1, line)
			}
		}
	}
}

// eachExchange returns the first line of each request in the transcripts with the first line of its
// answer.
func eachExchange(t *testing.T, f func(file, request, status string)) {
	t.Helper()
	files := transcripts(t)
	for _, file := range files {
		text, err := os.ReadFile(file)
		is.New(t).NoErr(err)
		request := ""
		for _, line := range strings.Split(string(text), "\n") {
			switch {
			case strings.HasPrefix(line, ">") && request == "":
				request = line
			case !strings.HasPrefix(line, ">") && request != "":
				f(file, request, line)
				request = ""
			}
		}
	}
}
