package colors_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/internal/testkit/exampletest"
)

func Example() {
	app, ctx, remove := exampletest.Open()
	defer remove()
	red, err := app.Colors.Put(ctx, "brand/red", "#F44336")
	fmt.Println(red.Key, red.Color, colors.Named(red.Color), err)
	_, err = app.Colors.Put(ctx, "brand/red", "reddish")
	fmt.Println(err)
	// Output:
	// brand/red #F44336 red:500 <nil>
	// Invalid color format
}

func ExampleHex() {
	fmt.Println(colors.Hex("blue"), colors.Hex("deepPurple:A100"), colors.Hex("#abc"), colors.Hex("blue-grey:50"))
	// Output:
	// #2196f3 #b388ff #abc #eceff1
}
