package bunstore

import (
	"context"
	"database/sql"
	"iter"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/principals"
)

const (
	onePrincipal = `SELECT p.id, p.type, p.label, t.name, u.display_name, u.email, u.avatar_id, u.avatar_updated_at,
		t.color, t.icon, t.material_icon FROM tc_principals p
		LEFT JOIN tc_users u ON p.type = 'User' AND u.tenant_id = p.tenant_id AND u.username = p.id
		LEFT JOIN tc_teams t ON p.type = 'Team' AND t.tenant_id = p.tenant_id AND t.id = p.id
		WHERE p.tenant_id = $1 AND p.id = $2`
	// somePrincipals merges the next users and the next teams, each read in the order of an index
	// on label. A join of tc_principals would look up each row in both tables. The separate
	// condition on label is for the index.
	somePrincipals = `SELECT * FROM (
		SELECT username AS id, 'User' AS type, label, NULL AS name, display_name, email, avatar_id, avatar_updated_at,
			NULL AS color, NULL AS icon, NULL AS material_icon
			FROM tc_users WHERE tenant_id = $1 AND label >= $2 AND (label, username) > ($2, $3) ORDER BY label, username LIMIT $4) AS u
		UNION ALL SELECT * FROM (
		SELECT id, 'Team', label, name, NULL, NULL, NULL, CAST(NULL AS timestamptz), color, icon, material_icon
			FROM tc_teams WHERE tenant_id = $1 AND label >= $2 AND (label, id) > ($2, $3) ORDER BY label, id LIMIT $4) AS t
		ORDER BY label, id LIMIT $4`
)

// scan reads a row of either statement, and the label by which it is ordered.
func scan(row interface{ Scan(...any) error }) (p principals.Principal, label string, err error) {
	var teamName *string
	var avatarAt bunx.Time
	err = row.Scan(&p.ID, &p.Type, &label, &teamName, &p.DisplayName, &p.Email, &p.AvatarID, &avatarAt,
		&p.Color, &p.Icon, &p.MaterialIcon)
	p.AvatarUpdatedAt = avatarAt.Ptr()
	switch {
	case teamName != nil:
		p.Name = *teamName
	case p.DisplayName != nil:
		p.Name = *p.DisplayName
	default:
		p.Name = p.ID
	}
	return p, label, err
}

// Principal implements principals.Store.
func (s *Store) Principal(ctx context.Context, tenant, id string) (principals.Principal, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	p, _, err := scan(c.Row(ctx, onePrincipal, tenant, id))
	if err != nil {
		return principals.Principal{}, bunx.Err(err, "Principal")
	}
	return p, nil
}

// Principals implements principals.Store.
func (s *Store) Principals(ctx context.Context, tenant string) iter.Seq2[principals.Principal, error] {
	return func(yield func(principals.Principal, error) bool) {
		label, id := "", ""
		for {
			some, last, err := s.some(ctx, tenant, label, id)
			if err != nil {
				yield(principals.Principal{}, err)
				return
			}
			for _, p := range some {
				if !yield(p, nil) {
					return
				}
			}
			if len(some) < s.chunk {
				return
			}
			label, id = last, some[len(some)-1].ID
		}
	}
}

// some returns up to chunk principals after a position, and the label of the last one.
func (s *Store) some(
	ctx context.Context, tenant, label, id string,
) (some []principals.Principal, last string, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, somePrincipals, tenant, label, id, s.chunk)
	some, err = bunx.Scan(rows, err, func(rows *sql.Rows) (p principals.Principal, err error) {
		p, last, err = scan(rows)
		return p, err
	})
	return some, last, bunx.Err(err, "Principal")
}
