package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// progress is a line on a terminal with the phase and the number of transferred bytes. A nil
// progress prints nothing.
type progress struct {
	out   io.Writer
	width int
	ended chan struct{}
	gone  sync.WaitGroup

	mu    sync.Mutex
	phase string
	began time.Time
	done  size
	all   size // 0 if unknown
}

// progress returns the line of a command, or nil without a terminal. The caller must call finish.
func (t terminal) progress() *progress {
	f, ok := t.err.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 20 {
		width = 80
	}
	p := &progress{out: f, width: width - 1, ended: make(chan struct{})}
	p.gone.Go(p.draw)
	return p
}

// begin starts a phase with its total number of bytes, which is 0 or less if it is unknown or no
// bytes are transferred.
func (p *progress) begin(phase string, all int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase, p.began, p.done, p.all = phase, time.Now(), 0, size(max(all, 0))
}

// show sets the phase, with the number of bytes that are done and of all bytes.
func (p *progress) show(phase string, done, all int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.phase != phase {
		p.phase, p.began = phase, time.Now()
	}
	p.done, p.all = size(done), size(all)
}

// name changes the text of the phase.
func (p *progress) name(phase string) {
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.phase = phase
	}
}

// Write counts bytes.
func (p *progress) Write(b []byte) (int, error) {
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.done += size(len(b))
	}
	return len(b), nil
}

// finish removes the line.
func (p *progress) finish() {
	if p == nil {
		return
	}
	close(p.ended)
	p.gone.Wait()
}

func (p *progress) draw() {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K"+p.line(time.Now()))
		select {
		case <-p.ended:
			_, _ = fmt.Fprint(p.out, "\r\x1b[K")
			return
		case <-tick.C:
		}
	}
}

// line returns the line for a time, no wider than the terminal.
func (p *progress) line(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf("%s, %d s", p.phase, int(now.Sub(p.began).Seconds()))
	switch {
	case p.phase == "":
		return ""
	case p.all > 0:
		const bar = 20
		full := int(bar * min(p.done, p.all) / p.all)
		text = fmt.Sprintf(
			"%s [%s%s] %s of %s", p.phase, strings.Repeat("=", full), strings.Repeat(" ", bar-full),
			p.done.about(), p.all.about(),
		)
	case p.done > 0:
		text = fmt.Sprintf("%s %s", p.phase, p.done.about())
	}
	return text[:min(len(text), p.width)]
}
