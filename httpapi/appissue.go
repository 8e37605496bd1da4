package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/url"

	"github.com/tenantcontent/tenantcontent/internal/rest"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/rest/view"
	"github.com/tenantcontent/tenantcontent/internal/scripts"
)

// A view token lends an app the rights of its viewer, so it is for the app that the viewer has
// opened: what its server runs, which calls it may make, and which datasets it uses. When one of
// them changes, the tokens that were issued before end. A page that is open is told so, and the
// viewer opens the app again; pages, roles and whatever else an app has may change below a token.

// under returns a digest of what the view tokens of an app are issued under now.
func (a views) under(ctx context.Context, v apps.Viewed) (string, error) {
	version, err := a.Handlers.Version(ctx, scripts.AppOf(v.App), handlers.Server)
	if err != nil {
		return "", err
	}
	all := make([]string, 0, 3+len(v.Manifest.Access)+len(v.Manifest.Datasets)+len(v.Datasets))
	all = append(all, v.Tenant, v.ID, version)
	for _, rule := range v.Manifest.Access {
		all = append(all, "access "+rule.String())
	}
	for _, d := range v.Manifest.Datasets {
		all = append(all, "needs "+d.Alias)
	}
	for _, d := range v.Datasets {
		all = append(all, "bound "+d.Alias+" "+d.DatasetID)
	}
	text, err := json.Marshal(all)
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:]), err
}

// issuedUnder returns errs.Unauthenticated for the claims of a view token that was issued under
// something else than what v is now, and nil for no claims: those of a caller without a token.
func (a views) issuedUnder(ctx context.Context, claims view.Claims, v apps.Viewed) error {
	if claims.App == "" {
		return nil
	}
	now, err := a.under(ctx, v)
	if err != nil {
		return err
	}
	if claims.App != v.ID || claims.Tenant != v.Tenant || claims.Under != now {
		return a.ended(
			errs.New(errs.Unauthenticated, "The app has changed since it was opened: open it again."), v.ID,
			claims,
		)
	}
	return nil
}

// fileIssuedUnder is issuedUnder for a file of the app of a request. Files of an app whose manifest
// cannot be read, which runs and calls nothing, can be loaded.
func (a views) fileIssuedUnder(r *rest.Request) error {
	if visitOf(r).claims.App == "" {
		return nil
	}
	v, err := a.viewed(r, "")
	switch {
	case errs.CodeOf(err) == errs.Conflict:
		return nil
	case err != nil:
		return err
	}
	return a.issuedUnder(r.Context(), visitOf(r).claims, v)
}

// ended returns a rest.Ended for errs.Unauthenticated, and other errors as they are. The pages of a
// visitor are opened again with the link, which is no part of the claims.
func (a views) ended(err error, app string, claims view.Claims) error {
	if errs.CodeOf(err) != errs.Unauthenticated || claims.Scope == view.Visitor {
		return err
	}
	reload := a.href("apps", app, "view")
	if claims.Role != "" {
		reload += "?role=" + url.QueryEscape(claims.Role)
	}
	return rest.NewEnded(err, reload)
}
