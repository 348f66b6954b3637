// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// Estimator estimates how many tokens of a model's context an item takes. It must be
// pure: the same item gives the same number, whether its payloads are present or
// stored elsewhere.
type Estimator interface {
	Estimate(model string, it item.Item) int
}

// Estimate is the default [Estimator]. It counts bytes, because the package has no
// tokenizer; the usage that endpoints report corrects the estimate. Images count by
// their detail and size and never by their base64, and encrypted reasoning by the
// size of its content.
func Estimate(model string, it item.Item) int {
	const perItem = 4 // overhead of the item's frame
	s := it.JSON()
	switch it.Type() {
	case item.TypeReasoning, item.TypeCompaction:
		return perItem + estimateEncrypted(it)
	case item.TypeImageGenerationCall:
		return perItem + estimateImage(model, item.DetailHigh, it.Size())
	}
	if !strings.Contains(s, `"input_image"`) && !strings.Contains(s, `"input_file"`) && !strings.Contains(s, `"computer_screenshot"`) {
		return perItem + EstimateText(s)
	}
	return perItem + estimateParts(model, it)
}

// EstimateText counts one token for four bytes of ASCII, and one for three bytes of
// other scripts, which is about one letter.
func EstimateText(s string) int {
	other := 0
	for i := range len(s) {
		other += int(s[i] >> 7)
	}
	return (len(s)-other+3)/4 + (other+2)/3
}

// estimateEncrypted counts the readable parts of a reasoning or compaction item, and
// its encrypted part, which is a text with a frame, in base64.
func estimateEncrypted(it item.Item) int {
	const frame = 650
	secret, _ := it.Member("encrypted_content")
	hidden := max(0, len(secret)*3/4-frame) / 4
	if len(secret) == 0 {
		return EstimateText(it.JSON())
	}
	summary, _ := it.Member("summary")
	content, _ := it.Member("content")
	return hidden + EstimateText(string(summary)) + EstimateText(string(content))
}

// estimateParts counts the parts of a message or an output.
func estimateParts(model string, it item.Item) (tokens int) {
	content, ok := ContentOf(it)
	if !ok {
		return estimateImage(model, item.DetailHigh, it.Size())
	}
	// A payload that is stored elsewhere is known only by its sum.
	payloads, bytes := 0, it.Size()-len(it.JSON())
	for _, p := range content.Parts {
		url := ""
		switch p := p.(type) {
		case *item.InputImage:
			url = p.ImageURL
		case *item.InputFile:
			url = p.FileData
		}
		if _, data, ok := item.CutDataURI(url); ok {
			payloads++
			bytes += len(data)
		}
	}
	for _, p := range content.Parts {
		switch p := p.(type) {
		case *item.InputImage:
			tokens += estimateImage(model, p.Detail, bytes/max(payloads, 1))
		case *item.InputFile:
			tokens += estimateFile
		default:
			tokens += EstimateText(item.Parts(p).Display())
		}
	}
	return tokens
}

// estimateFile is the estimate for a file. Only the endpoint knows its real size,
// because it reads the pages as text and as images.
const estimateFile = 1500

// ContentOf returns the content of a message or an output.
func ContentOf(it item.Item) (item.Content, bool) {
	// Only these items have content; As skips the others without decoding them.
	if m, err := item.As[item.Message](it); err == nil {
		return m.Content, true
	}
	if o, err := item.As[item.FunctionCallOutput](it); err == nil {
		return o.Output, true
	}
	if o, err := item.As[item.CustomToolCallOutput](it); err == nil {
		return o.Output, true
	}
	return item.Content{}, false
}

// estimateImage estimates an image. Endpoints count tiles or patches of its pixels.
// The pixels of an image that is stored elsewhere are unknown, so the size of its
// base64 is used instead, between one tile and the number of tiles of the largest
// image after scaling. An image given by URL counts as large.
func estimateImage(model string, detail item.Detail, base64 int) int {
	const tileBytes, tiles = 40 << 10, 8
	n := tiles
	if base64 > 0 {
		n = min(1+base64/tileBytes, tiles)
	}
	base, tile := imageTokens(model)
	if detail == item.DetailLow {
		return base
	}
	return base + n*tile
}

// imageTokens returns the tokens of an image of low detail, and of each tile of
// higher detail.
func imageTokens(model string) (base, tile int) {
	switch {
	case strings.Contains(model, "gpt-4o-mini"):
		return 2833, 5667
	case strings.Contains(model, "gpt-5"):
		return 70, 140
	case strings.Contains(model, "-mini"), strings.Contains(model, "-nano"):
		return 415, 420 // patches, up to 1 536 times 1.62 to 2.46
	case strings.HasPrefix(model, "o1"), strings.HasPrefix(model, "o3"):
		return 75, 150
	}
	return 85, 170
}
