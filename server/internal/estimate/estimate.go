// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package estimate estimates tokens, where nobody has counted them.
package estimate

import (
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

const (
	// BytesPerToken is how many bytes of text count as a token.
	BytesPerToken = 4
	// dataTokens is what an image or a file counts in estimates: its bytes say little about it.
	dataTokens = 1500
	// dataBytes is the length from which text without spaces is taken for the data of one.
	dataBytes = 4 << 10
)

// Tokens estimates the tokens of a request as JSON. The data of images and files is base64, and has
// many times more bytes than what it shows has tokens.
func Tokens(request string) (n int64) {
	data, text := 0, 0 // bytes of the data that may be one, and of all that is none
	end := func() {
		if data >= dataBytes {
			n += min(dataTokens, int64(data/BytesPerToken))
		} else {
			text += data
		}
		data = 0
	}
	for i := range len(request) {
		switch c := request[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '+', c == '/', c == '=', c == '\\': // some escape the slash
			data++
		default:
			end()
			text++
		}
	}
	end()
	return n + int64(text/BytesPerToken)
}

// Request estimates the tokens of a request without its history. own is its own input, in which the files
// that the request names have their content.
func Request(object item.Item, own []item.Item) int64 {
	sent := Tokens(object.JSON())
	input, _ := object.Member("input")
	if !strings.HasPrefix(string(input), "[") {
		return sent
	}
	n := sent - Tokens(string(input))
	for _, it := range own {
		n += Tokens(it.JSON())
	}
	return max(n, sent)
}
