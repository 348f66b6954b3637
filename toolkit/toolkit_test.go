// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit

import (
	"bytes"
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/toolkit/internal/files"
	"github.com/antiphon-go/antiphon/toolkit/internal/kittest"
	"github.com/antiphon-go/antiphon/toolkit/patch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// oddName is a file name that is not plain text: it ends a line, for readers
// who take U+2028 for that, and every system allows it.
const oddName = "odd\u2028name"

type (
	kit  = kittest.Kit
	args = kittest.Args
)

// newKit has the tools that need roots and nothing else.
func newKit(t *testing.T, more ...files.Root) *kit {
	t.Helper()
	k := kittest.New(t, more...)
	for _, b := range Builtins() {
		if slices.Equal(b.Needs, []Need{NeedRoots}) {
			k.Add(New(b.Name, Deps{Files: k.Files, PatchForm: patch.Function}))
		}
	}
	return k
}

// A5: what only reads says so; what writes runs alone.
func TestTraits(t *testing.T) {
	k := newKit(t)
	reads := tool.Annotations{ReadOnly: true, Idempotent: true}
	writes := tool.Annotations{Exclusive: true}
	want := map[string]tool.Annotations{
		"append_to_file": writes, "apply_patch": writes, "find_and_replace": writes,
		"index_markdown_docs": {Exclusive: true, Idempotent: true}, "markdown_search": reads,
		"import_image": reads, "read_directory": reads, "read_file": reads,
	}
	for name, tl := range k.Set.All() {
		got := tool.AnnotationsOf(tl)
		if says := got.ReadKey != nil; says != (name == "read_file") {
			t.Errorf("%s says what it reads: %v", name, says)
		}
		if got.Folders == nil || !strings.Contains(got.Origin.Identity, k.Dir) {
			t.Errorf("%s does not say where it works", name)
		}
		got.Folders, got.Origin = nil, tool.Origin{}
		if got.ReadKey = nil; got != want[name] {
			t.Errorf("%s: %+v, want %+v", name, got, want[name])
		}
	}
}

// I9: every definition has a description, also of each parameter, and tells
// about the roots without their place.
func TestDefinitions(t *testing.T) {
	docs := t.TempDir()
	k := newKit(t, files.Root{Name: "docs", Path: docs, Description: "the manual"})
	for name, tl := range k.Set.All() {
		def := tl.Definition().(*item.FunctionTool)
		if len(def.Description) < 40 || !strings.Contains(def.Description, "- docs: the manual") || strings.Contains(def.Description, docs) {
			t.Errorf("%s: %s", name, def.Description)
		}
		var schema struct {
			Properties map[string]struct{ Description string } `json:"properties"`
		}
		if err := json.Unmarshal([]byte(def.Parameters), &schema, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatal(err)
		}
		for p, s := range schema.Properties {
			if s.Description == "" {
				t.Errorf("%s: %s has no description", name, p)
			}
		}
	}
	one := newKit(t)
	tl, _ := one.Set.Lookup("read_file")
	if d := tl.Definition().(*item.FunctionTool).Description; strings.Contains(d, "Roots") {
		t.Errorf("one plain root needs no words: %s", d)
	}
}

// A1: how paths are understood.
func TestPaths(t *testing.T) {
	docs := t.TempDir()
	k := newKit(t, files.Root{Name: "docs", Path: docs}, files.Root{Name: "src", Path: docs})
	k.Write("a.txt", "default a")
	k.Write("sub/b.txt", "default b")
	k.Write("src/a.txt", "default src")
	if err := os.WriteFile(filepath.Join(docs, "a.txt"), []byte("docs a"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"a.txt":                             "default a",
		"./sub//../a.txt":                   "default a",
		"sub/b.txt":                         "default b",
		"workspace:a.txt":                   "default a",
		"workspace/a.txt":                   "default a",
		"docs:a.txt":                        "docs a",
		"docs:/a.txt":                       "docs a",
		"docs/a.txt":                        "docs a",
		"src:a.txt":                         "docs a",
		"src/a.txt":                         "default src",
		filepath.Join(k.Dir, "a.txt"):       "default a",
		filepath.Join(docs, "a.txt"):        "docs a",
		k.Dir + "/sub/../a.txt":             "default a",
		filepath.ToSlash(docs) + "/./a.txt": "docs a",
	} {
		if got := k.OK("read_file", args{"path": path}); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if filepath.Separator == '\\' {
		if got := k.OK("read_file", args{"path": `sub\b.txt`}); got != "default b" {
			t.Errorf("backslash: %q", got)
		}
	}
}

// A1: nothing a model can write leads out of the roots, whichever tool it uses.
func TestNoEscape(t *testing.T) {
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret.png")
	if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	k := newKit(t, files.Root{Name: "docs", Path: t.TempDir()})
	k.Write("sub/a.txt", "a")
	k.Symlink(secret, "abs.png")
	k.Symlink(outside, "absdir")
	up, err := filepath.Rel(k.Dir, secret)
	if err != nil {
		t.Fatal(err)
	}
	k.Symlink(up, "rel.png")
	k.Symlink("..", "sub/parent")
	k.Symlink("../..", "sub/above")
	paths := []string{
		secret, up, "sub/../" + up, "docs:" + up, "docs/../" + up, "workspace:../" + filepath.Base(k.Dir) + "/../x",
		"..", "../", "/", "//etc/passwd", "/etc/passwd", "docs:..", `..\..\secret.png`, `C:\Windows\win.ini`, `C:x`, `\\host\share\x`,
		"abs.png", "rel.png", "absdir/secret.png", "sub/above/" + filepath.Base(outside) + "/secret.png",
		"file://" + secret, "~/x", "a\x00b", strings.Repeat("../", 50) + strings.TrimPrefix(filepath.ToSlash(secret), "/"),
	}
	for _, p := range paths {
		for name, a := range map[string]args{
			"read_file":           {"path": p},
			"import_image":        {"path": p},
			"read_directory":      {"path": p},
			"find_and_replace":    {"path": p, "find": "secret", "replace": "x"},
			"markdown_search":     {"query": "secret", "vector_db_root": p},
			"index_markdown_docs": {"root": p, "index_name": "x"},
		} {
			if o := k.Call(name, a); !o.Failed {
				t.Errorf("%s %q: %s", name, p, o.Content.Display())
			} else if strings.TrimSpace(o.Error) == "" {
				t.Errorf("%s %q: no reason", name, p)
			}
		}
		k.Call("append_to_file", args{"path": p, "content": "x"})
		k.Call("index_markdown_docs", args{"root": "sub", "index_name": "x", "vector_db_root": p})
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "secret" {
		t.Errorf("the file outside is now %q, %v", b, err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("something was made outside: %v %v", entries, err)
	}
	// A link that stays inside is followed.
	if got := k.OK("read_file", args{"path": "sub/parent/sub/a.txt"}); got != "a" {
		t.Errorf("%q", got)
	}
}

// The errors name what can be done instead.
func TestProblems(t *testing.T) {
	k := newKit(t)
	k.Write("README.md", "r")
	k.Write("docs/guide.md", "g")
	k.Write("docs/guard.md", "g")
	k.Write("docs/other.txt", "o")
	k.Write(oddName, "w")
	for _, c := range []struct {
		tool, path, want string
	}{
		{"read_file", "readme.txt", "no such file or directory: readme.txt. Similar names there: README.md"},
		{"read_file", "docs/guid.md", "Similar names there: docs/guide.md, docs/guard.md"},
		{"read_file", "doc/guide.md", "the directory doc does not exist. Similar names there: docs"},
		{"read_file", "zzzzz/a/b", "the directory zzzzz does not exist. Use read_directory on . to see what is there"},
		{"read_file", "README.md/x", "README.md is a file, not a directory"},
		{"read_file", "docs", "docs is a directory; use read_directory"},
		{"read_file", ".", ". is a directory; use read_directory"},
		{"import_image", "docs", "use read_directory"},
		{"read_directory", "README.md", "README.md is a file, not a directory; use read_file"},
		{"read_directory", "dokcs", "Similar names there: docs"},
		{"read_file", oddName + "x", strconv.Quote(oddName)},
		{"read_file", "", "the path is empty"},
		{"read_file", "../x", "paths are relative to a root (workspace)"},
	} {
		k.Fails(c.tool, args{"path": c.path}, c.want)
	}
	if filepath.Separator == '/' {
		k.Fails("read_file", args{"path": `docs\guide.md`}, "directories are separated by /")
	}
	k.Fails("append_to_file", args{"path": "new/a.txt", "content": "x"}, "the directory new does not exist")
	k.Fails("append_to_file", args{"path": "docs", "content": "x"}, "use read_directory")
	k.Fails("append_to_file", args{"path": "README.md/x", "content": "x"}, "README.md is a file")
	k.Fails("find_and_replace", args{"path": "docs", "find": "x", "replace": "y"}, "use read_directory")
}

func TestPermission(t *testing.T) {
	k := newKit(t)
	p := k.Write("locked.txt", "x")
	if err := os.Chmod(p, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(p); !errors.Is(err, fs.ErrPermission) {
		t.Skip("this user reads everything")
	}
	k.Fails("read_file", args{"path": "locked.txt"}, "permission denied")
	k.Fails("find_and_replace", args{"path": "locked.txt", "find": "x", "replace": "y"}, "permission denied")
	if err := os.Chmod(k.Dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(k.Dir, 0o755)
	k.Fails("append_to_file", args{"path": "new.txt", "content": "x"}, "permission denied")
}

func TestReadDirectory(t *testing.T) {
	k := newKit(t)
	if got := k.OK("read_directory", nil); got != "The directory . is empty." {
		t.Errorf("%q", got)
	}
	k.Write("b.txt", "12345")
	k.Write("a/x", "")
	k.Write("B", "1")
	k.Write(oddName, "")
	k.Symlink("b.txt", "link")
	want := "B (1 byte)\na/\nb.txt (5 bytes)\nlink -> b.txt\n" + strconv.Quote(oddName) + " (0 bytes)"
	if diff := cmp.Diff(want, k.OK("read_directory", args{"path": "."})); diff != "" {
		t.Error(diff)
	}
	if got := k.OK("read_directory", args{"path": "a/"}); got != "x (0 bytes)" {
		t.Errorf("%q", got)
	}
	k.Fails("read_directory", args{"offset": 9}, "has 5 entries; offset 9 is past the last")
	k.Fails("read_directory", args{"offset": -1}, "cannot be negative")
}

func TestReadDirectoryInPages(t *testing.T) {
	k := newKit(t)
	for i := range MaxEntries + 2 {
		k.Write("d/"+string(rune('a'+i%26))+strings.Repeat("x", i/26), "")
	}
	first := strings.Split(k.OK("read_directory", args{"path": "d"}), "\n")
	if len(first) != MaxEntries+1 || first[MaxEntries] != "[entries 1 to 1000 of 1002; list the next with offset=1001]" {
		t.Errorf("%d lines, last %q", len(first), first[len(first)-1])
	}
	if rest := strings.Split(k.OK("read_directory", args{"path": "d", "offset": 1001}), "\n"); len(rest) != 2 {
		t.Errorf("%q", rest)
	}
}

func encoded(t *testing.T, format string) []byte {
	t.Helper()
	var b bytes.Buffer
	img := image.NewPaletted(image.Rect(0, 0, 3, 2), nil)
	img.Palette = append(img.Palette, image.White.C, image.Black.C)
	var err error
	switch format {
	case "png":
		err = png.Encode(&b, img)
	case "jpeg":
		err = jpeg.Encode(&b, img, nil)
	case "gif":
		err = gif.Encode(&b, img, nil)
	case "webp":
		b.WriteString("RIFF\x24\x00\x00\x00WEBPVP8 \x18\x00\x00\x00\x30\x01\x00\x9d\x01\x2a\x01\x00\x01\x00\x02\x00\x34\x25\xa4\x00\x03\x70\x00\xfe\xfb\x94\x00\x00")
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// T10 T11: the type is what the bytes show.
func TestImportImage(t *testing.T) {
	k := newKit(t)
	for format, dims := range map[string]string{"png": "3x2", "jpeg": "3x2", "gif": "3x2", "webp": "1x1"} {
		data := encoded(t, format)
		k.Write("lying.txt", string(data))
		o := k.Call("import_image", args{"path": "lying.txt"})
		if o.Failed || len(o.Content.Parts) != 2 {
			t.Errorf("%s: %+v", format, o)
			continue
		}
		img, err := output.Image(data)
		if err != nil {
			t.Fatal(err)
		}
		text := "lying.txt: image/" + format + ", " + dims + " pixels, " + itoa(len(data)) + " bytes"
		want := []item.Part{&item.InputText{Text: text}, img}
		if diff := cmp.Diff(want, o.Content.Parts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
		if img.Detail != item.DetailAuto || !strings.HasPrefix(img.ImageURL, "data:image/"+format+";base64,") {
			t.Errorf("%s: %.40s %s", format, img.ImageURL, img.Detail)
		}
	}
	png := encoded(t, "png")
	k.Write("cut.png", string(png[:len(png)-20]))
	k.Write("damaged.jpg", "\xff\xd8\xff\xe0\x00\x00\xff\xd9")
	k.Write("text.png", "hello")
	k.Write("empty.png", "")
	k.Fails("import_image", args{"path": "cut.png"}, "begins as image/png but is incomplete")
	k.Fails("import_image", args{"path": "damaged.jpg"}, "header is damaged")
	k.Fails("import_image", args{"path": "text.png"}, "not a PNG, JPEG, GIF or WebP image; it looks like text: use read_file")
	k.Fails("import_image", args{"path": "empty.png"}, "not a PNG, JPEG, GIF or WebP image")
	// Of a BMP that only the program's images know, nothing but its size is told.
	k.Write("os2.bmp", "BM\x1e\x00\x00\x00\x00\x00\x00\x00\x1a\x00\x00\x00\x0c\x00\x00\x00\x01\x00\x01\x00\x01\x00\x18\x00\x01\x02\x03\x00")
	k.Fails("import_image", args{"path": "os2.bmp"}, "the image is image/bmp, and models take PNG, JPEG, GIF and WebP")
	big := k.Write("big.png", "")
	if err := os.Truncate(big, MaxImageBytes+1); err != nil {
		t.Fatal(err)
	}
	k.Fails("import_image", args{"path": "big.png"}, "the limit for an image is 20971520")
}
