package archive_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/transfer/archive"
)

// most is the most bytes of memory for the worst archive, including those of the test.
const most = 128 << 20

// TestHostileMemory: memory does not grow with the contents of an archive. These archives are not
// stopped by the expansion ratio. As in TestMostMembersMemory, the goroutines that write and read
// an archive share only a pipe, and the one that measures shares nothing with them. Tests of memory
// run without the race detector, which has nothing to find here.
func TestHostileMemory(t *testing.T) {
	head := strings.Replace(good, `"color": 1`, `"color": 199998`, 1)
	for name, c := range map[string]struct {
		message string
		write   func(w *hostile)
	}{
		"giant name in the sums": {"checksums.json", func(w *hostile) {
			w.member("bundle.json", good)
			w.member("entities/color/red.json", "{}")
			w.long("checksums.json", `{"`, "a", 160<<20, `": "x"}`)
		}},
		"long name in many sums": {"a text of more than", func(w *hostile) {
			w.member("bundle.json", strings.Replace(good, `"color": 1`, `"color": 1000`, 1))
			for i := range 1000 {
				w.member(fmt.Sprintf("entities/color/%d.json", i), "{}")
			}
			w.long("checksums.json", `{"`, "a", 200_000, `": "x"}`)
		}},
		"giant sum": {"checksums.json", func(w *hostile) {
			w.member("bundle.json", good)
			w.member("entities/color/red.json", "{}")
			w.long("checksums.json", `{"bundle.json": "`, "a", 160<<20, `"}`)
		}},
		"giant number for a sum": {"checksums.json", func(w *hostile) {
			w.member("bundle.json", good)
			w.member("entities/color/red.json", "{}")
			w.long("checksums.json", `{"bundle.json": `, "1", 160<<20, `}`)
		}},
		"sums of air": {"checksums.json", func(w *hostile) {
			w.member("bundle.json", good)
			w.member("entities/color/red.json", "{}")
			w.long("checksums.json", `{`, " ", 160<<20, `}`)
		}},
		"sums nested deep": {"checksums.json", func(w *hostile) {
			w.member("bundle.json", good)
			w.member("entities/color/red.json", "{}")
			w.long("checksums.json", `{"bundle.json": `, "[", 160<<20, `}`)
		}},
		"entries without end": {"bundle.json", func(w *hostile) {
			w.long(
				"bundle.json", strings.TrimSuffix(good, `], "counts": {"color": 1}}`)+"0", ",0", 16<<20-200,
				`], "counts": {}}`,
			)
		}},
		"kinds without end": {"bundle.json", func(w *hostile) {
			var b strings.Builder
			for i := 0; b.Len() < 16<<20-200; i++ {
				fmt.Fprintf(&b, `"%x":0,`, i)
			}
			w.member("bundle.json", strings.TrimSuffix(good, `"color": 1}}`)+b.String()+`"color": 1}}`)
		}},
		"header nested deep": {"bundle.json", func(w *hostile) {
			w.long("bundle.json", strings.TrimSuffix(good, `], "counts": {"color": 1}}`), `{"a":[`, 16<<20-300, "")
		}},
		"data nested deep": {"bundle.json", func(w *hostile) {
			w.member(
				"bundle.json",
				strings.Replace(
					good, `"entries": []`,
					`"entries": [{"type": "tagged", "data": `+strings.Repeat(`{"a":`, 9000)+`{}`+
						strings.Repeat(`}`, 9000)+`}]`,
					1,
				),
			)
		}},
		"header too long": {"bundle.json", func(w *hostile) { w.long("bundle.json", `{"x": "`, "x", 160<<20, `"}`) }},
		"row nested deep": {"entities/color/red.json", func(w *hostile) {
			w.member("bundle.json", good)
			w.long("entities/color/red.json", `{"a":`, "[", 4<<20-100, "")
		}},
		"row of columns": {"entities/color/red.json", func(w *hostile) {
			var b strings.Builder
			for i := 0; b.Len() < 4<<20-200; i++ {
				fmt.Fprintf(&b, `"%x":0,`, i)
			}
			w.member("bundle.json", good)
			w.member("entities/color/red.json", "{"+b.String()+`"":0}`)
		}},
		"a million members": {"one more than bundle.json counts", func(w *hostile) {
			w.member("bundle.json", head)
			for i := 0; w.err == nil && i < 1_000_000; i++ {
				w.member(fmt.Sprintf("entities/color/%d.json", i), "{}")
			}
		}},
		"a million files": {"members", func(w *hostile) {
			w.member("bundle.json", head)
			for i := 0; w.err == nil && i < 1_000_000; i++ {
				w.member(fmt.Sprintf("files/1/A%d", i), "")
			}
		}},
		"long names": {"names", func(w *hostile) {
			w.member("bundle.json", head)
			long := strings.Repeat("e", 4000)
			for i := 0; w.err == nil && i < 150_000; i++ {
				w.member(fmt.Sprintf("files/1/%s%d", long, i), "")
			}
		}},
		"deep folders": {"names", func(w *hostile) {
			w.member("bundle.json", head)
			deep := strings.Repeat("/a", 2000)
			for i := 0; w.err == nil && i < 150_000; i++ {
				w.member(fmt.Sprintf("files/1/%d%s", i, deep), "")
			}
		}},
		"giant name": {"header", func(w *hostile) {
			w.member("bundle.json", good)
			w.special('x', pax("path", strings.Repeat("a", 1<<20-20)))
			w.member("entities/color/red.json", "{}")
		}},
		"giant GNU name": {"header", func(w *hostile) {
			w.member("bundle.json", good)
			w.special('L', strings.Repeat("a", 1<<20-20))
			w.member("entities/color/red.json", "{}")
		}},
		"names that hold on to more": {"header", func(w *hostile) {
			w.member("bundle.json", head)
			for i := 0; w.err == nil && i < 500; i++ {
				last := pax("path", fmt.Sprintf("entities/color/%d.json", i))
				w.special('x', strings.Repeat(pax("path", strings.Repeat("a", 1000)), 1000)+last)
				w.member("x", "{}")
			}
		}},
		"headers without end": {"header", func(w *hostile) {
			w.member("bundle.json", good)
			for i := 0; w.err == nil && i < 500_000; i++ {
				w.special('x', pax("path", "entities/color/red.json"))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r, w := io.Pipe()
			go func() {
				h := &hostile{}
				h.zip, _ = gzip.NewWriterLevel(w, gzip.BestSpeed)
				h.tar = tar.NewWriter(h.zip)
				c.write(h)
				_ = h.tar.Close()
				_ = h.zip.Close()
				_ = w.Close()
			}()
			var err error
			peak := heapPeak(func() { _, err = drain(r, archive.Limits{Ratio: 1 << 40}) })
			_ = r.Close()
			if errs.CodeOf(err) != errs.Invalid || !strings.Contains(errs.MessageOf(err), c.message) ||
				len(errs.MessageOf(err)) > 1000 {
				t.Errorf("%.300v", err)
			}
			if peak > most {
				t.Errorf("took %d MiB", peak>>20)
			}
		})
	}
}

// TestMostMembersMemory: the most members with the longest names need no more memory, when they are
// written and read at the same time.
func TestMostMembersMemory(t *testing.T) {
	const n = 30_000 - 2
	is, limits := is.New(t), archive.Limits{Members: n + 2}
	r, w := io.Pipe()
	peak := heapPeak(func() {
		go func() {
			a, err := archive.NewWriter(w, archive.Header{}, limits)
			for i := 0; err == nil && i < n; i++ {
				f := entity.File{Path: fmt.Sprintf("%s%05d/%d", strings.Repeat("Folder/", 14), i/7, i)}
				err = a.File("1", f, strings.NewReader(""))
			}
			_ = w.CloseWithError(errors.Join(err, a.Close()))
		}()
		got, err := drain(r, limits)
		is.Equal(err, io.EOF)
		is.Equal(got, n+1)
	})
	is.True(peak < most/3)
}

// drain reads an archive to its end.
func drain(r io.Reader, l archive.Limits) (n int, err error) {
	a, err := archive.NewReader(r, l)
	for err == nil {
		_, err = a.Next()
		n++
	}
	return n, err
}

// heapPeak returns how much the heap grew while fn ran, including garbage of the last cycle.
func heapPeak(fn func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	runtime.GC()
	heap := func() uint64 { // runtime.ReadMemStats would stop the world each time
		s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	before, peak, done := heap(), uint64(0), make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	for {
		select {
		case <-done:
			return max(peak, before) - before
		case <-time.After(time.Millisecond):
			peak = max(peak, heap())
		}
	}
}

// hostile writes invalid archives.
type hostile struct {
	zip *gzip.Writer
	tar *tar.Writer
	err error
}

func (h *hostile) note(err error) {
	if h.err == nil {
		h.err = err
	}
}

func (h *hostile) member(name, content string) {
	h.note(h.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o644}))
	_, err := io.WriteString(h.tar, content)
	h.note(err)
}

// long writes a member whose middle is repeated up to n bytes.
func (h *hostile) long(name, before, middle string, n int, after string) {
	n -= n % len(middle)
	h.note(h.tar.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg,
		Name:     name,
		Size:     int64(len(before) + n + len(after)),
		Mode:     0o644,
	}))
	_, err := io.Copy(h.tar, io.MultiReader(strings.NewReader(before), &repeated{middle, n}, strings.NewReader(after)))
	h.note(err)
}

type repeated struct {
	text string
	left int
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p)-len(p)%len(r.text), r.left)
	for i := 0; i < n; i += len(r.text) {
		copy(p[i:], r.text)
	}
	r.left -= n
	return n, nil
}

// special writes a header of a kind that tar.Writer refuses.
func (h *hostile) special(flag byte, content string) {
	h.note(h.tar.Flush())
	block := make([]byte, 512)
	copy(block, "PaxHeaders.0/x")
	copy(block[100:], "0000644\x000000000\x000000000\x00")
	copy(block[124:], fmt.Sprintf("%011o\x0000000000000\x00", len(content)))
	block[156] = flag
	copy(block[257:], "ustar\x0000")
	if flag == 'L' {
		copy(block[257:], "ustar  \x00")
	}
	_, err := h.zip.Write(append(append(resummed(block, 0), content...), bytes.Repeat(
		[]byte{0}, (512-len(content)%512)%512,
	)...))
	h.note(err)
}

// pax returns one record of an extended header.
func pax(key, value string) string {
	n := len(key) + len(value) + 3
	for len(fmt.Sprintf("%d %s=%s\n", n, key, value)) != n {
		n++
	}
	return fmt.Sprintf("%d %s=%s\n", n, key, value)
}
