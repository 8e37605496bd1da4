package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
)

// attacked is the name of the measurement of logins, while strangers try many others. The server is
// a process of its own, and the strangers and the others are in this one.
const attacked = "logins while strangers try passwords"

const (
	strangers    = 200  // connections that try wrong passwords of busy's users
	oneShots     = 2500 // logins a second at an unknown tenant, each on a connection of its own
	attackedOnes = 2000 // busy's users
)

const (
	strangerAddress = "203.0.113.9"
	friendAddress   = "198.51.100.7"
)

// addAttacked adds to busy users who have the superuser's password.
func (n *neighbours) addAttacked(ctx context.Context) error {
	db, err := engines.Open(n.url)
	if err != nil {
		return err
	}
	err = bunx.Write(ctx, db, "busy", func(ctx context.Context, c bunx.Conn) error {
		var hash string
		if err := c.One(
			ctx, "User", `SELECT password_hash FROM tc_users WHERE tenant_id = $1 AND username = $2`,
			[]any{"busy", "admin"}, &hash,
		); err != nil {
			return err
		}
		now := bunx.At(time.Now())
		people := table{`tc_users (tenant_id, username, folded, label, search, domain, superuser, enabled, may_ai, may_create_jobs,
			may_view_all_teams, may_view_all_users, may_script, data, user_fields, login_attempts, mfa, ai_consent, created_at, updated_at, password_hash)`,
			attackedOnes, func(i int) []any {
				name := attackedName(i)
				return []any{
					"busy", name, name, name, name, "local", false, true, false, false, false, false, false,
					"{}", "{}", 0, false, false, now, now, hash,
				}
			}}
		return people.insert(ctx, c)
	})
	return errors.Join(err, db.Close())
}

func attackedName(i int) string { return fmt.Sprintf("person%06d", i%attackedOnes) }

// loginFrom sends a login as a client behind a proxy, and returns the answer's status. keep keeps
// the connection.
func (n *neighbours) loginFrom(
	c net.Conn, in *bufio.Reader, address, tenant, username, password string, keep bool,
) (int, error) {
	body := fmt.Sprintf(`{"tenant":%q,"username":%q,"password":%q}`, tenant, username, password)
	end := "close"
	if keep {
		end = "keep-alive"
	}
	_, err := fmt.Fprintf(c,
		"POST /api/login/local HTTP/1.1\r\nHost: %s\r\nX-Forwarded-For: %s\r\nConnection: %s\r\nContent-Type: "+
			"application/json\r\nContent-Length: %d\r\n\r\n%s",
		n.address, address, end, len(body), body)
	if err != nil {
		return 0, err
	}
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, errors.Join(err, res.Body.Close())
}

// once logs in on a connection of its own.
func (n *neighbours) once(address, tenant, username, password string) (int, error) {
	c, err := net.DialTimeout("tcp", n.address, 30*time.Second)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(60 * time.Second))
	return n.loginFrom(c, bufio.NewReaderSize(c, 1024), address, tenant, username, password, false)
}

// underAttack measures logins of calm from the strangers' network and from another one, and calm's
// reads.
func (n *neighbours) underAttack(ctx context.Context, d time.Duration) (all []result, err error) {
	if err := n.addAttacked(ctx); err != nil {
		return nil, err
	}
	for _, attack := range []struct {
		name  string
		begin func(ctx context.Context, running *sync.WaitGroup, tried *atomic.Int64)
	}{
		{"2,500 one-shot logins a second at an unknown tenant", n.unknownTenant},
		{"200 connections with wrong passwords of one tenant", n.wrongPasswords},
	} {
		r, err := n.besideAttack(ctx, attack.begin, max(d, 10*time.Second))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", attack.name, err)
		}
		r.name, r.engine = attacked+": "+attack.name, n.engine
		all = append(all, r)
	}
	return all, nil
}

// unknownTenant sends what comes each millisecond, whether the ones before have been answered or
// not.
func (n *neighbours) unknownTenant(ctx context.Context, running *sync.WaitGroup, tried *atomic.Int64) {
	running.Go(func() {
		begun, sent := time.Now(), 0
		for ctx.Err() == nil {
			for due := int(time.Since(begun).Seconds() * oneShots); sent < due; sent++ {
				running.Go(func() {
					if status, _ := n.once(strangerAddress, "nowhere", "jo", "wrong"); status != 0 {
						tried.Add(1)
					}
				})
			}
			time.Sleep(time.Millisecond)
		}
	})
}

func (n *neighbours) wrongPasswords(ctx context.Context, running *sync.WaitGroup, tried *atomic.Int64) {
	for who := range strangers {
		running.Go(func() {
			c, err := net.Dial("tcp", n.address)
			if err != nil {
				return
			}
			defer func() { _ = c.Close() }()
			in := bufio.NewReader(c)
			for i := 0; ctx.Err() == nil; i++ {
				if _, err := n.loginFrom(
					c, in, strangerAddress, "busy", attackedName(who+i*strangers), "wrong", true,
				); err != nil {
					return
				}
				tried.Add(1)
			}
		})
	}
}

func (n *neighbours) besideAttack(
	ctx context.Context, attack func(context.Context, *sync.WaitGroup, *atomic.Int64), d time.Duration,
) (result, error) {
	var running, measuring sync.WaitGroup
	var tried atomic.Int64
	attacking, stop := context.WithCancel(ctx)
	attack(attacking, &running, &tried)
	time.Sleep(2 * time.Second) // until what comes and what is answered are in balance
	begun, before := time.Now(), tried.Load()
	logins := func(address string, longest *time.Duration, failed *error) {
		for time.Since(begun) < d && *failed == nil {
			at := time.Now()
			status, err := n.once(address, "calm", "admin", password)
			*longest = max(*longest, time.Since(at))
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("the login was answered with %d", status)
			}
			*failed = err
			time.Sleep(100 * time.Millisecond)
		}
	}
	var same, other time.Duration
	var fails [3]error
	var reads []time.Duration
	measuring.Go(func() { logins(strangerAddress, &same, &fails[0]) })
	measuring.Go(func() { logins(friendAddress, &other, &fails[1]) })
	measuring.Go(func() {
		for time.Since(begun) < d && fails[2] == nil {
			at := time.Now()
			fails[2] = n.as(n.calm, http.MethodGet, "/api/colors/color-000001", "", nil)
			reads = append(reads, time.Since(at))
			time.Sleep(2 * time.Millisecond)
		}
	})
	measuring.Wait()
	rate := float64(tried.Load()-before) / time.Since(begun).Seconds()
	stop()
	running.Wait()
	if err := errors.Join(fails[:]...); err != nil {
		return result{}, err
	}
	slices.Sort(reads)
	p99 := reads[len(reads)*99/100]
	ms := func(d time.Duration) string { return d.Round(time.Millisecond).String() }
	return result{
		ours: fmt.Sprintf(
			"another tenant's login waits %s at most, from the same network %s; reads p99 %s; %s tried",
			ms(other), ms(same), ms(p99), perSecond(rate),
		),
		must: strings.Join([]string{"< 1s", "< 3s", "p99 < 200ms"}, ", "),
		met:  other < time.Second && same < 3*time.Second && p99 < 200*time.Millisecond,
	}, nil
}
