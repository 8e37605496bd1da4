package entity_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"pgregory.net/rapid"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/testkit/transfertest"
)

func TestMaskSecrets(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: `{}`, `[]`: `[]`, `7`: `7`, `"password"`: `"password"`, ``: ``, `null`: `null`,
		`{"password":"x","a":1.50,"b":[1e9,` +
			`-0]}`: `{"password":"********","a":1.50,"b":[1e9,-0]}`,
		`{ "API-Key 2" : "x" , "a" : [ {"Client_Secret":"y"} ` +
			`] }`: `{ "API-Key 2" : "********" , "a" : [ {"Client_Secret":"********"} ] }`,
		`{"token":7,"dbRolePassword":-1.5,` +
			`"webhookSecret":"a\"` +
			`b"}`: `{"token":"********","dbRolePassword":"********","webhookSecret":"********"}`,
		`{"credentials":{"a":["}",{}]},"secrets":[1,2],` +
			`"x":"y"}`: `{"credentials":"********","secrets":"********","x":"y"}`,
		`{"authorizati\u006fn":"x",` +
			`"e\u006ev":{"A":"x"}}`: `{"authorizati\u006fn":"********","e\u006ev":{"A":"********"}}`,
		`{"connstri\u006eg":"x"}`:                                                             `{"connstri\u006eg":"********"}`,
		`{"secretJs\u006fn":"x"}`:                                                             `{"secretJs\u006fn":"********"}`,
		`{"Authorizati\u004Fn":"x"}`:                                                          `{"Authorizati\u004Fn":"********"}`,
		`{"authorizati\u006fn":"x"}`:                                                          `{"authorizati\u006fn":"********"}`,
		`{"e\u006ev":["x"]}`:                                                                  `{"e\u006ev":"********"}`,
		`{"passwor\bd":"x"}`:                                                                  `{"passwor\bd":"********"}`,
		`{"pass\u0077ord":"x","\u0070wd":"x","secre\u0074":"x"}`:                              `{"pass\u0077ord":"********","\u0070wd":"********","secre\u0074":"********"}`,
		`{"password":null,"token":true,"secret":"","apiKey":[ ]}`:                             `{"password":null,"token":true,"secret":"","apiKey":[ ]}`,
		`{"tokens":12,"secrets":3,"maxTokens":["a"],"pass":1}`:                                `{"tokens":12,"secrets":3,"maxTokens":["a"],"pass":"********"}`,
		`{"a":"********","secretary":"x","key":"x","bypass":"x"}`:                             `{"a":"********","secretary":"x","key":"x","bypass":"x"}`,
		`{"defn":{"env":{"A":"x","B":{"c":1},"C":true,"D":null}}}`:                            `{"defn":{"env":{"A":"********","B":"********","C":"********","D":null}}}`,
		`{"env":["A=1",{"a":1},7],"environment":"x","nodeEnv":"x"}`:                           `{"env":"********","environment":"********","nodeEnv":"x"}`,
		`{"extraEnv":"A=x","nodeEnv":"\u0041\u003dx","devEnv":["x"]}`:                         `{"extraEnv":"********","nodeEnv":"********","devEnv":["x"]}`,
		`{"devEnv":{"A":"b=","n":1,"b":true,"c":{"d":0},"e":null}}`:                           `{"devEnv":{"A":"********","n":"********","b":"********","c":"********","e":null}}`,
		`{"environments":["dev",{"a":1},"A\u003db"],"x":["A=b"]}`:                             `{"environments":"********","x":["A=b"]}`,
		`{"envVars":["A=b"],"environments":{"dev":{"zoom":3}}}`:                               `{"envVars":"********","environments":{"dev":{"zoom":3}}}`,
		`{"extraEnv":{"DB_PASS_URL":"x"},"jobEnv":[{"name":"FOO","value":"x"}]}`:              `{"extraEnv":{"DB_PASS_URL":"********"},"jobEnv":"********"}`,
		`{"extraEnv":[{"name":"pin","value":{"a":1}}],"jobEnv":[{"name":"pin","value":"x"}]}`: `{"extraEnv":[{"name":"pin","value":"********"}],"jobEnv":[{"name":"pin","value":"********"}]}`,
		`{"targetEnvironments":["dev","prod"],"testEnv":{"a":{"b":"c"}}}`:                     `{"targetEnvironments":["dev","prod"],"testEnv":{"a":{"b":"c"}}}`,
		`{"environments":{"dev":{"env":{"A":"x"},"list":["A=b"]}}}`:                           `{"environments":{"dev":{"env":{"A":"********"},"list":["A=b"]}}}`,
		`{"devEnv":{"password":"a=b","nodeEnv":"a=b","zoom":3}}`:                              `{"devEnv":{"password":"********","nodeEnv":"********","zoom":3}}`,
		`{"devEnv":{"value":"a=b","zoom":3,"name":"pin"}}`:                                    `{"devEnv":{"value":"********","zoom":3,"name":"pin"}}`,
		`{"devEnv":{"value":"a=b","zoom":3,"name":"x"}}`:                                      `{"devEnv":{"value":"********","zoom":"********","name":"********"}}`,
		`{"devEnv":[["A=b"],{"name":"A=b"},"x"],"testEnv":["A="]}`:                            `{"devEnv":[["A=b"],{"name":"A=b"},"x"],"testEnv":"********"}`,
		`{"devEnv":{"A":{},"B":null,"C":""},"testEnv":3,"n":false}`:                           `{"devEnv":{"A":{},"B":null,"C":""},"testEnv":3,"n":false}`,
		`{"h":[{"name":"Authorization","value":"x"},{"value":"y"}]}`:                          `{"h":[{"name":"Authorization","value":"********"},{"value":"y"}]}`,
		// after its value
		`{"value" : {"a":1} , "KEY" : "API-Key", "x":1}`:            `{"value" : "********" , "KEY" : "API-Key", "x":1}`,
		`{"id":"pin","default":1234,"values":["x"],"label":"pin"}`:  `{"id":"pin","default":"********","values":"********","label":"pin"}`,
		`{"header":"env","value":{"A":"x"},"x":{"value":"y"}}`:      `{"header":"env","value":{"A":"********"},"x":{"value":"y"}}`,
		`{"n\u0061me":"passwor\u0064","v\u0061lue":"x"}`:            `{"n\u0061me":"passwor\u0064","v\u0061lue":"********"}`,
		`{"id":"token","name":"tokens","value":3}`:                  `{"id":"token","name":"tokens","value":"********"}`,
		`{"name":"tokens","value":3,"a":{"name":"jwt"},"values":0}`: `{"name":"tokens","value":3,"a":{"name":"jwt"},"values":0}`,
		`{"name":"password","value":true,"default":"","a":["pw"]}`:  `{"name":"password","value":true,"default":"","a":["pw"]}`,
		`{"name":["password"],"key":"key","id":1,"value":"x"}`:      `{"name":["password"],"key":"key","id":1,"value":"x"}`,
		`{"field":{"name":"password"},"label":"pin","value":"x"}`:   `{"field":{"name":"password"},"label":"pin","value":"x"}`,
		`[{"name":"pinned","value":"x"},"name",{"value":"secret"}]`: `[{"name":"pinned","value":"x"},"name",{"value":"secret"}]`,
		`{"env":{},"environment":true,"ENV_VARS":{"A":""}}`:         `{"env":{},"environment":true,"ENV_VARS":{"A":""}}`,
		`{"text":"the \"password\": x","passwordª":"x","ª":"x"}`: `{"text":"the \"password\": ` +
			`x","passwordª":"x","ª":"x"}`,
		`{"headers":{"Authorization":"Bearer x","Cookie":"a=b"}}`: `{"headers":{"Authorization":"********",` +
			`"Cookie":"********"}}`,
		`{"password":"********","x":{"env":{"PATH":"********"}}}`: `{"password":"********",` +
			`"x":{"env":{"PATH":"********"}}}`,
		`{"a\"password":"x","b":1}`: `{"a\"password":"********","b":1}`,
	} {
		got := string(entity.MaskSecrets([]byte(text)))
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
		is.New(t).Equal(string(entity.MaskSecrets([]byte(got))), got)
	}
}

// TestSecretNames: each secret name in different spellings, and names that only resemble one.
func TestSecretNames(t *testing.T) {
	masked := func(name string) bool {
		quoted, err := json.Marshal(map[string]string{name: "x"})
		is.New(t).NoErr(err)
		return !bytes.Equal(entity.MaskSecrets(quoted), quoted)
	}
	for _, name := range strings.Fields(`password passwords passwd pwd passphrase passcode secret secrets token apiKey api_keys access-key
		AccountKey encryptionKey privateKey PRIVATE_KEYS secretKey SharedKey signingKey sshKey credential credentials authorization
		connectionString passwordHash secretHash tokenHash accessTokens apiTokens authTokens refreshTokens bearer cookie cookies
		Set-Cookie DATABASE_URL dsn jwt pass dbPass smtpPass userPass pw tokens clientSecret accessToken refreshToken bindPassword
		webhookSecret dbRolePassword X-Api-Key Proxy-Authorization oauth2Token password2 smtp.password AWS_SECRET_ACCESS_KEY
		env environment envVars ENVIRONMENT_VARIABLES env_variables environmentVars clientKey masterKey hmacKey storageKey sessionKey
		connString sharedAccessSignature pin otp OTP private_key_pem privateKeyBase64 credentialsJson passwordValue secretValue
		password_confirmation client-key-data SECRET_KEY_BASE secretString privateKeyPemBase64 tokenDefault passwordEncrypted`) {
		if !masked(name) {
			t.Errorf("%s is no secret", name)
		}
	}
	for _, name := range strings.Fields(`passwordId secretary tokenizer keys key monkey apiKeyId accessKeyId compass bypass designTokens maxTokens
		envelope environments nodeEnv bearerFormat description title author auth authorizationUrl sass upwd2x publicKey cookieless ñ p
		id name header value values default defaultValue data json string database metadata pinned pinning spin pinData option options
		otpData hotpot primaryKey foreignKey keyColumn keyData tokenCountJson passwordPemPemPem passwordªjson`) {
		if masked(name) {
			t.Errorf("%s is a secret", name)
		}
	}
}

func TestKeepSecrets(t *testing.T) {
	for _, c := range []struct {
		data, ours, want string
		lost             int
	}{
		{`{"password":"********","a":2}`, `{"a":1,"password":"x"}`, `{"password":"x","a":2}`, 0},
		{`{"password":"********"}`, ``, `{}`, 1},
		// the secrets of an archive are not used
		{`{"password":"mine"}`, `{"password":{"b":[1.0]}}`, `{"password":{"b":[1.0]}}`, 0},
		{`{"password":"mine"}`, `{}`, `{}`, 1},
		{`{"password":""}`, `{"password":"x"}`, `{"password":""}`, 0},
		{`{"password":"********"}`, `{"password":""}`, `{}`, 1},
		{`{"a":"********","b":["********"]}`, `{"a":"x","b":["y"]}`, `{"a":"********","b":["********"]}`, 0},
		{`{"token":1,"a":2,"pwd":3,"jwt":4,"b":5}`, `{"pwd":"x"}`, `{"a":2,"pwd":"x","b":5}`, 2},
		{`{ "token" : 1 , "pwd" : 2 , "a" : 3 , "jwt" : 4 }`, ``, `{ "a" : 3  }`, 3},
		{`{ "token" : 1 , "pwd" : 2 }`, ``, `{ }`, 2},
		{
			`{"a":[{"pwd":"m","n":1},{"pwd":"m"}]}`, `{"a":[{"pwd":"x"},{"pwd":"y"}]}`,
			`{"a":[{"pwd":"x","n":1},{"pwd":"y"}]}`, 0,
		},
		{`{"a":[{"pwd":"m","n":1},{"pwd":"m"}]}`, `{"a":[{"pwd":"x"}]}`, `{"a":[{"n":1},{}]}`, 2},
		{`{"a":[{"pwd":"m"}]}`, `{"a":[{"pwd":"x"},7]}`, `{"a":[{}]}`, 1},
		{
			`{"a":[[{"pwd":"m"}],[{"pwd":"m"}]]}`, `{"a":[[{"pwd":"x"}],[{"pwd":"y"},1]]}`,
			`{"a":[[{"pwd":"x"}],[{}]]}`, 1,
		},
		{`{"a":[{"pwd":"m"}]}`, `{"a":{"0":{"pwd":"x"}}}`, `{"a":[{}]}`, 1},
		{`{"a":{"":{"pwd":"m"}}}`, `{"a":[{"pwd":"x"}]}`, `{"a":{"":{}}}`, 1},
		{`{"env":{"A":"m","B":"m","C":"m"}}`, `{"env":{"B":"b","A":{"x":[1]}}}`, `{"env":{"A":{"x":[1]},"B":"b"}}`, 1},
		{`{"env":["m","m"]}`, `{"env":["a",{"b":1}]}`, `{"env":["a",{"b":1}]}`, 0},
		{`{"env":["m","m"]}`, `{"env":["a"]}`, `{"env":["a"]}`, 0}, // a list is one secret
		{`{"env":["m","m"]}`, `{"env":[]}`, `{}`, 1},
		{`{"a":[{"name":"pwd","value":"m"},{"name":"x","value":"y"}]}`,
			`{"a":[{"name":"pwd","value":"s"},{"name":"x","value":"t"}]}`,
			`{"a":[{"name":"pwd","value":"s"},{"name":"x","value":"y"}]}`, 0},
		{`[{"name":"pwd","value":"m"}]`, `[{"value":"s","name":"pwd","n":1}]`, `[{"name":"pwd","value":"s"}]`, 0},
		{`[{"name":"pwd","value":"m"}]`, `[{"name":"jwt","value":"s"}]`, `[{"name":"pwd"}]`, 1}, // of another name
		{`[{"name":"pwd","value":"m"}]`, `[{"name":"x","value":"s"}]`, `[{"name":"pwd"}]`, 1},
		{`{"value":{"A":"m"},"key":"env"}`, `{"key":"env","value":{"A":"s"}}`, `{"value":{"A":"s"},"key":"env"}`, 0},
		{`{"value":{"A":"m"},"key":"env"}`, `{"key":"devEnv","value":{"A":"s"}}`, `{"value":{},"key":"env"}`, 1},
		{
			`{"extraEnv":"********","devEnv":"A=m","nodeEnv":"x"}`,
			`{"extraEnv":"A=s","devEnv":["B=s"],"nodeEnv":"A=s"}`,
			`{"extraEnv":"A=s","devEnv":["B=s"],"nodeEnv":"x"}`, 0,
		},
		{
			`{"extraEnv":{"A":"********"},"keyPem":"x","secretPem":"m"}`,
			`{"extraEnv":{"A":"s="},"secretPem":"t"}`, `{"extraEnv":{"A":"s="},"keyPem":"x","secretPem":"t"}`,
			0,
		},
		{`{"env":"m"}`, `{"env":{"A":"x"}}`, `{}`, 1},
		{`{"env":{"A":"m"}}`, `{"env":"x"}`, `{"env":{}}`, 1},
		{`{"p\u0077d":"m"}`, `{"\u0070wd":"x"}`, `{"p\u0077d":"x"}`, 0},
		{`{"x":{"pwd":"m"}}`, `{"pwd":"x","X":{"pwd":"x"},"y":{"x":{"pwd":"x"}}}`, `{"x":{}}`, 1}, // another place
		{`{"pwd":"m"}`, `{"pwd":"x","pwd":"y"}`, `{"pwd":"y"}`, 0},
	} {
		got, lost := entity.KeepSecrets([]byte(c.data), []byte(c.ours))
		if string(got) != c.want || lost != c.lost {
			t.Errorf("%s of %s\n got %s, %d lost\nwant %s, %d lost", c.data, c.ours, got, lost, c.want, c.lost)
		}
	}
}

// TestSecretsAreNotMultiplied: an archive that names a place many times gets its secret once.
func TestSecretsAreNotMultiplied(t *testing.T) {
	is := is.New(t)
	data := `{"a":1` + strings.Repeat(`,"password":"m"`, 500) + `}`
	kept, lost := entity.KeepSecrets([]byte(data), []byte(`{"password":"`+strings.Repeat("x", 100_000)+`"}`))
	is.Equal(string(kept), `{"a":1,"password":"`+strings.Repeat("x", 100_000)+`"}`)
	is.Equal(lost, 499)
}

// TestLongTitles: the title of a pair is not kept once for each of its values.
func TestLongTitles(t *testing.T) {
	is := is.New(t)
	var object strings.Builder
	fmt.Fprintf(&object, `{"name":"%spassword"`, strings.Repeat("x", 1<<16))
	for i := range 4000 {
		fmt.Fprintf(&object, `,"%svalue":"x"`, strings.Repeat("ab", i%7)+strings.Repeat("c", i/7))
	}
	text := []byte(object.String() + `}`)
	var before, behind runtime.MemStats
	runtime.ReadMemStats(&before)
	kept, lost := entity.KeepSecrets(text, text)
	runtime.ReadMemStats(&behind)
	is.True(bytes.Equal(kept, text))
	is.Equal(lost, 0)
	is.True(behind.TotalAlloc-before.TotalAlloc < 64<<20) // 4000 titles are 256 MB
	other := bytes.Replace(text, []byte("xpassword"), []byte("ypassword"), 1)
	_, lost = entity.KeepSecrets(other, text)
	is.Equal(lost, 4000) // of another title
}

// TestDeepSecretsSize: neither depth nor number makes it slow. Time that grew with their product
// would be minutes.
func TestDeepSecretsSize(t *testing.T) {
	is := is.New(t)
	nested := func(open, close string) string {
		return strings.Repeat(open, 4900) + `{"pwd":"` + strings.Repeat("x", 4<<20) + `"}` + strings.Repeat(close, 4900)
	}
	begin := time.Now()
	for _, text := range []string{
		nested(`{"a":[`, `]}`), nested(`{"token":"x","env":["y"],"a":[`, `]}`),
		nested(`{"value":[`, `],"name":"x"}`), nested(`{"key":"x","default":{"value":`, `}}`),
		nested(`{"devEnv":[`, `,"A=b"]}`),
		nested(`{"devEnv":{"environments":`, `}}`), nested(`{"devEnv":{"A":"=","nodeEnv":`, `}}`),
		`[` + strings.Repeat(`{"pwd":"x"},`, 80_000) + `7]`,
		`[` + strings.Repeat(`{"value":"x","name":"pwd"},`, 80_000) + `7]`,
		`"` + strings.Repeat(`\":`, 300_000) + `"`, `{"` + strings.Repeat(`password\":`, 90_000) + `":1}`,
	} {
		masked := entity.MaskSecrets([]byte(text))
		kept, lost := entity.KeepSecrets(masked, []byte(text))
		is.True(string(kept) == text)
		is.Equal(lost, 0)
	}
	is.True(time.Since(begin) < time.Minute)
}

// TestMaskedSecretsAreKept: data that is exported and imported into the same tenant does not
// change.
func TestMaskedSecretsAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := transfertest.Free().Draw(t, "data")
		masked := entity.MaskSecrets(data)
		if again := entity.MaskSecrets(masked); !bytes.Equal(again, masked) {
			t.Fatalf("%s again is %s", masked, again)
		}
		if back, lost := entity.KeepSecrets(masked, data); !bytes.Equal(back, data) || lost != 0 {
			t.Fatalf("%s was %s", back, data)
		}
	})
}

// FuzzSecrets compares the result with that of a simple function over the decoded JSON.
func FuzzSecrets(f *testing.F) {
	for _, s := range []string{
		`{"password":"x","a":[1.0,{"env":{"A":1,"b":[]}}]}`,
		`{ "token" : {"a":1} , "x":[[]], "env":[1,null,"",[2]]}`, `{"a\"pwd\\":"x","\u0070wd":"","tokens":3}`,
		`{"a":[{"name":"pin","value":1},{"values":["x"],"KEY":"devEnv"},{"id":"jwt","default":{"a":"b"}}],"x_env":{"a":1},"env_json":"A=x"}`,
		`{"devEnv":{"value":"a=b","c":1,"name":"pin","password":"="},"testEnv":[["="],"="],"x":[{"environments":{"a":{"b":"="},"c":["="]}},{"x_env":{"value":"=","d":[]}}]}`,
		`[{"env":"x","jwt":true},{"jwt":{}}]`, `"\"pwd\":1"`,
		`{"env":{"env":{"a":1}},"pwd":{"pwd":1}}`, "{\"pw\x7fd\":1}", `{"passwordª":1,"a":":"}`,
		`{`, `}`, `]]`, `{"a`, `"\`,
	} {
		f.Add([]byte(s), []byte(s))
	}
	f.Fuzz(func(t *testing.T, text, other []byte) {
		masked := entity.MaskSecrets(slices.Clone(text))
		kept, lost := entity.KeepSecrets(text, other) // the two need not be JSON
		if !json.Valid(text) {
			if len(masked) > 0 && !bytes.Equal(masked, text) {
				t.Fatalf("%s is %s", text, masked)
			}
			return
		}
		if again := entity.MaskSecrets(masked); !bytes.Equal(again, masked) {
			t.Fatalf("%s again is %s", masked, again)
		}
		if json.Valid(other) && !json.Valid(kept) {
			t.Fatalf("%s of %s is %s", text, other, kept)
		}
		if doubled(text) {
			return // a place does not distinguish members with the same name
		}
		value := decoded(t, text)
		if hidden, n := hide(value, true); n == 0 {
			if !bytes.Equal(masked, text) || !bytes.Equal(kept, text) || lost != 0 {
				t.Fatalf("%s has no secret, and is %s", text, masked)
			}
		} else if !same(decoded(t, masked), hidden) {
			t.Fatalf("%s is %s", text, masked)
		}
		bare, n := hide(value, false)
		left, lost := entity.KeepSecrets(masked, nil)
		if !same(decoded(t, left), bare) || lost < n {
			t.Fatalf("%s, of which nothing is here, is %s (%d)", masked, left, lost)
		}
		if back, lost := entity.KeepSecrets(masked, text); !bytes.Equal(back, text) || lost != 0 {
			t.Fatalf("%s was %s", back, text)
		}
	})
}

func decoded(t *testing.T, text []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func same(a, b any) bool { return fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b) }

// doubled reports whether an object of a text has two members of one name.
func doubled(text []byte) bool {
	colons := 0
	var v any
	_ = json.Unmarshal(text, &v)
	count(v, &colons)
	inStrings, escaped, quoted, all := 0, false, false, 0
	for _, c := range text {
		switch {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case c == ':' && quoted:
			inStrings++
		case c == ':':
			all++
		}
	}
	return all != colons
}

func count(v any, members *int) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			count(e, members)
		}
	case map[string]any:
		*members += len(v)
		for _, e := range v {
			count(e, members)
		}
	}
}

// hide masks the secrets of decoded JSON, or leaves them out, and counts them.
func hide(v any, mask bool) (any, int) { return hideIn(v, mask, "") }

// hideIn is like hide. If in is not empty, v is an environment and its members are secrets.
func hideIn(v any, mask bool, in string) (any, int) {
	n := 0
	put := func(set func(any), v any, named string) {
		if named == "envs" && !holdsVariables(v) {
			named = ""
		}
		_, object := v.(map[string]any)
		some := 0
		switch whole := named == "env" || named == "envs"; {
		case whole && object:
			v, some = hideIn(v, mask, "inside")
		case conceals(v, named):
			if n++; !mask {
				return
			}
			v = entity.Mask
		default:
			v, some = hide(v, mask)
		}
		n += some
		set(v)
	}
	switch v := v.(type) {
	case []any:
		out := []any{}
		for _, e := range v {
			put(func(e any) { out = append(out, e) }, e, "")
		}
		return out, n
	case map[string]any:
		out := map[string]any{}
		for name, e := range v {
			named := in
			if in == "" {
				named = strings.TrimPrefix(called(name), "title")
			}
			if named == "value" {
				named = title(v)
			}
			put(func(e any) { out[name] = e }, e, named)
		}
		return out, n
	}
	return v, 0
}

// holdsVariables reports whether a value whose name ends as that of an environment is one.
func holdsVariables(v any) bool {
	switch v := v.(type) {
	case string:
		return v == entity.Mask || strings.Contains(v, "=")
	case []any:
		return slices.ContainsFunc(v, func(e any) bool {
			if object, ok := e.(map[string]any); ok {
				return gives(object) && title(object) == ""
			}
			text, ok := e.(string)
			return ok && holdsVariables(text)
		})
	case map[string]any:
		for name, e := range v {
			named := strings.TrimPrefix(called(name), "title")
			if named == "value" {
				named = title(v)
			}
			text, ok := e.(string)
			if ok && named == "" && text != "" && (called(name) == "" || holdsVariables(text)) {
				return true
			}
		}
	}
	return false
}

// gives reports whether an object has a member value that is a text.
func gives(object map[string]any) bool {
	for name, e := range object {
		if text, ok := e.(string); ok && text != "" && called(name) == "value" {
			return true
		}
	}
	return false
}

// title returns what the name of an object is.
func title(object map[string]any) string {
	var all []string
	for name, e := range object {
		if text, ok := e.(string); ok && called(name) == "title" {
			all = append(all, called(text))
		}
	}
	for _, named := range []string{"secret", "secrets", "env", "envs"} {
		if slices.Contains(all, named) {
			return named
		}
	}
	return ""
}

func conceals(v any, named string) bool {
	if named == "" {
		return false
	}
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return named == "inside"
	case string:
		return v != ""
	case json.Number:
		return named != "secrets"
	case []any:
		return len(v) > 0
	}
	return len(v.(map[string]any)) > 0
}

const endings = "(base|confirm|confirmation|content|data|default|encoded|encrypted|json|pem|string|value|values){0,2}$"

var (
	environments = regexp.MustCompile("^(env|envvars|envvariables|environment|environmentvars|environmentvariables)$")
	someOfThem   = regexp.MustCompile(
		"(env|envvars|envvariables|environments?|environmentvars|environmentvariables)" + endings,
	)
	names  = regexp.MustCompile("^(bearer|cookies?|setcookie|databaseurl|dsn|jwt|otp|pass|dbpass|smtppass|userpass|pin|pw|tokens)$")
	values = regexp.MustCompile("(values?|default)$")
	titles = regexp.MustCompile("^(header|id|key|name)$")
	ends   = regexp.MustCompile("(passwords?|passwd|pwd|passphrase|passcode|secrets?|token|apikeys?|(access|account|client|encryption|hmac|master|secret|" +
		"session|shared|signing|ssh|storage)key|privatekeys?|credentials?|authorization|connectionstring|connstring|sharedaccesssignature|" +
		"(password|secret|token)hash|(access|api|auth|refresh)tokens)" + endings)
)

// called returns the sort of a name, or "". The sorts are "env" for an environment, "envs" if the
// name only ends like one, "secret", "secrets" for a plural, and "value" and "title" for the
// members of a pair.
func called(name string) string {
	letters := strings.Map(func(r rune) rune {
		switch {
		case r < 0x80 && !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'):
			return -1
		case r < 0x80:
			return r | 0x20
		}
		return 'ª'
	}, name)
	word := names.FindString(letters)
	if at := ends.FindStringSubmatch(letters); at != nil {
		word = at[1]
	}
	switch {
	case environments.MatchString(letters):
		return "env"
	case someOfThem.MatchString(letters):
		return "envs"
	case strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss"):
		return "secrets"
	case word != "":
		return "secret"
	case values.MatchString(letters):
		return "value"
	case titles.MatchString(letters):
		return "title"
	}
	return ""
}

// plainJSON is 1 MiB without secrets.
var plainJSON = `{"fields":[` + strings.Repeat(
	`{"field":"column_1","label":"Column 1","description":"","width":200,"formula":"3f9a8b7c6d5e4f30"},`,
	10_000,
) + `1]}`

// BenchmarkMaskSecrets masks 1 MiB, as an export does with all data: without secrets, and with one.
func BenchmarkMaskSecrets(b *testing.B) {
	for name, text := range map[string]string{
		"none": plainJSON,
		"one":  plainJSON[:len(plainJSON)-1] + `,"password":"x"}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if masked := entity.MaskSecrets([]byte(text)); masked[0] != '{' {
					b.Fatal("not the text")
				}
			}
		})
	}
}

// BenchmarkDecode decodes the same text with encoding/json, which a function over decoded values
// would have to do.
func BenchmarkDecode(b *testing.B) {
	b.SetBytes(int64(len(plainJSON)))
	for b.Loop() {
		var v any
		if err := json.Unmarshal([]byte(plainJSON), &v); err != nil {
			b.Fatal(err)
		}
	}
}
