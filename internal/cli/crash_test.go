package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"
)

// palette returns all colors of the server by key.
func (s *server) palette(t *testing.T, token string) map[string]string {
	t.Helper()
	is := is.New(t)
	status, body := call(t, "GET", s.url+"/api/colors-list", token, "")
	is.Equal(status, http.StatusOK)
	var list []struct{ Key, Color string }
	is.NoErr(json.Unmarshal([]byte(body), &list))
	colors := map[string]string{}
	for _, c := range list {
		colors[c.Key] = c.Color
	}
	return colors
}

func TestKilledServerKeepsWhatItAcknowledged(t *testing.T) {
	eachPlace(t, func(t *testing.T, flags []string) {
		is := is.New(t)
		var mu sync.Mutex
		acknowledged := map[string]string{}
		s := spawn(t, flags...)
		token := s.login(t, "", "admin", password)
		for round := range 4 {
			var writers sync.WaitGroup
			for w := range 4 {
				writers.Go(func() {
					for i := 0; ; i++ {
						key, color := fmt.Sprintf("k-%d-%d-%d", round, w, i), fmt.Sprintf("#%06x", i)
						status, _, err := try("PUT", s.url+"/api/colors/"+key, token, `{"color":"`+color+`"}`)
						if err != nil {
							return // it was killed
						}
						if status != http.StatusOK {
							t.Errorf("PUT: %d", status)
							return
						}
						mu.Lock()
						acknowledged[key] = color
						mu.Unlock()
					}
				})
			}
			time.Sleep(time.Duration(200+50*round) * time.Millisecond)
			s.kill()
			writers.Wait()
			s = spawn(t, flags...)
			colors := s.palette(t, token) // the session still exists
			for key, color := range acknowledged {
				if colors[key] != color {
					t.Errorf("%s was acknowledged and is %q after the kill", key, colors[key])
				}
			}
		}
		t.Logf("%d acknowledged writes over four kills", len(acknowledged))
		is.True(len(acknowledged) > 40)
		is.Equal(s.stop(), 0)
	})
}

func TestKilledImportLeavesNothing(t *testing.T) {
	const many = 50_000 // an import that takes long
	file := colorFile(many)
	eachPlace(t, func(t *testing.T, flags []string) {
		is, s := is.New(t), spawn(t, flags...)
		token := s.login(t, "", "admin", password)
		status, _ := call(t, "PUT", s.url+"/api/colors/import-000007", token, `{"color":"#abcdef"}`)
		is.Equal(status, http.StatusOK)
		id := s.upload(t, token, file)
		began, answered := time.Now(), make(chan error, 1)
		go func() {
			_, _, err := try("POST", s.url+"/api/colors-import", token, `{"uploadId":"`+id+`"}`)
			answered <- err
		}()
		time.Sleep(150 * time.Millisecond)
		s.kill()
		is.True(<-answered != nil) // it was interrupted
		t.Logf("killed %s into the import", time.Since(began))

		s = spawn(t, flags...)
		is.Equal(s.palette(t, token), map[string]string{"import-000007": "#abcdef"})
		// again from the beginning
		status, body := call(t, "POST", s.url+"/api/colors-import", token, `{"uploadId":"`+id+`"}`)
		is.Equal(status, http.StatusOK)
		is.Equal(body, fmt.Sprintf(`{"colorsImported":%d}`, many))
		is.Equal(len(s.palette(t, token)), many)
		is.Equal(s.stop(), 0)
	})
}

// TestKilledServerKeepsCalls: recorded calls of webhooks are kept when the server is killed, and
// none is recorded that was not made, or twice. A regular stop loses none.
func TestKilledServerKeepsCalls(t *testing.T) {
	eachPlace(t, func(t *testing.T, flags []string) {
		is, s := is.New(t), spawn(t, flags...)
		token := s.login(t, "", "admin", password)
		do := func(method, path, body string) string {
			t.Helper()
			status, answer := call(t, method, s.url+path, token, body)
			if status >= 300 {
				t.Fatalf("%s %s: %d %s", method, path, status, answer)
			}
			return answer
		}
		var made struct{ ID, Key string }
		is.NoErr(json.Unmarshal([]byte(do("POST", "/api/apps", `{"type": "report", "name": "Hooks"}`)), &made))
		app := "/api/apps/" + made.ID
		do("PUT", app+"/contents/webhooks/x.js", "export const POST = () => 1")
		do("POST", app+"/_deploy", "")
		is.NoErr(json.Unmarshal([]byte(do("POST", app+"/webhook-tokens", `{}`)), &made))
		count := func() (n int) {
			t.Helper()
			var listed struct {
				Daily  []struct{ Count int }
				Recent []struct{ ID string }
			}
			is.NoErr(json.Unmarshal([]byte(do("GET", app+"/webhooks", "")), &listed))
			for _, d := range listed.Daily {
				n += d.Count
			}
			is.Equal(len(listed.Recent), min(n, 50))
			return n
		}
		send := func() bool {
			status, _, err := try("POST", s.url+app+"/_hook/x?token="+made.Key, "", "{}")
			return err == nil && status == http.StatusOK
		}
		const first = 10
		for range first {
			is.True(send())
		}
		is.Equal(count(), first) // they are written by now at the latest
		for range first {
			is.True(send())
		}
		time.Sleep(2 * time.Second) // they are written within a second, even without a reader
		const last = 2 * first
		var callers sync.WaitGroup
		var sent, answered atomic.Int64
		for range 4 {
			callers.Go(func() {
				for {
					sent.Add(1)
					if !send() {
						return // it was killed
					}
					answered.Add(1)
				}
			})
		}
		for answered.Load() < 40 {
			time.Sleep(time.Millisecond)
		}
		s.kill()
		callers.Wait()
		s = spawn(t, flags...)
		kept := count()
		t.Logf("%d of %d calls of the last moment were recorded before the kill", kept-last, answered.Load())
		is.True(kept >= last)
		is.True(kept <= last+int(sent.Load()))

		for range first {
			is.True(send())
		}
		is.Equal(s.stop(), 0)
		s = spawn(t, flags...)
		is.Equal(count(), kept+first)
		is.Equal(s.stop(), 0)
	})
}
