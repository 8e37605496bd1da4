//go:build unix

package pgtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"
	"go.uber.org/goleak"

	"github.com/tenantcontent/tenantcontent/internal/testkit/needs"
)

// The test binary runs itself again as a process that starts a cluster and is then killed.
const asVictim = "PGTEST_VICTIM"

func TestMain(m *testing.M) {
	if os.Getenv(asVictim) == "" {
		os.Exit(m.Run())
	}
	c, err := Start(context.Background())
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(c.server, c.dir)
	time.Sleep(time.Hour) // select {} would end a process in which nothing else runs: "all goroutines are asleep"
}

func started(t *testing.T) *Cluster {
	t.Helper()
	c, err := Start(t.Context())
	needs.Start(t, err, ErrNoServer)
	t.Cleanup(c.Stop)
	return c
}

// answers reports whether the server at an address answers: S or N to the question whether it
// supports TLS.
func answers(network, address string) bool {
	conn, err := net.DialTimeout(network, address, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	conn.Write([]byte{0, 0, 0, 8, 4, 210, 22, 47})
	answer := make([]byte, 1)
	_, err = conn.Read(answer)
	return err == nil && strings.Contains("SN", string(answer))
}

func (c *Cluster) tcp() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port)) }

func alive(pid int) bool {
	for _, p := range processes() {
		if p.pid == pid {
			return !strings.HasPrefix(p.state, "Z")
		}
	}
	return false
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestStartAndStop(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent()) // no goroutine waits for the server
	is := is.New(t)
	began := time.Now()
	c := started(t)
	t.Log("started in", time.Since(began))
	is.True(answers("tcp", c.tcp()))
	is.True(answers("unix", c.Socket))
	is.True(len(c.Socket) < 100)
	server, watcher := c.server, c.watcher
	began = time.Now()
	c.Stop()
	t.Log("stopped in", time.Since(began))
	is.True(!alive(server))
	is.True(!alive(watcher))
	is.True(!exists(c.dir))
	is.True(!answers("tcp", c.tcp()))
	c.Stop()
	c.Kill()
	is.True(c.Restart(t.Context()) != nil) // its folder was removed
}

func TestTwoAtOnce(t *testing.T) {
	is, a, b := is.New(t), started(t), started(t)
	is.True(a.URL != b.URL)
	a.Kill()
	is.True(answers("tcp", b.tcp()))
}

func TestKillAndRestart(t *testing.T) {
	is, c := is.New(t), started(t)
	url, processes := c.URL, append(liveChildren(c.server), c.server)
	is.True(len(processes) > 3)
	for range 2 {
		c.Kill()
		for _, pid := range processes {
			is.True(!alive(pid))
		}
		is.True(!answers("tcp", c.tcp()))
		is.NoErr(c.Restart(t.Context()))
		is.True(answers("tcp", c.tcp()))
	}
	c.Shutdown()
	is.True(!answers("tcp", c.tcp()))
	is.NoErr(c.Restart(t.Context()))
	is.NoErr(c.Restart(t.Context())) // while it is running
	is.Equal(c.URL, url)
	is.True(answers("tcp", c.tcp()))
}

var (
	errNoIPCS = errors.New("ipcs does not show the shared memory of a running server: install util-linux on Linux")
	errNoPSQL = errors.New("psql is missing: install PostgreSQL's client programs")
)

// TestKillFreesSharedSegment: Stop frees the System V segment that a killed server cannot free.
func TestKillFreesSharedSegment(t *testing.T) {
	is, c := is.New(t), started(t)
	b, err := os.ReadFile(c.lockFile())
	is.NoErr(err)
	segment := strings.Fields(strings.Split(string(b), "\n")[6])[1]
	if exec.Command("ipcs", "-m", "-i", segment).Run() != nil {
		needs.Start(t, errNoIPCS, errNoIPCS)
	}
	c.Kill()
	c.Stop()
	out, _ := exec.Command("ipcs", "-m", "-i", segment).CombinedOutput()
	is.True(strings.Contains(string(out), "not found")) // else the segment is still there
}

// TestData: committed data exists after a crash, over both kinds of address.
func TestData(t *testing.T) {
	is, c := is.New(t), started(t)
	psql := func(url, sql string) string {
		out, err := exec.Command("psql", "-XAtq", "-v", "ON_ERROR_STOP=1", url, "-c", sql).CombinedOutput()
		if errors.Is(err, exec.ErrNotFound) {
			needs.Start(t, errNoPSQL, errNoPSQL)
		}
		if err != nil {
			t.Fatal(string(out))
		}
		return strings.TrimSpace(string(out))
	}
	psql(c.URL, "CREATE TABLE t AS SELECT 1 AS n")
	c.Kill()
	is.NoErr(c.Restart(t.Context()))
	is.Equal(psql(c.SocketURL, "SELECT n FROM t"), "1")
}

// TestCopy: a copy has the data as of Save. If two save to one folder, the first copy is kept.
func TestCopy(t *testing.T) {
	is, a := is.New(t), started(t)
	data := filepath.Join(filepath.Dir(a.dir), filepath.Base(a.dir)+".saved") // the server's user can write there
	t.Cleanup(func() { os.RemoveAll(data) })
	is.NoErr(os.WriteFile(filepath.Join(a.data(), "mark"), []byte("first"), 0o644))
	is.NoErr(a.Save(t.Context(), data))
	is.True(answers("tcp", a.tcp()))
	is.NoErr(os.WriteFile(filepath.Join(a.data(), "mark"), []byte("second"), 0o644))
	is.NoErr(a.Save(t.Context(), data))
	a.Stop()
	b, err := StartCopy(t.Context(), data)
	is.NoErr(err)
	t.Cleanup(b.Stop)
	is.True(answers("tcp", b.tcp()))
	mark, err := os.ReadFile(filepath.Join(b.data(), "mark"))
	is.NoErr(err)
	is.Equal(string(mark), "first")
	_, err = StartCopy(t.Context(), filepath.Join(data, "missing"))
	is.True(err != nil && strings.Contains(err.Error(), "missing"))
}

func TestKilledParentLeavesNothing(t *testing.T) {
	is := is.New(t)
	started(t).Stop() // skips without a server
	victim := exec.Command(os.Args[0])
	victim.Env = append(os.Environ(), asVictim+"=1")
	out, err := victim.StdoutPipe()
	is.NoErr(err)
	is.NoErr(victim.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	is.NoErr(err)
	pid, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
	server, err := strconv.Atoi(pid)
	is.NoErr(err) // line contains the reason if it did not start
	is.True(alive(server) && exists(dir))
	is.NoErr(victim.Process.Signal(syscall.SIGKILL))
	victim.Wait()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if !alive(server) && !exists(dir) {
			return
		}
	}
	t.Fatalf("server alive: %v, folder %s exists: %v", alive(server), dir, exists(dir))
}

func TestNoServer(t *testing.T) {
	is := is.New(t)
	t.Setenv("PG_BIN", t.TempDir())
	_, err := Start(t.Context())
	is.True(errors.Is(err, ErrNoServer))
}

func TestStartGivesUpWithItsContext(t *testing.T) {
	is := is.New(t)
	started(t).Stop() // skips without a server
	for _, after := range []time.Duration{0, 50 * time.Millisecond, 150 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		c, err := Start(ctx)
		cancel()
		if err == nil { // a fast machine
			c.Stop()
			continue
		}
		is.True(errors.Is(err, context.DeadlineExceeded))
	}
}

func TestNewestOfDebian(t *testing.T) {
	is := is.New(t)
	is.True(version("/usr/lib/postgresql/9.6/bin") < version("/usr/lib/postgresql/15/bin"))
	is.Equal(version("/usr/libexec/postgresql17"), 17.0)
}
