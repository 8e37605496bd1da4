package httpapi

import (
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps/agents"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/chat"
	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"
	"github.com/tenantcontent/tenantcontent/internal/scripts"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/paging"
)

// limitRoutes serves the limits in force.
type limitRoutes struct{ *api }

// routes returns the rows of the route table.
func (a limitRoutes) routes() []rest.Route {
	return []rest.Route{
		{
			Method:  get,
			Pattern: "/api/limits",
			Name:    "getLimits",
			Grants:  nothing,
			Summary: "The limits in force",
			Gives:   openapi.OK(openapi.One[limitsBody]()),
			Handle:  a.getLimits,
		},
	}
}

// limitsBody is what GET /api/limits answers. Sizes are bytes; times are milliseconds, or days.
type limitsBody struct {
	Bodies   bodyLimits    `json:"bodies"`
	Lists    listLimits    `json:"lists"`
	Files    fileLimits    `json:"files"`
	Archives archiveLimits `json:"archives"`
	Scripts  scriptLimits  `json:"scripts"`
	Webhooks webhookLimits `json:"webhooks"`
	Chats    chatLimits    `json:"chats"`
	Agents   agentLimits   `json:"agents"`
	Storage  storageLimits `json:"storage"`
	// Workspaces is null where apps have no SQL databases.
	Workspaces *workspaceLimits `json:"workspaces"`
}

// Relations implements openapi.Related.
func (limitsBody) Relations() openapi.Relations { return openapi.Relations{} }

type bodyLimits struct {
	JSON    int64 `json:"jsonBytes"`
	Handler int64 `json:"handlerBytes"`
	Webhook int64 `json:"webhookBytes"`
}

type listLimits struct {
	Limit int `json:"limit"`
	Bytes int `json:"pageBytes"`
}

type fileLimits struct {
	Upload  int64 `json:"uploadBytes"`
	AppFile int64 `json:"appFileBytes"`
	Chunk   int64 `json:"chunkBytes"`
}

type archiveLimits struct {
	Size    int64 `json:"bytes"`
	Members int   `json:"members"`
	Bytes   int64 `json:"unpackedBytes"`
	Row     int64 `json:"rowBytes"`
	Ratio   int64 `json:"ratio"`
	Time    int64 `json:"importTimeMs"`
}

// scriptLimits are those of one invocation; null stands for what the host's own engine decides.
type scriptLimits struct {
	Default   int64  `json:"defaultTimeMs"`
	Time      int64  `json:"maxTimeMs"`
	Memory    *int64 `json:"memoryBytes"`
	Output    *int   `json:"resultBytes"`
	LogBytes  *int   `json:"logBytes"`
	LogLines  *int   `json:"logLines"`
	Calls     *int   `json:"calls"`
	CallBytes *int   `json:"callBytes"`
	Fetched   int    `json:"fetchBytes"`
	Hops      int    `json:"fetchHops"`
	// Shares are those of all scripts, null for an engine that has none.
	Shares *scriptShares `json:"shares"`
}

// scriptShares are how much scripts have at once, and of CPU time.
type scriptShares struct {
	AtOnce    int              `json:"atOnce"` // with those that wait
	OfTenant  int              `json:"tenantAtOnce"`
	OfApp     int              `json:"appAtOnce"`
	Computing int              `json:"computing"`
	Slice     int64            `json:"sliceCpuMs"`  // after which a script is slow
	Window    int64            `json:"windowMs"`    // in which CPU time counts
	TenantCPU int64            `json:"tenantCpuMs"` // from which on slow scripts wait for those of others
	AppCPU    int64            `json:"appCpuMs"`
	Used      int64            `json:"tenantUsedCpuMs"`         // by the caller's tenant, on the process that answers
	Apps      map[string]int64 `json:"appsUsedCpuMs,omitempty"` // by its apps, for superusers
}

type webhookLimits struct {
	Recent       int   `json:"recent"`
	Days         int   `json:"daily"`
	RecordDays   int   `json:"recordDays"`
	Served       int   `json:"serverRecordsPerMinute"`
	Refusals     int   `json:"refusalsPerMinute"`
	HourBytes    int   `json:"logBytesPerHour"` // of an app, with the texts of errors
	Kept         int   `json:"keptRequests"`
	KeptBytes    int64 `json:"keptBytes"`
	KeptDays     int   `json:"keptDays"`
	AfterStopped int64 `json:"afterStopMs"`
}

// chatLimits are those of a conversation with a language model.
type chatLimits struct {
	Messages int `json:"messages"`
	Text     int `json:"textBytes"`
	Steps    int `json:"steps"`       // answers of the model to one question
	Result   int `json:"resultBytes"` // of a tool
	AtOnce   int `json:"atOnce"`      // answers of models for a user
	OfTenant int `json:"tenantAtOnce"`
	Open     int `json:"open"` // conversations of a user or visitor
	OpenOf   int `json:"tenantOpen"`
}

// agentLimits are those of the agents of apps.
type agentLimits struct {
	Steps     int `json:"steps"` // answers of the model in a run
	Depth     int `json:"depth"` // agents and events that start each other
	Input     int `json:"inputBytes"`
	Answer    int `json:"answerBytes"`
	Calls     int `json:"answerCalls"`
	Result    int `json:"resultBytes"` // of a tool
	Run       int `json:"runBytes"`
	Schedules int `json:"schedules"` // of an agent
	Waiting   int `json:"waiting"`   // runs of an app that have not ended
	Kept      int `json:"kept"`      // runs of an app that have
	KeptBytes int `json:"keptBytes"`
	AtOnce    int `json:"atOnce"` // runs of a node
	OfTenant  int `json:"tenantAtOnce"`
}

// workspaceLimits are those of the SQL database of an app.
type workspaceLimits struct {
	Bytes          int64 `json:"bytes"`
	Rows           int   `json:"resultRows"`
	ResultBytes    int   `json:"resultBytes"`
	StatementTime  int64 `json:"statementTimeMs"`
	Tokens         int   `json:"statementTokens"`
	MigrationBytes int   `json:"migrationBytes"`
	// Connections are open at once by the process that answers.
	Connections          int `json:"connections"`
	TenantConnections    int `json:"tenantConnections"`
	WorkspaceConnections int `json:"workspaceConnections"`
}

// getLimits serves GET /api/limits: 200 and the limits in force.
func (a limitRoutes) getLimits(r *rest.Request) (rest.Reply, error) {
	stored, err := a.storageLimits(r)
	if err != nil {
		return rest.Reply{}, err
	}
	archive, size, longest := a.Bundles.Unchecked().Limits()
	hooks := a.Webhooks.Unchecked().Limits()
	body := limitsBody{
		Bodies: bodyLimits{a.MaxBody, a.MaxHandlerBody, hooks.Body},
		Lists:  listLimits{paging.MaxLimit, paging.MaxBytes},
		Files:  fileLimits{a.Uploads.Unchecked().Limit(), a.Apps.Unchecked().MaxFile(), blobs.ChunkSize},
		Archives: archiveLimits{
			size, archive.Members, archive.Bytes, archive.Row, archive.Ratio, longest.Milliseconds(),
		},
		Scripts: a.scriptLimits(r.Who),
		Storage: stored,
		Webhooks: webhookLimits{
			hooks.Recent, hooks.Days, days(hooks.Retention), hooks.Served, hooks.Refusals,
			hooks.HourBytes, hooks.Kept, hooks.KeptBytes, days(hooks.KeptFor), rest.DrainTime.Milliseconds(),
		},
	}
	body.Chats = chatLimits{
		maxChatMessages, maxChatText, chat.DefaultSteps, chat.DefaultResult, chat.MaxAtOnceOfUser,
		chat.MaxAtOnceOfTenant, maxChattingOfPerson, maxChattingOfTenant,
	}
	of := a.Agents.Unchecked().Limits()
	body.Agents = agentLimits{
		agents.MaxSteps, agents.MaxDepth, agents.MaxInput, agents.MaxAnswer, agents.MaxCalls, agents.MaxResult,
		of.RunBytes, agents.MaxSchedules, of.Waiting, of.Kept, of.Bytes, of.AtOnce, of.Tenant,
	}
	if b, there := a.Workspaces.Bounds(); there {
		body.Workspaces = &workspaceLimits{
			b.Size, b.Result.Rows, b.Result.Bytes, b.Time.Milliseconds(),
			b.Tokens, workspaces.MaxMigration, b.Connections, b.PerTenant, b.PerWorkspace,
		}
	}
	return rest.OK(hal.Resource{Links: hal.Self(a.href("limits")), Value: body})
}

func days(d time.Duration) int { return int(d / (24 * time.Hour)) }

func (a limitRoutes) scriptLimits(who actor.Actor) scriptLimits {
	l := scriptLimits{Default: handlers.DefaultTime.Milliseconds(), Fetched: scripts.MaxFetched, Hops: scripts.MaxHops}
	if a.Handlers == nil {
		return l
	}
	l.Time = handlers.MaxTime.Milliseconds()
	if s, ok := a.Handlers.Runtime().(interface{ Limits() jsvm.Limits }); ok {
		of := s.Limits()
		l.Memory, l.Output, l.LogBytes, l.LogLines, l.Calls, l.CallBytes =
			&of.Memory, &of.Output, &of.LogBytes, &of.LogLines, &of.Calls, &of.CallBytes
	}
	if s, ok := a.Handlers.Runtime().(interface {
		Shares() jsvm.Shares
		CPUTime(tenant string) (all time.Duration, keys map[string]time.Duration)
	}); ok {
		of := s.Shares()
		used, apps := s.CPUTime(who.Tenant)
		l.Shares = &scriptShares{
			of.Scripts, of.OfTenant, of.OfKey, of.Computing,
			of.Slice.Milliseconds(), of.Window.Milliseconds(), of.TenantCPU.Milliseconds(), of.KeyCPU.Milliseconds(),
			used.Milliseconds(), nil,
		}
		if who.Superuser {
			l.Shares.Apps = map[string]int64{}
			for id, d := range apps {
				l.Shares.Apps[id] = d.Milliseconds()
			}
		}
	}
	return l
}
