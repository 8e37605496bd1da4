package drivertest_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/tenantcontent/tenantcontent/domains/drivertest"
	"github.com/tenantcontent/tenantcontent/examples/domaindriver/staffcsv"
)

// checkStaff is TestStaff in the package of the driver.
func checkStaff(t *testing.T) {
	driver := staffcsv.Driver{Files: os.DirFS("../../examples/domaindriver/staffcsv/testdata")}
	drivertest.Test(t, driver, drivertest.Fixture{
		Config: json.RawMessage(`{"file": "staff.csv"}`), // the people of the fixture are there
		Bad:    map[string]string{`{}`: "file", `{"file": "../staff.csv"}`: "file"},
		Login:  "jo", Password: "jo's secret",
		Refused: map[string]string{"kim": "jo's secret"},
	})
}

// A test of the driver's package calls Test. go test runs this one as TestExample.
func ExampleTest() {
	_ = testing.InternalTest{Name: "TestStaff", F: checkStaff}
}
