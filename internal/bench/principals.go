package main

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	principalstore "github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// crowd is a tenant of its own for what needs many people, so that other measurements do not meet
// them.
const crowd = "crowd"

// newCrowd makes the tenant with its superuser, and returns the superuser's session and context. It
// does nothing when it is there.
func (w *world) newCrowd(ctx context.Context) (token string, admin context.Context, err error) {
	if _, err := w.app.Tenants.Unchecked().Lookup(ctx, crowd); err != nil {
		if _, err := w.app.AddTenant(ctx, tenants.Tenant{ID: crowd}, password); err != nil {
			return "", nil, err
		}
	}
	l, err := w.app.Sessions.Login(ctx, principals.Credentials{
		Tenant: crowd, Domain: "local", Username: "admin", Password: password,
	})
	return l.Token, actor.With(ctx, actor.Actor{Tenant: crowd, User: "admin", Superuser: true}), err
}

// listPrincipals streams the list of 100,000 principals, one caller, against one statement whose
// rows are written by hand.
func listPrincipals(ctx context.Context, w *world) (result, error) {
	token, _, err := w.newCrowd(ctx)
	if err != nil {
		return result{}, err
	}
	store := principalstore.New(w.db)
	for i := 0; i < 100_000; i += 500 {
		some := make([]principals.User, 500)
		for n := range some {
			name := fmt.Sprintf("Person %06d of Many", (i+n)*7919%1_000_003)
			some[n] = principals.User{
				Username: fmt.Sprintf("person-%06d", i+n), Domain: "local", DisplayName: &name, Enabled: true,
				Data: []byte(`{}`), UserFields: []byte(`{}`), CreatedAt: time.Now(), UpdatedAt: time.Now(),
			}
		}
		if err := store.PutUsers(ctx, crowd, some); err != nil {
			return result{}, err
		}
	}
	if err := w.analyze(ctx); err != nil {
		return result{}, err
	}
	bare, err := w.serve(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if err := barePrincipals(r.Context(), w.db.DB, out); err != nil {
			http.Error(out, err.Error(), http.StatusInternalServerError)
		}
	}))
	if err != nil {
		return result{}, err
	}
	once := func(address string) func() (float64, error) {
		return func() (float64, error) {
			c, err := dial(address, token)
			if err != nil {
				return 0, err
			}
			defer func() { _ = c.conn.Close() }()
			begin := time.Now()
			n, err := c.do("GET", "/api/principal-list", "")
			if err == nil && n < 30<<20 {
				err = fmt.Errorf("a list of %d bytes is not whole", n)
			}
			return time.Since(begin).Seconds(), err
		}
	}
	ours, limit, ratio, err := inTurn(once(w.ours), once(bare))
	if err != nil {
		return result{}, err
	}
	grown, err := peak(func() error { _, err := once(w.ours)(); return err })
	return result{
		ours: fmt.Sprintf("%s, %.0f MiB", seconds(ours), grown), bare: seconds(limit),
		ratio: ratio, must: "≤ 1.50, memory flat (< 16 MiB)",
		met: ratio <= 1.5 && grown < 16,
	}, err
}

// barePrincipals writes what principal-list does, from one statement.
func barePrincipals(ctx context.Context, db *sql.DB, w io.Writer) error {
	rows, err := db.QueryContext(ctx,
		`SELECT p.id, p.type, t.name, u.display_name, u.email, u.avatar_updated_at, t.color, t.icon, t.material_icon
		FROM tc_principals p
		LEFT JOIN tc_users u ON p.type = 'User' AND u.tenant_id = p.tenant_id AND u.username = p.id
		LEFT JOIN tc_teams t ON p.type = 'Team' AND t.tenant_id = p.tenant_id AND t.id = p.id
		WHERE p.tenant_id = $1 AND p.type <> 'Everyone' ORDER BY p.label, p.id`, crowd)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	out := bufio.NewWriterSize(w, 64<<10)
	_ = out.WriteByte('[')
	var dst []byte
	for first := true; rows.Next(); first = false {
		var p principals.Principal
		var team *string
		var avatar bunx.Time
		if err := rows.Scan(
			&p.ID, &p.Type, &team, &p.DisplayName, &p.Email, &avatar, &p.Color, &p.Icon, &p.MaterialIcon,
		); err != nil {
			return err
		}
		if dst = dst[:0]; !first {
			dst = append(dst, ',')
		}
		p.Name = p.ID
		userID, teamID := &p.ID, (*string)(nil)
		if team != nil {
			p.Name, userID, teamID = *team, nil, &p.ID
		} else if p.DisplayName != nil {
			p.Name = *p.DisplayName
		}
		index, background, text := principals.Avatar(crowd, p.ID)
		dst = hal.AppendString(append(dst, `{"id":`...), p.ID)
		dst = hal.AppendStringOrNull(append(dst, `,"userId":`...), userID)
		dst = hal.AppendStringOrNull(append(dst, `,"teamId":`...), teamID)
		dst = hal.AppendString(append(dst, `,"type":`...), string(p.Type))
		dst = hal.AppendString(append(dst, `,"name":`...), p.Name)
		dst = hal.AppendStringOrNull(append(dst, `,"username":`...), userID)
		dst = hal.AppendStringOrNull(append(dst, `,"displayName":`...), p.DisplayName)
		dst = hal.AppendStringOrNull(append(dst, `,"email":`...), p.Email)
		dst = hal.AppendString(append(dst, `,"initials":`...), p.Initials())
		dst = hal.AppendString(append(dst, `,"avatarColor":{"background":`...), background)
		dst = hal.AppendString(append(dst, `,"text":`...), text)
		dst = strconv.AppendInt(append(dst, `},"colorIndex":`...), int64(index), 10)
		dst = hal.AppendTimeOrNull(append(dst, `,"avatarUpdatedAt":`...), avatar.Ptr())
		dst = hal.AppendStringOrNull(append(dst, `,"color":`...), p.Color)
		dst = hal.AppendStringOrNull(append(dst, `,"icon":`...), p.Icon)
		dst = hal.AppendStringOrNull(append(dst, `,"materialIcon":`...), p.MaterialIcon)
		dst = hal.AppendString(append(dst, `,"tenant":`...), crowd)
		if _, err := out.Write(append(dst, '}')); err != nil {
			return err
		}
	}
	_ = out.WriteByte(']')
	if err := out.Flush(); err != nil {
		return err
	}
	return rows.Err()
}

// peak returns by how many MiB the heap in use grows while f runs.
func peak(f func() error) (float64, error) {
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	stop, top := make(chan struct{}), make(chan uint64)
	go func() {
		most := uint64(0)
		for {
			select {
			case <-stop:
				top <- most
				return
			case <-time.After(5 * time.Millisecond):
				runtime.ReadMemStats(&now)
				most = max(most, now.HeapInuse)
			}
		}
	}()
	err := f()
	close(stop)
	return float64(int64(<-top)-int64(before.HeapInuse)) / (1 << 20), err
}

// reassignMany moves 100,000 rows of ten kinds from one owner to another over HTTP, against the
// bare UPDATEs.
func reassignMany(ctx context.Context, w *world) (result, error) {
	token, admin, err := w.newCrowd(ctx)
	if err != nil {
		return result{}, err
	}
	var owners []string
	for _, name := range []string{"Old owners", "New owners"} {
		t, err := w.app.Principals.CreateTeam(admin, principals.Team{Name: name})
		if err != nil {
			return result{}, err
		}
		owners = append(owners, t.ID)
	}
	kinds := []entity.Kind{"dataset", "datasource", "report", "query", "file", "job", "visual", "library", "template"}
	err = bunx.Write(ctx, w.db, crowd, func(ctx context.Context, c bunx.Conn) error {
		now := bunx.At(time.Now())
		for n := 0; n < 100_000; n += 500 {
			var args []any
			for i := n; i < n+500; i++ {
				name := fmt.Sprintf("Piece %06d", i)
				args = append(
					args, crowd, fmt.Sprintf("00000000-0000-7000-8000-%012d", i), kinds[i%len(kinds)], name,
					name, name, owners[0], "{}", false, now, now,
				)
			}
			if _, err := c.Exec(ctx,
				`INSERT INTO tc_entities (tenant_id, id, kind, name, label, search, owner_id, data, system,
					created_at, updated_at)
				VALUES `+bunx.Values(500, 11), args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return result{}, err
	}
	at := 0 // whose they are
	ours := func() (float64, error) {
		c, err := dial(w.ours, token)
		if err != nil {
			return 0, err
		}
		defer func() { _ = c.conn.Close() }()
		from, to := owners[at], owners[1-at]
		begin := time.Now()
		n, err := c.do("POST", "/api/principals/"+from+"/_reassign", `{"to":"`+to+`"}`)
		if err == nil && n < 10<<20 {
			err = fmt.Errorf("an answer of %d bytes is not whole", n)
		}
		at = 1 - at
		return time.Since(begin).Seconds(), err
	}
	bare := func() (float64, error) {
		begin := time.Now()
		err := bunx.Write(ctx, w.db, crowd, func(ctx context.Context, c bunx.Conn) error {
			for _, kind := range kinds {
				_, err := c.Exec(ctx,
					`UPDATE tc_entities SET owner_id = $1, updated_at = $2 WHERE tenant_id = $3 AND owner_id = $4 `+
						`AND kind = $5`,
					owners[1-at], bunx.At(time.Now()), crowd, owners[at], kind)
				if err != nil {
					return err
				}
			}
			return nil
		})
		at = 1 - at
		return time.Since(begin).Seconds(), err
	}
	o, b, ratio, err := inTurn(ours, bare)
	return result{ours: seconds(o), bare: seconds(b), ratio: ratio, must: "≤ 2.00", met: ratio <= 2}, err
}
