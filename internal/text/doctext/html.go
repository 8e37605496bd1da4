package doctext

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// block reports whether an element begins and ends a line.
func block(a atom.Atom) bool {
	switch a {
	case atom.P, atom.Div, atom.Br, atom.Li, atom.Ul, atom.Ol, atom.Dl, atom.Dt, atom.Dd, atom.Tr, atom.Table,
		atom.Caption, atom.Thead, atom.Tbody, atom.H1,
		atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Section, atom.Article, atom.Header, atom.Footer,
		atom.Main, atom.Nav, atom.Aside, atom.Blockquote, atom.Pre,
		atom.Hr, atom.Figure, atom.Figcaption, atom.Form, atom.Fieldset, atom.Address, atom.Details,
		atom.Summary, atom.Title, atom.Option, atom.Body, atom.Html:
		return true
	}
	return false
}

// hidden reports whether the content of an element is not part of the text.
func hidden(a atom.Atom) bool {
	switch a {
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Iframe, atom.Object, atom.Svg, atom.Math,
		atom.Noembed, atom.Noframes:
		return true
	}
	return false
}

// fromHTML appends the text of a page, its title first. It reads one token after the other, so that
// nesting does not matter.
func fromHTML(out *text, data []byte, contentType string) error {
	data, err := decoded(data, contentType)
	if err != nil {
		return err
	}
	z := html.NewTokenizer(bytes.NewReader(data))
	var skipped atom.Atom // the hidden element that is being skipped
	depth, pre := 0, 0
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			if errors.Is(z.Err(), io.EOF) {
				out.line()
				return nil
			}
			return z.Err()
		}
		var a atom.Atom
		if kind == html.StartTagToken || kind == html.EndTagToken || kind == html.SelfClosingTagToken {
			name, _ := z.TagName()
			a = atom.Lookup(name)
		}
		switch {
		case skipped != 0 && a == skipped && kind == html.StartTagToken:
			depth++
		case skipped != 0 && a == skipped && kind == html.EndTagToken:
			if depth--; depth == 0 {
				skipped = 0
			}
		case skipped != 0:
		case kind == html.StartTagToken && hidden(a):
			skipped, depth = a, 1
		case kind == html.TextToken && pre > 0:
			out.write(string(z.Text()))
		case kind == html.TextToken:
			out.collapsed(string(z.Text()))
		case kind == html.EndTagToken && (a == atom.Td || a == atom.Th):
			out.trim()
			out.write("\t")
		case block(a):
			if a == atom.Pre {
				pre = max(pre+map[html.TokenType]int{html.StartTagToken: 1, html.EndTagToken: -1}[kind], 0)
			}
			out.line()
		}
		if out.full {
			return errLong
		}
	}
}

// clean removes characters that are not text.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
}
