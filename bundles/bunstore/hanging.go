package bunstore

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
)

// Dependents implements bundles.Store. It reads the tables of other nouns, as none of them knows of what is lost with it.
func (s *Store) Dependents(ctx context.Context, tenant string, kind entity.Kind, ids []string, at time.Time) (bundles.Dependents, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	h := bundles.Dependents{Memberships: map[string]int{}}
	for some := range slices.Chunk(ids, batch) {
		n := 0
		err := c.One(ctx, "Comment", `SELECT count(*) FROM tc_comments WHERE tenant_id = $1 AND kind = $2 AND parent_id IS NULL AND entity_id IN `+
			bunx.In(3, len(some)), bunx.Args(some, tenant, string(kind)), &n)
		if err == nil && kind == "user" {
			err = s.ofUsers(ctx, c, tenant, some, at, &h)
		}
		if err != nil {
			return h, err
		}
		h.Comments += n
	}
	return h, nil
}

// Additions implements bundles.Store.
func (s *Store) Additions(ctx context.Context, tenant string, kind entity.Kind, ids []string) (map[string]bundles.Additions, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	all := map[string]bundles.Additions{}
	count := func(query string, args []any, add func(*bundles.Additions, int)) error {
		rows, err := c.Rows(ctx, query, args...)
		_, err = bunx.Scan(rows, err, func(rows *sql.Rows) (id string, err error) {
			var n int
			err = rows.Scan(&id, &n)
			a := all[id]
			add(&a, n)
			all[id] = a
			return id, err
		})
		return err
	}
	for some := range slices.Chunk(ids, batch) {
		err := count(`SELECT entity_id, count(*) FROM tc_comments WHERE tenant_id = $1 AND kind = $2 AND parent_id IS NULL AND entity_id IN `+
			bunx.In(3, len(some))+` GROUP BY entity_id`, bunx.Args(some, tenant, string(kind)), func(a *bundles.Additions, n int) { a.Comments = n })
		if err == nil && kind == "team" {
			err = count(`SELECT team_id, count(*) FROM tc_memberships WHERE tenant_id = $1 AND team_id IN `+
				bunx.In(2, len(some))+` GROUP BY team_id`, bunx.Args(some, tenant), func(a *bundles.Additions, n int) { a.Members = n })
		}
		if err != nil {
			return nil, bunx.Err(err, "Comment")
		}
	}
	return all, nil
}

// Superusers implements bundles.Store.
func (s *Store) Superusers(ctx context.Context, tenant string, usernames []string) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	var all []string
	for some := range slices.Chunk(usernames, batch) {
		rows, err := c.Rows(ctx, `SELECT username FROM tc_users WHERE tenant_id = $1 AND superuser AND username IN `+bunx.In(2, len(some)),
			bunx.Args(some, tenant)...)
		names, err := bunx.Scan(rows, err, func(rows *sql.Rows) (name string, err error) {
			err = rows.Scan(&name)
			return name, err
		})
		if err != nil {
			return nil, bunx.Err(err, "User")
		}
		all = append(all, names...)
	}
	return all, nil
}

// ofUsers adds what hangs on some users.
func (s *Store) ofUsers(ctx context.Context, c bunx.Conn, tenant string, names []string, at time.Time, h *bundles.Dependents) error {
	var n [12]int
	these := `tenant_id = $1 AND username IN ` + bunx.In(3, len(names))
	err := c.One(ctx, "User", `SELECT count(password_hash), count(CASE WHEN superuser THEN 1 END), count(avatar_id),
		(SELECT count(*) FROM tc_tokens WHERE `+these+`), (SELECT count(*) FROM tc_sessions WHERE expires_at > $2 AND `+these+`),
		(SELECT count(*) FROM tc_uploads WHERE expires_at > $2 AND `+these+`) + (SELECT count(*) FROM tc_downloads WHERE expires_at > $2 AND `+these+`),
		count(CASE WHEN may_ai THEN 1 END) + count(CASE WHEN may_create_jobs THEN 1 END) + count(CASE WHEN may_view_all_teams THEN 1 END) +
		count(CASE WHEN may_view_all_users THEN 1 END) + count(CASE WHEN may_script THEN 1 END),
		(SELECT count(*) FROM tc_comments WHERE tenant_id = $1 AND NOT author_gone AND user_id IN `+bunx.In(3, len(names))+`),
		count(CASE WHEN mfa THEN 1 END), count(CASE WHEN ai_consent THEN 1 END), count(ai_message),
		(SELECT count(*) FROM tc_notifications WHERE `+these+`)
		FROM tc_users WHERE `+these, bunx.Args(names, tenant, bunx.At(at)), &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6], &n[7], &n[8], &n[9], &n[10], &n[11])
	if err != nil {
		return err
	}
	for i, count := range []*int{
		&h.Passwords, &h.SuperuserRights, &h.Pictures, &h.Tokens, &h.Sessions, &h.Files, &h.Permissions, &h.Authorships,
		&h.MFA, &h.AIConsents, &h.AIMessages, &h.Notifications,
	} {
		*count += n[i]
	}
	rows, err := c.Rows(ctx, `SELECT team_id, count(*) FROM tc_memberships WHERE tenant_id = $1 AND username IN `+bunx.In(2, len(names))+
		` GROUP BY team_id`, bunx.Args(names, tenant)...)
	_, err = bunx.Scan(rows, err, func(rows *sql.Rows) (team string, err error) {
		var n int
		err = rows.Scan(&team, &n)
		h.Memberships[team] += n
		return team, err
	})
	return bunx.Err(err, "Membership")
}
