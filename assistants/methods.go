package assistants

import (
	"context"
	"io"
	"iter"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Get returns an assistant that the caller sees, found by id or natural id, or a draft of one that
// the caller may change, found by id. Errors: errs.NotFound.
func (s *Service) Get(ctx context.Context, id string) (Shown, error) { return s.reader.Get(ctx, id) }

// Permissions returns what the caller may do with an assistant. Errors: as Get.
func (s *Service) Permissions(ctx context.Context, id string) (Permissions, error) {
	v, err := s.Get(ctx, id)
	return v.Permissions, err
}

// List returns a page of the assistants that the caller sees, without drafts and deleted ones,
// sorted by name (the default), createdAt or updatedAt; q searches name, slug and description.
// Errors: errs.Invalid for a sort or cursor that does not fit.
func (s *Service) List(ctx context.Context, q paging.Query) (paging.Page[Shown], error) {
	return s.reader.List(ctx, q)
}

// All returns all assistants that the caller sees, without drafts, deleted ones and what may be
// long, ordered by name. An error ends it.
func (s *Service) All(ctx context.Context) iter.Seq2[Shown, error] { return s.reader.All(ctx) }

// Seen returns those of some assistants that the caller sees, by id, without drafts, deleted ones
// and what may be long.
func (s *Service) Seen(ctx context.Context, ids []string) (map[string]Shown, error) {
	return s.reader.Seen(ctx, ids)
}

// Drafts returns the drafts of the assistants that the caller may change, ordered by name, without
// what may be long.
func (s *Service) Drafts(ctx context.Context) ([]Shown, error) { return s.reader.Drafts(ctx) }

// Draft returns the draft of an assistant, which may be named by either's id. It is for those who
// may change the assistant. Errors: errs.NotFound; errs.Forbidden.
func (s *Service) Draft(ctx context.Context, id string) (Shown, error) {
	return s.reader.Draft(ctx, id)
}

// Edit creates the draft of an assistant if there is none, locks it for the caller's credential for
// Lifetime, and returns it. While another credential holds the lock, the draft is returned with
// that lock, unless force replaces it. It needs the permission edit.
// Errors: errs.NotFound; errs.Forbidden.
func (s *Service) Edit(ctx context.Context, id string, force bool) (Shown, error) {
	return s.reader.Edit(ctx, id, force)
}

// SetOwner passes an assistant and its draft on to a user or team. It needs the permission
// changeOwner.
// Errors: errs.NotFound; errs.Forbidden; errs.Invalid for an unknown principal and for a draft;
// errs.Conflict for a slug that the new owner has used.
func (s *Service) SetOwner(ctx context.Context, id, owner string) (Shown, error) {
	return s.reader.SetOwner(ctx, id, owner)
}

// Discard removes the draft of an assistant. The caller must be allowed to change the assistant,
// but does not need the permission edit, so that a draft can be removed after a deploy from another
// tenant has overwritten its assistant.
// Errors: errs.NotFound, also for an assistant without a draft; errs.Forbidden; errs.Conflict for a
// draft that somebody else edits.
func (s *Service) Discard(ctx context.Context, id string) error { return s.common.Discard(ctx, id) }

// Ref returns a reference to an assistant that the caller sees, found by id or natural id, or to a
// draft.
// Errors: errs.NotFound.
func (s *Service) Ref(ctx context.Context, id string) (entity.Ref, error) {
	return s.common.Ref(ctx, id)
}

// Files returns a page of the files of an assistant, sorted by path (the default) or updatedAt, to
// those who see its insides. Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a sort or
// cursor that does not fit.
func (s *Service) Files(ctx context.Context, id string, q paging.Query) (paging.Page[File], error) {
	return s.common.Files(ctx, id, q)
}

// OpenFile returns a file of an assistant with its bytes, which the caller closes, to those who see
// its insides. Errors: errs.NotFound; errs.Forbidden.
func (s *Service) OpenFile(ctx context.Context, id, path string) (File, io.ReadSeekCloser, error) {
	return s.common.OpenFile(ctx, id, path)
}

// PutFile writes a file of an assistant or a draft, and replaces the one at that path. The caller
// must be allowed to edit it. An empty content type is replaced by that of the path's extension.
// PutFile does not change the row of the assistant. After an error the file is unchanged.
// Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a bad path or content type; errs.Conflict
// for a path that differs from another one only in case, or that is a folder, and for a draft that
// somebody else edits; errs.TooLarge; content's own, as it is.
func (s *Service) PutFile(ctx context.Context, id string, f entity.File, content io.Reader) (File, error) {
	return s.common.PutFile(ctx, id, f, content)
}

// DeleteFile removes a file of an assistant or a draft. The caller must be allowed to edit it.
// Errors: errs.NotFound; errs.Forbidden; errs.Conflict for a draft that somebody else edits.
func (s *Service) DeleteFile(ctx context.Context, id, path string) error {
	return s.common.DeleteFile(ctx, id, path)
}

// Shares returns the shares of an assistant, ordered by principal, to those who see its insides. A
// draft has those of its assistant. Errors: errs.NotFound; errs.Forbidden.
func (s *Service) Shares(ctx context.Context, id string) ([]Share, error) {
	return s.common.Shares(ctx, id)
}

// Share returns the share of one principal. It is for those for whom Shares is.
// Errors: errs.NotFound; errs.Forbidden.
func (s *Service) Share(ctx context.Context, id, principal string) (Share, error) {
	return s.common.Share(ctx, id, principal)
}

// PutShare shares an assistant with a principal, or changes the share: edit gets the existing
// share, or one that grants nothing. The caller must be allowed to share the assistant. A role that
// edit adds must be known. Errors: errs.NotFound; errs.Forbidden; errs.Invalid naming the field,
// also for an unknown principal; errs.Conflict for roles that cannot be read.
func (s *Service) PutShare(
	ctx context.Context, id, principal string, edit func(*Share),
) (Share, error) {
	return s.common.PutShare(ctx, id, principal, edit)
}

// DeleteShare ends a share. The caller must be allowed to share the assistant.
// Errors: errs.NotFound; errs.Forbidden.
func (s *Service) DeleteShare(ctx context.Context, id, principal string) error {
	return s.common.DeleteShare(ctx, id, principal)
}

// Sharing calls do with the id of an assistant that the caller may share, in a transaction in which
// nobody else changes or removes the assistant. Errors: those of do; errs.NotFound; errs.Forbidden;
// errs.Invalid for a draft and for unknown roles; errs.Conflict for roles that cannot be read.
func (s *Service) Sharing(
	ctx context.Context, id string, roles []string, do func(ctx context.Context, id string) error,
) error {
	return s.common.Sharing(ctx, id, roles, do)
}
