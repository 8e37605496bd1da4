package main

import "github.com/alecthomas/kong"

// help prints what a command takes. Those that work on no database take no setting of the server: it is left out.
func help(o kong.HelpOptions, c *kong.Context) error {
	for n := c.Selected(); n != nil; n = n.Parent {
		if n.Name != "bundle" && n.Name != "version" {
			continue
		}
		for _, f := range c.Model.Flags {
			f.Hidden = f.Name != "help"
		}
	}
	return kong.DefaultHelpPrinter(o, c)
}
