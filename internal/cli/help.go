package cli

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

// newParser returns the parser of the command line.
func newParser(c *commands, stdout, stderr io.Writer, exit func(code int)) (*kong.Kong, error) {
	return kong.New(c, kong.Name("tenantcontent"), kong.Writers(stdout, stderr), kong.Exit(exit),
		kong.Description("Content services for multi-tenant products. `tenantcontent help COMMAND` shows the "+
			"flags of a command; "+
			"each of them can be set in the environment, too."),
		kong.Vars{"version": "tenantcontent " + version()}, kong.ValueFormatter(describe), kong.Help(help))
}

// help prints the usage of a command. --version is listed only with the commands.
func help(o kong.HelpOptions, c *kong.Context) error {
	for _, f := range c.Model.Flags {
		f.Hidden = f.Name == "version" && c.Selected() != nil
	}
	return kong.DefaultHelpPrinter(o, c)
}

// helpCommand makes the command appear in the list. named converts it to a flag.
type helpCommand struct {
	Command []string `arg:"" optional:"" help:"Command, such as: bundle import."`
}

// named returns the arguments with the command first; the default is serve. `help COMMAND` becomes
// `COMMAND --help`.
func named(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"serve"}
	case args[0] == "help":
		return append(append([]string{}, args[1:]...), "--help")
	case strings.HasPrefix(args[0], "-") && args[0] != "--help" && args[0] != "-h" && args[0] != "--version":
		return append([]string{"serve"}, args...)
	}
	return args
}

// describe returns the help of a flag or argument with its default and its environment variable.
func describe(v *kong.Value) string {
	var notes []string
	if v.HasDefault && v.Default != "" && !v.IsBool() {
		notes = append(notes, "default: "+v.Default)
	}
	for _, name := range v.Tag.Envs {
		notes = append(notes, "$"+name)
	}
	text := strings.TrimSuffix(v.Help, ".")
	switch {
	case len(notes) == 0:
		return v.Help
	case strings.HasSuffix(text, ")"): // such as (default: the id)
		return strings.TrimSuffix(text, ")") + "; " + strings.Join(notes, "; ") + ")."
	}
	return text + " (" + strings.Join(notes, "; ") + ")."
}

// suggestion matches the end of kong's errors for unknown words.
var suggestion = regexp.MustCompile(`, did you mean (.*)\?$`)

// explained returns the message for kong's error about a command line.
func explained(err error) error {
	text := err.Error()
	if m := suggestion.FindStringSubmatchIndex(text); m != nil {
		text = text[:m[0]] + ": did you mean " + strings.ReplaceAll(text[m[2]:m[3]], `"`, "") + "?"
	}
	word, isWord := strings.CutPrefix(text, "unexpected argument ")
	parse, ok := errors.AsType[*kong.ParseError](err)
	if !isWord || !ok {
		return errors.New(text)
	}
	node := parse.Context.Selected()
	if node == nil {
		node = parse.Context.Model.Node
	}
	if len(node.Children) == 0 {
		return errors.New(text)
	}
	if !strings.Contains(word, ": did you mean ") {
		return fmt.Errorf("unknown command %s: `tenantcontent help` lists the commands", word)
	}
	return errors.New("unknown command " + word)
}
