package bundles_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/bundles/drivertest"
	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/javascript"
	"github.com/tenantcontent/tenantcontent/principals"
)

// own is a driver of a host.
type own struct {
	about   bundles.Descriptor
	content []entity.Type
}

func (d own) Descriptor() bundles.Descriptor { return d.about }
func (d own) Content() []entity.Type         { return d.content }

func good(w *world) own {
	for _, kind := range w.Content.Unchecked().Types() {
		if kind.Kind == "visual" {
			return own{
				bundles.Descriptor{
					ID:     "visual",
					Name:   "host:visual",
					Column: "visualId",
					Icon:   bundles.Icon{SVG: "<svg/>"},
					Editor: "x",
				},
				[]entity.Type{kind},
			}
		}
	}
	panic("no visuals")
}

func TestReadyDrivers(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite(t))
	all, err := w.Bundles.Drivers(w.as(t, "acme"))
	is.NoErr(err)
	var ids, columns []string
	builders := 0
	for _, d := range all {
		ids = append(ids, d.ID)
		is.True(d.Icon.Material != "" && d.Icon.Name == "" && d.Icon.SVG == "")
		if d.Label != "" {
			builders++
		}
		if d.Column != "" {
			columns = append(columns, d.Column)
		}
	}
	is.Equal(
		strings.Join(ids, " "),
		"code global assistant dataset datasource query report tagged user team job template letterhead library "+
			"app toolkit integration",
	)
	is.Equal(builders, 16)
	is.Equal(len(columns), len(bundles.Columns()))
}

// TestHostDrivers join the ready ones, or take the place of one; a bad one fails at the start.
func TestHostDrivers(t *testing.T) {
	is := is.New(t)
	db := dbtest.SQLite(t)
	w := newWorld(t, db)
	with := func(drivers ...bundles.Driver) (*tenantcontent.App, error) {
		return tenantcontent.Open(tenantcontent.Config{
			Scripts:       javascript.New(javascript.Options{}),
			DB:            db,
			SecretKey:     tenantcontent.NewSecretKey(),
			BundleDrivers: drivers,
		})
	}
	replaced := good(w)
	replaced.about.ID = "report"
	app, err := with(good(w), replaced)
	is.NoErr(err)
	all, err := app.Bundles.Drivers(w.as(t, "acme"))
	is.NoErr(err)
	is.Equal(len(all), 18)
	is.Equal(all[6].Column, "visualId") // in the place of the ready one
	is.Equal(all[17].ID, "visual")
	id := w.make(t, "acme", "visual", "V", `{}`)
	b, err := app.Bundles.Create(w.as(t, "acme"), bundles.Bundle{Name: "V"})
	is.NoErr(err)
	e, err := app.Bundles.CreateEntry(w.as(t, "acme"), b.ID, bundles.Entry{Type: "visual", EntityID: id})
	is.NoErr(err)
	is.Equal(e.Ref.Name, "V")

	// A type that the host has no more: its entries stay, and ship nothing.
	got, err := w.Bundles.Entry(w.as(t, "acme"), b.ID, e.ID)
	is.NoErr(err)
	is.Equal(got.Ref, nil)
	_, err = w.Bundles.Export(w.as(t, "acme"), b.ID)
	is.NoErr(err)

	_, err = with(good(w), good(w))
	is.Equal(errs.CodeOf(err), errs.Invalid)
	is.Equal(errs.MessageOf(err), `two bundle drivers have the id "visual"`)
	for name, spoil := range map[string]func(d *own){
		"no id":         func(d *own) { d.about.ID = "" },
		"no name":       func(d *own) { d.about.Name = "" },
		"no editor":     func(d *own) { d.about.Editor = "" },
		"no icon":       func(d *own) { d.about.Icon = bundles.Icon{} },
		"two icons":     func(d *own) { d.about.Icon.Name = "x" },
		"type column":   func(d *own) { d.about.Column = "type" },
		"no content":    func(d *own) { d.content = nil },
		"no lookup":     func(d *own) { d.content[0].Lookup = nil },
		"no transferer": func(d *own) { d.content[0].Transferer = nil },
		"no kind":       func(d *own) { d.content[0].Kind = "" },
		"odd kind":      func(d *own) { d.content[0].Kind = "a/b" },
	} {
		d := good(w)
		spoil(&d)
		if _, err := with(d); errs.CodeOf(err) != errs.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReadyTransferers: what the library ships keeps the promises that a host's kinds must keep.
func TestReadyTransferers(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		fixture := func(t *testing.T, kind entity.Kind) (*world, drivertest.Fixture) {
			w := newWorld(t, open(t))
			f := drivertest.Fixture{Kind: kind, Tenants: [2]string{"acme", "evil"}, Owner: "jo", InTx: w.InTx}
			return w, f
		}
		for _, kind := range []entity.Kind{"tag", "library"} { // the others are made alike
			t.Run(string(kind), func(t *testing.T) {
				drivertest.TestTransferer(t, func(t *testing.T) drivertest.Fixture {
					w, f := fixture(t, kind)
					for _, k := range w.Content.Unchecked().Types() {
						if k.Kind == kind {
							f.Transferer = k.Transferer
						}
					}
					f.Make = func(t *testing.T, tenant string, n int) string {
						return w.make(t, tenant, kind, strings.Repeat("n", n), `{"a": [1, "<é>"]}`)
					}
					f.Free = &drivertest.Free{
						Set: func(t *testing.T, tenant, id string, data json.RawMessage) {
							w.setData(t, tenant, kind, id, string(data))
						},
						Get: func(t *testing.T, tenant, id string) json.RawMessage {
							return json.RawMessage(w.data(t, tenant, kind, id))
						},
					}
					return f
				})
			})
		}
		t.Run("color", func(t *testing.T) {
			drivertest.TestTransferer(t, func(t *testing.T) drivertest.Fixture {
				w, f := fixture(t, colors.Kind)
				f.Transferer = w.Colors.Unchecked().Type().Transferer
				f.Make = func(t *testing.T, tenant string, n int) string {
					key := strings.Repeat("Ü", n)
					_, err := w.Colors.Put(w.as(t, tenant), key, "#abc")
					is.New(t).NoErr(err)
					return key
				}
				return f
			})
		})
		for at, kind := range []entity.Kind{principals.KindUser, principals.KindTeam} {
			t.Run(string(kind), func(t *testing.T) {
				drivertest.TestTransferer(t, func(t *testing.T) drivertest.Fixture {
					w, f := fixture(t, kind)
					f.Transferer = principals.New(
						principals.Options{Store: bunstore.New(w.db)},
					).Unchecked().Types()[at].Transferer
					f.Make = func(t *testing.T, tenant string, n int) string {
						name := strings.Repeat("n", n)
						if kind == principals.KindUser {
							_, err := w.Principals.CreateUser(
								w.as(t, tenant), principals.User{Username: name, Enabled: true}, "",
							)
							is.New(t).NoErr(err)
							return name
						}
						team, err := w.Principals.CreateTeam(w.as(t, tenant), principals.Team{Name: name})
						is.New(t).NoErr(err)
						return team.ID
					}
					if kind == principals.KindUser {
						f.Free = &drivertest.Free{
							Set: func(t *testing.T, tenant, id string, data json.RawMessage) {
								_, err := w.Principals.UpdateUser(w.as(t, tenant), id, func(u *principals.User) error {
									u.UserFields = data
									return nil
								})
								is.New(t).NoErr(err)
							},
							Get: func(t *testing.T, tenant, id string) json.RawMessage {
								u, err := w.Principals.User(w.as(t, tenant), id)
								is.New(t).NoErr(err)
								return u.UserFields
							},
						}
					}
					return f
				})
			})
		}
	})
}
