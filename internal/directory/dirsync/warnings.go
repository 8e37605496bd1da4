package dirsync

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
	"github.com/tenantcontent/tenantcontent/principals"
)

// maxWarnings is the most warnings of a Report.
const maxWarnings = 1000

// shown returns a text of a directory in a form for sentences.
func shown(s string) string {
	if s == "" {
		return "(nothing)"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, transfer.Short(s))
}

// warnings collects sentences for people, up to maxWarnings.
type warnings struct {
	list []string
	more int
}

func (w *warnings) warn(format string, args ...any) {
	if len(w.list) == maxWarnings {
		w.more++
		return
	}
	w.list = append(w.list, fmt.Sprintf(format, args...))
}

// warnOfText warns of an invalid text of a person.
func (w *warnings) warnOfText(who principals.Identity, invalid error) {
	w.warn("%s (%s): %s; it is left out.", shown(who.Username), shown(who.ID), errs.MessageOf(invalid))
}

// sentences returns the warnings, and a last one with the number of further ones.
func (w *warnings) sentences() []string {
	if w.more > 0 {
		return append(w.list[:len(w.list):len(w.list)], fmt.Sprintf("There are %d more warnings.", w.more))
	}
	return w.list
}
