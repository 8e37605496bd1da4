package httpapi

import (
	"io"
	"net/http"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
)

// colorRoutes serves the palette of a tenant.
type colorRoutes struct{ *api }

// routes returns the rows of the route table.
func (a colorRoutes) routes() []Route {
	return []Route{
		{Method: get, Pattern: "/api/colors", Name: "listColors", Grants: nothing, Query: searched, Summary: "The palette, page by page", handle: a.listColors},
		{Method: get, Pattern: "/api/colors-list", Name: "listAllColors", Grants: nothing, Heavy: brief, Summary: "The whole palette with hex and palette name", handle: a.listAllColors},
		{Method: get, Pattern: "/api/colors/:key", Name: "getColor", Grants: nothing, Summary: "One color", handle: a.getColor},
		{Method: put, Pattern: "/api/colors/:key", Name: "putColor", Grants: nothing, Row: "color", Permission: actor.ColorWrite, Writes: InSlot, Summary: "Set a color", handle: a.putColor},
		{Method: del, Pattern: "/api/colors/:key", Name: "deleteColor", Grants: nothing, Row: "color", Permission: actor.ColorWrite, Writes: InSlot, Options: noOptions{}, Summary: "Remove a color", handle: a.deleteColor},
		{Method: get, Pattern: "/api/colors/:key/permissions", Name: "getColorPermissions", Grants: nothing, Summary: "What the caller may do with a color", handle: a.getColorPermissions},
		{Method: post, Pattern: "/api/colors-export", Name: "exportColors", Grants: nothing, Heavy: brief, Permission: actor.ColorWrite, AnyType: true, Options: exportColorsInput{}, Summary: "Export the palette to a file", handle: a.exportColors},
		{Method: post, Pattern: "/api/colors-import", Name: "importColors", Grants: nothing, Heavy: long, Permission: actor.ColorWrite, Writes: ByService, Options: importColorsInput{}, Summary: "Import colors from an uploaded file", handle: a.importColors},
	}
}

// colorBody is a Color as the API writes it. It is encoded by hand because it is read often, and a palette may be long.
type colorBody colors.Color

// AppendJSON implements hal.Appender.
func (c colorBody) AppendJSON(dst []byte) ([]byte, error) {
	dst = hal.AppendString(append(dst, `{"tenant":`...), c.Tenant)
	dst = hal.AppendString(append(dst, `,"key":`...), c.Key)
	dst = hal.AppendString(append(dst, `,"color":`...), c.Color)
	dst = hal.AppendStringOrNull(append(dst, `,"source":`...), c.Source)
	dst = hal.AppendTime(append(dst, `,"createdAt":`...), c.CreatedAt)
	dst = hal.AppendTime(append(dst, `,"updatedAt":`...), c.UpdatedAt)
	return append(dst, '}'), nil
}

func (a colorRoutes) color(c colors.Color) hal.Resource {
	links := hal.Self(a.href("colors", c.Key)).With("inf:permissions", a.href("colors", c.Key, "permissions")).With("inf:colors", a.href("colors"))
	return hal.Resource{Links: links, Value: colorBody(c), Row: c, Beside: hal.Nothing{}}
}

// href returns the absolute link to an API path.
func (a *api) href(segments ...string) string { return a.BaseURL + hal.Href(segments...) }

// listColors serves GET /api/colors: 200 and a page of the palette, 100 colors unless limit says otherwise, ordered by
// key unless sort says otherwise (key, createdAt, updatedAt); q searches the keys.
func (a colorRoutes) listColors(r *request) (reply, error) {
	q, err := r.page(100)
	if err != nil {
		return reply{}, err
	}
	page, err := a.Colors.Page(r.Context(), q)
	if err != nil {
		return reply{}, err
	}
	return ok(collection(a.api, r, q, page, "inf:color", nil, a.color))
}

// listAllColors serves GET /api/colors-list: 200 and the whole palette as a plain array, ordered by key. Any failure is
// 422.
func (a colorRoutes) listAllColors(r *request) (reply, error) {
	return streamed(func(w io.Writer) error {
		err := writeArray(w, a.Colors.All(r.Context()), appendColor)
		if err != nil {
			return errs.Wrap(errs.Unprocessable, err, "The colors cannot be listed at the moment.")
		}
		return nil
	})
}

// appendColor appends one row of the flat list: a color with its hex and palette name.
func appendColor(dst []byte, c colors.Color) []byte {
	hex := colors.Hex(c.Color)
	dst, _ = colorBody(c).AppendJSON(dst) // never fails
	dst = hal.AppendString(append(dst[:len(dst)-1], `,"hex":`...), hex)
	dst = hal.AppendString(append(dst, `,"named":`...), colors.Named(hex))
	return append(dst, '}')
}

// getColor serves GET /api/colors/{key}: 200 and the color; 404.
func (a colorRoutes) getColor(r *request) (reply, error) {
	c, err := a.Colors.Get(r.Context(), r.param("key"))
	if err != nil {
		return reply{}, err
	}
	return ok(a.color(c))
}

// putColor serves PUT /api/colors/{key}: 200 and the color, which is made when the key is new; 400 "Invalid color
// format" for all JSON but an object whose color is a hex.
func (a colorRoutes) putColor(r *request) (reply, error) {
	raw, err := r.jsonBody()
	if err != nil {
		return reply{}, err
	}
	var by filler
	var in struct {
		Color string `json:"color"`
	}
	if by.fill(raw, &in, "") != nil { // what is no object with a string is no hex
		in.Color = ""
	} else if err := r.refuseUnknown(by.unknown, colorBody{}); err != nil {
		return reply{}, err
	}
	c, err := a.Colors.Put(r.Context(), r.param("key"), in.Color)
	if err != nil {
		return reply{}, err
	}
	return ok(a.color(c))
}

// deleteColor serves DELETE /api/colors/{key}: 200, also when the key does not exist.
func (a colorRoutes) deleteColor(r *request) (reply, error) {
	if err := a.Colors.Delete(r.Context(), r.param("key")); err != nil {
		return reply{}, err
	}
	return done()
}

// getColorPermissions serves GET /api/colors/{key}/permissions: 200 and what the caller may; 404.
func (a colorRoutes) getColorPermissions(r *request) (reply, error) {
	key := r.param("key")
	p, err := a.Colors.Permissions(r.Context(), key)
	if err != nil {
		return reply{}, err
	}
	return ok(hal.Resource{Links: hal.Self(a.href("colors", key, "permissions")).With("inf:color", a.href("colors", key)), Value: struct {
		Edit   bool `json:"edit"`
		Delete bool `json:"delete"`
		Write  bool `json:"write"`
	}(p)})
}

// exportColorsInput are the options of an export of the palette.
type exportColorsInput struct {
	Source   *string `json:"source"`
	Progress *string `json:"progress"`
	Download bool    `json:"download"`
}

// exportColors serves POST /api/colors-export: 201 and a download of colors.json; with download=true 200 and the file
// itself. source restricts it to the colors with that source; progress is taken and has no effect.
func (a colorRoutes) exportColors(r *request) (reply, error) {
	in, err := options[exportColorsInput](r)
	if err != nil {
		return reply{}, err
	}
	source := ""
	if in.Source != nil {
		source = *in.Source
	}
	export := func(w io.Writer) error { return a.Colors.Export(r.Context(), source, w) }
	if in.Download {
		return attachment("colors.json", "application/json", export)
	}
	d, err := a.Downloads.Create(r.Context(), "colors.json", "application/json", export)
	if err != nil {
		return reply{}, err
	}
	return created(a.href("downloads", d.ID), a.download(d))
}

// attachment is 200 with a file that is made while it is sent.
func attachment(filename, contentType string, write func(io.Writer) error) (reply, error) {
	return reply{status: http.StatusOK, stream: write, header: map[string]string{
		"Content-Type": contentType, "Content-Disposition": disposition(filename),
	}}, nil
}

// importColorsInput names the staged file.
type importColorsInput struct {
	UploadID string `json:"uploadId"`
}

// importColors serves POST /api/colors-import: 200 and the number of colors; 400 for a bad file, which changes nothing;
// 503 when other imports take too long.
func (a colorRoutes) importColors(r *request) (reply, error) {
	in, err := options[importColorsInput](r)
	if err != nil {
		return reply{}, err
	}
	file, err := a.staged(r.Context(), in.UploadID)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = file.Close() }()
	n, err := a.Colors.Import(r.Context(), file)
	if err != nil {
		return reply{}, err
	}
	return ok(struct {
		ColorsImported int `json:"colorsImported"`
	}{n})
}
