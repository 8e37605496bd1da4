package inputs_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/inputs"
)

// jo returns the context of a caller without roles, since reading the catalogs does not need any.
func jo(t *testing.T) context.Context {
	return actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "jo"})
}

func encode(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	is.New(t).NoErr(err)
	return string(b)
}

func TestEditors(t *testing.T) {
	is := is.New(t)
	s, err := inputs.New()
	is.NoErr(err)
	got, err := s.Editors(jo(t))
	is.NoErr(err)
	is.Equal(len(got), 13)
	is.Equal(encode(t, got), `[`+
		`{"id":"mdInput","name":"input:input_box"},`+
		`{"id":"mdTextarea","name":"input:text_area"},`+
		`{"id":"mdSelect","name":"input:select"},`+
		`{"id":"mdMultiInput","name":"input:multi_input"},`+
		`{"id":"mdRadioGroup","name":"input:radio_group"},`+
		`{"id":"mdCheckbox","name":"input:checkbox"},`+
		`{"id":"mdSwitch","name":"input:switch"},`+
		`{"id":"mdSlider","name":"input:slider"},`+
		`{"id":"mdAutocomplete","name":"input:autocomplete"},`+
		`{"id":"mdDatepicker","name":"input:date_picker"},`+
		`{"id":"dateRangePicker","name":"input:date_range"},`+
		`{"id":"infDistinctValueChooser","name":"input:distinct_values"},`+
		`{"id":"infMonaco","name":"input:code_editor"}]`)
}

func TestTemplates(t *testing.T) {
	is := is.New(t)
	s, err := inputs.New()
	is.NoErr(err)
	rows, err := s.Templates(jo(t))
	is.NoErr(err)
	want := []struct{ valueType, presets string }{
		{"object", `[{"key":"input:code_editor","group":"object","input":{"infMonaco":{"language":"json"}}}]`},
		{"string",
			`[{"key":"input:input_box","group":"string","input":{"mdMultiInput":{"type":"text","wildcard":false}}},` +
				`{"key":"input:select","group":"string","input":{"mdSelect":{}}},` +
				`{"key":"input:distinct_values","group":"string","input":{"infDistinctValueChooser":{}}}]`},
		{"numeric", `[{"key":"input:input_box","group":"numeric","input":{"mdMultiInput":{"type":"number"}}},` +
			`{"key":"input:slider","group":"numeric","input":{"mdSlider":{}}}]`},
		{"date", `[{"key":"input:date_picker","group":"date","input":{"mdDatepicker":{}}},` +
			`{"key":"input:date_range","group":"date","input":{"dateRangePicker":{}}}]`},
		{"boolean", `[{"key":"input:switch","group":"boolean","input":{"mdSwitch":{}}},` +
			`{"key":"input:checkbox","group":"boolean","input":{"mdCheckbox":{}}}]`},
	}
	is.Equal(len(rows), len(want))
	for i, w := range want {
		is.Equal(rows[i].Type, w.valueType)
		is.Equal(encode(t, rows[i].Presets), w.presets)
	}
}

// TestPresetsFitTheEditors: a preset has one editor, which is in the catalog and has the name of
// the preset.
func TestPresetsFitTheEditors(t *testing.T) {
	is := is.New(t)
	s, err := inputs.New()
	is.NoErr(err)
	editors, err := s.Editors(jo(t))
	is.NoErr(err)
	names := map[string]string{}
	for _, e := range editors {
		names[e.ID] = e.Name
	}
	names["mdMultiInput"] = "input:input_box" // as a preset
	rows, err := s.Templates(jo(t))
	is.NoErr(err)
	for _, row := range rows {
		for _, p := range row.Presets {
			is.Equal(p.Group, row.Type)
			is.Equal(len(p.Input), 1)
			for id, options := range p.Input {
				is.Equal(p.Key, names[id])
				is.True(options != nil)
			}
		}
	}
}

func TestHostEditors(t *testing.T) {
	is := is.New(t)
	own := []inputs.Editor{{ID: "acmeMap", Name: "acme:map"}, {ID: "acmeAudio", Name: "acme:audio"}}
	s, err := inputs.New(own...)
	is.NoErr(err)
	own[0].ID = "changed"
	got, err := s.Editors(jo(t))
	is.NoErr(err)
	is.Equal(len(got), 15)
	is.Equal(got[12].ID, "infMonaco")
	is.Equal(got[13], inputs.Editor{ID: "acmeMap", Name: "acme:map"})
	is.Equal(got[14].ID, "acmeAudio")
}

func TestHostEditorsRefused(t *testing.T) {
	for name, extra := range map[string][]inputs.Editor{
		"empty id":       {{Name: "acme:map"}},
		"a ready editor": {{ID: "mdSelect", Name: "acme:select"}},
		"twice":          {{ID: "acmeMap"}, {ID: "acmeAudio"}, {ID: "acmeMap"}},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			s, err := inputs.New(extra...)
			is.Equal(errs.CodeOf(err), errs.Invalid)
			is.True(s == nil)
		})
	}
}

func TestNoActorNoCatalog(t *testing.T) {
	is := is.New(t)
	s, err := inputs.New()
	is.NoErr(err)
	editors, err := s.Editors(t.Context())
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
	is.Equal(len(editors), 0)
	rows, err := s.Templates(t.Context())
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
	is.Equal(len(rows), 0)
}

// TestCallersCannotChangeTheCatalogs changes what several callers got at the same time. The race
// detector finds what they share.
func TestCallersCannotChangeTheCatalogs(t *testing.T) {
	is, ctx := is.New(t), jo(t)
	s, err := inputs.New(inputs.Editor{ID: "acmeMap", Name: "acme:map"})
	is.NoErr(err)
	read := func() string {
		editors, err := s.Editors(ctx)
		is.NoErr(err)
		rows, err := s.Templates(ctx)
		is.NoErr(err)
		all := encode(t, []any{editors, rows})
		editors[0].ID = "spoiled"
		_ = append(editors[:1], inputs.Editor{ID: "spoiled"})
		rows[1].Presets[0].Input["mdMultiInput"]["type"] = "spoiled"
		rows[1].Presets[0].Input["spoiled"] = nil
		rows[1].Presets[1].Key = "spoiled"
		rows[0].Type = "spoiled"
		return all
	}
	before := read()
	var wg sync.WaitGroup
	got := make([]string, 20)
	for i := range got {
		wg.Go(func() { got[i] = read() })
	}
	wg.Wait()
	for _, after := range got {
		is.Equal(after, before)
	}
}
