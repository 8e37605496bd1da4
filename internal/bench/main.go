// Command bench measures the service against the bare limit, in one run, on both engines: `make
// bench`. Only ratios travel between machines; results keeps what was printed, and BENCHMARKS.md
// the current figures.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime/pprof"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/javascript"
)

// result is one line of the report.
type result struct {
	name   string
	engine string
	ours   string // as measured
	bare   string
	ratio  float64 // ours to bare
	must   string  // what the issue asks for, such as "≥ 0.60"
	met    bool
}

func main() {
	javascript.Child()
	queueNode()
	only := flag.String("run", "", "run only the measurements whose `name` this regular expression matches")
	engines := flag.String("engines", "sqlite,postgres", "`list` of engines")
	beside := flag.Duration("beside", 5*time.Second, "how long to measure beside each load of a busy `tenant`")
	calls := flag.Int("calls", 20_000, "how many `calls` of a webhook are counted")
	profile := flag.String("cpuprofile", "", "write a CPU profile to this `file`")
	flag.Parse()
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		_ = pprof.StartCPUProfile(f)
		defer func() { pprof.StopCPUProfile(); _ = f.Close() }()
	}
	if err := run(context.Background(), *only, strings.Split(*engines, ","), *beside, *calls); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// measurement is one thing to measure on one engine.
type measurement struct {
	name string
	run  func(ctx context.Context, w *world) (result, error)
}

var measurements = []measurement{
	{"read one color", readOne},
	{"upsert one color", upsertOne},
	{"read one color, with metrics", watchMetrics},
	{"read one color, with an access log", watchAccessLog},
	{"read one color, with traces of 1 %", watchTraces},
	{"color written, its change kept", keepColor},
	{"report written, its change kept", keepReport},
	{"color written by hand, its change kept", keepBare},
	{"color unchanged (304)", unchangedSmall},
	{"dataset of 1 MiB unchanged (304)", unchangedLarge},
	{"inserts of one tenant", insertMany},
	{"inserts into an indexed list", insertNoted},
	{"colors-list of 10,000", listAll},
	{"import of 100,000", importMany},
	{"memory of the import", importMemory},
	{"bundle export of 100 MiB", exportMany},
	{"bundle import of 100 MiB", importBundle},
	{"page of a thread of 100,000", readThread},
	{"principal-list of 100,000", listPrincipals},
	{"reassign of 100,000", reassignMany},
	{"page of 110,000 apps", appsPage},
	{"file of 4 KiB of an app's page", viewFile},
	{"file of 4 KiB unchanged (304)", viewFileUnchanged},
	{"download of 10 MiB", downloadFile},
	{"app draft of 2,000 files, 200 MiB", draftBig},
	{"app commit of 10 changed files", commitBig},
	{"app push of 2,000 unchanged files", pushUnchanged},
	{"chat, first text", chatFirstByte},
	{"chat with an assistant, first text", assistantFirstByte},
	{"chat with an assistant of 10,000 rows, first text", knowingFirstByte},
	{"cron tick of 10,000 schedules", cronTick},
	{"workspace: connect, query, close", workspace},
	{"scan of 20,000", scanAll},
	{"scan again", scanAgain},
	{"memory of a scan of 100,000", scanMemory},
	{"login", loginCost},
	{"1,000 logins at once", loginMany},
	{"login at a directory", loginDirectory},
	{"1,000 logins at a directory at once", loginManyDirectory},
}

func run(ctx context.Context, only string, engines []string, beside time.Duration, calls int) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	var all []result
	for _, engine := range engines {
		for _, group := range []func() ([]result, error){
			func() ([]result, error) { return measure(ctx, engine, pattern) },
			func() ([]result, error) { return besideBusyTenant(ctx, engine, pattern, beside) },
			func() ([]result, error) { return clientsThatNeverRead(ctx, engine, pattern, beside) },
			func() ([]result, error) { return peerRows(ctx, engine, pattern) },
			func() ([]result, error) { return sizeRows(ctx, engine, pattern) },
			func() ([]result, error) { return besideLongChanges(ctx, engine, pattern) },
			func() ([]result, error) { return bundleSizeRows(ctx, engine, pattern) },
			func() ([]result, error) { return tenantRows(ctx, engine, pattern) },
			func() ([]result, error) { return processRows(ctx, engine, pattern) },
			func() ([]result, error) { return queueRows(ctx, engine, pattern) },
			func() ([]result, error) { return webhookRows(ctx, engine, pattern, beside, calls) },
			func() ([]result, error) { return shareRows(ctx, engine, pattern) },
		} {
			some, err := group()
			if err != nil {
				return fmt.Errorf("%s: %w", engine, err)
			}
			all = append(all, some...)
		}
	}
	if pattern.MatchString("jsvm") {
		some, err := scripts(ctx)
		if err != nil {
			return err
		}
		all = append(all, some...)
	}
	if pattern.MatchString("start") {
		r, err := startTime(ctx)
		if err != nil {
			return err
		}
		all = append(all, r)
	}
	return report(all)
}

// measure runs the measurements whose names match, in one process with the service.
func measure(ctx context.Context, engine string, pattern *regexp.Regexp) (all []result, err error) {
	some := slices.DeleteFunc(slices.Clone(measurements), func(m measurement) bool {
		return !pattern.MatchString(m.name)
	})
	if len(some) == 0 {
		return nil, nil
	}
	w, err := newWorld(ctx, engine)
	if err != nil {
		return nil, err
	}
	for _, m := range some {
		fmt.Fprintf(os.Stderr, "%s on %s …\n", m.name, engine)
		r, err := m.run(ctx, w)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		if r.ours == "" { // not of this engine
			continue
		}
		r.name, r.engine = m.name, engine
		all = append(all, r)
	}
	return all, w.close()
}

// groupRow is a measurement of a group that has one server for all of its rows.
type groupRow struct {
	name    string
	measure func(ctx context.Context) (result, error)
}

// matching returns the rows of a group whose names match.
func matching(rows []groupRow, pattern *regexp.Regexp) []groupRow {
	return slices.DeleteFunc(rows, func(r groupRow) bool { return !pattern.MatchString(r.name) })
}

// measureRows measures the rows on a server that is filled by fill, and calls after, if it is not
// nil, after each.
func measureRows(
	ctx context.Context, engine string, rows []groupRow,
	fill func(*neighbours, context.Context, *bun.DB, *tenantcontent.App) error, after func(*neighbours) error,
) (all []result, err error) {
	n, err := newNeighbours(ctx, engine, fill)
	defer func() {
		if n != nil {
			err = errors.Join(err, n.close())
		}
	}()
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		fmt.Fprintf(os.Stderr, "%s on %s …\n", row.name, engine)
		r, err := row.measure(ctx)
		if err == nil && after != nil {
			err = after(n)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", row.name, err)
		}
		r.name, r.engine = row.name, engine
		all = append(all, r)
	}
	return all, nil
}

func report(all []result) error {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "measurement\tengine\tours\tbare\tratio\tmust\t")
	for _, r := range all {
		ratio, met := "", "reached"
		if r.ratio > 0 {
			ratio = fmt.Sprintf("%.2f", r.ratio)
		}
		switch {
		case r.must == "": // nothing is asked of it
			met = ""
		case !r.met:
			met = "NOT REACHED"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.name, r.engine, r.ours, r.bare, ratio, r.must, met)
	}
	return t.Flush()
}

// rounds is how often two sides are measured in turn; the median ratio counts, so that a
// disturbance of the machine in one round does not.
const rounds = 7

// median returns the median of a few numbers.
func median(all []float64) float64 {
	s := slices.Sorted(slices.Values(all))
	return s[len(s)/2]
}

// inTurn measures ours and bare one after the other, several times, and returns the round whose
// ratio is the median.
func inTurn(ours, bare func() (float64, error)) (o, b, ratio float64, err error) {
	type round struct{ ours, bare float64 }
	var all []round
	for i := range rounds + 1 {
		x, err := ours()
		if err != nil {
			return 0, 0, 0, err
		}
		y, err := bare()
		if err != nil {
			return 0, 0, 0, err
		}
		if i == 0 { // warms caches and pools
			continue
		}
		all = append(all, round{x, y})
	}
	slices.SortFunc(all, func(a, b round) int { return cmp.Compare(a.ours/a.bare, b.ours/b.bare) })
	m := all[len(all)/2]
	return m.ours, m.bare, m.ours / m.bare, nil
}

func perSecond(n float64) string { return fmt.Sprintf("%.0f/s", n) }
func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond).String()
}
