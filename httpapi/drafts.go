package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"path"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/paging"
)

// drafted is the receiver of the handlers that are the same for all nouns whose entities are edited
// in drafts.
type drafted struct {
	*api
	plural, kind string
	files        string // segment of the routes of files
	service      draftService
}

// draftService is what the services of these nouns have in common.
type draftService interface {
	Discard(ctx context.Context, id string) error
	Diff(ctx context.Context, id string) (drafts.Diff, error)
	Files(ctx context.Context, id string, q paging.Query) (paging.Page[libraries.File], error)
	OpenFile(ctx context.Context, id, path string) (libraries.File, io.ReadSeekCloser, error)
	PutFile(ctx context.Context, id string, f entity.File, r io.Reader) (libraries.File, error)
	DeleteFile(ctx context.Context, id, path string) error
	Shares(ctx context.Context, id string) ([]shares.Share, error)
	Share(ctx context.Context, id, principal string) (shares.Share, error)
	PutShare(ctx context.Context, id, principal string, edit func(*shares.Share)) (shares.Share, error)
	DeleteShare(ctx context.Context, id, principal string) error
}

// forceInput are the options of _edit, and of the _commit of an assistant.
type forceInput struct {
	Force rest.Field[bool] `json:"force"`
}

func forceOf(r *rest.Request) (force bool, err error) {
	in, err := rest.Options[forceInput](r)
	in.Force.Apply(&force)
	return force, err
}

// secretInput is the value of a secret.
type secretInput struct {
	Value *string `json:"value"`
}

// secretValue returns the value of a secret that a request sets.
func secretValueOf(r *rest.Request) (string, error) {
	in, err := rest.Decode[secretInput](r)
	if err != nil {
		return "", err
	}
	if in.Value == nil {
		return "", errs.New(errs.Invalid, "value is required")
	}
	return *in.Value, nil
}

// secretNames replies with the names of an entity's secrets, and those that have no value: 200 and
// what value makes of their masks, null without a value. self is the route, and key the name of the
// link to one of them.
func (n drafted) secretNames(
	r *rest.Request, self, key string, names, unset []string, value func(masks map[string]*string) any,
) (rest.Reply, error) {
	masks := make(map[string]*string, len(names)+len(unset))
	for _, name := range names {
		masks[name] = new(entity.Mask)
	}
	for _, name := range unset {
		masks[name] = nil
	}
	one := n.href(n.plural, r.Param("id"))
	links := hal.Self(one+"/"+self).With("inf:"+n.kind, one)
	links[key] = hal.Link{Href: one + "/" + self + "/{key}", Templated: true}
	return rest.OK(hal.Resource{Links: links, Value: value(masks)})
}

// deleteDraft serves DELETE /api/{plural}/{id}/draft: 200; 404; 403; 409 while somebody else edits
// it.
func (n drafted) deleteDraft(r *rest.Request) (rest.Reply, error) {
	if err := n.service.Discard(r.Context(), r.Param("id")); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}

// diffBody is what a draft changes, as the API writes it.
type diffBody struct {
	Files  []fileDiffBody  `json:"files"`
	Fields []fieldDiffBody `json:"fields"`
}

// Relations implements openapi.Related.
func (diffBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:draft"}}
}

type fileDiffBody struct {
	Path   string  `json:"path"`
	Status string  `json:"status"`
	Before *string `json:"before"`
	After  *string `json:"after"`
	Diff   *string `json:"diff"`
}

type fieldDiffBody struct {
	Name   string          `json:"name"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// getDiff serves GET /api/{plural}/{id}/draft/diff: 200 and {files: [{path, status, before, after,
// diff}], fields: [{name, before, after}]}. Texts are null for files that are no text or too long.
// 404; 403.
func (n drafted) getDiff(r *rest.Request) (rest.Reply, error) {
	diff, err := n.service.Diff(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	body := diffBody{Files: make([]fileDiffBody, len(diff.Files)), Fields: make([]fieldDiffBody, len(diff.Fields))}
	for i, f := range diff.Files {
		body.Files[i] = fileDiffBody{f.Path, string(f.Status), f.Before, f.After, f.Unified}
	}
	for i, f := range diff.Fields {
		body.Fields[i] = fieldDiffBody(f)
	}
	return rest.OK(hal.Resource{
		Links: hal.Self(n.href(
			n.plural, r.Param("id"), "draft", "diff",
		)).With("inf:draft", n.href(n.plural, r.Param("id"), "draft")),
		Value: body,
	})
}

func (n drafted) file(id string, f libraries.File) hal.Resource {
	href := n.href(append([]string{n.plural, id, n.files}, strings.Split(f.Path, "/")...)...)
	links := hal.Self(href).With(
		"inf:"+n.kind, n.href(n.plural, id),
	).With("inf:contents", n.href(n.plural, id, n.files))
	return hal.Resource{Links: links, Value: fileBody(f)}
}

// listFiles serves GET /api/{plural}/{id}/{files}: 200 and a page of the files of an entity or
// draft, 100 unless limit says otherwise, ordered by path unless sort says otherwise (path,
// updatedAt); 404; 403 for those who do not see the insides.
func (n drafted) listFiles(r *rest.Request) (rest.Reply, error) {
	q, err := r.Page(100)
	if err != nil {
		return rest.Reply{}, err
	}
	page, err := n.service.Files(r.Context(), r.Param("id"), q)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(rest.Collection(n.BaseURL, r, q, page, "inf:content", nil, func(f libraries.File) hal.Resource {
		return n.file(r.Param("id"), f)
	}))
}

// getFile serves GET /api/{plural}/{id}/{files}/{path}: 200 and the bytes, 206 for a range of them,
// always as a file to keep; 404; 403.
func (n drafted) getFile(r *rest.Request) (rest.Reply, error) {
	f, content, err := n.service.OpenFile(r.Context(), r.Param("id"), r.Param("path"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.File(f.Version(), f.ContentType, path.Base(f.Path), f.UpdatedAt, content)
}

// putFile serves PUT /api/{plural}/{id}/{files}/{path}: 200 and the file, with a body as for the
// files of libraries; 403 without the permission edit; 409 for a path that differs from another one
// in case alone, and for a draft that somebody else edits; 413.
func (n drafted) putFile(r *rest.Request) (rest.Reply, error) {
	content, contentType, err := fileContentOf(r)
	if err != nil {
		return rest.Reply{}, err
	}
	body := rest.NewWritten(r, content)
	defer body.Leave()
	file := entity.File{Path: r.Param("path"), ContentType: contentType}
	f, err := n.service.PutFile(r.Context(), r.Param("id"), file, body)
	if err != nil {
		return rest.Reply{}, err
	}
	answer, err := rest.OK(n.file(r.Param("id"), f))
	answer.Header = map[string]string{"Etag": rest.FileTag(f.Version())}
	return answer, err
}

// deleteFile serves DELETE /api/{plural}/{id}/{files}/{path}: 200; 404; 403 and 409 as for a PUT.
func (n drafted) deleteFile(r *rest.Request) (rest.Reply, error) {
	if err := n.service.DeleteFile(r.Context(), r.Param("id"), r.Param("path")); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}

// shareBody is a share as the API writes it.
type shareBody struct {
	PrincipalID string   `json:"principalId"`
	AccessLevel int      `json:"accessLevel"`
	Roles       []string `json:"roles"`
	CreatedAt   hal.Time `json:"createdAt"`
	UpdatedAt   hal.Time `json:"updatedAt"`
}

// Relations implements openapi.Related.
func (shareBody) Relations() openapi.Relations {
	return openapi.Relations{
		Links: []string{
			"inf:app", "inf:app-shares", "inf:assistant", "inf:assistant-shares", "inf:principal",
		},
	}
}

func (n drafted) share(id string, s shares.Share) hal.Resource {
	links := hal.Self(n.href(
		n.plural, id, "shares", s.PrincipalID,
	)).With("inf:"+n.kind, n.href(n.plural, id)).With("inf:"+n.kind+"-shares", n.href(n.plural, id, "shares"))
	if s.PrincipalID != shares.Everyone {
		links.With("inf:principal", n.href("principals", s.PrincipalID))
	}
	return hal.Resource{Links: links, Row: s, Beside: struct{}{}, Value: shareBody{
		s.PrincipalID, int(s.Level), append([]string{}, s.Roles...), hal.Time(s.CreatedAt), hal.Time(s.UpdatedAt),
	}}
}

// listShares serves GET /api/{plural}/{id}/shares: 200 and all shares, ordered by principal; 404;
// 403 for those who do not see the insides.
func (n drafted) listShares(r *rest.Request) (rest.Reply, error) {
	all, err := n.service.Shares(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	rows := make([]hal.Resource, len(all))
	for i, s := range all {
		rows[i] = n.share(r.Param("id"), s)
	}
	links := hal.Self(n.href(n.plural, r.Param("id"), "shares")).With("inf:"+n.kind, n.href(n.plural, r.Param("id")))
	return rest.OK(hal.Collection(
		links, hal.Page{Count: len(rows), Total: len(rows)}, "inf:"+n.kind+"-share", rows, nil,
	))
}

// getShare serves GET /api/{plural}/{id}/shares/{principalId}: 200 and the share; 404; 403.
func (n drafted) getShare(r *rest.Request) (rest.Reply, error) {
	s, err := n.service.Share(r.Context(), r.Param("id"), r.Param("principalId"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(n.share(r.Param("id"), s))
}

// shareInput is the body of a write to a share.
type shareInput struct {
	AccessLevel *int                 `json:"accessLevel"`
	Roles       rest.Field[[]string] `json:"roles"`
}

// putShare serves PUT /api/{plural}/{id}/shares/{principalId} {accessLevel, roles?}: 200 and the
// share. The principal is a username, the id of a team, or * for everyone; accessLevel is 0 for
// nothing, 1 to run the app, 2 to change it; roles that are left out stay. 400 for an unknown
// principal and for a role that the manifest does not have; 404; 403.
func (n drafted) putShare(r *rest.Request) (rest.Reply, error) {
	in, err := rest.DecodeUpdate[shareInput](r, shareBody{})
	if err != nil {
		return rest.Reply{}, err
	}
	if in.AccessLevel == nil {
		return rest.Reply{}, errs.New(errs.Invalid, "accessLevel is required")
	}
	s, err := n.service.PutShare(r.Context(), r.Param("id"), r.Param("principalId"), func(s *shares.Share) {
		s.Level = shares.Level(*in.AccessLevel)
		in.Roles.Apply(&s.Roles)
	})
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(n.share(r.Param("id"), s))
}

// deleteShare serves DELETE /api/{plural}/{id}/shares/{principalId}: 200; 404; 403.
func (n drafted) deleteShare(r *rest.Request) (rest.Reply, error) {
	if err := n.service.DeleteShare(r.Context(), r.Param("id"), r.Param("principalId")); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}
