// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// bom is a CycloneDX document: https://cyclonedx.org/docs/1.5/json/.
type bom struct {
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    bomMetadata `json:"metadata"`
	Components  []component `json:"components"`
	// Dependencies say that the program depends on all components. Which module needs
	// which is not in a binary.
	Dependencies []dependency `json:"dependencies"`
}

type bomMetadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitzero"`
	PURL       string     `json:"purl,omitzero"`
	Properties []property `json:"properties,omitzero"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// writeSBOM prints what the linker recorded in the program: its modules with their
// checksums, and the version of Go, whose standard library is part of it too.
func writeSBOM(out io.Writer) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("this program was built without the list of its modules")
	}
	return errors.Join(json.MarshalWrite(out, bomOf(info), jsontext.WithIndent("  ")), newline(out))
}

func bomOf(info *debug.BuildInfo) bom {
	self := component{Type: "application", Name: "antiphon", Version: programVersion(), Ref: "antiphon"}
	for _, s := range info.Settings {
		if strings.HasPrefix(s.Key, "vcs") || s.Key == "GOOS" || s.Key == "GOARCH" || s.Key == "CGO_ENABLED" {
			self.Properties = append(self.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	b := bom{Format: "CycloneDX", SpecVersion: "1.5", Version: 1, Metadata: bomMetadata{self}}
	all := dependency{Ref: self.Ref}
	add := func(name, version, sum string) {
		c := component{Type: "library", Name: name, Version: version, PURL: "pkg:golang/" + name + "@" + strings.ReplaceAll(version, "+", "%2B")}
		c.Ref = c.PURL
		if sum != "" {
			c.Properties = []property{{"go:sum", sum}}
		}
		b.Components = append(b.Components, c)
		all.DependsOn = append(all.DependsOn, c.Ref)
	}
	add("std", strings.TrimPrefix(runtime.Version(), "go"), "")
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		add(m.Path, m.Version, m.Sum)
	}
	b.Dependencies = []dependency{all}
	return b
}
