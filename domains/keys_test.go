package domains_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// signer is a gate whose realms get keys.
type signer struct {
	gate
	mu     *sync.Mutex
	got    *domains.Keys // by the realm that was opened last
	opened *int
}

func (s signer) Info() domains.Info {
	i := s.gate.Info()
	i.ID = "signer"
	return i
}

func (s signer) OpenWithKeys(config json.RawMessage, keys domains.Keys) (domains.Realm, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*s.got = keys
	*s.opened++
	return s.Open(config)
}

// TestKeys: a domain gets a key when it is saved, two rolls replace it, and nobody reads it.
func TestKeys(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		var got domains.Keys
		var opened int
		driver := signer{gate{w.gate}, &sync.Mutex{}, &got, &opened}
		w.Service = w.with(t, func(o *options) { o.Drivers = append(o.Drivers, driver) })
		d := w.add(t, "Entry", "signer", `{"url": "https://a"}`)
		is.Equal(d.SealedKeys, "")
		first := got.Current
		is.True(first != nil && got.Next == nil && got.Previous == nil)
		is.NoErr(first.Certificate.CheckSignature(
			first.Certificate.SignatureAlgorithm, first.Certificate.RawTBSCertificate,
			first.Certificate.Signature,
		))
		is.Equal(first.Certificate.Subject.CommonName, "entry")

		use := func(all []domains.KeyInfo) (uses string) {
			for _, k := range all {
				uses += k.Use + " "
			}
			return uses
		}
		all, err := w.DomainKeys(root(t), "entry")
		is.NoErr(err)
		is.Equal(use(all), "current ")
		is.True(all[0].Certificate.Equal(first.Certificate))
		is.Equal(all[0].Bits, 2048)

		roll := func() (string, domains.Keys) {
			t.Helper()
			all, err := w.RollKeys(root(t), "entry")
			is.NoErr(err)
			_, err = w.Get(root(t), "entry") // which opens it
			is.NoErr(err)
			return use(all), got
		}
		uses, k := roll()
		is.Equal(uses, "current next ")
		is.True(k.Current.Key.Equal(first.Key) && !k.Next.Key.Equal(first.Key))
		second := k.Next
		uses, k = roll()
		is.Equal(uses, "current previous ")
		is.True(k.Current.Key.Equal(second.Key) && k.Previous.Key.Equal(first.Key) && k.Next == nil)
		is.Equal(len(k.All()), 2)
		uses, k = roll()
		is.Equal(uses, "current next previous ")
		uses, k = roll()
		is.Equal(uses, "current previous ")
		is.True(k.Previous.Key.Equal(second.Key))

		// Edits keep them, also those that save the same; another service over the database opens
		// them.
		before := k.Current.Key
		for _, config := range []string{`{"url": "https://a"}`, `{"url": "https://b"}`} {
			_, err := w.Update(root(t), "entry", func(d *domains.Domain) error {
				is.Equal(d.SealedKeys, "")
				d.Config = json.RawMessage(config)
				return nil
			})
			is.NoErr(err)
			_, err = w.with(t, func(o *options) { o.Drivers = append(o.Drivers, driver) }).Get(root(t), "entry")
			is.NoErr(err)
			is.True(got.Current.Key.Equal(before))
		}

		// What is stored is sealed for its place.
		var stored []string
		ctx, c := bunx.For(t.Context(), w.db, "acme")
		is.NoErr(
			c.NewRaw(`SELECT keys_sealed FROM tc_domains WHERE tenant_id = 'acme' `+
				`AND keys_sealed IS NOT NULL`).Scan(ctx, &stored),
		)
		is.Equal(len(stored), 1)
		is.True(strings.HasPrefix(stored[0], "v1."))

		// A change to a driver without keys removes them, and a change back generates others.
		retype := func(to string) {
			t.Helper()
			_, err := w.Update(root(t), "entry", func(d *domains.Domain) error { d.Type = to; return nil })
			is.NoErr(err)
		}
		retype("gate")
		all, err = w.DomainKeys(root(t), "entry")
		is.NoErr(err)
		is.Equal(len(all), 0)
		_, err = w.RollKeys(root(t), "entry")
		is.Equal(errs.CodeOf(err), errs.Invalid)
		retype("signer")
		is.True(got.Current != nil && !got.Current.Key.Equal(before))

		// A domain that was saved before there were keys has none until it is saved, or its keys
		// are rolled.
		_, err = w.store.Update(t.Context(), "acme", "entry", func(d *domains.Domain) error {
			d.SealedKeys = ""
			return nil
		})
		is.NoErr(err)
		got = domains.Keys{Current: first}
		_, err = w.Get(root(t), "entry")
		is.NoErr(err)
		is.True(got.Current == nil)
		uses, k = roll()
		is.Equal(uses, "current ")
		is.True(k.Current != nil)

		for id, ctx := range map[string]struct {
			tenant, user string
			super        bool
			want         errs.Code
		}{
			"entry": {"acme", "jo", false, errs.Forbidden},
			"none":  {"acme", "root", true, errs.NotFound},
			"local": {"acme", "root", true, errs.Invalid},
		} {
			_, err := w.RollKeys(as(t, ctx.tenant, ctx.user, ctx.super), id)
			is.Equal(errs.CodeOf(err), ctx.want)
		}
		_, err = w.DomainKeys(as(t, "evil", "root", true), "entry")
		is.Equal(errs.CodeOf(err), errs.NotFound)
		_, err = w.DomainKeys(as(t, "acme", "jo", false), "entry")
		is.Equal(errs.CodeOf(err), errs.Forbidden)
	})
}

// TestKeysRolledAtOnce: of two who roll at once, one succeeds, or both do one after the other; no
// key is lost without a word.
func TestKeysRolledAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		var got domains.Keys
		var opened int
		w.Service = w.with(t, func(o *options) {
			o.Drivers = append(o.Drivers, signer{gate{w.gate}, &sync.Mutex{}, &got, &opened})
		})
		w.add(t, "Entry", "signer", `{}`)
		var all sync.WaitGroup
		var mu sync.Mutex
		rolled := 0
		for range 4 {
			all.Go(func() {
				_, err := w.RollKeys(root(t), "entry")
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					rolled++
				} else if errs.CodeOf(err) != errs.Conflict {
					t.Error(err)
				}
			})
		}
		all.Wait()
		infos, err := w.DomainKeys(root(t), "entry")
		is.NoErr(err)
		is.True(rolled >= 1)
		wants := map[int]string{1: "next", 2: "previous", 3: "next", 4: "previous"}
		is.Equal(infos[1].Use, wants[rolled])
	})
}
