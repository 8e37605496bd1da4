package httpapi

import (
	"crypto/rand"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/tenantcontent/tenantcontent/internal/rest/view"
)

// newViewTokens returns the view tokens under a key, nil for a random one.
func newViewTokens(key []byte) (*view.Tokens, error) {
	if key == nil {
		key = make([]byte, 32)
		_, _ = rand.Read(key) // never fails
	}
	return view.NewTokens(key)
}

// viewAddress is what the path of a request to a view names: /api/apps/{app}/view, or below behind
// its /-/ or /api/.
type viewAddress struct {
	app   string // unescaped
	below string // still escaped; "" for the view itself
	files bool   // below is behind /-/
	token string // the view token that below begins with; "" for none
	rest  string // of below, behind the token
	known bool   // the headers of the view are in the cache
}

// viewAddressOf returns what the escaped path of a request names, and the zero viewAddress for one
// that is not to a view.
func viewAddressOf(escaped string) viewAddress {
	tail, isApp := strings.CutPrefix(escaped, "/api/apps/")
	app, tail, _ := strings.Cut(tail, "/")
	name, tail, _ := strings.Cut(tail, "/")
	if !isApp || name != "view" {
		return viewAddress{}
	}
	if plain, err := url.PathUnescape(app); err == nil {
		app = plain
	}
	way, below, _ := strings.Cut(tail, "/")
	at := viewAddress{app: app, below: below, files: way == "-"}
	at.token, at.rest = viewPath(below)
	return at
}

// belowToken reports whether the path is below /-/ and a view token, which pages bring with all
// that they load.
func (at viewAddress) belowToken() bool { return at.files && at.token != "" }

// viewPath parts the path below a view in the view token, "" for none, and the rest.
func viewPath(below string) (token, tail string) {
	if !strings.HasPrefix(below, "~") {
		return "", below
	}
	token, tail, _ = strings.Cut(below, "/")
	return token, tail
}

var viewToken = regexp.MustCompile(`/~[^/]*`)

// loggedPath returns the path of a request for the log, without a view token, wherever it stands.
func loggedPath(path string) string {
	if !strings.Contains(path, "/~") {
		return path
	}
	return viewToken.ReplaceAllString(path, "/~")
}

// setViewHeaders sets the headers that every answer of a view has, refusals too: a page reads why
// its call was refused.
func (a views) setViewHeaders(h http.Header, r *http.Request, at *viewAddress) {
	if originOf(r.Context()) != nil { // which has set them
		return
	}
	var headers http.Header
	if headers, at.known = a.viewHeaders.get(at.app, at.token); !at.known {
		headers = a.viewHeadersOf(at.app, at.token)
	}
	maps.Copy(h, headers)
}

// viewHeadersOf returns the headers that every answer below a view token has, or without one every
// answer of the view.
func (a views) viewHeadersOf(app, token string) http.Header {
	h := http.Header{}
	for name, value := range view.Headers("application/json", view.Policy(a.viewBase(app, token), ""), token == "") {
		h.Set(name, value)
	}
	h.Del("Content-Type")
	return h
}

// viewHeaders caches the headers of views, by the app and the view token in their paths. Requests
// share them.
type viewHeaders struct {
	mu  sync.RWMutex
	all map[viewKey]http.Header
}

type viewKey struct{ app, token string }

// maxViewHeaders is how many views' headers are kept.
const maxViewHeaders = 2000

func (c *viewHeaders) get(app, token string) (http.Header, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	h, ok := c.all[viewKey{app, token}]
	return h, ok
}

// put keeps the headers of a token that is valid: what anybody sends is not kept.
func (c *viewHeaders) put(app, token string, h http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all) >= maxViewHeaders {
		c.all = map[viewKey]http.Header{}
	}
	c.all[viewKey{app, token}] = h
}

// viewBase returns the URL below which the pages of an app have all that is theirs; without a
// token, that of nothing but files.
func (a views) viewBase(app, token string) string {
	base := a.href("apps", app, "view") + "/-/"
	if token != "" {
		base += url.PathEscape(token) + "/"
	}
	return base
}
