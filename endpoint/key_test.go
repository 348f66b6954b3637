// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// B5: no way of showing a key shows its secret.
func TestKeyIsNeverShown(t *testing.T) {
	const secret = "sk-not-a-real-key"
	key := NewKey(" " + secret + "\n")
	if key.Reveal() != secret || key.IsZero() {
		t.Fatalf("key lost its secret")
	}
	type config struct {
		Name  string
		Key   Key
		inner Key // where fmt calls no methods
	}
	c := config{"x", key, key}
	var shown bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p", "%T", "%!"} {
		fmt.Fprintf(&shown, verb+verb+verb+verb+"\n", key, &key, c, &c)
	}
	fmt.Fprintln(&shown, key, key.String(), key.GoString(), []Key{key}, map[Key]Key{key: key}, fmt.Errorf("failed with %v", key))
	slog.New(slog.NewTextHandler(&shown, nil)).Info("m", "key", key, "config", c)
	slog.New(slog.NewJSONHandler(&shown, nil)).Info("m", "key", key, "config", c)
	b, err := json.Marshal(map[string]any{"key": key, "config": c})
	if err != nil {
		t.Fatal(err)
	}
	shown.Write(b)
	hexed := fmt.Sprintf("%x", secret)
	if s := shown.String(); strings.Contains(s, secret) || strings.Contains(strings.ToLower(s), hexed) {
		t.Errorf("the secret is in:\n%s", s)
	}
	if got := fmt.Sprint(key); got != "[redacted]" {
		t.Errorf("printed as %q", got)
	}
}

func TestZeroKey(t *testing.T) {
	for _, k := range []Key{{}, NewKey(""), NewKey(" \t")} {
		if !k.IsZero() || k.Reveal() != "" || k.String() != "" {
			t.Errorf("%#v is not zero", k)
		}
	}
}

// B5
func TestKeyHide(t *testing.T) {
	if got := NewKey("sk-12345678").Hide("bad key: sk-12345678."); got != "bad key: [redacted]." {
		t.Errorf("got %q", got)
	}
	if got := NewKey("ollama").Hide("ollama is down"); got != "ollama is down" {
		t.Errorf("a word that is a key was taken for one: %q", got)
	}
	if got := (Key{}).Hide("x"); got != "x" {
		t.Errorf("got %q", got)
	}
}

// B5: names that tell of a secret, and such that do not.
func TestSecretName(t *testing.T) {
	for name, want := range map[string]bool{
		"Authorization": true, "api-key": true, "X-Gateway-Token": true, "key": true, "sig": true, "Set-Cookie": true, "X-Portkey-Api-Key": true,
		"Idempotency-Key": false, "api-version": false, "Content-Type": false, "X-Request-Id": false,
	} {
		if got := SecretName(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A10, B5: a key is found however its characters are escaped, and however often.
func TestKeyHideEscaped(t *testing.T) {
	const secret = "sk-test+/abc=0123"
	for _, one := range []string{"unix-u0075u", "xx-x41-0x75"} { // letters that begin escapes
		escaped := ""
		for _, c := range []byte(one) {
			escaped += fmt.Sprintf(`\u%04x`, c)
		}
		if got := NewKey(one).Hide(escaped + one); got != "[redacted][redacted]" {
			t.Errorf("%s: %s", one, got)
		}
	}
	k := NewKey(secret)
	spell := func(format string) string {
		s := ""
		for _, c := range []byte(secret) {
			s += fmt.Sprintf(format, c)
		}
		return s
	}
	for _, form := range []string{
		secret, spell(`\u%04x`), spell(`\u%04X`), spell(`\\u%04x`), spell(`\\\\u%04x`), spell(`\x%02x`), spell("%%%02X"), spell("%%%02x"), spell("&#%d;"), spell("&#x%x;"),
		`\u0073k-test+\/abc=0123`, "sk-test%2B%2Fabc%3D0123", "sk&#45;test+/abc&#x3d;0123",
	} {
		if got := k.Hide("the key " + form + " is bad, " + form); got != "the key [redacted] is bad, [redacted]" {
			t.Errorf("%s: %s", form, got)
		}
		if cut := "50% & " + form[:len(form)-1]; k.Hide(cut) != cut {
			t.Errorf("what is not the key is hidden: %s", k.Hide(cut))
		}
	}
}

// A10: a key is found inside base64, at each place in a group and in both alphabets.
func TestKeyHideBase64(t *testing.T) {
	for _, secret := range []string{"sk-test+/abc=0123", "~~~???>>>", "12345678"} {
		k := NewKey(secret)
		for _, code := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding} {
			for before := range 7 {
				for after := range 4 {
					text := code.EncodeToString([]byte("user::"[:min(before, 6)] + secret + "..."[:after]))
					if got := k.Hide("Basic " + text); !strings.Contains(got, redacted) || len(got) > len(redacted)+len("Basic ")+16 {
						t.Errorf("%q after %d: %s is shown as %s", secret, before, text, got)
					}
				}
			}
		}
	}
}
