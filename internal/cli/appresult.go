package cli

import (
	"fmt"
	"strings"

	"github.com/tenantcontent/tenantcontent/hal"
)

// pushed is the result of a push.
type pushed struct {
	Tenant    string  `json:"tenant"`
	App       string  `json:"app"`
	URL       string  `json:"url"`   // of the page of the app, or of the draft with the changes
	Draft     *string `json:"draft"` // the open draft
	Published bool    `json:"published"`
	// what the app runs since it was published or deployed; null if neither was done
	Deployed  *runs    `json:"deployed"`
	DryRun    bool     `json:"dryRun"`
	New       []string `json:"new"`
	Changed   []string `json:"changed"`
	Removed   []string `json:"removed"`
	Kept      []string `json:"onlyOnServer"`
	Left      []string `json:"changedOnServer"`
	Others    []string `json:"addedOnServer"`
	Ignored   []string `json:"ignored"` // in the folder
	Unchanged int      `json:"unchanged"`
}

// result returns the result of a plan. viewed is the id of the app or draft whose page is shown.
func (p *push) result(todo plan, c comparison, draft *string, viewed string) (pushed, error) {
	server, err := p.address()
	if err != nil {
		return pushed{}, err
	}
	paths := func(files []localFile) []string {
		all := make([]string, len(files))
		for i, file := range files {
			all[i] = file.path
		}
		return all
	}
	list := func(all []string) []string { return append([]string{}, all...) }
	return pushed{Tenant: c.Tenant, App: c.ID, URL: server + hal.Href("apps", viewed, "view"),
		Draft: draft, New: paths(todo.added), Changed: paths(todo.changed),
		Removed: list(todo.removed), Kept: list(todo.kept), Left: list(todo.left),
		Others: list(todo.others), Ignored: list(p.folder.ignored), Unchanged: todo.unchanged}, nil
}

func (r pushed) text(p *push) string {
	var b strings.Builder
	list := func(what string, paths []string) {
		if len(paths) > 0 {
			fmt.Fprintf(&b, "%s:%s\n", what, listedPaths(paths))
		}
	}
	list(
		"Changed by somebody else since your last push or pull, not here, and left alone (app pull brings these "+
			"changes)",
		r.Left,
	)
	list("Added by somebody else, and kept (app pull brings them; --delete with --force removes them)", r.Others)
	list("Only on the server, and kept (--delete removes them)", r.Kept)
	if p.Verbose {
		list("Ignored", r.Ignored)
	} else if len(r.Ignored) > 0 {
		fmt.Fprintf(&b, "%d ignored (--verbose lists them)\n", len(r.Ignored))
	}
	if p.noPage {
		fmt.Fprintf(&b, "Warning: there is no %s, which viewers see first%s\n", harmless(p.page), p.elsewhere())
	}
	app := harmless(r.App) + ofTenant(r.Tenant)
	counts := fmt.Sprintf(
		"%d new, %d changed, %d removed, %d unchanged", len(r.New), len(r.Changed), len(r.Removed), r.Unchanged,
	)
	switch {
	case r.DryRun && r.App == "":
		fmt.Fprintf(&b, "A push would make a new app: %s.", counts)
	case r.DryRun:
		fmt.Fprintf(&b, "A push to the app %s would be: %s.", app, counts)
	case r.Published:
		fmt.Fprintf(&b, "Published the app %s: %s.", app, counts)
	case p.Draft:
		fmt.Fprintf(&b,
			"Pushed into the draft %s of the app %s: %s.\nTo publish it: tenantcontent app push %s, or POST %s%s",
			harmless(*r.Draft), app, counts,
			harmless(p.Folder), strings.TrimRight(p.Server, "/"), harmless(hal.Href("apps", r.App, "draft", "_commit")))
	default:
		fmt.Fprintf(&b, "Nothing to push to the app %s: %s.", app, counts)
		if r.Draft != nil {
			fmt.Fprintf(&b, "\nIt has a draft, %s, which stays as it is.", harmless(*r.Draft))
		}
	}
	if r.Deployed != nil {
		if !r.Published {
			b.WriteString("\nDeployed the app.")
		}
		b.WriteString(r.Deployed.text())
		if p.Deploy && len(r.Deployed.Routes) == 0 {
			b.WriteString("\nIt has no handlers.")
		}
	}
	if r.URL != "" {
		fmt.Fprintf(&b, "\nView: %s", harmless(r.URL))
	}
	return b.String()
}

// runs is the answer of the server to a deploy.
type runs struct {
	Routes []struct {
		Area    string   `json:"area"`
		Path    string   `json:"path"`
		File    string   `json:"file"`
		Methods []string `json:"methods"`
	} `json:"routes"`
	Agents     []string `json:"agents"`     // names
	Migrations []string `json:"migrations"` // applied ones
	Warnings   []string `json:"warnings"`
}

func (r runs) text() string {
	var b strings.Builder
	if len(r.Migrations) > 0 {
		fmt.Fprintf(&b, "\nMigrations applied:%s", strings.TrimSuffix(listedPaths(r.Migrations), "\n"))
	}
	if len(r.Routes) > 0 {
		b.WriteString("\nHandlers:")
	}
	for _, route := range r.Routes {
		if route.Area == "tools" {
			fmt.Fprintf(&b, "\n  tool %s (%s)", harmless(strings.TrimPrefix(route.Path, "/")), harmless(route.File))
			continue
		}
		at := "view/api/_server"
		if route.Area == "webhooks" {
			at = "_hook"
		}
		fmt.Fprintf(
			&b, "\n  %s %s (%s)", harmless(strings.Join(route.Methods, ", ")),
			harmless(at+strings.TrimSuffix(route.Path, "/")), harmless(route.File),
		)
	}
	if len(r.Agents) > 0 {
		fmt.Fprintf(&b, "\nAgents: %s", harmless(strings.Join(r.Agents, ", ")))
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "\nWarning: %s", harmless(w))
	}
	return b.String()
}

// show prints what a push would do.
func (p *push) show(r pushed) error {
	for _, some := range []struct {
		sign  string
		paths []string
	}{{"+", r.New}, {"~", r.Changed}, {"-", r.Removed}} {
		for _, path := range some.paths {
			p.out.file(some.sign, path)
		}
	}
	return nil
}
