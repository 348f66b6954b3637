// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import "context"

type mayKey struct{}

// WithPlace returns a context whose calls ask whether they may use the place that a path of
// theirs leads to; see [CheckPlace]. The function gets the path and another function, which reports
// whether the place is in a folder, as a rule names it. It may be called by several goroutines at
// once. Nil allows all places.
func WithPlace(ctx context.Context, may func(path string, within func(folder string) bool) error) context.Context {
	return context.WithValue(ctx, mayKey{}, may)
}

// CheckPlace returns an error if a call may not use the place that a path of it leads to. A tool with
// [Annotations.Folders] calls it for each of its paths once the place is open, and so cannot change
// any more: rules about folders were held against the path, and another program may have changed the
// links on the way since. The path is the argument as the model wrote it: rules about other arguments
// say nothing about this place. A path that no argument is, such as one in the text of a patch, is held
// against the rules about folders of all arguments. The function within reports whether the place is in a folder.
func CheckPlace(ctx context.Context, path string, within func(folder string) bool) error {
	may, ok := ctx.Value(mayKey{}).(func(string, func(string) bool) error)
	if !ok || may == nil || within == nil {
		return nil
	}
	return may(path, within)
}
