// Package cli implements the command line of the server. Each command builds a tenantcontent.Config
// from flags and environment, or calls a running server. The package has no rules about content.
package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"github.com/tenantcontent/tenantcontent/errs"
)

// commands is the command line; kong reads the tags. Each command has only the flags that it uses.
type commands struct {
	Serve   serveCommand   `cmd:"" help:"Run the server (the default command)."`
	Migrate migrateCommand `cmd:"" help:"Make the database, or bring it up to this version."`
	Tenant  struct {
		Add     tenantAddCommand     `cmd:"" help:"Add a tenant with its superuser admin."`
		List    tenantListCommand    `cmd:"" help:"List the tenants."`
		Show    tenantShowCommand    `cmd:"" help:"Show a tenant's settings and how much it has."`
		Quota   tenantQuotaCommand   `cmd:"" help:"Set how much a tenant may store, or show it."`
		License tenantLicenseCommand `cmd:"" help:"Add licenses to a tenant and remove them, or show them."`
		Delete  tenantDeleteCommand  `cmd:"" help:"Delete a tenant and all that it has."`
		Export  tenantExportCommand  `cmd:"" help:"Write all that a tenant has into a file, encrypted under a passphrase."`
		Import  tenantImportCommand  `cmd:"" help:"Add the tenant of such a file."`
	} `cmd:"" help:"Manage tenants."`
	Domain struct {
		List domainListCommand `cmd:"" help:"List the authentication domains of a tenant."`
	} `cmd:"" help:"Look at authentication domains."`
	User struct {
		Add    userAddCommand    `cmd:"" help:"Add a superuser."`
		Passwd userPasswdCommand `cmd:"" help:"Set a user's password, and end the user's sessions."`
	} `cmd:"" help:"Manage users."`
	Queue struct {
		Stats   queueStatsCommand   `cmd:"" help:"Count the jobs of each tenant by kind and state."`
		Dead    queueDeadCommand    `cmd:"" help:"List dead jobs, those whose last try has failed."`
		Requeue queueRequeueCommand `cmd:"" help:"Put dead jobs back: each has all of its tries again."`
		Discard queueDiscardCommand `cmd:"" help:"Remove dead jobs."`
	} `cmd:"" help:"Look at the work behind answers, and at what has failed."`
	Bundle     bundleCommands    `cmd:"" help:"Move bundles between files and a running server."`
	App        appCommands       `cmd:"" help:"Move the files of an app between a folder and a running server."`
	Dev        devCommand        `cmd:"" help:"Run the app of a folder on this machine, publish it again whenever a file changes, and print each call of its handlers. Files are ignored as by app push."`
	Backup     backupCommand     `cmd:"" help:"Copy the data of an embedded server to a file, while the server runs. A PostgreSQL is backed up by pg_dump."`
	Restore    restoreCommand    `cmd:"" help:"Make the data of an embedded server, in an empty place, from a file of backup."`
	Rekey      rekeyCommand      `cmd:"" help:"Encrypt all secrets again under the first secret key. Stop the server first."`
	OpenAPI    openapiCommand    `cmd:"" name:"openapi" help:"Print the description of all routes as OpenAPI 3.1."`
	Help       helpCommand       `cmd:"" help:"Show how a command is used."`
	Completion completionCommand `cmd:"" help:"Print a script that completes this command line in a shell."`
	Version    versionCommand    `cmd:"" help:"Print the version."`

	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`
}

// Run runs the command in args until it ends or ctx does, and returns the exit code:
//
//   - 0 for success
//   - 1 for a failure
//   - 2 for a bad configuration or command line
//   - 130 for the end by Ctrl-C
//
// It prints a failure in one line to stderr. A program that calls it must first call
// javascript.Child.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var c commands
	exit := -1
	parser, err := newParser(&c, stdout, stderr, func(code int) { exit = code })
	if err != nil {
		return report(stderr, err, 1)
	}
	if len(args) > 0 && args[0] == completing {
		complete(parser.Model, args[1:], stdout)
		return 0
	}
	command, err := parser.Parse(named(args))
	if exit >= 0 { // --help or --version
		return exit
	}
	if err != nil {
		return report(stderr, explained(err), 2)
	}
	command.BindTo(ctx, (*context.Context)(nil))
	if err := command.Run(terminal{stdin, stdout, stderr}, &c.Bundle, &c.App); err != nil {
		if stopped := interruption(ctx, err); stopped != nil {
			return report(stderr, stopped, exitInterrupted)
		}
		return report(stderr, err, codeOf(err))
	}
	return 0
}

func codeOf(err error) int {
	if errs.CodeOf(err) == errs.Invalid {
		return 2
	}
	return 1
}

// report prints the message of an error. Messages of package errs contain no secrets.
func report(stderr io.Writer, err error, code int) int {
	text := errs.MessageOf(err)
	if text == "" {
		text = err.Error()
	} else if c := errs.CodeOf(err); c == errs.Unavailable || c == errs.Unconfirmed || c == errs.Full {
		text = err.Error() // with the cause, which is not a secret here
	}
	_, _ = fmt.Fprintln(stderr, "tenantcontent:", text)
	return code
}
