package openapi

import (
	"bytes"
	"encoding/json"
	"strings"
)

// YAML returns the YAML of a JSON document, with the members in their order. Texts are in double
// quotes, as JSON has them, which YAML 1.2 reads alike.
func YAML(document []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	w := yamlWriter{d: d}
	first, err := d.Token()
	if err == nil {
		err = w.value(first, 0, false)
	}
	return w.out.Bytes(), err
}

type yamlWriter struct {
	d   *json.Decoder
	out bytes.Buffer
}

// value writes a value whose first token has been read. member reports whether it comes after a
// name.
func (w *yamlWriter) value(first json.Token, depth int, member bool) error {
	open, nested := first.(json.Delim)
	if !nested {
		text, err := Encode(first)
		w.space(member)
		w.out.Write(append(text, '\n'))
		return err
	}
	if !w.d.More() {
		w.space(member)
		w.out.WriteString(map[json.Delim]string{'{': "{}\n", '[': "[]\n"}[open])
		_, err := w.d.Token()
		return err
	}
	if member {
		w.out.WriteByte('\n')
	}
	for i := 0; w.d.More(); i++ {
		if i > 0 || member {
			w.out.WriteString(strings.Repeat("  ", depth))
		}
		token, err := w.d.Token()
		if err != nil {
			return err
		}
		if open == '[' {
			w.out.WriteString("- ")
			if err := w.value(token, depth+1, false); err != nil {
				return err
			}
			continue
		}
		name, err := Encode(token)
		if err != nil {
			return err
		}
		w.out.Write(append(name, ':'))
		if token, err = w.d.Token(); err != nil {
			return err
		}
		if err := w.value(token, depth+1, true); err != nil {
			return err
		}
	}
	_, err := w.d.Token()
	return err
}

func (w *yamlWriter) space(member bool) {
	if member {
		w.out.WriteByte(' ')
	}
}
