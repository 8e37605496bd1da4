package shares_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
)

// ids returns n different ids of roles.
func ids(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = strconv.Itoa(1000 + i)
	}
	return all
}

func TestAccept(t *testing.T) {
	long := strings.Repeat("ü", shares.MaxRole)
	for name, c := range map[string]struct {
		level, top shares.Level
		roles      []string
		want       []string // roles
		invalid    string   // field
	}{
		"nothing":    {level: shares.None, top: shares.Write},
		"top":        {level: shares.Write, top: shares.Write, roles: []string{"a"}, want: []string{"a"}},
		"admin":      {level: shares.Admin, top: shares.Admin},
		"above top":  {level: shares.Admin, top: shares.Write, invalid: "accessLevel"},
		"above all":  {level: shares.Admin + 1, top: shares.Admin, invalid: "accessLevel"},
		"below none": {level: shares.None - 1, top: shares.Admin, invalid: "accessLevel"},
		"order and twice": {
			level: shares.Use,
			top:   shares.Write,
			roles: []string{"b", "a", "b", "B"},
			want:  []string{"B", "a", "b"},
		},
		"long role":     {level: shares.Use, top: shares.Write, roles: []string{long}, want: []string{long}},
		"too long role": {level: shares.Use, top: shares.Write, roles: []string{"a", long + "x"}, invalid: "roles"},
		"empty role":    {level: shares.Use, top: shares.Write, roles: []string{"a", ""}, invalid: "roles"},
		"most roles": {
			level: shares.Use,
			top:   shares.Write,
			roles: ids(shares.MaxRoles),
			want:  ids(shares.MaxRoles),
		},
		"too many roles": {level: shares.Use, top: shares.Write, roles: ids(shares.MaxRoles + 1), invalid: "roles"},
		"many equal": {
			level: shares.Use,
			top:   shares.Write,
			roles: slices.Repeat([]string{"a"}, shares.MaxRoles+1),
			want:  []string{"a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			s := shares.Share{PrincipalID: "jo", Level: c.level, Roles: c.roles}
			err := s.Accept(c.top)
			if c.invalid != "" {
				is.Equal(errs.CodeOf(err), errs.Invalid)
				is.True(strings.HasPrefix(errs.MessageOf(err), c.invalid+" "))
				return
			}
			is.NoErr(err)
			is.Equal(s, shares.Share{PrincipalID: "jo", Level: c.level, Roles: c.want})
		})
	}
}

func TestPrincipals(t *testing.T) {
	for name, c := range map[string]struct {
		actor actor.Actor
		want  []string
	}{
		"alone": {actor.Actor{User: "jo"}, []string{"*", "jo"}},
		"teams": {
			actor.Actor{User: "jo", Teams: map[string]actor.Role{"z": actor.Member, "a": actor.NoRole}},
			[]string{"*", "a", "jo", "z"},
		},
		"superuser": {actor.Actor{User: "!", Superuser: true}, []string{"!", "*"}},
	} {
		t.Run(name, func(t *testing.T) { is.New(t).Equal(shares.Principals(c.actor), c.want) })
	}
}

// TestVersion changes with every field.
func TestVersion(t *testing.T) {
	at := time.Date(2026, 11, 23, 2, 40, 0, 0, time.UTC)
	seen := map[string]int{}
	all := []shares.Share{
		{}, {PrincipalID: "jo"}, {Level: shares.Use},
		{Roles: []string{"a"}}, {Roles: []string{"a", "b"}}, {Roles: []string{"ab"}},
		{CreatedAt: at}, {UpdatedAt: at}, {UpdatedAt: at.Add(time.Microsecond)},
	}
	for i, s := range all {
		if other, ok := seen[s.Version()]; ok {
			t.Errorf("%+v and %+v have the same version", s, all[other])
		}
		seen[s.Version()] = i
	}
}
