package httpapi

import (
	"testing"

	"github.com/matryer/is"
)

func TestBaseURL(t *testing.T) {
	for text, ok := range map[string]bool{
		"":                       true,
		"https://a.example":      true,
		"http://127.0.0.1:8080/": true,
		"a.example":              false,
		"https://a.example/path": true,
		"ftp://a.example":        false,
	} {
		_, err := New(Config{BaseURL: text})
		is.New(t).Equal(err == nil, ok)
	}
}
