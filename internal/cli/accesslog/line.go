package accesslog

import (
	"context"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/tracing"
)

// The most bytes of what a caller chooses. A longer text ends with an ellipsis.
const (
	maxMethod = 16
	maxText   = 256
)

// appendLine appends the line of a request. Every line has all members, in this order.
func appendLine(dst []byte, ctx context.Context, o entity.Observation) []byte {
	origin := actor.OriginOf(ctx)
	_, route, _ := strings.Cut(o.Kind, " ")
	dst = append(dst, `{"time":"`...)
	dst = o.Start.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000000Z")
	dst = appendText(append(dst, `","method":`...), o.Method, maxMethod)
	dst = appendText(append(dst, `,"route":`...), route, maxText)
	dst = strconv.AppendInt(append(dst, `,"status":`...), int64(o.Status), 10)
	dst = appendText(append(dst, `,"outcome":`...), o.Outcome, maxText)
	dst = appendSeconds(append(dst, `,"duration":`...), o.Duration)
	dst = strconv.AppendInt(append(dst, `,"received":`...), o.Received, 10)
	dst = strconv.AppendInt(append(dst, `,"bytes":`...), o.Sent, 10)
	dst = appendText(append(dst, `,"tenant":`...), o.Tenant, maxText)
	dst = appendText(append(dst, `,"user":`...), o.User, maxText)
	dst = append(dst, `,"client":"`...)
	if origin.Address.IsValid() {
		dst = origin.Address.AppendTo(dst)
	}
	dst = appendText(append(dst, `","request":`...), origin.Request, maxText)
	dst = appendText(append(dst, `,"trace_id":`...), tracing.ID(ctx), maxText)
	dst = appendText(append(dst, `,"user_agent":`...), o.UserAgent, maxText)
	return append(dst, "}\n"...)
}

// appendSeconds appends a duration in seconds, with microseconds.
func appendSeconds(dst []byte, d time.Duration) []byte {
	return strconv.AppendFloat(dst, float64(max(d, 0).Microseconds())/1e6, 'f', 6, 64)
}

const hex = "0123456789abcdef"

// appendText appends a text as a string of JSON, of at most so many bytes before they are escaped.
// What cannot be printed, such as what a terminal takes for a command, is escaped.
func appendText(dst []byte, s string, most int) []byte {
	cut := len(s) > most
	if cut {
		end := most
		for end > 0 && !utf8.RuneStart(s[end]) { // in the middle of a character
			end--
		}
		s = s[:end]
	}
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < 0x7f && c != '"' && c != '\\' {
			dst = append(dst, c)
			i++
			continue
		}
		if c == '"' || c == '\\' {
			dst = append(dst, '\\', c)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		if r != utf8.RuneError && unicode.IsPrint(r) {
			dst = utf8.AppendRune(dst, r)
			continue
		}
		if r > 0xffff { // not printable in any text that people write
			r = utf8.RuneError
		}
		dst = append(dst, '\\', 'u', hex[r>>12&0xf], hex[r>>8&0xf], hex[r>>4&0xf], hex[r&0xf])
	}
	if cut {
		dst = append(dst, "…"...)
	}
	return append(dst, '"')
}
