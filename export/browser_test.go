// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files, and the pictures of the documentation")

// saved writes the demo's page to a file and returns its address.
func saved(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.ArtifactDir(), "page.html")
	if err := os.WriteFile(path, page(t, demo(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
}

// keep writes a screenshot beside the page.
func keep(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(t.ArtifactDir(), name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// J3: a page of a real run works in a real browser: it is shown without an error
// and asks nobody for anything.
func TestBrowser(t *testing.T) {
	b := startBrowser(t)
	address := saved(t)
	b.scheme("light")
	b.open(address, 1280, 900, false)

	t.Run("images", func(t *testing.T) {
		var sizes []int
		b.eval(`Promise.all([...document.images].map(async (i) => { await i.decode(); return i.naturalWidth; }))`, &sizes)
		if len(sizes) < 2 {
			t.Errorf("%d images, want those of the user and of the tool", len(sizes))
		}
		for i, n := range sizes {
			if n == 0 {
				t.Errorf("image %d is not shown", i)
			}
		}
	})
	t.Run("folding", func(t *testing.T) { testFolding(t, b) })
	t.Run("copying", func(t *testing.T) {
		b.eval(`document.querySelector(".assistant .copy").click()`, nil)
		b.wait(`document.querySelector(".assistant .copy").textContent === "Copied"`)
	})
	t.Run("search", func(t *testing.T) { testSearch(t, b) })
	t.Run("look", func(t *testing.T) { testLook(t, b, address) })

	for _, m := range []string{"Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"} {
		for _, e := range b.happened(m) {
			t.Errorf("%s: %s", m, e)
		}
	}
	for _, e := range b.happened("Network.requestWillBeSent") {
		if s := string(e); !strings.Contains(s, `"documentURL":"file:`) || !strings.Contains(s, `"url":"file:`) && !strings.Contains(s, `"url":"data:image/png`) {
			t.Errorf("the page asks for something: %.300s", s)
		}
	}
}

func testFolding(t *testing.T, b *browser) {
	var open, all int
	b.eval(`document.querySelectorAll("main details[open]").length`, &open)
	if open != 0 {
		t.Errorf("%d open to begin with", open)
	}
	b.eval(`document.querySelector("main .box summary").click()`, nil)
	b.eval(`document.querySelectorAll("main details[open]").length`, &open)
	if open != 1 {
		t.Errorf("%d open after a click", open)
	}
	b.eval(`document.getElementById("unfold").click()`, nil)
	b.eval(`document.querySelectorAll("main details[open]").length`, &open)
	b.eval(`document.querySelectorAll("main details").length`, &all)
	if open != all || all == 0 {
		t.Errorf("%d of %d open", open, all)
	}
	b.eval(`document.getElementById("unfold").click()`, nil)
	b.eval(`document.querySelectorAll("main details[open]").length`, &open)
	if open != 0 {
		t.Errorf("%d open at last", open)
	}
}

func testSearch(t *testing.T, b *browser) {
	b.key("/", "/")
	var focused string
	b.eval(`document.activeElement.id`, &focused)
	if focused != "query" {
		t.Errorf("the key / goes to %q", focused)
	}
	b.do("Input.insertText", map[string]any{"text": "crossing TAKES"})
	b.wait(`document.getElementById("count").textContent.includes("found")`)
	var state struct {
		Hidden, Shown, Marked int
		Open                  bool
		Query                 string
	}
	look := `({
		hidden: document.querySelectorAll("main > .entry[hidden]").length,
		shown: document.querySelectorAll("main > .entry:not([hidden])").length,
		marked: CSS.highlights.get("found")?.size ?? 0,
		open: [...document.querySelectorAll("main .answer")].some((a) => a.textContent.includes("crossing takes") && a.closest("details").open),
		query: document.getElementById("query").value,
	})`
	b.eval(look, &state)
	if state.Hidden == 0 || state.Shown == 0 || state.Marked == 0 || !state.Open || state.Query != "crossing TAKES" {
		t.Errorf("while searching: %+v", state)
	}
	b.key("Enter", "\r")
	var count string
	b.eval(`document.getElementById("count").textContent`, &count)
	if !strings.HasPrefix(count, "1 of ") {
		t.Errorf("the count says %q", count)
	}
	keep(t, "search.png", b.screenshot(1280, 900))
	b.key("Escape", "")
	b.eval(look, &state)
	if state.Hidden != 0 || state.Marked != 0 || state.Open {
		t.Errorf("after the search: %+v", state)
	}
	b.eval(`{ const o = document.getElementById("only"); o.value = "problem"; o.dispatchEvent(new Event("change")); }`, nil)
	b.eval(look, &state)
	if state.Hidden == 0 || state.Shown < 3 {
		t.Errorf("problems alone: %+v", state)
	}
	b.eval(`{ const o = document.getElementById("only"); o.value = ""; o.dispatchEvent(new Event("change")); }`, nil)
}

// J3: a page of 10 000 entries can be used: it is searched, and its last entry
// opened by its address.
func TestBrowserLong(t *testing.T) {
	b := startBrowser(t)
	path := filepath.Join(t.ArtifactDir(), "long.html")
	write(t, path, page(t, long(t, 10000)))
	address := (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
	b.scheme("light")
	b.open(address+"#e10000", 1280, 900, false)
	var open bool
	b.eval(`document.getElementById("e10000").closest("details").open`, &open)
	if !open {
		t.Error("the address of an output does not open its call")
	}
	var shown int
	var took float64
	b.eval(`(() => { const q = document.getElementById("query"); q.value = "notes/9996.txt"; const t = performance.now(); q.dispatchEvent(new Event("input")); return t; })()`, &took)
	b.wait(`document.getElementById("count").textContent.includes("found")`)
	b.eval(`document.querySelectorAll("main > .entry:not([hidden])").length`, &shown)
	if shown != 1 {
		t.Errorf("%d entries are shown, want the one", shown)
	}
	var after float64
	b.eval(`performance.now()`, &after)
	t.Logf("%.0f ms from the key to the result", after-took)
}

// testLook looks at the page in light and dark, and on a phone.
func testLook(t *testing.T, b *browser, address string) {
	background := func() (s string) {
		b.eval(`getComputedStyle(document.body).backgroundColor`, &s)
		return s
	}
	b.open(address, 1280, 900, false)
	keep(t, "light.png", b.screenshot(1280, 1400))
	document(t, b)
	light := background()
	b.scheme("dark")
	dark := background()
	keep(t, "dark.png", b.screenshot(1280, 1400))
	b.scheme("light")
	b.eval(`document.getElementById("theme").click(), document.getElementById("theme").click()`, nil)
	if chosen := background(); light == dark || chosen != dark {
		t.Errorf("light %s, dark %s, dark by choice %s", light, dark, chosen)
	}
	b.eval(`document.getElementById("theme").click(), document.getElementById("unfold").click()`, nil)
	var height int
	b.eval(`document.documentElement.scrollHeight`, &height)
	b.open(address, 1280, min(height, 6000), false)
	b.eval(`document.getElementById("unfold").click()`, nil)
	keep(t, "unfolded.png", b.screenshot(1280, min(height, 6000)))

	b.open(address, 390, 844, true)
	keep(t, "phone.png", b.screenshot(390, 844))
	for range 2 {
		var over []string
		b.eval(`document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1).slice(0, 5).map((e) => e.outerHTML.slice(0, 120))`, &over)
		if len(over) > 0 {
			t.Errorf("wider than a phone: %q", over)
		}
		b.eval(`document.getElementById("unfold").click()`, nil)
	}
	b.open(address, 390, 4000, true)
	b.eval(`document.getElementById("unfold").click()`, nil)
	keep(t, "phone-unfolded.png", b.screenshot(390, 4000))
}

// document takes the pictures of the documentation, if -update says so.
func document(t *testing.T, b *browser) {
	t.Helper()
	if !*update {
		return
	}
	picture := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join("..", "docs", name), b.view(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	resize := func(height int) {
		b.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": 1120, "height": height, "deviceScaleFactor": 1, "mobile": false})
	}
	resize(860)
	picture("export-light.png")
	resize(620)
	b.scheme("dark")
	b.eval(`{ const box = document.querySelectorAll("main .box")[3]; box.open = true; box.scrollIntoView({block: "end"}); }`, nil)
	picture("export-dark.png")
	b.scheme("light")
	b.eval(`document.querySelectorAll("main .box")[3].open = false, scrollTo(0, 0), 0`, nil)
	b.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": false})
}
