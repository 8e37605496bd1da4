package smtp_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/apps/messages/smtp"
)

// A program passes the Sender as tenantcontent.Config.Mail.
func Example() {
	o, err := smtp.Parse("smtp://user:password@mail.example.com:587?from=noreply@example.com")
	if err != nil {
		panic(err)
	}
	_, err = smtp.New(o)
	fmt.Println(o.Host, o.Port, o.From, err)
	// Output:
	// mail.example.com 587 noreply@example.com <nil>
}
