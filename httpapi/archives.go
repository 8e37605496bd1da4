package httpapi

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/text/jsonfill"
)

// archiveRoutes serves the exports and imports of archives.
type archiveRoutes struct{ *api }

// routes returns the rows of the route table.
func (a archiveRoutes) routes() []rest.Route {
	return []rest.Route{
		{
			Method:     post,
			Pattern:    "/api/bundles/:id/_export",
			Name:       "exportBundle",
			Grants:     programs,
			Heavy:      rest.Brief,
			Permission: actor.Superuser,
			AnyType:    true,
			Options:    rest.NoOptions{},
			Summary:    "The archive of a bundle",
			Gives:      openapi.OK(openapi.Bytes("application/gzip")),
			Fails:      []int{404},
			Handle:     a.exportBundle,
		},
		{
			Method:     post,
			Pattern:    "/api/bundles/:id/_deploy",
			Name:       "deployBundle",
			Grants:     programs,
			Heavy:      rest.Long,
			Permission: actor.Superuser,
			Writes:     rest.ByService,
			Options:    deployInput{},
			Summary:    "Bring a bundle into other tenants",
			Gives:      openapi.OK(openapi.One[deployedBundleBody]()),
			Fails:      []int{400, 403, 404},
			Handle:     a.deployBundle,
		},
		{
			Method:     post,
			Pattern:    "/api/_import-bundle",
			Name:       "importBundle",
			Grants:     programs,
			Heavy:      rest.Long,
			Permission: actor.Superuser,
			Writes:     rest.ByService,
			Options:    importInput{},
			File:       true,
			Summary:    "Import an archive",
			Gives:      openapi.OK(openapi.One[reportBody]()),
			Fails:      []int{400, 409},
			Handle:     a.importBundle,
		},
		{
			Method:     post,
			Pattern:    "/api/_bundle",
			Name:       "exportEntries",
			Grants:     programs,
			Heavy:      rest.Brief,
			Permission: actor.Superuser,
			AnyType:    true,
			Options:    manifestInput{},
			Summary:    "The archive of entries without a bundle",
			Gives:      openapi.OK(openapi.Bytes("application/gzip")),
			Fails:      []int{400, 409},
			Handle:     a.exportEntries,
		},
		{
			Method:     post,
			Pattern:    "/api/_bundle-deploy",
			Name:       "deployEntries",
			Grants:     programs,
			Heavy:      rest.Long,
			Permission: actor.Superuser,
			Writes:     rest.ByService,
			Options:    deployEntriesInput{},
			Summary:    "Bring entries without a bundle into other tenants",
			Gives:      openapi.OK(openapi.One[deployedBundleBody]()),
			Fails:      []int{403},
			Handle:     a.deployEntries,
		},
		{
			Method:     post,
			Pattern:    "/api/_restore",
			Name:       "restoreArchive",
			Grants:     programs,
			Heavy:      rest.Long,
			Permission: actor.Superuser,
			Writes:     rest.ByService,
			Options:    importInput{},
			File:       true,
			Summary:    "Replace content by an archive's",
			Gives:      openapi.OK(openapi.One[restoredBody]()),
			Fails:      []int{400, 403},
			Handle:     a.restoreArchive,
		},
		{
			Method:     post,
			Pattern:    "/api/_restore-from-file",
			Name:       "restoreFile",
			Grants:     programs,
			Heavy:      rest.Long,
			Permission: actor.Superuser,
			Writes:     rest.ByService,
			Options:    restoreInput{},
			File:       true,
			Summary:    "Replace content by a staged archive's",
			Gives:      openapi.OK(openapi.One[restoredBody]()),
			Fails:      []int{400},
			Handle:     a.restoreFile,
		},
	}
}

// countsBody counts the rows of an import by what was done to them.
type countsBody struct {
	Created int `json:"created"`
	Updated int `json:"updated"`
	// Unchanged counts rows that an update leaves as they are; they are not among the updated. It
	// is nil without the option changes.
	Unchanged *int `json:"unchanged,omitempty"`
	Skipped   int  `json:"skipped"`
	Deleted   int  `json:"deleted"`
}

func counts(c bundles.Counts, changes bool) countsBody {
	body := countsBody{Created: c.Created, Updated: c.Updated, Skipped: c.Skipped, Deleted: c.Deleted}
	if changes {
		body.Unchanged = &c.Unchanged
	}
	return body
}

// reportBody is the result of an import as the API writes it.
type reportBody struct {
	countsBody
	ByType   map[entity.Kind]countsBody `json:"byType"`
	Warnings []string                   `json:"warnings"`
	Changes  []changeBody               `json:"changes,omitempty"`
}

type changeBody struct {
	Action string      `json:"action"` // created, updated, unchanged, skipped or deleted
	Type   entity.Kind `json:"type"`
	ID     string      `json:"id"`
	Name   string      `json:"name"` // "" for a kind that has no names
}

// backupBody refers to the archive of what an import replaced.
type backupBody struct {
	ID        string   `json:"id"`
	Filename  string   `json:"filename"`
	Size      int64    `json:"size"`
	ExpiresAt hal.Time `json:"expiresAt"`
	Href      string   `json:"href"`
}

func report(r bundles.ImportResult) reportBody {
	listed := r.Changes != nil
	body := reportBody{countsBody: counts(r.Counts, listed), ByType: map[entity.Kind]countsBody{}, Warnings: r.Warnings}
	if body.Warnings == nil {
		body.Warnings = []string{}
	}
	for kind, n := range r.ByKind {
		body.ByType[kind] = counts(n, listed)
	}
	for _, c := range r.Changes {
		body.Changes = append(body.Changes, changeBody{c.Action, c.Kind, c.ID, c.Name})
	}
	return body
}

// backup returns nil if nothing was replaced, and after a dry run.
func (a archiveRoutes) backup(k *bundles.Backup) *backupBody {
	if k == nil {
		return nil
	}
	return &backupBody{k.ID, k.Filename, k.Size, hal.Time(k.ExpiresAt), a.href("downloads", k.ID)}
}

// exportBundle serves POST /api/bundles/{id}/_export: 200 and the archive of what the bundle refers
// to and all that it needs, streamed; 400 naming what does not fit into an archive, 404, 409 with
// "The content was changed meanwhile: try again." when an entity has been deleted since it was
// found. It takes no body. An error after 100 ms, when a part of the archive may have been sent,
// cuts the connection and is logged.
func (a archiveRoutes) exportBundle(r *rest.Request) (rest.Reply, error) {
	e, err := a.Bundles.Export(r.Context(), r.Param("id"))
	return streamedArchive(r, e, err)
}

// exportHolds is about how many bytes an export holds while its client receives nothing: rows, and
// the state of the compression.
const exportHolds = 4 << 20

func streamedArchive(r *rest.Request, e *bundles.Export, err error) (rest.Reply, error) {
	if err != nil {
		return rest.Reply{}, err
	}
	answer, err := attachment(e.Filename(), bundles.ContentType, func(w io.Writer) error {
		return e.Write(r.Context(), w)
	})
	answer.Holds = exportHolds
	answer.Early = true // finding what is needed may take a while
	return answer, err
}

// deployInput is the body of a deploy.
type deployInput struct {
	Tenants    []string           `json:"tenants"`
	UpdateRule rest.Field[string] `json:"updateRule"`
	DryRun     rest.Field[bool]   `json:"dryRun"`
	Changes    rest.Field[bool]   `json:"changes"`
}

func (in deployInput) options() bundles.ImportOptions {
	var o bundles.ImportOptions
	var rule string
	in.UpdateRule.Apply(&rule)
	in.DryRun.Apply(&o.DryRun)
	in.Changes.Apply(&o.Changes)
	o.Rule = entity.Rule(rule)
	return o
}

// deployBundle serves POST /api/bundles/{id}/_deploy: 200 and what was done in each tenant; 403
// naming a tenant that does not let the caller's deploy, and nothing is deployed anywhere; 404.
// Rows that exist are overwritten unless updateRule says otherwise; what an earlier deploy brought
// and the bundle ships no more is removed, whatever updateRule says. Entries that refer to nothing
// any more are among the warnings. When the first tenant fails, its failure is the answer and
// nothing is deployed anywhere; when a later one does, it is left as it was, its result has an
// error, and the others are deployed to. A failure may be 503 with "Other imports are under way.
// Try again." With changes each row is listed.
func (a archiveRoutes) deployBundle(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Options[deployInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	results, err := a.Bundles.Deploy(r.Context(), r.Param("id"), in.Tenants, in.options())
	return a.deployed(results, err)
}

// deployResultBody is what a deploy has done in a tenant.
type deployResultBody struct {
	Tenant string `json:"tenant"`
	reportBody
	Archive *backupBody   `json:"archive"`
	Error   *rest.Problem `json:"error,omitempty"`
}

// deployedBundleBody is what a deploy has done.
type deployedBundleBody struct {
	Results []deployResultBody `json:"results"`
}

// deployed encodes the results of a deploy. A tenant that failed when others had been deployed to
// has an error, in the shape of all errors, and counts of 0.
func (a archiveRoutes) deployed(results []bundles.Deployed, err error) (rest.Reply, error) {
	if err != nil {
		return rest.Reply{}, err
	}
	rows := make([]deployResultBody, len(results))
	for i, d := range results {
		rows[i] = deployResultBody{Tenant: d.Tenant, reportBody: report(d.ImportResult), Archive: a.backup(d.Archive)}
		if d.Err != nil {
			p := a.problemOf(d.Err)
			rows[i].Error = &p
		}
	}
	return rest.OK(deployedBundleBody{rows})
}

// importBundle serves POST /api/_import-bundle, the multipart field file or the raw archive: 200
// and what became of the rows; 400 naming what is wrong with the archive, 409 naming a row, 415 for
// JSON or text, 503 with "Other imports are under way. Try again.", and nothing is written.
// Options: updateRule (skip, overwrite or fail; default skip), owner, dryRun, and changes, which
// lists each row with its name, and tells updated rows from unchanged ones.
func (a archiveRoutes) importBundle(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Options[importInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	done, err := a.Bundles.Import(r.Context(), archiveOf(r), in.options())
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(report(done))
}

// archive returns the archive that a request brings, to be read once. Of a form it is the last
// field.
func archiveOf(r *rest.Request) io.Reader {
	if r.Part != nil {
		return r.FormFile()
	}
	return r.Body
}

// importInput are the options of an import.
type importInput struct {
	UpdateRule rest.Field[string] `json:"updateRule"`
	Owner      rest.Field[string] `json:"owner"`
	DryRun     rest.Field[bool]   `json:"dryRun"`
	Changes    rest.Field[bool]   `json:"changes"`
}

func (in importInput) options() (o bundles.ImportOptions) {
	var rule string
	in.UpdateRule.Apply(&rule)
	in.Owner.Apply(&o.Owner)
	in.DryRun.Apply(&o.DryRun)
	in.Changes.Apply(&o.Changes)
	o.Rule = entity.Rule(rule)
	return o
}

// restoreInput are the options of a restore from a file.
type restoreInput struct {
	importInput
	UploadID rest.Field[string] `json:"uploadId"`
}

// manifestInput is the body of an export without a bundle.
type manifestInput struct {
	Name    rest.Field[string] `json:"name"`
	Entries []json.RawMessage  `json:"entries"`
}

// manifest reads the entries of an export without a bundle. An entry may be one that was read from
// a bundle.
func (a archiveRoutes) manifest(r *rest.Request, in manifestInput) (bundles.Manifest, error) {
	var m bundles.Manifest
	in.Name.Apply(&m.Name)
	shown, err := rest.NewShownMembers(emptyEntry)
	if err != nil {
		return m, err
	}
	var unknown []jsonfill.UnknownMember
	for i, raw := range in.Entries {
		path := fmt.Sprintf("entries[%d]", i)
		var by jsonfill.Filler
		var members map[string]json.RawMessage
		if err := by.Fill(raw, &members, path); err != nil {
			return m, err
		}
		for name := range shown {
			if name != "type" && name != "data" && !slices.Contains(entryColumns, name) {
				delete(members, name)
			}
		}
		e, more, err := bundleRoutes(a).entryInput(r, members, path)
		if err != nil {
			return m, err
		}
		m.Entries, unknown = append(m.Entries, e), append(unknown, more...)
	}
	return m, r.RefuseUnknown(unknown, nil)
}

// exportEntries serves POST /api/_bundle: 200 and the archive of some entries, which no bundle has,
// streamed; 400 and 409 as for the entries of a bundle, naming the one, and 409 as for _export.
func (a archiveRoutes) exportEntries(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Options[manifestInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	m, err := a.manifest(r, in)
	if err != nil {
		return rest.Reply{}, err
	}
	e, err := a.Bundles.ExportManifest(r.Context(), m)
	return streamedArchive(r, e, err)
}

// deployEntriesInput is what is deployed without a bundle, and how.
type deployEntriesInput struct {
	manifestInput
	deployInput
}

// deployEntries serves POST /api/_bundle-deploy: as _bundle and _deploy in one step.
func (a archiveRoutes) deployEntries(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Options[deployEntriesInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	m, err := a.manifest(r, in.manifestInput)
	if err != nil {
		return rest.Reply{}, err
	}
	return a.deployed(a.Bundles.DeployManifest(r.Context(), m, in.Tenants, in.options()))
}

// restoreArchive serves POST /api/_restore, the archive as body: 200 and what became of the rows.
// For every kind in the archive the tenant's rows become exactly the archive's; 415 for JSON or
// text, 503 as for an import. What was there is kept for a week as the download that archive names;
// the warnings, of a dry run too, say what that cannot bring back. The options are dryRun, owner
// and changes, and updateRule, which is overwrite if anything.
func (a archiveRoutes) restoreArchive(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Options[importInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	return a.restore(r, archiveOf(r), in.options())
}

// restoreFile serves POST /api/_restore-from-file: as _restore, with the archive as the multipart
// field file, as the body, or as the option uploadId of a staged one, which then is all that the
// request brings.
func (a archiveRoutes) restoreFile(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Options[restoreInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if brings := r.ContentLength != 0 && !rest.IsJSON(kind); brings && !in.UploadID.Set {
		return a.restore(r, archiveOf(r), in.options())
	} else if brings {
		return rest.Reply{}, errs.New(
			errs.Invalid, "uploadId names a file beside the one that is sent: leave one of them out",
		)
	}
	var id string
	in.UploadID.Apply(&id)
	file, err := fileRoutes(a).staged(r.Context(), id)
	if err != nil {
		return rest.Reply{}, err
	}
	defer func() { _ = file.Close() }()
	return a.restore(r, file, in.options())
}

// restoredBody is what a restore has done.
type restoredBody struct {
	reportBody
	Archive *backupBody `json:"archive"`
}

func (a archiveRoutes) restore(r *rest.Request, content io.Reader, o bundles.ImportOptions) (rest.Reply, error) {
	if o.Rule != "" && o.Rule != entity.Overwrite {
		return rest.Reply{}, errs.New(errs.Invalid, "updateRule must be overwrite for a restore, or left out")
	}
	restored, err := a.Bundles.Restore(r.Context(), content, o)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(restoredBody{report(restored), a.backup(restored.Archive)})
}

// problemOf is the error shape of a failure that is part of an answer.
func (a archiveRoutes) problemOf(err error) rest.Problem {
	status, message := rest.StatusOf(errs.CodeOf(err)), errs.MessageOf(err)
	if status == 0 {
		a.Log.Error("part of a request failed", "err", err)
		status, message = http.StatusInternalServerError, "An internal server error occurred"
	}
	return rest.Problem{StatusCode: status, Error: http.StatusText(status), Message: message}
}
