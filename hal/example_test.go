package hal_test

import (
	"encoding/json"
	"fmt"

	"github.com/tenantcontent/tenantcontent/hal"
)

func ExampleResource() {
	red := hal.Resource{
		Links: hal.Self("https://content.example/api/colors/red"),
		Value: struct {
			Key string `json:"key"`
		}{"red"},
	}
	page := hal.Collection(
		hal.Self("https://content.example/api/colors"), hal.Page{Count: 1, Total: 1}, "inf:color",
		[]hal.Resource{red}, nil,
	)
	text, err := json.MarshalIndent(page, "", "  ")
	fmt.Println(string(text), err)
	// Output:
	// {
	//   "_links": {
	//     "self": {
	//       "href": "https://content.example/api/colors"
	//     }
	//   },
	//   "count": 1,
	//   "start": 0,
	//   "total": 1,
	//   "_embedded": {
	//     "inf:color": [
	//       {
	//         "_links": {
	//           "self": {
	//             "href": "https://content.example/api/colors/red"
	//           }
	//         },
	//         "key": "red"
	//       }
	//     ]
	//   }
	// } <nil>
}
