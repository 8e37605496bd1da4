package quickjs

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-sourcemap/sourcemap"
)

// positions translates places in a bundle into those in the files that it was made of. Only a child
// does that, as the source map comes from one.
type positions struct {
	sourceMap []byte
	parsed    *sourcemap.Consumer
	failed    bool
}

// position is a place in the bundle in the text of a stack.
var position = regexp.MustCompile(regexp.QuoteMeta(bundleName) + `:(\d+)(?::(\d+))?`)

// source returns the place of a line and a column, from 1, of the bundle.
func (p *positions) source(line, column int) (file string, l, c int, ok bool) {
	if p.parsed == nil && !p.failed {
		var err error
		p.parsed, err = sourcemap.Parse("", p.sourceMap)
		p.failed = err != nil
	}
	if p.failed {
		return "", 0, 0, false
	}
	file, _, l, c, ok = p.parsed.Source(line, max(column-1, 0))
	return strings.TrimPrefix(strings.TrimPrefix(file, "/"), namespace+":"), l, c + 1, ok
}

// text replaces the places in a stack and leaves out the lines of the prelude.
func (p *positions) text(stack string) string {
	if !strings.Contains(stack, bundleName) && !strings.Contains(stack, preludeName) {
		return stack
	}
	kept := []string{}
	for line := range strings.SplitSeq(stack, "\n") {
		if strings.HasPrefix(line, "    at ") && strings.Contains(line, preludeName) {
			continue
		}
		kept = append(kept, position.ReplaceAllStringFunc(line, func(at string) string {
			found := position.FindStringSubmatch(at)
			l, _ := strconv.Atoi(found[1])
			c, _ := strconv.Atoi(found[2])
			if file, line, column, ok := p.source(l, c); ok {
				return fmt.Sprintf("%s:%d:%d", file, line, column)
			}
			return at
		}))
	}
	return strings.Join(kept, "\n")
}
