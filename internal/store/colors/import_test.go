package bunstore_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/store/colors"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func designer(t *testing.T, test func(t *testing.T, s *colors.Service, imp func(file string) (int, error))) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		s := colors.New(colors.Options{Store: bunstore.New(open(t))})
		ctx := actor.With(t.Context(), actor.Actor{
			Tenant: "acme",
			User:   "dana",
			Teams:  map[string]actor.Role{"t": actor.Designer},
		})
		test(t, s, func(file string) (int, error) { return s.Import(ctx, strings.NewReader(file)) })
	})
}

func TestBadImportsWriteNothing(t *testing.T) {
	designer(t, func(t *testing.T, s *colors.Service, imp func(string) (int, error)) {
		good := `[{"key": "a", "color": "#aaa"}`
		for file, want := range map[string]string{
			``: "The file is not JSON.", `{}`: "The file is not a JSON array.", `nope`: "The file is not JSON.",
			good:                          "The file ends in the middle of the array.",
			good + `] x`:                  "The file goes on after the array.",
			good + `, 5]`:                 "Element 1: not an object.",
			good + `, null]`:              "Element 1: not an object.",
			good + `, {"color": "#aaa"}]`: "Element 1: key is missing.",
			good + `, {"KEY": "b", "color": "#aaa"}]`: "Element 1: key is missing.",
			good + `, {"key": "b"}]`:                  "Element 1: color is missing.",
			good + `, {"key": 5, "color": "#aaa"}]`: "Element 1: key is not a " +
				"string.",
			good + `, {"key": "b", "color": "ruby"}]`: `Element 1: "ruby" is ` +
				`neither a hex nor a palette color.`,
			good + `, {"key": "b\u0000", "color": "#aaa"}]`: "Element 1: key must not " +
				"have control characters.",
			good + `, {"key": "` + strings.Repeat("x", 1<<20) + `", "color": "#aaa"}]`: "Element 1 is too long.",
		} {
			is := is.New(t)
			_, err := imp(file)
			is.Equal(errs.CodeOf(err), errs.Invalid)
			is.Equal(errs.MessageOf(err), want)
			for _, err := range s.All(actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "mia"})) {
				t.Fatal("something was written", err)
			}
		}
	})
}

func TestTheLastElementOfAKeyWins(t *testing.T) {
	designer(t, func(t *testing.T, s *colors.Service, imp func(string) (int, error)) {
		is := is.New(t)
		n, err := imp(`[{"key": "a", "color": "#111", "source": "s"}, {"key": "b", "color": "blue:500", "source": ` +
			`""}, {"key": "a", "color": "#222"}]`)
		is.NoErr(err)
		is.Equal(n, 2)
		ctx := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "mia"})
		a, err := s.Get(ctx, "a")
		is.NoErr(err)
		is.Equal(a.Color, "#222")
		is.Equal(*a.Source, "s") // a row without a source does not change it
		b, err := s.Get(ctx, "b")
		is.NoErr(err)
		is.Equal(b.Color, "blue:500")
		is.Equal(b.Source, nil) // an empty source is stored as nil
	})
}

// TestImportsAtOnce imports the same keys in opposite orders at the same time, which caused
// deadlocks on PostgreSQL.
func TestImportsAtOnce(t *testing.T) {
	designer(t, func(t *testing.T, _ *colors.Service, imp func(string) (int, error)) {
		type element struct {
			Key   string `json:"key"`
			Color string `json:"color"`
		}
		var up, down []element
		for i := range 2000 {
			up = append(up, element{fmt.Sprintf("k%04d", i), "#123"})
			down = append(down, element{fmt.Sprintf("k%04d", 1999-i), "#456"})
		}
		var wg sync.WaitGroup
		fails := make(chan error, 6)
		for i := range 6 {
			file, err := json.Marshal([][]element{up, down}[i%2])
			is.New(t).NoErr(err)
			wg.Go(func() {
				_, err := imp(string(file))
				fails <- err
			})
		}
		wg.Wait()
		for range 6 {
			is.New(t).NoErr(<-fails)
		}
	})
}

// asking is a file that uses a connection while it is read, as an upload does.
type asking struct {
	io.ReadSeeker
	db *bun.DB
}

func (a asking) Read(p []byte) (int, error) {
	var n int
	if err := a.db.QueryRow("SELECT 1").Scan(&n); err != nil {
		return 0, err
	}
	return a.ReadSeeker.Read(p)
}

// TestImportsLeaveConnections: imports that wait for each other do not hold the connections that
// the writing one needs.
func TestImportsLeaveConnections(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		db := open(t)
		db.SetMaxOpenConns(2)
		s := colors.New(colors.Options{Store: bunstore.New(db)})
		ctx := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "dana", Superuser: true})
		file := "[" + strings.Repeat(`{"key": "a", "color": "#aaa"},`+"\n", 5000) + `{"key": "b", "color": "#bbb"}]`
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				if _, err := s.Import(ctx, asking{strings.NewReader(file), db}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}
