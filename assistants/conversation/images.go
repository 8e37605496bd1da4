package conversation

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/chat"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
)

// The bounds of images.
const (
	maxImages = 4       // of one conversation
	maxImage  = 8 << 20 // bytes
	maxPrompt = 4000    // characters
)

var imageSize = regexp.MustCompile(`^(auto|[1-9][0-9]{1,3}x[1-9][0-9]{1,3})$`)

// imageTypes are the content types of images. None has scripts.
func imageTypes() []string { return []string{"image/png", "image/jpeg", "image/webp", "image/gif"} }

// openImages opens the skill images: it makes images that the person sees.
func (s *Service) openImages(_ context.Context, u Use) ([]Tool, func(), error) {
	return []Tool{{
		Tool: ai.Tool{
			Name: "make_image", Description: "Makes an image and shows it to the person. You do not see it.",
			Parameters: json.RawMessage(`{"type":"object","properties":` +
				`{"prompt":{"type":"string","description":"What the image shows"},` +
				`"size":{"type":"string","description":"Such as 1024x1024"}},"required":["prompt"]}`),
		},
		Run: func(ctx context.Context, c ai.ToolCall) (string, error) {
			var in struct {
				Prompt string `json:"prompt"`
				Size   string `json:"size"`
			}
			if err := json.Unmarshal([]byte(c.Arguments), &in); err != nil {
				return "", errs.New(errs.Invalid, "prompt and size must be text.")
			}
			if *u.images >= maxImages {
				return "", errs.New(errs.Forbidden, "A conversation has at most %d images at once.", maxImages)
			}
			*u.images++
			wanted := ai.ImageRequest{Prompt: in.Prompt, Size: in.Size, User: u.user}
			return "The image is shown to the person.", s.Image(ctx, wanted, func(image ai.Image) error {
				return chat.Emit(ctx, chat.Event{Image: &image})
			})
		},
	}}, nil, nil
}

// Image makes an image for the caller, and calls use with it. Few are made at once, in turn by
// tenant. Errors: as ai.Imager and use; errs.Invalid naming the field prompt or size;
// errs.Unavailable if no model makes images, or too many are made; errs.Upstream for an image that
// is too large, or none that browsers only show.
func (s *Service) Image(ctx context.Context, r ai.ImageRequest, use func(ai.Image) error) error {
	a, err := actor.From(ctx)
	if err != nil {
		return err
	}
	imager, err := imagerOf(s.o.Provider)
	switch {
	case err != nil:
		return err
	case strings.TrimSpace(r.Prompt) == "" || utf8.RuneCountInString(r.Prompt) > maxPrompt:
		return errs.New(errs.Invalid, "prompt must have 1 to %d characters", maxPrompt)
	case r.Size != "" && !imageSize.MatchString(r.Size):
		return errs.New(errs.Invalid, "size must be auto or width and height such as 1024x1024")
	}
	leave, err := s.making.Acquire(ctx, 1, a.Tenant)
	if err != nil {
		return limiter.Unavailable(err, "Too many images are made at the moment. Try again.")
	}
	defer leave()
	image, err := imager.Image(ctx, r)
	leave() // who receives it can be slow
	if err != nil {
		return err
	}
	if !slices.Contains(imageTypes(), image.ContentType) {
		return errs.New(errs.Upstream, "The model has made an image of the type %.100q.", image.ContentType)
	}
	if len(image.Data) > maxImage {
		return errs.New(
			errs.Upstream, "The model has made an image of %d bytes, where %d are allowed.", len(image.Data),
			maxImage,
		)
	}
	return use(image)
}

// MakesImages returns errs.Unavailable if no model makes images.
func MakesImages(p ai.Provider) error {
	_, err := imagerOf(p)
	return err
}

func imagerOf(p ai.Provider) (ai.Imager, error) {
	if err := ai.Configured(p); err != nil {
		return nil, err
	}
	if imager, ok := p.(ai.Imager); ok {
		return imager, nil
	}
	return nil, errs.New(
		errs.Unavailable,
		"This server has no model that makes images. Its operator configures one: ImageModel of the provider in a "+
			"program, TENANTCONTENT_AI_IMAGE_MODEL for the server.",
	)
}
