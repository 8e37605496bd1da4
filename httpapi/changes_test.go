package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/content"
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
