// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// browser is a Chromium that is driven over its DevTools protocol.
type browser struct {
	t    testing.TB
	conn *websocket.Conn
	tab  string // the session of its only tab

	mu      sync.Mutex
	last    int
	waiting map[int]chan reply
	events  []message
}

type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	reply
}

type reply struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// chromium finds the program: ANTIPHON_CHROMIUM, or a name that it goes by.
// Without one the test is skipped.
func chromium(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("ANTIPHON_CHROMIUM"); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium here: .ci/setup installs one, and ANTIPHON_CHROMIUM names another")
	return ""
}

// startBrowser starts a Chromium that has a home of its own and one tab.
func startBrowser(t testing.TB) *browser {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	// The tests show the browser pages that they made themselves, so it may do
	// without a sandbox of its own, which root has not.
	cmd := exec.CommandContext(ctx, chromium(t), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions", "--disable-sync",
		"--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--force-color-profile=srgb", "--hide-scrollbars",
		"--remote-debugging-port=0", "--user-data-dir="+t.TempDir(), "about:blank")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, waiting: map[int]chan reply{}}
	gone := make(chan struct{}) // closed when the last of its processes has ended: until then one may write to its home
	t.Cleanup(func() {
		defer cancel()
		if b.conn == nil {
			cancel()
		} else {
			_ = b.send("", "Browser.close", nil, nil)
			defer b.conn.CloseNow()
			defer time.AfterFunc(20*time.Second, cancel).Stop()
		}
		<-gone
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(log)
	var said []string
	for lines.Scan() {
		said = append(said, lines.Text())
		if _, url, ok := strings.Cut(lines.Text(), "DevTools listening on "); ok {
			go func() {
				defer close(gone)
				_, _ = io.Copy(io.Discard, log)
			}()
			b.dial(ctx, url)
			return b
		}
	}
	close(gone)
	t.Fatalf("the browser did not start:\n%s", strings.Join(said, "\n"))
	return nil
}

func (b *browser) dial(ctx context.Context, url string) {
	b.t.Helper()
	conn, _, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	conn.SetReadLimit(1 << 28)
	b.conn = conn
	go b.receive(ctx)
	var target struct{ TargetID string }
	b.must("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var session struct{ SessionID string }
	b.must("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	b.tab = session.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.do(domain+".enable", nil)
	}
}

func (b *browser) receive(ctx context.Context) {
	for {
		_, data, err := b.conn.Read(ctx)
		var m message
		if err == nil {
			err = json.Unmarshal(data, &m)
		}
		b.mu.Lock()
		if err != nil {
			for _, c := range b.waiting {
				close(c)
			}
			b.waiting = nil
			b.mu.Unlock()
			return
		}
		if c := b.waiting[m.ID]; c != nil {
			delete(b.waiting, m.ID)
			c <- m.reply
		} else if m.Method != "" {
			b.events = append(b.events, m)
		}
		b.mu.Unlock()
	}
}

// send calls a method and waits for its result.
func (b *browser) send(session, method string, params, result any) error {
	b.mu.Lock()
	if b.waiting == nil {
		b.mu.Unlock()
		return fmt.Errorf("%s: the browser is gone", method)
	}
	b.last++
	id, answer := b.last, make(chan reply, 1)
	b.waiting[id] = answer
	b.mu.Unlock()
	data, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params, "sessionId": session})
	if session == "" && err == nil {
		data, err = json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := b.conn.Write(ctx, websocket.MessageText, data); err != nil {
		return err
	}
	select {
	case r, ok := <-answer:
		switch {
		case !ok:
			return fmt.Errorf("%s: the browser is gone", method)
		case r.Error != nil:
			return fmt.Errorf("%s: %s", method, r.Error.Message)
		case result != nil:
			return json.Unmarshal(r.Result, result)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: no answer", method)
	}
}

func (b *browser) must(session, method string, params, result any) {
	b.t.Helper()
	if err := b.send(session, method, params, result); err != nil {
		b.t.Fatal(err)
	}
}

// do calls a method on the tab.
func (b *browser) do(method string, params any) {
	b.t.Helper()
	b.must(b.tab, method, params, nil)
}

// eval runs an expression in the page and reads what it gives.
func (b *browser) eval(expression string, result any) {
	b.t.Helper()
	var out struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	b.must(b.tab, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true, "userGesture": true}, &out)
	if e := out.ExceptionDetails; e != nil {
		b.t.Fatalf("%s: %s %s", expression, e.Text, e.Exception.Description)
	}
	if result != nil {
		if err := json.Unmarshal(out.Result.Value, result); err != nil {
			b.t.Fatalf("%s: %v", expression, err)
		}
	}
}

// key presses a key, the way a person does.
func (b *browser) key(name, text string) {
	b.t.Helper()
	code := map[string]int{"Enter": 13, "Escape": 27, "Tab": 9}[name]
	for _, kind := range []string{"keyDown", "keyUp"} {
		p := map[string]any{"type": kind, "key": name, "windowsVirtualKeyCode": code}
		if kind == "keyDown" && text != "" {
			p["text"] = text
		}
		b.do("Input.dispatchKeyEvent", p)
	}
}

// open shows a page and waits until it is there.
func (b *browser) open(url string, width, height int, phone bool) {
	b.t.Helper()
	b.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone})
	b.do("Page.navigate", map[string]any{"url": url})
	b.wait(`document.readyState === "complete" && location.href.startsWith("` + url[:5] + `")`)
}

// scheme makes the system light or dark.
func (b *browser) scheme(name string) {
	b.t.Helper()
	b.do("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": name}, {"name": "prefers-reduced-motion", "value": "reduce"}}})
}

// wait waits until an expression is true in the page.
func (b *browser) wait(expression string) {
	b.t.Helper()
	b.eval(`new Promise((done, fail) => {
		const until = Date.now() + 20000;
		const look = () => `+expression+` ? done(true) : Date.now() > until ? fail(new Error("it never came")) : setTimeout(look, 20);
		look();
	})`, nil)
}

// screenshot returns the picture of the page down to a height.
func (b *browser) screenshot(width, height int) []byte {
	b.t.Helper()
	var out struct{ Data string }
	b.must(b.tab, "Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true, "clip": map[string]any{"x": 0, "y": 0, "width": width, "height": height, "scale": 1}}, &out)
	data, err := base64.StdEncoding.DecodeString(out.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	return data
}

// view returns the picture of what is seen.
func (b *browser) view() []byte {
	b.t.Helper()
	var out struct{ Data string }
	b.must(b.tab, "Page.captureScreenshot", map[string]any{"format": "png"}, &out)
	data, err := base64.StdEncoding.DecodeString(out.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	return data
}

// happened returns the events of a method so far.
func (b *browser) happened(method string) (list []json.RawMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.events {
		if m.Method == method {
			list = append(list, m.Params)
		}
	}
	return list
}
