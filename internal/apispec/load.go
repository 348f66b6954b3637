// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package apispec

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Document is the API document's place below the folder of shared data.
const Document = "spec/openai-responses.openapi.json"

// Load returns the API document in the [Lenient] reading. It skips the test
// where the document is missing and fails it where the document is broken. The
// document is read once in a process.
func Load(t testing.TB) *Spec {
	t.Helper()
	return LoadAs(t, Lenient)
}

// LoadAs is [Load] in another reading.
func LoadAs(t testing.TB, r Reading) *Spec {
	t.Helper()
	path := filepath.Join(Shared(t, "spec"), filepath.Base(Document))
	s, err := read(path, r)
	if err != nil {
		t.Fatalf("API document: %v", err)
	}
	return s
}

// Shared returns the path of a folder of the data that tests share, "spec" or
// "corpus": the one beside the checkout, where the authors have all recordings, or
// else the samples in this package's testdata.
func Shared(t testing.TB, folder string) string {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(filepath.Dir(root), "shared", folder)
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		path = filepath.Join(root, "internal", "apispec", "testdata", folder)
		t.Logf("shared/%s is not beside the checkout: samples are read", folder)
	}
	return path
}

// moduleRoot returns the nearest folder with a go.mod, upwards from the working
// directory, which for a test is its package's.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", os.ErrNotExist
		}
		dir = parent
	}
}

var cache = struct {
	sync.Mutex
	specs map[cacheKey]*Spec
}{specs: map[cacheKey]*Spec{}}

type cacheKey struct {
	path    string
	reading Reading
}

func read(path string, r Reading) (*Spec, error) {
	cache.Lock()
	defer cache.Unlock()
	key := cacheKey{path, r}
	if s := cache.specs[key]; s != nil {
		return s, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s, err := New(data, r)
	if err != nil {
		return nil, err
	}
	cache.specs[key] = s
	return s, nil
}
