// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// problem is a request that is refused, as the API words it.
type problem struct {
	status  int
	typ     string
	code    string // "" for null
	param   string // "" for null
	message string
}

func (p *problem) Error() string { return p.message }

const invalidRequest = "invalid_request_error"

func invalid(code, param, format string, args ...any) *problem {
	return &problem{http.StatusBadRequest, invalidRequest, code, param, fmt.Sprintf(format, args...)}
}

// body returns the error as the body of a response.
func (p *problem) body() []byte { return fmt.Appendf(nil, "{\n  \"error\": %s\n}\n", p.object()) }

func (p *problem) object() []byte {
	orNull := func(s string) item.JSON {
		if s == "" {
			return "null"
		}
		return item.Quote(s)
	}
	return fmt.Appendf(nil, "{\n    \"message\": %s,\n    \"type\": %s,\n    \"param\": %s,\n    \"code\": %s\n  }",
		item.Quote(p.message), item.Quote(p.typ), orNull(p.param), orNull(p.code))
}

// internal is a mistake of the rehearsal itself.
func internal(err error) *problem {
	return &problem{http.StatusInternalServerError, "server_error", "server_error", "", err.Error()}
}

// notFound is the answer where an object is not there.
func notFound(kind, id string) *problem {
	return &problem{http.StatusNotFound, invalidRequest, "", "", fmt.Sprintf("%s with id '%s' not found.", kind, id)}
}

// unreadable is a body that is not a request.
func unreadable(err error) *problem {
	var shape *item.ShapeError
	if errors.As(err, &shape) {
		return invalid("invalid_type", shape.Path, "Invalid type for '%s': %s.", shape.Path, shape.Problem)
	}
	return invalid("", "", "We could not parse the JSON body of your request: %v.", err)
}

// minOutputTokens is the API's lower bound.
const minOutputTokens = 16

func checkMembers(req *item.Request) *problem {
	switch {
	case req.Model == "":
		return invalid("missing_required_parameter", "model", "Missing required parameter: 'model'.")
	case req.MaxOutputTokens != nil && *req.MaxOutputTokens < minOutputTokens:
		return invalid("integer_below_min_value", "max_output_tokens",
			"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= %d, but got %d instead.", minOutputTokens, *req.MaxOutputTokens)
	case len(req.Tools) == 0 && req.ToolChoice != "":
		return invalid("", "tool_choice", "Tool choice is only allowed when 'tools' are specified.")
	}
	return nil
}

func checkTools(req *item.Request) *problem {
	seen := map[string]bool{}
	for i, t := range req.Tools {
		at := fmt.Sprintf("tools[%d]", i)
		switch t.(type) {
		case *item.FunctionTool, *item.CustomTool:
		default:
			continue // hosted, or of no use here
		}
		name := nameOf(t)
		if !toolName.MatchString(name) {
			return invalid("invalid_value", at+".name", "Invalid '%s.name': %q does not match '%s'.", at, name, toolName)
		}
		if seen[name] {
			return invalid("invalid_value", at+".name", "Invalid '%s.name': a second tool is named %q.", at, name)
		}
		seen[name] = true
		if fn, ok := t.(*item.FunctionTool); ok && fn.Parameters != "" && fn.Parameters != "null" {
			if s := parseSchema(fn.Parameters); s == nil || !s.is("object") {
				return invalid("invalid_function_parameters", at+".parameters",
					"Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"'.", name)
			}
		}
	}
	return nil
}

// maxCallID is the API's limit for the length of a call_id.
const maxCallID = 64

func checkItems(items []item.Item) *problem {
	for i, it := range items {
		at := fmt.Sprintf("input[%d]", i)
		v, err := it.Decode()
		var shape *item.ShapeError
		if errors.As(err, &shape) {
			path := at + "." + shape.Path
			return invalid("invalid_type", path, "Invalid type for '%s': %s.", path, shape.Problem)
		}
		if id := it.CallID(); len(id) > maxCallID {
			return invalid("string_above_max_length", at+".call_id",
				"Invalid '%s.call_id': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", at, maxCallID, len(id))
		}
		if it.Type() == item.TypeCompactionTrigger {
			return invalid("invalid_value", at+".type", "Invalid '%s.type': the rehearsal compacts at POST /v1/responses/compact only.", at)
		}
		if p := checkValue(at, v); p != nil {
			return p
		}
	}
	return nil
}

func checkValue(at string, v item.Value) *problem {
	switch v := v.(type) {
	case *item.Message:
		switch v.Role {
		case item.RoleUser, item.RoleAssistant, item.RoleSystem, item.RoleDeveloper:
		default:
			return invalid("invalid_value", at+".role", "Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'.", v.Role)
		}
		return checkParts(at+".content", v.Content)
	case *item.FunctionCall:
		return checkCallName(at, v.Name)
	case *item.CustomToolCall:
		return checkCallName(at, v.Name)
	case *item.FunctionCallOutput:
		return checkParts(at+".output", v.Output)
	case *item.CustomToolCallOutput:
		return checkParts(at+".output", v.Output)
	}
	return nil
}

func checkCallName(at, name string) *problem {
	if toolName.MatchString(name) {
		return nil
	}
	return invalid("invalid_value", at+".name", "Invalid '%s.name': %q does not match '%s'.", at, name, toolName)
}

// checkParts looks at inline images, of which the endpoint must make sense.
func checkParts(at string, c item.Content) *problem {
	for i, p := range c.Parts {
		img, ok := p.(*item.InputImage)
		if !ok || !strings.HasPrefix(img.ImageURL, "data:") {
			continue
		}
		at := fmt.Sprintf("%s[%d].image_url", at, i)
		mediaType, data, err := decodeImage(img.ImageURL)
		if err != nil {
			return invalid("invalid_base64", at, "Invalid '%s': %v.", at, err)
		}
		if real := http.DetectContentType(data); real != mediaType || !strings.HasPrefix(real, "image/") {
			return invalid("invalid_image_format", at,
				"Invalid '%s': the image data you provided does not represent a valid image: declared as %s, found %s.", at, mediaType, real)
		}
	}
	return nil
}
