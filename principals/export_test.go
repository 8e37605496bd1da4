package principals

// Hashings is how many passwords a service has hashed.
func Hashings(s *Service) int { return int(s.passwords.runs.Load()) }
