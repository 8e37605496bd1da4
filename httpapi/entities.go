package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"mime"
	"path"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/paging"
)

// entityRoutes serves the plain routes of the ready kinds.
type entityRoutes struct{ *api }

// routes returns the rows of the ready kinds, but of those that the host keeps itself.
func (a entityRoutes) routes() []rest.Route {
	var routes []rest.Route
	for _, k := range content.Kinds() {
		if slices.Contains(a.HostKinds, k.Kind) {
			continue
		}
		e := entityKind{api: a.api, KindInfo: k}
		all, one := "/api/"+k.Plural, "/api/"+k.Plural+"/:id"
		many := "list" + content.Noun(entity.Kind(k.Plural))
		name := content.Noun(k.Kind)
		writes := nothing
		if k.Runs {
			writes = programs
		}
		routes = append(routes,
			rest.Route{
				Method:  get,
				Pattern: all,
				Name:    many,
				Grants:  nothing,
				Query:   searched,
				Summary: "The " + k.Plural,
				Gives:   openapi.OK(openapi.Page[entityBody]("inf:" + string(k.Kind))),
				Fails:   []int{400},
				Handle:  e.list,
			},
			rest.Route{
				Method:     post,
				Pattern:    all,
				Name:       "create" + name,
				Grants:     writes,
				Permission: actor.EntityWrite,
				Writes:     rest.InTx,
				Summary:    "Add " + content.WithArticle(k.Kind),
				Takes:      openapi.Input[entityInput](),
				Gives:      openapi.Created(openapi.One[entityBody]()),
				Fails:      []int{400, 403, 409},
				Handle:     e.create,
			},
			rest.Route{
				Method:  get,
				Pattern: one,
				Name:    "get" + name,
				Grants:  nothing,
				Summary: "One " + string(k.Kind),
				Gives:   openapi.OK(openapi.One[entityBody]()),
				Fails:   []int{404},
				Handle:  e.get,
			},
			rest.Route{
				Method:  put,
				Pattern: one,
				Name:    "put" + name,
				Grants:  writes,
				Row:     string(k.Kind),
				Writes:  rest.InTx,
				Summary: "Change " + content.WithArticle(k.Kind),
				Takes:   openapi.Update[entityInput, entityBody](),
				Gives:   openapi.OK(openapi.One[entityBody]()),
				Fails:   []int{403, 404},
				Handle:  e.put,
			},
			rest.Route{
				Method:  del,
				Pattern: one,
				Name:    "delete" + name,
				Grants:  writes,
				Row:     string(k.Kind),
				Writes:  rest.InTx,
				Options: rest.NoOptions{},
				Summary: "Remove " + content.WithArticle(k.Kind),
				Gives:   openapi.OK(openapi.None()),
				Fails:   []int{403, 404},
				Handle:  e.remove,
			},
		)
		if k.Kind == content.Library {
			routes = append(routes,
				rest.Route{
					Method:  get,
					Pattern: one + "/contents",
					Name:    "listLibraryFiles",
					Grants:  nothing,
					Query:   paged,
					Summary: "The files of a library",
					Gives:   openapi.OK(openapi.Page[libraryFileBody]("inf:content")),
					Fails:   []int{404},
					Handle:  a.listLibraryFiles,
				},
				rest.Route{
					Method:  get,
					Pattern: one + "/contents/*path",
					Name:    "getLibraryFile",
					Grants:  nothing,
					Heavy:   rest.Brief,
					AnyType: true,
					Summary: "The bytes of a library's file",
					Gives:   openapi.Answers{200: openapi.Bytes("*/*"), 206: openapi.Bytes("*/*")},
					Fails:   []int{404},
					Handle:  a.getLibraryFile,
				},
				rest.Route{
					Method:  put,
					Pattern: one + "/contents/*path",
					Name:    "putLibraryFile",
					Grants:  nothing,
					Row:     "library-file",
					Heavy:   rest.Brief,
					Summary: "Write a file of a library",
					Takes:   openapi.Input[fileInput]().Or(openapi.Bytes("*/*")),
					Gives:   openapi.OK(openapi.One[libraryFileBody]()),
					Fails:   []int{403, 404, 409},
					Handle:  a.putLibraryFile,
				},
				rest.Route{
					Method:  del,
					Pattern: one + "/contents/*path",
					Name:    "deleteLibraryFile",
					Grants:  nothing,
					Row:     "library-file",
					Writes:  rest.InTx,
					Options: rest.NoOptions{},
					Summary: "Remove a file of a library",
					Gives:   openapi.OK(openapi.None()),
					Fails:   []int{403},
					Handle:  a.deleteLibraryFile,
				},
			)
		}
	}
	return routes
}

// entityKind is the receiver of the handlers of one kind.
type entityKind struct {
	*api
	content.KindInfo
}

// entityBody is an entity of a ready kind as the API writes it. It is encoded by hand because lists
// of entities are read often.
type entityBody struct {
	content.Entity
	may entityPermissionsBody
}

type entityPermissionsBody struct {
	Edit   bool `json:"edit"`
	Delete bool `json:"delete"`
	Write  bool `json:"write"`
	Rename bool `json:"rename"`
}

// entityShape has the members of an entityBody.
type entityShape struct {
	Tenant      string                `json:"tenant"`
	ID          string                `json:"id"`
	Name        string                `json:"name"`
	Slug        *string               `json:"slug"`
	NaturalID   string                `json:"naturalId"`
	Description *string               `json:"description"`
	OwnerID     string                `json:"ownerId"`
	Data        json.RawMessage       `json:"data"`
	EditingID   *string               `json:"editingId"`
	System      bool                  `json:"system"`
	Source      *string               `json:"source"`
	SourceID    *string               `json:"sourceId"`
	CreatedAt   hal.Time              `json:"createdAt"`
	UpdatedAt   hal.Time              `json:"updatedAt"`
	Permissions entityPermissionsBody `json:"permissions"`
}

// Shape implements openapi.Shaper.
func (entityBody) Shape() any { return entityShape{} }

// Relations implements openapi.Related.
func (entityBody) Relations() openapi.Relations {
	links := []string{"inf:app", "inf:comments", "inf:contents", "inf:owner"}
	for _, k := range content.Kinds() {
		links = append(links, "inf:"+k.Plural)
	}
	return openapi.Relations{Links: links}
}

// AppendJSON implements hal.Appender.
func (e entityBody) AppendJSON(dst []byte) ([]byte, error) {
	dst = hal.AppendString(append(dst, `{"tenant":`...), e.Tenant)
	dst = hal.AppendString(append(dst, `,"id":`...), e.ID)
	dst = hal.AppendString(append(dst, `,"name":`...), e.Name)
	dst = hal.AppendStringOrNull(append(dst, `,"slug":`...), e.Slug)
	dst = hal.AppendString(append(dst, `,"naturalId":`...), e.NaturalID())
	dst = hal.AppendStringOrNull(append(dst, `,"description":`...), e.Description)
	dst = hal.AppendString(append(dst, `,"ownerId":`...), e.OwnerID)
	dst, err := hal.AppendRaw(append(dst, `,"data":`...), e.Data)
	if err != nil {
		return nil, err
	}
	dst = hal.AppendStringOrNull(append(dst, `,"editingId":`...), e.EditingID)
	dst = appendBool(append(dst, `,"system":`...), e.System)
	dst = hal.AppendStringOrNull(append(dst, `,"source":`...), e.Source)
	dst = hal.AppendStringOrNull(append(dst, `,"sourceId":`...), e.SourceID)
	dst = hal.AppendTime(append(dst, `,"createdAt":`...), e.CreatedAt)
	dst = hal.AppendTime(append(dst, `,"updatedAt":`...), e.UpdatedAt)
	dst = appendBool(append(dst, `,"permissions":{"edit":`...), e.may.Edit)
	dst = appendBool(append(dst, `,"delete":`...), e.may.Delete)
	dst = appendBool(append(dst, `,"write":`...), e.may.Write)
	dst = appendBool(append(dst, `,"rename":`...), e.may.Rename)
	return append(dst, "}}"...), nil
}

func (e entityKind) resource(who actor.Actor, v content.Entity) hal.Resource {
	may := entityPermissionsBody(content.PermissionsOf(who, v))
	return hal.Resource{Links: e.links(v.ID, v.OwnerID), Row: v, Beside: may, Value: entityBody{v, may}}
}

func (e entityKind) links(id, ownerID string) hal.Links {
	links := e.owned(hal.Self(e.href(e.Plural, id)), ownerID).With("inf:"+e.Plural, e.href(e.Plural))
	if e.Commented {
		links.With("inf:comments", e.href(e.Plural, id, "comments"))
	}
	if e.Kind == content.Library {
		links.With("inf:contents", e.href(e.Plural, id, "contents"))
	}
	return links
}

// entityInput is the body of a write to an entity. A field that is left out stays as it is. A body
// cannot set the owner, or make an entity a draft or a system entity.
type entityInput struct {
	Name        *string                     `json:"name"`
	Slug        rest.Field[string]          `json:"slug"`
	Description rest.Field[string]          `json:"description"`
	Data        rest.Field[json.RawMessage] `json:"data"`
	Source      rest.Field[string]          `json:"source"`
	SourceID    rest.Field[string]          `json:"sourceId"`
}

func (in entityInput) apply(v *content.Entity) {
	if in.Name != nil {
		v.Name = *in.Name
	}
	in.Slug.ApplyOrNull(&v.Slug)
	in.Description.ApplyOrNull(&v.Description)
	in.Data.Apply(&v.Data)
	in.Source.ApplyOrNull(&v.Source)
	in.SourceID.ApplyOrNull(&v.SourceID)
}

// list serves GET /api/{plural}: 200 and a page without drafts, 100 (assistants 20) unless limit
// says otherwise, ordered by name unless sort says otherwise (name, createdAt, updatedAt); q
// searches name, slug and description.
func (e entityKind) list(r *rest.Request) (rest.Reply, error) {
	q, err := r.Page(e.Limit)
	if err != nil {
		return rest.Reply{}, err
	}
	page, err := e.Content.List(r.Context(), e.Kind, q)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(rest.Collection(e.BaseURL, r, q, page, "inf:"+
		string(e.Kind), nil, func(v content.Entity) hal.Resource {
		return e.resource(r.Who, v)
	}))
}

// create serves POST /api/{plural}: 201 and the entity, which the caller owns; 409 for a slug that
// the caller has used.
func (e entityKind) create(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Decode[entityInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	v := content.Entity{Kind: e.Kind}
	in.apply(&v)
	if v, err = e.Content.Create(r.Context(), v); err != nil {
		return rest.Reply{}, err
	}
	return rest.Created(e.href(e.Plural, v.ID), e.resource(r.Who, v))
}

// get serves GET /api/{plural}/{id}, an id or a natural id: 200 and the entity; 404. A draft is
// found by its id alone.
func (e entityKind) get(r *rest.Request) (rest.Reply, error) {
	var of apps.Shown
	v, err := e.orAppLibrary(r, func() (content.Entity, error) {
		return e.Content.Get(r.Context(), e.Kind, r.Param("id"))
	}, func(app apps.Shown) (content.Entity, error) { of = app; return appLibrary(app), nil })
	if err != nil || of.ID == "" {
		return e.reply(r)(v, err)
	}
	library := e.resource(r.Who, v)
	library.Links = e.owned(
		hal.Self(e.href("libraries", v.ID)), v.OwnerID,
	).With("inf:libraries", e.href("libraries")).With("inf:app", e.href("apps", of.ID))
	if of.Inside {
		library.Links.With("inf:contents", e.href("libraries", v.ID, "contents"))
	}
	return rest.OK(library)
}

// reply replies with the result of a service: 200 and the entity.
func (e entityKind) reply(r *rest.Request) func(content.Entity, error) (rest.Reply, error) {
	return func(v content.Entity, err error) (rest.Reply, error) {
		if err != nil {
			return rest.Reply{}, err
		}
		return rest.OK(e.resource(r.Who, v))
	}
}

// put serves PUT /api/{plural}/{id}: 200 and the changed entity; what the body leaves out stays.
// For the owner, designers of an owning team and superusers, and for nobody when it belongs to the
// system.
func (e entityKind) put(r *rest.Request) (rest.Reply, error) {
	in, err := rest.DecodeUpdate[entityInput](r, entityBody{Entity: content.Entity{Data: json.RawMessage("{}")}})
	if err != nil {
		return rest.Reply{}, err
	}
	return e.reply(r)(e.orAppLibrary(r, func() (content.Entity, error) {
		return e.Content.Update(r.Context(), e.Kind, r.Param("id"), func(v *content.Entity) error {
			in.apply(v)
			return nil
		})
	}, refuseAppLibrary))
}

// remove serves DELETE /api/{plural}/{id}: 200; 404; 403 as for a PUT. A library's files go with
// it.
func (e entityKind) remove(r *rest.Request) (rest.Reply, error) {
	_, err := e.orAppLibrary(r, func() (none content.Entity, err error) {
		return none, e.Content.Delete(r.Context(), e.Kind, r.Param("id"))
	}, refuseAppLibrary)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}

// orAppLibrary is inLibrary for the entities of a kind, of which only libraries may be those of
// apps.
func (e entityKind) orAppLibrary(
	r *rest.Request, own func() (content.Entity, error), app func(apps.Shown) (content.Entity, error),
) (content.Entity, error) {
	if e.Kind != content.Library {
		return own()
	}
	return inLibrary(e.api, r, own, app)
}

func refuseAppLibrary(app apps.Shown) (content.Entity, error) {
	return content.Entity{}, errs.New(
		errs.Forbidden, "This is the library of the app %s: change its files, or the app.", app.ID,
	)
}

// libraryFileBody is a library's file as the API writes it.
type libraryFileBody struct {
	Path        string   `json:"path"`
	Size        int64    `json:"size"`
	ContentType string   `json:"contentType"`
	SHA256      *string  `json:"sha256"` // null for a file that was written before digests were kept
	CreatedAt   hal.Time `json:"createdAt"`
	UpdatedAt   hal.Time `json:"updatedAt"`
}

// Relations implements openapi.Related.
func (libraryFileBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:app", "inf:assistant", "inf:contents", "inf:library"}}
}

func (a entityRoutes) libraryFile(library string, f libraries.File) hal.Resource {
	href := a.href(append([]string{"libraries", library, "contents"}, strings.Split(f.Path, "/")...)...)
	links := hal.Self(href).With(
		"inf:library", a.href("libraries", library),
	).With("inf:contents", a.href("libraries", library, "contents"))
	return hal.Resource{Links: links, Value: fileBody(f)}
}

func fileBody(f libraries.File) libraryFileBody {
	return libraryFileBody{
		Path: f.Path, Size: f.Size, ContentType: f.ContentType, SHA256: orNull(f.SHA256),
		CreatedAt: hal.Time(f.CreatedAt), UpdatedAt: hal.Time(f.UpdatedAt),
	}
}

// listLibraryFiles serves GET /api/libraries/{id}/contents: 200 and a page of the library's files,
// 100 unless limit says otherwise, ordered by path unless sort says otherwise (path, updatedAt);
// 404.
func (a entityRoutes) listLibraryFiles(r *rest.Request) (rest.Reply, error) {
	q, err := r.Page(100)
	if err != nil {
		return rest.Reply{}, err
	}
	page, err := inLibrary(a.api, r, func() (paging.Page[libraries.File], error) {
		return a.Content.Files(r.Context(), r.Param("id"), q)
	}, func(app apps.Shown) (paging.Page[libraries.File], error) {
		return a.Apps.Files(r.Context(), app.ID, q)
	})
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(rest.Collection(a.BaseURL, r, q, page, "inf:content", nil, func(f libraries.File) hal.Resource {
		return a.libraryFile(r.Param("id"), f)
	}))
}

// getLibraryFile serves GET /api/libraries/{id}/contents/{path}: 200 and the bytes, 206 for a range
// of them, always as a file to keep: what tenants write shall not run as a page of this origin;
// 404.
func (a entityRoutes) getLibraryFile(r *rest.Request) (rest.Reply, error) {
	type opened struct {
		libraries.File
		content io.ReadSeekCloser
	}
	f, err := inLibrary(a.api, r, func() (o opened, err error) {
		o.File, o.content, err = a.Content.OpenFile(r.Context(), r.Param("id"), r.Param("path"))
		return o, err
	}, func(app apps.Shown) (o opened, err error) {
		o.File, o.content, err = a.Apps.OpenFile(r.Context(), app.ID, r.Param("path"))
		return o, err
	})
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.File(f.Version(), f.ContentType, path.Base(f.Path), f.UpdatedAt, f.content)
}

// putLibraryFile serves PUT /api/libraries/{id}/contents/{path}: 200 and the file. The body is the
// file's bytes, or with the content type application/json {content, contentType?, encoding?}, where
// encoding "base64" says how content is written. Without a content type the file has that of its
// ending; a JSON file is sent as application/octet-stream or in content. For those who may change
// the library; 409 for a path that differs from another one in case alone.
func (a entityRoutes) putLibraryFile(r *rest.Request) (rest.Reply, error) {
	content, contentType, err := fileContentOf(r)
	if err != nil {
		return rest.Reply{}, err
	}
	body := rest.NewWritten(r, content)
	defer body.Leave()
	file := entity.File{Path: r.Param("path"), ContentType: contentType}
	f, err := inLibrary(a.api, r, func() (libraries.File, error) {
		return a.Content.PutFile(r.Context(), r.Param("id"), file, body)
	}, func(app apps.Shown) (libraries.File, error) {
		return a.Apps.PutFile(r.Context(), app.ID, file, body)
	})
	if err != nil {
		return rest.Reply{}, err
	}
	answer, err := rest.OK(a.libraryFile(r.Param("id"), f))
	answer.Header = map[string]string{"Etag": rest.FileTag(f.Version())}
	return answer, err
}

// fileInput is a file in a JSON body.
type fileInput struct {
	Content     *string `json:"content"`
	ContentType *string `json:"contentType"`
	Encoding    *string `json:"encoding"`
}

// fileContent returns the bytes in the body of a PUT and their content type, "" if it follows from
// the path's extension.
func fileContentOf(r *rest.Request) (content io.Reader, contentType string, err error) {
	given := r.Header.Get("Content-Type")
	mediaType, _, err := mime.ParseMediaType(given)
	switch {
	case given == "" || mediaType == "application/octet-stream" || mediaType == rest.FormType: // the default of curl
		return r.Body, "", nil
	case err != nil:
		return nil, "", errs.Wrap(errs.Invalid, err, "The Content-Type header cannot be read.")
	case mediaType != "application/json":
		return r.Body, given, nil
	}
	in, err := rest.Decode[fileInput](r)
	if err != nil {
		return nil, "", err
	}
	if in.Content == nil {
		return nil, "", errs.New(errs.Invalid, "content is required")
	}
	if in.ContentType != nil {
		contentType = *in.ContentType
	}
	switch {
	case in.Encoding == nil:
		return strings.NewReader(*in.Content), contentType, nil
	case *in.Encoding != "base64":
		return nil, "", errs.New(errs.Invalid, `encoding must be "base64", or left out`)
	}
	raw, err := base64.StdEncoding.DecodeString(*in.Content)
	if err != nil {
		return nil, "", errs.Wrap(errs.Invalid, err, "content must be base64")
	}
	return strings.NewReader(string(raw)), contentType, nil
}

// deleteLibraryFile serves DELETE /api/libraries/{id}/contents/{path}: 200; 404; 403 as for a PUT.
func (a entityRoutes) deleteLibraryFile(r *rest.Request) (rest.Reply, error) {
	_, err := inLibrary(a.api, r, func() (none struct{}, err error) {
		return none, a.Content.DeleteFile(r.Context(), r.Param("id"), r.Param("path"))
	}, func(app apps.Shown) (none struct{}, err error) {
		return none, a.Apps.DeleteFile(r.Context(), app.ID, r.Param("path"))
	})
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}

// inLibrary calls content, and for a library that it does not find app with the app whose library
// it is, if the caller sees the app: its library is read and written by the app's rights alone.
// Apps reach the library of no app.
func inLibrary[T any](a *api, r *rest.Request, content func() (T, error), app func(apps.Shown) (T, error)) (T, error) {
	v, err := content()
	if errs.CodeOf(err) != errs.NotFound || slices.Contains(a.HostKinds, apps.Kind) {
		return v, err
	}
	of, missing := a.Apps.OfLibrary(r.Context(), r.Param("id"))
	switch {
	case errs.CodeOf(missing) == errs.NotFound:
		return v, err
	case missing != nil:
		return v, missing
	case visitOf(r).fromApp:
		return v, errs.New(
			errs.Forbidden, "No app may call %s, as this is the library of an app%s.", r.URL.Path,
			which(programs),
		)
	}
	return app(of)
}

// appLibrary returns the library of an app, as the routes of libraries show it. Nobody changes it
// but by its app.
func appLibrary(app apps.Shown) content.Entity {
	return content.Entity{
		Tenant: app.Tenant, Kind: content.Library, ID: app.LibraryID,
		Name: app.Name, OwnerID: app.OwnerID, Data: json.RawMessage("{}"), System: true,
		CreatedAt: app.CreatedAt, UpdatedAt: app.UpdatedAt,
	}
}
