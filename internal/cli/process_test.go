package cli

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func TestStartsInATwinkling(t *testing.T) {
	is, data := is.New(t), "--data="+filepath.Join(t.TempDir(), "data")
	_, err := built()
	is.NoErr(err)
	is.Equal(spawn(t, data).stop(), 0) // creates the file
	best := time.Hour
	for range 5 {
		began := time.Now()
		s := spawn(t, data)
		best = min(best, time.Since(began))
		is.Equal(s.stop(), 0)
	}
	t.Logf("ready after %s, the best of five starts", best)
	is.True(best < 2*time.Second) // on a busy machine, too; the measured time is in BENCHMARKS.md
}

// TestTwoStartAtOnce: several servers share a PostgreSQL. A SQLite file has only one
// (TestOneServerOfAFile).
func TestTwoStartAtOnce(t *testing.T) {
	t.Setenv("TENANTCONTENT_ADMIN_PASSWORD", password)
	dbtest.Server(t)
	t.Run("postgres", func(t *testing.T) {
		is, flags := is.New(t), onPostgres(t)
		one, two := begin(t, flags...), begin(t, flags...)
		one.await(t, func() bool { return false })
		two.await(t, func() bool { return false })
		is.Equal(strings.Count(one.stdout.String()+two.stdout.String(), "First start"), 1)
		token := one.login(t, "", "admin", password)
		status, body := call(t, "PUT", two.url+"/api/colors/red", token, `{"color":"#f00"}`) // it is a shared database
		is.Equal(status, http.StatusOK)
		status, _ = call(t, "GET", one.url+"/api/colors/red", two.login(t, "", "admin", password), "")
		is.Equal(status, http.StatusOK)
		is.Equal(field(t, body, "tenant"), "default")
		is.Equal(one.stop(), 0)
		is.Equal(two.stop(), 0)
	})
}

func TestStopFinishesWhatRuns(t *testing.T) {
	eachPlace(t, func(t *testing.T, flags []string) {
		is, s := is.New(t), spawn(t, flags...)
		token := s.login(t, "", "admin", password)
		s.importColors(t, token, 50000)

		// An upload that has arrived only in part, and a list that was read only in part.
		in, out := io.Pipe()
		req, err := http.NewRequest("POST", s.url+"/api/uploads?filename=slow.txt", in)
		is.NoErr(err)
		req.Header.Set("Authorization", "Bearer "+token)
		uploaded := make(chan string, 1)
		go func() {
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				uploaded <- err.Error()
				return
			}
			defer func() { _ = res.Body.Close() }()
			body, err := io.ReadAll(res.Body)
			uploaded <- fmt.Sprint(res.StatusCode, " ", string(body), err)
		}()
		_, err = out.Write([]byte(strings.Repeat("x", 3<<20)))
		is.NoErr(err)
		list := slowList(t, s, token)

		code := make(chan int, 1)
		go func() { code <- s.stop() }()
		s.refuses(t)
		is.Equal(len(code), 0) // it waits

		_, err = out.Write([]byte("the end"))
		is.NoErr(err)
		is.NoErr(out.Close())
		answer := <-uploaded
		is.True(strings.HasPrefix(answer, "201 "))
		is.True(strings.Contains(answer, fmt.Sprintf(`"size":%d`, 3<<20+7)))
		body, err := io.ReadAll(list)
		is.NoErr(err) // the list is complete
		is.Equal(strings.Count(string(body), `"key":`), 50000)
		is.Equal(<-code, 0)
		is.True(!strings.Contains(s.stderr.String(), "level=ERROR"))
	})
}

// refuses waits until new connections are refused.
func (s *server) refuses(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			return
		}
		_ = c.Close()
	}
	t.Fatal("it still takes connections")
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Setenv("TENANTCONTENT_ADMIN_PASSWORD", password)
	is, s := is.New(t), spawn(t, onSQLite(t)...)
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	is.NoErr(err)
	defer func() { _ = c.Close() }()
	_, err = fmt.Fprintf(c,
		"POST /api/uploads?filename=x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: "+
			"9\r\nExpect: 100-continue\r\n\r\n",
		s.login(t, "", "admin", password))
	is.NoErr(err)
	line, err := bufio.NewReader(c).ReadString('\n')
	is.NoErr(err)
	is.Equal(line, "HTTP/1.1 100 Continue\r\n") // the request has begun
	is.NoErr(s.cmd.Process.Signal(syscall.SIGTERM))
	s.refuses(t)
	began := time.Now()
	is.Equal(s.stop(), -1) // by the signal
	is.True(time.Since(began) < 5*time.Second)
}

// slowList requests the whole palette over a connection with small buffers, and does not read the
// body yet.
func slowList(t *testing.T, s *server, token string) io.Reader {
	t.Helper()
	is := is.New(t)
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	is.NoErr(err)
	t.Cleanup(func() { _ = c.Close() })
	is.NoErr(c.(*net.TCPConn).SetReadBuffer(64 << 10))
	_, err = fmt.Fprintf(c, "GET /api/colors-list HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", token)
	is.NoErr(err)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	is.NoErr(err)
	is.Equal(res.StatusCode, http.StatusOK)
	return res.Body
}

// colorFile returns an export of n colors.
func colorFile(n int) string {
	var b strings.Builder
	b.WriteByte('[')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"key":"import-%06d","color":"#%06x"}`, i, i)
	}
	b.WriteByte(']')
	return b.String()
}

// upload uploads a file and returns its id.
func (s *server) upload(t *testing.T, token, content string) string {
	t.Helper()
	status, body := call(t, "POST", s.url+"/api/uploads?filename=colors.json", token, content)
	is.New(t).Equal(status, http.StatusCreated)
	return field(t, body, "id")
}

func (s *server) importColors(t *testing.T, token string, n int) {
	t.Helper()
	status, body := call(
		t, "POST", s.url+"/api/colors-import", token, `{"uploadId":"`+s.upload(t, token, colorFile(n))+`"}`,
	)
	is.New(t).Equal(status, http.StatusOK)
	is.New(t).Equal(body, fmt.Sprintf(`{"colorsImported":%d}`, n))
}

// TestFirstLineNamesTheBasePath: the first line names the base path, and all routes are below it.
func TestFirstLineNamesTheBasePath(t *testing.T) {
	is := is.New(t)
	s := serving(
		t, "--data="+filepath.Join(t.TempDir(), "data"), "--base-url=https://example.com/content/",
		"--admin-password="+password,
	)
	is.True(strings.HasSuffix(s.url, "/content"))
	first, _, _ := strings.Cut(s.stderr.String(), "\n")
	is.True(strings.Contains(first, "url="+s.url))
	s.login(t, "", "admin", password)
}
