package manifest

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
)

// The most characters that texts may have.
const (
	maxName = 128
	maxText = 16 << 10
	maxPath = 512
)

// What names look like.
var (
	isAlias    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)
	isID       = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,` + strconv.Itoa(maxName-1) + `}$`)
	isEvent    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,` + strconv.Itoa(maxName-1) + `}$`)
	isVariable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,` + strconv.Itoa(maxName-1) + `}$`)
	isCron     = regexp.MustCompile(`^[0-9A-Za-z*/,?#-]+( [0-9A-Za-z*/,?#-]+){4}$`)
)

// reader reads the nodes of one file. A key is where a node stands, such as agents.daily.cron[1].
type reader struct {
	Reader
	file string
}

// field reads the value of a member.
type field func(n *yaml.Node, key string) error

// manifest reads the whole file.
func (r reader) manifest(root *yaml.Node) (m Manifest, err error) {
	err = r.object(root, "", map[string]field{
		"entryPoint": func(n *yaml.Node, key string) error { return r.page(n, key, &m.EntryPoint) },
		"access":     func(n *yaml.Node, key string) error { return r.access(n, key, &m) },
		"roles":      func(n *yaml.Node, key string) error { return r.roles(n, key, &m) },
		"agents":     func(n *yaml.Node, key string) error { return r.agents(n, key, &m) },
		"events":     func(n *yaml.Node, key string) error { return r.events(n, key, &m) },
		"env":        func(n *yaml.Node, key string) error { return r.env(n, key, &m) },
	})
	if err != nil {
		return Manifest{}, err
	}
	return m, nil
}

// page reads the path of a page.
func (r reader) page(n *yaml.Node, key string, into *string) error {
	if err := r.text(n, key, maxPath, into); err != nil {
		return err
	}
	if err := libraries.ValidPath(*into); err != nil {
		return r.fail(n, key, "%s", errs.MessageOf(err))
	}
	if lower := strings.ToLower(*into); !strings.HasSuffix(lower, ".html") && !strings.HasSuffix(lower, ".htm") {
		return r.fail(n, key, "must be a page: a path that ends in .html")
	}
	return nil
}

// access reads the API calls and datasets: texts such as "GET datasets/*", and objects.
func (r reader) access(n *yaml.Node, key string, m *Manifest) error {
	aliases := map[string]bool{}
	return r.list(n, key, MaxItems, func(n *yaml.Node, key string) error {
		if n.Kind == yaml.ScalarNode {
			var call string
			if err := r.text(n, key, maxPath, &call); err != nil {
				return err
			}
			return r.rule(n, key, call, m)
		}
		var rule Rule
		var data Dataset
		var description string
		err := r.object(n, key, map[string]field{
			"methods": func(n *yaml.Node, key string) error { return r.texts(n, key, 10, &rule.Methods) },
			"path":    func(n *yaml.Node, key string) error { return r.text(n, key, maxPath, &rule.Path) },
			"dataset": func(n *yaml.Node, key string) error {
				return r.unique(
					n, key, isAlias, "a letter, then letters, digits and _, at most 64", aliases, &data.Alias,
				)
			},
			"description": func(n *yaml.Node, key string) error { return r.prose(n, key, &description) },
		})
		switch {
		case err != nil:
			return err
		case data.Alias != "" && (rule.Path != "" || rule.Methods != nil):
			return r.fail(n, key, "has dataset beside path or methods: make two items of it")
		case data.Alias != "":
			data.Description = description
			m.Datasets = append(m.Datasets, data)
			return nil
		case rule.Path == "":
			return r.fail(n, key, "needs path, or dataset")
		}
		rule.Description = description
		if why := rule.accept(r.Reader); why != "" {
			return r.fail(n, key, "%s", why)
		}
		m.Access = append(m.Access, rule)
		return nil
	})
}

// rule reads a rule such as "GET datasets/*" or "datasets/*".
func (r reader) rule(n *yaml.Node, key, call string, m *Manifest) error {
	var rule Rule
	switch words := strings.Fields(call); len(words) {
	case 1:
		if slices.Contains(methods, words[0]) {
			return r.fail(n, key, "%s needs a path behind it, such as datasets/*", words[0])
		}
		rule.Path = words[0]
	case 2:
		rule.Methods, rule.Path = strings.Split(words[0], ","), words[1]
	default:
		return r.fail(n, key, `must be a method and a path, such as "GET datasets/*"`)
	}
	if why := rule.accept(r.Reader); why != "" {
		return r.fail(n, key, "%s", why)
	}
	m.Access = append(m.Access, rule)
	return nil
}

// roles reads a list of ids and objects.
func (r reader) roles(n *yaml.Node, key string, m *Manifest) error {
	ids := map[string]bool{}
	return r.list(n, key, shares.MaxRoles, func(n *yaml.Node, key string) error {
		var role Role
		err := r.item(n, key, "id", map[string]field{
			"id": func(n *yaml.Node, key string) error {
				return r.unique(n, key, isID, "letters, digits, ., _ and -, at most 128", ids, &role.ID)
			},
			"name":        func(n *yaml.Node, key string) error { return r.text(n, key, maxName, &role.Name) },
			"description": func(n *yaml.Node, key string) error { return r.prose(n, key, &role.Description) },
		})
		role.Name = cmp.Or(role.Name, role.ID)
		m.Roles = append(m.Roles, role)
		return err
	})
}

// agents reads an object of agents by name.
func (r reader) agents(n *yaml.Node, key string, m *Manifest) error {
	nodes := map[string]*yaml.Node{} // the values of onFailure
	err := r.members(n, key, MaxItems, func(name, n *yaml.Node, key string) error {
		a := Agent{Name: name.Value}
		if !isID.MatchString(a.Name) {
			return r.fail(name, key, "the name of an agent must be letters, digits, ., _ and -, at most 128")
		}
		err := r.object(n, key, map[string]field{
			"description":  func(n *yaml.Node, key string) error { return r.prose(n, key, &a.Description) },
			"instructions": func(n *yaml.Node, key string) error { return r.prose(n, key, &a.Instructions) },
			"model":        func(n *yaml.Node, key string) error { return r.text(n, key, maxName, &a.Model) },
			"tools":        func(n *yaml.Node, key string) error { return r.texts(n, key, MaxItems, &a.Tools) },
			"on": func(n *yaml.Node, key string) error {
				return r.matching(n, key, isEvent, "the name of an event", &a.On)
			},
			"cron": func(n *yaml.Node, key string) error {
				return r.matching(n, key, isCron, `a schedule of five fields, such as "0 7 * * 1"`, &a.Cron)
			},
			"onFailure": func(n *yaml.Node, key string) error {
				nodes[a.Name] = n
				return r.text(n, key, maxName, &a.OnFailure)
			},
		})
		m.Agents = append(m.Agents, a)
		return err
	})
	if err != nil {
		return err
	}
	for _, a := range m.Agents {
		known := slices.ContainsFunc(m.Agents, func(b Agent) bool { return b.Name == a.OnFailure })
		if a.OnFailure != "" && !known {
			return r.fail(
				nodes[a.Name], key+"."+a.Name+".onFailure", "there is no agent %q in the manifest", a.OnFailure,
			)
		}
	}
	return nil
}

// events reads a list of names and objects.
func (r reader) events(n *yaml.Node, key string, m *Manifest) error {
	names := map[string]bool{}
	return r.list(n, key, MaxItems, func(n *yaml.Node, key string) error {
		var e Event
		err := r.item(n, key, "name", map[string]field{
			"name": func(n *yaml.Node, key string) error {
				return r.unique(n, key, isEvent, "letters, digits, ., :, _ and -, at most 128", names, &e.Name)
			},
			"description": func(n *yaml.Node, key string) error { return r.prose(n, key, &e.Description) },
		})
		m.Events = append(m.Events, e)
		return err
	})
}

// env reads a list of names and objects.
func (r reader) env(n *yaml.Node, key string, m *Manifest) error {
	names := map[string]bool{}
	return r.list(n, key, MaxItems, func(n *yaml.Node, key string) error {
		var v Variable
		err := r.item(n, key, "name", map[string]field{
			"name": func(n *yaml.Node, key string) error {
				return r.unique(
					n, key, isVariable, "letters, digits and _, not first a digit, at most 128", names, &v.Name,
				)
			},
			"description": func(n *yaml.Node, key string) error { return r.prose(n, key, &v.Description) },
			"required":    func(n *yaml.Node, key string) error { return r.boolean(n, key, &v.Required) },
		})
		m.Env = append(m.Env, v)
		return err
	})
}

// plain rejects aliases, tags, keys that are not text and characters that a database cannot store,
// everywhere in n.
func (r reader) plain(n *yaml.Node, left *int) error {
	*left--
	switch {
	case *left < 0:
		return r.fail(n, "", "the manifest must have at most %d lists, objects, keys and texts in all", MaxNodes)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return r.fail(n, "", "anchors (&) and aliases (*) are not allowed: write the value out")
	case n.Style&yaml.TaggedStyle != 0:
		return r.fail(n, "", "tags (!) are not allowed: remove %s", n.Tag)
	case !escapes.Storable(n.Value):
		return r.fail(n, "", "text must be Unicode without NUL")
	}
	keys := map[string]bool{}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if child.Kind != yaml.ScalarNode {
				return r.fail(child, "", "a key must be text")
			}
			if keys[child.Value] {
				return r.fail(child, child.Value, "is there twice")
			}
			keys[child.Value] = true
		}
		if err := r.plain(child, left); err != nil {
			return err
		}
	}
	return nil
}

// empty reports whether a value is not there: "access:" with nothing behind it.
func empty(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// members calls each with the members of an object in their order; nothing is an empty object.
func (r reader) members(n *yaml.Node, key string, most int, each func(name, n *yaml.Node, key string) error) error {
	switch {
	case empty(n):
		return nil
	case n.Kind != yaml.MappingNode:
		return r.fail(n, key, "must be an object of names and values")
	case len(n.Content) > 2*most:
		return r.fail(n, key, "has %d members; the most is %d", len(n.Content)/2, most)
	}
	if key != "" {
		key += "."
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if err := each(n.Content[i], n.Content[i+1], key+short(n.Content[i].Value)); err != nil {
			return err
		}
	}
	return nil
}

// object reads an object with known members. It leaves those alone whose names begin with x-.
func (r reader) object(n *yaml.Node, key string, known map[string]field) error {
	return r.members(n, key, MaxItems, func(name, n *yaml.Node, key string) error {
		if strings.HasPrefix(name.Value, "x-") {
			return nil
		}
		read, ok := known[name.Value]
		if !ok {
			return r.fail(name, key, "is not known here; known are %s, and names that begin with x-",
				strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		return read(n, key)
	})
}

// item reads an item of a list: an object in which main is required, or the value of main alone.
func (r reader) item(n *yaml.Node, key, main string, known map[string]field) error {
	if n.Kind == yaml.ScalarNode {
		return known[main](n, key)
	}
	there, read := false, known[main]
	known[main] = func(n *yaml.Node, key string) error {
		there = true
		return read(n, key)
	}
	if err := r.object(n, key, known); err != nil {
		return err
	}
	if !there {
		return r.fail(n, key, "needs %s", main)
	}
	return nil
}

// list calls each with the items of a list; nothing is an empty list.
func (r reader) list(n *yaml.Node, key string, most int, each field) error {
	switch {
	case empty(n):
		return nil
	case n.Kind != yaml.SequenceNode:
		return r.fail(n, key, "must be a list")
	case len(n.Content) > most:
		return r.fail(n, key, "has %d items; the most is %d", len(n.Content), most)
	}
	for i, item := range n.Content {
		if err := each(item, key+"["+strconv.Itoa(i)+"]"); err != nil {
			return err
		}
	}
	return nil
}

// text reads a text of one line that is not empty.
func (r reader) text(n *yaml.Node, key string, most int, into *string) error {
	if err := r.characters(n, key, most, into); err != nil {
		return err
	}
	if strings.TrimSpace(*into) == "" || strings.ContainsFunc(*into, func(c rune) bool {
		return c < ' ' || c == 0x7f
	}) {
		return r.fail(n, key, "must be a line of text that is not empty")
	}
	return nil
}

// prose reads a text of any number of lines; nothing is "".
func (r reader) prose(n *yaml.Node, key string, into *string) error {
	if empty(n) {
		return nil
	}
	return r.characters(n, key, maxText, into)
}

func (r reader) characters(n *yaml.Node, key string, most int, into *string) error {
	switch {
	case n.Kind != yaml.ScalarNode || empty(n):
		return r.fail(n, key, "must be text")
	case n.Tag != "!!str":
		return r.fail(n, key, "must be text: put %s into quotes", short(n.Value))
	case !escapes.StorableWithin(n.Value, most):
		return r.fail(n, key, "must have at most %d characters", most)
	}
	*into = n.Value
	return nil
}

// texts reads a list of texts of one line, or one of them alone.
func (r reader) texts(n *yaml.Node, key string, most int, into *[]string) error {
	each := func(n *yaml.Node, key string) error {
		var s string
		err := r.text(n, key, maxName, &s)
		*into = append(*into, s)
		return err
	}
	if n.Kind == yaml.ScalarNode && !empty(n) {
		return each(n, key)
	}
	return r.list(n, key, most, each)
}

// matching is like texts for texts of a form.
func (r reader) matching(n *yaml.Node, key string, form *regexp.Regexp, what string, into *[]string) error {
	if err := r.texts(n, key, MaxItems, into); err != nil {
		return err
	}
	for i, s := range *into {
		if form.MatchString(s) {
			continue
		}
		if n.Kind == yaml.SequenceNode {
			n, key = n.Content[i], key+"["+strconv.Itoa(i)+"]"
		}
		return r.fail(n, key, "must be %s", what)
	}
	return nil
}

// unique reads a text of a form that is not among seen, and adds it.
func (r reader) unique(
	n *yaml.Node, key string, form *regexp.Regexp, what string, seen map[string]bool, into *string,
) error {
	if err := r.characters(n, key, maxText, into); err != nil {
		return err
	}
	if !form.MatchString(*into) {
		return r.fail(n, key, "must be %s", what)
	}
	if seen[*into] {
		return r.fail(n, key, "%q is there twice", *into)
	}
	seen[*into] = true
	return nil
}

// boolean reads true or false.
func (r reader) boolean(n *yaml.Node, key string, into *bool) error {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		return r.fail(n, key, "must be true or false")
	}
	*into = strings.EqualFold(n.Value, "true")
	return nil
}

// short returns a text as it can stand in an error.
func short(s string) string {
	if c := []rune(s); len(c) > 60 {
		return string(c[:60]) + "…"
	}
	return s
}
