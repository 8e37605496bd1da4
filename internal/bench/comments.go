package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/principals"
)

// readThread reads pages of 100 replies with their authors, the first and one from the middle of
// the thread, one caller: of a thread of 100,000 against one of 100.
func readThread(ctx context.Context, w *world) (result, error) {
	long, err := w.thread(ctx, 100_000)
	if err != nil {
		return result{}, err
	}
	short, err := w.thread(ctx, 100)
	if err != nil {
		return result{}, err
	}
	deep, err := w.next(long + "?limit=100&start=50000")
	if err != nil {
		return result{}, err
	}
	page := func(targets ...string) func() (float64, error) {
		return func() (float64, error) {
			n, err := throughput(w.ours, w.token, 1, 1500*time.Millisecond, func(c *caller, _, i int) error {
				n, err := c.do("GET", targets[i%len(targets)], "")
				if err == nil && n < 100_000 {
					return fmt.Errorf("a page of %d bytes is not whole", n)
				}
				return err
			})
			return 1 / n, err
		}
	}
	ours, bare, ratio, err := inTurn(
		page(long+"?limit=100", deep), page(short+"?limit=100", short+"?limit=100&sort=createdAt"),
	)
	micro := func(s float64) string {
		return time.Duration(s * float64(time.Second)).Round(time.Microsecond).String()
	}
	return result{ours: micro(ours), bare: micro(bare), ratio: ratio, must: "≤ 1.50", met: ratio <= 1.5}, err
}

// thread makes a comment on a new team, with n replies, and returns the path of these.
func (w *world) thread(ctx context.Context, n int) (string, error) {
	team, err := w.app.Principals.CreateTeam(w.admin, principals.Team{Name: fmt.Sprintf("Thread of %d", n)})
	if err != nil {
		return "", err
	}
	first, err := w.app.Comments.Create(w.admin, entity.Key{Kind: "team", ID: team.ID}, "A long discussion")
	if err != nil {
		return "", err
	}
	err = bunx.Write(ctx, w.db, "default", func(ctx context.Context, c bunx.Conn) error {
		const chunk = 500
		for from := 0; from < n; from += chunk {
			var args []any
			to := min(n, from+chunk)
			for i := from; i < to; i++ {
				at := bunx.At(first.CreatedAt.Add(time.Duration(i) * time.Second))
				args = append(
					args, "default", fmt.Sprintf("%s-%06d", first.ID, i), "team", team.ID, first.ID, "admin",
					"I think so too.", false, 0, at, at,
				)
			}
			_, err := c.Exec(ctx,
				`INSERT INTO tc_comments (tenant_id, id, kind, entity_id, parent_id, user_id, message, public,
					replies, created_at, updated_at)
				VALUES `+bunx.Values(to-from, 11), args...)
			if err != nil {
				return err
			}
			if from == 0 && c.Postgres() {
				if _, err := c.Exec(ctx, "ANALYZE tc_comments"); err != nil {
					// foreign keys are checked by the right index from here on
					return err
				}
			}
		}
		_, err := c.Exec(
			ctx, `UPDATE tc_comments SET replies = $1 WHERE tenant_id = 'default' AND id = $2`, n, first.ID,
		)
		return err
	})
	if err != nil {
		return "", err
	}
	return "/api/comments/" + first.ID + "/replies", w.analyze(ctx)
}

// next returns the target of the link next of a page.
func (w *world) next(target string) (string, error) {
	req, err := http.NewRequest(http.MethodGet, "http://"+w.ours+target, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+w.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	var page struct {
		Links struct{ Next struct{ Href string } } `json:"_links"`
	}
	if err := json.NewDecoder(res.Body).Decode(&page); err != nil {
		return "", err
	}
	at := strings.Index(page.Links.Next.Href, "/api/")
	if at < 0 {
		return "", fmt.Errorf("%s has no next link", target)
	}
	return page.Links.Next.Href[at:], nil
}
