package comments

import (
	"slices"

	"github.com/tenantcontent/tenantcontent/entity"
)

// Parent is a kind of content that can be commented, as the API spells it.
type Parent struct {
	Kind   entity.Kind
	Column string // of a comment, such as reportId: the one that is not null says what the comment is about
	Plural string // of the kind's routes
}

// Parents returns the kinds of every host that can be commented, in the order of their members.
// Each comment has a member for each of them; one on another kind, which is a host's own, has that
// of its kind, too.
func Parents() []Parent { return slices.Clone(parents) }

var parents = []Parent{
	{"report", "reportId", "reports"},
	{"dataset", "datasetId", "datasets"},
	{"datasource", "datasourceId", "datasources"},
	{"query", "queryId", "queries"},
	{"team", "teamId", "teams"},
	{"job", "jobId", "jobs"},
	{"template", "templateId", "templates"},
	{"assistant", "assistantId", "assistants"},
	{"library", "libraryId", "libraries"},
}

// HostParents returns the kinds among types that can be commented and are not among Parents.
func HostParents(types []entity.Type) (own []Parent) {
	for _, t := range types {
		if t.Commented && !isParent(t.Kind) {
			own = append(own, Parent{t.Kind, columnOf(t.Kind), t.Path()})
		}
	}
	return own
}

// HostColumn returns the member of a comment on a host's own kind, "" for one of Parents.
func HostColumn(kind entity.Kind) string {
	if isParent(kind) {
		return ""
	}
	return columnOf(kind)
}

func columnOf(kind entity.Kind) string { return string(kind) + "Id" }

func isParent(kind entity.Kind) bool {
	return slices.ContainsFunc(parents, func(p Parent) bool { return p.Kind == kind })
}
