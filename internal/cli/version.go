package cli

import (
	"runtime/debug"
)

type versionCommand struct{}

func (*versionCommand) Run(t terminal) error { return say(t, "tenantcontent %s", version()) }

// version returns the version of the program.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}
