// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"testing"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
)

// TestGenerated proves that an image of the endpoint is one with a data URI.
func TestGenerated(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"image_generation_call","id":"i","status":"completed","result":"iVBORw0KGgo="}`: "data:image/png;base64,iVBORw0KGgo=",
		`{"type":"image_generation_call","id":"i","status":"completed","result":"/9j/4AAQ"}`:     "data:image/jpeg;base64,/9j/4AAQ",
		`{"type":"image_generation_call","id":"i","status":"failed","result":null}`:              "",
		`{"type":"message","role":"assistant","content":[]}`:                                     "",
	} {
		it, err := item.ParseString(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := generated(it); got != want {
			t.Errorf("%s: %q", in, got)
		}
	}
}

// TestPictureWay proves that a multiplexer gets blocks, unless pictures are off.
func TestPictureWay(t *testing.T) {
	for _, c := range []struct {
		env  host.Environment
		want string
	}{
		{host.Environment{}, "auto"},
		{host.Environment{"TMUX": "/tmp/x,1,0"}, "blocks"},
		{host.Environment{"STY": "1.x"}, "blocks"},
		{host.Environment{"ZELLIJ": "0"}, "blocks"},
		{host.Environment{"TMUX": "/tmp/x,1,0", "ANTIPHON_IMAGES": "off"}, "off"},
		{host.Environment{"ANTIPHON_IMAGES": "blocks"}, "blocks"},
	} {
		if got, err := PictureWay(c.env); got != c.want || err != nil {
			t.Errorf("%v: %s, %v, want %s", c.env, got, err, c.want)
		}
	}
}
