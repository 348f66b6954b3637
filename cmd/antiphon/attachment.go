// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/decode"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/toolkit/web"
)

// attached returns the contents of -f as parts of a message.
func (c *runCommand) attached(ctx context.Context) (parts []item.Part, err error) {
	for _, name := range c.Attach {
		part, err := attachment(ctx, name)
		if err != nil {
			return nil, usage(fmt.Errorf("-f %s: %w", name, err))
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// attachment returns a file or a URL as a part of a message. Images and PDF files that have a
// URL are sent as that URL, and the endpoint fetches them; pages are fetched here and sent as
// text.
func attachment(ctx context.Context, name string) (item.Part, error) {
	if at, err := url.Parse(name); err == nil && (at.Scheme == "https" || at.Scheme == "http") && at.Host != "" {
		return linked(ctx, name, strings.ToLower(path.Ext(at.Path)))
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, errors.Unwrap(err) // without the name again
	case info.IsDir():
		return nil, errors.New("it is a folder; name its files, or ask about the folder, which the assistant can read")
	case info.Size() > output.MaxFileBytes:
		return nil, fmt.Errorf("it has more than %d MiB", output.MaxFileBytes>>20)
	}
	return unlessEnded(ctx, func() (item.Part, error) { // a pipe waits for its writer
		f, err := os.Open(name)
		if err != nil {
			return nil, errors.Unwrap(err)
		}
		defer f.Close()
		return decode.ReadPart(name, f)
	})
}

// unlessEnded returns what read returns, or the cause of ctx if that ends before: read may wait for another program for ever.
func unlessEnded[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// linked returns what is behind a URL.
func linked(ctx context.Context, link, extension string) (item.Part, error) {
	switch extension {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp":
		return &item.InputImage{ImageURL: link, Detail: item.DetailAuto}, nil
	case ".pdf":
		return &item.InputFile{FileURL: link}, nil
	}
	docs, err := web.NewDocuments(web.Options{})
	if err != nil {
		return nil, err
	}
	data, contentType, err := docs.Fetch(ctx, link)
	if err != nil {
		return nil, err
	}
	switch kind, _, _ := strings.Cut(contentType, ";"); {
	case strings.HasSuffix(kind, "html"):
		text, err := web.HTMLToMarkdown(ctx, data, contentType, link)
		return decode.TextPart(link, text), err
	case utf8.Valid(data) && output.IsText(data):
		return decode.TextPart(link, string(data)), nil
	}
	return decode.Part(link, data)
}
