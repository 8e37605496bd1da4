package redact

import "testing"

// TestText: a secret is masked unless that would reveal it.
func TestText(t *testing.T) {
	for _, c := range []struct {
		text    string
		secrets []string
		want    string
	}{
		{"bind of x with long secret", []string{"long secret"}, "bind of x with ********"},
		{"xlong secretx", []string{"", "long secret"}, "x********x"},
		{"a bad password, a!", []string{"a"}, "a bad password, a!"},
		{"error, data 52e, v3839", []string{"52e"}, "error, data 52e, v3839"},
		{"no", []string{"", "n", "no"}, "no"},
		{"password mia1 of mia12 is 'mia1'", []string{"mia1"}, "password ******** of mia12 is '********'"},
		{"mia1mia1 mia1", []string{"mia1"}, "mia1mia1 ********"},
		{"ümia1 mia1ü", []string{"mia1"}, "ümia1 mia1ü"},
		{"code=one+secret, secret", []string{"secret", "one+secret"}, "code=********, ********"},
	} {
		if got := Text(c.text, c.secrets...); got != c.want {
			t.Errorf("%s: %s", c.text, got)
		}
	}
}
