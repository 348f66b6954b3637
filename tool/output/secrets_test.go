// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/item"
)

// chunks is a reader that gives a text in pieces.
type chunks struct {
	text  string
	sizes []int
}

func (c *chunks) Read(p []byte) (int, error) {
	if c.text == "" {
		return 0, io.EOF
	}
	n := len(c.text)
	if len(c.sizes) > 0 {
		n, c.sizes = min(n, c.sizes[0]), c.sizes[1:]
	}
	n = copy(p, c.text[:n])
	c.text = c.text[n:]
	return n, nil
}

// A10: a secret is not in an output, wherever it stands, however it is written, and
// however the text arrives; what is around it stays.
func TestSecretsAreRedacted(t *testing.T) {
	forms := []func(secret string, n int) string{
		func(s string, _ int) string { return s },
		func(s string, _ int) string { b, _ := json.Marshal(s); return string(b[1 : len(b)-1]) },
		func(s string, _ int) string {
			b, _ := json.Marshal(s)
			b, _ = json.Marshal(string(b))
			return string(b[1 : len(b)-1])
		},
		func(s string, _ int) string { return url.QueryEscape(s) },
		func(s string, _ int) string {
			var b strings.Builder
			for _, c := range []byte(s) {
				fmt.Fprintf(&b, `\u%04x`, c)
			}
			return b.String()
		},
		func(s string, n int) string {
			return base64.StdEncoding.EncodeToString([]byte("user:...."[:5+n%4] + s + "\n"))
		},
		func(s string, n int) string {
			return base64.RawURLEncoding.EncodeToString([]byte("<<>>~~"[:n%6] + s + "!"))
		},
	}
	rapid.Check(t, func(t *rapid.T) {
		var secrets []string
		for range rapid.IntRange(1, 3).Draw(t, "secrets") {
			secrets = append(secrets, rapid.StringMatching(`[A-Z0-9][A-Za-z0-9+/=_.:~"<&-]{7,50}[A-Z0-9]`).Draw(t, "secret"))
		}
		around := rapid.StringMatching(`[a-z\n ]{0,40}`)
		var text strings.Builder
		var kept []string
		for range rapid.IntRange(1, 6).Draw(t, "places") {
			word := around.Draw(t, "around")
			kept = append(kept, word)
			secret := rapid.SampledFrom(secrets).Draw(t, "which")
			form := rapid.SampledFrom(forms).Draw(t, "form")
			text.WriteString(word + " " + form(secret, rapid.IntRange(0, 11).Draw(t, "n")) + " ")
		}
		filler := ""
		if rapid.IntRange(0, 19).Draw(t, "long") == 0 { // over the border of the pieces of a long text
			filler = strings.Repeat("x", longMemory+rapid.IntRange(-200, 200).Draw(t, "filler")) + " "
		}
		sizes := rapid.SliceOfN(rapid.IntRange(1, 40), 0, 50).Draw(t, "sizes")
		for _, res := range []Result{{Text: filler + text.String()}, {Long: &chunks{filler + text.String(), sizes}}, {Error: text.String()}} {
			o := Policy{Secrets: secrets}.Write(t.Context(), Source{}, res, false)
			got := textOf(o.Content)
			for _, s := range secrets {
				for n := range 12 {
					for _, form := range forms[:5] {
						if written := form(s, n); strings.Contains(got, written) {
							t.Fatalf("%q is in the output as %q", s, written)
						}
					}
					for _, skip := range []int{0, 1, 2} {
						core := base64.RawStdEncoding.EncodeToString([]byte("xx"[:skip] + s))
						core = core[(skip*8+5)/6 : len(core)-2]
						if strings.Contains(got, core) || strings.Contains(got, strings.NewReplacer("+", "-", "/", "_").Replace(core)) {
							t.Fatalf("%q is in the output in base64", s)
						}
					}
				}
			}
			rest := got
			for _, word := range kept {
				_, after, ok := strings.Cut(rest, word)
				if !ok {
					t.Fatalf("%q is not in %q", word, got)
				}
				rest = after
			}
		}
	})
}

// Texts that only look similar stay as they are.
func TestNoSecretIsRedacted(t *testing.T) {
	const text = `a path \x41 %41 &#65; and c2VjcmV0LXZhbHVl, sk-12345, "quoted"`
	for _, secrets := range [][]string{nil, {"sk-12345"[:7]}, {"sk-123456"}} {
		o := Policy{Secrets: secrets}.Write(t.Context(), Source{}, Result{Text: text}, false)
		if got := textOf(o.Content); got != text {
			t.Errorf("%q: %s", secrets, got)
		}
	}
}

// What a session with many secrets costs, beside one with none.
func BenchmarkSecrets(b *testing.B) {
	text := strings.Repeat("func (c *Client) Do(req *Request) (*Response, error) { return nil, fmt.Errorf(\"%w: x\\n\", err) }\n", 700)
	for _, n := range []int{0, 1, 10} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var p Policy
			for i := range n {
				p.Secrets = append(p.Secrets, fmt.Sprintf("ghp_%030d", i))
			}
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				p.Write(b.Context(), Source{}, Result{Text: text}, false)
			}
		})
	}
}

// textOf is the text of an output.
func textOf(c item.Content) string { return c.Text }
