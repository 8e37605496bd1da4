package scim

import (
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/directory/announced"
	"github.com/tenantcontent/tenantcontent/internal/directory/profile"
)

// announcing is a Store that announces its writes: the methods of profile.Announced and
// announced.Teams hide those of the Store, which are a level deeper.
type announcing struct {
	profile.Announced
	announced.Teams
	unannounced
}

type unannounced struct{ Store }

func announce(s Store, feed *entity.Changes) Store {
	return announcing{profile.Announce(s, feed), announced.Announce(s, feed), unannounced{s}}
}
