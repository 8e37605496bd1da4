package cli

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/matryer/is"
	"golang.org/x/sys/unix"

	"github.com/tenantcontent/tenantcontent/internal/testkit/logtest"
)

// screen is a terminal and everything that was written to it.
type screen struct {
	keys *os.File // its input is typed on the terminal
	tty  *os.File // nil for a terminal of another process
	text *logtest.Buffer
}

// newScreen returns a terminal for commands in this process.
func newScreen(t *testing.T) *screen {
	t.Helper()
	keys, tty, err := pty.Open()
	is.New(t).NoErr(err)
	t.Cleanup(func() { _ = keys.Close(); _ = tty.Close() })
	return watch(&screen{keys: keys, tty: tty})
}

func watch(s *screen) *screen {
	s.text = &logtest.Buffer{}
	go func() { _, _ = io.Copy(s.text, s.keys) }()
	return s
}

// run runs a command in this process on the terminal.
func (s *screen) run(ctx context.Context, args ...string) chan int {
	code := make(chan int, 1)
	go func() { code <- Run(ctx, args, s.tty, s.tty, s.tty) }()
	return code
}

// echoes reports whether the terminal displays what is typed.
func (s *screen) echoes(t *testing.T) bool {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(s.keys.Fd()), unix.TCGETS)
	is.New(t).NoErr(err)
	return state.Lflag&unix.ECHO != 0
}

// until waits for a condition.
func (s *screen) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the terminal has not %s: %q", what, s.text)
		}
	}
}

func (s *screen) shows(t *testing.T, text string) {
	t.Helper()
	s.until(t, text, func() bool { return strings.Contains(s.text.String(), text) })
}

// archiveOf returns a file of some size.
func archiveOf(t *testing.T, size int) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.tgz")
	is.New(t).NoErr(os.WriteFile(file, bytes.Repeat([]byte("x"), size), 0o600))
	return file
}

// TestProgress: a terminal shows the transferred bytes and the phase of the server, and in the end
// only the answer.
func TestProgress(t *testing.T) {
	is, s := is.New(t), newScreen(t)
	goOn := make(chan struct{})
	flags := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/_export") {
			<-goOn
			w.Header().Set("Content-Length", "2097152")
			_, _ = w.Write(make([]byte, 1<<20))
			_ = http.NewResponseController(w).Flush()
			<-goOn
			_, _ = w.Write(make([]byte, 1<<20))
			return
		}
		_, _ = io.CopyN(io.Discard, r.Body, 1<<20)
		<-goOn
		_, _ = io.Copy(io.Discard, r.Body)
		<-goOn
		_, _ = io.WriteString(w, `{"created": 1}`)
	})
	code := s.run(t.Context(), append([]string{"bundle", "import", archiveOf(t, 64<<20)}, flags...)...)
	s.until(t, "drawn a bar", func() bool { return bar.MatchString(s.text.String()) })
	goOn <- struct{}{}
	s.shows(t, "sent; the server checks and imports, ")
	goOn <- struct{}{}
	is.Equal(<-code, 0)
	s.shows(t, "\r\x1b[Ktotal          1 created")

	file := filepath.Join(t.TempDir(), "b.tgz")
	code = s.run(t.Context(), append([]string{"bundle", "export", file, "--bundle=b"}, flags...)...)
	s.shows(t, "the server packs, 0 s")
	goOn <- struct{}{}
	s.shows(t, "receiving [==========          ] 1.0MiB of 2.0MiB")
	goOn <- struct{}{}
	is.Equal(<-code, 0)
	s.shows(t, "Wrote "+file+" (2097152 bytes).")
}

var bar = regexp.MustCompile(`sending \[=+ +\] \d+\.\dMiB of 64\.0MiB`)

// TestInterruptedTransfers: an interrupted command prints what is known of its work in one line,
// and has the exit code that shells expect.
func TestInterruptedTransfers(t *testing.T) {
	sent, waits := make(chan struct{}, 1), make(chan struct{})
	flags := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("owner") != "slow" {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		sent <- struct{}{}
		select {
		case <-r.Context().Done():
		case <-waits:
		}
	})
	t.Cleanup(func() { close(waits) }) // before the server closes
	dir, large := t.TempDir(), archiveOf(t, 64<<20)
	for says, args := range map[string][]string{
		"nothing was imported":             {"bundle", "import", large, "--owner=slow"},
		"the server has the whole archive": {"bundle", "import", archiveOf(t, 10)},
		"a dry run changes nothing":        {"bundle", "diff", large},
		"nothing was written":              {"bundle", "export", filepath.Join(dir, "x.tgz"), "--bundle=b"},
	} {
		is := is.New(t)
		var stdout, stderr bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		code := make(chan int, 1)
		go func() { code <- Run(ctx, append(args, flags...), strings.NewReader(""), &stdout, &stderr) }()
		<-sent
		cancel()
		is.Equal(<-code, 130)
		is.Equal(stdout.String(), "")
		// without a terminal no progress is printed
		is.True(strings.HasPrefix(stderr.String(), "tenantcontent: interrupted: "+says))
		is.Equal(strings.Count(stderr.String(), "\n"), 1)
	}
	left, err := os.ReadDir(dir)
	is.New(t).NoErr(err)
	is.New(t).Equal(len(left), 0)
}

// TestInterruptedInput: Ctrl-C also ends a command whose input stalls, or is a pipe without a
// writer.
func TestInterruptedInput(t *testing.T) {
	reached := make(chan struct{}, 10)
	flags := answering(t, func(w http.ResponseWriter, r *http.Request) {
		reached <- struct{}{}
		_, _ = io.Copy(io.Discard, r.Body)
	})
	pipe := filepath.Join(t.TempDir(), "pipe")
	is.New(t).NoErr(syscall.Mkfifo(pipe, 0o600))
	for says, args := range map[string][]string{
		"nothing was imported":      {"bundle", "import", "-"},
		"a dry run changes nothing": {"bundle", "diff", pipe},
	} {
		is := is.New(t)
		var stdout, stderr bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		input, stalled := io.Pipe()
		code := make(chan int, 1)
		go func() { code <- Run(ctx, append(args, flags...), input, &stdout, &stderr) }()
		if args[2] == "-" {
			_, err := stalled.Write(make([]byte, 1000))
			is.NoErr(err)
			<-reached
		}
		cancel()
		is.Equal(<-code, 130)
		is.Equal(stderr.String(), "tenantcontent: interrupted: "+says+"\n")
		is.NoErr(stalled.Close())
	}
}

// TestPasswordPrompt runs the built program on a terminal. The input is not displayed, and Ctrl-C
// restores the terminal.
func TestPasswordPrompt(t *testing.T) {
	is, data := is.New(t), migrated(t)
	done(t, "", "tenant", "add", "default", "--admin-password="+password, "--data="+data)
	program, err := built()
	is.NoErr(err)
	begin := func() (*screen, *exec.Cmd) {
		cmd := exec.Command(program, "user", "passwd", "admin", "--data="+data)
		keys, err := pty.Start(cmd)
		is.NoErr(err)
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = keys.Close() })
		s := watch(&screen{keys: keys})
		s.shows(t, "Password: ")
		s.until(t, "turned its echo off", func() bool { return !s.echoes(t) })
		return s, cmd
	}
	s, cmd := begin()
	_, err = s.keys.WriteString("another horse battery\r")
	is.NoErr(err)
	is.NoErr(cmd.Wait())
	s.shows(t, "Set the password of admin")
	is.True(!strings.Contains(s.text.String(), "horse"))

	s, cmd = begin()
	echo := make(chan bool, 1)
	tty, err := os.OpenFile(ttyOf(t, s.keys), os.O_RDWR|unix.O_NOCTTY, 0) // keeps the terminal after the program
	is.NoErr(err)
	defer func() { _ = tty.Close() }()
	_, err = s.keys.WriteString("another\x03")
	is.NoErr(err)
	_ = cmd.Wait()
	echo <- s.echoes(t)
	is.Equal(cmd.ProcessState.ExitCode(), 130)
	s.shows(t, "Password: \r\ntenantcontent: interrupted: nothing was changed\r\n")
	is.True(<-echo)
}

// ttyOf returns the path of the terminal with these keys.
func ttyOf(t *testing.T, keys *os.File) string {
	t.Helper()
	n, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	is.New(t).NoErr(err)
	return filepath.Join("/dev/pts", itoa(n))
}

// TestTenantDeleteAsks: the id is requested on a terminal.
func TestTenantDeleteAsks(t *testing.T) {
	is, data, s := is.New(t), "--data="+migrated(t), newScreen(t)
	done(t, "", "tenant", "add", "acme", "--admin-password="+password, data)
	for typed, says := range map[string]string{
		"acm\r": `nothing was deleted: "acm" is not the id acme`,
		"\x04":  `nothing was deleted: "" is not the id acme`,
	} {
		code := s.run(t.Context(), "tenant", "delete", "acme", data)
		s.shows(t, "The tenant acme has 1 user, 1 domain. There is no way back.\r\nType its id to delete it: ")
		_, err := s.keys.WriteString(typed)
		is.NoErr(err)
		is.Equal(<-code, 2)
		s.shows(t, says)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	code := s.run(ctx, "tenant", "delete", "acme", data)
	interrupt()
	is.Equal(<-code, 130)
	s = newScreen(t)
	code = s.run(t.Context(), "tenant", "delete", "acme", data)
	s.shows(t, "Type its id to delete it: ")
	_, err := s.keys.WriteString("acme\r")
	is.NoErr(err)
	is.Equal(<-code, 0)
	s.shows(t, "Deleted the tenant acme with 1 user, 1 domain.")
}

// TestAppPushProgress: on a terminal the files are listed after the progress line was removed.
func TestAppPushProgress(t *testing.T) {
	at := serving(t, "--data="+t.TempDir(), "--admin-password="+password)
	is, s, screen := is.New(t), newSite(t, &live{at, at.login(t, "default", "admin", password)}), newScreen(t)
	write(t, s.folder, map[string]string{"index.html": "x"})
	sending := make(chan struct{})
	s.mu.Lock()
	s.before = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			<-sending
		}
		return false
	}
	s.mu.Unlock()
	code := screen.run(t.Context(), "app", "push", s.folder, "--server="+s.url, "--token="+s.token)
	screen.until(t, "progress", func() bool { return strings.Contains(screen.text.String(), "sending [") })
	close(sending)
	is.Equal(<-code, 0)
	screen.until(t, "the result", func() bool { return strings.Contains(screen.text.String(), "Published the app ") })
	is.True(strings.Contains(screen.text.String(), "\r\x1b[K+ index.html\r\nPublished the app "))
}
