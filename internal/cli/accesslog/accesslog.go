// Package accesslog writes a line of JSON for each request of an App into a file or stream.
//
// Command serve and the benchmarks import it.
package accesslog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
)

const (
	// flushEach is how often lines are written at least.
	flushEach = time.Second
	// flushAt is how many bytes of lines are written at once, earlier than that.
	flushAt = 64 << 10
	// maxWaiting is how many bytes of lines wait in memory while they cannot be written, or are
	// written too slowly. Further lines are lost, and counted.
	maxWaiting = 4 << 20
	// closeTime is how long Close waits for a stream that takes nothing.
	closeTime = 5 * time.Second
	// remindEach is how often the log is told of lines that are lost.
	remindEach = time.Minute
)

// Log is an entity.Observer that writes a line for each request. Requests never wait for the file:
// lines are collected in memory, and another goroutine writes them.
//
// A file is opened anew when another one, or none, has its name, as after a rotation, and lines are
// appended, so that a file may also be cut while it is open.
type Log struct {
	path string // "" for a stream
	log  *slog.Logger

	wake    chan struct{}
	stop    context.CancelFunc
	stopped chan struct{}

	mu      sync.Mutex
	lines   []byte
	lost    int64 // lines
	failure error // of the last write; nil after one that has succeeded

	// These are of the goroutine that writes.

	to       io.Writer
	file     *os.File // nil for a stream
	waiting  []byte   // lines that are being written
	spare    []byte
	told     int64 // lost when the log was last told
	toldAt   time.Time
	failures bool // the log was told that lines cannot be written
}

// Open returns a Log that appends to a file. It logs when the file cannot be written.
// It returns the error of opening the file.
func Open(path string, log *slog.Logger) (*Log, error) {
	l := &Log{path: path, log: log}
	if err := l.reopen(); err != nil {
		return nil, err
	}
	l.start()
	return l, nil
}

// New returns a Log that writes to a stream.
func New(to io.Writer, log *slog.Logger) *Log {
	l := &Log{to: to, log: log}
	l.start()
	return l
}

func (l *Log) start() {
	ctx, stop := context.WithCancel(context.Background())
	l.stop, l.wake, l.stopped = stop, make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(l.stopped)
		l.run(ctx)
	}()
}

// run writes lines until ctx ends, and then what is left.
func (l *Log) run(ctx context.Context) {
	tick := time.NewTicker(flushEach)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-l.wake:
		case <-ctx.Done():
			l.flush()
			return
		}
		l.flush()
	}
}

// Close writes the lines that are left, and closes the file. It returns an error if lines were not
// written.
func (l *Log) Close() error {
	l.stop()
	select {
	case <-l.stopped:
	case <-time.After(closeTime):
		return errors.New("the access log is not written: what it is written to takes nothing")
	}
	l.mu.Lock()
	lost, failure := l.lost, l.failure
	lost += int64(bytes.Count(l.waiting, newline) + bytes.Count(l.lines, newline))
	l.mu.Unlock()
	if l.file != nil {
		failure = errors.Join(failure, l.file.Close())
	}
	if lost > 0 {
		failure = errors.Join(failure, fmt.Errorf("%d lines of the access log are lost", lost))
	}
	return failure
}

var newline = []byte("\n")

// Lost returns how many lines were not written, and never will be.
func (l *Log) Lost() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// Warnings returns a sentence if the last lines could not be written.
func (l *Log) Warnings() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure == nil {
		return nil
	}
	cause := l.failure
	if at, ok := errors.AsType[*fs.PathError](cause); ok { // the path is not for everyone
		cause = at.Err
	}
	return []string{fmt.Sprintf("The access log cannot be written: %v. %d lines are lost.", cause, l.lost)}
}

// Observe implements entity.Observer.
func (l *Log) Observe(ctx context.Context, o entity.Observation) {
	if o.Work != entity.RequestWork {
		return
	}
	l.mu.Lock()
	if len(l.lines) >= maxWaiting {
		l.lost++
		l.mu.Unlock()
		return
	}
	before := len(l.lines)
	l.lines = appendLine(l.lines, ctx, o)
	full := before < flushAt && len(l.lines) >= flushAt
	l.mu.Unlock()
	if full {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// flush writes the lines that wait. What cannot be written is tried again by the next flush.
func (l *Log) flush() {
	if len(l.waiting) == 0 {
		l.mu.Lock()
		l.waiting, l.lines = l.lines, l.spare[:0]
		l.mu.Unlock()
		l.spare = nil
	}
	err := l.write()
	l.mu.Lock()
	l.failure = err
	lost := l.lost
	l.mu.Unlock()
	l.report(err, lost)
}

// write writes what waits.
func (l *Log) write() error {
	if len(l.waiting) == 0 {
		return nil
	}
	if err := l.reopen(); err != nil {
		return err
	}
	n, err := l.to.Write(l.waiting)
	if err != nil {
		l.waiting = l.waiting[n:]
		return err
	}
	if l.waiting = l.waiting[:0]; cap(l.waiting) <= maxWaiting/4 {
		l.spare = l.waiting
	}
	l.waiting = nil
	return nil
}

// reopen opens the file, unless it is open and has its name.
func (l *Log) reopen() error {
	if l.path == "" {
		return nil
	}
	if l.file != nil {
		named, err := os.Stat(l.path)
		if err == nil {
			var open fs.FileInfo
			if open, err = l.file.Stat(); err == nil && os.SameFile(named, open) {
				return nil
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	file, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	if l.file != nil {
		_ = l.file.Close() // each write has reported its error
	}
	l.file, l.to = file, file
	return nil
}

// report logs when lines begin to fail, when they are written again, and what is lost.
func (l *Log) report(err error, lost int64) {
	switch {
	case err != nil && !l.failures:
		l.log.Error("the access log cannot be written: requests go on", "err", err)
		l.failures = true
	case err == nil && l.failures:
		l.log.Warn("the access log is written again", "lost", lost-l.told)
		l.failures, l.told = false, lost
	case lost > l.told && time.Since(l.toldAt) >= remindEach:
		l.log.Warn("the access log loses lines", "lost", lost-l.told, "err", err)
		l.told, l.toldAt = lost, time.Now()
	}
}
