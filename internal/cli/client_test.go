package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// answering starts a server that gives the same answer to all requests.
func answering(t *testing.T, answer http.HandlerFunc) (flags []string) {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return []string{"--server=" + s.URL, "--token=x"}
}

// TestAnswerCut: an answer that is cut off leaves no file, and the error tells where the reason is.
func TestAnswerCut(t *testing.T) {
	is, dir := is.New(t), t.TempDir()
	flags := answering(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "the-one")
		_, _ = io.WriteString(w, "a part")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	for _, file := range []string{filepath.Join(dir, "x.tgz"), "-"} {
		code, _, stderr := cli(t, "", append([]string{"bundle", "export", file, "--bundle=b"}, flags...)...)
		is.Equal(code, 1)
		is.Equal(
			stderr,
			"tenantcontent: the answer was cut off; the server's log says why (request the-one): unexpected EOF\n",
		)
	}
	left, err := os.ReadDir(dir)
	is.NoErr(err)
	is.Equal(len(left), 0)
}

// TestHarmless: control characters from a server or an archive are escaped.
func TestHarmless(t *testing.T) {
	const evil = "a\x1b]0;pwned\a\x1b[31m\r\n\x7f\u009b1m\u202eb"
	const shown = `a\u001b]0;pwned\u0007\u001b[31m\u000d\u000a\u007f\u009b1m\u202eb`
	quoted, err := json.Marshal(evil)
	is.New(t).NoErr(err)
	for name, c := range map[string]struct {
		status int
		body   string
		more   []string
		want   string
	}{
		"warning": {
			200, `{"warnings": [EVIL]}`, nil,
			"warning: " + shown + "\ntotal          0 created, 0 updated, 0 skipped, 0 deleted\n",
		},
		"type": {200, `{"byType": {EVIL: {}}}`, nil, shown + " 0 created"},
		"change": {
			200, `{"changes": [{"action": "created", "type": EVIL, "id": EVIL, "name": "N"}]}`, nil,
			"+ " + shown + " " + shown + " \"N\"\n",
		},
		"name": {
			200, `{"changes": [{"action": "created", "type": "t", "id": "i", "name": EVIL}]}`, nil,
			"+ t i \"" + shown + "\"\n",
		},
		"JSON": {
			200, "{\"warnings\":\r\n\t[EVIL]}", []string{"--json"},
			`{"warnings":["` + strings.ReplaceAll(shown, `\u000d\u000a`, `\r\n`) + "\"]}\n",
		},
		"refusal": {400, `{"message": EVIL}`, nil, "400 Bad Request: " + shown + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			flags := answering(t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, strings.ReplaceAll(c.body, "EVIL", string(quoted)))
			})
			code, stdout, stderr := cli(t, "", append(append([]string{"bundle", "diff", "-"}, flags...), c.more...)...)
			is.Equal(code == 0, c.status == 200)
			if !strings.Contains(stdout+stderr, c.want) {
				t.Errorf("%q", stdout+stderr)
			}
		})
	}
}
