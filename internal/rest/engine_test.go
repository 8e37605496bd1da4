package rest_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/rest"
)

// stages records what an Engine does, in order.
type stages []string

func (s *stages) add(what string) { *s = append(*s, what) }

// taken returns what was done since the last call.
func (s *stages) taken() string {
	all := strings.Join(*s, " ")
	*s = nil
	return all
}

// newEngine returns an Engine with one route of a write, and one that has another credential and
// another page for failures.
func newEngine(t *testing.T, s *stages, now rest.Route) *rest.Engine {
	t.Helper()
	is := is.New(t)
	e, err := rest.NewEngine(rest.Config{
		Origin:  "https://things.example",
		MaxBody: 100,
		Log:     slog.New(slog.DiscardHandler),
		Authenticate: func(*http.Request) (actor.Actor, error) {
			s.add("authenticate")
			return actor.Actor{Tenant: "acme", User: "mia"}, nil
		},
		InTx: func(ctx context.Context, fn func(context.Context) error) error {
			s.add("begin")
			err := fn(ctx)
			if err != nil {
				s.add("rollback")
				return err
			}
			s.add("commit")
			return nil
		},
	})
	is.NoErr(err)
	now.Method, now.Pattern, now.Name = http.MethodPut, "/things/:name", "putThing"
	is.NoErr(e.Handle([]rest.Route{now}))
	return e
}

func send(e *rest.Engine, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPut, "/things/a", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	e.ServeHTTP(w, r)
	return w
}

// TestStages: a write passes its stages in order, the reply is made in the transaction and written
// after the commit, and an error takes all of it back.
func TestStages(t *testing.T) {
	is, s := is.New(t), stages{}
	var failure error
	e := newEngine(t, &s, rest.Route{
		Writes: rest.InTx,
		Begin:  func(w *rest.Response, _ *rest.Request) { s.add("headers"); w.Header().Set("X-Thing", "1") },
		Guard:  func(*rest.Request) error { s.add("guard"); return nil },
		Admit:  func(*rest.Request) error { s.add("admit"); return nil },
		Resolve: func(r *rest.Request) (bool, error) {
			s.add("resolve")
			return false, nil
		},
		Handle: func(r *rest.Request) (rest.Reply, error) {
			s.add("handle " + r.Param("name") + " " + r.Who.User)
			if failure != nil {
				return rest.Reply{}, failure
			}
			return rest.Streamed(func(w io.Writer) error {
				s.add("write")
				_, err := io.WriteString(w, "{}")
				return err
			})
		},
	})
	is.Equal(send(e, `{}`).Code, 200)
	is.Equal(s.taken(), "headers authenticate guard admit resolve begin handle a mia commit write")
	failure = errs.New(errs.Conflict, "There is one.")
	w := send(e, `{}`)
	is.Equal(w.Code, 409)
	is.Equal(w.Header().Get("X-Thing"), "1")
	is.Equal(s.taken(), "headers authenticate guard admit resolve begin handle a mia rollback")
}

// TestCallersOfRoutes: a route has a credential of its own, a request that another one leads to has
// the caller of that one, and who can only read writes only where the route's Caller admits it.
func TestCallersOfRoutes(t *testing.T) {
	is, s := is.New(t), stages{}
	admitted := false
	e := newEngine(t, &s, rest.Route{
		Caller: func(r *rest.Request) (actor.Actor, error) {
			r.Admitted = admitted
			return actor.Actor{Tenant: "acme", User: "token", ReadOnly: true}, nil
		},
		Handle: func(r *rest.Request) (rest.Reply, error) {
			s.add(r.Who.User)
			return rest.Done()
		},
	})
	is.Equal(send(e, "").Code, 403)
	is.Equal(s.taken(), "")
	admitted = true
	is.Equal(send(e, "").Code, 200)
	is.Equal(s.taken(), "token")
	as := rest.As{Caller: func(*rest.Request) (actor.Actor, error) {
		return actor.Actor{Tenant: "acme", User: "script"}, nil
	}}
	answer, err := e.Call(httptest.NewRequest(http.MethodPut, "/things/a", nil), &as, 100)
	is.NoErr(err)
	is.Equal(answer.Status, 200)
	is.Equal(s.taken(), "script")
	as.Check = func(route *rest.Route) error { return errs.New(errs.Forbidden, "No script may call %s.", route.Name) }
	answer, err = e.Call(httptest.NewRequest(http.MethodPut, "/things/a", nil), &as, 100)
	is.NoErr(err)
	is.Equal(answer.Status, 403)
	is.True(strings.Contains(string(answer.Body), "No script may call putThing."))
	is.Equal(s.taken(), "")
}

// TestFailuresOfRoutes: a route answers a failure, and a caller that cannot be authenticated, in
// its own way.
func TestFailuresOfRoutes(t *testing.T) {
	is, s := is.New(t), stages{}
	e := newEngine(t, &s, rest.Route{
		Caller: func(r *rest.Request) (actor.Actor, error) {
			return actor.Actor{}, errs.New(errs.Unauthenticated, "Who?")
		},
		Ask: func(r *rest.Request, err error) (rest.Reply, bool) {
			return rest.SeeOther("/login"), r.ContentLength > 0
		},
		Failed: func(
			_ *rest.Response, _ *http.Request, status int, message string, _ error,
		) (rest.Reply, bool) {
			s.add(message)
			return rest.Reply{Status: status, Stream: func(w io.Writer) error {
				_, err := io.WriteString(w, "<p>"+message)
				return err
			}}, true
		},
		Handle: func(*rest.Request) (rest.Reply, error) { return rest.Reply{}, errors.New("not reached") },
	})
	is.Equal(send(e, "{}").Code, 303)
	w := send(e, "")
	is.Equal(w.Code, 401)
	is.Equal(w.Body.String(), "<p>Who?")
	is.Equal(s.taken(), "Who?")
}

// TestSlotOnce: a request waits for one slot for writes, however often its handler asks for one.
func TestSlotOnce(t *testing.T) {
	is, s := is.New(t), stages{}
	e := newEngine(t, &s, rest.Route{Writes: rest.InSlot, Handle: func(r *rest.Request) (rest.Reply, error) {
		return r.InSlot(func() (rest.Reply, error) {
			return r.InTx(func() (rest.Reply, error) {
				s.add("handle")
				return rest.Done()
			})
		})
	}})
	is.Equal(send(e, "{}").Code, 200)
	is.Equal(s.taken(), "authenticate begin handle commit")
	is.Equal(e.Writing.Keys(), 0)
}
