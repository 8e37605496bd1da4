package content_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/matryer/is"
	"pgregory.net/rapid"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/transfertest"
)

func TestWhatIsAcceptedTravels(t *testing.T) {
	eachTraveller(t, func(t *testing.T, travels func(is.T, json.RawMessage)) {
		rapid.Check(t, func(t *rapid.T) { travels(t, transfertest.Free().Draw(t, "data")) })
	})
}

// TestTravelsAtFullSize, however long its row is with masks in the places of its secrets.
func TestTravelsAtFullSize(t *testing.T) {
	eachTraveller(t, func(t *testing.T, travels func(is.T, json.RawMessage)) {
		for _, data := range transfertest.Fat(1 << 20) {
			travels(t, data)
		}
	})
}

// eachTraveller calls test with a check that a dataset with these data arrives in another tenant as
// it is.
func eachTraveller(t *testing.T, test func(t *testing.T, travels func(is.T, json.RawMessage))) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		s := service(t, open(t))
		p, ctx := typeOf(t, s, "dataset").Transferer, jo(t)
		travels := func(t is.T, data json.RawMessage) {
			is := is.New(t)
			e, err := s.Create(ctx, content.Entity{Kind: "dataset", Name: "x", Data: data})
			is.NoErr(err)
			transfertest.Travels(ctx, t, p, "acme", "evil", e.ID)
			bare, _ := entity.KeepSecrets(e.Data, nil)
			for _, tenant := range []string{"acme", "evil"} {
				at, err := s.Get(actor.With(ctx, actor.Actor{Tenant: tenant, User: "x"}), "dataset", e.ID)
				is.NoErr(err)
				is.True(string(at.Data) == string(bare)) // all but the secrets
			}
		}
		test(t, travels)
	})
}

// TestLongSecretsStay where the rest of the data is as long as it may be, and the entity travels
// on.
func TestLongSecretsStay(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s := is.New(t), service(t, open(t))
		p, long := typeOf(t, s, "toolkit").Transferer, strings.Repeat("x", 1<<20-20)
		e := create(t, s, "toolkit", "", `{"password":"`+long+`"}`)
		land := entity.ImportOptions{Rule: entity.Overwrite, Owner: "jo"}
		row := []entity.Row{{
			Key:  entity.Key{Kind: "toolkit", ID: e.ID},
			JSON: []byte(`{"name":"x","ownerId":"jo","data":{"b":"` + long + `","password":"********"}}`),
		}}
		for range 2 {
			_, warnings, err := p.Import(t.Context(), "acme", row, land)
			is.NoErr(err)
			kept, err := s.Get(jo(t), "toolkit", e.ID)
			is.NoErr(err)
			is.True(string(kept.Data) == `{"b":"`+long+`","password":"`+long+`"}`)
			row = transfertest.Rows(t, p, "acme")
			is.Equal(len(warnings) > 0, land.Warnings == nil) // the first time it says something else
			land.Warnings = &entity.Warnings{}
		}
		row[0].JSON = []byte(`{"name":"x","data":{"b":"` + long + `", "c":"` + long + `"}}`)
		_, _, err := p.Import(t.Context(), "evil", row, land)
		is.Equal(errs.MessageOf(err), "toolkit "+e.ID+": data must be a JSON object of at most 1048576 bytes")
		is.Equal(err.Error(), errs.MessageOf(err)) // which it says once
	})
}

// TestWhatCannotTravel is refused: no archive takes it.
func TestWhatCannotTravel(t *testing.T) {
	is, s := is.New(t), service(t, dbtest.SQLite(t))
	deep := strings.Repeat(`{"a":`, 500) + `{}` + strings.Repeat(`}`, 500)
	for data, want := range map[string]string{
		deep:              "data must not be nested more than 500 levels deep",
		`{"a":"\u0000"}`:  "data must not have NUL characters or halves of surrogate pairs",
		`{"\ud800":"a"}`:  "data must not have NUL characters or halves of surrogate pairs",
		`{"a":"\\u0000"}`: "",
	} {
		_, err := s.Create(jo(t), content.Entity{Kind: "report", Name: "x", Data: json.RawMessage(data)})
		is.Equal(errs.MessageOf(err), want)
		is.Equal(err == nil, want == "")
	}
}
