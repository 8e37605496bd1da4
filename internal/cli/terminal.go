package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	_ "time/tzdata" // users have time zones, which a minimal machine lacks

	"golang.org/x/term"

	"github.com/tenantcontent/tenantcontent/errs"
)

// terminal has the streams of a command.
type terminal struct {
	in       io.Reader
	out, err io.Writer
}

// keyboard returns the file descriptor of the terminal for input, or false if the input is not a
// terminal.
func (t terminal) keyboard() (fd int, ok bool) {
	f, ok := t.in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	return int(f.Fd()), true
}

// ask reads a password: a line that is not displayed while it is typed on a terminal.
func (t terminal) ask(ctx context.Context, prompt string) (string, error) {
	fd, ok := t.keyboard()
	if !ok {
		line, err := t.line(ctx, "")
		if err == nil && line == "" {
			err = errs.New(errs.Invalid, "no password: set TENANTCONTENT_PASSWORD or write it to the input")
		}
		return line, err
	}
	shown, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	_, _ = fmt.Fprint(t.err, prompt)
	line, err := await(ctx, func() (string, error) {
		line, err := term.ReadPassword(fd)
		return string(line), err
	})
	_, _ = fmt.Fprintln(t.err)
	if ctx.Err() != nil {
		return "", errors.Join(err, term.Restore(fd, shown)) // the pending read still has the echo off
	}
	return line, err
}

// line reads a line, or "" at the end of the input.
func (t terminal) line(ctx context.Context, prompt string) (string, error) {
	_, _ = fmt.Fprint(t.err, prompt)
	return await(ctx, func() (string, error) {
		line, err := bufio.NewReader(t.in).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return strings.TrimRight(line, "\r\n"), err
	})
}

// await returns the result of read, or the error of ctx if that ends first, because a read from a
// terminal cannot be interrupted.
func await(ctx context.Context, read func() (string, error)) (string, error) {
	type result struct {
		line string
		err  error
	}
	got := make(chan result, 1)
	go func() {
		line, err := read()
		got <- result{line, err}
	}()
	select {
	case r := <-got:
		return r.line, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func say(t terminal, format string, args ...any) error {
	_, err := fmt.Fprintf(t.out, format+"\n", args...)
	return err
}

// table prints rows in columns.
func table(t terminal, rows [][]string) error {
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

func day(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// list joins words. It returns "nothing" without words.
func list(words []string) string {
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}
