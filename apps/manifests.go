package apps

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/manifest"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
)

// An app that was deployed has the manifest of its last deploy: a file that is written waits for
// the next one, as code does. It is a file in a library of its own kind, with the id of the app's:
// so its bytes are shared with the app's files, and it travels and is counted as they are. An app
// that was never deployed, and a draft, have the manifest in their files.

// manifestRead is what reading a manifest has led to.
type manifestRead struct {
	manifest manifest.Manifest
	err      error
}

// How manifests are read and kept.
const (
	maxManifests  = 64 << 20         // bytes of all manifests that are kept
	manifestBytes = 10               // memory of one for each byte of its file
	maxReading    = 2                // how many are read at once, for a tenant one
	readingWait   = 10 * time.Second // how long others wait
)

// manifest returns the manifest that an app or draft has, the zero Manifest if it has none. Errors:
// errs.Conflict for one that cannot be read.
func (s *Service) manifest(ctx context.Context, app App) (manifest.Manifest, error) {
	if app.DeployedAt != nil && app.EditingID == nil {
		return s.manifestIn(ctx, s.deployed, app.Tenant, app.LibraryID)
	}
	return s.manifestIn(ctx, s.files, app.Tenant, app.LibraryID)
}

// nextManifest returns the manifest in the files of a library, which the next deploy of the app
// makes its manifest, or the draft's. Errors: errs.Conflict for one that cannot be read.
func (s *Service) nextManifest(ctx context.Context, tenant, library string) (manifest.Manifest, error) {
	return s.manifestIn(ctx, s.files, tenant, library)
}

func (s *Service) manifestIn(ctx context.Context, files *Files, tenant, library string) (manifest.Manifest, error) {
	for _, name := range manifest.Files() {
		f, err := files.GetCached(ctx, tenant, library, name)
		if errs.CodeOf(err) == errs.NotFound {
			continue
		}
		if err != nil {
			return manifest.Manifest{}, err
		}
		return s.readManifest(ctx, files, tenant, library, f)
	}
	return manifest.Manifest{}, nil
}

// readManifest returns the manifest in a file, or why it cannot be read. A content is read once, as
// it never changes.
func (s *Service) readManifest(
	ctx context.Context, files *Files, tenant, library string, f File,
) (manifest.Manifest, error) {
	if m, ok := s.manifests.Get(tenant, f.Path+"/"+f.ContentID); ok {
		return m.manifest, m.err
	}
	leave, err := s.reading.Acquire(ctx, 1, tenant)
	if err != nil {
		return manifest.Manifest{}, limiter.Unavailable(err, tooManyManifests)
	}
	defer leave()
	if m, ok := s.manifests.Get(tenant, f.Path+"/"+f.ContentID); ok { // read meanwhile
		return m.manifest, m.err
	}
	f, r, err := files.OpenCached(ctx, tenant, library, f.Path)
	if err != nil {
		return manifest.Manifest{}, err
	}
	raw, err := io.ReadAll(io.LimitReader(r, manifest.MaxSize+1))
	if err := errors.Join(err, r.Close()); err != nil {
		return manifest.Manifest{}, err
	}
	var m manifestRead
	if m.manifest, m.err = s.o.Manifests.Read(f.Path, raw); errs.CodeOf(m.err) == errs.Invalid {
		m.err = errs.New(errs.Conflict, "%s", errs.MessageOf(m.err))
	}
	s.manifests.Put(tenant, f.Path+"/"+f.ContentID, m, manifestBytes*len(raw))
	return m.manifest, m.err
}

const tooManyManifests = "Too many manifests are read at the moment. Try again."

// deployManifest makes the manifest in the files of an app, which is locked, its manifest.
func (s *Service) deployManifest(ctx context.Context, app App) error {
	for _, name := range manifest.Files() {
		f, err := s.files.Get(ctx, app.Tenant, app.LibraryID, name)
		switch {
		case err == nil:
			return s.deployed.Set(ctx, app.Tenant, app.LibraryID, []File{f})
		case errs.CodeOf(err) != errs.NotFound:
			return err
		}
	}
	return s.deployed.Set(ctx, app.Tenant, app.LibraryID, nil)
}

// undeployed removes the manifests of apps that were removed.
func (s *Service) undeployed(ctx context.Context, tenant string, gone []App) error {
	var ids []string
	for _, app := range gone {
		if app.EditingID == nil {
			ids = append(ids, app.LibraryID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return s.deployed.Remove(ctx, tenant, ids)
}

// checked returns the content of a file of an app that fails with errs.Invalid, with file and line,
// if it is a manifest that cannot be read and would become that of an app. A draft can have one
// until it is published.
func (s *Service) checked(ctx context.Context, app App, path string, content io.Reader) io.Reader {
	if app.EditingID != nil || !slices.Contains(manifest.Files(), path) {
		return content
	}
	return &checkedManifest{s: s, ctx: ctx, app: app, name: path, from: content}
}

// leavesManifest returns errs.Invalid, with file and line, if without a file another one would be
// the manifest of an app that cannot be read. One that was deployed keeps its manifest until the
// next deploy, which checks it; a draft until it is published.
func (s *Service) leavesManifest(ctx context.Context, id, path string) error {
	files := manifest.Files()
	at := slices.Index(files, path)
	if at < 0 {
		return nil
	}
	app, err := s.CheckRewrite(ctx, id)
	if err != nil || app.DeployedAt != nil || app.EditingID != nil {
		return err
	}
	for i, name := range files {
		f, err := s.files.Get(ctx, app.Tenant, app.LibraryID, name)
		switch {
		case i == at || errs.CodeOf(err) == errs.NotFound:
			continue
		case err != nil || i < at: // one that comes before is the manifest
			return err
		}
		_, err = s.readManifest(ctx, s.files, app.Tenant, app.LibraryID, f)
		if errs.CodeOf(err) == errs.Conflict {
			return errs.New(errs.Invalid, "Without %s, %s is the manifest. %s", path, name, errs.MessageOf(err))
		}
		return err
	}
	return nil
}

// checkedManifest is the content of a manifest that is checked before its first byte is read.
type checkedManifest struct {
	s    *Service
	ctx  context.Context
	app  App
	name string
	from io.Reader
	all  io.Reader // nil before the check
}

// Read implements io.Reader.
func (c *checkedManifest) Read(p []byte) (int, error) {
	if c.all == nil {
		raw, err := io.ReadAll(io.LimitReader(c.from, manifest.MaxSize+1))
		if err == nil {
			err = c.s.checkContent(c.ctx, c.app, c.name, raw)
		}
		if err != nil {
			return 0, err
		}
		c.all = io.MultiReader(bytes.NewReader(raw), c.from)
	}
	return c.all.Read(p)
}

// checkContent returns errs.Invalid for the text of a manifest that cannot be read, unless another
// file of the app comes before it.
func (s *Service) checkContent(ctx context.Context, app App, name string, raw []byte) error {
	for _, before := range manifest.Files() {
		if before == name {
			break
		}
		if _, err := s.files.Get(ctx, app.Tenant, app.LibraryID, before); errs.CodeOf(err) != errs.NotFound {
			return err
		}
	}
	leave, err := s.reading.Acquire(ctx, 1, app.Tenant)
	if err != nil {
		return limiter.Unavailable(err, tooManyManifests)
	}
	defer leave()
	_, err = s.o.Manifests.Read(name, raw)
	return err
}
