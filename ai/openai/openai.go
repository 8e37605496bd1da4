// Package openai is the ai.Provider for servers with OpenAI's API for chat completions: OpenAI's
// own, vLLM, llama.cpp, Ollama, LiteLLM and many more.
//
// A program that does not import it does not link its client. The program in cmd imports it; other
// hosts call New.
package openai

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/egress"
	"github.com/tenantcontent/tenantcontent/internal/secure/redact"
)

// Options configure a Provider. URL and Models are required.
type Options struct {
	// URL is the address of the API, such as https://api.openai.com/v1 or
	// http://localhost:11434/v1, or of a deployment of Azure:
	// https://NAME.openai.azure.com/openai/deployments/MODEL?api-version=2024-10-21.
	URL string
	Key string // sent as a bearer token, or to Azure as api-key; "": the server needs none
	// Models are the models that callers can name. The first one is the default.
	Models []Model
	// ImageModel is the server's name for the model that makes images; if it is "", New returns no
	// ai.Imager.
	ImageModel string
	// DenyNetworks are networks to which no connection is made: see tenantcontent.Config. nil:
	// those in which clouds serve the credentials of machines.
	DenyNetworks []netip.Prefix
	// Log receives the answers with which a server refuses requests; default slog.Default().
	Log *slog.Logger

	// Begin is how long the server may take to begin an answer; default 2 minutes. Idle is how long
	// it may pause after that; default 1 minute. Timeout bounds the whole answer, without the time
	// that emit takes; default 10 minutes.
	Begin, Idle, Timeout time.Duration
	// MaxBytes is the most bytes of an answer; default 16 MiB.
	MaxBytes int64
}

// Model is a model of a server.
type Model struct {
	Name   string // the name for callers
	Server string // the name for the server; "": Name
}

// ReadModels parses a list of models, separated by commas, of names or of name=server's name pairs,
// such as "gpt-5-mini" or "fast=gpt-5-mini, smart=gpt-5". Errors: errs.Invalid.
func ReadModels(text string) ([]Model, error) {
	var models []Model
	for part := range strings.SplitSeq(text, ",") {
		name, server, _ := strings.Cut(strings.TrimSpace(part), "=")
		m := Model{Name: strings.TrimSpace(name), Server: strings.TrimSpace(server)}
		if m.Name == "" {
			return nil, errs.New(
				errs.Invalid,
				"%q is no list of models: write names, such as gpt-5-mini, or name=server's name pairs, such as "+
					"fast=gpt-5-mini, parted by commas",
				text,
			)
		}
		models = append(models, m)
	}
	return models, nil
}

// provider is the ai.Provider of New.
type provider struct {
	Options
	chat   sdk.ChatCompletionService
	images sdk.ImageService

	// Parameters that the server refused, in a request that it answered without them. They are not
	// sent again.
	noUsage   atomic.Bool // stream_options
	newLength atomic.Bool // max_tokens: it demands max_completion_tokens
}

// imager is a provider with a model for images.
type imager struct{ *provider }

// New returns a Provider. It does not connect to the server. Errors: errs.Invalid naming the
// option.
func New(o Options) (ai.Provider, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errs.New(errs.Invalid, "URL: it must be the address of an API, such as https://api.openai.com/v1")
	case u.User != nil || u.Fragment != "" || u.RawQuery != "" && (!azure(u) || len(u.Query()) != 1 ||
		u.Query().Get("api-version") == ""):
		return nil, errs.New(
			errs.Invalid,
			"URL: it must have no user, password, query or fragment: the key is an option of its own",
		)
	case operation.MatchString(u.Path):
		right := *u
		right.Path = operation.ReplaceAllString(u.Path, "")
		return nil, errs.New(
			errs.Invalid, "URL: it must be the address of the API, to which the operation is added: %s",
			right.String(),
		)
	case strings.Contains(u.Path, "/openai/deployments/") && u.RawQuery == "":
		return nil, errs.New(
			errs.Invalid,
			"URL: a deployment of Azure needs its version, such as ?api-version=2024-10-21 at the end",
		)
	case strings.ContainsFunc(o.Key, func(c rune) bool { return c <= ' ' || c > '~' }):
		return nil, errs.New(errs.Invalid, "Key: it must have no spaces and no characters beyond ASCII")
	case len(o.Models) == 0:
		return nil, errs.New(errs.Invalid, "Models: name at least one model of the server")
	}
	o.Models = slices.Clone(o.Models)
	for i, m := range o.Models {
		if m.Name == "" || slices.ContainsFunc(o.Models[:i], func(other Model) bool { return other.Name == m.Name }) {
			return nil, errs.New(
				errs.Invalid, "Models: each model must have a name of its own, %q is there twice or empty",
				m.Name,
			)
		}
		if m.Server == "" {
			o.Models[i].Server = m.Name
		}
	}
	if o.DenyNetworks == nil {
		o.DenyNetworks = egress.Default()
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Begin, o.Idle, o.Timeout = cmp.Or(o.Begin, 2*time.Minute), cmp.Or(o.Idle, time.Minute), cmp.Or(
		o.Timeout, 10*time.Minute,
	)
	o.MaxBytes = cmp.Or(o.MaxBytes, 16<<20)
	p := &provider{Options: o}
	client := egress.Client(o.DenyNetworks)
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	settings := []option.RequestOption{
		option.WithBaseURL(strings.TrimRight(o.URL, "/") + "/"), option.WithMaxRetries(0),
		option.WithHTTPClient(&bounded{
			client: client,
			begin:  o.Begin,
			idle:   o.Idle,
			total:  o.Timeout,
			most:   o.MaxBytes,
		}),
	}
	if azure(u) {
		base := *u
		base.RawQuery = ""
		settings[0] = option.WithBaseURL(strings.TrimRight(base.String(), "/") + "/")
		if version := u.Query().Get("api-version"); version != "" {
			settings = append(settings, option.WithQuery("api-version", version))
		}
		if o.Key != "" {
			settings = append(settings, option.WithHeader("api-key", o.Key))
		}
	} else if o.Key != "" {
		settings = append(settings, option.WithAPIKey(o.Key))
	}
	p.chat, p.images = sdk.NewChatCompletionService(settings...), sdk.NewImageService(settings...)
	if o.ImageModel != "" {
		return imager{p}, nil
	}
	return p, nil
}

// operation matches the end of a URL that is the address of a single operation of the API.
var operation = regexp.MustCompile(`/(chat/completions|completions|responses|embeddings|models|images/generations)/?$`)

// azure reports whether an address is that of a model at Azure, or of a gateway with the same
// paths.
func azure(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	return strings.HasSuffix(host, ".openai.azure.com") || strings.HasSuffix(host, ".cognitiveservices.azure.com") ||
		strings.HasSuffix(host, ".services.ai.azure.com") ||
		strings.Contains(u.Path, "/openai/deployments/")
}

// Models implements ai.Lister.
func (p *provider) Models() []string {
	names := make([]string, len(p.Options.Models))
	for i, m := range p.Options.Models {
		names[i] = m.Name
	}
	return names
}

// model returns the server's name of a model. Errors: errs.Invalid.
func (p *provider) model(name string) (string, error) {
	for i, m := range p.Options.Models {
		if name == m.Name || name == "" && i == 0 {
			return m.Server, nil
		}
	}
	return "", errs.New(errs.Invalid, "There is no model %.100q: use %s.", name, strings.Join(p.Models(), ", "))
}

// Chat implements ai.Provider.
func (p *provider) Chat(ctx context.Context, r ai.Request, emit func(ai.Part) error) (ai.Answer, error) {
	model, err := p.model(r.Model)
	if err != nil {
		return ai.Answer{}, err
	}
	params, err := newParams(r, model)
	if err != nil {
		return ai.Answer{}, err
	}
	for with := (dialect{p.noUsage.Load(), p.newLength.Load()}); ; {
		with.adapt(&params, r)
		a := &answer{emit: emit}
		streaming, done := withDone(ctx)
		err := a.read(ctx, p.chat.NewStreaming(streaming, params), done)
		var refused *refusal
		if errors.As(err, &refused) && with.learn(refused, r) {
			continue
		}
		if err == nil { // without an answer, the server may have quoted the parameter from the request
			p.noUsage.CompareAndSwap(false, with.noUsage)
			p.newLength.CompareAndSwap(false, with.newLength)
		}
		return a.Answer, p.explain(ctx, err, a, r.Tools...)
	}
}

// dialect is the set of parameters that are sent: see provider.
type dialect struct{ noUsage, newLength bool }

// adapt sets the parameters that not all servers accept.
func (d dialect) adapt(params *sdk.ChatCompletionNewParams, r ai.Request) {
	params.StreamOptions = sdk.ChatCompletionStreamOptionsParam{}
	if !d.noUsage {
		params.StreamOptions.IncludeUsage = sdk.Bool(true)
	}
	if r.MaxTokens == 0 {
		return
	}
	unset := params.Seed // an unset integer
	params.MaxTokens, params.MaxCompletionTokens = sdk.Int(int64(r.MaxTokens)), unset
	if d.newLength {
		params.MaxTokens, params.MaxCompletionTokens = unset, sdk.Int(int64(r.MaxTokens))
	}
}

// learn reports whether a server may have refused a parameter of a request that can be omitted, or
// sent under its other name, in the next try.
func (d *dialect) learn(refused *refusal, r ai.Request) bool {
	switch {
	case refused.status != http.StatusBadRequest && refused.status != http.StatusUnprocessableEntity:
	case !d.noUsage && strings.Contains(refused.body, "stream_options"):
		d.noUsage = true
		return true
	case !d.newLength && r.MaxTokens > 0 && strings.Contains(refused.body, "max_completion_tokens"):
		d.newLength = true
		return true
	}
	return false
}

// newParams returns a request in the format of the API. It returns errs.Invalid if the parameters
// of a tool are not a JSON object.
func newParams(r ai.Request, model string) (sdk.ChatCompletionNewParams, error) {
	params := sdk.ChatCompletionNewParams{Model: model}
	for _, m := range r.Messages {
		params.Messages = append(params.Messages, message(m))
	}
	for _, t := range r.Tools {
		f := shared.FunctionDefinitionParam{
			Name:       t.Name,
			Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{}},
		}
		if t.Description != "" {
			f.Description = sdk.String(t.Description)
		}
		if len(t.Parameters) > 0 {
			f.Parameters = nil
			if err := json.Unmarshal(t.Parameters, &f.Parameters); err != nil || f.Parameters == nil {
				return params, errs.New(
					errs.Invalid, "The parameters of the tool %s must be a JSON Schema: an object.", t.Name,
				)
			}
		}
		params.Tools = append(params.Tools, sdk.ChatCompletionFunctionTool(f))
	}
	if r.JSON {
		object := shared.NewResponseFormatJSONObjectParam()
		params.ResponseFormat.OfJSONObject = &object
	}
	if r.User != "" {
		params.User = sdk.String(r.User)
	}
	return params, nil
}

// textMessage is a message that has only text. The client encodes it once; with the client's own
// types it would encode the text, which can be long, five times.
type textMessage struct {
	Role       string `json:"role"`
	Content    string `json:"content"`
	ToolCallID string `json:"tool_call_id,omitempty"`
}

func message(m ai.Message) sdk.ChatCompletionMessageParamUnion {
	if m.Role == ai.Assistant {
		said := sdk.ChatCompletionAssistantMessageParam{}
		if m.Content != "" || len(m.ToolCalls) == 0 {
			said.Content.OfString = sdk.String(m.Content)
		}
		for _, c := range m.ToolCalls {
			said.ToolCalls = append(said.ToolCalls,
				sdk.ChatCompletionMessageToolCallUnionParam{OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
					ID: c.ID,
					Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{
						Name:      c.Name,
						Arguments: c.Arguments,
					},
				}})
		}
		return sdk.ChatCompletionMessageParamUnion{OfAssistant: &said}
	}
	if len(m.Images) == 0 {
		return param.Override[sdk.ChatCompletionMessageParamUnion](textMessage{string(m.Role), m.Content, m.ToolCallID})
	}
	parts := []sdk.ChatCompletionContentPartUnionParam{sdk.TextContentPart(m.Content)}
	for _, i := range m.Images {
		parts = append(parts, sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{
			URL: "data:" + i.ContentType + ";base64," + base64.StdEncoding.EncodeToString(i.Data),
		}))
	}
	return sdk.UserMessage(parts)
}

// explain returns the error of an answer for the caller. It wraps the server's text, without the
// key. tools are those of the request.
func (p *provider) explain(ctx context.Context, err error, a *answer, tools ...ai.Tool) error {
	switch {
	case err == nil:
		return nil
	case a != nil && a.refused != nil:
		return a.refused
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	cause := errors.New(p.redacted(err.Error()))
	var r *refusal
	if !errors.As(err, &r) {
		if text := err.Error(); tooLong(text) {
			return errs.Wrap(errs.Invalid, cause, tooLongMessage)
		}
		p.Log.WarnContext(ctx, "a model's server failed", "err", cause)
		if _, inside, ok := strings.Cut(cause.Error(), "received error while streaming: "); ok {
			return errs.Wrap(
				errs.Unavailable, cause, "The model's server failed in the middle of its answer: %s",
				sentence(cmp.Or(said(inside), inside)),
			)
		}
		return errs.Wrap(errs.Unavailable, cause, "The model's server did not answer to the end. Try again.")
	}
	if tooLong(r.body) {
		return errs.Wrap(errs.Invalid, cause, tooLongMessage)
	}
	p.Log.WarnContext(ctx, "a model's server refused a request", "status", r.status, "err", cause)
	return p.explainRefusal(r, cause, tools)
}

// explainRefusal returns the error of a status for the caller.
func (p *provider) explainRefusal(r *refusal, cause error, tools []ai.Tool) error {
	switch {
	case r.status == http.StatusUnauthorized, r.status == http.StatusForbidden:
		return errs.Wrap(
			errs.Unavailable, cause,
			"The model's server does not accept this server's key. Its operator must set another one.",
		)
	case r.status == http.StatusNotFound, r.status == http.StatusMethodNotAllowed, r.status < 400:
		return errs.Wrap(
			errs.Unavailable, cause,
			"The model's server has no such model, or its address is wrong. The operator of this server must set "+
				"both right.",
		)
	case r.status == http.StatusTooManyRequests:
		return errs.Wrap(
			errs.Unavailable, limited(cause, r.after),
			"The model's server has too much to do, or its quota is used up. Try again later.",
		)
	case r.status == http.StatusBadGateway && said(r.body) != "":
		return errs.Wrap(
			errs.Unavailable, limited(cause, r.after), "The model's server has failed: %s",
			sentence(said(p.redacted(r.body))),
		)
	case r.status >= 500, r.status == http.StatusRequestTimeout:
		return errs.Wrap(errs.Unavailable, limited(cause, r.after), "The model's server has failed. Try again.")
	case r.status == http.StatusRequestEntityTooLarge:
		return errs.Wrap(errs.Invalid, cause, tooLongMessage)
	case len(tools) > 0 && withoutTools.MatchString(r.body):
		names := make([]string, len(tools))
		for i, t := range tools {
			names[i] = t.Name
		}
		return errs.Wrap(
			errs.Invalid, cause,
			"This model takes no tools, and the conversation has %s: choose another model, or leave out the "+
				"skills that bring them.",
			strings.Join(names, ", "),
		)
	case strings.Contains(r.body, "content_filter") || strings.Contains(r.body, "content_policy"):
		return errs.Wrap(errs.Invalid, cause, "The model's provider refuses to answer this: its rules forbid it.")
	}
	return errs.Wrap(
		errs.Invalid, cause, "The model's server refuses this request. The log of this server has the reason.",
	)
}

// withoutTools matches the errors of servers whose model does not support tools.
var withoutTools = regexp.MustCompile(`(?i)(tools?|functions?|tool[_ ](use|call(s|ing)?|choice)|function ` +
	`calling)\W+((is|are)\W+)?(not\W+(be\W+)?(support|enabl|allow|available)|unsupported)|` +
	`(not|n't)\W+support\W+(tool|function)|does not support .{0,20}(tool|function)|requires --enable-auto-tool-choice`)

// sentence returns a server's description of a failure as the end of a sentence for people.
func sentence(text string) string {
	const most = 300
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return strings.TrimRight(text, ".") + "."
}

const tooLongMessage = "The conversation is too long for the model. Begin a new one, or leave something out."

// tooLong reports whether a server's error is about the length of a request. It knows the words of
// several servers.
func tooLong(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc([]string{
		"context_length", "context length", "context size", "context window", "maximum context",
	}, func(words string) bool {
		return strings.Contains(text, words)
	})
}

// limited returns cause. If after is not 0, cause is wrapped with an errs.RetryAfter.
func limited(cause error, after time.Duration) error {
	if after <= 0 {
		return cause
	}
	return fmt.Errorf("%w: %w", cause, errs.RetryAfter(after))
}

// maxShown is the most bytes of a server's text in an error.
const maxShown = 1 << 10

// redacted returns a text without the key, on one line.
func (p *provider) redacted(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(redact.Text(text, p.Key), "")), " ")
	return text[:min(len(text), maxShown)]
}

// Image implements ai.Imager.
func (p imager) Image(ctx context.Context, r ai.ImageRequest) (ai.Image, error) {
	if r.Model != "" && r.Model != p.ImageModel {
		return ai.Image{}, errs.New(errs.Invalid, "There is no model %.100q for images: use %s.", r.Model, p.ImageModel)
	}
	params := sdk.ImageGenerateParams{Prompt: r.Prompt, Model: p.ImageModel, Size: sdk.ImageGenerateParamsSize(r.Size)}
	if !strings.HasPrefix(p.ImageModel, "gpt-image") { // they always answer with the bytes
		params.ResponseFormat = sdk.ImageGenerateParamsResponseFormatB64JSON
	}
	if r.User != "" {
		params.User = sdk.String(r.User)
	}
	made, err := p.images.Generate(ctx, params)
	if err != nil {
		return ai.Image{}, p.explain(ctx, err, nil)
	}
	if len(made.Data) == 0 || made.Data[0].B64JSON == "" {
		return ai.Image{}, p.explain(ctx, fmt.Errorf("an answer without an image: %w", io.ErrUnexpectedEOF), nil)
	}
	data, err := base64.StdEncoding.DecodeString(made.Data[0].B64JSON)
	if err != nil {
		return ai.Image{}, p.explain(ctx, err, nil)
	}
	kind := http.DetectContentType(data)
	if !slices.Contains([]string{"image/png", "image/jpeg", "image/webp", "image/gif"}, kind) {
		return ai.Image{}, p.explain(ctx, fmt.Errorf("an image of the type %s", kind), nil)
	}
	return ai.Image{ContentType: kind, Data: data}, nil
}
