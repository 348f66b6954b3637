// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
)

// A client gives no URL that others fetch for it without the scope, however it writes the
// request, and with the scope none that leads into the operator's network. Without keys there
// is nobody to tell apart. A3 V3
func TestURLs(t *testing.T) {
	asked := map[string]int{}
	old := lookUp
	t.Cleanup(func() { lookUp = old })
	lookUp = func(_ context.Context, name string) ([]netip.Addr, error) {
		asked[name]++
		switch name {
		case "public.example":
			return []netip.Addr{netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("2606:4700::1111")}, nil
		case "rebinds.example":
			return []netip.Addr{netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("10.0.0.7")}, nil
		case "localhost":
			return []netip.Addr{netip.MustParseAddr("::1")}, nil
		}
		return nil, errors.New("no such host")
	}
	s := &Server{Backend: BackendFunc(func(_ context.Context, _ *Request, w *Writer) error { return w.Text("seen") })}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if key := r.Header.Get("Key"); key != "" {
			r = r.WithContext(WithCaller(r.Context(), Caller{Project: "p", Key: key, URLs: key == "urls"}))
		}
		s.ServeHTTP(w, r)
	}))
	defer func() {
		h.Close()
		s.Close()
	}()
	send := func(key, path, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL+"/v1/"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Key", key)
		r.Header.Set("Content-Type", "application/json")
		resp, err := h.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	message := func(part string) string { return `{"role":"user","content":[` + part + `]}` }
	image := func(url string) string {
		return message(fmt.Sprintf(`{"type":"input_image","detail":"auto","image_url":%q}`, url))
	}
	inResponse := func(it string) string { return `{"model":"m","input":[` + it + `]}` }
	const output = `{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"https://public.example/x.png"}]}`
	for _, it := range []string{
		image("https://public.example/x.png"), message(`{"type":"input_file","file_url":"https://public.example/x.pdf"}`), output,
		message(`{"type":"input_image","image\u005furl":"https://public.example/x.png"}`),
		message(`{"type":"input_image","IMAGE_URL":"https://public.example/x.png"}`),
		message(`{"type":"video_url","video_url":{"url":"https://public.example/x.mp4"}}`),
		`{"type":"unknown_thing","deep":[{"audio_url":"https://public.example/x"}]}`,
		message(`{"type":"input_file","filename":"x.pdf","file_data":"https://public.example/x.pdf"}`),
	} {
		if status, body := send("other", "responses", inResponse(it)); status != http.StatusForbidden || !strings.Contains(body, "'urls'") || !strings.Contains(body, `"missing_scope"`) {
			t.Errorf("without the scope: %s: %d %s", it, status, body)
		}
		if status, body := send("urls", "responses", inResponse(it)); status != http.StatusOK {
			t.Errorf("with the scope: %s: %d %s", it, status, body)
		}
	}
	chat := `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://public.example/x.png"}}]}]}`
	talk := `{"items":[` + image("https://public.example/x.png") + `]}`
	for path, body := range map[string]string{"chat/completions": chat, "conversations": talk} {
		if status, text := send("other", path, body); status != http.StatusForbidden {
			t.Errorf("%s: %d %s", path, status, text)
		}
		if status, text := send("urls", path, body); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	for _, url := range []string{
		"http://127.0.0.1/x", "http://[::1]:8080/x", "http://[::ffff:127.0.0.1]/x", "http://169.254.169.254/latest", "http://2130706433/", "http://0x7f.1/", "http://127.1/",
		"http://localhost/x", "http://LOCALHOST./x", "https://rebinds.example/x", "https://nowhere.example/x", "file:///etc/passwd", "gopher://public.example/x", "//127.0.0.1/x",
		"https://public.example@127.0.0.1/x", "https://user:secret@public.example/", "http:127.0.0.1/x", "http://[fe80::1%25eth0]/x", "http:///x", "http://exa mple/x",
	} {
		if status, body := send("urls", "responses", inResponse(image(url))); status != http.StatusBadRequest || strings.Contains(body, "10.0.0.7") {
			t.Errorf("%s: %d %s", url, status, body)
		}
	}
	for key, want := range map[string]int{"other": http.StatusForbidden, "urls": http.StatusBadRequest} {
		hidden, err := item.ParseString(image("http://169.254.169.254/latest"))
		if err != nil {
			t.Fatal(err)
		}
		packed, err := Pack([]item.Item{hidden})
		if err != nil {
			t.Fatal(err)
		}
		if status, body := send(key, "responses", inResponse(packed.JSON())); status != want {
			t.Errorf("in a compaction, with the key %s: %d %s", key, status, body)
		}
	}
	named := strings.Replace(talk, `{"role"`, `{"type":"message","id":"msg_named","role"`, 1)
	if status, text := send("urls", "conversations", named); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	for key, want := range map[string]int{"other": http.StatusForbidden, "urls": http.StatusOK} {
		if status, text := send(key, "responses", inResponse(`{"type":"item_reference","id":"msg_named"}`)); status != want {
			t.Errorf("by reference, with the key %s: %d %s", key, status, text)
		}
	}
	const harmless = `{"type":"function_call","call_id":"c","name":"f","arguments":"{\"image_url\":\"http://127.0.0.1\"}"},{"type":"function_call_output","call_id":"c","output":"http://127.0.0.1"},` +
		`{"type":"message","role":"assistant","id":"m1","status":"completed","content":[{"type":"output_text","text":"x","annotations":[{"type":"url_citation","url":"http://127.0.0.1","title":"x","start_index":0,"end_index":1}]}]},` +
		`{"role":"user","content":[{"type":"input_image","detail":"auto","image_url":"data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs="}]}`
	for _, body := range []string{inResponse(harmless), `{"model":"m","input":"image_url http://127.0.0.1"}`} {
		if status, text := send("other", "responses", body); status != http.StatusOK {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	if status, text := send("", "responses", inResponse(image("http://127.0.0.1/x"))); status != http.StatusOK {
		t.Errorf("without keys: %d %s", status, text)
	}
	var many []string
	clear(asked)
	for i := range 3 * mostHosts {
		many = append(many, image(fmt.Sprintf("https://public.example/%d", i)))
	}
	if status, text := send("urls", "responses", inResponse(strings.Join(many, ","))); status != http.StatusOK || asked["public.example"] != 1 {
		t.Errorf("%d %s, asked %d times", status, text, asked["public.example"])
	}
}
