// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
)

// An image in the output of a tool is a file that clients of the project can read, also when
// the response is read later and in a next request, until the response is deleted. V1 V3 J9
func TestOutputFiles(t *testing.T) {
	w := serving(t, reader+"<tool name=\"import_image\"/>\n", "again\nturn\n  call import_image {\"path\": \"dot.png\"}\nturn\n  say Seen.\n", nil)
	dots := image.NewRGBA(image.Rect(0, 0, 40, 40))
	for i := range 1600 {
		dots.Set(i%40, i/40, color.RGBA{uint8(i * 7), uint8(i * 13), uint8(i * 29), 255})
	}
	var picture bytes.Buffer
	if err := png.Encode(&picture, dots); err != nil {
		t.Fatal(err)
	}
	write(t, w.dir, "dot.png", picture.String())
	made := w.create(`{"model":"it","input":"Look."}`)
	w.same(made)
	call, err := item.As[item.MCPCall](made.Output[0])
	id := regexp.MustCompile(`file-[a-z2-7]+_\d+_\d+_\d+`).FindString(call.Output)
	if err != nil || !strings.Contains(call.Output, `<image src="`+id+`"`) || id == "" {
		t.Fatalf("%+v %v", call, err)
	}
	if status, body := w.send(http.MethodGet, "files/"+id+"/content", ""); status != http.StatusOK || body != picture.String() {
		t.Errorf("%d, %d bytes, not %d", status, len(body), picture.Len())
	}
	if status, body := w.send(http.MethodGet, "files/"+id, ""); status != http.StatusOK || !strings.Contains(body, `"image.png"`) || !strings.Contains(body, "assistants_output") {
		t.Errorf("%d %s", status, body)
	}
	if _, body := w.send(http.MethodGet, "files", ""); strings.Contains(body, id) {
		t.Errorf("it is listed as an upload: %s", body)
	}
	w.create(`{"model":"it","input":[{"role":"user","content":[{"type":"input_image","detail":"auto","file_id":"` + id + `"}]}]}`)
	w.refused(http.MethodDelete, "files/"+id, "", "deleted with its response")
	cut := strings.LastIndexByte(id, '_')
	for _, other := range []string{id[:cut] + "_7", id[:cut] + "_-1", id[:cut] + "_01", strings.Replace(id, "file-", "file-a", 1), id + "_0", "file-_1_1_0"} {
		w.refused(http.MethodGet, "files/"+other+"/content", "", "")
	}
	unstored := w.create(`{"model":"it","input":"Look.","store":false}`)
	if call, err := item.As[item.MCPCall](unstored.Output[0]); err != nil || strings.Contains(call.Output, "file-") || !strings.Contains(call.Output, "image/png") {
		t.Errorf("%+v %v", call, err)
	}
	w.b.Owner = "another"
	if status, body := w.send(http.MethodGet, "files/"+id+"/content", ""); status != http.StatusNotFound {
		t.Errorf("another project: %d %.100s", status, body)
	}
	w.b.Owner = ""
	if status, body := w.send(http.MethodDelete, "responses/"+made.ID, ""); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
	w.refused(http.MethodGet, "files/"+id, "", "")
}
