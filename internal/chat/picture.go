// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"image"
)

// picture shows an image, given its data URI, below a line with its name, type and size.
func (t *dialogue) picture(ctx context.Context, name, uri string) {
	t.print.Depict(ctx, name, uri, t.face.picture)
}

func (f *liveFace) picture(load func(width, height int) (image.Image, error)) error {
	return f.t.Picture(load)
}

// picture shows nothing: the line above it says what there is.
func (f *plainFace) picture(func(width, height int) (image.Image, error)) error { return nil }
