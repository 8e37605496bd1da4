package view_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/rest/view"
)

func TestCodeIsForItsVerifier(t *testing.T) {
	is, all := is.New(t), tokens(t, key)
	code := all.MakeCode(claims, view.Challenge("verifier"), now)
	is.Equal(url.QueryEscape(code), code)
	got, err := all.Redeem(code, "verifier", now.Add(view.CodeLifetime-time.Second))
	is.NoErr(err)
	is.Equal(got, claims)
	_, err = all.Check(code, now)
	is.Equal(errs.CodeOf(err), errs.Unauthenticated) // it is no token
	text, _, _ := strings.Cut(code, ".")
	for name, c := range map[string]struct {
		code, verifier string
		after          time.Duration
	}{
		"another verifier": {code, "other", 0},
		"no verifier":      {code, "", 0},
		"the challenge":    {code, view.Challenge("verifier"), 0},
		"too late":         {code, "verifier", view.CodeLifetime},
		"a longer life":    {strings.Replace(code, ".1", ".2", 1), "verifier", 0},
		"a token":          {all.Make(claims), "verifier", 0},
		"cut":              {code[:len(code)-1], "verifier", 0},
		"more":             {code + ".", "verifier", 0},
		"another key": {
			tokens(t, []byte(strings.Repeat("x", 32))).MakeCode(claims, view.Challenge("verifier"), now),
			"verifier", 0,
		},
		"no tilde":           {code[1:], "verifier", 0},
		"empty":              {"", "verifier", 0},
		"dots":               {"..", "verifier", 0},
		"the claims alone":   {text, "verifier", 0},
		"for no challenge":   {all.MakeCode(claims, "", now), "verifier", 0},
		"for a bad one":      {all.MakeCode(claims, "verifier", now), "verifier", 0},
		"incomplete claims":  {all.MakeCode(view.Claims{}, view.Challenge("verifier"), now), "verifier", 0},
		"more than fits":     {code + strings.Repeat("A", 1<<16), "verifier", 0},
		"of another service": {strings.ToUpper(code), "verifier", 0},
	} {
		_, err := all.Redeem(c.code, c.verifier, now.Add(c.after))
		if errs.CodeOf(err) != errs.Unauthenticated {
			t.Errorf("%s: %v", name, err)
		}
	}
	is.True(view.ValidChallenge(view.Challenge("verifier")))
	for _, bad := range []string{
		"", "verifier", view.Challenge("verifier") + "=", view.Challenge("verifier")[1:],
		strings.Repeat("A", 86),
	} {
		is.True(!view.ValidChallenge(bad))
	}
}
