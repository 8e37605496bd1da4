package view_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/matryer/is"
	"golang.org/x/net/html"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/rest/view"
)

const base = "https://example.com/api/apps/1/view/-/~t/"

func inject(t testing.TB, page, context string) string {
	t.Helper()
	var out bytes.Buffer
	is.New(t).NoErr(view.Inject(strings.NewReader(page), &out, base, json.RawMessage(context), view.AnyOrientation))
	return out.String()
}

// added is what Inject adds to a page, and short replaces it in a page by one sign.
var added = func() string {
	var out bytes.Buffer
	if err := view.Inject(
		strings.NewReader(""), &out, base, json.RawMessage(`{"a":1}`), view.AnyOrientation,
	); err != nil {
		panic(err)
	}
	return out.String()
}()

func TestInjectFindsTheHead(t *testing.T) {
	is.New(t).True(strings.HasPrefix(added, `<base href="`+base+`"><script>window.informer=JSON.parse("{\"a\":1}");`))
	is.New(t).True(strings.HasSuffix(added, "</script>"))
	for _, c := range []struct{ page, want string }{
		{"", "@"},
		{
			"<!doctype html><html><head><title>x</title></head><body></body></html>",
			"<!doctype html><html><head>@<title>x</title></head><body></body></html>",
		},
		{
			"<!DOCTYPE HTML>\n<HTML lang=de>\n<HEAD data-x='>'>\n<BASE href=/x/>",
			"<!DOCTYPE HTML>\n<HTML lang=de>\n<HEAD data-x='>'>@\n<BASE href=/x/>",
		},
		{
			"<!-- <head> --><!doctype html><!-- <html> --><html><!-- c --><head/>x",
			"<!-- <head> --><!doctype html><!-- <html> --><html><!-- c --><head/>@x",
		},
		{"<?xml version='1.0'?><!doctype html><head>", "<?xml version='1.0'?><!doctype html><head>@"},
		{"<html><body>x", "<html>@<body>x"},
		{"<title>x</title>", "@<title>x</title>"},
		{"<header>x</header>", "@<header>x</header>"},
		{"text", "@text"},
		{"<!doctype html>text<html><head>", "<!doctype html>@text<html><head>"},
		{"<script>'<head>'</script><head>", "@<script>'<head>'</script><head>"},
		{"<base href='https://evil.example/'><head>", "@<base href='https://evil.example/'><head>"},
		{"<html><base href=//evil.example><head>", "<html>@<base href=//evil.example><head>"},
		{"<html><html><head>", "<html><html><head>@"},
		{"</head><head>", "@</head><head>"},
		{"</p><head>", "@</p><head>"},
		{"<!doctype html", "@<!doctype html"},
		{"<!-- never closed <head>", "@<!-- never closed <head>"},
		{"<!---><head>", "<!---><head>@"},
		{"<!--><head>", "<!--><head>@"},
		{"<!-- --!><head>", "<!-- --!><head>@"},
		{"<html", "@<html"},
		{"<html a='", "@<html a='"},
		{"<head><", "<head>@<"},
		{"\x00<head>", "@\x00<head>"},
		{"\xff\xfe\xff", "@\ufffd"}, // UTF-16 says the mark, and the text ends in a half
		{"\xff<head>", "@\xff<head>"},
		{"<head>\xff\xe4", "<head>@\xff\xe4"}, // bytes as they are
		{"\xef\xbb\xbf<!doctype html><head>é", "<!doctype html><head>@é"},
		{"\xff\xfe<\x00h\x00e\x00a\x00d\x00>\x00\xe9\x00", "<head>@é"},
		{"\xfe\xff\x00<\x00h\x00e\x00a\x00d\x00>\x00\xe9", "<head>@é"},
		{"<frameset><frame></frameset>", "@<frameset><frame></frameset>"},
		{"<svg xmlns='http://www.w3.org/2000/svg'/>", "@<svg xmlns='http://www.w3.org/2000/svg'/>"},
	} {
		t.Run(fmt.Sprintf("%.50q", c.page), func(t *testing.T) {
			got := inject(t, c.page, `{"a":1}`)
			is.New(t).Equal(strings.Replace(got, added, "@", 1), c.want)
		})
	}
}

// TestOursIsTheFirstBase: by the rules of HTML, which the parser of x/net/html follows, the first
// base with an href counts.
func TestOursIsTheFirstBase(t *testing.T) {
	for _, page := range hostile {
		t.Run(fmt.Sprintf("%.50q", page), func(t *testing.T) {
			is := is.New(t)
			doc, err := html.Parse(strings.NewReader(inject(t, page, `{"a":"</script><!--<script>"}`)))
			is.NoErr(err)
			first, script := firstBase(doc)
			is.True(first != nil)
			is.Equal(first.Attr, []html.Attribute{{Key: "href", Val: base}})
			is.Equal(first.Parent.Data, "head")
			is.True(first.PrevSibling == nil || first.PrevSibling.Type == html.TextNode ||
				first.PrevSibling.Type == html.CommentNode)
			is.Equal(script.Data, "script")
			is.True(strings.HasPrefix(script.FirstChild.Data, "window.informer=JSON.parse("))
			is.True(strings.HasSuffix(script.FirstChild.Data, "})\n")) // the script is whole
		})
	}
}

// hostile are pages that try to have another base, or to have ours in a place where it does
// nothing.
var hostile = []string{
	"", "<base href=//evil.example>",
	"<html><base href=//evil.example><head>", "<head><base href=//evil.example></head>",
	"<!-- <html><head> --><base href=x>", "<!--><base href=x>-->",
	"<!---><base href=x>-->", "<!-- --!><base href=x>", "<!doctype html [<head>]><base href=x>",
	"<title><head></title><base href=x>", "<noscript><head></noscript><base href=x>",
	"<textarea><head>", "<script><!--<script><head></script><base href=x>",
	"<body><head><base href=x>", "<plaintext><head>",
	"<template><base href=x></template><head><base href=x>", "<svg><base href=x></svg>", "<html/><head/><base href=x>",
	"<table><base href=x>", "<frameset>", "</html><base href=x>",
	"<html x='<head>'><base href=x>", "<html x=\"'><head>\"><base href=x>", "<html x=<head><base href=x>",
	"\x00<head><base href=x>", "\n\n\t<head\n\n>\n<base href=x>", "<![CDATA[<head>]]><base href=x>",
	"<!x><head><base href=x>", "</><head><base href=x>", "<1><head><base href=x>",
	"<!--" + strings.Repeat("x", 100<<10) + "--><head><base href=x>",
	strings.Repeat(" ", 100<<10) + "<head><base href=x>", "<html " + strings.Repeat("a=b ", 30<<10) + "><base href=x>",
}

// firstBase returns the first base element with an href, in the order of the document, and the
// element behind it.
func firstBase(n *html.Node) (first, next *html.Node) {
	if n.Type == html.ElementNode && n.Data == "base" {
		for _, a := range n.Attr {
			if a.Key == "href" {
				return n, n.NextSibling
			}
		}
	}
	if n.Data == "template" {
		return nil, nil
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if first, next = firstBase(c); first != nil {
			return first, next
		}
	}
	return nil, nil
}

func TestContextIsData(t *testing.T) {
	for _, context := range []string{
		`{"a":"</script><script>alert(1)</script>"}`, `{"a":"<!--<script>"}`,
		`{"__proto__":{"x":1},"__proto__":2}`, "{\"a\":\"\u2028\u2029&'`\"}", `{"a":"\u2028\"\\"}`,
		`null`, `[]`, "\t{\n\"a\" : 1}", `"</SCRIPT"`,
	} {
		t.Run(context, func(t *testing.T) {
			is := is.New(t)
			got := inject(t, "", context)
			_, script, _ := strings.Cut(got, "<script>")
			text, _, ok := strings.Cut(strings.TrimPrefix(script, "window.informer=JSON.parse("), ");")
			is.True(ok)
			is.True(!strings.ContainsAny(text, "<>&\u2028\u2029\n"))
			var inner string
			is.NoErr(json.Unmarshal([]byte(text), &inner)) // a JSON string is a JavaScript string
			is.Equal(inner, context)
		})
	}
	for _, bad := range []string{"", "{", "alert(1)", "{}{}"} {
		var out bytes.Buffer
		is.New(t).Equal(
			errs.CodeOf(view.Inject(strings.NewReader("x"), &out, base, json.RawMessage(bad), view.AnyOrientation)),
			errs.Internal,
		)
		is.New(t).Equal(out.Len(), 0)
	}
}

func TestBaseIsOneAttribute(t *testing.T) {
	var out bytes.Buffer
	is.New(t).NoErr(view.Inject(
		strings.NewReader(""), &out, `https://x/"><script>'&amp;`, json.RawMessage(`{}`), view.AnyOrientation,
	))
	is.New(t).True(strings.HasPrefix(
		out.String(), `<base href="https://x/&#34;&gt;&lt;script&gt;&#39;&amp;amp;"><script>window.`,
	))
}

func TestOrientation(t *testing.T) {
	for print, want := range map[view.Orientation]string{
		view.AnyOrientation: "", view.Portrait: "<style>@page{size:portrait}</style>",
		view.Landscape: "<style>@page{size:landscape}</style>", "</style>": "",
	} {
		var out bytes.Buffer
		is.New(t).NoErr(view.Inject(strings.NewReader("<head>x"), &out, base, json.RawMessage(`{"a":1}`), print))
		is.New(t).Equal(out.String(), "<head>"+added+want+"x")
	}
}

func TestInjectPassesErrorsOn(t *testing.T) {
	is := is.New(t)
	broken := errors.New("broken")
	is.Equal(
		view.Inject(iotest.ErrReader(broken), io.Discard, base, json.RawMessage("{}"), view.AnyOrientation),
		broken,
	)
	late := io.MultiReader(strings.NewReader(strings.Repeat("x", 100<<10)), iotest.ErrReader(broken))
	is.Equal(view.Inject(late, io.Discard, base, json.RawMessage("{}"), view.AnyOrientation), broken)
	is.Equal(
		view.Inject(strings.NewReader("x"), failing{broken}, base, json.RawMessage("{}"), view.AnyOrientation),
		broken,
	)
	var out bytes.Buffer
	is.NoErr(view.Inject(
		iotest.OneByteReader(strings.NewReader("<html><head>x")), &out, base, json.RawMessage(`{"a":1}`),
		view.AnyOrientation,
	))
	is.Equal(out.String(), "<html><head>"+added+"x")
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestInjectOfLargePageMemory: a page of 16 MiB is copied whole, and never held.
func TestInjectOfLargePageMemory(t *testing.T) {
	is := is.New(t)
	const size = 16 << 20
	for _, start := range []string{"<head>", "<!--", "<html a='", ""} {
		var n counter
		var before, after runtime.MemStats
		page := io.MultiReader(strings.NewReader(start), io.LimitReader(zeros{}, size))
		runtime.ReadMemStats(&before)
		is.NoErr(view.Inject(page, &n, base, json.RawMessage(`{"a":1}`), view.AnyOrientation))
		runtime.ReadMemStats(&after)
		is.Equal(int(n), len(start)+size+len(added))
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 1<<20 {
			t.Errorf("%q: %d bytes are allocated", start, allocated)
		}
	}
}

type counter int

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func FuzzInject(f *testing.F) {
	for _, page := range hostile {
		if len(page) < 1000 {
			f.Add(page)
		}
	}
	f.Fuzz(func(t *testing.T, page string) {
		got := inject(t, page, `{"a":1}`)
		if strings.HasPrefix(page, "\xef\xbb\xbf") || strings.HasPrefix(page, "\xff\xfe") ||
			strings.HasPrefix(page, "\xfe\xff") {
			return
		}
		if strings.Replace(got, added, "", 1) != page {
			t.Fatalf("%q became %q", page, got)
		}
		doc, err := html.Parse(strings.NewReader(got))
		if err != nil {
			return // nested too deeply
		}
		if first, _ := firstBase(doc); first == nil || first.Attr[0].Val != base || first.Parent.Data != "head" {
			t.Fatalf("%q has another base", got)
		}
	})
}
