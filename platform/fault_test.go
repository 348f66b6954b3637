// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package platform_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/platform"
)

const okFile = `{"id":"f","object":"file","bytes":5,"created_at":1,"filename":"a","purpose":"user_data"}`

// onlySeek can seek, and has no ReadAt.
type onlySeek struct{ io.ReadSeeker }

// onlyRead cannot seek.
type onlyRead struct{ io.Reader }

// E1, E2: what creates something is repeated only where that cannot create it twice.
func TestRetriesOfUploads(t *testing.T) {
	ok := agenttest.Raw(200, "application/json", okFile)
	keyed, plain := endpoint.Profile{Name: "keyed", IdempotencyHeader: "Idempotency-Key"}, endpoint.Profile{Name: "plain"}
	busy := agenttest.Failure(429, "rate_limit_exceeded", "slow down")
	broken := agenttest.Failure(500, "server_error", "oh")
	for name, tt := range map[string]struct {
		profile endpoint.Profile
		failure agenttest.Reply
		content io.Reader
		again   bool
	}{
		"keyed, 500":               {keyed, broken, strings.NewReader("hello"), true},
		"keyed, reset":             {keyed, agenttest.Reset(), strings.NewReader("hello"), true},
		"keyed, truncated answer":  {keyed, ok.CutAfter(9), strings.NewReader("hello"), false},
		"plain, 500":               {plain, broken, strings.NewReader("hello"), false},
		"plain, reset":             {plain, agenttest.Reset(), strings.NewReader("hello"), false},
		"plain, 429":               {plain, busy, strings.NewReader("hello"), true},
		"plain, 503":               {plain, agenttest.Raw(503, "text/plain", "no healthy upstream"), strings.NewReader("hello"), true},
		"plain, 400":               {plain, agenttest.Failure(400, "invalid_value", "no"), strings.NewReader("hello"), false},
		"only seek, 429":           {plain, busy, onlySeek{strings.NewReader("hello")}, true},
		"only read, 429":           {plain, busy, onlyRead{strings.NewReader("hello")}, false},
		"only read, keyed, 500":    {keyed, broken, onlyRead{strings.NewReader("hello")}, false},
		"buffer, 429":              {plain, busy, bytes.NewBufferString("hello"), false},
		"from the middle, seeking": {plain, busy, middle(), true},
	} {
		t.Run(name, func(t *testing.T) {
			srv := agenttest.NewServer(t, tt.failure, ok)
			c := of(srv)
			c.Profile = &tt.profile
			_, err := c.Upload(t.Context(), &platform.Upload{Source: platform.Source{Name: "a", Content: tt.content}})
			if (err == nil) != tt.again {
				t.Fatalf("got error %v", err)
			}
			reqs := srv.Requests()
			if len(reqs) == 2 != tt.again {
				t.Fatalf("%d requests", len(reqs))
			}
			for _, r := range reqs {
				if !bytes.Contains(r.Body, []byte("\r\n\r\nhello\r\n--")) || !bytes.Equal(r.Body, reqs[0].Body) {
					t.Errorf("body: %q", r.Body)
				}
				if key := r.Header.Get("Idempotency-Key"); (key != "") != (tt.profile.Name == "keyed") || key != reqs[0].Header.Get("Idempotency-Key") {
					t.Errorf("key: %q", key)
				}
			}
			if e := (*endpoint.Error)(nil); errors.As(err, &e) && e.SafeToRetry() && strings.HasPrefix(name, "only read") && !strings.Contains(e.Hint, "Seek") {
				t.Errorf("hint: %q", e.Hint)
			}
		})
	}
}

// middle is a reader whose beginning was read already.
func middle() io.Reader {
	r := strings.NewReader("not this: hello")
	_, _ = io.CopyN(io.Discard, r, 10)
	return r
}

// E1: what computes or reads is repeated, also after a truncated answer.
func TestRetriesOfReads(t *testing.T) {
	vector := agenttest.Raw(200, "application/json", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]}],"model":"m"}`)
	model := agenttest.Raw(200, "application/json", `{"id":"m","object":"model"}`)
	for _, failure := range []agenttest.Reply{
		agenttest.Reset(), vector.CutAfter(20), agenttest.Failure(500, "server_error", "oh"), agenttest.Failure(429, "rate_limit_exceeded", "slow down").RetryAfter("1"), agenttest.WebPage(502, "Bad Gateway"),
	} {
		srv := agenttest.NewServer(t, failure, vector)
		if v, err := of(srv).Embed(t.Context(), &platform.EmbedRequest{Model: "m", Input: []string{"a"}}); err != nil || v.Vectors()[0][0] != 1 {
			t.Errorf("%v: %v", failure, err)
		}
		srv = agenttest.NewServer(t, failure, model)
		if m, err := of(srv).RetrieveModel(t.Context(), "m"); err != nil || m.ID != "m" {
			t.Errorf("%v: %v", failure, err)
		}
	}
}

// A deletion whose answer was lost has taken place.
func TestLostDeletion(t *testing.T) {
	gone := agenttest.Failure(404, "not_found", "No such File object")
	for _, reply := range []agenttest.Reply{gone, gone.CutAfter(9), gone.CutAfter(0).ByReset()} { // also if it breaks off
		if err := of(agenttest.NewServer(t, agenttest.Reset(), reply)).DeleteFile(t.Context(), "f"); err != nil {
			t.Errorf("%v: %v", reply, err)
		}
	}
	wantClass(t, of(agenttest.NewServer(t, gone)).DeleteFile(t.Context(), "f"), endpoint.NotFound)
	wantClass(t, of(agenttest.NewServer(t, agenttest.Raw(200, "application/json", `{"id":"f","deleted":false}`))).DeleteFile(t.Context(), "f"), endpoint.Protocol)
}

// E3: a key that has expired is renewed, and the upload sent again.
func TestRefresh(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.Failure(401, "token_expired", "expired"), agenttest.Raw(200, "application/json", okFile))
	c := of(srv)
	c.Refresh = func(context.Context) (endpoint.Key, error) { return endpoint.NewKey("new-key-012345"), nil }
	must[*platform.File](t)(c.Upload(t.Context(), &platform.Upload{Source: text("a", "hello")}))
	if got := srv.Requests()[1].Header.Get("Authorization"); got != "Bearer new-key-012345" {
		t.Error(got)
	}
}

// noisy is a reader of n bytes that are not kept anywhere.
type noisy struct{ left int64 }

func (r *noisy) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), r.left))
	for i := range n {
		p[i] = byte(r.left) + byte(i)
	}
	r.left -= int64(n)
	return n, nil
}

// A large file goes up and down in little memory.
func TestLargeFiles(t *testing.T) {
	const size = 256 << 20
	var received atomic.Int64
	c := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Content-Length", fmt.Sprint(size))
			_, _ = io.Copy(w, &noisy{size})
			return
		}
		n, _ := io.Copy(io.Discard, r.Body)
		received.Store(n)
		fmt.Fprint(w, okFile)
	}))
	before := allocated()
	must[*platform.File](t)(c.Upload(t.Context(), &platform.Upload{Source: platform.Source{Name: "large.bin", Content: &noisy{size}, Size: size}}))
	if n := received.Load(); n < size || n > size+1000 {
		t.Errorf("%d bytes arrived", n)
	}
	content := must[*platform.Content](t)(c.FileContent(t.Context(), "f", 0))
	n, err := io.Copy(io.Discard, content)
	if err != nil || n != size || content.Size != size {
		t.Errorf("%d of %d bytes: %v", n, content.Size, err)
	}
	_ = content.Close()
	if used := allocated() - before; used > 16<<20 {
		t.Errorf("%d MB were allocated for two files of 256 MB", used>>20)
	}
}

func allocated() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.TotalAlloc)
}

// A content that cannot be read, or is not what was announced, is not stored.
func TestBadContent(t *testing.T) {
	stored := 0
	c := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ParseMultipartForm(1<<20) == nil {
			stored++
			fmt.Fprint(w, okFile)
		}
	}))
	failed := errors.New("disk on fire")
	for name, s := range map[string]platform.Source{
		"fails":         {Name: "a", Content: io.MultiReader(strings.NewReader("hel"), iotest.ErrReader(failed))},
		"fails, sized":  {Name: "a", Content: io.MultiReader(strings.NewReader("hel"), iotest.ErrReader(failed)), Size: 5},
		"too short":     {Name: "a", Content: onlyRead{strings.NewReader("hel")}, Size: 5},
		"too long":      {Name: "a", Content: onlyRead{strings.NewReader("hello!")}, Size: 5},
		"a folder":      {Name: "a", Content: open(t, t.TempDir())},
		"a closed file": {Name: "a", Content: closed(t)},
	} {
		_, err := c.Upload(t.Context(), &platform.Upload{Source: s})
		e := wantClass(t, err, endpoint.BadRequest)
		if e.SafeToRetry() || !strings.Contains(err.Error(), "a ") || strings.HasPrefix(name, "fails") && !errors.Is(err, failed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if stored != 0 {
		t.Errorf("%d were stored", stored)
	}
}

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func closed(t *testing.T) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := open(t, path)
	_ = f.Close()
	return f
}

// S8: a cancelled upload ends, even if its reader never does.
func TestCancelledUpload(t *testing.T) {
	for range 50 { // net/http has several ways to end here
		c := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
		ctx, cancel := context.WithCancel(t.Context())
		r, w := io.Pipe()
		go func() {
			_, _ = w.Write([]byte("hello"))
			cancel()
		}()
		_, err := c.Upload(ctx, &platform.Upload{Source: platform.Source{Name: "a", Content: r}})
		wantClass(t, err, endpoint.Canceled)
		_ = w.Close()
	}
}

// S7: a server that is silent after an upload is given up.
func TestSilenceAfterUpload(t *testing.T) {
	release := make(chan struct{})
	c := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-release
	}))
	defer close(release)
	c.IdleTimeout = 20 * time.Millisecond
	_, err := c.Upload(t.Context(), &platform.Upload{Source: text("a", "hello")})
	wantClass(t, err, endpoint.Idle)
}

// A content of any kind arrives as it is; what is missing is told.
func TestDownloads(t *testing.T) {
	all := agenttest.Raw(200, "application/octet-stream", "\x00\xff{\"a\":1}")
	for name, tt := range map[string]struct {
		reply agenttest.Reply
		limit int64
		want  string
		class endpoint.Class
	}{
		"whole":          {all, 0, "\x00\xff{\"a\":1}", ""},
		"at the limit":   {all, 9, "\x00\xff{\"a\":1}", ""},
		"over the limit": {all, 8, "", endpoint.TooLarge},
		"over, chunked":  {all.UntilClose(), 8, "\x00\xff{\"a\":1", endpoint.TooLarge},
		"truncated":      {all.CutAfter(4), 0, "\x00\xff{\"", endpoint.Truncated},
		"reset":          {all.CutAfter(4).ByReset(), 0, "", endpoint.Truncated},
		"empty":          {agenttest.Raw(200, "text/plain", ""), 0, "", ""},
		"a web page":     {agenttest.WebPage(200, "Hello"), 0, "-", ""},
		"no such file":   {agenttest.Failure(404, "not_found", "no"), 0, "", endpoint.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			c := of(agenttest.NewServer(t, tt.reply))
			v, err := c.FileContent(t.Context(), "f", tt.limit)
			var got []byte
			if err == nil {
				got, err = io.ReadAll(v)
				if _, again := v.Read(make([]byte, 1)); !errors.Is(again, io.EOF) && (err == nil || again == nil) {
					t.Errorf("another read: %v", again)
				}
				for range 2 {
					if err := v.Close(); err != nil {
						t.Error(err)
					}
				}
			}
			if tt.want != "-" && name != "reset" && string(got) != tt.want {
				t.Errorf("got %q", got)
			}
			if tt.class != "" {
				wantClass(t, err, tt.class)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	// The request is repeated until the content begins to arrive.
	c := of(agenttest.NewServer(t, agenttest.Reset(), agenttest.Failure(503, "overloaded", "later"), all))
	v := must[*platform.Content](t)(c.FileContent(t.Context(), "f", 0))
	if b, err := io.ReadAll(v); err != nil || len(b) != 9 {
		t.Errorf("%q %v", b, err)
	}
	_ = v.Close()
}

// Embeddings come in either form, in the order of the inputs, or not at all.
func TestEmbeddings(t *testing.T) {
	one := func(index, vector string) string {
		return `{"object":"embedding",` + index + `"embedding":` + vector + `}`
	}
	list := func(data ...string) agenttest.Reply {
		return agenttest.Raw(200, "application/json", `{"object":"list","model":"m","data":[`+strings.Join(data, ",")+`]}`)
	}
	b64 := item.Quote(base64.StdEncoding.EncodeToString([]byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0})) // 1, -2
	for name, tt := range map[string]struct {
		reply agenttest.Reply
		class endpoint.Class
	}{
		"base64":         {list(one(`"index":0,`, string(b64)), one(`"index":1,`, "[3]")), ""},
		"escaped":        {list(one(`"index":0,`, strings.ReplaceAll(string(b64), "A", `\u0041`)), one(`"index":1,`, "[3.0]")), ""},
		"other order":    {list(one(`"index":1,`, "[3]"), one(`"index":0,`, "[1,-2e0]")), ""},
		"no numbers":     {list(one("", "[1, -2]"), one("", "[3]")), ""},
		"one missing":    {list(one(`"index":0,`, "[1]")), endpoint.Protocol},
		"one twice":      {list(one(`"index":0,`, "[1]"), one(`"index":0,`, "[1]")), endpoint.Protocol},
		"half a number":  {list(one(`"index":0,`, `"AAAA"`), one(`"index":1,`, "[3]")), endpoint.Protocol},
		"not base64":     {list(one(`"index":0,`, `"?"`), one(`"index":1,`, "[3]")), endpoint.Protocol},
		"not numbers":    {list(one(`"index":0,`, `["a"]`), one(`"index":1,`, "[3]")), endpoint.Protocol},
		"too large":      {list(one(`"index":0,`, `[1e99]`), one(`"index":1,`, "[3]")), endpoint.Protocol},
		"no vector":      {list(`{"index":0}`, one(`"index":1,`, "[3]")), endpoint.Protocol},
		"an error":       {agenttest.Raw(200, "application/json", `{"error":{"message":"no","type":"invalid_request_error"}}`), endpoint.BadRequest},
		"another object": {agenttest.Raw(200, "application/json", `{"object":"list"}`), endpoint.Protocol},
	} {
		v, err := of(agenttest.NewServer(t, tt.reply)).Embed(t.Context(), &platform.EmbedRequest{Model: "m", Input: []string{"a", "b"}})
		if tt.class != "" {
			wantClass(t, err, tt.class)
		} else if err != nil || !slices.Equal(v.Vectors()[0], []float32{1, -2}) || !slices.Equal(v.Vectors()[1], []float32{3}) {
			t.Errorf("%s: %+v %v", name, v, err)
		}
	}
}

// An endpoint that refuses base64 is asked for numbers, from then on at once.
func TestEmbeddingsAsNumbers(t *testing.T) {
	tp := &tape{next: &agenttest.Platform{NoBase64: true}}
	c := start(t, tp)
	for range 2 {
		v := must[*platform.Embeddings](t)(c.Embed(t.Context(), &platform.EmbedRequest{Model: "m", Input: []string{"a"}, Dimensions: 4}))
		if len(v.Vectors()[0]) != 4 {
			t.Error(v)
		}
	}
	if len(tp.list) != 3 {
		t.Errorf("%d requests", len(tp.list))
	}
	// Another refusal is told as it came.
	_, err := c.Embed(t.Context(), &platform.EmbedRequest{Input: []string{"a"}})
	if e := wantClass(t, err, endpoint.BadRequest); e.Param != "model" {
		t.Error(err)
	}
}

// Waiting polls at the intervals of Retry, which the caller's clock measures.
func TestWaits(t *testing.T) {
	p := &agenttest.Platform{Polls: 4, Unreadable: func(name string, _ []byte) bool { return name == "bad" }}
	c := start(t, p)
	var slept []time.Duration
	c.Retry = endpoint.Retry{Base: time.Second, Cap: 4 * time.Second, Sleep: func(_ context.Context, d time.Duration) error { slept = append(slept, d); return nil }}
	ctx := t.Context()
	good := must[*platform.File](t)(c.Upload(ctx, &platform.Upload{Source: text("good", "a")}))
	bad := must[*platform.File](t)(c.Upload(ctx, &platform.Upload{Source: text("bad", "a")}))
	s := must[*platform.Store](t)(c.CreateStore(ctx, &platform.StoreRequest{FileIDs: []string{good.ID}}))
	f := must[*platform.StoreFile](t)(c.WaitStoreFile(ctx, s.ID, good.ID))
	if want := []time.Duration{1e9, 2e9, 4e9, 4e9}; f.Status != platform.StatusCompleted || !slices.Equal(slept, want) {
		t.Errorf("%+v after %v", f, slept)
	}
	b := must[*platform.FileBatch](t)(c.CreateFileBatch(ctx, s.ID, &platform.FileBatchRequest{FileIDs: []string{bad.ID}}))
	b, err := c.WaitFileBatch(ctx, s.ID, b.ID)
	if e := wantClass(t, err, endpoint.BadRequest); b == nil || b.FileCounts.Failed != 1 || !strings.Contains(e.Message, "1 of 1") {
		t.Errorf("%+v %v", b, err)
	}
	f, err = c.WaitStoreFile(ctx, s.ID, bad.ID)
	if e := wantClass(t, err, endpoint.BadRequest); f == nil || e.Code != "invalid_file" {
		t.Errorf("%+v %v", f, err)
	}

	p.Polls = 1 << 30
	must[*platform.StoreFile](t)(c.AttachFile(ctx, s.ID, &platform.AttachRequest{FileID: good.ID}))
	ctx, cancel := context.WithCancel(ctx)
	polls := 0
	c.Retry.Sleep = func(ctx context.Context, _ time.Duration) error {
		if polls++; polls == 5 {
			cancel()
		}
		return ctx.Err()
	}
	_, err = c.WaitStoreFile(ctx, s.ID, good.ID)
	if wantClass(t, err, endpoint.Canceled); !errors.Is(err, context.Canceled) || polls != 5 {
		t.Errorf("%v after %d polls", err, polls)
	}
}

// Streams of images give every event, and an error where one is missing.
func TestImageStreams(t *testing.T) {
	c := start(t, &agenttest.Platform{})
	var got []string
	for ev, err := range c.StreamImages(t.Context(), &platform.ImageRequest{Prompt: "p", N: 2, PartialImages: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		r, err := ev.Image().Reader()
		if err != nil {
			t.Fatal(err)
		}
		if png, err := io.ReadAll(r); err != nil || len(png) == 0 || ev.Final() != (ev.Usage != nil) {
			t.Errorf("%+v %v", ev, err)
		}
		got = append(got, fmt.Sprint(ev.Type, ev.Partial))
	}
	part := "image_generation.partial_image"
	if want := []string{part + "0", part + "1", "image_generation.completed-1", part + "0", part + "1", "image_generation.completed-1"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	n := 0
	for ev, err := range c.StreamEdit(t.Context(), &platform.ImageEdit{ImageRequest: platform.ImageRequest{Prompt: "p", PartialImages: 1}, Images: []platform.Source{text("a.png", "a")}}) {
		if n++; err != nil || !strings.HasPrefix(ev.Type, "image_edit.") {
			t.Errorf("%+v %v", ev, err)
		}
	}
	for range c.StreamImages(t.Context(), &platform.ImageRequest{Prompt: "p", PartialImages: 3}) {
		n++
		break
	}
	if n != 3 {
		t.Errorf("%d events", n)
	}

	events := agenttest.Events(`{"type":"image_generation.partial_image","b64_json":"AA==","partial_image_index":0}`, `{"type":"new.event","x":1}`, `{"type":"image_generation.completed","b64_json":"AA=="}`)
	for name, tt := range map[string]struct {
		replies []agenttest.Reply
		events  int
		class   endpoint.Class
	}{
		"whole":         {[]agenttest.Reply{events}, 3, ""},
		"retried":       {[]agenttest.Reply{agenttest.Failure(429, "rate_limit_exceeded", "no"), events.LineEnds("\r\n").WithComments()}, 3, ""},
		"with [DONE]":   {[]agenttest.Reply{events.WithDone()}, 3, ""},
		"no final one":  {[]agenttest.Reply{events.WithoutLast()}, 2, endpoint.Truncated},
		"only [DONE]":   {[]agenttest.Reply{events.WithoutLast().WithDone()}, 2, endpoint.Truncated},
		"cut":           {[]agenttest.Reply{events.CutAfter(130)}, 1, endpoint.Truncated},
		"error event":   {[]agenttest.Reply{events.WithEvent(1, `{"type":"error","error":{"code":"content_policy_violation","message":"no"}}`)}, 1, endpoint.Policy},
		"damaged":       {[]agenttest.Reply{agenttest.Events(`{"type":1`)}, 0, ""},
		"not a stream":  {[]agenttest.Reply{agenttest.Raw(200, "application/json", `{"created":1,"data":[{"b64_json":"AA==","url":"u"}],"usage":{"total_tokens":1}}`)}, 1, ""},
		"no images":     {[]agenttest.Reply{agenttest.Raw(200, "application/json", `{"created":1,"data":[]}`)}, 0, endpoint.Protocol},
		"not images":    {[]agenttest.Reply{agenttest.Raw(200, "application/json", `{"created":1}`)}, 0, endpoint.Protocol},
		"error, as 200": {[]agenttest.Reply{agenttest.Raw(200, "application/json", `{"error":{"message":"no","type":"invalid_request_error"}}`)}, 0, endpoint.BadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			n, failed := 0, error(nil)
			for ev, err := range of(agenttest.NewServer(t, tt.replies...)).StreamImages(t.Context(), &platform.ImageRequest{Prompt: "p"}) {
				if failed != nil {
					t.Error("something was yielded after the error")
				}
				if failed = err; ev != nil {
					n++
				}
			}
			if n != tt.events {
				t.Errorf("%d events, %v", n, failed)
			}
			switch {
			case tt.class != "":
				if e := wantClass(t, failed, tt.class); e.Sent != (n > 0) {
					t.Errorf("sent: %v", e.Sent)
				}
			case (failed != nil) != (name == "damaged"):
				t.Error(failed)
			}
		})
	}
}

// An answer without an image is an error, and one that is JSON but no object is not called something
// else than JSON.
func TestNoImages(t *testing.T) {
	for body, want := range map[string]string{`{"created":1,"data":[]}`: "has no images", "null": "is not a JSON object", " 5": "is not a JSON object"} {
		c := of(agenttest.NewServer(t, agenttest.Raw(200, "application/json", body), agenttest.Raw(200, "application/json", body)))
		v, err := c.GenerateImages(t.Context(), &platform.ImageRequest{Prompt: "p"})
		if e := wantClass(t, err, endpoint.Protocol); v != nil || !strings.Contains(e.Error(), want) {
			t.Errorf("%s: %v, %v", body, v, err)
		}
		v, err = c.EditImages(t.Context(), &platform.ImageEdit{ImageRequest: platform.ImageRequest{Prompt: "p"}, Images: []platform.Source{{Name: "a.png", Content: strings.NewReader("x")}}})
		if e := wantClass(t, err, endpoint.Protocol); v != nil || !strings.Contains(e.Error(), want) {
			t.Errorf("%s: %v, %v", body, v, err)
		}
	}
}

// E1: whatever the server does, files are stored once, and what is stored is whole.
// The schedule of faults is drawn at random.
func TestRandomFaults(t *testing.T) {
	for seed := range uint64(60) {
		dice := rand.New(rand.NewPCG(seed, 1))
		stub := &agenttest.Platform{Polls: 2}
		faulty := agenttest.Wrap(stub, func(_ int, _ agenttest.Request, right agenttest.Reply) agenttest.Reply {
			switch dice.IntN(8) {
			case 0:
				return agenttest.Reset()
			case 1:
				return agenttest.Failure(429, "rate_limit_exceeded", "slow down")
			case 2:
				return agenttest.Failure(500, "server_error", "oh")
			case 3:
				return right.CutAfter(dice.IntN(40)) // it has happened, and the answer is lost
			case 4:
				return right.CutAfter(dice.IntN(40)).ByReset()
			}
			return right
		})
		srv := httptest.NewServer(faulty)
		ctx := t.Context()
		c := &platform.Client{
			BaseURL: srv.URL + "/v1", HTTP: srv.Client(), Profile: &endpoint.Profile{Name: "keyed", IdempotencyHeader: "Idempotency-Key"},
			Retry: endpoint.Retry{Max: 20, MaxWait: time.Hour, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }},
		}
		sure := start(t, stub)
		f, err := c.Upload(ctx, &platform.Upload{Source: text("a", "Tea is green.")})
		stored := all(t, sure.Files(ctx, nil))
		if err != nil { // the answer broke off after it began
			wantClass(t, err, endpoint.Truncated)
		}
		if len(stored) > 1 || err == nil && (len(stored) != 1 || stored[0].ID != f.ID || stored[0].Bytes != 13) {
			t.Errorf("seed %d: %d files are stored: %v", seed, len(stored), err)
		}
		if err == nil {
			if content, err := c.FileContent(ctx, f.ID, 0); err == nil {
				b, err := io.ReadAll(content)
				if _ = content.Close(); err == nil && string(b) != "Tea is green." {
					t.Errorf("seed %d: content %q", seed, b)
				}
			}
			if err := c.DeleteFile(ctx, f.ID); err != nil || len(all(t, sure.Files(ctx, nil))) != 0 {
				t.Errorf("seed %d: deletion: %v", seed, err)
			}
		}
		srv.Close()
	}
}
