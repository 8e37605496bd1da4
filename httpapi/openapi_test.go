package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/matryer/is"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// goldenFile shows changes of the description in reviews.
const goldenFile = "../docs/openapi.json"

// description is the served description of all routes.
type description struct {
	raw      []byte
	doc      map[string]any
	ops      map[string]operation // by operationId
	compiler *jsonschema.Compiler
}

// operation is an operation of a description.
type operation struct {
	at     string // a JSON pointer
	path   string
	method string
	value  map[string]any
}

// served returns the description that a world serves.
func served(t *testing.T) *description {
	t.Helper()
	w := newWorld(t, dbtest.SQLite)
	a := w.do(t, "", "GET", "/api/openapi.json", "")
	if a.status != 200 {
		t.Fatalf("%d %s\n%s", a.status, a.body, strings.ReplaceAll(w.log.String(), `\n`, "\n"))
	}
	d := &description{raw: []byte(a.body), ops: map[string]operation{}}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(a.body))
	is.New(t).NoErr(err)
	d.doc = doc.(map[string]any)
	d.compiler = jsonschema.NewCompiler()
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.AssertFormat()
	is.New(t).NoErr(d.compiler.AddResource("doc.json", doc))
	for path, item := range d.object("/paths") {
		for method, op := range item.(map[string]any) {
			if method == "parameters" {
				continue
			}
			id := op.(map[string]any)["operationId"].(string)
			if _, twice := d.ops[id]; twice {
				t.Errorf("two operations are %s", id)
			}
			at := "/paths/" + pointer(path) + "/" + method
			d.ops[id] = operation{at: at, path: path, method: method, value: op.(map[string]any)}
		}
	}
	return d
}

// pointer escapes a segment of a JSON pointer.
func pointer(segment string) string {
	return strings.ReplaceAll(strings.ReplaceAll(segment, "~", "~0"), "/", "~1")
}

// object returns the object at a JSON pointer.
func (d *description) object(at string) map[string]any {
	var v any = d.doc
	for _, s := range strings.Split(at, "/")[1:] {
		if all, ok := v.([]any); ok {
			i, _ := strconv.Atoi(s)
			v = all[i]
			continue
		}
		o, _ := v.(map[string]any)
		v = o[strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")]
	}
	o, _ := v.(map[string]any)
	return o
}

// resolve follows the reference of an object.
func (d *description) resolve(at string) (string, map[string]any) {
	o := d.object(at)
	if ref, ok := o["$ref"].(string); ok {
		return d.resolve(ref[1:])
	}
	return at, o
}

// validate returns the error of an instance of the schema at a JSON pointer.
func (d *description) validate(at string, instance any) error {
	u := (&url.URL{Fragment: at}).EscapedFragment()
	s, err := d.compiler.Compile("doc.json#" + u)
	if err != nil {
		return err
	}
	return s.Validate(instance)
}

// TestTranscriptsFitOpenAPI validates each answer in the transcripts, and each request that
// succeeds, against the served description, and looks for members, statuses and parameters in it
// that no transcript has.
func TestTranscriptsFitOpenAPI(t *testing.T) {
	d := served(t)
	c := &coverage{description: d, seen: map[string]bool{}}
	for _, x := range exchanges(t) {
		if x.route == "" {
			continue // no route: the plain 404 and 405
		}
		op, ok := d.ops[x.route]
		if !ok {
			t.Errorf("%s: %s is not described", x.at, x.route)
			continue
		}
		for _, complaint := range c.check(op, x) {
			t.Errorf("%s: %s %s: %s", x.at, x.method, x.target, complaint)
		}
	}
	c.report(t)
}

// check returns what of an exchange is not as its operation says.
func (c *coverage) check(op operation, x exchange) (complaints []string) {
	status := x.status
	responses := op.value["responses"].(map[string]any)
	if responses[status] == nil {
		if status < "4" && responses["default"] == nil {
			return []string{"the status " + status + " is not described"}
		}
		if _, failure := responses["default"].(map[string]any)["$ref"]; status < "4" && failure {
			return []string{"the status " + status + " is not described"}
		}
		status = "default"
	}
	c.seen[op.at+"/responses/"+status] = true
	if x.answer != "" {
		if complaint := c.body(op.at+"/responses/"+status, x.header["Content-Type"], x.json()); complaint != "" {
			complaints = append(complaints, "the answer "+x.status+": "+complaint)
		}
	}
	u, err := url.Parse(x.target)
	if err == nil {
		for name := range u.Query() {
			c.seen["query "+name] = true
		}
	}
	c.options(op, x, u)
	if x.status >= "4" || x.body == "" {
		instance, err := jsonschema.UnmarshalJSON(strings.NewReader(x.sends()))
		if err == nil && op.value["requestBody"] != nil {
			c.walk(op.at+"/requestBody/content/application~1json/schema", instance)
		}
		return complaints
	}
	if op.value["requestBody"] == nil {
		return append(complaints, "no body is described")
	}
	kind := "application/json"
	for _, h := range x.asked {
		if k, ok := strings.CutPrefix(h, "Content-Type: "); ok {
			kind = k
		}
	}
	if kind == "application/json" && !json.Valid([]byte(x.body)) {
		return complaints // a file
	}
	if complaint := c.body(op.at+"/requestBody", kind, x.body); complaint != "" {
		complaints = append(complaints, "the request: "+complaint)
	}
	return complaints
}

// options notes the options that a request has in its query or form, which may be in its body too.
func (c *coverage) options(op operation, x exchange, u *url.URL) {
	body, _ := op.value["requestBody"].(map[string]any)
	if body == nil || u == nil {
		return
	}
	for kind := range body["content"].(map[string]any) {
		at, schema := c.resolve(op.at + "/requestBody/content/" + pointer(kind) + "/schema")
		properties, _ := schema["properties"].(map[string]any)
		for name := range properties {
			if u.Query().Has(name) || strings.Contains(x.body, `name="`+name+`"`) {
				c.seen[at+"/properties/"+pointer(name)] = true
			}
		}
	}
}

// body returns what of a body is not as it is described.
func (c *coverage) body(at, kind, text string) string {
	at, body := c.resolve(at)
	kind, _, _ = strings.Cut(kind, ";")
	if kind == "" || kind == "application/hal+json" {
		kind = "application/json"
	}
	content, _ := body["content"].(map[string]any)
	major, _, _ := strings.Cut(kind, "/")
	for _, name := range []string{kind, major + "/*", "*/*"} {
		if content[name] == nil {
			continue
		}
		if name != kind || !strings.HasSuffix(kind, "json") {
			return ""
		}
		instance, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			return err.Error()
		}
		schema := at + "/content/" + pointer(name) + "/schema"
		if err := c.validate(schema, instance); err != nil {
			return err.Error()
		}
		c.walk(schema, instance)
		return ""
	}
	return fmt.Sprintf("%s is not described", kind)
}

// coverage is what of a description the transcripts have.
type coverage struct {
	*description
	seen map[string]bool
}

// walk notes the members of an instance of a schema.
func (c *coverage) walk(at string, instance any) {
	at, schema := c.resolve(at)
	if forms, ok := schema["anyOf"].([]any); ok {
		for i := range forms {
			if form := fmt.Sprintf("%s/anyOf/%d", at, i); c.fits(form, instance) {
				c.walk(form, instance)
			}
		}
	}
	switch instance := instance.(type) {
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		for name, v := range instance {
			switch {
			case properties[name] != nil:
				c.seen[at+"/properties/"+pointer(name)] = true
				c.walk(at+"/properties/"+pointer(name), v)
			case schema["additionalProperties"] != nil:
				c.walk(at+"/additionalProperties", v)
			}
		}
	case []any:
		for _, v := range instance {
			if schema["items"] != nil {
				c.walk(at+"/items", v)
			}
		}
	}
}

// fits reports whether an instance fits a form. Those of anyOf differ in their types.
func (c *coverage) fits(at string, instance any) bool { return c.validate(at, instance) == nil }

// report reports what no transcript has.
func (c *coverage) report(t *testing.T) {
	var missing []string
	c.each(c.doc, "", func(at string) {
		if !c.seen[at] {
			missing = append(missing, at)
		}
	})
	answered := map[string]bool{} // by handler: the kinds of content share theirs
	for _, r := range httpapi.Routes() {
		op := c.ops[r.Name]
		for status := range op.value["responses"].(map[string]any) {
			if c.seen[op.at+"/responses/"+status] {
				answered[handlerOf(r)+" "+status] = true
			}
		}
	}
	for _, r := range httpapi.Routes() {
		for status := range c.ops[r.Name].value["responses"].(map[string]any) {
			if status != "default" && !answered[handlerOf(r)+" "+status] {
				missing = append(missing, r.Name+" "+status)
			}
		}
	}
	for name := range c.doc["components"].(map[string]any)["parameters"].(map[string]any) {
		if !c.seen["query "+name] {
			missing = append(missing, "query "+name)
		}
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	for _, at := range missing {
		if unseen[at] == "" {
			t.Errorf("no transcript has %s", at)
		}
	}
	for at := range unseen {
		if !slices.Contains(missing, at) {
			t.Errorf("a transcript has %s: take it out of unseen", at)
		}
	}
}

// each calls f with the JSON pointer of each property in a part of the description, but for those
// that requests may have and that are ignored.
func (c *coverage) each(v any, at string, f func(at string)) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if name == "example" || name == "enum" {
				continue
			}
			c.each(member, at+"/"+pointer(name), f)
			properties, ok := member.(map[string]any)
			if name != "properties" || !ok || strings.HasSuffix(at, "/properties") {
				continue
			}
			for property, schema := range properties {
				if s, ok := schema.(map[string]any); ok && s["readOnly"] == nil {
					f(at + "/properties/" + pointer(property))
				}
			}
		}
	case []any:
		for i, member := range v {
			c.each(member, fmt.Sprintf("%s/%d", at, i), f)
		}
	}
}

// TestOpenAPIIsValid has another program read the description.
func TestOpenAPIIsValid(t *testing.T) {
	is := is.New(t)
	d := served(t)
	doc, err := openapi3.NewLoader().LoadFromData(d.raw)
	is.NoErr(err)
	is.NoErr(doc.Validate(t.Context(), openapi3.DisableExamplesValidation()))
	is.True(len(d.raw) < 2<<20)
}

// TestOpenAPIGolden keeps docs/openapi.json equal to what is served.
func TestOpenAPIGolden(t *testing.T) {
	is := is.New(t)
	var got bytes.Buffer
	is.NoErr(json.Indent(&got, served(t).raw, "", "  "))
	got.WriteByte('\n')
	if *update {
		is.NoErr(os.WriteFile(goldenFile, got.Bytes(), 0o644))
		return
	}
	want, err := os.ReadFile(goldenFile)
	is.NoErr(err)
	compare(t, goldenFile, string(want), got.String())
}

// TestShapesOfHandEncoders compares the members that types encode by hand with those of their
// schemas.
func TestShapesOfHandEncoders(t *testing.T) {
	d := served(t)
	written := httpapi.AppendedRows()
	for name, v := range httpapi.HandEncoded() {
		raw, err := v.AppendJSON(nil)
		is.New(t).NoErr(err)
		written[name] = raw
	}
	for name, raw := range written {
		var members map[string]json.RawMessage
		is.New(t).NoErr(json.Unmarshal(raw, &members))
		schema := d.object("/components/schemas/" + name)
		properties, _ := schema["properties"].(map[string]any)
		for member := range members {
			if properties[member] == nil {
				t.Errorf("%s has the member %s, and its shape has not", name, member)
			}
		}
		for member := range properties {
			if _, has := members[member]; !has && !strings.HasPrefix(member, "_") {
				t.Errorf("%s has no member %s, and its shape has", name, member)
			}
		}
	}
	_, types := comments(t)
	for _, name := range appenders(t) {
		shape := strings.ToUpper(name[:1]) + strings.TrimSuffix(name[1:], "Body")
		if _, known := types["httpapi."+name]; known && written[shape] == nil && name != "versions" {
			t.Errorf("%s encodes itself: add it to HandEncoded", name)
		}
	}
}

// TestAnswersAreClosed looks for objects in answers that may have members which are not described.
func TestAnswersAreClosed(t *testing.T) {
	d := served(t)
	inputs := map[string]bool{}
	for name, schema := range d.object("/components/schemas") {
		s := schema.(map[string]any)
		if strings.HasSuffix(name, "Input") || strings.HasSuffix(name, "Update") {
			inputs[name] = true
			continue
		}
		if s["additionalProperties"] != false {
			t.Errorf("%s is not closed", name)
		}
	}
	is.New(t).True(len(inputs) > 20)
}
