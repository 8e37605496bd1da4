package assistants

import (
	"maps"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
)

// sent is a secret that leaves.
type sent struct{ secret, to string }

// sent returns the secrets that some skills send, and the names of these skills.
func (s *Service) sent(skills []Skill) map[sent]string {
	all := map[sent]string{}
	for _, skill := range skills {
		at := slices.IndexFunc(s.o.Skills, func(t SkillType) bool { return t.Type == skill.Type })
		if at < 0 || s.o.Skills[at].Sends == nil {
			continue
		}
		to, secrets := s.o.Skills[at].Sends(skill.Config)
		for _, secret := range secrets {
			all[sent{secret, to}] = skill.Name
		}
	}
	return all
}

// redirected returns which secrets some skills send to another place than others did, and the names
// of these skills. moved reports whether it was sent to some place before.
func (s *Service) redirected(skills, was []Skill) (all map[sent]string, moved func(sent) bool) {
	before := s.sent(was)
	all = s.sent(skills)
	maps.DeleteFunc(all, func(one sent, _ string) bool { _, there := before[one]; return there })
	return all, func(one sent) bool {
		for other := range before {
			if other.secret == one.secret {
				return true
			}
		}
		return false
	}
}

// keepSecrets returns errs.Invalid if a secret of an assistant would be sent to a new place: to
// another one than before, or, unless the caller may share the assistant, to any. Secrets are never
// shown, and a place that the caller chooses would show them.
func (s *Service) keepSecrets(who drafts.Caller, as *Assistant, was Assistant) error {
	all, moved := s.redirected(as.Skills, was.Skills)
	if len(all) == 0 || as.Sealed == "" {
		return nil
	}
	values, err := s.secrets.Open(Fields(as))
	if err != nil {
		return err
	}
	may := PermissionsOf(who.Actor, *as, who.Grant).Share
	for _, one := range slices.SortedFunc(maps.Keys(all), func(a, b sent) int {
		return strings.Compare(a.secret+a.to, b.secret+b.to)
	}) {
		if _, there := values[one.secret]; there && (!may || moved(one)) {
			return errs.New(
				errs.Invalid,
				"skills: %s: the secret %s would be sent to %s, where it was not sent before: remove it, change "+
					"the skill, and set it again.",
				all[one], one.secret, one.to,
			)
		}
	}
	return nil
}
