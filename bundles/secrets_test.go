package bundles_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/principals"
)

func (w *world) data(t testing.TB, tenant string, kind entity.Kind, id string) string {
	t.Helper()
	e, err := w.Content.Get(w.as(t, tenant), kind, id)
	is.New(t).NoErr(err)
	return string(e.Data)
}

func (w *world) setData(t testing.TB, tenant string, kind entity.Kind, id, data string) {
	t.Helper()
	_, err := w.Content.Update(w.as(t, tenant), kind, id, func(e *content.Entity) error {
		e.Data = json.RawMessage(data)
		return nil
	})
	is.New(t).NoErr(err)
}

// TestSecretsStay where they are: no archive has them, a deploy keeps those of the target, and a
// restore of what it replaced keeps them too.
func TestSecretsStay(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme, evil := is.New(t), w.as(t, "acme"), w.as(t, "evil")
		source := w.make(t, "acme", "datasource", "Warehouse", `{"host":"a","password":"acme-secret","port":5432}`)
		app := w.make(t, "acme", "toolkit", "App", `{"defn":{"env":{"KEY":"acme-secret","HOME":"/home/acme-secret"}}}`)
		b := w.bundle(t, "All", "datasource "+source)
		options := json.RawMessage(`{"token":"acme-secret","n":1.0}`)
		_, err := w.Bundles.CreateEntry(acme, b.ID, bundles.Entry{Type: "toolkit", EntityID: app, Data: options})
		is.NoErr(err)
		file := w.export(t, "acme", b.ID)
		header, rows := unpacked(t, file)
		is.True(!strings.Contains(fmt.Sprintf("%s %s", header.Entries, rows), "acme-secret"))
		is.Equal(w.export(t, "acme", b.ID), file) // the same bytes

		deploy := func() bundles.ImportResult {
			done, err := w.Bundles.Deploy(acme, b.ID, []string{"evil"}, bundles.ImportOptions{})
			is.NoErr(err)
			return done[0].ImportResult
		}
		is.Equal(deploy().Warnings, []string{
			"1 secret of 1 datasource row did not travel: set them again here.",
			"The owner of 2 new items did not come along: the tenant's own people own what is new there.",
			"2 secrets of 1 toolkit row did not travel: set them again here.",
		})
		is.Equal(
			w.data(t, "evil", "datasource", source)+w.data(t, "evil", "toolkit", app),
			`{"host":"a","port":5432}{"defn":{"env":{}}}`,
		)
		w.setData(t, "evil", "datasource", source, `{"password":"evil-secret","host":"b"}`)
		w.setData(t, "evil", "toolkit", app, `{"defn":{"env":{"KEY":"evil-secret","HOME":"/evil","MORE":"x"}}}`)
		again := deploy()
		is.Equal(again.Warnings, []string{
			// another host
			"1 secret of 1 datasource row got removed, since what is around them changed: set them again here.",
			"1 secret of 1 toolkit row got lost with what was replaced: set them again here.",
			"2 secrets of 1 toolkit row got removed, since what is around them changed: set them again here.",
		})
		is.Equal(
			w.data(t, "evil", "datasource", source)+w.data(t, "evil", "toolkit", app),
			`{"host":"a","port":5432}{"defn":{"env":{}}}`,
		)
		is.True(strings.Contains(w.told(t, "eve"), again.Warnings[0]))

		kept := w.fetch(t, "evil", again.Archive)
		_, rows = unpacked(t, kept)
		is.True(!strings.Contains(fmt.Sprint(rows), "evil-secret"))
		is.NoErr(w.Content.Delete(evil, "toolkit", app))
		r, err := w.Bundles.Restore(evil, bytes.NewReader(kept), bundles.ImportOptions{})
		is.NoErr(err)
		is.Equal(r.Warnings, []string{
			"1 secret of 1 datasource row did not travel: set them again here.",
			"3 secrets of 1 toolkit row did not travel: set them again here.",
		})
		is.Equal(w.data(t, "evil", "datasource", source), `{"host":"b"}`)
		w.setData(t, "evil", "datasource", source, `{"port":5432,"host":"a","password":"evil-secret"}`)
		is.Equal(deploy().Warnings, []string{"2 secrets of 1 toolkit row did not travel: set them again here."})
		is.Equal(w.data(t, "evil", "datasource", source), `{"host":"a","password":"evil-secret","port":5432}`)
	})
}

// TestSecretsThatGo with what overwrites them are told of, by kind, and before it is done: no
// archive has them.
func TestSecretsThatGo(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme, rows := is.New(t), w.as(t, "acme"), map[string]string{}
		for name, data := range map[string]string{
			"All":  `{"password":"x","deep":[{"token":"y"},{"token":"z"}]}`, // all of it goes
			"Some": `{"password":"x","env":{"A":"1","B":"2"}}`,              // B goes
			// an array of another length is another place
			"Length": `{"a":[{"pwd":"x"},1]}`,
			"None":   `{"password":"x","n":1}`,
			"Plain":  `{"n":1}`,
		} {
			new := map[string]string{
				"All":  `{"host":"a","password":""}`,
				"Some": `{"password":"********","env":{"A":"********"}}`, "Length": `{"a":[{}]}`,
				"None": `{"password":"********","n":1}`, "Plain": `{}`,
			}[name]
			rows["datasource "+w.make(
				t, "acme", "datasource", name, data,
			)] = `{"name":"` + name + `","ownerId":"jo","data":` + new + `}`
		}
		_, err := w.Principals.UpdateUser(acme, "jo", func(u *principals.User) error {
			u.UserFields = []byte(`{"pin":{"passcode":1}}`)
			return nil
		})
		is.NoErr(err)
		rows["user jo"] = `{"domain":"local"}`
		file := packed(t, rows, nil)
		for _, how := range []bundles.ImportOptions{{Rule: entity.Overwrite, DryRun: true}, {Rule: entity.Overwrite}} {
			r, err := w.Bundles.Import(acme, bytes.NewReader(file), how)
			is.NoErr(err)
			is.Equal(r.Warnings, []string{
				"1 secret of 1 user row got lost with what was replaced: set them again here.",
				"5 secrets of 3 datasource rows got lost with what was replaced: set them again here.",
			})
		}
		r, err := w.Bundles.Import(acme, bytes.NewReader(file), bundles.ImportOptions{Rule: entity.Overwrite})
		is.NoErr(err)
		is.Equal(len(r.Warnings), 0) // they are gone
	})
}

// TestOneWarningForAllRows however many batches they come in.
func TestOneWarningForAllRows(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		rows := map[string]string{}
		for n := range 600 {
			rows[fmt.Sprintf(
				"dataset 01932e00-0000-7000-8000-%012d", n,
			)] = `{"name": "x", "ownerId": "jo", "data": {"apiKey": "x", "a": [{"token": "y"}]}}`
		}
		r, err := w.Bundles.Import(w.as(t, "acme"), bytes.NewReader(packed(t, rows, nil)), bundles.ImportOptions{})
		is.New(t).NoErr(err)
		is.New(t).Equal(r.Warnings, []string{"1200 secrets of 600 dataset rows did not travel: set them again here."})
	})
}

// TestNobodyTakesOver a superuser through an archive, whatever way it comes in, nor gets more
// rights than before.
func TestNobodyTakesOver(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme, mail := is.New(t), w.as(t, "acme"), "admin@acme.example"
		_, err := w.Principals.UpdateUser(acme, "admin", func(u *principals.User) error { u.Email = &mail; return nil })
		is.NoErr(err)
		before, err := w.Principals.User(acme, "admin")
		is.NoErr(err)
		all := `{"superuser": true, "enabled": false, "ai": true, "viewAllUsers": true, "email": ` +
			`"eve@evil.example", "displayName": "The boss"}`
		hostile := packed(t, map[string]string{"user admin": all, "user jo": all, "user mallory": all}, nil)
		for _, bring := range []func() (bundles.ImportResult, error){
			func() (bundles.ImportResult, error) {
				return w.Bundles.Import(acme, bytes.NewReader(hostile), bundles.ImportOptions{Rule: entity.Overwrite})
			},
			func() (bundles.ImportResult, error) {
				return w.Bundles.Restore(acme, bytes.NewReader(hostile), bundles.ImportOptions{})
			},
		} {
			r, err := bring()
			is.NoErr(err)
			is.Equal(r.Skipped, 1)
			is.True(strings.Contains(
				strings.Join(r.Warnings, "\n"), "user admin is a superuser here and stays as it is.",
			))
			after, err := w.Principals.User(acme, "admin")
			is.NoErr(err)
			is.Equal(after, before)
			for name, enabled := range map[string]bool{"jo": true, "mallory": false} {
				u, err := w.Principals.User(acme, name)
				is.NoErr(err)
				is.Equal(
					[]any{u.Superuser, u.Enabled, u.GlobalPermissions},
					[]any{false, enabled, principals.GlobalPermissions{}},
				)
			}
		}
	})
}
