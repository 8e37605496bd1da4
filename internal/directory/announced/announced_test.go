package announced_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/directory/announced"
	"github.com/tenantcontent/tenantcontent/internal/directory/dirsync"
	"github.com/tenantcontent/tenantcontent/internal/directory/scim"
	"github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
)

// record returns a feed, and what it got since the last call of take.
func record() (feed *entity.Changes, take func() []string) {
	var got []string
	feed = entity.NewChanges(entity.ChangesOptions{
		Keep: func(_ context.Context, c entity.Change) error {
			got = append(got, fmt.Sprint(c.Action, " ", c.Kind, " ", c.ID))
			return nil
		},
		Now: time.Now,
	})
	return feed, func() []string {
		all := got
		got = nil
		return all
	}
}

// written is a TeamStore whose methods do nothing, and return an error.
type written struct{ err error }

func (w written) InsertTeam(context.Context, string, principals.Team) error { return w.err }

func (w written) UpdateTeam(
	context.Context, string, string, func(*principals.Team) error,
) (principals.Team, error) {
	return principals.Team{}, w.err
}

func (w written) PutMember(context.Context, string, principals.Membership) error { return w.err }

func (w written) PutTeams(context.Context, string, []principals.Team, []string) error { return w.err }

func (w written) AddMembers(context.Context, string, []principals.Membership) error { return w.err }

func (w written) DeleteMembers(context.Context, string, []announced.MemberKey) error { return w.err }

// TestTeams: each write is announced, unless it fails.
func TestTeams(t *testing.T) {
	is, ctx := is.New(t), t.Context()
	feed, take := record()
	a, b := principals.Membership{TeamID: "t", Username: "a"}, principals.Membership{TeamID: "t", Username: "b"}
	write := func(s announced.TeamStore) error {
		_, err := s.UpdateTeam(ctx, "acme", "t", nil)
		return errors.Join(
			err,
			s.InsertTeam(ctx, "acme", principals.Team{ID: "t"}),
			s.PutTeams(ctx, "acme", []principals.Team{{ID: "u"}, {ID: "v"}}, nil),
			s.PutMember(ctx, "acme", a),
			s.AddMembers(ctx, "acme", []principals.Membership{a, b}),
			s.DeleteMembers(ctx, "acme", []announced.MemberKey{{TeamID: "t", Username: "a"}}),
		)
	}
	is.NoErr(write(announced.Announce(written{}, feed)))
	is.Equal(take(), []string{
		"update team t", "create team t", "create team u", "create team v",
		"update member t/a", "update member t/a", "update member t/b", "delete member t/a",
	})
	is.True(write(announced.Announce(written{errors.New("no")}, feed)) != nil)
	is.Equal(len(take()), 0)
	is.NoErr(write(announced.Announce(written{}, nil)))
}

// TestScansAnnounce: a scan announces the users, teams and memberships that it adds, changes and
// removes.
func TestScansAnnounce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		feed, take := record()
		store := bunstore.New(open(t))
		people := principals.New(principals.Options{Store: store})
		s := dirsync.New(dirsync.Options{
			Store: store, Principals: people.Unchecked(), Feed: feed,
			NewID: func() string { return "00000000-0000-4000-8000-000000000001" },
		})
		scan := func(name string, users, members []string) []string {
			all := dirsync.Snapshot{Groups: []dirsync.Group{{ID: "g", Name: name, Members: members}}}
			for _, user := range users {
				all.People = append(all.People, principals.Identity{ID: user, Username: user})
			}
			_, err := s.Sync(t.Context(), "acme", "ldap", all, dirsync.SyncOptions{Source: "LDAP", Force: true})
			is.NoErr(err)
			return take()
		}
		team := " 00000000-0000-4000-8000-000000000001"
		is.Equal(scan("Staff", []string{"jo", "kim"}, []string{"jo"}), []string{
			"create user jo", "create user kim", "create team" + team, "update member" + team + "/jo",
		})
		is.Equal(len(scan("Staff", []string{"jo", "kim"}, []string{"jo"})), 0)
		is.Equal(scan("All", []string{"jo"}, nil), []string{
			"update user kim", "update team" + team, "delete member" + team + "/jo",
		})
	})
}

// TestProvidersAnnounce: SCIM announces the users, teams and memberships that it adds, changes and
// removes.
func TestProvidersAnnounce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, ctx := is.New(t), t.Context()
		feed, take := record()
		store := bunstore.New(open(t))
		people := principals.New(principals.Options{Store: store})
		s := scim.New(scim.Options{Store: store, Principals: people.Unchecked(), Feed: feed})
		client := scim.Client{Tenant: "acme", Domain: "corp"}
		change, err := scim.ReplaceUser([]byte(fmt.Sprintf(`{"schemas": [%q], "userName": "jo"}`, scim.UserSchema)))
		is.NoErr(err)
		jo, err := s.CreateUser(ctx, client, change)
		is.NoErr(err)
		is.Equal(take(), []string{"create user jo"})
		staff, err := scim.ReplaceGroup([]byte(fmt.Sprintf(
			`{"schemas": [%q], "displayName": "Staff", "members": [{"value": %q}]}`, scim.GroupSchema, jo.ID,
		)))
		is.NoErr(err)
		group, err := s.CreateGroup(ctx, client, staff)
		is.NoErr(err)
		is.Equal(take(), []string{
			"create team " + group.ID, "update member " + group.ID + "/jo", "update team " + group.ID,
		})
		is.NoErr(s.DeleteUser(ctx, client, jo.ID, nil))
		is.Equal(take(), []string{"update user jo", "delete member " + group.ID + "/jo", "update team " + group.ID})
	})
}
