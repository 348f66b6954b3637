// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/server/access"
)

// The file has no secret, only its owner reads it, and another process sees each change.
func TestKeysFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "keys.json")
	keys, other := access.OpenKeys(path), access.OpenKeys(path)
	if list, err := other.List(); err != nil || len(list) != 0 {
		t.Fatal(list, err)
	}
	sent, made, err := keys.Create(t.Context(), access.Key{Name: "ci", Project: "shop", Scopes: []access.Scope{access.ScopeModels}, Limits: access.Limits{Requests: 5, Cost: 1.5}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, secret, _ := strings.Cut(strings.TrimPrefix(sent, "antiphon_"), "_")
	if len(secret) < 26 || strings.Contains(string(text), secret) || !strings.Contains(string(text), made.ID) {
		t.Errorf("%s: %s", sent, text)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	if list, err := other.List(); err != nil || len(list) != 1 || fmt.Sprint(list[0]) != fmt.Sprint(made) {
		t.Error(list, err)
	}
	if revoked, err := other.Revoke(t.Context(), "ci"); err != nil || revoked.ID != made.ID || revoked.Valid(time.Now()) {
		t.Error(revoked, err)
	}
	if list, err := keys.List(); err != nil || list[0].Revoked.IsZero() {
		t.Error(list, err)
	}
	if _, err := keys.Revoke(t.Context(), made.ID); err == nil || !strings.Contains(err.Error(), made.ID) {
		t.Error(err)
	}
	if _, again, err := keys.Create(t.Context(), access.Key{Name: "ci", Project: "shop", Scopes: access.Scopes}); err != nil || again.ID == made.ID {
		t.Error("the name of a revoked key is free:", err)
	}
}

func TestKeysRefused(t *testing.T) {
	keys := access.OpenKeys(filepath.Join(t.TempDir(), "keys.json"))
	good := access.Key{Name: "a", Project: "p", Scopes: access.Scopes}
	if _, _, err := keys.Create(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*access.Key){
		"there is a key":  func(*access.Key) {},
		"name of a key":   func(k *access.Key) { k.Name = "a b" },
		"of a project":    func(k *access.Key) { k.Name, k.Project = "b", "" },
		"needs a scope":   func(k *access.Key) { k.Name, k.Scopes = "b", nil },
		"is not a scope":  func(k *access.Key) { k.Name, k.Scopes = "b", []access.Scope{"root"} },
		"negative":        func(k *access.Key) { k.Name, k.Limits.Cost = "b", -1 },
		"already expired": func(k *access.Key) { k.Name, k.Expires = "b", time.Now().Add(-time.Hour) },
	} {
		key := good
		change(&key)
		if _, _, err := keys.Create(t.Context(), key); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	if _, _, err := new(access.Keys).Create(t.Context(), good); err == nil {
		t.Error("keys without a file")
	}
}

// Keys that many processes create at once are all there.
func TestKeysAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if _, _, err := access.OpenKeys(path).Create(t.Context(), access.Key{Name: fmt.Sprint("k", i), Project: "p", Scopes: access.Scopes}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if list, err := access.OpenKeys(path).List(); err != nil || len(list) != 20 {
		t.Error(len(list), err)
	}
}

// A file that others can write to, or that is damaged, gives no access. V6
func TestKeysDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	for text, want := range map[string]string{`{"version":1,"keys":[`: "keys.json", `{"version":9}`: "version 9"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		keys := access.OpenKeys(path)
		if _, err := keys.List(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
		g := world(t, &access.Guard{Keys: keys}, echo)
		if status, body := g.send("", "GET", "models/m", ""); status != 503 || strings.Contains(body, "keys.json") {
			t.Error(status, body)
		}
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
