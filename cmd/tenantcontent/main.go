// Command tenantcontent is the server and its tools. What it does is in internal/cli.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // users name time zones, and a bare machine has none

	"github.com/tenantcontent/tenantcontent/internal/cli"
	"github.com/tenantcontent/tenantcontent/javascript"
)

func main() {
	javascript.Child()
	signaled, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(context.Background())
	context.AfterFunc(signaled, func() {
		stop() // first, so that a second signal ends the process at once
		cancel()
	})
	code := cli.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
