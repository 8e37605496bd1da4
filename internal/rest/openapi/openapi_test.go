package openapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/matryer/is"
	"go.yaml.in/yaml/v4"

	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"
	"github.com/tenantcontent/tenantcontent/internal/text/jsonfill"
)

type inner struct {
	N int `json:"n"`
}

// colorBody is an answer.
type colorBody struct {
	Key    string    `json:"key"` // unique
	Source *string   `json:"source"`
	State  *string   `json:"state" enum:"on off"`
	Icon   string    `json:"icon,omitempty"`
	At     hal.Time  `json:"at"`
	End    *hal.Time `json:"end,omitempty"`
	Inner  *inner    `json:"inner"`
}

// Relations implements openapi.Related.
func (colorBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:colors", "inf:print[]"}}
}

type colorInput struct {
	Key    *string                `json:"key"`
	Source jsonfill.Field[string] `json:"source"`
	Data   json.RawMessage        `json:"data"`
	Inner  inner                  `json:"inner"`
}

// schemas returns the schemas of the bodies as JSON.
func schemas(t *testing.T, bodies ...openapi.Body) map[string]string {
	t.Helper()
	r := openapi.Reflector{Texts: map[string]openapi.Text{
		"openapi_test.colorBody": {Text: "A color.", Fields: map[string]string{"Key": "Unique."}},
	}}
	for _, b := range bodies {
		r.Content(b, false)
	}
	is := is.New(t)
	is.Equal(len(r.Errs), 0)
	all := map[string]string{}
	for name, s := range r.Components() {
		raw, err := openapi.Encode(s)
		is.NoErr(err)
		all[name] = string(raw)
	}
	return all
}

func TestAnswers(t *testing.T) {
	is := is.New(t)
	all := schemas(t, openapi.Page[colorBody]("inf:color"), openapi.One[colorBody]())
	is.Equal(all["Color"], `{"type":"object","description":"A color.","properties":{`+
		`"_links":{"type":"object","properties":{"self":{"$ref":"#/components/schemas/Link"},`+
		`"inf:colors":{"$ref":"#/components/schemas/Link"},`+
		`"inf:print":{"type":"array","items":{"$ref":"#/components/schemas/Link"}}},`+
		`"required":["self"],"additionalProperties":false},`+
		`"key":{"type":"string","description":"Unique."},"source":{"type":["string","null"]},`+
		`"state":{"type":["string","null"],"enum":["on","off",null]},"icon":{"type":"string"},`+
		`"at":{"type":"string","format":"date-time"},"end":{"type":"string","format":"date-time"},`+
		`"inner":{"anyOf":[{"$ref":"#/components/schemas/Inner"},{"type":"null"}]}},`+
		`"required":["_links","key","source","state","at","inner"],"additionalProperties":false}`)
	is.True(strings.Contains(all["ColorPage"], `"inf:color":{"type":"array","items":{"$ref":"#/components/schemas/Color"}}`))
}

func TestRequestsAreAsTheDecoderReadsThem(t *testing.T) {
	is := is.New(t)
	all := schemas(t, openapi.Input[colorInput](), openapi.Update[colorInput, colorBody]())
	members := `"key":{"type":"string"},"source":{"type":["string","null"]},"data":{},` +
		`"inner":{"$ref":"#/components/schemas/InnerInput"}`
	is.Equal(all["ColorInput"], `{"type":"object","properties":{`+members+`},"additionalProperties":false}`)
	is.Equal(all["ColorUpdate"], `{"type":"object","properties":{`+members+
		`,"_links":{"readOnly":true},"_embedded":{"readOnly":true},"state":{"readOnly":true},"icon":{"readOnly":true},`+
		`"at":{"readOnly":true},"end":{"readOnly":true}},"additionalProperties":false}`)
}

func TestTypesWithoutSchema(t *testing.T) {
	is := is.New(t)
	var r openapi.Reflector
	r.Content(openapi.One[struct{ A int }](), false)
	r.Content(openapi.One[func()](), false)
	r.Content(openapi.One[json.Number](), false)
	is.Equal(len(r.Errs), 2)
	is.True(strings.Contains(r.Errs[0].Error(), "needs a name"))
	is.True(strings.Contains(r.Errs[1].Error(), "has no JSON"))
}

func TestYAMLIsTheJSON(t *testing.T) {
	is := is.New(t)
	document := `{"a":{"b":[1,{"c":"x: \"y\"\n","d":[]},[true,null]],"e":{}},"f g":"no","h":"<&>"}`
	out, err := openapi.YAML([]byte(document))
	is.NoErr(err)
	var fromYAML, fromJSON any
	is.NoErr(yaml.Unmarshal(out, &fromYAML))
	is.NoErr(json.Unmarshal([]byte(document), &fromJSON))
	again, err := json.Marshal(fromYAML)
	is.NoErr(err)
	want, err := json.Marshal(fromJSON)
	is.NoErr(err)
	is.Equal(string(again), string(want))
}
