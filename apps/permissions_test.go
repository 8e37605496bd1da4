package apps_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
)

// granted returns the names of the permissions that are true, ordered.
func granted(p apps.Permissions) string {
	var names []string
	v := reflect.ValueOf(p)
	for i := range v.NumField() {
		if v.Field(i).Bool() {
			names = append(names, v.Type().Field(i).Name)
		}
	}
	return strings.Join(names, " ")
}

const team = "00000000-0000-7000-8000-0000000000ab"

// TestPermissions: what each role may do with an app of each tier, by how it comes to the app.
func TestPermissions(t *testing.T) {
	const (
		writes = "Copy Delete Edit Manage"
		all    = "AssignTags Bind ChangeOwner Copy Delete Edit Manage Purge Restore Run Share SwitchRoles Write"
	)
	want := map[apps.Tier]map[actor.Role]string{
		apps.Report: {
			actor.NoRole:     "",
			actor.Member:     "Bind Run",
			actor.Designer:   "AssignTags Bind Copy Delete Edit Manage Restore Run SwitchRoles Write",
			actor.DataWizard: "AssignTags Bind Copy Delete Edit Manage Purge Restore Run SwitchRoles Write",
			actor.Publisher:  "AssignTags Bind Copy Delete Edit Manage Purge Restore Run Share SwitchRoles Write",
			actor.Admin:      all,
		},
		apps.Full: {
			actor.NoRole:     "",
			actor.Member:     "Bind Run",
			actor.Designer:   "AssignTags Bind Run",
			actor.DataWizard: "AssignTags Bind Purge Run",
			actor.Publisher:  "AssignTags Bind Purge Run Share",
			actor.Admin:      all,
		},
	}
	for tier, byRole := range want {
		for role, names := range byRole {
			jo := actor.Actor{Tenant: "acme", User: "jo", Teams: map[string]actor.Role{team: role}}
			if role == actor.NoRole {
				jo.Teams = nil
			}
			for how, c := range map[string]struct {
				owner string
				grant shares.Grant
				names string
			}{
				"owns it":                   {"jo", shares.Grant{}, names},
				"a share lets change it":    {"mia", shares.Grant{Level: shares.Write}, names},
				"owns it by a team":         {team, shares.Grant{}, names},
				"a share lets run it":       {"mia", shares.Grant{Level: shares.Use}, only(names, "Run")},
				"a share that gives none":   {"mia", shares.Grant{}, ""},
				"owns it and may run it":    {"jo", shares.Grant{Level: shares.Use}, names},
				"a share of another tenant": {"mia", shares.Grant{Roles: []string{"admin"}}, ""},
			} {
				if role == actor.NoRole && c.owner == team {
					continue
				}
				t.Run(fmt.Sprint(tier, " ", role, " ", how), func(t *testing.T) {
					is := is.New(t)
					is.Equal(granted(apps.PermissionsOf(jo, apps.App{Type: tier, OwnerID: c.owner}, c.grant)), c.names)
					reads := jo
					reads.ReadOnly = true
					is.Equal(granted(apps.PermissionsOf(reads, apps.App{Type: tier, OwnerID: c.owner}, c.grant)), "")
					managed := strings.ReplaceAll(c.names, "Edit ", "")
					is.Equal(
						granted(apps.PermissionsOf(
							jo, apps.App{Type: tier, OwnerID: c.owner, IsManaged: true}, c.grant,
						)),
						managed,
					)
				})
			}
		}
	}
	is := is.New(t)
	is.True(strings.Contains(all, writes))
	root := actor.Actor{Tenant: "acme", User: "root", Superuser: true}
	is.Equal(granted(apps.PermissionsOf(root, apps.App{Type: apps.Full, OwnerID: "mia"}, shares.Grant{})), all)
}

// only returns one of some names if it is among them.
func only(names, one string) string {
	if strings.Contains(names, one) {
		return one
	}
	return ""
}

// TestRoleInOwningTeam: at an app of a team the role in that team counts, and with a share the
// highest one over all teams.
func TestRoleInOwningTeam(t *testing.T) {
	is := is.New(t)
	jo := actor.Actor{
		Tenant: "acme",
		User:   "jo",
		Teams:  map[string]actor.Role{team: actor.Member, "other": actor.Admin},
	}
	app := apps.App{Type: apps.Report, OwnerID: team}
	is.Equal(granted(apps.PermissionsOf(jo, app, shares.Grant{})), "Bind Run")
	is.True(apps.PermissionsOf(jo, app, shares.Grant{Level: shares.Write}).Write)
	is.True(!apps.PermissionsOf(jo, app, shares.Grant{Level: shares.Use}).Write)
	is.True(apps.Visible(jo, app, shares.Grant{}))
	is.True(!apps.Visible(actor.Actor{Tenant: "acme", User: "al"}, app, shares.Grant{}))
	is.True(apps.Visible(actor.Actor{Tenant: "acme", User: "al"}, app, shares.Grant{Level: shares.Use}))
}
