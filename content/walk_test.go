package content

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/matryer/is"
	"pgregory.net/rapid"

	"github.com/tenantcontent/tenantcontent/entity"
)

func named(text string) (all []string) {
	walk([]byte(text), func(kind entity.Kind, id string) { all = append(all, string(kind)+" "+id) })
	return all
}

func TestWalk(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: `[]`, `[]`: `[]`, `"datasetId"`: `[]`, `7`: `[]`, `null`: `[]`,
		`{"datasetId":"a"}`: `[dataset a]`, `{"datasetId": "a" , "x":1,"queryId":"b"}`: `[dataset a query b]`,
		`{"datasetIds":["a","b"]}`: `[dataset a dataset b]`, `{"datasetIds":"a"}`: `[]`, `{"datasetId":["a"]}`: `[]`,
		`{"datasetIds":[{"x":"y"},"b",["c"],7]}`: `[dataset b]`, `{"a":[{"b":{"tagId":"x"}}],"c":"d"}`: `[tag x]`,
		`{"x":"datasetId","y":"a"}`: `[]`, `{"datasetId":{"x":"y"},"z":"w"}`: `[]`, `{"datasetId":7,"y":"z"}`: `[]`,
		`{"x":"\"datasetId\":\"a\"","tagId":"\\"}`: `[tag \]`,
		`{"\u0064atasetId":"\u0061\"b"}`:           `[dataset a"b]`, `{"x\\":"y","tagId":"z"}`: `[tag z]`,
		`{"Id":"a","Ids":["b"]}`: `[ a]`, `{"x":"{[\"","tagId":"]}"}`: `[tag ]}]`,
	} {
		got := fmt.Sprint(named(text))
		if text == `{"Id":"a","Ids":["b"]}` { // of no kind
			want = `[]`
		}
		is.New(t).Equal(got, want)
	}
}

// TestWalkFindsWhatIsThere in any JSON, whatever is around it.
func TestWalkFindsWhatIsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name, id := rapid.String().Draw(t, "name"), rapid.String().Draw(t, "id")
		text, err := json.Marshal([]any{
			rapid.String().Draw(t, "before"), map[string]any{name: id, "tagId": id},
			rapid.Float64().Draw(t, "after"),
		})
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, n := range named(string(text)) {
			found = found || n == "tag "+id
		}
		if !found {
			t.Fatalf("%s: %v", text, named(string(text)))
		}
	})
}
