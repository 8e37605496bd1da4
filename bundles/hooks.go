package bundles

import "github.com/tenantcontent/tenantcontent/entity"

// Hooks returns what bundles do when users are renamed: their entries and the records of deploys follow.
func (s *Service) Hooks() entity.Hooks { return entity.Hooks{Renamed: s.store.RenameUsers} }
