package errs_test

import (
	"errors"
	"fmt"
	"io"

	"github.com/tenantcontent/tenantcontent/errs"
)

func Example() {
	err := errs.Wrap(errs.Invalid, io.ErrUnexpectedEOF, "The file is not a palette: it ends early.")
	fmt.Println(errs.MessageOf(err)) // for people
	fmt.Println(err)                 // for the log
	fmt.Println(errors.Is(err, errs.Invalid), errors.Is(err, io.ErrUnexpectedEOF))
	// Output:
	// The file is not a palette: it ends early.
	// The file is not a palette: it ends early.: unexpected EOF
	// true true
}
