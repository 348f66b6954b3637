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

// CheckPlace returns an error if the call may not use the file or folder that path leads to. A tool with
// [Annotations].Folders calls it for each path after opening it, because the rules were checked against the
// text of the path, and another program may have changed a link on the way since.
//
// path is the argument as the model wrote it; only rules about this argument apply. For a path that is not
// an argument in the tool's schema, such as one inside a patch, the folder rules of all arguments apply. Pass ""
// if no argument means this path, because the model may write the same text into another one, such as the
// words of a search. within reports whether the open file or folder is in a folder that a rule names.
func CheckPlace(ctx context.Context, path string, within func(folder string) bool) error {
	may, ok := ctx.Value(mayKey{}).(func(string, func(string) bool) error)
	if !ok || may == nil || within == nil {
		return nil
	}
	return may(path, within)
}
