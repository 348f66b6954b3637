// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"html/template"
	"net/http"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/item"
)

// picture is an image on a page: a tag that includes its data, a link to it, or a
// description.
type picture struct {
	Tag     template.HTML
	Link    string
	Caption string
	ID      string // set if others refer to it
	Same    string // the ID of the same picture above
}

// shownTypes are the image types that browsers show.
var shownTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp", "image/svg+xml"}

// picture makes an image from a URL or a file id. A page loads nothing, so an image
// elsewhere becomes a link.
func (p *printer) picture(url, fileID string, detail item.Detail) picture {
	caption := ""
	if detail != "" && detail != item.DetailAuto {
		caption = "detail " + plain(shorten(p.hide(string(detail)), 40))
	}
	mediaType, payload, ok := item.CutDataURI(url)
	if !ok {
		return p.elsewhere("image", url, fileID, caption)
	}
	mediaType = strings.ToLower(strings.TrimSpace(mediaType))
	about := fmt.Sprintf("%s, %s", plain(shorten(mediaType, 60)), sizeText(decodedLen(payload)))
	caption = joined(about, caption)
	if !isBase64(payload) || !slices.Contains(shownTypes, mediaType) {
		return picture{Caption: "an image that cannot be shown: " + caption}
	}
	return p.once(mediaType, payload, caption)
}

// largeImage is the size from which on a payload appears only once on a page.
const largeImage = 16 << 10

// once returns an image with its data, or a reference to the same image above.
func (p *printer) once(mediaType, payload, caption string) picture {
	pic := picture{Caption: caption}
	if len(payload) >= largeImage {
		key := sha256.Sum256([]byte(payload))
		if id, seen := p.pictures[key]; seen {
			pic.Same = id
			return pic
		}
		pic.ID = fmt.Sprintf("i%d", len(p.pictures)+1)
		p.pictures[key] = pic.ID
	}
	// The template would copy and escape a long address byte by byte. This address
	// needs no escaping: it consists of a name from a list and base64.
	pic.Tag = template.HTML(`<img alt="` + html.EscapeString(caption) + `" decoding="async" src="data:` + mediaType + `;base64,` + payload + `">`)
	return pic
}

// elsewhere describes an image or a file that is not in the log.
func (p *printer) elsewhere(what, url, fileID, caption string) picture {
	switch {
	case url != "" && leadsOut(url):
		return picture{Link: plain(p.hide(url)), Caption: caption}
	case url != "":
		caption = joined("an address that is not a link: "+shorten(p.hide(short(url)), 200), caption)
	case fileID != "":
		caption = joined(what+" "+shorten(p.hide(fileID), 100)+", kept by the endpoint", caption)
	default:
		caption = joined("no "+what, caption)
	}
	return picture{Caption: plain(caption)}
}

// file is a file on a page: a link to save it, or to its address.
type file struct {
	Tag     template.HTML
	Link    string
	Name    string
	Caption string
}

// file makes a file from a part. Its type is one that browsers do not show, so that
// it can only be saved.
func (p *printer) file(part *item.InputFile) file {
	name := fileName(p.hide(part.Filename))
	mediaType, payload, ok := item.CutDataURI(part.FileData)
	if !ok {
		payload = part.FileData
	}
	switch {
	case part.FileData == "":
		e := p.elsewhere("file", part.FileURL, part.FileID, "")
		return file{Link: e.Link, Name: name, Caption: e.Caption}
	case !isBase64(payload):
		return file{Name: name, Caption: "data that cannot be read, " + sizeText(len(part.FileData))}
	}
	payload = p.hideIn(payload)
	caption := joined(plain(shorten(mediaType, 60)), sizeText(decodedLen(payload)))
	tag := `<a class="save" download="` + html.EscapeString(name) + `" href="data:application/octet-stream;base64,` + payload + `">`
	return file{Tag: template.HTML(tag), Name: name, Caption: caption}
}

// kept offers the stored data of an output for saving: the full text of a shortened
// output, or an original. It appears on the page once.
func (p *printer) kept(id string) {
	if p.log.Blob == nil || p.saved[id] || p.err != nil {
		return
	}
	data, err := p.log.Blob(id)
	if err != nil {
		p.err = err
		return
	}
	if p.saved == nil {
		p.saved = map[string]bool{}
	}
	if p.saved[id] = true; data == nil {
		p.show("label", "The stored output "+shorten(id, 64)+" was missing when this page was made.")
		return
	}
	mediaType, _, _ := strings.Cut(http.DetectContentType(data), ";")
	ending := ".bin"
	if kind, name, _ := strings.Cut(mediaType, "/"); kind == "image" {
		ending = "." + name
	} else if utf8.Valid(data) {
		mediaType, ending = "text/plain", ".txt"
	}
	p.show("label", "Kept beside the output:")
	p.show("file", p.file(&item.InputFile{Filename: shorten(id, 16) + ending, FileData: "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(data)}))
}

// hideIn hides secrets in a base64 file.
func (p *printer) hideIn(payload string) string {
	if p.log.Hide == nil {
		return payload
	}
	data, err := base64.StdEncoding.DecodeString(payload)
	if err != nil {
		return payload
	}
	if said := p.hide(string(data)); said != string(data) {
		return base64.StdEncoding.EncodeToString([]byte(said))
	}
	return payload
}

// fileName returns a safe file name for a name that a model or a person chose.
func fileName(s string) string {
	s = path.Base(strings.ReplaceAll(plain(s), `\`, "/"))
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune("<>:\"|?*\n\t/", r) {
			return '_'
		}
		return r
	}, s)
	if s = strings.Trim(shortName(s), ". "); s == "" {
		return "file"
	}
	return s
}

// shortName shortens a long name and keeps its extension.
func shortName(s string) string {
	r := []rune(s)
	if len(r) <= 100 {
		return s
	}
	end := []rune(path.Ext(s))
	if len(end) > 20 {
		end = nil
	}
	return string(r[:100-len(end)]) + string(end)
}

// isBase64 reports whether s is complete base64.
func isBase64(s string) bool {
	if len(s) == 0 || len(s)%4 != 0 {
		return false
	}
	s = strings.TrimSuffix(strings.TrimSuffix(s, "="), "=")
	for i := range len(s) {
		if !base64Letters[s[i]] {
			return false
		}
	}
	return true
}

var base64Letters = func() (letters [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		letters[c] = true
	}
	return letters
}()

// decodedLen returns the decoded size of a payload.
func decodedLen(payload string) int {
	n := len(payload) / 4 * 3
	for i := len(payload) - 1; i >= 0 && i >= len(payload)-2 && payload[i] == '='; i-- {
		n--
	}
	return n
}
