package javascript_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/javascript"
)

func TestMain(m *testing.M) {
	if os.Getenv("WITHOUT_CHILD") == "" {
		javascript.Child()
	}
	os.Exit(m.Run())
}

// TestNewNeedsChild: a program that does not call Child, and so would start itself again and again,
// gets an error that explains what to do.
func TestNewNeedsChild(t *testing.T) {
	is := is.New(t)
	if os.Getenv("WITHOUT_CHILD") != "" {
		_, err := jsvm.Open(javascript.New(javascript.Options{}))
		is.Equal(errs.CodeOf(err), errs.Invalid)
		fmt.Println(err)
		return
	}
	program := exec.Command(os.Args[0], "-test.run=^TestNewNeedsChild$")
	program.Env = append(os.Environ(), "WITHOUT_CHILD=1")
	out, err := program.CombinedOutput()
	is.NoErr(err)
	is.True(strings.Contains(string(out), "javascript.Child() must be the first call of the program's main function"))
}

// TestNewRefusesOptions: options out of range are an error when the Engine is opened.
func TestNewRefusesOptions(t *testing.T) {
	_, err := jsvm.Open(javascript.New(javascript.Options{Processes: 1}))
	is.New(t).Equal(errs.CodeOf(err), errs.Invalid)
}
