package principals

import (
	"testing"

	"github.com/matryer/is"
	"pgregory.net/rapid"
)

func TestSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool := []string{"a", "b", "c", "d", "e", "f"}
		from := rapid.Permutation(pool).Draw(t, "from")[:rapid.IntRange(0, 6).Draw(t, "n")]
		names := map[string]string{}
		for i, to := range rapid.Permutation(append(pool, "x", "y")).Draw(t, "to")[:len(from)] {
			if to != from[i] {
				names[from[i]] = to
			}
		}
		called := map[string]string{}
		for _, name := range pool {
			called[name] = name
		}
		for _, step := range renameSteps(names) {
			for _, becomes := range step {
				if _, chain := step[becomes]; chain {
					t.Fatalf("%v", step)
				}
			}
			for who, name := range called {
				if becomes, ok := step[name]; ok {
					called[who] = becomes
				}
			}
		}
		for _, name := range pool {
			if want, ok := names[name]; ok && called[name] != want || !ok && called[name] != name {
				t.Fatalf("%s is %s", name, called[name])
			}
		}
	})
	is := is.New(t)
	// another spelling is no other name
	is.Equal(renameSteps(map[string]string{"jo": "Jo"}), [2]map[string]string{{}, {"jo": "Jo"}})
}
