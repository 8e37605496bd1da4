package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	appstore "github.com/tenantcontent/tenantcontent/internal/store/apps"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// gallery is a tenant with very many apps, and sketch one with few. The same member of 20 teams
// looks at both.
const gallery, sketch = "gallery", "sketch"

// appsPage reads pages of 20 apps out of 10,000 visible and 100,000 invisible ones, one caller,
// against pages out of 100 apps.
func appsPage(ctx context.Context, w *world) (result, error) {
	many, err := w.newApps(ctx, gallery, 9500, 500, 100_000)
	if err != nil {
		return result{}, err
	}
	few, err := w.newApps(ctx, sketch, 95, 5, 0)
	if err != nil {
		return result{}, err
	}
	if err := w.vacuum(ctx); err != nil {
		return result{}, err
	}
	side := func(token string) func() (float64, error) {
		return func() (float64, error) {
			c, err := dial(w.ours, token)
			if err != nil {
				return 0, err
			}
			defer func() { _ = c.conn.Close() }()
			const pages = 100
			begin := time.Now()
			for range pages {
				n, err := c.do("GET", "/api/apps?limit=20", "")
				if err == nil && n < 20*200 {
					err = fmt.Errorf("a page of %d bytes is not whole", n)
				}
				if err != nil {
					return 0, err
				}
			}
			return time.Since(begin).Seconds() / pages, nil
		}
	}
	ours, bare, ratio, err := inTurn(side(many), side(few))
	return result{
		ours:  seconds(ours) + " of 110,000",
		bare:  seconds(bare) + " of 100",
		ratio: ratio,
		must:  "≤ 3.00",
		met:   ratio <= 3,
	}, err
}

// newApps makes a tenant with apps and a member of 20 teams, and returns the member's session: apps
// that the member or a team owns, others that are shared with them, and others that they do not
// see, all of 2,000 other teams and shared with others.
func (w *world) newApps(ctx context.Context, tenant string, owned, shared, invisible int) (token string, err error) {
	if _, err := w.app.AddTenant(ctx, tenants.Tenant{ID: tenant}, password); err != nil {
		return "", err
	}
	admin := actor.With(ctx, actor.Actor{Tenant: tenant, User: "admin", Superuser: true})
	if _, err := w.app.Principals.CreateUser(
		admin, principals.User{Username: "member", Enabled: true}, password,
	); err != nil {
		return "", err
	}
	mine := []string{"member"}
	for i := range 20 {
		team, err := w.app.Principals.CreateTeam(admin, principals.Team{Name: fmt.Sprint("Team ", i)})
		if err != nil {
			return "", err
		}
		if _, err := w.app.Principals.PutMember(admin, team.ID, "member", actor.Member); err != nil {
			return "", err
		}
		mine = append(mine, team.ID)
	}
	var all []apps.App
	for n := range owned + shared + invisible {
		a := apps.App{
			ID:        fmt.Sprintf("00000000-0000-7000-8000-%012d", n),
			LibraryID: fmt.Sprintf("00000000-0000-7000-9000-%012d", n), Type: apps.Report,
			Name: fmt.Sprintf("App %06d", n*7919%1_000_003), OwnerID: fmt.Sprint("other-", n%2000),
			Defn: []byte(`{"a":1}`), Settings: []byte(`{}`),
			Shared: n >= owned, CreatedAt: time.Now(), UpdatedAt: time.Now(),
		}
		if n < owned {
			a.OwnerID = mine[n%len(mine)]
		}
		all = append(all, a)
	}
	if err := appstore.New(w.db).PutAll(bunx.WithWork(ctx, bunx.Unbounded), tenant, all, nil); err != nil {
		return "", err
	}
	err = bunx.Write(ctx, w.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		var rows []any
		for n := owned; n < len(all); n++ {
			principal := fmt.Sprint("stranger-", n%50)
			if n < owned+shared {
				principal = mine[n%len(mine)]
			}
			at := bunx.At(all[n].CreatedAt)
			if rows = append(rows, tenant, all[n].ID, principal, 1, "[]", at, at); len(rows) < 7*500 && n+1 < len(all) {
				continue
			}
			_, err := c.Exec(ctx,
				`INSERT INTO tc_app_shares (tenant_id, entity_id, principal_id, access_level, roles, created_at, `+
					`updated_at) VALUES `+
					bunx.Values(len(rows)/7, 7), rows...)
			if rows = rows[:0]; err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	l, err := w.app.Sessions.Login(ctx, principals.Credentials{
		Tenant: tenant, Domain: "local", Username: "member", Password: password,
	})
	return l.Token, err
}

// vacuum has PostgreSQL count, and note which rows are visible to all, as it does by itself a
// minute later.
func (w *world) vacuum(ctx context.Context) error {
	if w.engine != "postgres" {
		return nil
	}
	for table := range strings.FieldsSeq("tc_apps tc_app_shares") {
		if _, err := w.db.ExecContext(ctx, "VACUUM ANALYZE "+table); err != nil {
			return err
		}
	}
	return nil
}
