package comments

import "github.com/tenantcontent/tenantcontent/entity"

// Parent is a kind of content that can be commented, as the API spells it.
type Parent struct {
	Kind   entity.Kind
	Column string // of a comment, such as reportId: the one that is not null says what the comment is about
	Plural string // of the kind's routes
}

// Parents are the kinds that can be commented, in the order of the specification. A comment's kind and its column are
// mapped nowhere else.
//
// Source: part 1, Resources, Comment; DECISIONS, section 6.
var Parents = []Parent{
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

// parentOf gives the row of a kind, nil when it has none.
func parentOf(kind entity.Kind) *Parent {
	for i := range Parents {
		if Parents[i].Kind == kind {
			return &Parents[i]
		}
	}
	return nil
}
