package httpapi_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// link is a link as a client sees it.
type link struct {
	Href      string
	Templated bool
	all       []link // of an array
}

func (l *link) UnmarshalJSON(raw []byte) error {
	type one link
	if len(raw) > 0 && raw[0] == '[' {
		return json.Unmarshal(raw, &l.all)
	}
	return json.Unmarshal(raw, (*one)(l))
}

// crawler follows links as one caller.
type crawler struct {
	stock
	t      *testing.T
	user   string // "" for that of header
	header []string
	routes map[string]httpapi.Route
	queue  []string
	seen   map[string]bool
	rows   map[string][]string // address of an embedded row to the relations of its links
	alone  map[string][]string // the same of what was visited
	selves map[string]bool     // addresses that only self has led to
}

// everySession are links to writes that every session sees, whatever it may do: see docs/api.md.
var everySession = []string{"inf:download", "inf:deploy", "inf:scan"}

// onlyAlone are links of an app that its rows in lists do not have.
var onlyAlone = []string{
	"inf:library", "inf:library-contents", "inf:app-dependencies",
	"inf:app-dependency", "inf:app-environment", "inf:app-environment-var", "inf:app-draft-diff",
	"inf:entrypoint", "inf:app-suggest-icon", "inf:app-modernize-manifest",
}

// TestLinks follows every link from the root: each leads to something that this caller may use,
// each embedded row has a self, and has the same links there as alone.
func TestLinks(t *testing.T) {
	is := is.New(t)
	s := stocked(t, dbtest.SQLite)
	key := read[struct{ Key string }](t, s.must(t, "admin", "POST", "/api/tokens", `{"readOnly": true}`)).Key
	s.must(t, "mia", "POST", "/api/comments/"+s.param["comments"]+"/replies", `{"message": "Hi @admin"}`)
	routes := map[string]httpapi.Route{}
	for _, r := range httpapi.Routes() {
		routes[r.Name] = r
	}
	least := map[string]int{"admin": 60, "mia": 50, "": 60}
	for user, pages := range least {
		c := &crawler{
			stock:  s,
			t:      t,
			user:   user,
			routes: routes,
			seen:   map[string]bool{},
			rows:   map[string][]string{},
			alone:  map[string][]string{},
			selves: map[string]bool{},
		}
		if user == "" {
			c.header = []string{"Authorization: Bearer " + key}
		}
		c.follow("root", link{Href: baseURL + "/api"})
		followed := 0
		for len(c.queue) > 0 {
			next := c.queue[0]
			c.queue = c.queue[1:]
			c.visit(next)
			followed++
		}
		is.True(followed >= pages) // the crawl has led somewhere
		for href, rels := range c.rows {
			alone, ok := c.alone[strings.TrimPrefix(href, baseURL)]
			if strings.HasPrefix(href, baseURL+"/api/apps/") {
				alone = slices.DeleteFunc(alone, func(rel string) bool { return slices.Contains(onlyAlone, rel) })
			}
			if ok && !slices.Equal(alone, rels) {
				t.Errorf("%s as %q has the links %v alone and %v in a list", href, user, alone, rels)
			}
		}
	}
}

// follow queues a link that has not been followed.
func (c *crawler) follow(rel string, l link) {
	for _, one := range l.all {
		c.follow(rel, one)
	}
	if l.all != nil {
		return
	}
	href, query, _ := strings.Cut(l.Href, "{?")
	if strings.Contains(href, "{") { // a template that needs a value
		if !l.Templated {
			c.t.Errorf("%s: %s is a template", rel, l.Href)
		}
		return
	}
	if l.Templated != (query != "") || !strings.HasPrefix(href, baseURL+"/") {
		c.t.Errorf("%s: %+v", rel, l)
	}
	target := strings.TrimPrefix(href, baseURL)
	defer func() { c.selves[target] = c.selves[target] && rel == "self" }()
	if httpapi.RouteOf(http.MethodGet, target) == "" {
		c.write(rel, target)
		return
	}
	if rel == "avatar-upload" { // which is for a PUT
		return
	}
	if !c.seen[target] {
		c.seen[target], c.selves[target] = true, true
		c.queue = append(c.queue, target)
	}
}

// write checks a link that no GET can follow: this caller may write there.
func (c *crawler) write(rel, target string) {
	for _, method := range []string{http.MethodPost, http.MethodPut} {
		name := httpapi.RouteOf(method, target)
		if name == "" {
			continue
		}
		if c.user == "" || c.routes[name].Permission != "" && c.user != "admin" && (c.user != "dana" ||
			!strings.HasPrefix(name, "importColors") && name != "exportColors") && !slices.Contains(everySession, rel) {
			c.t.Errorf("%q has the link %s to %s", c.user, rel, target)
		}
		return
	}
	c.t.Errorf("%s leads to no route: %s", rel, target)
}

func (c *crawler) visit(target string) {
	a := c.do(c.t, c.user, "GET", target, "", c.header...)
	if a.status == 302 {
		c.follow("Location", link{Href: baseURL + strings.TrimPrefix(a.header.Get("Location"), baseURL)})
		return
	}
	if name := httpapi.RouteOf("GET", target); a.status == 403 && (name == "getDomain" ||
		name == "getDomainDriver") && c.user == "mia" && c.selves[target] {
		return // every session sees these rows in their list, and only superusers read them alone: see docs/api.md
	}
	if a.status != 200 {
		c.t.Errorf("%s as %q: %d %s", target, c.user, a.status, a.body)
		return
	}
	var v any
	if !strings.HasPrefix(a.header.Get("Content-Type"), "application/json") ||
		json.Unmarshal([]byte(a.body), &v) != nil {
		return
	}
	c.walk(target, v, false)
}

// walk follows all links in a JSON value.
func (c *crawler) walk(from string, v any, embedded bool) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			c.walk(from, e, embedded)
		}
	case map[string]any:
		raw, err := json.Marshal(v["_links"])
		is.New(c.t).NoErr(err)
		var links map[string]link
		is.New(c.t).NoErr(json.Unmarshal(raw, &links))
		if _, is := v["_links"]; is && c.alone[from] == nil && links["self"].Href == baseURL+from {
			c.alone[from] = slices.Sorted(maps.Keys(links))
		}
		if embedded {
			if links["self"].Href == "" {
				c.t.Errorf("%s embeds a row without a self: %v", from, v)
			} else if _, brief := v["permissions"]; !brief || v["tenant"] != nil {
				// except for the brief rows of entries
				c.rows[links["self"].Href] = slices.Sorted(maps.Keys(links))
			}
		}
		for rel, l := range links {
			c.follow(rel, l)
		}
		for name, e := range v {
			if name == "_embedded" {
				for _, rows := range e.(map[string]any) {
					c.walk(from, rows, true)
				}
			} else if name != "_links" {
				c.walk(from, e, false)
			}
		}
	}
}
