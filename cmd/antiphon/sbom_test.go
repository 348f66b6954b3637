// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// The list of modules is a CycloneDX document: the members that its schema requires are
// there, references are unique and exist, and each module is one of go.mod's, with the
// checksum of go.sum.
func TestSBOM(t *testing.T) {
	o := program(t, "version", "--sbom")
	if o.code != 0 {
		t.Fatal(o.err)
	}
	var b bom
	if err := json.Unmarshal([]byte(o.out), &b, json.RejectUnknownMembers(true)); err != nil {
		t.Fatal(err)
	}
	if b.Format != "CycloneDX" || b.SpecVersion != "1.5" || b.Version < 1 || b.Metadata.Component.Type != "application" || b.Metadata.Component.Name == "" {
		t.Errorf("%+v", b)
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile("../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	refs := map[string]bool{b.Metadata.Component.Ref: true}
	purl := regexp.MustCompile(`^pkg:golang/[A-Za-z0-9._~/-]+@[A-Za-z0-9._~%-]+$`)
	for _, c := range b.Components {
		if c.Type != "library" || c.Name == "" || c.Version == "" || !purl.MatchString(c.PURL) || refs[c.Ref] {
			t.Errorf("%+v", c)
		}
		refs[c.Ref] = true
		if c.Name == "std" {
			continue
		}
		if !strings.Contains(string(mod), "\t"+c.Name+" "+c.Version) || len(c.Properties) != 1 || !strings.Contains(string(sums), c.Name+" "+c.Version+" "+c.Properties[0].Value) {
			t.Errorf("not in go.mod and go.sum: %+v", c)
		}
	}
	if len(b.Dependencies) != 1 || len(b.Dependencies[0].DependsOn) != len(b.Components) || len(b.Components) < 5 {
		t.Errorf("%d components, dependencies %+v", len(b.Components), b.Dependencies)
	}
	for _, ref := range b.Dependencies[0].DependsOn {
		if !refs[ref] {
			t.Errorf("nothing has the reference %s", ref)
		}
	}
}
