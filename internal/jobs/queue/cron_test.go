package queue_test

import (
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
)

func TestNext(t *testing.T) {
	is := is.New(t)
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339, s)
		is.NoErr(err)
		return v.UTC()
	}
	for _, c := range []struct{ cron, zone, behind, want string }{
		{"0 9 * * *", "", "2026-11-23T09:00:00Z", "2026-11-24T09:00:00Z"},
		{"0 9 * * *", "Europe/Berlin", "2026-11-23T09:00:00Z", "2026-11-24T08:00:00Z"},
		{"0 9 * * MON-FRI", "America/New_York", "2026-11-20T20:00:00Z", "2026-11-23T14:00:00Z"},
		{"*/15 * * * *", "UTC", "2026-11-23T09:01:00Z", "2026-11-23T09:15:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2027-03-28T00:00:00Z", "2027-03-28T01:30:00Z"}, // 02:30 does not exist: 03:30
		{"@daily", "Asia/Kolkata", "2026-11-23T00:00:00Z", "2026-11-23T18:30:00Z"},
		{"@every 10m", "", "2026-11-23T00:00:00Z", "2026-11-23T00:10:00Z"},
		{"0 0 29 2 *", "", "2026-11-23T00:00:00Z", "2028-02-29T00:00:00Z"},
	} {
		got, err := queue.Next(c.cron, c.zone, at(c.behind))
		is.NoErr(err)
		is.Equal(got, at(c.want)) // c.cron
	}
	for _, c := range [][2]string{
		{"", ""}, {"* * * *", ""}, {"* * * * * *", ""}, {"60 * * * *", ""}, {"0 0 30 2 *", ""},
		{"@every 1s", ""}, {"@reboot", ""}, {"TZ=0 * * * * *", ""}, {"CRON_TZ=UTC * * * * *", ""}, {"TZ=0", ""},
		{"* * * * *", "Nowhere/Land"}, {"* * * * *", "Local"},
		{"* * * * *", "../x"}, {"*/0 * * * *", ""}, {"H * * * *", ""},
	} {
		_, err := queue.Next(c[0], c[1], at("2026-11-23T00:00:00Z"))
		is.Equal(errs.CodeOf(err), errs.Invalid) // c
	}
}

func FuzzNext(f *testing.F) {
	f.Add("0 9 * * *", "")
	f.Fuzz(func(t *testing.T, expression, zone string) {
		behind := time.Now()
		next, err := queue.Next(expression, zone, behind)
		if err == nil && !next.After(behind) {
			t.Errorf("%q in %q: %s is not behind %s", expression, zone, next, behind)
		}
	})
}

// TestNextLocal checks times on the clocks of zones, on days when they change and for two fields
// that select days.
func TestNextLocal(t *testing.T) {
	for _, c := range []struct{ cron, zone, after, want string }{
		{"30 2 * * *", "Europe/Berlin", "2027-03-27T11:00:00Z", "2027-03-28T03:30"}, // 02:30 does not exist
		{"30 2 * * *", "Europe/Berlin", "2027-10-31T00:30:00Z", "2027-11-01T02:30"}, // not the second 02:30
		{"30 1 * * *", "America/New_York", "2027-11-07T05:30:00Z", "2027-11-08T01:30"},
		{"0 9 * * 0", "Asia/Beirut", "2027-03-27T10:00:00Z", "2027-03-28T09:00"}, // midnight does not exist, 09:00 does
		{"0 9 * * FRI", "Africa/Cairo", "2027-04-29T10:00:00Z", "2027-04-30T09:00"},
		{"@daily", "Africa/Cairo", "2027-04-29T10:00:00Z", "2027-04-30T01:00"}, // the first minute of the day
		{"15 2 * * *", "Australia/Lord_Howe", "2027-10-02T01:30:00Z", "2027-10-03T02:30"},
		{"*/20 * * * *", "Europe/Berlin", "2027-10-31T00:50:00Z", "2027-10-31T02:00"}, // each hour is used
		{"@every 1h", "Europe/Berlin", "2027-10-31T00:30:00Z", "2027-10-31T02:30"},
		{"0 9 13 * 5", "UTC", "2027-01-14T00:00:00Z", "2027-01-15T09:00"}, // a Friday, not the next Friday the 13th
		{"0 9 1,15 * 1", "UTC", "2027-01-02T00:00:00Z", "2027-01-04T09:00"},
		{"0 9 1,15 * *", "UTC", "2027-01-02T00:00:00Z", "2027-01-15T09:00"},
		// */2 does not select days by itself: odd Mondays
		{"0 9 */2 * 1", "UTC", "2027-01-02T00:00:00Z", "2027-01-11T09:00"},
		{"0 9 1-31 * 1", "UTC", "2027-01-02T00:00:00Z", "2027-01-02T09:00"},
		{"0 9 * * 7", "UTC", "2027-01-02T00:00:00Z", "2027-01-03T09:00"},
		{"0 9 * * FRI-MON", "UTC", "2027-01-05T00:00:00Z", "2027-01-08T09:00"},
	} {
		is := is.New(t)
		after, err := time.Parse(time.RFC3339, c.after)
		is.NoErr(err)
		location, err := time.LoadLocation(c.zone)
		is.NoErr(err)
		got, err := queue.Next(c.cron, c.zone, after)
		is.NoErr(err)
		if shown := got.In(location).Format("2006-01-02T15:04"); shown != c.want {
			t.Errorf("%s in %s after %s: %s, want %s", c.cron, c.zone, c.after, shown, c.want)
		}
	}
}

// clocked is an expression with a test of its times that does not parse the expression.
type clocked struct {
	cron      string
	everyHour bool
	shows     func(t time.Time) bool // of the time that clocks show
}

var allClocked = []clocked{
	{"30 2 * * *", false, func(t time.Time) bool { return t.Hour() == 2 && t.Minute() == 30 }},
	{"15 0 * * *", false, func(t time.Time) bool { return t.Hour() == 0 && t.Minute() == 15 }},
	{"@daily", false, func(t time.Time) bool { return t.Hour() == 0 && t.Minute() == 0 }},
	{"45 1-3 * * *", false, func(t time.Time) bool { return t.Hour() >= 1 && t.Hour() <= 3 && t.Minute() == 45 }},
	{"*/10 0,1,2 * * *", false, func(t time.Time) bool { return t.Hour() <= 2 && t.Minute()%10 == 0 }},
	{"5 */2 * * *", false, func(t time.Time) bool { return t.Hour()%2 == 0 && t.Minute() == 5 }},
	{"59 23 * * *", false, func(t time.Time) bool { return t.Hour() == 23 && t.Minute() == 59 }},
	{"0 0 * * 0", false, func(t time.Time) bool {
		return t.Weekday() == time.Sunday && t.Hour() == 0 && t.Minute() == 0
	}},
	{"20 2 28-31 3,10 0", false, func(t time.Time) bool {
		return (t.Month() == 3 || t.Month() == 10) && (t.Day() >= 28 || t.Weekday() == time.Sunday) &&
			t.Hour() == 2 && t.Minute() == 20
	}},
	{"@hourly", true, func(t time.Time) bool { return t.Minute() == 0 }},
	{"*/7 * * * *", true, func(t time.Time) bool { return t.Minute()%7 == 0 }},
	{"40 * * * 6-7", true, func(t time.Time) bool {
		return t.Minute() == 40 && (t.Weekday() == time.Saturday || t.Weekday() == time.Sunday)
	}},
}

// TestNextEachMinuteSize compares Next with times that are computed minute by minute, on the days
// around each change of the clocks from 2026 to 2030.
func TestNextEachMinuteSize(t *testing.T) {
	zones := []string{
		"Europe/Berlin", "Europe/London", "America/New_York", "America/Havana",
		"America/Santiago", "America/Nuuk", "Asia/Beirut", "Asia/Gaza", "Africa/Cairo",
		"Africa/Casablanca", "Atlantic/Azores", "Australia/Lord_Howe",
		"Antarctica/Troll", "Pacific/Auckland", "Asia/Kolkata",
	}
	for _, zone := range zones {
		location, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		days := []time.Time{time.Date(2026, 6, 15, 0, 0, 0, 0, time.UTC)}
		offset := func(t time.Time) (seconds int) { _, seconds = t.In(location).Zone(); return }
		for day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() <= 2030; day = day.AddDate(0, 0, 1) {
			if offset(day) != offset(day.AddDate(0, 0, 1)) {
				days = append(days, day)
			}
		}
		for _, day := range days {
			from, to := day.AddDate(0, 0, -2), day.AddDate(0, 0, 3)
			instants := map[time.Time][]time.Time{} // by the time that clocks show
			for at := from.AddDate(0, 0, -1); at.Before(to.AddDate(0, 0, 1)); at = at.Add(time.Minute) {
				shown := at.Add(time.Duration(offset(at)) * time.Second)
				instants[shown] = append(instants[shown], at)
			}
			for _, c := range allClocked {
				due := map[time.Time]bool{}
				last := to.Add(12 * time.Hour)
				for shown := from.Add(-12 * time.Hour); shown.Before(last); shown = shown.Add(time.Minute) {
					if c.shows(shown) {
						for _, at := range dueAt(shown, c.everyHour, instants) {
							due[at] = true
						}
					}
				}
				after := from
				for at := from.Add(time.Minute); at.Before(to); at = at.Add(time.Minute) {
					if !due[at] {
						continue
					}
					if next, err := queue.Next(c.cron, zone, after); err != nil || !next.Equal(at) {
						t.Fatalf(
							"%s in %s after %s: %s (%v), want %s", c.cron, zone, after.In(location),
							next.In(location), err, at.In(location),
						)
					}
					after = at
				}
			}
		}
	}
}

// dueAt returns when a time of an expression is due. instants are the times at which clocks show a
// time.
func dueAt(shown time.Time, everyHour bool, instants map[time.Time][]time.Time) []time.Time {
	if all := instants[shown]; everyHour {
		if len(all) > 0 {
			return all
		}
	} else if len(all) > 0 {
		return all[:1]
	}
	hour, minute := shown.Truncate(time.Hour), shown.Minute()
	exists := func(hour time.Time) bool {
		for m := range 60 {
			if len(instants[hour.Add(time.Duration(m)*time.Minute)]) > 0 {
				return true
			}
		}
		return false
	}
	if !exists(hour) { // the same minute of the first hour that exists
		for !exists(hour) {
			hour = hour.Add(time.Hour)
		}
		shown = hour.Add(time.Duration(minute) * time.Minute)
	}
	for len(instants[shown]) == 0 { // the first minute that exists
		shown = shown.Add(time.Minute)
	}
	return instants[shown][:1]
}
