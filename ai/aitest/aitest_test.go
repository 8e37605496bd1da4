package aitest_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/ai/aitest"
)

func post(url, body string) (status int, text string, err error) {
	res, err := http.Post(url+"/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	return res.StatusCode, string(raw), err
}

// TestEndOfScript: requests after the last turn fail.
func TestEndOfScript(t *testing.T) {
	is := is.New(t)
	s := aitest.NewServer(aitest.Turn{Status: 429, Body: "slow"})
	defer s.Close()
	status, text, err := post(s.URL, "{}")
	is.NoErr(err)
	is.Equal(status, 429)
	is.Equal(text, "slow")
	status, _, err = post(s.URL, "{}")
	is.NoErr(err)
	is.Equal(status, 500)
	s.Add(aitest.Turn{Text: []string{"Hi"}})
	status, _, err = post(s.URL, "{}")
	is.NoErr(err)
	is.Equal(status, 200)
	status, _, err = post(s.URL, "no JSON")
	is.NoErr(err)
	is.Equal(status, 400)
	is.Equal(len(s.Requests()), 3)
	is.Equal(s.Gone(), 0)
}

func ExampleNewReplier() {
	server := aitest.NewReplier(func(r aitest.Request) aitest.Turn {
		return aitest.Turn{Text: []string{"You said: " + r.Last().Text()}, Usage: ai.Usage{InputTokens: 3}}
	})
	defer server.Close()
	_, text, err := post(
		server.URL, `{"model": "m", "stream": true, "messages": [{"role": "user", "content": "Hello"}]}`,
	)
	fmt.Println(
		strings.Contains(text, `"delta": {"content": "You said: Hello"}`),
		strings.HasSuffix(text, "data: [DONE]\n\n"), err,
	)
	fmt.Println(server.Requests()[0].Model)
	// Output:
	// true true <nil>
	// m
}
