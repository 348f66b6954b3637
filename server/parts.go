// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/item"
)

// forModel are the types of the parts that a client sends to a model, and ofModel those that a message of
// a model has too.
var (
	forModel = []string{"input_text", "input_image", "input_file"}
	ofModel  = append([]string{"output_text", "refusal"}, forModel...)
)

// chatParts are the types of parts in Chat Completions, which clients send by mistake. Its other types, such as sound,
// are also those of upstreams with a Responses API.
var chatParts = []string{"image_url", "file"}

// checkMessage checks the content of a message.
func checkMessage(at string, it item.Item, m *item.Message) *Error {
	if _, there := it.Member("content"); !there && m.Content.IsText() {
		return Invalid("missing_required_parameter", at+".content", "Missing required parameter: '%s.content'.", at)
	}
	allowed := forModel
	if m.Role == item.RoleAssistant {
		allowed = ofModel
		if it.ID() != "" { // it comes back as a server has said it
			allowed = append(slices.Clip(allowed), "text")
		}
	}
	return checkParts(at, "content", it, m.Content, allowed)
}

// checkOutput checks the output of a call. One that is missing is not an empty one.
func checkOutput(at string, it item.Item, c item.Content) *Error {
	if _, there := it.Member("output"); !there {
		return Invalid("missing_required_parameter", at+".output", "Missing required parameter: '%s.output'.", at)
	}
	return checkParts(at, "output", it, c, forModel)
}

// checkParts checks the parts in a member of a message or an output. Types that the API does not have are left to the
// backend: an upstream may have them.
func checkParts(at, member string, it item.Item, c item.Content, allowed []string) *Error {
	for i, p := range c.Parts {
		at := fmt.Sprintf("%s.%s[%d]", at, member, i)
		typ := p.PartType()
		_, unknown := p.(*item.UnknownPart)
		switch {
		case typ == "":
			return Invalid("missing_required_parameter", at+".type", "Missing required parameter: '%s.type'.", at)
		case slices.Contains(allowed, typ), unknown && !slices.Contains(chatParts, typ):
		default:
			return notOneOf(at+".type", typ, allowed)
		}
		var wrong *Error
		switch p := p.(type) {
		case *item.InputText:
			if p.Text == "" && !hasText(it, member, i) {
				wrong = Invalid("missing_required_parameter", at+".text", "Missing required parameter: '%s.text'.", at)
			}
		case *item.InputImage:
			wrong = checkInputImage(at, p)
		case *item.InputFile:
			wrong = checkInputFile(at, p)
		}
		if wrong != nil {
			return wrong
		}
	}
	return nil
}

// hasText reports whether part n in a member of an item has a text: one that is missing is not an empty one.
func hasText(it item.Item, member string, n int) (has bool) {
	parts, _ := it.Member(member)
	jsonx.EachElement(string(parts), func(part string) {
		if n == 0 {
			_, has = jsonx.MemberOf(part, "text")
		}
		n--
	})
	return has
}

func checkInputImage(at string, p *item.InputImage) *Error {
	switch {
	case p.ImageURL == "" && p.FileID == "":
		return noSource(at, p.Extra, "image_url", "file_id")
	case strings.HasPrefix(p.ImageURL, "data:"):
		return checkImage(at+".image_url", p.ImageURL)
	}
	return checkAddress(at+".image_url", p.ImageURL)
}

func checkInputFile(at string, p *item.InputFile) *Error {
	switch {
	case p.FileData == "" && p.FileURL == "" && p.FileID == "":
		return noSource(at, p.Extra, "file_data", "file_url", "file_id")
	case p.FileData != "":
		return checkFileData(at+".file_data", p.FileData)
	}
	return checkAddress(at+".file_url", p.FileURL)
}

// noSource returns the error for a part without content, whose other members are in extra. Some upstreams read
// members whatever the case of their letters.
func noSource(at string, extra item.Extra, names ...string) *Error {
	for _, m := range extra {
		i := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, m.Name) })
		switch {
		case i < 0 || m.Value == "null" || m.Value == `""`:
		case m.Name == names[i]:
			return Invalid("invalid_type", at+"."+m.Name, "Invalid type for '%s.%s': expected a string.", at, m.Name)
		default:
			return nil
		}
	}
	return Invalid("missing_required_parameter", at, "Missing required parameter: '%s' needs one of '%s'.", at, strings.Join(names, "', '"))
}

// checkAddress checks that an address is whole. It may be "".
func checkAddress(at, address string) *Error {
	if u, err := url.Parse(address); address == "" || err == nil && u.Scheme != "" {
		return nil
	}
	return Invalid("invalid_value", at, "Invalid '%s': expected a URL with its scheme, such as https, or data as a data URL; got %.60q.", at, address)
}

// checkFileData checks the data of a file: base64, alone or as a data URL.
func checkFileData(at, data string) *Error {
	payload := data
	if strings.HasPrefix(data, "data:") {
		var ok bool
		if _, payload, ok = item.CutDataURI(data); !ok {
			return Invalid("invalid_base64", at, "Invalid '%s': %.60q is not a base64 data URI.", at, data)
		}
	} else if u, err := url.Parse(data); err == nil && u.Scheme != "" {
		return nil // some upstreams take an address here
	}
	encoding := base64.StdEncoding
	if !strings.HasSuffix(payload, "=") && len(payload)%4 != 0 {
		encoding = base64.RawStdEncoding
	}
	n, err := io.Copy(io.Discard, base64.NewDecoder(encoding, strings.NewReader(payload)))
	switch {
	case err != nil:
		return Invalid("invalid_base64", at, "Invalid '%s': %v.", at, err)
	case n == 0:
		return Invalid("invalid_base64", at, "Invalid '%s': the file is empty.", at)
	}
	return nil
}

// checkImage checks the data of an image, which the endpoint must be able to decode.
func checkImage(at, uri string) *Error {
	mediaType, payload, ok := item.CutDataURI(uri)
	if !ok {
		return Invalid("invalid_base64", at, "Invalid '%s': %.60q is not a base64 data URI.", at, uri)
	}
	data, err := base64.StdEncoding.Strict().DecodeString(payload)
	if err != nil {
		return Invalid("invalid_base64", at, "Invalid '%s': %v.", at, err)
	}
	mediaType, _, _ = strings.Cut(mediaType, ";")
	switch real := http.DetectContentType(data); {
	case !strings.HasPrefix(real, "image/"):
		return Invalid("invalid_image_format", at, "Invalid '%s': the image data you provided does not represent a valid image: it is %s.", at, real)
	case real != mediaType:
		return Invalid("invalid_image_format", at,
			"Invalid '%s': the image data you provided does not represent a valid image: declared as %s, found %s.", at, cmp.Or(mediaType, "nothing"), real)
	}
	return nil
}
