package httpapi

import (
	"io"
	"net/http"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

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
			Gives:   openapi.OK(openapi.Page[colorBody]("inf:color")),
			Fails:   []int{400},
			Handle:  a.listColors,
		},
		{
			Method:  get,
			Pattern: "/api/colors-list",
			Name:    "listAllColors",
			Grants:  nothing,
			Heavy:   rest.Brief,
			Summary: "The whole palette with hex and palette name",
			Gives:   openapi.OK(openapi.List[colorRow]()),
			Handle:  a.listAllColors,
		},
		{
			Method:  get,
			Pattern: "/api/colors/:key",
			Name:    "getColor",
			Grants:  nothing,
			Summary: "One color",
			Gives:   openapi.OK(openapi.One[colorBody]()),
			Fails:   []int{404},
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
			Takes:      openapi.Update[colorInput, colorBody](),
			Gives:      openapi.OK(openapi.One[colorBody]()),
			Fails:      []int{400, 403},
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
			Gives:      openapi.OK(openapi.None()),
			Fails:      []int{403},
			Handle:     a.deleteColor,
		},
		{
			Method:  get,
			Pattern: "/api/colors/:key/permissions",
			Name:    "getColorPermissions",
			Grants:  nothing,
			Summary: "What the caller may do with a color",
			Gives:   openapi.OK(openapi.One[colorPermissionsBody]()),
			Fails:   []int{404},
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
			Gives:      openapi.Answers{200: openapi.Bytes("application/json"), 201: openapi.One[downloadBody]()},
			Fails:      []int{400, 403},
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
			Gives:      openapi.OK(openapi.One[importedColorsBody]()),
			Fails:      []int{400, 403},
			Handle:     a.importColors,
		},
	}
}

// colorBody is a Color as the API writes it. It is encoded by hand because it is read often, and a
// palette may be long.
type colorBody colors.Color

// Relations implements openapi.Related.
func (colorBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:colors", "inf:permissions"}}
}

// colorShape has the members of a colorBody.
type colorShape struct {
	Tenant    string   `json:"tenant"`
	Key       string   `json:"key"`
	Color     string   `json:"color"` // a hex of six digits, such as #ff0000
	Source    *string  `json:"source"`
	CreatedAt hal.Time `json:"createdAt"`
	UpdatedAt hal.Time `json:"updatedAt"`
}

// Shape implements openapi.Shaper.
func (colorBody) Shape() any { return colorShape{} }

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

// colorRow is a row of the flat list.
type colorRow struct {
	colorShape
	Hex   string `json:"hex"`
	Named string `json:"named"` // of the palette's colors, the nearest one
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

// colorInput is the body of a write to a color.
type colorInput struct {
	Color string `json:"color"`
}

// putColor serves PUT /api/colors/{key}: 200 and the color, which is made when the key is new; 400
// "Invalid color format" for all JSON but an object whose color is a hex.
func (a colorRoutes) putColor(r *rest.Request) (rest.Reply, error) {
	raw, err := r.JsonBody()
	if err != nil {
		return rest.Reply{}, err
	}
	var by jsonfill.Filler
	var in colorInput
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

// colorPermissionsBody is what the caller may do with a color.
type colorPermissionsBody struct {
	Edit   bool `json:"edit"`
	Delete bool `json:"delete"`
	Write  bool `json:"write"`
}

// Relations implements openapi.Related.
func (colorPermissionsBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:color"}}
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
		Value: colorPermissionsBody(p)})
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

// importedColorsBody is how many colors were imported.
type importedColorsBody struct {
	ColorsImported int `json:"colorsImported"`
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
	return rest.OK(importedColorsBody{n})
}
