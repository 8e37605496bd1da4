package aiinstr

import (
	"context"
	"maps"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

func (i Instruction) ref() entity.Ref {
	return entity.Ref{Kind: Kind, ID: i.ID, Name: i.Slug, OwnerID: i.OwnerID}
}

// transferer moves instructions between tenants.
func (s *Service) transferer() entity.Transferer {
	return transfer.Transferer[Instruction]{
		Kind: Kind, ID: func(i Instruction) string { return i.ID },
		All: s.store.IDs, Some: s.store.Some, Row: toColumns, Refs: s.refs, Read: s.readRow,
		Owner: func(i *Instruction) *string { return &i.OwnerID }, Directory: s.directory,
		Natural: func(i Instruction) string { return i.Slug }, Taken: s.store.Slugs,
		Rename: func(i *Instruction, slug string) { i.Slug = slug },
		Put: func(ctx context.Context, b *transfer.Batch[Instruction]) error {
			return s.store.PutAll(ctx, b.Tenant, b.Write, b.Yield)
		},
		Drop: s.store.Remove, InTx: s.store.InTx,
	}
}

// columns are the columns of a row in an archive.
type columns struct {
	Slug        string  `json:"slug"`
	Description *string `json:"description"`
	Content     string  `json:"content"`
	OwnerID     string  `json:"ownerId"`
	CreatedAt   string  `json:"createdAt"`
	UpdatedAt   string  `json:"updatedAt"`
}

func toColumns(i Instruction) any {
	return columns{i.Slug, i.Description, i.Content, i.OwnerID, transfer.Time(i.CreatedAt), transfer.Time(i.UpdatedAt)}
}

// readRow checks a row of another tenant.
func (s *Service) readRow(tenant string, r entity.Row) (Instruction, error) {
	c, now := transfer.ReadUUID(r), s.clock.Stamp()
	i := Instruction{
		Tenant: tenant, ID: r.ID,
		Slug: c.Text("slug"), Description: c.TextOrNull("description"), Content: c.Text("content"),
		OwnerID: c.Text("ownerId"), CreatedAt: c.Time("createdAt", now), UpdatedAt: c.Time("updatedAt", now),
	}
	err := c.Accept(i.accept)
	return i, err
}

// refs returns what some instructions need: those that their content refers to, at any depth once
// their own needs are asked for.
func (s *Service) refs(ctx context.Context, tenant string, some []Instruction) (map[string][]entity.Key, error) {
	slugs, parsed := []string{}, expansion{texts: map[string][]part{}, asked: map[string]bool{}}
	for _, i := range some {
		parsed.texts[i.ID] = parse(i.Content)
		slugs = append(slugs, parsed.ask(i.ID)...)
	}
	taken := map[string]string{}
	for batch := range transfer.Chunks(slugs) {
		more, err := s.store.Slugs(ctx, tenant, batch)
		if err != nil {
			return nil, err
		}
		maps.Copy(taken, more)
	}
	needs := map[string][]entity.Key{}
	for _, i := range some {
		needs[i.ID] = needed(i.ID, parsed.texts[i.ID], taken)
	}
	return needs, nil
}

// needed returns the instructions that a text refers to, in order of appearance.
func needed(own string, parts []part, taken map[string]string) []entity.Key {
	var keys []entity.Key
	seen := map[string]bool{own: true, "": true}
	for _, p := range parts {
		if id := taken[p.slug]; !seen[id] {
			seen[id] = true
			keys = append(keys, entity.Key{Kind: Kind, ID: id})
		}
	}
	return keys
}
