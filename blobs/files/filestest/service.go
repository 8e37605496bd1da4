package filestest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/blobs/files"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/uuids"
)

// Service is what uploads.Service and downloads.Service share.
type Service interface {
	Create(ctx context.Context, filename, contentType string, r io.Reader) (files.File, error)
	Get(ctx context.Context, id string) (files.File, error)
	Open(ctx context.Context, id string) (files.File, io.ReadSeekCloser, error)
	Hooks() entity.Hooks
}

// Settings are what a check sets of a Service.
type Settings struct {
	Now   func() time.Time
	NewID func() string
}

// ID is a file's id where only one is made.
const ID = "018f0000-0000-7000-8000-00000000000a"

// As returns a context of an actor: "jo", or "root", who is a superuser.
func As(t *testing.T, tenant, user string) context.Context {
	return actor.With(t.Context(), actor.Actor{Tenant: tenant, User: user, Superuser: user == "root"})
}

// TestService runs the checks of what all services of files share. open returns one without files, whose database has the
// tenants acme and evil; noun is what it calls a file without a name.
func TestService(t *testing.T, noun string, open func(t *testing.T, set Settings) Service) {
	fixed := Settings{Now: func() time.Time { return monday }, NewID: func() string { return ID }}
	t.Run("Create", func(t *testing.T) { testCreate(t, open(t, Settings{Now: fixed.Now})) })
	t.Run("Names", func(t *testing.T) { testNames(t, noun, open(t, Settings{Now: fixed.Now})) })
	t.Run("ContentTypes", func(t *testing.T) { testTypes(t, open(t, Settings{Now: fixed.Now})) })
	t.Run("IDs", func(t *testing.T) { testIDs(t, open(t, fixed)) })
	t.Run("Isolation", func(t *testing.T) { testServiceIsolation(t, open(t, fixed)) })
	t.Run("NoActor", func(t *testing.T) { testNoActor(t, open(t, fixed)) })
	t.Run("FailedLeavesNone", func(t *testing.T) { testServiceFailed(t, open(t, fixed)) })
	t.Run("TakenIDChangesNothing", func(t *testing.T) { testServiceTaken(t, open(t, fixed)) })
	t.Run("Expiry", func(t *testing.T) { testExpiry(t, open) })
	t.Run("RenameUsers", func(t *testing.T) { testServiceRenameUsers(t, open(t, fixed)) })
	t.Run("SweepsMany", func(t *testing.T) { testSweepMany(t, open) })
}

func testCreate(t *testing.T, s Service) {
	is, ctx := is.New(t), As(t, "acme", "jo")
	const mib = 1 << 20
	for size, chunks := range map[int]int{0: 0, 1: 1, mib - 1: 1, mib: 1, mib + 1: 2, 5 * mib: 5} {
		want := make([]byte, size)
		_, _ = rand.NewChaCha8([32]byte{byte(size)}).Read(want)
		f, err := s.Create(ctx, "a.json", "application/json", bytes.NewReader(want))
		is.NoErr(err)
		is.True(uuids.Valid(f.ID))
		is.Equal(f.ID[14], byte('7')) // the version
		is.Equal(f, files.File{
			ID: f.ID, Filename: "a.json", ContentType: "application/json", Size: int64(size), Chunks: chunks,
			Username: "jo", CreatedAt: monday, ExpiresAt: tuesday,
		})
		got, err := s.Get(ctx, f.ID)
		is.NoErr(err)
		is.Equal(got, f)
		got, r, err := s.Open(ctx, f.ID)
		is.NoErr(err)
		is.Equal(got, f)
		p, err := io.ReadAll(r)
		is.NoErr(err)
		is.True(bytes.Equal(p, want))
		end, err := r.Seek(0, io.SeekEnd) // as http.ServeContent asks for the size
		is.NoErr(err)
		is.Equal(end, int64(size))
		is.NoErr(r.Close())
	}
}

func testServiceRenameUsers(t *testing.T, s Service) {
	is := is.New(t)
	_, err := s.Create(As(t, "acme", "jo"), "a", "", strings.NewReader("x"))
	is.NoErr(err)
	is.NoErr(s.Hooks().Renamed(t.Context(), "evil", map[string]string{"jo": "Joe"}))
	is.NoErr(s.Hooks().Renamed(t.Context(), "acme", map[string]string{"jo": "joe"}))
	f, err := s.Get(As(t, "acme", "joe"), ID)
	is.NoErr(err)
	is.Equal(f.Username, "joe")
	Hidden(t, As(t, "acme", "jo"), s)
}

func testNames(t *testing.T, noun string, s Service) {
	for given, want := range map[string]string{
		"": noun, " ": noun, "/": noun, "..": noun, "a/..": noun, ".": noun,
		"a.json": "a.json", " a b.json ": "a b.json", ".hidden": ".hidden", "日本 🎨": "日本 🎨",
		"../../etc/passwd": "passwd", `C:\Users\jo\a.json`: "a.json", `a/b\c`: "c", "a\x00/b": "b",
		strings.Repeat("ü", 255): strings.Repeat("ü", 255),
	} {
		is := is.New(t)
		f, err := s.Create(As(t, "acme", "jo"), given, "", strings.NewReader("x"))
		is.NoErr(err)
		is.Equal(f.Filename, want)
	}
	for _, bad := range []string{"a\x00b", "a\nb", "a\u0085b", "a\x7f", "\xff", strings.Repeat("ü", 256)} {
		_, err := s.Create(As(t, "acme", "jo"), bad, "", strings.NewReader("x"))
		is.New(t).Equal(errs.CodeOf(err), errs.Invalid)
	}
}

func testTypes(t *testing.T, s Service) {
	for given, want := range map[string]string{
		"": "application/octet-stream", "text/csv": "text/csv", "TEXT/CSV; Charset=utf-8": "text/csv; charset=utf-8",
		`text/plain; a="b c"`: `text/plain; a="b c"`,
	} {
		is := is.New(t)
		f, err := s.Create(As(t, "acme", "jo"), "a", given, strings.NewReader("x"))
		is.NoErr(err)
		is.Equal(f.ContentType, want)
	}
	for _, bad := range []string{"text", "text/", "/", ";", "text/csv; a", "text/a b", "text/csv\r\nX: y", "text/" + strings.Repeat("a", 255)} {
		_, err := s.Create(As(t, "acme", "jo"), "a", bad, strings.NewReader("x"))
		is.New(t).Equal(errs.CodeOf(err), errs.Invalid)
	}
}

func testIDs(t *testing.T, s Service) {
	is, ctx := is.New(t), As(t, "acme", "jo")
	_, err := s.Create(ctx, "a", "", strings.NewReader("x"))
	is.NoErr(err)
	f, err := s.Get(ctx, strings.ToUpper(ID))
	is.NoErr(err)
	is.Equal(f.ID, ID)
	for _, bad := range []string{
		"", "a", "{" + ID + "}", "urn:uuid:" + ID, strings.ReplaceAll(ID, "-", ""), ID + " ", ID + "\x00",
		ID[:35] + "b", ID[:35] + "x",
	} {
		_, err := s.Get(ctx, bad)
		is.Equal(errs.CodeOf(err), errs.NotFound)
		_, _, err = s.Open(ctx, bad)
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
}

// Hidden checks that the file ID does not exist for the actor of ctx.
func Hidden(t *testing.T, ctx context.Context, s Service) {
	t.Helper()
	is := is.New(t)
	_, err := s.Get(ctx, ID)
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, r, err := s.Open(ctx, ID)
	is.Equal(errs.CodeOf(err), errs.NotFound)
	is.True(r == nil)
}

func testServiceIsolation(t *testing.T, s Service) {
	is := is.New(t)
	_, err := s.Create(As(t, "acme", "jo"), "a", "", strings.NewReader("x"))
	is.NoErr(err)
	for _, ctx := range []context.Context{As(t, "acme", "mo"), As(t, "evil", "jo"), As(t, "evil", "root")} {
		Hidden(t, ctx, s)
	}
	_, err = s.Create(As(t, "evil", "jo"), "b", "", strings.NewReader("evil"))
	is.NoErr(err) // another tenant's id is not taken
	f, err := s.Get(As(t, "acme", "jo"), ID)
	is.NoErr(err)
	is.Equal(f.Filename, "a")
}

func testNoActor(t *testing.T, s Service) {
	is, ctx := is.New(t), t.Context()
	_, create := s.Create(ctx, "a", "", strings.NewReader("x"))
	_, get := s.Get(ctx, ID)
	_, _, open := s.Open(ctx, ID)
	for _, err := range []error{create, get, open} {
		is.Equal(errs.CodeOf(err), errs.Unauthenticated)
	}
}

// readFunc is an io.Reader.
type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

func testServiceFailed(t *testing.T, s Service) {
	is, jo := is.New(t), As(t, "acme", "jo")
	fault := errors.New("fault")
	for _, size := range []int{0, 1, 3<<20 + 1} {
		in := bytes.NewReader(make([]byte, size))
		_, err := s.Create(jo, "a", "", io.MultiReader(in, readFunc(func([]byte) (int, error) { return 0, fault })))
		is.True(err == fault) // as it is
		Hidden(t, jo, s)

		in.Reset(make([]byte, size))
		func() {
			defer func() { is.Equal(recover(), "boom") }()
			_, _ = s.Create(jo, "a", "", io.MultiReader(in, readFunc(func([]byte) (int, error) { panic("boom") })))
		}()
		Hidden(t, jo, s)

		in.Reset(make([]byte, size))
		ctx, cancel := context.WithCancel(jo)
		_, err = s.Create(ctx, "a", "", io.MultiReader(in, readFunc(func([]byte) (int, error) { cancel(); return 0, io.EOF })))
		is.True(errors.Is(err, context.Canceled))
		Hidden(t, jo, s)
	}
	_, err := s.Create(jo, "a", "", strings.NewReader("x"))
	is.NoErr(err) // the id is free: nothing was left
}

func testServiceTaken(t *testing.T, s Service) {
	is, ctx := is.New(t), As(t, "acme", "jo")
	_, err := s.Create(ctx, "a", "", strings.NewReader("first"))
	is.NoErr(err)
	_, err = s.Create(ctx, "b", "", bytes.NewReader(make([]byte, 3<<20)))
	is.Equal(errs.CodeOf(err), errs.Conflict)
	f, r, err := s.Open(ctx, ID)
	is.NoErr(err)
	p, err := io.ReadAll(r)
	is.NoErr(err)
	is.Equal(f.Filename+string(p), "afirst")
}

func testExpiry(t *testing.T, open func(*testing.T, Settings) Service) {
	is, ctx, now := is.New(t), As(t, "acme", "jo"), monday
	s := open(t, Settings{Now: func() time.Time { return now }, NewID: func() string { return ID }})
	sweep := func(tenant string, want int) {
		t.Helper()
		n, err := s.Hooks().Sweep(t.Context(), tenant)
		is.NoErr(err)
		is.Equal(n, want)
	}
	_, err := s.Create(ctx, "a", "", bytes.NewReader(make([]byte, 2<<20)))
	is.NoErr(err)
	now = tuesday.Add(-time.Microsecond)
	sweep("acme", 0)
	_, err = s.Get(ctx, ID)
	is.NoErr(err)
	now = tuesday
	Hidden(t, ctx, s) // at once, before the sweep
	sweep("evil", 0)
	sweep("acme", 1)
	sweep("acme", 0)
	now = monday
	Hidden(t, ctx, s)
	_, err = s.Create(ctx, "a", "", strings.NewReader("x"))
	is.NoErr(err) // its bytes are gone too: the id is free
}

func testSweepMany(t *testing.T, open func(*testing.T, Settings) Service) {
	is, now := is.New(t), monday
	s := open(t, Settings{Now: func() time.Time { return now }})
	for range 205 {
		_, err := s.Create(As(t, "acme", "jo"), "a", "", strings.NewReader("x"))
		is.NoErr(err)
	}
	now = tuesday
	n, err := s.Hooks().Sweep(t.Context(), "acme")
	is.NoErr(err)
	is.Equal(n, 205)
}
