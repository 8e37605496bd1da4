package assistants

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// transferred is an assistant as it travels: with its shares and the names of its secrets.
type transferred struct {
	Assistant
	shares  []shares.Share
	secrets []string
}

// columns are the columns of a row in an archive. Drafts and values of secrets do not travel.
type columns struct {
	Name         string                 `json:"name"`
	Slug         *string                `json:"slug"`
	Description  *string                `json:"description"`
	Instructions string                 `json:"instructions"`
	Welcome      *string                `json:"welcome"`
	Dispatcher   bool                   `json:"dispatcher"`
	Suggestions  []string               `json:"suggestions"`
	ModelID      *string                `json:"modelId"`
	Embedded     bool                   `json:"embedded"`
	Data         json.RawMessage        `json:"data"`
	Skills       []Skill                `json:"skills"`
	Datasets     []Dataset              `json:"datasets"`
	References   []Reference            `json:"references"`
	Secrets      []string               `json:"secrets"` // names
	OwnerID      string                 `json:"ownerId"`
	FolderID     *string                `json:"folderId"`
	Shares       []drafts.SharedColumns `json:"shares"`
	CreatedAt    string                 `json:"createdAt"`
	UpdatedAt    string                 `json:"updatedAt"`
}

func toColumns(t transferred) any {
	return columns{
		t.Name, t.Slug, t.Description, t.Instructions, t.Welcome,
		t.Dispatcher, listed(t.Suggestions), t.ModelID, t.Embedded, t.Data, listed(t.Skills),
		listed(t.Datasets), listed(t.References), listed(t.secrets),
		t.OwnerID, t.FolderID, drafts.SharesToColumns(t.shares),
		transfer.Time(t.CreatedAt), transfer.Time(t.UpdatedAt),
	}
}

// transferer moves assistants between tenants.
func (s *Service) transferer() transfer.Transferer[transferred] {
	return drafts.Transferer(s.rules, drafts.Travel[Assistant, transferred]{
		Parts: func(t *transferred) drafts.Parts[Assistant] {
			return drafts.Parts[Assistant]{Entity: &t.Assistant, Shares: &t.shares, Secrets: &t.secrets}
		},
		Secrets: s.secrets, Row: toColumns, Refs: refs, Read: s.readRow,
		Free: func(t *transferred) map[string]*json.RawMessage {
			return map[string]*json.RawMessage{"data": &t.Data}
		},
		Prepare: s.leaveUnknown, Complete: s.complete,
	})
}

// refs returns what assistants need: what they know of. Other assistants do not come along, as they
// may refer to each other.
func refs(_ context.Context, _ string, some []transferred) (map[string][]entity.Key, error) {
	needs := make(map[string][]entity.Key, len(some))
	for _, t := range some {
		var keys []entity.Key
		for _, d := range t.Datasets {
			keys = append(keys, d.key())
		}
		for _, r := range t.References {
			if r.key().Kind != Kind {
				keys = append(keys, r.key())
			}
		}
		needs[t.ID] = keys
	}
	return needs, nil
}

// readRow checks a row of another tenant.
func (s *Service) readRow(tenant string, r entity.Row) (transferred, error) {
	c, now := transfer.ReadUUID(r), s.rules.Stamp()
	t := transferred{Assistant: Assistant{
		Tenant: tenant, ID: r.ID,
		Name: c.Text("name"), Slug: c.TextOrNull("slug"), Description: c.TextOrNull("description"),
		Welcome: c.TextOrNull("welcome"), Dispatcher: c.Flag("dispatcher", false), ModelID: c.TextOrNull("modelId"),
		Embedded: c.Flag("embedded", false), Data: c.JSON("data"),
		OwnerID: c.Text("ownerId"), FolderID: c.TextOrNull("folderId"),
		CreatedAt: c.Time("createdAt", now), UpdatedAt: c.Time("updatedAt", now),
	}}
	if c.JSON("instructions") != nil {
		t.Instructions = c.Text("instructions")
	}
	var given []drafts.SharedColumns
	lists := []drafts.List{
		{Name: "suggestions", Raw: c.JSON("suggestions"), To: &t.Suggestions},
		{Name: "skills", Raw: c.JSON("skills"), To: &t.Skills},
		{Name: "datasets", Raw: c.JSON("datasets"), To: &t.Datasets},
		{Name: "references", Raw: c.JSON("references"), To: &t.References},
		{Name: "secrets", Raw: c.JSON("secrets"), To: &t.secrets}, {Name: "shares", Raw: c.JSON("shares"), To: &given},
	}
	err := c.Accept(func() error {
		err := s.rules.ReadLists(lists)
		if err != nil {
			return err
		}
		if err := t.acceptFields(); err != nil {
			return err
		}
		if t.secrets, err = s.secrets.AcceptNames(t.secrets); err != nil {
			return err
		}
		t.shares, err = s.rules.SharesOfColumns(given, now)
		return err
	})
	return t, err
}

// complete fills in an assistant of a batch with what the tenant has of it, with the values of
// secrets that are there already.
func (s *Service) complete(
	ctx context.Context, b *transfer.Batch[transferred], t *transferred, old Assistant, there bool,
) error {
	values, now := map[string]string{}, s.rules.Stamp()
	t.LibraryID, t.SecretsAt = old.LibraryID, &now
	if !there {
		t.LibraryID = s.rules.NewID()
	} else if !b.CrossTenant() { // instructions of another tenant get no values that were given to other ones
		var err error
		if values, err = s.secrets.Open(Fields(&old)); err != nil {
			return err
		}
		if err := s.dropRedirected(ctx, t, values); err != nil {
			return err
		}
	}
	kept, without := s.secrets.Split(values, t.secrets)
	if len(without) > 0 {
		b.Warn(
			"assistant %s: its secrets %s have no value here: set them with PUT /api/assistants/%s/secrets/{key}.",
			t.ID, strings.Join(without, ", "), t.ID,
		)
	}
	return s.secrets.Seal(Fields(&t.Assistant), kept)
}

// dropRedirected removes from the values of the secrets of an assistant that is there those that an
// imported one sends to another place.
func (s *Service) dropRedirected(ctx context.Context, t *transferred, values map[string]string) error {
	if len(values) == 0 || len(s.sent(t.Skills)) == 0 {
		return nil
	}
	old, err := s.store.Get(ctx, t.Tenant, drafts.Lookup{ID: t.ID})
	if err != nil {
		return err
	}
	all, _ := s.redirected(t.Skills, old.Skills)
	for one := range all {
		delete(values, one.secret)
	}
	return nil
}

// leaveUnknown removes from the assistants of a batch the skills that this server does not provide
// and what the tenant does not have, and warns of them.
func (s *Service) leaveUnknown(ctx context.Context, b *transfer.Batch[transferred]) error {
	together := make([]entity.Key, len(b.Write))
	for i, t := range b.Write {
		together[i] = entity.Key{Kind: Kind, ID: t.ID}
	}
	unknown, failed := s.rules.Unknown(ctx, b.Tenant, together, b.Warn)
	for i := range b.Write {
		t := &b.Write[i]
		t.Datasets = slices.DeleteFunc(t.Datasets, func(d Dataset) bool { return unknown(t.ID, d.key()) })
		t.References = slices.DeleteFunc(t.References, func(r Reference) bool { return unknown(t.ID, r.key()) })
		t.Skills = slices.DeleteFunc(t.Skills, func(skill Skill) bool {
			wrong := s.provided([]Skill{skill}, nil)
			if wrong != nil {
				b.Warn("assistant %s: the skill %s is left out. %s", t.ID, skill.Name, errs.MessageOf(wrong))
			}
			return wrong != nil
		})
	}
	return failed()
}
