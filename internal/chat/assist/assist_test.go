package assist_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/ai/aitest"
	"github.com/tenantcontent/tenantcontent/ai/openai"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/chat"
	"github.com/tenantcontent/tenantcontent/internal/chat/assist"
	"github.com/tenantcontent/tenantcontent/internal/drafts/manifest"
)

func model(t testing.TB, answers ...string) (ai.Provider, *aitest.Server) {
	t.Helper()
	s := aitest.NewServer()
	t.Cleanup(s.Close)
	for _, text := range answers {
		s.Add(aitest.Turn{Text: []string{text}})
	}
	p, err := openai.New(openai.Options{
		URL:    s.URL,
		Models: []openai.Model{{Name: "m"}},
		Log:    slog.New(slog.DiscardHandler),
	})
	is.New(t).NoErr(err)
	return p, s
}

var sales = assist.App{Name: "Sales", Datasets: []assist.Dataset{
	{Alias: "sales", Label: "Sales of 2026", Fields: json.RawMessage(`[{"name":"amount"}]`)},
	{Alias: "hidden", Label: "Secret"},
}}

// TestUnreadableDatasets: datasets that the caller cannot read are neither described to a model nor
// named.
func TestUnreadableDatasets(t *testing.T) {
	is := is.New(t)
	is.True(strings.Contains(sales.System(), `"amount"`))
	is.True(!strings.Contains(sales.System(), "hidden") && !strings.Contains(sales.System(), "Secret"))
	for _, tool := range sales.Tools(nil) {
		is.True(json.Valid(tool.Parameters))
		is.True(!strings.Contains(string(tool.Parameters), "hidden"))
	}
	is.Equal(sales.Suggestions(), []string{"What does Sales of 2026 hold?", "How many rows does Sales of 2026 have?"})
	is.Equal(len(assist.App{Name: "Empty"}.Tools(nil)), 0)
	is.Equal(assist.App{Name: "Empty"}.Suggestions(), []string{"What is Empty for?"})
}

// TestManyFields: a prompt has a limited size, and still names each dataset.
func TestManyFields(t *testing.T) {
	is := is.New(t)
	a := assist.App{Name: "Wide"}
	for i := range 50 {
		a.Datasets = append(a.Datasets, assist.Dataset{
			Alias:  fmt.Sprintf("d%d", i),
			Fields: json.RawMessage(`[{"name":"` + strings.Repeat("x", 2000) + `"}]`),
		})
	}
	is.True(len(a.System()) < 20<<10)
	is.True(strings.Contains(a.System(), "Dataset d49\n"))
	is.True(len(a.Suggestions()) <= 8)
}

func TestSuggest(t *testing.T) {
	is := is.New(t)
	long := strings.Repeat("x", 201)
	p, s := model(t, "Sorry", `Here: {"suggestions": ["`+long+`", " a\nb", " How much? "]}`)
	var continues []bool
	p = chat.Around(p, func(ctx context.Context, r chat.Request, do func(context.Context) error) error {
		continues = append(continues, r.Continues)
		return do(ctx)
	})
	got, err := assist.Suggest(t.Context(), p, "u", sales)
	is.NoErr(err)
	is.Equal(got, []string{"How much?"})
	is.Equal(continues, []bool{false, true}) // a second try does not end for want of a place
	again := s.Requests()[1]
	is.Equal(len(again.Messages), 3) // with the error
	is.True(strings.HasPrefix(again.Last().Text(), "That is not right: "))
	is.Equal(string(again.ResponseFormat), `{"type":"json_object"}`)
}

func TestSuggestIcons(t *testing.T) {
	is := is.New(t)
	p, _ := model(t, `{"icons": ["Bar Chart", "bar_chart", "bar_chart", "sell"]}`)
	got, err := assist.SuggestIcons(t.Context(), p, "u", sales)
	is.NoErr(err)
	is.Equal(got, []string{"bar_chart", "sell"})
	is.True(len(assist.Icons()) > 200)
	// without duplicates
	is.Equal(len(slices.Compact(slices.Sorted(slices.Values(assist.Icons())))), len(assist.Icons()))
}

// manifests refuses rules for tokens.
var manifests = manifest.Reader{Closed: func(_, path string) string {
	if path == "tokens" {
		return "credentials"
	}
	return ""
}}

func TestModernize(t *testing.T) {
	is := is.New(t)
	answer := func(manifest string) string {
		b, err := json.Marshal(map[string]any{"manifest": manifest, "changes": []string{"x", " "}})
		is.NoErr(err)
		return string(b)
	}
	p, s := model(
		t, answer("access: /api/x"), answer("access: [GET colors, GET tokens]"),
		answer("access: [GET colors, datasets/*]"),
	)
	m, err := assist.Modernize(
		t.Context(), p, "u", manifests, "informer.yaml", "access: [colors]", []string{"index.html"},
	)
	is.NoErr(err)
	is.Equal(m, assist.Modernized{
		Text:    "access: [GET colors, datasets/*]",
		Changes: []string{"x"},
		Added:   []string{"GET datasets/*"},
	})
	is.True(strings.Contains(s.Requests()[2].Last().Text(), "no app may call GET tokens"))
	_, err = assist.Modernize(t.Context(), p, "u", manifests, "informer.yaml", strings.Repeat("#", 65<<10), nil)
	is.True(errors.Is(err, errs.TooLarge))
	p, s = model(t, answer("entryPoint: index.html"))
	_, err = assist.Modernize(t.Context(), p, "u", manifests, "informer.yaml", "", []string{"index.html"})
	is.NoErr(err)
	is.True(strings.HasPrefix(s.Requests()[0].Last().Text(), "Write the manifest"))
}

// TestRefusedAnswerIsForgotten: the other fields of a refused answer are not used for the next one.
func TestRefusedAnswerIsForgotten(t *testing.T) {
	is := is.New(t)
	p, _ := model(
		t, `{"manifest": "access: [GET tokens]", "changes": ["allowed tokens"]}`,
		`{"manifest": "access: [GET colors]"}`,
	)
	m, err := assist.Modernize(t.Context(), p, "u", manifests, "informer.yaml", "", nil)
	is.NoErr(err)
	is.Equal(m.Changes, []string{})
}

// TestNonsense: after three invalid answers the error is errs.Upstream.
func TestNonsense(t *testing.T) {
	is := is.New(t)
	p, s := model(t, "a", "{}", "[]", `{"suggestions": ["late"]}`)
	_, err := assist.Suggest(t.Context(), p, "u", sales)
	is.True(errors.Is(err, errs.Upstream))
	is.Equal(len(s.Requests()), 3)
}

func ExampleSuggest() {
	server := aitest.NewServer(aitest.Turn{Text: []string{`{"suggestions": ["Which region sold most?"]}`}})
	defer server.Close()
	p, err := openai.New(openai.Options{URL: server.URL, Models: []openai.Model{{Name: "fast"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(assist.Suggest(context.Background(), p, "", assist.App{Name: "Sales"}))
	// Output:
	// [Which region sold most?] <nil>
}
