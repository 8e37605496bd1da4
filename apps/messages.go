package apps

import "context"

// CheckInternals returns the id of an app whose insides the caller may see. Errors: errs.NotFound;
// errs.Forbidden.
func (s *Service) CheckInternals(ctx context.Context, id string) (string, error) {
	app, err := s.rules.Inside(ctx, id)
	return app.ID, err
}
