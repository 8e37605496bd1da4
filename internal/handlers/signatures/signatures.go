// Package signatures checks the signatures with which senders of webhooks sign what they send.
//
// webhooks imports it. It has no HTTP type: headers are looked up by a function.
package signatures

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"hash"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
)

// tolerance is how far the time of a signature may be from now, before or after it.
const tolerance = 5 * time.Minute

// Scheme is how a sender signs. The zero Scheme verifies nothing.
type Scheme struct {
	variable string
	check    func(r request) error
}

// request is what a sender has signed.
type request struct {
	secret string
	header func(name string) string
	body   []byte
	now    time.Time
}

// presets are the schemes that a config names.
var presets = map[string]func(r request) error{
	"github":   github,
	"stripe":   stripe,
	"slack":    slack,
	"shopify":  shopify,
	"standard": standard,
}

var algorithms = map[string]func() hash.Hash{"sha1": sha1.New, "sha256": sha256.New, "sha512": sha512.New}

var encodings = map[string]func(text string) ([]byte, error){
	"hex": hex.DecodeString,
	"base64": func(text string) ([]byte, error) {
		return base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	},
	"base64url": func(text string) ([]byte, error) {
		return base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	},
}

var (
	secretName = regexp.MustCompile(`^env\.([A-Za-z_][A-Za-z0-9_]{0,127})$`)
	headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$")
)

// Parse reads the member verify of a handler's config: {"preset": "stripe", "secret": "env.NAME"},
// or {"header": "X-Signature", "algorithm": "sha256", "encoding": "hex", "prefix": "sha256=",
// "secret": "env.NAME"}, where encoding and prefix may be missing. It returns errs.Invalid naming
// the member if the JSON is something else.
func Parse(verify json.RawMessage) (Scheme, error) {
	var in struct {
		Preset    *string `json:"preset"`
		Header    *string `json:"header"`
		Algorithm *string `json:"algorithm"`
		Encoding  *string `json:"encoding"`
		Prefix    *string `json:"prefix"`
		Secret    *string `json:"secret"`
	}
	d := json.NewDecoder(bytes.NewReader(verify))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return Scheme{}, errs.New(
			errs.Invalid,
			"config.verify must be an object of texts with preset and secret, or with header, algorithm, "+
				"encoding, prefix and secret: %s",
			strings.TrimPrefix(err.Error(), "json: "),
		)
	}
	if in.Secret == nil || !secretName.MatchString(*in.Secret) {
		return Scheme{}, errs.New(
			errs.Invalid,
			`config.verify.secret must name a variable of the app's environment, such as "env.SIGNING_SECRET"`,
		)
	}
	s := Scheme{variable: strings.TrimPrefix(*in.Secret, "env.")}
	if in.Preset != nil {
		if in.Header != nil || in.Algorithm != nil || in.Encoding != nil || in.Prefix != nil {
			return Scheme{}, errs.New(errs.Invalid, "config.verify has a preset and a header: use one of them")
		}
		if s.check = presets[*in.Preset]; s.check == nil {
			return Scheme{}, errs.New(errs.Invalid, "config.verify.preset must be one of %s", list(presets))
		}
		return s, nil
	}
	if in.Header == nil || !headerName.MatchString(*in.Header) {
		return Scheme{}, errs.New(
			errs.Invalid,
			"config.verify needs a preset, or a header with the name of the header that has the signature",
		)
	}
	if in.Algorithm == nil || algorithms[*in.Algorithm] == nil {
		return Scheme{}, errs.New(errs.Invalid, "config.verify.algorithm must be one of %s", list(algorithms))
	}
	encoding, prefix := "hex", ""
	if in.Encoding != nil {
		encoding = *in.Encoding
	}
	if in.Prefix != nil {
		prefix = *in.Prefix
	}
	if encodings[encoding] == nil {
		return Scheme{}, errs.New(errs.Invalid, "config.verify.encoding must be one of %s", list(encodings))
	}
	if len(prefix) > 64 {
		return Scheme{}, errs.New(errs.Invalid, "config.verify.prefix must have at most 64 bytes")
	}
	s.check = func(r request) error {
		return r.signed(strings.ToLower(*in.Header), algorithms[*in.Algorithm], encodings[encoding], prefix)
	}
	return s, nil
}

func list[T any](of map[string]T) string {
	return strings.Join(slices.Sorted(maps.Keys(of)), ", ")
}

// Variable returns the name of the variable that has the secret.
func (s Scheme) Variable() string { return s.variable }

// Verify returns nil if a body was signed with a secret, not long before now. header returns a
// header by its name in lower case, "" for none. It compares in constant time. Errors:
// errs.Unauthenticated with the reason; errs.Invalid for a secret that cannot be one.
func (s Scheme) Verify(secret string, header func(name string) string, body []byte, now time.Time) error {
	if secret == "" || s.check == nil {
		return badSecret("is empty")
	}
	return s.check(request{secret: secret, header: header, body: body, now: now})
}

func badSecret(what string) error {
	return errs.New(errs.Invalid, "the secret of the signature %s", what)
}

func refused(format string, args ...any) error {
	return errs.New(errs.Unauthenticated, format, args...)
}

// github checks the header X-Hub-Signature-256.
func github(r request) error {
	return r.signed("x-hub-signature-256", sha256.New, encodings["hex"], "sha256=")
}

// shopify checks the header X-Shopify-Hmac-Sha256.
func shopify(r request) error {
	return r.signed("x-shopify-hmac-sha256", sha256.New, encodings["base64"], "")
}

// signed checks a header that is the prefix and the HMAC of the body.
func (r request) signed(
	name string, algorithm func() hash.Hash, decode func(string) ([]byte, error), prefix string,
) error {
	given := strings.TrimSpace(r.header(name))
	if given == "" {
		return refused("the header %s is missing", name)
	}
	text, ok := strings.CutPrefix(given, prefix)
	sum, err := decode(text)
	if !ok || err != nil {
		return refused("the header %s is malformed", name)
	}
	if !hmac.Equal(sum, digest(algorithm, []byte(r.secret), r.body)) {
		return refused("the signature in %s is not that of the body", name)
	}
	return nil
}

// digest returns the HMAC of several parts.
func digest(algorithm func() hash.Hash, secret []byte, parts ...[]byte) []byte {
	mac := hmac.New(algorithm, secret)
	for _, p := range parts {
		mac.Write(p)
	}
	return mac.Sum(nil)
}

// fresh checks the time of a signature, in seconds since 1970.
func (r request) fresh(name, seconds string) error {
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || n < 0 || n > 1<<40 {
		return refused("the time in %s is missing or malformed", name)
	}
	if d := r.now.Sub(time.Unix(n, 0)); d > tolerance || d < -tolerance {
		return refused("the time in %s is more than %d minutes away", name, int(tolerance.Minutes()))
	}
	return nil
}

// stripe checks the header Stripe-Signature: t=<seconds>,v1=<hex>, with a v1 for each secret while
// secrets are rolled.
func stripe(r request) error {
	const name = "stripe-signature"
	given, at, sums := r.header(name), "", [][]byte(nil)
	if given == "" {
		return refused("the header %s is missing", name)
	}
	for _, part := range strings.Split(given, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch sum, err := hex.DecodeString(value); {
		case key == "t":
			at = value
		case key == "v1" && err == nil:
			sums = append(sums, sum)
		}
	}
	if err := r.fresh(name, at); err != nil {
		return err
	}
	return r.among(name, sums, digest(sha256.New, []byte(r.secret), []byte(at+"."), r.body))
}

// among checks that one of some sums is the right one.
func (r request) among(name string, sums [][]byte, right []byte) error {
	found := false
	for _, sum := range sums {
		if hmac.Equal(sum, right) {
			found = true
		}
	}
	if !found {
		return refused("no signature in %s is that of the body", name)
	}
	return nil
}

// slack checks the headers X-Slack-Signature, v0=<hex>, and X-Slack-Request-Timestamp.
func slack(r request) error {
	const name, when = "x-slack-signature", "x-slack-request-timestamp"
	given, at := r.header(name), r.header(when)
	if given == "" {
		return refused("the header %s is missing", name)
	}
	if err := r.fresh(when, at); err != nil {
		return err
	}
	text, ok := strings.CutPrefix(given, "v0=")
	sum, err := hex.DecodeString(text)
	if !ok || err != nil {
		return refused("the header %s is malformed", name)
	}
	return r.among(name, [][]byte{sum}, digest(sha256.New, []byte(r.secret), []byte("v0:"+at+":"), r.body))
}

// standard checks the headers of Standard Webhooks: webhook-id, webhook-timestamp and
// webhook-signature, v1,<base64> with spaces between several. Those of Svix have other names for
// the same.
func standard(r request) error {
	prefix := "webhook-"
	if r.header("webhook-signature") == "" && r.header("svix-signature") != "" {
		prefix = "svix-"
	}
	id, at, given := r.header(prefix+"id"), r.header(prefix+"timestamp"), r.header(prefix+"signature")
	if id == "" || given == "" {
		return refused("the header %sid or %ssignature is missing", prefix, prefix)
	}
	if err := r.fresh(prefix+"timestamp", at); err != nil {
		return err
	}
	secret, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimPrefix(r.secret, "whsec_"), "="))
	if err != nil || len(secret) == 0 {
		return badSecret("is not whsec_ and base64, as Standard Webhooks has it")
	}
	var sums [][]byte
	for _, one := range strings.Fields(given) {
		if text, ok := strings.CutPrefix(one, "v1,"); ok {
			if sum, err := base64.StdEncoding.DecodeString(text); err == nil {
				sums = append(sums, sum)
			}
		}
	}
	return r.among(prefix+"signature", sums, digest(sha256.New, secret, []byte(id+"."+at+"."), r.body))
}
