package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/content/datasets"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/chat"
	"github.com/tenantcontent/tenantcontent/internal/chat/assist"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"
)

// chats is what the routes that language models answer share. Visitors call some.
type chats struct{ views }

// appAssistRoutes serves chats and suggestions about an app.
type appAssistRoutes struct{ chats }

// routes returns the rows of what a language model does for apps, unless the host keeps apps
// itself.
func (a appAssistRoutes) routes() []rest.Route {
	if slices.Contains(a.HostKinds, apps.Kind) {
		return nil
	}
	const one = "/api/apps/:id"
	return []rest.Route{
		{
			Method:  get,
			Pattern: one + "/chat",
			Name:    "getAppChat",
			Grants:  programs,
			Summary: "What the chat of an app offers",
			Guard:   a.needsModel,
			Gives:   openapi.OK(openapi.One[appChatBody]()),
			Handle:  a.getAppChat,
		},
		{
			Method:  post,
			Pattern: one + "/chat",
			Name:    "chatWithApp",
			Grants:  programs,
			AnyType: true,
			Summary: "Ask a language model about an app",
			Guard:   a.needsModel,
			Takes:   openapi.Input[chatInput](),
			Gives:   openapi.OK(openapi.Bytes("text/event-stream")),
			Fails:   []int{400, 403, 404, 503},
			Handle:  a.chatWithApp,
		},
		{
			Method:  get,
			Pattern: one + "/suggestions",
			Name:    "getAppSuggestions",
			Grants:  programs,
			Summary: "Questions that can be asked about an app",
			Guard:   a.needsModel,
			Gives:   openapi.OK(openapi.One[suggestionsBody]()),
			Fails:   []int{400},
			Handle:  a.getAppSuggestions,
		},
		{
			Method:  get,
			Pattern: one + "/suggestions-ai",
			Name:    "suggestAboutApp",
			Grants:  programs,
			Summary: "Questions about an app that a language model suggests",
			Guard:   a.needsModel,
			Gives:   openapi.OK(openapi.One[suggestionsBody]()),
			Handle:  a.suggestAboutApp,
		},
		{
			Method:  post,
			Pattern: one + "/_suggest-icon",
			Name:    "suggestAppIcon",
			Grants:  programs,
			Options: rest.NoOptions{},
			Summary: "Icons for an app that a language model suggests",
			Guard:   a.needsModel,
			Gives:   openapi.OK(openapi.One[iconsBody]()),
			Fails:   []int{400},
			Handle:  a.suggestAppIcon,
		},
		{
			Method:  post,
			Pattern: one + "/_modernize-manifest",
			Name:    "modernizeAppManifest",
			Grants:  programs,
			Options: rest.NoOptions{},
			Summary: "The manifest of an app in the format of today",
			Guard:   a.needsModel,
			Gives:   openapi.OK(openapi.One[modernizedBody]()),
			Handle:  a.modernizeAppManifest,
		},
	}
}

// needsModel guards the routes that a language model answers: see needsAI; 503 without a provider.
func (a chats) needsModel(r *rest.Request) error {
	if err := a.needsAI(r); err != nil {
		return err
	}
	return ai.Configured(a.AI)
}

// suggestTimeout bounds answers of models that are not streamed.
const suggestTimeout = 2 * time.Minute

// modelUser returns the ai.Request.User of a request: that of its visitor, else that of its caller.
func modelUser(r *rest.Request) string {
	if visitOf(r).visitor != nil {
		return ai.Pseudonym(r.Who.Tenant, person(r))
	}
	return chat.UserOf(r.Who)
}

// promptApp returns an app as prompts describe it, with the datasets that the app can read for the
// caller now.
func (a appAssistRoutes) promptApp(r *rest.Request, app apps.App) (assist.App, error) {
	ctx, err := a.Scripts.CappedIn(r.Context(), app, r.Who)
	if err != nil {
		return assist.App{}, err
	}
	out := assist.App{Name: app.Name}
	if app.Description != nil {
		out.Description = *app.Description
	}
	for _, d := range app.Datasets {
		fields, err := a.Datasets.Fields(ctx, d.DatasetID)
		switch errs.CodeOf(err) {
		case "", errs.NotFound, errs.Forbidden, errs.Conflict, errs.Unavailable:
		default:
			return out, err
		}
		out.Datasets = append(out.Datasets, assist.Dataset{Alias: d.Alias, Label: d.Label, Fields: fields})
	}
	return out, nil
}

// chattable returns an app that the caller may run, also as prompts describe it.
func (a appAssistRoutes) chattable(r *rest.Request) (apps.App, assist.App, error) {
	app, err := a.Apps.CheckChat(r.Context(), r.Param("id"))
	if err != nil {
		return app, assist.App{}, err
	}
	told, err := a.promptApp(r, app)
	return app, told, err
}

// appChatBody is what the chat of an app offers.
type appChatBody struct {
	AppID       string   `json:"appId"`
	Welcome     string   `json:"welcome"`
	Suggestions []string `json:"suggestions"`
	Model       string   `json:"model"`  // that answers if a message names none; "" for the provider's own choice
	Models      []string `json:"models"` // that a message can name
	Tools       []string `json:"tools"`
}

// Relations implements openapi.Related.
func (appChatBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:app", "inf:app-suggestions", "inf:app-suggestions-ai"}}
}

// models returns the names of the models, the default one first.
func (a chats) models() []string {
	if l, ok := a.AI.(ai.Lister); ok {
		return l.Models()
	}
	return []string{}
}

// chatModel returns the model of an app's chat: that of its settings if there is one with the name,
// else the default one.
func (a appAssistRoutes) chatModel(app apps.App) string {
	models := a.models()
	if set := app.Chat().Model; set != "" && (len(models) == 0 || slices.Contains(models, set)) {
		return set
	}
	if len(models) > 0 {
		return models[0]
	}
	return ""
}

// appDatasets reads the datasets that an app is bound to, by their aliases, for a viewer: see
// scripts.Binder.Capped.
type appDatasets struct {
	*api
	app    apps.App
	viewer actor.Actor
	ids    map[string]string
}

// Rows implements assist.Reader.
func (d appDatasets) Rows(ctx context.Context, alias string, q datasets.Query) (json.RawMessage, error) {
	ctx, id, err := d.bound(ctx, alias)
	if err != nil {
		return nil, err
	}
	return d.Datasets.Rows(ctx, id, q)
}

// Count implements assist.Reader.
func (d appDatasets) Count(ctx context.Context, alias string, filter json.RawMessage) (int, error) {
	ctx, id, err := d.bound(ctx, alias)
	if err != nil {
		return 0, err
	}
	return d.Datasets.Count(ctx, id, filter)
}

// bound returns the dataset that an alias is bound to, and a context to read it with.
func (d appDatasets) bound(ctx context.Context, alias string) (context.Context, string, error) {
	id, err := d.id(alias)
	if err != nil {
		return nil, "", err
	}
	ctx, err = d.Scripts.CappedIn(ctx, d.app, d.viewer)
	return ctx, id, err
}

func (d appDatasets) id(alias string) (string, error) {
	id, ok := d.ids[alias]
	if !ok {
		return "", errs.New(errs.NotFound, "No dataset is bound to the alias %s.", alias)
	}
	return id, nil
}

// suggestionsOf returns what can be asked about an app: what its author suggests, else what its
// datasets suggest.
func suggestionsOf(app apps.App, told assist.App) []string {
	if set := app.Chat().Suggestions; len(set) > 0 {
		return set
	}
	return told.Suggestions()
}

// getAppChat serves GET /api/apps/{id}/chat: 200 and what its chat offers: a welcome, suggestions,
// models and tools. 403 for those who may not run the app; 404.
func (a appAssistRoutes) getAppChat(r *rest.Request) (rest.Reply, error) {
	app, told, err := a.chattable(r)
	if err != nil {
		return rest.Reply{}, err
	}
	body := appChatBody{
		AppID:       app.ID,
		Welcome:     app.Chat().Welcome,
		Suggestions: suggestionsOf(app, told),
		Model:       a.chatModel(app),
		Models:      a.models(),
		Tools:       []string{},
	}
	for _, t := range told.Tools(nil) {
		body.Tools = append(body.Tools, t.Name)
	}
	self := a.href("apps", app.ID)
	links := hal.Self(self+"/chat").With("inf:app", self).With(
		"inf:app-suggestions", self+"/suggestions",
	).With("inf:app-suggestions-ai", self+"/suggestions-ai")
	return rest.OK(hal.Resource{Links: links, Value: body})
}

// chatMessage is a message that a client sends.
type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// The most that a client can send of a conversation.
const (
	maxChatMessages = 200
	maxChatText     = 512 << 10 // bytes
)

// chatMessages reads a conversation. Errors: errs.Invalid naming the message.
func chatMessages(in []chatMessage) ([]ai.Message, error) {
	if len(in) == 0 || len(in) > maxChatMessages {
		return nil, errs.New(errs.Invalid, "messages must have 1 to %d messages", maxChatMessages)
	}
	out, size := make([]ai.Message, len(in)), 0
	for i, m := range in {
		role := ai.Role(m.Role)
		switch {
		case role != ai.User && role != ai.Assistant:
			return nil, errs.New(errs.Invalid, "messages[%d].role must be user or assistant", i)
		case strings.TrimSpace(m.Content) == "":
			return nil, errs.New(errs.Invalid, "messages[%d].content must not be empty", i)
		}
		if size += len(m.Content); size > maxChatText {
			return nil, errs.New(
				errs.Invalid, "messages must have at most %d bytes of text: leave old ones out", maxChatText,
			)
		}
		out[i] = ai.Message{Role: role, Content: m.Content}
	}
	if out[len(out)-1].Role != ai.User {
		return nil, errs.New(
			errs.Invalid, "messages[%d].role must be user: the last message is the question", len(in)-1,
		)
	}
	return out, nil
}

// chatInput is what a client sends to a chat.
type chatInput struct {
	Messages []chatMessage      `json:"messages"`
	Model    rest.Field[string] `json:"model"`
}

// conversation returns the messages that a client has sent, and the model that it has named, "" for
// none. Errors: errs.Invalid.
func (a chats) conversation(in chatInput) (messages []ai.Message, model string, err error) {
	if messages, err = chatMessages(in.Messages); err != nil {
		return nil, "", err
	}
	in.Model.Apply(&model)
	if models := a.models(); model != "" && len(models) > 0 && !slices.Contains(models, model) {
		return nil, "", errs.New(errs.Invalid, "model must be one of %s", strings.Join(models, ", "))
	}
	return messages, model, nil
}

// chatWithApp serves POST /api/apps/{id}/chat: 200 and the answer of a model as server-sent events,
// see chatEvents. messages is the whole conversation, as nothing of it is kept. 400 for a model
// that there is not; 403 for those who may not run the app; 404; 429 for too many at once.
func (a appAssistRoutes) chatWithApp(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Decode[chatInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	app, told, err := a.chattable(r)
	if err != nil {
		return rest.Reply{}, err
	}
	messages, model, err := a.conversation(in)
	if err != nil {
		return rest.Reply{}, err
	}
	model = cmp.Or(model, a.chatModel(app))
	if told.Instructions, _, err = a.AIInstructions.Expand(r.Context(), app.Chat().Instructions); err != nil {
		return rest.Reply{}, err
	}
	bound := appDatasets{a.api, app, r.Who, make(map[string]string, len(app.Datasets))}
	for _, d := range app.Datasets {
		bound.ids[d.Alias] = d.DatasetID
	}
	o := chat.Options{
		Provider: a.AI, Tools: told.Tools(bound),
		Request: ai.Request{
			Model:    model,
			User:     modelUser(r),
			Messages: append([]ai.Message{{Role: ai.System, Content: told.System()}}, messages...),
		},
	}
	return a.chatEvents(r, func(context.Context) (chat.Options, func(), error) { return o, func() {}, nil }, "")
}

// The data of the events of a chat.
type (
	textEvent struct {
		Text string `json:"text"`
	}
	callEvent struct {
		ID        string `json:"id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	resultEvent struct {
		ID      string `json:"id"`
		Name    string `json:"name"`
		Content string `json:"content"`
		Failed  bool   `json:"failed"`
	}
	usageEvent struct {
		Model        string `json:"model"`
		InputTokens  int    `json:"inputTokens"`
		OutputTokens int    `json:"outputTokens"`
	}
	doneEvent struct {
		Finish ai.Finish `json:"finish"`
	}
	imageEvent struct {
		ContentType string `json:"contentType"`
		Data        []byte `json:"data"` // in base64
	}
	assistantEvent struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	}
)

// The most conversations that are open at once. Each has its skills open, such as connections to
// servers of tools and texts of files, also while it waits for a model or a person. So there are
// more of them than models answer: see chat.Places.
const (
	maxChatting         = 1024
	maxChattingOfTenant = 256
	maxChattingOfPerson = 32
)

// newChatting returns a limiter of open conversations. A quarter of them is kept for tenants that
// have none.
func newChatting() *limiter.Limiter {
	return limiter.New(limiter.Options{
		Capacity: maxChatting, Reserve: maxChatting / 4,
		PerKey: maxChattingOfTenant, PerSubkey: maxChattingOfPerson,
	})
}

// openChat counts an open conversation of the caller until leave is called. Errors: errs.Busy.
func (a chats) openChat(ctx context.Context, r *rest.Request) (leave func(), err error) {
	leave, err = a.chatting.Acquire(ctx, 1, r.Who.Tenant, person(r))
	if errors.Is(err, limiter.ErrBusy) {
		return nil, errs.New(
			errs.Busy,
			"Too many conversations are open for you, in this tenant or in all. Wait for one to end, or end one.",
		)
	}
	return leave, err
}

// chatEvents replies with the conversation that begin returns, as server-sent events: text,
// tool-call, confirm, tool-result, image and assistant as they happen, then usage and done, or
// error. What begin returns as end is called at the end, also after an error. Calls that must be
// confirmed are those of a conversation with an assistant, "" for none: nothing is confirmed there.
// Errors: errs.Busy if too many conversations are open, and begin is not called then; those of the
// conversation, until it has begun.
func (a chats) chatEvents(
	r *rest.Request, begin func(ctx context.Context) (o chat.Options, end func(), err error), assistant string,
) (rest.Reply, error) {
	return a.Events(func(ctx context.Context, send func(name string, data any) error) error {
		ctx = actor.With(ctx, r.Who)
		leave, err := a.openChat(ctx, r)
		if err != nil {
			return err
		}
		defer leave()
		o, end, err := begin(ctx)
		defer end()
		if err != nil {
			return err
		}
		if assistant != "" {
			o.Confirm = func(ctx context.Context, call ai.ToolCall) (bool, error) {
				return a.confirm(ctx, r, assistant, call, send)
			}
		}
		out, err := chat.Run(ctx, o, func(e chat.Event) error {
			switch {
			case e.Image != nil:
				defer r.Answer.Release()
				if err := r.Answer.Hold(3 * len(e.Image.Data)); err != nil { // also as base64, and as an event
					return err
				}
				return send("image", imageEvent{e.Image.ContentType, e.Image.Data})
			case e.Speaker != nil:
				return send("assistant", assistantEvent(*e.Speaker))
			case e.Call != nil:
				return send("tool-call", callEvent{e.Call.ID, e.Call.Name, e.Call.Arguments})
			case e.Result != nil:
				return send(
					"tool-result",
					resultEvent{e.Result.CallID, e.Result.Name, e.Result.Content, e.Result.Failed},
				)
			}
			return send("text", textEvent{e.Text})
		})
		if err != nil {
			return err
		}
		if err := send("usage", usageEvent{out.Model, out.Usage.InputTokens, out.Usage.OutputTokens}); err != nil {
			return err
		}
		return send("done", doneEvent{out.Finish})
	})
}

// suggestionsBody has questions.
type suggestionsBody struct {
	Suggestions []string `json:"suggestions"`
}

// Relations implements openapi.Related.
func (suggestionsBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:app", "inf:app-chat"}}
}

// getAppSuggestions serves GET /api/apps/{id}/suggestions: 200 and questions that can be asked
// about the app: those of its settings, else some about its datasets. No model is asked. 403 for
// those who may not run the app; 404.
func (a appAssistRoutes) getAppSuggestions(r *rest.Request) (rest.Reply, error) {
	app, told, err := a.chattable(r)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.suggestions(app, "suggestions", suggestionsOf(app, told)))
}

func (a appAssistRoutes) suggestions(app apps.App, route string, all []string) hal.Resource {
	self := a.href("apps", app.ID)
	return hal.Resource{
		Links: hal.Self(self+"/"+route).With("inf:app", self).With("inf:app-chat", self+"/chat"),
		Value: suggestionsBody{all},
	}
}

// ask calls do, which asks a model, with a context that bounds its time. Errors: those of do.
func (a chats) ask(r *rest.Request, do func(ctx context.Context) error) error {
	ctx, stop := a.Transfers.Stoppable(r.Context())
	defer stop(nil)
	ctx, cancel := context.WithTimeoutCause(
		ctx, suggestTimeout, errs.New(errs.Unavailable, "The model takes too long. Try again."),
	)
	defer cancel()
	return do(ctx)
}

// suggestAboutApp serves GET /api/apps/{id}/suggestions-ai: 200 and questions that a model
// suggests, as getAppSuggestions; 429 for too many at once; 502 if the model's answer has none.
func (a appAssistRoutes) suggestAboutApp(r *rest.Request) (rest.Reply, error) {
	app, told, err := a.chattable(r)
	if err != nil {
		return rest.Reply{}, err
	}
	var all []string
	if err := a.ask(r, func(ctx context.Context) (err error) {
		all, err = assist.Suggest(ctx, a.AI, modelUser(r), told)
		return err
	}); err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.suggestions(app, "suggestions-ai", all))
}

// suggestAppIcon serves POST /api/apps/{id}/_suggest-icon: 200 and the names of Google's Material
// Icons that a model finds fitting, the best one first; nothing is written. 403 for those who may
// not change the app; 404; 429; 502.
func (a appAssistRoutes) suggestAppIcon(r *rest.Request) (rest.Reply, error) {
	app, err := a.Apps.CheckRewrite(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	told, err := a.promptApp(r, app)
	if err != nil {
		return rest.Reply{}, err
	}
	var icons []string
	if err := a.ask(r, func(ctx context.Context) (err error) {
		icons, err = assist.SuggestIcons(ctx, a.AI, modelUser(r), told)
		return err
	}); err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(iconsBody{icons[0], icons})
}

// modernizeAppManifest serves POST /api/apps/{id}/_modernize-manifest: 200 and the manifest as it
// is and in the format of today, which can be read; nothing is written. added has the calls that it
// allows and the old one does not. 403 for those who may not change the app; 404; 413; 429; 502 if
// the model's answer is no manifest.
func (a appAssistRoutes) modernizeAppManifest(r *rest.Request) (rest.Reply, error) {
	path, old, files, err := a.Apps.ManifestFile(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	var m assist.Modernized
	if err := a.ask(r, func(ctx context.Context) (err error) {
		m, err = assist.Modernize(ctx, a.AI, modelUser(r), Manifests(), path, old, files)
		return err
	}); err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(modernizedBody{path, old, m.Text, m.Changes, m.Added})
}
