package queue

import (
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"

	"github.com/tenantcontent/tenantcontent/errs"
)

// minEvery is the shortest interval of @every: a minute, as that of the five fields.
const minEvery = time.Minute

var parser = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor).WithMinEveryInterval(minEvery)

// Next returns the first time of a cron expression behind a point in time, in UTC. Zone is an IANA name, "" for UTC. Errors: errs.Invalid naming
// what is wrong, also for an expression that has no time any more, such as 0 0 30 2 *.
func Next(expression, zone string, behind time.Time) (time.Time, error) {
	location, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return time.Time{}, errs.New(errs.Invalid, "%q is no time zone: name one such as Europe/Berlin", zone)
	}
	if strings.Contains(expression, "TZ=") {
		return time.Time{}, errs.New(errs.Invalid, "cron: %q has a time zone of its own: the time zone is a field beside it", expression)
	}
	times, err := parser.Parse(expression)
	if err != nil {
		return time.Time{}, errs.New(errs.Invalid, "cron: %q is not understood (%v): it has the fields minute, hour, day of the month, month and day of the week, or is one of @hourly, @daily, @weekly, @monthly, @yearly and @every 10m", expression, err)
	}
	next := times.Next(behind.In(location))
	if next.IsZero() {
		return time.Time{}, errs.New(errs.Invalid, "cron: %q has no time to come", expression)
	}
	return next.UTC().Truncate(time.Microsecond), nil
}
