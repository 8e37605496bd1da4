package signatures_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers/signatures"
)

// vector is a request that a provider, or a standard, has published with its signature.
type vector struct {
	verify  string
	secret  string
	headers map[string]string
	body    string
	at      int64  // seconds since 1970; 0 if the scheme has no time
	signed  string // the header with the signature
}

const stripeEvent = `{
  "id": "evt_123",
  "object": "event",
  "account": "acct_123",
  "api_version": "2017-05-25",
  "created": 1533204620,
  "data": {
    "object": {
      "id": "ii_123",
      "object": "invoiceitem",
      "amount": 1000,
      "currency": "usd",
      "customer": "cus_123",
      "date": 1533204620,
      "description": "Test Invoice Item",
      "discountable": false,
      "invoice": "in_123",
      "livemode": false,
      "metadata": {},
      "period": {
        "start": 1533204620,
        "end": 1533204620
      },
      "plan": null,
      "proration": false,
      "quantity": null,
      "subscription": null
    }
  },
  "livemode": false,
  "pending_webhooks": 1,
  "request": {
    "id": "req_123",
    "idempotency_key": "idempotency-key-123"
  },
  "type": "invoiceitem.created"
}
`

var vectors = map[string]vector{
	// docs.github.com, Validating webhook deliveries, Testing the webhook payload validation.
	"github": {
		verify: `{"preset": "github", "secret": "env.S"}`, secret: "It's a Secret to Everybody",
		body: "Hello, World!", signed: "x-hub-signature-256",
		headers: map[string]string{
			"x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
		},
	},
	// Stripe's library stripe-dotnet: src/StripeTests/Infrastructure/Public/EventUtilityTest.cs and
	// event_test_signature.json.
	"stripe": {
		verify: `{"preset": "stripe", "secret": "env.S"}`, secret: "webhook_secret",
		body: stripeEvent, at: 1533204620, signed: "stripe-signature",
		headers: map[string]string{
			"stripe-signature": "t=1533204620,v1=f0bdba6d4eacbd8ad8a3bbadd7248e633ec1477f7899c124c51b39405fa36613,v0=63f3a72374a733066c4be69ed7f8e5ac85c22c9f0a6a612ab9a025a9e4ee7eef",
		},
	},
	// docs.slack.dev, Verifying requests from Slack.
	"slack": {
		verify: `{"preset": "slack", "secret": "env.S"}`, secret: "8f742231b10e8888abcd99yyyzzz85a5",
		at: 1531420618, signed: "x-slack-signature",
		body: "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
		headers: map[string]string{
			"x-slack-request-timestamp": "1531420618",
			"x-slack-signature":         "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
		},
	},
	// The test of the reference libraries at github.com/standard-webhooks/standard-webhooks, "sign
	// function works".
	"standard": {
		verify: `{"preset": "standard", "secret": "env.S"}`, secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
		body: `{"test": 2432232314}`, at: 1614265330, signed: "webhook-signature",
		headers: map[string]string{
			"webhook-id":        "msg_p5jXN8AQM9LWM0D4loKWxJek",
			"webhook-timestamp": "1614265330", "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
		},
	},
	// The same request in the documentation of Svix.
	"svix": {
		verify: `{"preset": "standard", "secret": "env.S"}`, secret: "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
		body: `{"test": 2432232314}`, at: 1614265330, signed: "svix-signature",
		headers: map[string]string{
			"svix-id":        "msg_p5jXN8AQM9LWM0D4loKWxJek",
			"svix-timestamp": "1614265330", "svix-signature": "v1,AAAA v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
		},
	},
	// Shopify publishes none. Its scheme is the HMAC-SHA-256 of the body in base64: RFC 4231, test
	// case 2.
	"shopify": {
		verify: `{"preset": "shopify", "secret": "env.S"}`, secret: "Jefe",
		body: "what do ya want for nothing?", signed: "x-shopify-hmac-sha256",
		headers: map[string]string{"x-shopify-hmac-sha256": "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM="},
	},
	// RFC 4231, test case 2, and RFC 2202, test case 2.
	"an own one": {
		verify: `{"header": "X-Sum", "algorithm": "sha512", "prefix": "sum:", "secret": "env.S"}`, secret: "Jefe",
		body: "what do ya want for nothing?", signed: "x-sum",
		headers: map[string]string{
			"x-sum": "sum:164B7A7BFCF819E2E395FBE73B56E0A387BD64222E831FD610270CD7EA2505549758BF75C05A994A6D034F65F8F0E6FDCAEAB1A34D4A6B4B636E070A38BCE737",
		},
	},
	"an own one in base64url": {
		verify: `{"header": "X-Sum", "algorithm": "sha1", "encoding": "base64url", "secret": "env.S"}`, secret: "Jefe",
		body: "what do ya want for nothing?", signed: "x-sum",
		headers: map[string]string{"x-sum": "7_zfauXrL6LSdBbV8YTfnCWafHk="},
	},
}

func (v vector) scheme(t *testing.T) signatures.Scheme {
	t.Helper()
	s, err := signatures.Parse(json.RawMessage(v.verify))
	is.New(t).NoErr(err)
	is.New(t).Equal(s.Variable(), "S")
	return s
}

// check verifies the vector some seconds after it was signed; change edits what is sent.
func (v vector) check(t *testing.T, after int64, change func(v *vector)) error {
	t.Helper()
	headers := map[string]string{}
	for name, value := range v.headers {
		headers[name] = value
	}
	v.headers = headers
	change(&v)
	return v.scheme(t).Verify(v.secret, func(name string) string {
		return v.headers[name]
	}, []byte(v.body), time.Unix(v.at+after, 0))
}

func TestVectors(t *testing.T) {
	for name, v := range vectors {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			is.NoErr(v.check(t, 0, func(*vector) {}))
			is.NoErr(v.check(t, 300, func(*vector) {}))
			for what, change := range map[string]func(*vector){
				"another body":   func(v *vector) { v.body += " " },
				"no body":        func(v *vector) { v.body = "" },
				"another secret": func(v *vector) { v.secret = strings.ToLower(v.secret) + "AA" },
				"no signature":   func(v *vector) { delete(v.headers, v.signed) },
				"half a signature": func(v *vector) {
					v.headers[v.signed] = v.headers[v.signed][:len(v.headers[v.signed])/2]
				},
				"no text":           func(v *vector) { v.headers[v.signed] = "\x00\xff" },
				"a prefix alone":    func(v *vector) { v.headers[v.signed] = "sha256=" },
				"an empty standard": func(v *vector) { v.headers[v.signed] = "v1," },
				"an empty stripe":   func(v *vector) { v.headers[v.signed] = "t=,v1=" },
			} {
				if err := v.check(t, 0, change); errs.CodeOf(err) != errs.Unauthenticated {
					t.Errorf("%s: %v", what, err)
				}
			}
			is.Equal(errs.CodeOf(v.check(t, 0, func(v *vector) { v.secret = "" })), errs.Invalid)
			if v.at == 0 {
				return
			}
			is.Equal(errs.CodeOf(v.check(t, 301, func(*vector) {})), errs.Unauthenticated)
			is.NoErr(v.check(t, -300, func(*vector) {}))
			is.Equal(errs.CodeOf(v.check(t, -301, func(*vector) {})), errs.Unauthenticated)
			for _, time := range []string{"", "x", "-1", "99999999999999999999", "0"} {
				is.Equal(errs.CodeOf(v.check(t, 0, func(v *vector) {
					v.headers["stripe-signature"] = strings.Replace(
						v.headers["stripe-signature"], "1533204620", time, 1,
					)
					for _, name := range []string{"webhook-timestamp", "svix-timestamp", "x-slack-request-timestamp"} {
						v.headers[name] = time
					}
				})), errs.Unauthenticated)
			}
		})
	}
}

func TestBadSecret(t *testing.T) {
	is := is.New(t)
	v := vectors["standard"]
	is.Equal(errs.CodeOf(v.check(t, 0, func(v *vector) { v.secret = "whsec_!" })), errs.Invalid)
	is.Equal(errs.CodeOf(v.check(t, 0, func(v *vector) { v.secret = "whsec_" })), errs.Invalid)
	is.Equal(errs.CodeOf(signatures.Scheme{}.Verify("x", func(string) string {
		return ""
	}, nil, time.Now())), errs.Invalid)
}

func TestParseRefuses(t *testing.T) {
	for verify, want := range map[string]string{
		`null`:               "config.verify.secret",
		`"github"`:           "config.verify must be an object",
		`{`:                  "config.verify must be an object",
		`{"preset": 1}`:      "config.verify must be an object",
		`{"preset": "x"}`:    "config.verify.secret",
		`{"Secrets": "x"}`:   "unknown field",
		`{"secret": "env."}`: "config.verify.secret",
		`{"secret": "s3cr3t", "preset": "github"}`: "config.verify.secret",
		`{"secret": "env.S", "preset": "gitlab"}`: "config.verify.preset must be " +
			"one of github, shopify, slack, standard, stripe",
		`{"secret": "env.S", "preset": "github", "header": "x"}`: "use one of them",
		`{"secret": "env.S"}`:                  "config.verify needs a preset",
		`{"secret": "env.S", "header": "x y"}`: "config.verify needs a preset",
		`{"secret": "env.S", "header": "x"}`: "config.verify.algorithm must " +
			"be one of sha1, sha256, sha512",
		`{"secret": "env.S", "header": "x", "algorithm": "md5"}`: "config.verify.algorithm",
		`{"secret": "env.S", "header": "x", "algorithm": "sha1", "encoding": "x"}`: "config.verify.encoding must " +
			"be one of base64, base64url, hex",
		`{"secret": "env.S", "header": "x", "algorithm": "sha1", "prefix": "` + strings.Repeat("x", 65) +
			`"}`: "config.verify.prefix",
	} {
		_, err := signatures.Parse(json.RawMessage(verify))
		if errs.CodeOf(err) != errs.Invalid || !strings.Contains(errs.MessageOf(err), want) {
			t.Errorf("%s: %v, want %q", verify, err, want)
		}
	}
}
