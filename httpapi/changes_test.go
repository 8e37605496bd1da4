package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// unannounced are the routes that write, or may, and announce no change, with the reason.
var unannounced = map[string]string{
	"putNotification":      readByUser,
	"putNotifications":     readByUser,
	"putViewedFeed":        readByUser,
	"logout":               endsSession,
	"singleLogoutByForm":   endsSession,
	"receiveLogout":        endsSession,
	"exportBundle":         onlyReads,
	"exportEntries":        onlyReads,
	"exportApp":            onlyReads,
	"compareApp":           onlyReads,
	"testDomain":           onlyReads,
	"testNewDomain":        onlyReads,
	"searchSCIMUsers":      onlyReads,
	"searchSCIMGroups":     onlyReads,
	"suggestAppIcon":       onlyReads,
	"modernizeAppManifest": onlyReads,
	"makeAssistantImage":   onlyReads,
	"chatWithApp":          onlyRuns,
	"chatWithAssistant":    onlyRuns,
	"postToAppServer":      onlyRuns,
	"putToAppServer":       onlyRuns,
	"patchAtAppServer":     onlyRuns,
	"deleteAtAppServer":    onlyRuns,
	"postWebhook":          onlyRuns,
	"postWebhookRoot":      onlyRuns,
	"putWebhook":           onlyRuns,
	"putWebhookRoot":       onlyRuns,
	"replayAppInvocation":  onlyRuns,
	"triggerAgent":         onlyRuns,
	"cancelAgentRun":       onlyRuns,
	"migrateApp":           "the tables of an app's own database are no entities",
}

const (
	readByUser  = "what a user has read is no entity"
	endsSession = "a session is no entity"
	onlyReads   = "it only reads"
	onlyRuns    = "a run is no entity, and what it calls announces itself"
)

// TestWritingRoutesAnnounce: each route that is not a GET announces a change when its sample is
// called, or has a reason not to.
func TestWritingRoutesAnnounce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		s := stocked(t, open, func(c *tenantcontent.Config) { c.KeepChanges = true })
		for _, user := range []string{"admin", "nora"} {
			s.token(t, user)
		}
		_, err := s.app.Content.Create(
			actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "mia", Superuser: true}),
			content.Entity{Kind: "report", Name: "Of mia"}, // for reassignPrincipal
		)
		is.NoErr(err)
		last := map[string]int64{}
		changes := func() (n int) {
			for _, tenant := range []string{"acme", "evil"} {
				page, err := s.app.Changes(t.Context(), tenant, last[tenant], 0)
				is.NoErr(err)
				last[tenant] = page.Next
				n += len(page.Rows)
			}
			return n
		}
		changes()
		for _, r := range httpapi.Routes() {
			if a := s.call(t, who(r), r); a.status >= 400 {
				t.Errorf("%s: %d %s", r.Name, a.status, a.body)
			}
			n, why := changes(), unannounced[r.Name]
			switch {
			case r.Method == http.MethodGet:
			case n == 0 && why == "":
				t.Errorf("%s announces nothing", r.Name)
			case n > 0 && why != "":
				t.Errorf("%s announces %d changes, although: %s", r.Name, n, why)
			}
		}
	})
}

// canary begins what must not be in a change.
const canary = "canary-"

// TestChangesHaveNoSecrets: neither the changes that are kept nor those that listeners hear of have
// a password, hash, token, key or value of an environment, whatever is written, also in data that
// the service does not define.
func TestChangesHaveNoSecrets(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		var mu sync.Mutex
		var heard [][]byte
		hear := func(c entity.Change) {
			raw, err := json.Marshal(c)
			is.NoErr(err)
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, raw)
		}
		s := stocked(t, open, func(c *tenantcontent.Config) {
			c.KeepChanges = true
			c.Before = append(c.Before, func(_ context.Context, c entity.Change) error { hear(c); return nil })
			c.After = append(c.After, func(_ context.Context, c entity.Change) { hear(c) })
		})
		secrets := map[string]string{"password of all": password, "hush-hush": "hush-hush"}
		created := func(path, body string) string {
			return read[struct{ ID string }](t, s.must(t, "admin", "POST", path, body)).ID
		}
		s.must(t, "admin", "POST", "/api/users", `{"username": "bird", "password": "canary-of-user",
			"data": {"apiToken": "canary-user-data"}, "userFields": {"pin": "canary-user-field"}}`)
		s.must(t, "admin", "PUT", "/api/users/bird/password", `{"password": "canary-new-password"}`)
		s.must(t, "admin", "PUT", "/api/users/bird", `{"data": {"apiToken": "canary-user-data-2"}}`)
		s.must(t, "admin", "POST", "/api/domains",
			`{"name": "Cage", "type": "paper", "config": {"secret": "canary-domain"}}`)
		s.must(t, "admin", "PUT", "/api/domains/cage",
			`{"id": "cage", "type": "paper", "config": {"secret": "canary-domain-2"}}`)
		app := created("/api/apps", `{"type": "report", "name": "Cage", "defn": {"env": {"KEY": "canary-env"}},
			"settings": {"password": "canary-app-settings"}}`)
		s.must(t, "admin", "PUT", "/api/apps/"+app+"/environment/OTHER", `{"value": "canary-env-2"}`)
		s.must(t, "admin", "PUT", "/api/apps/"+app, `{"defn": {"env": {"KEY": "canary-env-3"}}}`)
		s.must(t, "admin", "POST", "/api/apps/"+app+"/_rotate-webhook-secret", "")
		assistant := created("/api/assistants", `{"name": "Cage", "data": {"clientSecret": "canary-assistant-data"}}`)
		s.must(t, "admin", "PUT", "/api/assistants/"+assistant+"/secrets/KEY", `{"value": "canary-assistant"}`)
		source := created("/api/datasources", `{"name": "Cage", "data": {"password": "canary-data",
			"env": {"A": "canary-data-env"}}}`)
		s.must(t, "admin", "PUT", "/api/datasources/"+source, `{"data": {"password": "canary-data-2"}}`)
		s.must(t, "admin", "DELETE", "/api/datasources/"+source, "")
		for _, r := range httpapi.Routes() {
			a := s.call(t, who(r), r)
			if !r.Secret || a.status >= 300 {
				continue
			}
			var body map[string]any
			if json.Unmarshal([]byte(a.body), &body) != nil {
				continue
			}
			for _, name := range []string{"key", "token", "secret", "credential"} {
				if text, ok := body[name].(string); ok && len(text) > 20 {
					secrets[r.Name] = text
				}
			}
		}
		is.True(len(secrets) >= 6) // the credentials of all sorts of tokens
		for i, token := range slices.Collect(maps.Values(s.sessions)) {
			secrets[fmt.Sprint("session ", i)] = token
		}
		for _, column := range []string{
			"tc_sessions.id", "tc_tokens.secret_hash", "tc_apps.env_sealed", "tc_apps.webhook_secret",
			"tc_assistants.secrets_sealed", "tc_webhook_requests.key_sealed", "tc_workspaces.password",
		} {
			table, name, _ := strings.Cut(column, ".")
			var all []string
			is.NoErr(s.db.NewRaw("SELECT DISTINCT "+name+" FROM "+table+" WHERE length("+name+") > 20").
				Scan(t.Context(), &all))
			for i, text := range all {
				secrets[fmt.Sprint(column, " ", i)] = text
			}
		}
		kept := 0
		for _, tenant := range []string{"acme", "evil"} {
			for at := int64(0); ; {
				page, err := s.app.Changes(t.Context(), tenant, at, 0)
				is.NoErr(err)
				if at = page.Next; len(page.Rows) == 0 {
					break
				}
				for _, c := range page.Rows {
					is.Equal(c.Tenant, tenant)
					kept++
					hear(c)
				}
			}
		}
		is.True(kept > 200)
		is.True(len(heard) > 2*kept)
		for _, raw := range heard {
			if bytes.Contains(raw, []byte(canary)) {
				t.Errorf("a canary is in %s", raw)
			}
			for name, secret := range secrets {
				if bytes.Contains(raw, []byte(secret)) {
					t.Errorf("%s is in %s", name, raw)
				}
			}
		}
	})
}

// TestChangesOfTenantsAreApart: what one tenant does is in no change of another one, but for what a
// deploy brings there, which has no caller.
func TestChangesOfTenantsAreApart(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		s := stocked(t, open, func(c *tenantcontent.Config) { c.KeepChanges = true })
		page, err := s.app.Changes(t.Context(), "evil", -1, 0)
		is.NoErr(err)
		for _, r := range httpapi.Routes() {
			s.call(t, who(r), r)
		}
		after, err := s.app.Changes(t.Context(), "evil", page.Next, 0)
		is.NoErr(err)
		is.Equal(len(after.Rows), 0)
		s.must(t, "eve", "PUT", "/api/tenant", `{"settings": {"deployFrom": [{"tenant": "acme", "runAs": "eve"}]}}`)
		report := s.must(t, "admin", "POST", "/api/reports", `{"name": "Shared"}`)
		id := read[struct{ ID string }](t, report).ID
		s.must(t, "admin", "POST", "/api/_bundle-deploy",
			`{"entries": [{"type": "report", "reportId": "`+id+`"}], "tenants": ["evil"]}`)
		after, err = s.app.Changes(t.Context(), "evil", after.Next, 0)
		is.NoErr(err)
		var brought []entity.Change
		for _, c := range after.Rows {
			if c.Kind == "report" {
				brought = append(brought, c)
			}
			if c.Kind != "tenant" && c.Kind != entity.KindUser {
				is.Equal(c.Actor, "")
			}
		}
		is.Equal(len(brought), 1)
		is.Equal([]string{string(brought[0].Action), brought[0].ID}, []string{"create", id})
	})
}
