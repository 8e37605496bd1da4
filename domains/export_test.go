package domains

import "time"

// Hurry shortens how long a login waits for its place and for a directory, and how long a scan may read and is silent.
func (s *Service) Hurry(wait, check, read, beat time.Duration) {
	s.asking.wait, s.limits.check, s.limits.read, s.limits.beat = wait, check, read, beat
}

// Waiting gives the number of domains at which somebody logs in.
func (s *Service) Waiting() int {
	s.asking.mu.Lock()
	defer s.asking.mu.Unlock()
	return len(s.asking.at)
}

// MaxTexts is how much a scan keeps.
const MaxTexts = maxTexts
