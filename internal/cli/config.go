package cli

import (
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/ai/openai"
	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/apps/messages/smtp"
	"github.com/tenantcontent/tenantcontent/assistants/conversation"
	"github.com/tenantcontent/tenantcontent/assistants/mcp"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/domains/oidc"
	"github.com/tenantcontent/tenantcontent/domains/saml"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/secure/egress"
)

// config has the settings of the server.
type config struct {
	Listen          string   `env:"TENANTCONTENT_LISTEN" default:"127.0.0.1:8080" help:"Address to serve on." placeholder:"HOST:PORT"`
	BaseURL         string   `env:"TENANTCONTENT_BASE_URL" help:"Start of every link, such as https://content.example.com or https://example.com/content (default: http:// and the address)." placeholder:"URL"`
	AppOrigin       string   `env:"TENANTCONTENT_APP_ORIGIN" help:"Where each app has an origin of its own, such as https://{app}.apps.example.com (default: apps are shown in a sandbox at the base URL)." placeholder:"URL"`
	MaxBody         size     `env:"TENANTCONTENT_MAX_BODY" default:"1MiB" help:"Size of a JSON body." placeholder:"SIZE"`
	MaxUpload       size     `env:"TENANTCONTENT_MAX_UPLOAD" default:"256MiB" help:"Size of an uploaded file." placeholder:"SIZE"`
	MaxAppFile      size     `env:"TENANTCONTENT_MAX_APP_FILE" default:"100MiB" help:"Size of a file of an app." placeholder:"SIZE"`
	OpenLicenses    bool     `env:"TENANTCONTENT_OPEN_LICENSES" help:"Let the superusers of a tenant set its licenses; without it only tenant license does."`
	TenantQuota     size     `env:"TENANTCONTENT_TENANT_QUOTA" default:"10GiB" help:"Most bytes that a tenant stores in files and records, unless tenant quota gives it another number." placeholder:"SIZE"`
	UserQuota       size     `env:"TENANTCONTENT_USER_QUOTA" default:"2GiB" help:"Most bytes of the uploads of a user together." placeholder:"SIZE"`
	TenantDatabases count    `name:"tenant-workspaces" env:"TENANTCONTENT_TENANT_WORKSPACES" default:"1000" help:"Most SQL databases that the apps and drafts of a tenant have, unless tenant quota gives it another number." placeholder:"NUMBER"`
	SessionLifetime lifetime `env:"TENANTCONTENT_SESSION_LIFETIME" default:"12h" help:"How long a log-in lasts." placeholder:"TIME"`
	KeepActivities  days     `env:"TENANTCONTENT_KEEP_ACTIVITIES" default:"400d" help:"How long activities, feeds and notifications are kept, such as 90d; 0 for ever." placeholder:"DAYS"`
	DenyNetworks    string   `env:"TENANTCONTENT_DENY_NETWORKS" default:"none" help:"Networks that no domain's directory or provider, and no language model or MCP server, may be in, also those of --allow-networks, parted by commas, or none." placeholder:"NETWORKS"`
	AllowNetworks   string   `env:"TENANTCONTENT_ALLOW_NETWORKS" default:"none" help:"Networks that what tenants configure may be in beside others: of this machine (127.0.0.0/8, ::1/128) or link for directories and providers, of your own for MCP servers, also with http; parted by commas, or none." placeholder:"NETWORKS"`
	TrustedProxies  string   `env:"TENANTCONTENT_TRUSTED_PROXIES" default:"none" help:"Networks of the proxies that say in X-Forwarded-For or Forwarded who calls, parted by commas, or none." placeholder:"NETWORKS"`

	AIURL        string `name:"ai-url" env:"TENANTCONTENT_AI_URL" help:"OpenAI-compatible API of language models, such as https://api.openai.com/v1 or http://localhost:11434/v1 (default: none)." placeholder:"URL"`
	AIKey        string `name:"ai-key" env:"TENANTCONTENT_AI_KEY" help:"Key of that API. Better set in the environment." placeholder:"KEY"`
	AIModels     string `name:"ai-models" env:"TENANTCONTENT_AI_MODELS" help:"Its models, the default one first, parted by commas: names, or NAME=SERVER'S NAME." placeholder:"MODELS"`
	AIImageModel string `name:"ai-image-model" env:"TENANTCONTENT_AI_IMAGE_MODEL" help:"Its model that makes images (default: none)." placeholder:"MODEL"`
	MCP          string `name:"mcp" env:"TENANTCONTENT_MCP" default:"on" enum:"on,off" help:"Whether assistants can have tools of remote MCP servers: on or off." placeholder:"ON"`
	MCPNetworks  string `name:"mcp-networks" env:"TENANTCONTENT_MCP_NETWORKS" default:"none" help:"The old name of --allow-networks, whose networks are added to it." placeholder:"NETWORKS"`
	SMTPURL      string `name:"smtp-url" env:"TENANTCONTENT_SMTP_URL" help:"Mail server that the e-mails of apps leave by, such as smtp://user:password@mail.example.com:587?from=noreply@example.com (default: they wait)." placeholder:"URL"`
	Queue        string `env:"TENANTCONTENT_QUEUE" default:"on" enum:"on,off" help:"Whether this server works on the queue, or leaves it to others: on or off." placeholder:"ON"`
	QueueAtOnce  count  `env:"TENANTCONTENT_QUEUE_AT_ONCE" default:"64" help:"Most jobs of a kind at once, where the kind itself allows more." placeholder:"NUMBER"`

	MaxArchive        size     `env:"TENANTCONTENT_MAX_ARCHIVE" default:"4GiB" help:"Size of a bundle's archive as it is sent, packed." placeholder:"SIZE"`
	MaxImportTime     lifetime `env:"TENANTCONTENT_MAX_IMPORT_TIME" default:"2m" help:"Longest transaction of an import, restore or deploy, such as 90s." placeholder:"TIME"`
	MaxArchiveBytes   size     `env:"TENANTCONTENT_MAX_ARCHIVE_BYTES" default:"4GiB" help:"Size of an archive when it is unpacked." placeholder:"SIZE"`
	MaxArchiveMembers count    `env:"TENANTCONTENT_MAX_ARCHIVE_MEMBERS" default:"200000" help:"Rows and files of an archive." placeholder:"NUMBER"`
	MaxArchiveRow     size     `env:"TENANTCONTENT_MAX_ARCHIVE_ROW" default:"4MiB" help:"Size of one row of an archive." placeholder:"SIZE"`
	MaxArchiveRatio   count    `env:"TENANTCONTENT_MAX_ARCHIVE_RATIO" default:"200" help:"How many times as many bytes an archive may have when it is unpacked." placeholder:"TIMES"`
}

// library returns the configuration of the library. It returns errs.Invalid naming the flag.
func (c *config) library() (tenantcontent.Config, error) {
	lib := tenantcontent.Config{BaseURL: c.BaseURL, AppOrigin: c.AppOrigin,
		MaxBody: int64(c.MaxBody), MaxUpload: int64(c.MaxUpload),
		MaxAppFile: int64(c.MaxAppFile), OpenLicenses: c.OpenLicenses,
		TenantQuota: int64(c.TenantQuota), UserQuota: int64(c.UserQuota), TenantWorkspaces: int(c.TenantDatabases),
		MaxArchive: int64(c.MaxArchive), MaxImportTime: time.Duration(c.MaxImportTime),
		SessionLifetime: time.Duration(c.SessionLifetime), ArchiveLimits: bundles.Limits{
			Members: int(c.MaxArchiveMembers), Bytes: int64(c.MaxArchiveBytes),
			Row: int64(c.MaxArchiveRow), Ratio: int64(c.MaxArchiveRatio),
		}}
	if lib.BaseURL == "" {
		lib.BaseURL = "http://" + reachable(c.Listen)
	}
	if lib.KeepActivities = time.Duration(c.KeepActivities) * 24 * time.Hour; c.KeepActivities == 0 {
		lib.KeepActivities = -1
	}
	lib.Queue = queue.Node{Off: c.Queue == "off", AtOnce: int(c.QueueAtOnce)}
	var err error
	if lib.Mail, err = c.mail(); err != nil {
		return lib, err
	}
	if lib.DenyNetworks, err = networks("deny-networks", c.DenyNetworks); err != nil {
		return lib, err
	}
	if lib.AllowNetworks, err = networks("allow-networks", c.AllowNetworks); err != nil {
		return lib, err
	}
	if c.MCPNetworks != "none" {
		old, err := networks("mcp-networks", c.MCPNetworks)
		if err != nil {
			return lib, err
		}
		lib.AllowNetworks = append(lib.AllowNetworks, old...)
	}
	lib.TrustedProxies, err = networks("trusted-proxies", c.TrustedProxies)
	return lib, err
}

// drivers returns the drivers for logins other than with local passwords.
func drivers() []domains.Driver {
	return []domains.Driver{ldap.AD{}, ldap.LDAP{}, saml.Driver{}, oidc.Driver{}}
}

// models returns the provider of language models, or nil. It returns errs.Invalid naming the flag.
func (c *config) models(lib tenantcontent.Config) (ai.Provider, error) {
	if c.AIURL == "" {
		if c.AIKey != "" || c.AIModels != "" || c.AIImageModel != "" {
			return nil, errs.New(
				errs.Invalid,
				"--ai-url is missing: --ai-key, --ai-models and --ai-image-model are of the API there",
			)
		}
		return nil, nil
	}
	models, err := openai.ReadModels(c.AIModels)
	if err != nil {
		return nil, errs.New(errs.Invalid, "--ai-models: %s", errs.MessageOf(err))
	}
	p, err := openai.New(openai.Options{
		URL: c.AIURL, Key: c.AIKey, Models: models,
		ImageModel:   c.AIImageModel,
		DenyNetworks: egress.Denials(egress.Default(), lib.AllowNetworks, lib.DenyNetworks), Log: lib.Log,
	})
	if err != nil {
		return nil, errs.New(errs.Invalid, "--ai-%s", asFlag(errs.MessageOf(err)))
	}
	return p, nil
}

// skills returns the skills of assistants in addition to the built-in ones.
func (c *config) skills(lib tenantcontent.Config) []conversation.Skill {
	if c.MCP == "off" {
		return nil
	}
	return []conversation.Skill{mcp.New(mcp.Options{
		AllowNetworks: lib.AllowNetworks,
		DenyNetworks:  lib.DenyNetworks,
		Log:           lib.Log,
	})}
}

// asFlag returns the sentence about an option, such as "URL: it must …", for its flag.
func asFlag(sentence string) string {
	option, rest, _ := strings.Cut(sentence, ":")
	return strings.ToLower(option) + ":" + rest
}

// mail returns the sender of e-mails, or nil.
func (c *config) mail() (messages.Sender, error) {
	if c.SMTPURL == "" {
		return nil, nil
	}
	o, err := smtp.Parse(c.SMTPURL)
	if err != nil {
		return nil, errs.New(errs.Invalid, "--smtp-url: %s", errs.MessageOf(err))
	}
	s, err := smtp.New(o)
	if err != nil {
		return nil, errs.New(errs.Invalid, "--smtp-url: %s", errs.MessageOf(err))
	}
	return s, nil
}

// logging has the settings of the log.
type logging struct {
	LogFormat string `env:"TENANTCONTENT_LOG_FORMAT" default:"text" enum:"text,json" help:"Log format: text or json." placeholder:"FORMAT"`
	LogLevel  string `env:"TENANTCONTENT_LOG_LEVEL" default:"info" enum:"debug,info,warn,error" help:"Log level: debug (one line a request), info, warn or error." placeholder:"LEVEL"`
}

// logger returns a logger that writes to a stream.
func (l *logging) logger(to io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(l.LogLevel)) // kong has validated it
	o := &slog.HandlerOptions{Level: level}
	if l.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(to, o))
	}
	return slog.New(slog.NewTextHandler(to, o))
}

// networks parses the networks of a flag. A single address is a network, too.
func networks(flag, text string) ([]netip.Prefix, error) {
	all := []netip.Prefix{}
	if text == "none" {
		return all, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		network, err := netip.ParsePrefix(part)
		if ip, single := netip.ParseAddr(part); single == nil && ip.Zone() == "" {
			network, err = netip.PrefixFrom(ip, ip.BitLen()), nil
		}
		if err != nil {
			return nil, errs.Wrap(
				errs.Invalid, err,
				"--%s: %q is not a network: name networks such as 10.0.0.0/8 parted by commas, or none", flag,
				part,
			)
		}
		all = append(all, network)
	}
	return all, nil
}

// reachable returns the address to connect to for an address to listen on: localhost for all
// interfaces.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}
