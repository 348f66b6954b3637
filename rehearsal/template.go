// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/template"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
)

// parseTemplate compiles a text. Its functions are only declared until [render]
// binds them to a request.
func parseTemplate(text string) (*template.Template, error) {
	t, err := template.New("script").Option("missingkey=error").Funcs(bounded((&facts{}).functions())).Parse(text)
	if err != nil {
		return nil, err
	}
	return t, bound(t)
}

// render executes a statement's template over the facts of one request.
func (st *statement) render(f *facts) (string, error) {
	t, err := st.text.Clone()
	if err != nil {
		return "", err
	}
	var b limited
	if err := t.Funcs(bounded(f.functions())).Execute(&b, nil); err != nil {
		return "", err
	}
	return b.String(), nil
}

// place matches the form in which text/template reports the place of an error.
var place = lazyregexp.New(`^template: script:(\d+)(?::(\d+))?: (?s:(.*))$`)

// templateError returns the line (from 1) and the offset of an error in a template,
// and the problem without them.
func templateError(err error) (line, offset int, problem string) {
	line, problem = 1, err.Error()
	if m := place.FindStringSubmatch(problem); m != nil {
		line, _ = strconv.Atoi(m[1])
		offset, _ = strconv.Atoi(m[2])
		problem = strings.TrimPrefix(m[3], `executing "script" `)
	}
	var missing *missingError
	if errors.As(err, &missing) {
		problem = missing.problem
	}
	return line, offset, problem
}

// missingError means that a template needs a fact that the request does not contain.
type missingError struct{ problem string }

func (e *missingError) Error() string { return e.problem }

func missing(format string, args ...any) error {
	return &missingError{fmt.Sprintf(format, args...)}
}
