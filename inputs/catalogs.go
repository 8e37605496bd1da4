package inputs

// The catalogs are functions, so that callers may change what they receive.

// editors returns the ready editors.
func editors() []Editor {
	return []Editor{
		{"mdInput", "input:input_box"},
		{"mdTextarea", "input:text_area"},
		{"mdSelect", "input:select"},
		{"mdMultiInput", "input:multi_input"},
		{"mdRadioGroup", "input:radio_group"},
		{"mdCheckbox", "input:checkbox"},
		{"mdSwitch", "input:switch"},
		{"mdSlider", "input:slider"},
		{"mdAutocomplete", "input:autocomplete"},
		{"mdDatepicker", "input:date_picker"},
		{"dateRangePicker", "input:date_range"},
		{"infDistinctValueChooser", "input:distinct_values"},
		{"infMonaco", "input:code_editor"},
	}
}

type options = map[string]any

// templates returns the presets per type. A preset has the name of its editor, except for
// mdMultiInput. With these options it shows one plain box, for text or for a number. So both are
// named "input box".
func templates() []Template {
	return []Template{
		template("object",
			preset("input:code_editor", "infMonaco", options{"language": "json"})),
		template("string",
			preset("input:input_box", "mdMultiInput", options{"type": "text", "wildcard": false}),
			preset("input:select", "mdSelect", options{}),
			preset("input:distinct_values", "infDistinctValueChooser", options{})),
		template("numeric",
			preset("input:input_box", "mdMultiInput", options{"type": "number"}),
			preset("input:slider", "mdSlider", options{})),
		template("date",
			preset("input:date_picker", "mdDatepicker", options{}),
			preset("input:date_range", "dateRangePicker", options{})),
		template("boolean",
			preset("input:switch", "mdSwitch", options{}),
			preset("input:checkbox", "mdCheckbox", options{})),
	}
}

// template returns a row, and sets the group of its presets to its type.
func template(valueType string, presets ...Preset) Template {
	for i := range presets {
		presets[i].Group = valueType
	}
	return Template{Type: valueType, Presets: presets}
}

func preset(key, editor string, o options) Preset {
	return Preset{Key: key, Input: Input{editor: o}}
}
