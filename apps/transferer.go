package apps

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
	"github.com/tenantcontent/tenantcontent/internal/drafts/manifest"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// transferred is an app as it travels: with its shares and the names of its variables.
type transferred struct {
	App
	shares  []shares.Share
	env     []string
	managed *bool // of the row; nil for one without it
}

// columns are the columns of a row in an archive. Drafts, deleted apps and values of variables do
// not travel.
type columns struct {
	Type        Tier                   `json:"type"`
	Name        string                 `json:"name"`
	Slug        *string                `json:"slug"`
	Description *string                `json:"description"`
	OwnerID     string                 `json:"ownerId"`
	Defn        json.RawMessage        `json:"defn"`
	Env         []string               `json:"env"` // names
	Settings    json.RawMessage        `json:"settings"`
	FolderID    *string                `json:"folderId"`
	Datasets    []Dataset              `json:"datasets"`
	Tags        []string               `json:"tags"`
	Shares      []drafts.SharedColumns `json:"shares"`
	Source      *string                `json:"source"`
	SourceID    *string                `json:"sourceId"`
	IsManaged   bool                   `json:"isManaged"`
	Origin      *string                `json:"origin"`
	CreatedAt   string                 `json:"createdAt"`
	UpdatedAt   string                 `json:"updatedAt"`
}

func toColumns(t transferred) any {
	return columns{
		t.Type, t.Name, t.Slug, t.Description, t.OwnerID, t.Defn,
		listed(t.env), t.Settings, t.FolderID, listed(t.Datasets), listed(t.Tags), drafts.SharesToColumns(t.shares),
		t.Source, t.SourceID, t.IsManaged, t.Origin, transfer.Time(t.CreatedAt), transfer.Time(t.UpdatedAt),
	}
}

// transferer moves apps between tenants.
func (s *Service) transferer() transfer.Transferer[transferred] {
	return drafts.Transferer(s.rules, drafts.Travel[App, transferred]{
		Parts: func(t *transferred) drafts.Parts[App] {
			return drafts.Parts[App]{Entity: &t.App, Shares: &t.shares, Secrets: &t.env}
		},
		Secrets: s.env, Row: toColumns, Refs: refs, Read: s.readRow,
		Free: func(t *transferred) map[string]*json.RawMessage {
			return map[string]*json.RawMessage{"defn": &t.Defn, "settings": &t.Settings}
		},
		Clean: func(t *transferred) (err error) {
			t.Defn, err = withoutEnv(t.Defn)
			return err
		},
		Prepare: func(ctx context.Context, b *transfer.Batch[transferred]) error {
			if err := s.licensedAll(ctx, b); err != nil {
				return err
			}
			return s.leaveUnknown(ctx, b)
		},
		Complete: s.complete,
	})
}

// refs returns what apps need: their datasets and tags.
func refs(_ context.Context, _ string, some []transferred) (map[string][]entity.Key, error) {
	needs := make(map[string][]entity.Key, len(some))
	for _, t := range some {
		var keys []entity.Key
		for _, d := range t.Datasets {
			if key := (entity.Key{Kind: kindDataset, ID: d.DatasetID}); !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
		for _, id := range t.Tags {
			keys = append(keys, entity.Key{Kind: kindTag, ID: id})
		}
		needs[t.ID] = keys
	}
	return needs, nil
}

// readRow checks a row of another tenant.
func (s *Service) readRow(tenant string, r entity.Row) (transferred, error) {
	c, now := transfer.ReadUUID(r), s.rules.Stamp()
	t := transferred{App: App{
		Tenant: tenant, ID: r.ID, Type: Tier(c.Text("type")), Name: c.Text("name"), Slug: c.TextOrNull("slug"),
		Description: c.TextOrNull("description"), OwnerID: c.Text("ownerId"),
		Defn: c.JSON("defn"), Settings: c.JSON("settings"),
		FolderID: c.TextOrNull("folderId"), Source: c.TextOrNull("source"), SourceID: c.TextOrNull("sourceId"),
		CreatedAt: c.Time("createdAt", now), UpdatedAt: c.Time("updatedAt", now),
	}}
	if c.JSON("isManaged") != nil {
		managed := c.Flag("isManaged", false)
		t.managed, t.Origin = &managed, c.TextOrNull("origin")
	}
	var listedShares []drafts.SharedColumns
	lists := []drafts.List{
		{Name: "env", Raw: c.JSON("env"), To: &t.env}, {Name: "datasets", Raw: c.JSON("datasets"), To: &t.Datasets},
		{Name: "tags", Raw: c.JSON("tags"), To: &t.Tags}, {Name: "shares", Raw: c.JSON("shares"), To: &listedShares},
	}
	err := c.Accept(func() error {
		err := s.rules.ReadLists(lists)
		if err != nil {
			return err
		}
		if t.Origin != nil && *t.Origin != deployed {
			return errs.New(errs.Invalid, "origin must be %s or null", deployed)
		}
		if t.Type == "" {
			t.Type = Report
		}
		if err := t.Type.accept(); err != nil {
			return err
		}
		for _, raw := range []*json.RawMessage{&t.Defn, &t.Settings} {
			if string(*raw) == "null" {
				*raw = nil
			}
		}
		if t.Defn, err = withoutEnv(t.Defn); err != nil {
			return err
		}
		if t.Settings, err = merged("settings", t.Settings, nil); err != nil {
			return err
		}
		slices.Sort(t.Tags)
		t.Tags = slices.Compact(t.Tags)
		if err := t.accept(); err != nil {
			return err
		}
		if t.shares, err = s.rules.SharesOfColumns(listedShares, now); err != nil {
			return err
		}
		return s.acceptLists(&t)
	})
	return t, err
}

// acceptLists checks what accept does not.
func (s *Service) acceptLists(t *transferred) error {
	var err error
	if t.env, err = s.env.AcceptNames(t.env); err != nil {
		return err
	}
	if len(t.Tags) > maxTags {
		return errs.New(errs.Invalid, "tags must be at most %d", maxTags)
	}
	for _, id := range t.Tags {
		if key, ok := uuids.Parse(id); !ok || key != id {
			return errs.New(errs.Invalid, "tags must be UUIDs")
		}
	}
	return nil
}

// licensedAll returns errs.Forbidden for an app of a batch that becomes a full one in a tenant
// without the license.
func (s *Service) licensedAll(ctx context.Context, b *transfer.Batch[transferred]) error {
	for _, t := range b.Write {
		if t.Type == b.There[t.ID].Type || t.Type != Full {
			continue
		}
		err := s.licensed(ctx, b.Tenant, t.Type)
		if err != nil {
			err = errs.Wrap(errs.CodeOf(err), err, "app %s: %s", t.ID, errs.MessageOf(err))
		}
		return err // for the others it is the same
	}
	return nil
}

// deployed is the Origin of an app that came by a deploy from another tenant.
const deployed = "deployed"

// leaveUnknown removes from the apps of a batch the tags and datasets that the tenant does not
// have, and warns of them.
func (s *Service) leaveUnknown(ctx context.Context, b *transfer.Batch[transferred]) error {
	unknown, failed := s.rules.Unknown(ctx, b.Tenant, nil, b.Warn)
	for i := range b.Write {
		t := &b.Write[i]
		t.Datasets = slices.DeleteFunc(t.Datasets, func(d Dataset) bool {
			return unknown(t.ID, entity.Key{Kind: kindDataset, ID: d.DatasetID})
		})
		t.Tags = slices.DeleteFunc(t.Tags, func(id string) bool {
			return unknown(t.ID, entity.Key{Kind: kindTag, ID: id})
		})
	}
	return failed()
}

// complete fills in an app of a batch with what the tenant has of it, with the values of variables
// that are there already.
func (s *Service) complete(
	ctx context.Context, b *transfer.Batch[transferred], t *transferred, old App, there bool,
) error {
	values := map[string]string{}
	if there {
		var err error
		if values, err = s.values(old); err != nil {
			return err
		}
	}
	if b.CrossTenant() && !old.IsManaged { // code of another tenant gets no values that were given to other code
		values = nil
	}
	env, missing := s.env.Split(values, t.env)
	if len(missing) > 0 {
		b.Warn(
			"app %s: its variables %s have no value here: set them with PUT /api/apps/%s/environment/{name}.",
			t.ID, strings.Join(missing, ", "), t.ID,
		)
	}
	if old.Type == Full {
		t.Type = Full // an app does not go back
	}
	if t.AwaitsOwner = old.AwaitsOwner; t.OwnerID != old.OwnerID {
		passed(caller(ctx, b.Tenant), &t.App)
	}
	t.LibraryID, t.DeployedAt = old.LibraryID, old.DeployedAt // what it was deployed with is there still
	if !there {
		t.LibraryID = s.rules.NewID()
	}
	switch origin := deployed; {
	case b.CrossTenant():
		t.IsManaged, t.Origin = true, &origin
	case b.OwnArchive() && t.managed != nil:
		t.IsManaged = *t.managed
	default:
		t.IsManaged, t.Origin = old.IsManaged, old.Origin
	}
	now := s.rules.Stamp()
	t.DefnUpdatedAt = &now
	if err := s.env.Seal(t.App.fields(), env); err != nil {
		return err
	}
	return maskEnv(&t.App, env)
}

// deployable is the transferer of apps, which run files only once somebody has deployed them: a
// user who imports an app, or deploys it into another tenant, does not decide what runs there, or
// what a deployed app may call.
type deployable struct {
	entity.FileTransferer
	store Store
}

var _ entity.Deployable = deployable{}

// Undeployed implements entity.Deployable.
func (d deployable) Undeployed(ctx context.Context, tenant, id, path string) (string, error) {
	isManifest := slices.Contains(manifest.Files(), path)
	if !isManifest && !deploys(path) && !strings.HasPrefix(path, string(handlers.Tools)+"/") {
		return "", nil
	}
	app, err := d.store.Head(ctx, tenant, Lookup{ID: id})
	if err != nil {
		return "", err
	}
	what := "the handlers, agents and migrations that came along run"
	switch {
	case app.DeployedAt != nil:
		what = "the manifest, handlers, agents and migrations that came along count"
	case isManifest: // an app that was never deployed has the one in its files
		return "", nil
	}
	return fmt.Sprintf(
		"app %s: %s once somebody deploys the app, with POST /api/apps/%s/_deploy. Until then it runs what was "+
			"deployed before, if anything.",
		id, what, id,
	), nil
}
