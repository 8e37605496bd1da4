package jsvm_test

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
)

func TestFiles(t *testing.T) {
	is := is.New(t)
	files := jsvm.Files{"a/b.js": "content", "../up": "x"}
	b, err := fs.ReadFile(files, "a/b.js")
	is.NoErr(err)
	is.Equal(string(b), "content")
	info, err := fs.Stat(files, "a/b.js")
	is.NoErr(err)
	is.Equal(info.Name(), "b.js")
	is.Equal(info.Size(), int64(7))
	is.True(info.Mode().IsRegular())
	for _, name := range []string{"a", "none", "../up", "/a/b.js", ""} {
		_, err := files.Open(name)
		is.True(errors.Is(err, fs.ErrNotExist))
	}
}

func TestLimitsWithin(t *testing.T) {
	is := is.New(t)
	highest := jsvm.Limits{
		Time:      time.Second,
		Memory:    100,
		Output:    10,
		LogBytes:  11,
		LogLines:  12,
		Calls:     13,
		CallBytes: 14,
	}
	is.Equal(jsvm.Limits{}.Within(highest), highest)
	is.Equal(jsvm.Limits{Time: time.Hour, Memory: 101, Output: -1, Calls: 14}.Within(highest), highest)
	lower := jsvm.Limits{Time: 1, Memory: 2, Output: 3, LogBytes: 4, LogLines: 5, Calls: 6, CallBytes: 7}
	is.Equal(lower.Within(highest), lower)
}

func TestErrorText(t *testing.T) {
	is := is.New(t)
	is.Equal((&jsvm.Error{Name: "TypeError", Message: "no"}).Error(), "TypeError: no")
	is.Equal((&jsvm.Error{Message: "text"}).Error(), "text")
	is.Equal((&jsvm.Error{Name: "Error"}).Error(), "Error")
}
