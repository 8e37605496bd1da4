package queue

import (
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"

	"github.com/tenantcontent/tenantcontent/errs"
)

// minEvery is the shortest interval of @every: a minute, as for the five fields.
const minEvery = time.Minute

var parser = cron.MustNewParser(
	cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.DowOrDom | cron.Descriptor,
).
	WithMinEveryInterval(minEvery)

// Next returns the first time of a cron expression after a time, in UTC. zone is an IANA name, ""
// for UTC. docs/queue.md describes the expressions, and what happens when clocks change.
//
// It returns errs.Invalid, naming the error, also for an expression without a time in the future,
// such as 0 0 30 2 *.
func Next(expression, zone string, after time.Time) (time.Time, error) {
	location, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return time.Time{}, errs.New(errs.Invalid, "%q is not a time zone: name one such as Europe/Berlin", zone)
	}
	times, err := parse(expression)
	if err != nil {
		return time.Time{}, err
	}
	var next time.Time
	if spec, ok := times.(*cron.SpecSchedule); ok {
		next = nextOnClock(spec, after.In(location))
	} else { // @every
		next = times.Next(after)
	}
	if next.IsZero() {
		return time.Time{}, errs.New(errs.Invalid, "cron: %q has no time to come", expression)
	}
	return next.UTC().Truncate(time.Microsecond), nil
}

// parse parses an expression. It returns errs.Invalid if it is not valid.
func parse(expression string) (cron.Schedule, error) {
	if strings.Contains(expression, "TZ=") {
		return nil, errs.New(
			errs.Invalid, "cron: %q has a time zone of its own: the time zone is a field beside it", expression,
		)
	}
	times, err := parser.Parse(expression)
	if err != nil {
		return nil, errs.New(errs.Invalid,
			"cron: %q is not understood (%v): it has the fields minute, hour, day of the month, month and day of "+
				"the week, "+
				"or is one of @hourly, @daily, @weekly, @monthly, @yearly and @every 10m", expression, err)
	}
	spec, ok := times.(*cron.SpecSchedule)
	if fields := strings.Fields(expression); ok && len(fields) == 5 {
		// As in crontab(5), a field that begins with *, including */2, does not select days; the
		// library checks only for *.
		const everyDay = 1 << 63
		if strings.HasPrefix(fields[2], "*") {
			spec.Dom |= everyDay
		}
		if strings.HasPrefix(fields[4], "*") {
			spec.Dow |= everyDay
		}
	}
	return times, nil
}

// A period is a span of time in which the clocks of a zone have the same offset from UTC.
type period struct {
	start, end time.Time     // end is zero for the last one
	offset     time.Duration // of the clocks, from UTC
	before     time.Duration // the offset of the period before
}

func periodOf(t time.Time) period {
	start, end := t.ZoneBounds()
	p := period{start: start, end: end, offset: offset(t)}
	p.before = p.offset
	if !start.IsZero() {
		p.before = offset(start.Add(-1))
	}
	return p
}

func offset(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}

// maxGap is the longest change of clocks that is treated as one. A longer one skips a day, and the
// times on it.
const maxGap = 3 * time.Hour

// nextOnClock returns the first time after a time at which the clocks of its location show a time
// of spec, or the zero time. A time that the clocks skip is moved to the same minute of the next
// hour, or to the first minute that exists. A time that they show twice is used once, unless spec
// has every hour.
func nextOnClock(spec *cron.SpecSchedule, after time.Time) time.Time {
	const hours = 1<<24 - 1
	everyHour := spec.Hour&hours == hours
	spec.Location = time.UTC
	for p := periodOf(after); ; p = periodOf(p.end) {
		clock := func(t time.Time) time.Time { return t.UTC().Add(p.offset) } // what clocks show, as a time in UTC
		from := after
		if from.Before(p.start) {
			from = p.start.Add(-1)
		}
		shown := clock(from)
		if repeated := p.start.UTC().Add(p.before).Add(-1); !p.start.IsZero() && !everyHour && shown.Before(repeated) {
			shown = repeated
		}
		next := spec.Next(shown)
		if next.IsZero() {
			return next
		}
		next = next.Add(-p.offset)
		if moved := firstMoved(spec, p, after); !moved.IsZero() && moved.Before(next) {
			next = moved
		}
		if p.end.IsZero() || next.Before(p.end) {
			return next
		}
	}
}

// firstMoved returns the first time after a time to which a time of spec is moved because the
// clocks skipped it at the start of p, or the zero time.
func firstMoved(spec *cron.SpecSchedule, p period, after time.Time) time.Time {
	gap := p.offset - p.before
	if p.start.IsZero() || gap <= 0 || gap > maxGap || after.After(p.start.Add(gap+time.Hour)) {
		return time.Time{}
	}
	left, back := p.start.UTC().Add(p.before), p.start.UTC().Add(p.offset) // clocks change from left to back
	var first time.Time
	for t := spec.Next(left.Add(-1)); !t.IsZero() && t.Before(back); t = spec.Next(t) {
		to := back
		if hour := t.Truncate(time.Hour); !hour.Before(left) && !hour.Add(time.Hour).After(back) {
			// a whole hour is skipped
			to = back.Truncate(time.Hour).Add(t.Sub(hour))
			if to.Before(back) {
				to = back
			}
		}
		to = to.Add(-p.offset)
		if to.After(after) && (first.IsZero() || to.Before(first)) {
			first = to
		}
	}
	return first
}
