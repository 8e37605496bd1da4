package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/javascript"
	"github.com/tenantcontent/tenantcontent/principals"
)

type devCommand struct {
	Folder  string `arg:"" help:"Folder with the files of the app." placeholder:"FOLDER"`
	Port    uint16 `help:"Port of this machine to serve on (default: a free one)." placeholder:"PORT"`
	Keep    bool   `help:"Keep the database, with all that the app has stored, in FOLDER/.tenantcontent. Without it each start begins anew."`
	EnvFile string `help:"File with the values of the app's variables, NAME=VALUE in each line." placeholder:"FILE"`
}

// dev is one run of the command: a separate server with one app that has the files of a folder.
type dev struct {
	*devCommand
	t      terminal
	log    *slog.Logger
	folder *appFolder
	client client
	app    *tenantcontent.App
	calls  *callLog
	token  string // of the webhooks
	enter  string // path of the link with which a browser logs in
	shown  string // last output about the app
}

// devData is the folder of the database in the folder of the app.
const devData = ownFolder

// devSession is how long the link and the client of a run are valid.
const devSession = 30 * 24 * time.Hour

// Run serves the app until ctx ends, and publishes changes of the folder.
func (d *devCommand) Run(ctx context.Context, t terminal) (err error) {
	stateIn := ""
	if d.Keep {
		stateIn = devData + "/state.json"
	}
	f, err := openFolder(d.Folder, stateIn) // the state for pushes to another server is not used
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	run := &dev{devCommand: d, t: t, folder: f, enter: "/dev/" + rand.Text(), calls: &callLog{t: t}}
	run.log = slog.New(slog.NewTextHandler(t.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	data, remove, err := d.data()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	return run.serve(ctx, storage{Data: data})
}

// data returns the folder of the database, and a function that removes it unless it must be kept.
func (d *devCommand) data() (folder string, remove func() error, err error) {
	if !d.Keep {
		folder, err = os.MkdirTemp("", "tenantcontent-dev-")
		return folder, func() error { return os.RemoveAll(folder) }, err
	}
	folder = filepath.Join(d.Folder, devData)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", nil, errs.Wrap(errs.Invalid, err, "the folder %s cannot be made: %v", folder, cause(err))
	}
	// The folder contains the secret key, so Git must ignore it.
	err = os.WriteFile(filepath.Join(folder, ".gitignore"), []byte("*\n"), 0o644)
	return folder, func() error { return nil }, err
}

// serve runs the server and watches the folder.
func (d *dev) serve(ctx context.Context, s storage) (err error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(d.Port))))
	if err != nil {
		return errs.Wrap(errs.Invalid, err, "cannot listen on port %d: %v", d.Port, err)
	}
	defer func() { _ = listener.Close() }() // closed already if it has served
	scripts, err := jsvm.Open(javascript.New(javascript.Options{Log: d.log}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, scripts.Runtime.Close()) }()
	d.client.Server = "http://" + listener.Addr().String()
	lib := tenantcontent.Config{
		BaseURL: d.client.Server,
		Log:     d.log,
		Scripts: jsvm.NewEngine(jsvm.Parts{
			Runtime:  loggedRuntime{scripts.Runtime},
			Markdown: scripts.Markdown,
			Extract:  scripts.Extract,
			Decode:   scripts.Decode,
		}, nil),
		SessionLifetime: devSession,
	}
	if err := s.open(&lib); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lib.DB.Close()) }()
	if d.app, err = tenantcontent.Open(lib); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.app.Close()) }()
	if err := tenantcontent.Migrate(ctx, lib.DB); err != nil {
		return err
	}
	if err := d.app.Lock(ctx, d.client.Server); err != nil {
		return err
	}
	defer func() { _ = d.app.Unlock() }()
	if err := d.login(ctx, s.Data); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return serve(ctx, listener, d, d.app, d.log, 0) })
	group.Go(func() error { return d.watch(ctx) })
	return group.Wait()
}

// login logs in as the superuser admin, whose password is in the folder of the database.
func (d *dev) login(ctx context.Context, data string) error {
	file := filepath.Join(data, "password")
	password, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		password = []byte(rand.Text())
		err = os.WriteFile(file, password, 0o600)
	}
	if err != nil {
		return errs.Wrap(errs.Invalid, err, "cannot use %s: %v", file, cause(err))
	}
	if _, _, err := d.app.FirstStart(ctx, string(password)); err != nil {
		return err
	}
	l, err := d.app.Sessions.Login(ctx, principals.Credentials{
		Tenant: "default", Domain: "local", Username: "admin", Password: string(password),
	})
	d.client.Token = l.Token
	return err
}

// ServeHTTP serves the app and the link with which a browser logs in. It prints calls of handlers.
func (d *dev) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != d.enter {
		d.calls.serve(w, r, d.app)
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name:     "sid",
		Value:    d.client.Token,
		Path:     "/",
		HttpOnly: true,
		SameSite: http.SameSiteLaxMode,
	})
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, hal.Href("apps", r.URL.Query().Get("app"), "view"), http.StatusSeeOther)
}

// update makes the app equal to the folder, and prints the result.
func (d *dev) update(ctx context.Context) error {
	begin := time.Now()
	if err := d.folder.readIgnored(); err != nil {
		return err
	}
	p := d.push()
	id := d.folder.state.App
	if id == "" {
		var err error
		if id, err = p.create(ctx); err != nil {
			return err
		}
	}
	if err := d.setVariables(ctx, id); err != nil {
		return err
	}
	if err := d.checkManifest(ctx); err != nil {
		return err
	}
	result, err := p.run(ctx, id)
	if err != nil {
		// The next push begins with a new draft.
		_ = d.client.call(ctx, http.MethodDelete, hal.Href("apps", id, "draft"), nil, nil)
		return err
	}
	counts := fmt.Sprintf("%d new, %d changed, %d removed", len(result.New), len(result.Changed), len(result.Removed))
	if !result.Published {
		counts = "nothing has changed"
	}
	if p.noPage {
		counts += fmt.Sprintf("; there is no %s, which viewers see first", harmless(p.page))
	}
	if err := d.say("published: %s (%s)", counts, time.Since(begin).Round(time.Millisecond)); err != nil {
		return err
	}
	if result.Deployed != nil {
		done := runs{Migrations: result.Deployed.Migrations, Warnings: result.Deployed.Warnings}
		if text := strings.TrimPrefix(done.text(), "\n"); text != "" {
			if err := d.calls.print(text + "\n"); err != nil {
				return err
			}
		}
	}
	return d.addresses(ctx, id)
}

// push returns a push that makes the app equal to the folder, without a state file.
func (d *dev) push() *push {
	return &push{
		appPushCommand: &appPushCommand{Folder: d.Folder, Type: newType, Delete: true, Force: true},
		appCommands:    &appCommands{client: d.client}, folder: d.folder, out: &outcome{t: d.t, quiet: true},
	}
}

// checkManifest refuses an invalid manifest, which a push with Force would publish.
func (d *dev) checkManifest(ctx context.Context) (err error) {
	p := d.push()
	p.Force = false
	if p.local, err = d.folder.files(ctx); err != nil {
		return err
	}
	return p.checkManifest()
}

// addresses prints the addresses of the app if they have changed.
func (d *dev) addresses(ctx context.Context, id string) error {
	var hooks struct {
		Routes []struct{ Method, Path string } `json:"routes"`
	}
	if err := d.client.call(ctx, http.MethodGet, hal.Href("apps", id, "webhooks"), nil, &hooks); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "View:     %s%s?app=%s\n", d.client.Server, d.enter, harmless(id))
	for _, route := range hooks.Routes {
		if d.token == "" {
			if err := d.makeToken(ctx, id); err != nil {
				return err
			}
		}
		path := hal.Href("apps", id, "_hook") + strings.TrimSuffix(route.Path, "/")
		fmt.Fprintf(
			&b, "Webhook:  %-4s %s%s?token=%s\n", harmless(route.Method), d.client.Server, harmless(path),
			harmless(d.token),
		)
	}
	if b.String() == d.shown {
		return nil
	}
	d.shown = b.String()
	return d.calls.print(d.shown)
}

// tokenNotes is the label of the token that a run creates, or that an earlier run has created.
const tokenNotes = "tenantcontent dev"

// makeToken sets the token of the webhooks.
func (d *dev) makeToken(ctx context.Context, id string) error {
	type token struct{ Key, Notes string }
	var all struct {
		Embedded struct {
			Tokens []token `json:"inf:token"`
		} `json:"_embedded"`
	}
	tokens := hal.Href("apps", id, "webhook-tokens")
	if err := d.client.call(ctx, http.MethodGet, tokens, nil, &all); err != nil {
		return err
	}
	for _, t := range all.Embedded.Tokens {
		if t.Notes == tokenNotes {
			d.token = t.Key
			return nil
		}
	}
	var made token
	err := d.client.call(ctx, http.MethodPost, tokens, map[string]string{"notes": tokenNotes}, &made)
	d.token = made.Key
	return err
}

// say prints the time and a line.
func (d *dev) say(format string, args ...any) error {
	return d.calls.print(time.Now().Format(time.TimeOnly) + " " + fmt.Sprintf(format, args...) + "\n")
}
