// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// setupAttrs returns the attributes of a mark that describe how the following turns
// are made.
func setupAttrs(s *session.Setup) []chatmd.Attr {
	if s == nil {
		return nil
	}
	return []chatmd.Attr{
		{Name: "program", Value: s.Program},
		{Name: "model", Value: s.Model},
		{Name: "rehearsal", Bare: s.Rehearsal},
		{Name: "endpoint", Value: s.Endpoint},
		{Name: "api", Value: s.API},
		{Name: "transport", Value: s.Transport},
		{Name: "profile", Value: s.Profile},
		{Name: "settings", Value: string(s.Settings)},
		{Name: "instructions", Value: s.Instructions},
		{Name: "tools", Value: hashes(s.Tools)},
		{Name: "files", Value: hashes(s.Files)},
	}
}

// hashes returns a JSON object of names and hashes. A name may be repeated.
func hashes(list []session.Hashed) string {
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	for i, h := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(string(item.Quote(h.Name)) + ":" + string(item.Quote(h.Hash)))
	}
	return "{" + b.String() + "}"
}

// SetupOf returns the setup that a mark describes, or nil if it describes none.
func SetupOf(e chatmd.Element) (*session.Setup, error) {
	s := &session.Setup{
		Program: e.Value("program"), Model: e.Value("model"), Rehearsal: e.Flag("rehearsal"),
		Endpoint: e.Value("endpoint"), API: e.Value("api"), Transport: e.Value("transport"), Profile: e.Value("profile"),
		Settings: item.JSON(e.Value("settings")), Instructions: e.Value("instructions"),
	}
	if s.Settings != "" {
		if err := s.Settings.Valid(); err != nil {
			return nil, fmt.Errorf("settings: %w", err)
		}
	}
	var err error
	if s.Tools, err = readHashes(e.Value("tools")); err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	if s.Files, err = readHashes(e.Value("files")); err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	if s.IsZero() {
		return nil, nil
	}
	return s, nil
}

func readHashes(text string) (list []session.Hashed, err error) {
	if text == "" {
		return nil, nil
	}
	d := jsontext.NewDecoder(bytes.NewReader([]byte(text)), jsontext.AllowDuplicateNames(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, fmt.Errorf("not a JSON object of names and hashes: %.60s", text)
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		h := session.Hashed{Name: name.String()}
		value, err := d.ReadToken()
		if err != nil || value.Kind() != '"' {
			return nil, fmt.Errorf("not a JSON object of names and hashes: %.60s", text)
		}
		h.Hash = value.String()
		list = append(list, h)
	}
	return list, nil
}
