package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
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
							return // it is dead
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
			colors := s.palette(t, token) // the session lives on, too
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
	file := colorFile(100000)
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
		is.True(<-answered != nil) // it was in the middle
		t.Logf("killed %s into the import", time.Since(began))

		s = spawn(t, flags...)
		is.Equal(s.palette(t, token), map[string]string{"import-000007": "#abcdef"})
		status, body := call(t, "POST", s.url+"/api/colors-import", token, `{"uploadId":"`+id+`"}`) // again, from the start
		is.Equal(status, http.StatusOK)
		is.Equal(body, `{"colorsImported":100000}`)
		is.Equal(len(s.palette(t, token)), 100000)
		is.Equal(s.stop(), 0)
	})
}
