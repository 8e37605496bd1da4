package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/paging"
)

// commentRoutes serves comments, activities and the feed.
type commentRoutes struct{ *api }

// routes returns the rows of the route table, but those of entityCommentRoutes.
func (a commentRoutes) routes() []rest.Route {
	return []rest.Route{
		{
			Method:  get,
			Pattern: "/api/comments/:id",
			Name:    "getComment",
			Grants:  nothing,
			Summary: "One comment with its author",
			Gives:   openapi.OK(openapi.One[commentBody]()),
			Fails:   []int{400, 404},
			Handle:  a.getComment,
		},
		{
			Method:  get,
			Pattern: "/api/comments/:id/replies",
			Name:    "listReplies",
			Grants:  nothing,
			Query:   paged,
			Summary: "The replies to a comment",
			Gives:   openapi.OK(openapi.Page[commentBody]("inf:comment")),
			Fails:   []int{400},
			Handle:  a.listReplies,
		},
		{
			Method:  post,
			Pattern: "/api/comments/:id/replies",
			Name:    "createReply",
			Drops:   true,
			Grants:  nothing,
			Writes:  rest.InTx,
			Summary: "Reply to a comment",
			Takes:   openapi.Input[replyInput](),
			Gives:   openapi.Created(openapi.One[commentBody]()),
			Fails:   []int{400, 404},
			Handle:  a.createReply,
		},
		{
			Method:  put,
			Pattern: "/api/comments/:id",
			Name:    "putComment",
			Drops:   true,
			Grants:  nothing,
			Row:     "comment",
			Writes:  rest.InTx,
			Summary: "Change a comment",
			Takes:   openapi.Update[commentUpdate, commentBody](),
			Gives:   openapi.OK(openapi.One[commentBody]()),
			Fails:   []int{400, 403},
			Handle:  a.putComment,
		},
		{
			Method:  del,
			Pattern: "/api/comments/:id",
			Name:    "deleteComment",
			Grants:  nothing,
			Row:     "comment",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Remove a comment with its replies",
			Gives:   openapi.OK(openapi.None()),
			Fails:   []int{403, 404},
			Handle:  a.deleteComment,
		},
		{
			Method:  get,
			Pattern: "/api/activities",
			Name:    "listActivities",
			Grants:  nothing,
			Query:   append(slices.Clone(paged), "entityType", "entityId"),
			Summary: "What happened to content",
			Gives:   openapi.OK(openapi.Page[activityBody]("inf:activity")),
			Fails:   []int{400, 404},
			Handle:  a.listActivities,
		},
		{
			Method:  get,
			Pattern: "/api/activities/:id",
			Name:    "getActivity",
			Grants:  nothing,
			Summary: "One activity",
			Gives:   openapi.OK(openapi.One[activityBody]()),
			Fails:   []int{404},
			Handle:  a.getActivity,
		},
		{
			Method:  get,
			Pattern: "/api/users/:username/feed",
			Name:    "listFeed",
			Grants:  nothing,
			Query:   paged,
			Summary: "What others did that concerns a user",
			Gives:   openapi.OK(openapi.Page[activityBody]("inf:activity")),
			Fails:   []int{403, 404},
			Handle:  a.listFeed,
		},
	}
}

// entityCommentRoutes serves the comments on entities.
type entityCommentRoutes struct{ commentRoutes }

// routes returns GET and POST /api/{plural}/{id}/comments for each kind that can be commented; id
// is an id or a natural id. GET returns 200 and a page of the comments that reply to none, as
// listReplies does; POST {message?} returns 201 and the comment, as createReply does.
func (a entityCommentRoutes) routes() (all []rest.Route) {
	for _, p := range slices.Concat(commentParents, a.HostParents) {
		pattern := commentsPattern(p)
		title := string(p.Kind[0]-'a'+'A') + string(p.Kind[1:])
		reads, writes := nothing, nothing
		switch p.Kind {
		case apps.Kind: // all of apps is closed to apps
			reads, writes = programs, programs
		case "team": // and all writes to teams
			writes = rights
		}
		var guard func(*rest.Request) error
		if p.Kind == assistants.Kind && !slices.Contains(a.HostKinds, p.Kind) {
			guard = a.needsAI
		}
		all = append(all,
			rest.Route{
				Method:  get,
				Pattern: pattern,
				Name:    "list" + title + "Comments",
				Grants:  reads,
				Query:   paged,
				Summary: "The comments on a " + string(p.Kind),
				Guard:   guard,
				Gives:   openapi.OK(openapi.Page[commentBody]("inf:comment")),
				Fails:   []int{404},
				Handle:  a.listCommentsOf(p.Kind),
			},
			rest.Route{
				Method:  post,
				Pattern: pattern,
				Name:    "create" + title + "Comment",
				Grants:  writes,
				Writes:  rest.InTx,
				Summary: "Comment on a " + string(p.Kind),
				Guard:   guard,
				Takes:   openapi.Input[commentInput](),
				Gives:   openapi.Created(openapi.One[commentBody]()),
				Fails:   []int{400, 404},
				Handle:  a.createCommentOn(p.Kind),
			},
		)
	}
	return all
}

// besideComment has the members of a comment that are not in its row.
type besideComment struct {
	May      comments.Permissions
	Mentions []comments.Mention
	Author   json.RawMessage
}

// comment encodes a comment, whose author is embedded or a member.
func (a commentRoutes) comment(c comments.Comment, author json.RawMessage) hal.Resource {
	links := hal.Self(a.href("comments", c.ID)).With("inf:comments", a.href("comments", c.ID, "replies"))
	if href := a.entityHref(c.Entity.Kind, c.Entity.ID); href != "" {
		links.With("inf:entity", href)
	}
	if c.ParentID != nil {
		links.With("inf:parent", a.href("comments", *c.ParentID))
	}
	return hal.Resource{
		Links:  links,
		Value:  commentBody{Comment: c},
		Row:    c,
		Beside: besideComment{c.May, c.Mentions, author},
	}
}

// authors returns the authors of comments by name, each encoded once for the caller. It runs one
// statement.
func (a commentRoutes) authors(ctx context.Context, all ...comments.Comment) (map[string]json.RawMessage, error) {
	who, err := actor.From(ctx)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	var names []string
	for _, c := range all {
		if !c.AuthorGone {
			names = append(names, c.UserID)
		}
	}
	users, err := a.Principals.UsersByName(ctx, names)
	if err != nil {
		return nil, err
	}
	encoded := make(map[string]json.RawMessage, len(users))
	for name, u := range users {
		if encoded[name], err = userRoutes(a).user(who, u).MarshalJSON(); err != nil {
			return nil, err
		}
	}
	return encoded, nil
}

// authorOf returns the author of a comment, null if the author was deleted, even if another user
// has the name now.
func authorOf(c comments.Comment, authors map[string]json.RawMessage) json.RawMessage {
	if author, ok := authors[c.UserID]; ok && !c.AuthorGone {
		return author
	}
	return json.RawMessage("null")
}

// signed encodes a comment with its author embedded.
func (a commentRoutes) signed(c comments.Comment, authors map[string]json.RawMessage) hal.Resource {
	author := authorOf(c, authors)
	res := a.comment(c, author)
	res.Embedded = hal.Embedded{"inf:user": author}
	return res
}

// commentList encodes a page of comments with their authors: the page's rows and all of its authors
// are one statement each.
func (a commentRoutes) commentList(
	r *rest.Request, page func(q paging.Query) (paging.Page[comments.Comment], error),
) (rest.Reply, error) {
	q, err := r.Page(100)
	if err != nil {
		return rest.Reply{}, err
	}
	rows, err := page(q)
	if err != nil {
		return rest.Reply{}, err
	}
	authors, err := a.authors(r.Context(), rows.Rows...)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(rest.Collection(a.BaseURL, r, q, rows, "inf:comment", nil, func(c comments.Comment) hal.Resource {
		return a.signed(c, authors)
	}))
}

// replyInput is a new reply. A reply may have members that are not known.
type replyInput commentInput

// commentInput is a new comment.
type commentInput struct {
	Message string `json:"message"`
}

// createdComment encodes a new comment: 201 and the comment with its author.
func (a commentRoutes) createdComment(
	r *rest.Request, create func(message string) (comments.Comment, error),
) (rest.Reply, error) {
	in, err := rest.Decode[commentInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	c, err := create(in.Message)
	if err != nil {
		return rest.Reply{}, err
	}
	authors, err := a.authors(r.Context(), c)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.Created(a.href("comments", c.ID), a.signed(c, authors))
}

// getComment serves GET /api/comments/{id}: 200 and the comment with its author; 400 for an id that
// is no UUID; 404. Here and wherever a comment has its author, one who has been deleted is null:
// userId alone says who it was. A user who gets that name later is somebody else: neither shown as
// the author nor let to edit or delete the comment.
func (a commentRoutes) getComment(r *rest.Request) (rest.Reply, error) {
	c, err := a.Comments.Get(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	authors, err := a.authors(r.Context(), c)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.signed(c, authors))
}

// listReplies serves GET /api/comments/{id}/replies: 200 and a page of the direct replies with
// their authors, 100 unless limit says otherwise, newest first unless sort says otherwise
// (createdAt).
func (a commentRoutes) listReplies(r *rest.Request) (rest.Reply, error) {
	return a.commentList(r, func(q paging.Query) (paging.Page[comments.Comment], error) {
		return a.Comments.Replies(r.Context(), r.Param("id"), q)
	})
}

// createReply serves POST /api/comments/{id}/replies {message?}: 201 and the reply with its author;
// 400 "Unknown entity type for comment" when what the comment is about cannot be looked up. No
// message is an empty one. The first 100 places of it that may be an @mention are looked at; what
// comes after them is kept as text, and mentions nobody.
func (a commentRoutes) createReply(r *rest.Request) (rest.Reply, error) {
	return a.createdComment(r, func(message string) (comments.Comment, error) {
		return a.Comments.Reply(r.Context(), r.Param("id"), message)
	})
}

// commentUpdate is a change of a comment.
type commentUpdate struct {
	Message *string `json:"message"`
	Public  *bool   `json:"public"`
}

// putComment serves PUT /api/comments/{id} {message?, public?}: 200 and the changed comment with
// its author under user; what the body leaves out stays. For the author, superusers, admins, and
// who owns what the comment is about.
func (a commentRoutes) putComment(r *rest.Request) (rest.Reply, error) {
	in, err := rest.DecodeUpdate[commentUpdate](r, commentBody{})
	if err != nil {
		return rest.Reply{}, err
	}
	c, err := a.Comments.Update(r.Context(), r.Param("id"), comments.Edit{Message: in.Message, Public: in.Public})
	if err != nil {
		return rest.Reply{}, err
	}
	authors, err := a.authors(r.Context(), c)
	if err != nil {
		return rest.Reply{}, err
	}
	author := authorOf(c, authors)
	res := a.comment(c, author)
	res.Value = commentBody{Comment: c, user: author}
	return rest.OK(res)
}

// deleteComment serves DELETE /api/comments/{id}: 200, and all replies below it go too. For the
// author and superusers.
func (a commentRoutes) deleteComment(r *rest.Request) (rest.Reply, error) {
	if err := a.Comments.Delete(r.Context(), r.Param("id")); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}

// checkPlurals returns errs.Invalid for a kind of the host whose paths would begin as those of
// another kind, or of other routes.
func (a commentRoutes) checkPlurals(routes []rest.Route) error {
	for i, p := range a.HostParents {
		if holder := a.holderOf(p, a.HostParents[:i], routes); holder != "" {
			return errs.New(errs.Invalid,
				"Config.Entities: the Plural %q of the kind %q is taken by %s, so its comments would have no path "+
					"of their own: "+
					"give the kind another Plural", p.Plural, p.Kind, holder)
		}
	}
	return nil
}

// holderOf returns what else has the plural of a kind of the host, "" for nothing.
func (a commentRoutes) holderOf(p comments.Parent, others []comments.Parent, routes []rest.Route) string {
	for _, o := range slices.Concat(others, commentParents) {
		if o.Plural == p.Plural && o.Kind != p.Kind {
			return fmt.Sprintf("the kind %q", o.Kind)
		}
	}
	for kind, plural := range a.plurals {
		if plural == p.Plural && kind != p.Kind {
			return fmt.Sprintf("the kind %q", kind)
		}
	}
	for _, r := range routes {
		path := strings.Split(r.Pattern, "/")
		if len(path) > 2 && path[2] == p.Plural && r.Pattern != commentsPattern(p) {
			return fmt.Sprintf("the route %s %s", r.Method, r.Pattern)
		}
	}
	return ""
}

// commentsPattern returns the pattern of the routes for the comments on entities of a kind.
func commentsPattern(p comments.Parent) string { return "/api/" + p.Plural + "/:id/comments" }

func (a commentRoutes) listCommentsOf(kind entity.Kind) func(r *rest.Request) (rest.Reply, error) {
	return func(r *rest.Request) (rest.Reply, error) {
		return a.commentList(r, func(q paging.Query) (paging.Page[comments.Comment], error) {
			return a.Comments.List(r.Context(), entity.Key{Kind: kind, ID: r.Param("id")}, q)
		})
	}
}

func (a commentRoutes) createCommentOn(kind entity.Kind) func(r *rest.Request) (rest.Reply, error) {
	return func(r *rest.Request) (rest.Reply, error) {
		return a.createdComment(r, func(message string) (comments.Comment, error) {
			return a.Comments.Create(r.Context(), entity.Key{Kind: kind, ID: r.Param("id")}, message)
		})
	}
}

func (a commentRoutes) activity(v comments.Activity) hal.Resource {
	links := a.about(v.Entity, v.CommentID).With(
		"self", a.href("activities", v.ID),
	).With("inf:activities", a.href("activities"))
	return hal.Resource{Links: links, Value: activityBody(v)}
}

// about returns the links to what a row is about.
func (a commentRoutes) about(of entity.Key, comment *string) hal.Links {
	links := hal.Links{}
	if comment != nil {
		links.With("inf:comment", a.href("comments", *comment))
	}
	if href := a.entityHref(of.Kind, of.ID); href != "" {
		links.With("inf:entity", href)
	}
	return links
}

// getActivity serves GET /api/activities/{id}: 200 and the activity; 404.
func (a commentRoutes) getActivity(r *rest.Request) (rest.Reply, error) {
	v, err := a.Comments.Activity(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.activity(v))
}

// listActivities serves GET /api/activities?entityType=&entityId=: 200 and a page of the activities
// on an entity, whose entityId is an id or a natural id, or of all of the tenant without both, 100
// unless limit says otherwise, newest first unless sort says otherwise (createdAt); 400 for one of
// both alone; 404.
func (a commentRoutes) listActivities(r *rest.Request) (rest.Reply, error) {
	query, err := rest.ParseQuery(r.Request)
	if err != nil {
		return rest.Reply{}, err
	}
	return a.activityList(r, func(q paging.Query) (paging.Page[comments.Activity], error) {
		return a.Comments.Activities(r.Context(), entity.Key{
			Kind: entity.Kind(query.Get("entityType")), ID: query.Get("entityId"),
		}, q)
	})
}

// listFeed serves GET /api/users/{username}/feed: 200 and a page of the activities of others that
// concern the user: on content that the user owned when they happened, in reply to the user, or
// with a mention of the user. Paged as listActivities. For the user and superusers; 404.
func (a commentRoutes) listFeed(r *rest.Request) (rest.Reply, error) {
	return a.activityList(r, func(q paging.Query) (paging.Page[comments.Activity], error) {
		return a.Comments.Feed(r.Context(), r.Param("username"), q)
	})
}

func (a commentRoutes) activityList(
	r *rest.Request, page func(q paging.Query) (paging.Page[comments.Activity], error),
) (rest.Reply, error) {
	q, err := r.Page(100)
	if err != nil {
		return rest.Reply{}, err
	}
	rows, err := page(q)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(rest.Collection(a.BaseURL, r, q, rows, "inf:activity", nil, a.activity))
}
