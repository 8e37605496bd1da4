package view

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
)

// CodeLifetime is how long a code lives.
const CodeLifetime = 30 * time.Second

// A code brings a viewer from the origin of the service to that of an app. It is in a URL, so it is
// worth nothing by itself: the origin of the app has set a random verifier in a cookie of the
// browser, sent the verifier's Challenge along to the service, and accepts the code from the
// browser that has the verifier, alone.

// Challenge returns the challenge of a verifier: its SHA-256, from which nobody can compute the
// verifier.
func Challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return encoding.EncodeToString(sum[:])
}

// ValidChallenge reports whether a text can be a challenge.
func ValidChallenge(text string) bool {
	raw, err := encoding.DecodeString(text)
	return err == nil && len(raw) == sha256.Size
}

// MakeCode returns a code for whoever has the verifier of a challenge. A code is no token: Check
// refuses it.
func (t *Tokens) MakeCode(c Claims, challenge string, now time.Time) string {
	text, _, _ := strings.Cut(t.Make(c), ".")
	ends := strconv.FormatInt(now.Add(CodeLifetime).Unix(), 10)
	return text + "." + ends + "." + t.codeSum(text, ends, challenge)
}

// Redeem returns the claims of a code that was made for the challenge of a verifier and has not
// expired.
// Errors: errs.Unauthenticated.
func (t *Tokens) Redeem(code, verifier string, now time.Time) (Claims, error) {
	refused := errs.New(errs.Unauthenticated, "The link to the app is not valid any more: open the app again.")
	parts := strings.Split(code, ".")
	if len(parts) != 3 || verifier == "" || len(code) > maxToken {
		return Claims{}, refused
	}
	text, ends := parts[0], parts[1]
	if !hmac.Equal([]byte(parts[2]), []byte(t.codeSum(text, ends, Challenge(verifier)))) {
		return Claims{}, refused
	}
	until, err := strconv.ParseInt(ends, 10, 64)
	if err != nil || now.Unix() >= until {
		return Claims{}, refused
	}
	return t.Check(text+"."+t.sum(strings.TrimPrefix(text, "~")), now)
}

// codeSum returns the HMAC of a code, for this use of the key, in base64.
func (t *Tokens) codeSum(text, ends, challenge string) string {
	h := hmac.New(sha256.New, t.key)
	_, _ = fmt.Fprintf(h, "tenantcontent app view code 1\x00%s\x00%s\x00%s", text, ends, challenge)
	return encoding.EncodeToString(h.Sum(nil))
}
