package entity_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/entity"
)

func TestSameJSON(t *testing.T) {
	is := is.New(t)
	deep := strings.Repeat(`[`, 9000) + strings.Repeat(`]`, 9000)
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`{"a":1,"b":[true,null,"x"]}`, ` { "b": [true, null, "x"], "a": 1 }`, true},
		{`{"a":{"c":1,"d":2}}`, `{"a":{"d":2,"c":1}}`, true},
		{`"\u0061"`, `"a"`, true},
		{deep, deep + " ", true},
		{`{}`, `[]`, false},
		{`"1"`, `1`, false},
		{`"null"`, `null`, false},
		{`1`, `1.0`, false},
		{`[1,2]`, `[2,1]`, false},
		{`[[],[]]`, `[[[]]]`, false},
		{`{"host":"a","host":"b"}`, `{"host":"b","host":"a"}`, false},
		{`{"host":"a","host":"b"}`, `{"host":"b"}`, false},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`{"a":`, `{"a":`, false},
		{``, ``, false},
	} {
		if entity.SameJSON(json.RawMessage(c.a), json.RawMessage(c.b)) != c.same {
			t.Errorf("%.40s and %.40s", c.a, c.b)
		}
		is.Equal(entity.SameJSON(json.RawMessage(c.b), json.RawMessage(c.a)), c.same)
	}
}
