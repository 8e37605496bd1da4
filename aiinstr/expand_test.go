package aiinstr_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"
	"pgregory.net/rapid"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/aiinstr"
	"github.com/tenantcontent/tenantcontent/errs"
)

// contents is a Store that has contents alone, and counts how often it is asked for them.
type contents struct {
	aiinstr.Store
	bySlug map[string]string
	asked  int
}

func (c *contents) Contents(_ context.Context, _ string, slugs []string, most int) (map[string]string, error) {
	c.asked++
	out := map[string]string{}
	for _, s := range slugs {
		if text, ok := c.bySlug[s]; ok {
			if most -= len(text); most < 0 {
				return nil, errs.New(errs.Invalid, "too long")
			}
			out[s] = text
		}
	}
	return out, nil
}

// on is Settings with AI on or off.
type on bool

func (o on) AIEnabled(context.Context, string) (bool, error) { return bool(o), nil }

func expand(text string, bySlug map[string]string) (string, []string, error) {
	s := aiinstr.New(aiinstr.Options{Store: &contents{bySlug: bySlug}, Settings: on(true)})
	return s.Expand(actor.With(context.Background(), actor.Actor{Tenant: "acme", User: "jo", AI: true}), text)
}

func TestExpand(t *testing.T) {
	known := map[string]string{
		"tone": "be kind", "style": "short, ${tone}",
		"deep": "<${style}|${tone}>", "lit": "$${tone}", "odd": "${ tone} ${} ${a b} $ ${",
		"unknowns": "${no} ${tone} ${other} ${no}", "A-1_z": "A", "dollar": "$",
	}
	for text, want := range map[string]string{
		"": "", "plain": "plain",
		"${tone}": "be kind", "a ${tone}, ${tone}.": "a be kind, be kind.", "${style}": "short, be kind",
		"${deep}": "<short, be kind|be kind>", "$${tone}": "${tone}",
		"${lit}": "${tone}", "$$${tone}": "$${tone}", "$$$${tone}": "$$${tone}",
		"$${no}": "${no}", "${no}": "${no}", "${A-1_z}": "A",
		"${odd}": "${ tone} ${} ${a b} $ ${", "$": "$", "$$": "$$", "${": "${",
		"$${": "$${", "${}": "${}", "${tone": "${tone",
		"${-x}": "${-x}", "$${-x}": "$${-x}", "${${tone}}": "${be kind}", "$tone": "$tone",
		"${TONE}": "${TONE}", "${dollar}{tone}": "${tone}",
		"ü${tone}ü": "übe kindü", "${" + strings.Repeat("a", 128) + "}": "${" + strings.Repeat("a", 128) + "}",
		"${" + strings.Repeat("a", 129) + "}": "${" + strings.Repeat("a", 129) + "}",
	} {
		t.Run(text, func(t *testing.T) {
			is := is.New(t)
			got, _, err := expand(text, known)
			is.NoErr(err)
			is.Equal(got, want)
		})
	}
	is := is.New(t)
	got, unknown, err := expand("${z} ${unknowns} ${z}", known)
	is.NoErr(err)
	is.Equal(got, "${z} ${no} be kind ${other} ${no} ${z}")
	is.Equal(unknown, []string{"z", "no", "other"})
	_, unknown, err = expand("${00000000-0000-7000-8000-000000000001}", known)
	is.NoErr(err)
	is.Equal(unknown, []string{"00000000-0000-7000-8000-000000000001"})
}

func TestExpandRefuses(t *testing.T) {
	is := is.New(t)
	chain := map[string]string{"c11": "end"}
	for n := range 10 {
		chain[fmt.Sprintf("c%d", n+1)] = fmt.Sprintf("${c%d}", n+2)
	}
	got, _, err := expand("${c2}", chain) // ten references
	is.NoErr(err)
	is.Equal(got, "end")
	_, _, err = expand("${c1}", chain)
	is.Equal(errs.MessageOf(err), "The references to instructions go more than 10 deep.")
	_, _, err = expand("${c10} ${c1}", chain) // known by a short way too
	is.Equal(errs.CodeOf(err), errs.Invalid)

	circles := map[string]string{"self": "x ${self}", "a": "${b}", "b": "${c} ${d}", "c": "ok", "d": "${a}"}
	for text, circle := range map[string]string{
		"${self}":  "self → self",
		"see ${a}": "a → b → d → a",
		"${c}${d}": "d → a → b → d",
	} {
		_, _, err = expand(text, circles)
		is.Equal(errs.CodeOf(err), errs.Invalid)
		is.Equal(errs.MessageOf(err), "The instructions refer to each other in a circle: "+circle)
	}

	bomb := map[string]string{"x0": strings.Repeat("0123456789", 10)}
	for n := 1; n < 10; n++ {
		bomb[fmt.Sprintf("x%d", n)] = strings.Repeat(fmt.Sprintf("${x%d}", n-1), 100)
	}
	_, _, err = expand("${x9}", bomb) // 10²⁰ bytes
	is.Equal(errs.MessageOf(err), "The expanded text would have more than 1048576 bytes.")
	_, _, err = expand(strings.Repeat("x", 1<<20), nil)
	is.NoErr(err)
	for _, long := range []int{1<<20 + 1, 4<<20 + 1} {
		_, _, err = expand(strings.Repeat("x", long), nil)
		is.Equal(errs.CodeOf(err), errs.Invalid)
	}
	_, _, err = expand("${big}${c}", map[string]string{"big": strings.Repeat("x", 5<<20), "c": ""})
	is.Equal(errs.CodeOf(err), errs.Invalid)
}

// TestExpandAsksOncePerDepth: a query for all references of one depth.
func TestExpandAsksOncePerDepth(t *testing.T) {
	is := is.New(t)
	c := &contents{bySlug: map[string]string{"leaf": "l"}}
	var text strings.Builder
	for n := range 100 {
		c.bySlug[fmt.Sprintf("r%d", n)] = "${leaf} ${r" + fmt.Sprint(n+100) + "}"
		c.bySlug[fmt.Sprintf("r%d", n+100)] = "${leaf}"
		fmt.Fprintf(&text, "${r%d} ", n)
	}
	s := aiinstr.New(aiinstr.Options{Store: c, Settings: on(true)})
	_, _, err := s.Expand(
		actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "jo", Superuser: true}), text.String(),
	)
	is.NoErr(err)
	is.Equal(c.asked, 2) // r0…r99; r100…r199 and leaf
}

var ref = regexp.MustCompile(`\$?\$\{[A-Za-z0-9][A-Za-z0-9_-]{0,127}\}`)

// model expands in the plainest way; it cannot see circles, so depth ends it.
func model(text string, bySlug map[string]string, depth int) (string, error) {
	if depth > 10 {
		return "", errors.New("deep")
	}
	var failed error
	out := ref.ReplaceAllStringFunc(text, func(m string) string {
		if strings.HasPrefix(m, "$$") {
			return m[1:]
		}
		inner, ok := bySlug[m[2:len(m)-1]]
		if !ok {
			return m
		}
		expanded, err := model(inner, bySlug, depth+1)
		if err != nil {
			failed = err
		}
		return expanded
	})
	if len(out) > 1<<20 {
		failed = errors.New("long")
	}
	return out, failed
}

// TestExpandIsTheModel on any set of few instructions that refer to each other.
func TestExpandIsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{
			"${a}", "${b}", "${c}", "${d}", "$${a}", "$", "{", "}", "${", "x", "${no}", "$$", "ü",
		})
		text := rapid.Map(rapid.SliceOfN(piece, 0, 6), func(p []string) string { return strings.Join(p, "") })
		bySlug := map[string]string{}
		for _, slug := range []string{"a", "b", "c", "d"} {
			if rapid.Bool().Draw(t, slug+" is there") {
				bySlug[slug] = text.Draw(t, slug)
			}
		}
		agree(t, text.Draw(t, "text"), bySlug)
	})
}

func agree(t interface{ Fatalf(string, ...any) }, text string, bySlug map[string]string) {
	got, unknown, err := expand(text, bySlug)
	want, wrong := model(text, bySlug, 0)
	if (err != nil) != (wrong != nil) || err == nil && got != want {
		t.Fatalf("%q with %q: got %q, %v; want %q, %v", text, bySlug, got, err, want, wrong)
	}
	if err != nil && errs.CodeOf(err) != errs.Invalid {
		t.Fatalf("%q: %v", text, err)
	}
	for i, slug := range unknown {
		if _, known := bySlug[slug]; known || slices.Contains(unknown[:i], slug) {
			t.Fatalf("%q: %q is unknown", text, unknown)
		}
	}
}

// FuzzExpand: whatever texts say, Expand ends, keeps its limits and does what the model does.
func FuzzExpand(f *testing.F) {
	for _, text := range []string{
		"", "${a}", "$${a}", "$$${a}", "${b}${a}", "${a", "${}", "${${a}}", "$", "\x00${a}\xff", "${a}${a}${a}",
		"$${", "${ü}",
	} {
		f.Add(text, "${b}", "x$${a}")
		f.Add("${a}", text, text)
	}
	f.Fuzz(func(t *testing.T, text, a, b string) { agree(t, text, map[string]string{"a": a, "b": b}) })
}
