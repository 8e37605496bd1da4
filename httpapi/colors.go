package httpapi

import (
	"io"
	"net/http"

	"github.com/tenantcontent/tenantcontent/internal/rest"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/text/jsonfill"
)

// colorRoutes serves the palette of a tenant.
type colorRoutes struct{ *api }

// routes returns the rows of the route table.
func (a colorRoutes) routes() []rest.Route {
	return []rest.Route{
		{
			Method:  get,
			Pattern: "/api/colors",
			Name:    "listColors",
			Grants:  nothing,
			Query:   searched,
			Summary: "The palette, page by page",
			Handle:  a.listColors,
		},
		{
			Method:  get,
			Pattern: "/api/colors-list",
			Name:    "listAllColors",
			Grants:  nothing,
			Heavy:   rest.Brief,
			Summary: "The whole palette with hex and palette name",
			Handle:  a.listAllColors,
		},
		{
			Method:  get,
			Pattern: "/api/colors/:key",
			Name:    "getColor",
			Grants:  nothing,
			Summary: "One color",
			Handle:  a.getColor,
		},
		{
			Method:     put,
			Pattern:    "/api/colors/:key",
			Name:       "putColor",
			Grants:     nothing,
			Row:        "color",
			Permission: actor.ColorWrite,
			Writes:     rest.InSlot,
			Summary:    "Set a color",
			Handle:     a.putColor,
		},
		{
			Method:     del,
			Pattern:    "/api/colors/:key",
			Name:       "deleteColor",
			Grants:     nothing,
			Row:        "color",
			Permission: actor.ColorWrite,
			Writes:     rest.InSlot,
			Options:    rest.NoOptions{},
			Summary:    "Remove a color",
			Handle:     a.deleteColor,
		},
		{
			Method:  get,
			Pattern: "/api/colors/:key/permissions",
			Name:    "getColorPermissions",
			Grants:  nothing,
			Summary: "What the caller may do with a color",
			Handle:  a.getColorPermissions,
		},
		{
			Method:     post,
			Pattern:    "/api/colors-export",
			Name:       "exportColors",
			Grants:     nothing,
			Heavy:      rest.Brief,
			Permission: actor.ColorWrite,
			AnyType:    true,
			Options:    exportColorsInput{},
			Summary:    "Export the palette to a file",
			Handle:     a.exportColors,
		},
		{
			Method:     post,
			Pattern:    "/api/colors-import",
			Name:       "importColors",
			Grants:     nothing,
			Heavy:      rest.Long,
			Permission: actor.ColorWrite,
			Writes:     rest.ByService,
			Options:    importColorsInput{},
			Summary:    "Import colors from an uploaded file",
			Handle:     a.importColors,
		},
	}
}

// colorBody is a Color as the API writes it. It is encoded by hand because it is read often, and a
// palette may be long.
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
	links := hal.Self(a.href("colors", c.Key)).With(
		"inf:permissions", a.href("colors", c.Key, "permissions"),
	).With("inf:colors", a.href("colors"))
	return hal.Resource{Links: links, Value: colorBody(c), Row: c, Beside: hal.Nothing{}}
}

// href returns the absolute link to an API path.
func (a *api) href(segments ...string) string { return a.BaseURL + hal.Href(segments...) }

// listColors serves GET /api/colors: 200 and a page of the palette, 100 colors unless limit says
// otherwise, ordered by key unless sort says otherwise (key, createdAt, updatedAt); q searches the
// keys.
func (a colorRoutes) listColors(r *rest.Request) (rest.Reply, error) {
	q, err := r.Page(100)
	if err != nil {
		return rest.Reply{}, err
	}
	page, err := a.Colors.List(r.Context(), q)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(rest.Collection(a.BaseURL, r, q, page, "inf:color", nil, a.color))
}

// listAllColors serves GET /api/colors-list: 200 and the whole palette as a plain array, ordered by
// key. Any failure is 422.
func (a colorRoutes) listAllColors(r *rest.Request) (rest.Reply, error) {
	return rest.Streamed(func(w io.Writer) error {
		err := rest.WriteArray(w, a.Colors.All(r.Context()), appendColor)
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
func (a colorRoutes) getColor(r *rest.Request) (rest.Reply, error) {
	c, err := a.Colors.Get(r.Context(), r.Param("key"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.color(c))
}

// putColor serves PUT /api/colors/{key}: 200 and the color, which is made when the key is new; 400
// "Invalid color format" for all JSON but an object whose color is a hex.
func (a colorRoutes) putColor(r *rest.Request) (rest.Reply, error) {
	raw, err := r.JsonBody()
	if err != nil {
		return rest.Reply{}, err
	}
	var by jsonfill.Filler
	var in struct {
		Color string `json:"color"`
	}
	if by.Fill(raw, &in, "") != nil { // what is no object with a string is no hex
		in.Color = ""
	} else if err := r.RefuseUnknown(by.Unknown, colorBody{}); err != nil {
		return rest.Reply{}, err
	}
	leave, err := r.Slot()
	if err != nil {
		return rest.Reply{}, err
	}
	defer leave()
	c, err := a.Colors.Put(r.Context(), r.Param("key"), in.Color)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.color(c))
}

// deleteColor serves DELETE /api/colors/{key}: 200, also when the key does not exist.
func (a colorRoutes) deleteColor(r *rest.Request) (rest.Reply, error) {
	leave, err := r.Slot()
	if err != nil {
		return rest.Reply{}, err
	}
	defer leave()
	if err := a.Colors.Delete(r.Context(), r.Param("key")); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}

// getColorPermissions serves GET /api/colors/{key}/permissions: 200 and what the caller may; 404.
func (a colorRoutes) getColorPermissions(r *rest.Request) (rest.Reply, error) {
	key := r.Param("key")
	p, err := a.Colors.Permissions(r.Context(), key)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(hal.Resource{Links: hal.Self(a.href(
		"colors", key, "permissions",
	)).With("inf:color", a.href("colors", key)),
		Value: struct {
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

// exportColors serves POST /api/colors-export: 201 and a download of colors.json; with
// download=true 200 and the file itself. source restricts it to the colors with that source;
// progress is taken and has no effect.
func (a colorRoutes) exportColors(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Options[exportColorsInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	source := ""
	if in.Source != nil {
		source = *in.Source
	}
	export := func(w io.Writer) error { return a.Colors.Export(r.Context(), source, w) }
	if in.Download {
		return attachment("colors.json", "application/json", export)
	}
	d, err := a.Downloads.Create(r.Context(), files.Draft{
		Filename: "colors.json", ContentType: "application/json",
	}, export)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.Created(a.href("downloads", d.ID), fileRoutes(a).download(d))
}

// attachment is 200 with a file that is made while it is sent.
func attachment(filename, contentType string, write func(io.Writer) error) (rest.Reply, error) {
	return rest.Reply{Status: http.StatusOK, Stream: write, Header: map[string]string{
		"Content-Type": contentType, "Content-Disposition": rest.Disposition(filename),
	}}, nil
}

// importColorsInput names the staged file.
type importColorsInput struct {
	UploadID string `json:"uploadId"`
}

// importColors serves POST /api/colors-import: 200 and the number of colors; 400 for a bad file,
// which changes nothing; 503 when other imports take too long.
func (a colorRoutes) importColors(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Options[importColorsInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	file, err := fileRoutes(a).staged(r.Context(), in.UploadID)
	if err != nil {
		return rest.Reply{}, err
	}
	defer func() { _ = file.Close() }()
	n, err := a.Colors.Import(r.Context(), file)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(struct {
		ColorsImported int `json:"colorsImported"`
	}{n})
}
