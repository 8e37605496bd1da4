package comments

// Candidates returns the names that a message is searched for.
func Candidates(message string) []string {
	var names []string
	for _, s := range scan(message) {
		names = append(names, s.names()...)
	}
	return names
}

// Spots returns how many places of a message may be mentions.
func Spots(message string) int { return len(scan(message)) }

// Mentioned returns the users that a message mentions, of some that exist.
func Mentioned(message string, users map[string]*string) []Mention {
	return resolve(scan(message), users)
}

// NameRune reports whether a mention may have a rune in it.
func NameRune(r rune) bool { return nameRune(r) }
