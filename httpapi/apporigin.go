package httpapi

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/rest"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/rest/view"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
)

// With Config.AppOrigin each app has an origin of its own, where its pages have a history, cookies
// and a storage. The service's session never comes there. A page that is opened at the service goes
// to /.open of the app's origin, which puts a random verifier into a cookie and goes back to the
// service with its challenge; the service answers with a code that is for this verifier, and /.open
// changes the code into a cookie with a view token. All of that are redirects, none with something
// in its URL that serves anybody else.

// appOrigins are the origins of apps.
type appOrigins struct {
	scheme string
	domain string // behind the label, such as .apps.example.com:8443
}

// parseAppOrigin reads Config.AppOrigin, nil for "". Errors: errs.Invalid.
func parseAppOrigin(text, service string) (*appOrigins, error) {
	if text == "" {
		return nil, nil
	}
	const placeholder = "{app}"
	refuse := func(why string) (*appOrigins, error) {
		return nil, errs.New(errs.Invalid, "the app origin %q %s, such as https://{app}.apps.example.com", text, why)
	}
	scheme, host, _ := strings.Cut(text, "://")
	switch {
	case !strings.Contains(text, placeholder):
		return refuse("must have {app} where the name of an app comes")
	case scheme != "https" && scheme != "http" || !strings.HasPrefix(host, placeholder+".") ||
		strings.Count(text, placeholder) > 1:
		return refuse("must be https://, {app} and a domain")
	}
	domain := strings.TrimPrefix(host, placeholder)
	u, err := url.Parse(scheme + "://a" + domain)
	if err != nil || u.Host != "a"+domain || u.Hostname() == "a" || net.ParseIP(u.Hostname()[1:]) != nil ||
		strings.ToLower(domain) != domain ||
		strings.HasSuffix(u.Hostname(), ".") || strings.Contains(domain, "..") || strings.HasSuffix(u.Host, ":") {
		return refuse("must be https://, {app} and a domain in lower case, without a path")
	}
	parent := u.Hostname()[2:]
	local := parent == "localhost" || strings.HasSuffix(parent, ".localhost")
	if scheme == "http" && !local {
		return refuse("must be https://: only names below localhost can do without")
	}
	if len(parent) > 253-len("1.")-appLabelSize {
		return refuse("must have a shorter domain")
	}
	base, err := url.Parse(service)
	if err != nil {
		return nil, err
	}
	name := strings.ToLower(base.Hostname())
	if strings.HasSuffix(name, "."+parent) || name == parent && !local {
		return refuse("must be at another domain than the base URL " + service +
			", whose cookies the apps could change there")
	}
	return &appOrigins{scheme, domain}, nil
}

// appLabelSize is how many characters a label has: no more than DNS allows.
const appLabelSize = 36 + 1 + 26

// appLabel returns the name of an app in DNS: no other app of any tenant has it. Tenants may have
// apps with the same id.
func appLabel(tenant, app string) string {
	sum := sha256.Sum256([]byte(tenant))
	return app + "-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// of returns the origin of an app.
func (o *appOrigins) of(tenant, app string) string { return o.at(appLabel(tenant, app)) }

func (o *appOrigins) at(label string) string { return o.scheme + "://" + label + o.domain }

// find reports whether a Host header is that of an app, or of none at the domain of apps, and
// returns its label and the app's id.
// Errors: errs.NotFound for no app's.
func (o *appOrigins) find(host string) (label, app string, found bool, err error) {
	if o == nil {
		return "", "", false, nil
	}
	lower := strings.ToLower(host)
	bare, _, _ := strings.Cut(o.domain, ":")
	name, _, _ := strings.Cut(lower, ":")
	if !strings.HasSuffix(strings.TrimSuffix(name, "."), bare) {
		return "", "", false, nil
	}
	label, ours := strings.CutSuffix(lower, o.domain)
	if ours && len(label) == appLabelSize && label[36] == '-' {
		if app, ok := uuids.Parse(label[:36]); ok && app == label[:36] {
			return label, app, true, nil
		}
	}
	return "", "", true, errs.New(errs.NotFound, "There is no app at this address.")
}

// atOrigin is a request at the origin of an app.
type atOrigin struct {
	origin string // without a slash at its end
}

type atOriginKey struct{}

// originOf returns what a request at the origin of an app has, nil for one at that of the service.
func originOf(ctx context.Context) *atOrigin {
	o, _ := ctx.Value(atOriginKey{}).(*atOrigin)
	return o
}

// openPath is where viewers enter the origin of an app. No file of an app has a name that begins
// with a dot.
const openPath = "/.open"

// serveApp serves a request at the origin of an app: its files and, below /api/, the calls that its
// manifest allows.
func (a views) serveApp(w *rest.Response, r *http.Request, label, app string) error {
	origin := a.origins.at(label)
	for name, value := range view.Headers("application/json", view.Policy(origin+"/", a.origin), true) {
		if name != "Content-Type" {
			w.Header().Set(name, value)
		}
	}
	w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
	if err := rest.PlainText(r); err != nil {
		return err
	}
	visits := r.Header.Get("Sec-Fetch-Mode") == "navigate"
	switch site := r.Header.Get("Sec-Fetch-Site"); {
	case !visits && (site == "same-site" || site == "cross-site") && !strings.HasPrefix(r.URL.Path, "/api/_server"):
		// where callServer decides
		return errs.New(errs.Forbidden, "This request came from a page of another origin.")
	case r.Header.Get("Service-Worker") != "": // it would see the codes
		return errs.New(errs.Forbidden, "An app cannot have a service worker.")
	case !rest.IsRead(r.Method) && !fromOwnOrigin(r, origin):
		return errs.New(errs.Forbidden, "This request came from a page of another origin.")
	case r.URL.Path == openPath:
		return a.openApp(w, r, label, app)
	}
	claims, err := a.viewerAt(r, label)
	if err != nil {
		if errs.CodeOf(err) == errs.Unauthenticated && r.Method == http.MethodGet && visitsPage(r.Header) {
			return a.begin(w, r, label, app, r.URL.RequestURI(), claims.Role)
		}
		return a.ended(err, app, claims)
	}
	inner := r.Clone(context.WithValue(r.Context(), atOriginKey{}, &atOrigin{origin}))
	inner.Host = ""
	inner.URL.RawPath = a.mount + "/api/apps/" + app + "/view"
	if path := r.URL.EscapedPath(); path != "/" {
		inner.URL.RawPath += "/-" + path
	}
	if inner.URL.Path, err = url.PathUnescape(inner.URL.RawPath); err != nil {
		return errs.New(errs.Invalid, "The path is not properly escaped.")
	}
	for _, name := range []string{"Authorization", "Cookie"} {
		inner.Header.Del(name)
	}
	return a.Serve(w, inner, &rest.As{Trusted: true, Caller: func(r *rest.Request) (actor.Actor, error) {
		return a.viewerAtOrigin(r, claims)
	}})
}

// viewerAt returns the claims of the cookie that a request brings to the origin of an app. The
// viewer must be one who may log in now, and the app what it was when the cookie was set. Errors:
// errs.Unauthenticated, with the claims of a cookie that has ended.
func (a views) viewerAt(r *http.Request, label string) (view.Claims, error) {
	err := errs.New(errs.Unauthenticated, "Open the app first.")
	var over view.Claims
	for _, c := range r.CookiesNamed(a.originCookie("view")) { // an app can add others
		claims, refused := a.viewTokens.Check(c.Value, a.Now())
		if appLabel(claims.Tenant, claims.App) != label {
			continue
		}
		if refused == nil {
			refused = a.mayGoOn(r, claims)
		}
		if refused == nil {
			return claims, nil
		}
		over, err = claims, refused
	}
	return over, err
}

// mayGoOn returns the error of the claims of a view token at the origin of an app whose session, or
// what it was issued under, is over.
func (a views) mayGoOn(r *http.Request, claims view.Claims) error {
	who, err := a.viewerOf(rest.NewInner(r), claims)
	if err != nil {
		return err
	}
	ctx := actor.With(r.Context(), who)
	v, err := a.Apps.View(ctx, claims.App, "")
	if err != nil { // which the request answers
		return nil
	}
	return a.issuedUnder(ctx, claims, v)
}

// originCookie returns the name of a cookie of the service at the origin of an app. With the
// prefix, browsers take it from this origin alone, and not from a neighbour.
func (a views) originCookie(name string) string {
	if a.origins.scheme == "https" {
		return "__Host-" + name
	}
	return name
}

func (a views) setOriginCookie(w http.ResponseWriter, name, value string, maxAge time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: a.originCookie(name), Value: value, Path: "/", MaxAge: int(maxAge / time.Second),
		HttpOnly: true, Secure: a.origins.scheme == "https", SameSite: http.SameSiteLaxMode,
	})
}

// openApp serves GET /.open at the origin of an app: 303 to the service for a code, and with one to
// the page that was asked for. 401 for a code that is not for this browser, that was used or that
// has expired.
func (a views) openApp(w *rest.Response, r *http.Request, label, app string) error {
	query, err := rest.ParseQuery(r)
	if err != nil {
		return err
	}
	if !query.Has("code") {
		return a.begin(w, r, label, app, query.Get("path"), query.Get("role"))
	}
	verifier := ""
	if c, err := r.Cookie(a.originCookie("open")); err == nil {
		verifier = c.Value
	}
	claims, err := a.viewTokens.Redeem(query.Get("code"), verifier, a.Now())
	if err == nil && appLabel(claims.Tenant, claims.App) != label {
		err = errs.New(errs.Unauthenticated, "The link to the app is not valid any more: open the app again.")
	}
	if err != nil {
		if _, open := a.viewerAt(r, label); open != nil { // else another tab was first
			return err
		}
	} else {
		a.setOriginCookie(w, "view", a.viewTokens.Make(claims), 0)
		a.setOriginCookie(w, "open", "", -time.Second)
	}
	return rest.SeeOther(a.origins.at(label)+pathOf(query.Get("path"))).Write(w, r)
}

// begin sends a browser from the origin of an app to the service, with the challenge of a verifier
// that the browser gets.
func (a views) begin(w *rest.Response, r *http.Request, label, app, path, role string) error {
	verifier := ""
	if c, err := r.Cookie(a.originCookie("open")); err == nil && view.ValidChallenge(c.Value) { // that of another tab
		verifier = c.Value
	} else {
		var b [32]byte
		_, _ = rand.Read(b[:]) // never fails
		verifier = view.Challenge(string(b[:]))
	}
	a.setOriginCookie(w, "open", verifier, time.Minute)
	query := url.Values{"challenge": {view.Challenge(verifier)}, "path": {pathOf(path)}}
	if role != "" {
		query.Set("role", role)
	}
	return rest.SeeOther(a.href("apps", app, "view")+"?"+query.Encode()).Write(w, r)
}

// openAtOrigin replies to a browser that opens an app at the service: it sends it to the origin of
// the app, with a code if it comes from there with a challenge.
func (a views) openAtOrigin(r *rest.Request, v apps.Viewed, query url.Values) (rest.Reply, error) {
	challenge, path := query.Get("challenge"), pathOf(query.Get("path"))
	if print := query.Get("print"); print != "" {
		path = "/?print=" + print
	}
	to := url.Values{"path": {path}}
	if role := query.Get("role"); role != "" {
		to.Set("role", role)
	}
	switch {
	case !query.Has("challenge"):
	case !view.ValidChallenge(challenge):
		return rest.Reply{}, errs.New(errs.Invalid, "challenge must be 32 bytes in base64url: open the app again")
	default:
		claims, err := a.viewClaims(r, v, query.Get("role"))
		if err != nil {
			return rest.Reply{}, err
		}
		if err := a.countView(r, v); err != nil {
			return rest.Reply{}, err
		}
		to = url.Values{"path": {path}, "code": {a.viewTokens.MakeCode(claims, challenge, a.Now())}}
	}
	return rest.SeeOther(a.origins.of(r.Who.Tenant, v.ID) + openPath + "?" + to.Encode()), nil
}

// pathOf returns a path of an app with its query, as it stands in a URL, and / for what is none.
func pathOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || len(text) > 2048 || !strings.HasPrefix(text, "/") || u.Host != "" || u.Scheme != "" ||
		u.Path == openPath {
		return "/"
	}
	return u.RequestURI()
}

// fromOwnOrigin reports whether a request that may change something comes from a page of an app's
// own origin, or from no page.
func fromOwnOrigin(r *http.Request, origin string) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	from := r.Header.Get("Origin")
	return from == "" || from == origin
}

// viewerAtOrigin returns the viewer of an app at its own origin, who can only read, but for routes
// of the app's server.
func (a views) viewerAtOrigin(r *rest.Request, claims view.Claims) (actor.Actor, error) {
	who, err := a.viewerOf(r, claims)
	if err != nil {
		return actor.Actor{}, err
	}
	visitOf(r).claims = claims
	if _, server := serverPathOf(r); !server {
		who.ReadOnly = true
	}
	return who, nil
}
