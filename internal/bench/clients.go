package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// neverRead is the name of the group of measurements of clients that ask for the largest pages and
// never read.
const neverRead = "clients that never read: "

// member is a user without a role who asks for large pages.
type member struct {
	token string
	lists []string // the targets of the large lists
}

// stalling is a group of members who have 60 sockets in all.
type stalling struct {
	name    string
	members []member
}

const (
	stalled      = 60 // sockets
	otherTenants = 12
	inEach       = 5 // members of each other tenant
)

// clientsThatNeverRead measures what a server holds, how long others wait and how soon it stops,
// while sockets ask for large pages and take none.
func clientsThatNeverRead(
	ctx context.Context, engine string, matches *regexp.Regexp, d time.Duration,
) (all []result, err error) {
	groups := []*stalling{{name: "60 sockets of one member"}, {name: "60 members of 12 tenants"}}
	if !slices.ContainsFunc(groups, func(g *stalling) bool { return matches.MatchString(neverRead + g.name) }) {
		return nil, nil
	}
	fmt.Fprintf(os.Stderr, "filling for %son %s …\n", neverRead, engine)
	n, err := newNeighbours(ctx, engine, func(
		n *neighbours, ctx context.Context, db *bun.DB, app *tenantcontent.App,
	) error {
		one, err := fillLists(ctx, db, app, "busy", 1, 1)
		if err != nil {
			return err
		}
		groups[0].members = one
		for i := range otherTenants {
			id := fmt.Sprintf("other-%d", i)
			if _, err := app.AddTenant(
				ctx, tenants.Tenant{ID: id, Settings: tenants.Settings{AI: true}}, password,
			); err != nil {
				return err
			}
			some, err := fillLists(ctx, db, app, id, otherTenants*inEach, inEach)
			if err != nil {
				return err
			}
			groups[1].members = append(groups[1].members, some...)
		}
		return nil
	})
	defer func() {
		if n != nil {
			err = errors.Join(err, n.close())
		}
	}()
	if err != nil {
		return nil, err
	}
	if err := n.checkLarge(groups[0].members[0]); err != nil {
		return nil, err
	}
	n.settings = append(n.settings, "TENANTCONTENT_LOG_LEVEL=error") // not who is told to try again
	for _, g := range groups {
		if !matches.MatchString(neverRead + g.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%s%s on %s …\n", neverRead, g.name, engine)
		if err := n.kill(); err != nil {
			return nil, err
		}
		if err := n.start(); err != nil {
			return nil, err
		}
		r, err := n.besideStalled(g, d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", g.name, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// checkLarge reads the lists of a member, and fails if one is so small that it does not count as
// large.
func (n *neighbours) checkLarge(m member) error {
	c, err := dial(n.address, m.token)
	if err != nil {
		return err
	}
	defer func() { _ = c.conn.Close() }()
	for _, target := range m.lists {
		size, err := c.do("GET", target, "")
		if err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		fmt.Fprintf(os.Stderr, "%s has %.1f MiB\n", target, float64(size)/(1<<20))
		if size < 64<<10 {
			return fmt.Errorf("%s has %d bytes, which is not large", target, size)
		}
	}
	return nil
}

// besideStalled opens the sockets of a group and measures a server that was started just now, which
// it stops.
func (n *neighbours) besideStalled(g *stalling, d time.Duration) (result, error) {
	alone, err := n.readColors(2 * time.Second)
	if err != nil {
		return result{}, err
	}
	before, err := n.peakMemory()
	if err != nil {
		return result{}, err
	}
	conns, err := n.stall(g)
	defer conns.close()
	if err != nil {
		return result{}, err
	}
	reads, err := n.readColors(d)
	if err != nil {
		return result{}, err
	}
	fresh, err := n.stall(g) // most of the first ones have been told to try again by now
	defer fresh.close()
	if err != nil {
		return result{}, err
	}
	time.Sleep(500 * time.Millisecond)
	most, err := n.peakMemory()
	if err != nil {
		return result{}, err
	}
	begin := time.Now()
	if err := n.server.Process.Signal(syscall.SIGTERM); err != nil {
		return result{}, err
	}
	if err := n.server.Wait(); err != nil {
		return result{}, fmt.Errorf("the server stopped: %w", err)
	}
	stop := time.Since(begin).Seconds()
	p99 := percentile(reads, 0.99)
	return result{
		name: neverRead + g.name, engine: n.engine, must: "< 256 MiB, reads p99 < 50ms, stops < 5s",
		ours: fmt.Sprintf("%.0f MiB (%.0f before); reads %s (p99 %s before); stops in %s",
			most, before, percentiles(reads), seconds(percentile(alone, 0.99)), seconds(stop)),
		met: most < 256 && p99 < 0.050 && stop < 5,
	}, nil
}

// sockets are connections of clients.
type sockets []net.Conn

func (s sockets) close() {
	for _, conn := range s {
		_ = conn.Close()
	}
}

// stall opens the sockets of a group, each of which asks for a list and reads nothing.
func (n *neighbours) stall(g *stalling) (all sockets, err error) {
	for i := range stalled {
		m := g.members[i%len(g.members)]
		conn, err := net.Dial("tcp", n.address)
		if err != nil {
			return all, err
		}
		all = append(all, conn)
		if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			return all, err
		}
		target := m.lists[(i+i/len(m.lists))%len(m.lists)]
		if _, err := fmt.Fprintf(
			conn, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", target, m.token,
		); err != nil {
			return all, err
		}
	}
	return all, nil
}

// readColors times reads of a color for a while, by the superusers of both tenants, who rest for 5
// ms after each answer.
func (n *neighbours) readColors(d time.Duration) ([]float64, error) {
	tokens := []string{n.busy, n.calm}
	took, fails := make([][]float64, len(tokens)), make([]error, len(tokens))
	var readers sync.WaitGroup
	for who, token := range tokens {
		readers.Go(func() {
			c, err := dial(n.address, token)
			if err != nil {
				fails[who] = err
				return
			}
			defer func() { _ = c.conn.Close() }()
			for i, begin := 0, time.Now(); time.Since(begin) < d; i++ {
				sent := time.Now()
				if _, err := c.do("GET", fmt.Sprintf("/api/colors/color-%06d", i%80), ""); err != nil {
					fails[who] = err
					return
				}
				took[who] = append(took[who], time.Since(sent).Seconds())
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	readers.Wait()
	return slices.Concat(took...), errors.Join(fails...)
}

// peakMemory returns the most memory that the server process has had, in MiB. It needs Linux.
func (n *neighbours) peakMemory() (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.server.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(status) {
		if kb, ok := number(line, "VmHWM:"); ok {
			return float64(kb) / 1024, nil
		}
	}
	return 0, errors.New("/proc says nothing about the memory of the server")
}

// fillLists makes the lists of a tenant large, as far as the limits of the fields let them be, and
// adds members. The rows of share tenants are as many as those of one.
func fillLists(
	ctx context.Context, db *bun.DB, app *tenantcontent.App, tenant string, share, members int,
) ([]member, error) {
	id := func(kind string, i int) string {
		return uuid.NewSHA1(uuid.NameSpaceURL, fmt.Appendf(nil, "%s %s %d", tenant, kind, i)).String()
	}
	all, err := addMembers(ctx, app, tenant, members, id)
	if err != nil {
		return nil, err
	}
	text := func(n int) string { return strings.Repeat("a large row ", n/12) }
	object := func(n int) string {
		raw, _ := json.Marshal(map[string]string{"text": text(n)})
		return string(raw)
	}
	now := bunx.At(time.Now())
	reader := func(i int) string { return fmt.Sprintf("member%d", i%members) }
	reports, comments, people, instructions, events :=
		max(10, 600/share), max(100, 1000/share), max(80, 600/share), max(20, 200/share), 1000
	const bundles = 2
	const entries = 500 // of a bundle
	perBundle := entries / min(share, 10)
	report, message, profile, options, prompt :=
		object(1_000_000), text(64<<10), object(60_000), object(60_000), text(256<<10)
	for _, t := range []struct {
		table
		chunk int
	}{
		{table{`tc_entities (tenant_id, kind, id, name, label, search, slug, owner_id, data, system, created_at, ` +
			`updated_at)`,
			reports, func(i int) []any {
				name := fmt.Sprintf("report-%d", i)
				return []any{
					tenant, "report", id("report", i), name, name, name, name, "admin", report, false, now, now,
				}
			}}, 4},
		{table{`tc_comments (tenant_id, id, kind, entity_id, user_id, message, public, replies, created_at, ` +
			`updated_at)`,
			comments, func(i int) []any {
				return []any{tenant, id("comment", i), "report", id("report", 0), "admin", message, false, 0, now, now}
			}}, 50},
		{table{`tc_comment_threads (tenant_id, kind, entity_id, total)`, 1, func(int) []any {
			return []any{tenant, "report", id("report", 0), comments}
		}}, 1},
		{table{`tc_users (tenant_id, username, folded, label, search, domain, superuser, enabled, may_ai, may_create_jobs,
			may_view_all_teams, may_view_all_users, may_script, data, user_fields, login_attempts, mfa, ai_consent, created_at, updated_at)`,
			people, func(i int) []any {
				name := fmt.Sprintf("person%d", i)
				return []any{
					tenant, name, name, name, name, "local", false, true, false, false, false, false, false,
					profile, profile, 0, false, false, now, now,
				}
			}}, 25},
		{table{`tc_bundles (tenant_id, id, name, slug, label, search, created_at, updated_at)`,
			bundles, func(i int) []any {
				name := fmt.Sprintf("bundle-%d", i)
				return []any{tenant, id("bundle", i), name, name, name, name, now, now}
			}}, 500},
		{table{`tc_bundle_entries (tenant_id, id, bundle_id, type, entity_id, data, created_at, updated_at)`,
			bundles * perBundle, func(i int) []any {
				return []any{
					tenant, id("entry", i), id("bundle", i/perBundle), "report", id("report", i%perBundle),
					options, now, now,
				}
			}}, 50},
		{table{`tc_ai_instructions (tenant_id, id, slug, search, content, owner_id, created_at, updated_at)`,
			instructions, func(i int) []any {
				slug := fmt.Sprintf("instruction-%d", i)
				return []any{tenant, id("instruction", i), slug, slug, prompt, "admin", now, now}
			}}, 10},
		{table{`tc_activities (tenant_id, id, type, kind, entity_id, user_id, excerpt, created_at)`,
			events, func(i int) []any {
				return []any{
					tenant, id("activity", i), "comment", "report", id("report", i%reports), "admin", text(200),
					now,
				}
			}}, 500},
		{table{`tc_feed (tenant_id, activity_id, username, created_at)`, events, func(i int) []any {
			return []any{tenant, id("activity", i), reader(i), now}
		}}, 500},
		{table{`tc_notifications (tenant_id, id, username, type, state, title, body, kind, entity_id, created_at, ` +
			`updated_at)`,
			events, func(i int) []any {
				return []any{
					tenant, id("notification", i), reader(i), "mention", "pending", "A notification",
					text(4 << 10), "report", id("report", i%reports), now, now,
				}
			}}, 100},
	} {
		err := bunx.Write(ctx, db, tenant, func(ctx context.Context, c bunx.Conn) error {
			return t.insertBy(ctx, c, t.chunk)
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Fields(t.into)[0], err)
		}
	}
	return all, nil
}

// addMembers adds members to a tenant, each with the lists that it reads.
func addMembers(
	ctx context.Context, app *tenantcontent.App, tenant string, members int, id func(kind string, i int) string,
) ([]member, error) {
	admin := actor.With(ctx, actor.Actor{Tenant: tenant, User: "admin", Superuser: true})
	var all []member
	for i := range members {
		name := fmt.Sprintf("member%d", i)
		u := principals.User{
			Username:          name,
			Enabled:           true,
			GlobalPermissions: principals.GlobalPermissions{AI: true, ViewAllUsers: true, ViewAllTeams: true},
		}
		if _, err := app.Principals.CreateUser(admin, u, password); err != nil {
			return nil, err
		}
		login, err := app.Sessions.Login(ctx, principals.Credentials{
			Tenant: tenant, Domain: "local", Username: name, Password: password,
		})
		if err != nil {
			return nil, err
		}
		all = append(all, member{token: login.Token, lists: []string{
			"/api/reports?limit=1000",
			"/api/reports/" + id("report", 0) + "/comments?limit=1000",
			"/api/bundles?limit=1000",
			"/api/bundles/" + id("bundle", 0) + "/entries?limit=1000",
			"/api/users?limit=1000",
			"/api/ai-instructions?limit=1000",
			"/api/activities?limit=1000",
			"/api/notifications?limit=1000",
			"/api/users/" + name + "/feed?limit=1000",
			"/api/principal-list",
		}})
	}
	return all, nil
}
