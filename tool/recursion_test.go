// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"encoding/hex"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
)

type branch struct {
	Name  string            `json:"name"`
	Left  *branch           `json:"left" jsonschema:"what is on the left"`
	Kids  []branch          `json:"kids,omitempty"`
	Named map[string]branch `json:"named,omitempty"`
}

type knot[T any] struct {
	Value T        `json:"value"`
	Next  *knot[T] `json:"next"`
}

type lists []lists

// Types that contain each other in every order.
type (
	ringA struct {
		A *ringA
		B *ringB
		C *ringC
		N int `minimum:"1"`
	}
	ringB struct {
		A *ringA
		B *ringB
		C *ringC
	}
	ringC struct {
		A *ringA
		B *ringB
		C []ringC
	}
)

type grove struct {
	Trees []branch   `json:"trees"`
	Knot  knot[int8] `json:"knot"`
}

// A type that contains itself has a schema with references, which strict mode accepts; what is
// inside is checked at any depth, and decoded. T13 G3
func TestTypesThatContainThemselves(t *testing.T) {
	const branches = `{"type":"object","properties":{"name":{"type":"string"},"left":{"anyOf":[{"$ref":"#/$defs/branch"},{"type":"null"}],"description":"what is on the left"},` +
		`"kids":{"type":"array","items":{"$ref":"#/$defs/branch"}},"named":{"type":"object","additionalProperties":{"$ref":"#/$defs/branch"}}},"required":["name","left"],"additionalProperties":false`
	if got, err := tool.SchemaOf[branch](); err != nil || string(got) != branches+`,"$defs":{"branch":`+branches+`}}}` {
		t.Errorf("%s, %v", got, err)
	}
	contained[branch](t, `{"name":"a","left":{"name":"b","left":null,"kids":null},"kids":[{"name":"c","left":null}],"named":{"x":{"name":"d","left":null}}}`,
		map[string]string{`{"name":"a","left":{"name":"b","left":{"name":"c"}}}`: `left.left: missing member "left"`, `{"name":"a","left":null,"kids":[{"name":1,"left":null}]}`: `kids[0].name: type`})
	contained[lists](t, `[[],[[]]]`, map[string]string{`[[],[1]]`: `[1][0]: type`})
	contained[knot[string]](t, `{"value":"a","next":{"value":"b","next":null}}`, map[string]string{`{"value":"a","next":{"value":1,"next":null}}`: "next.value: type"})
	contained[grove](t, `{"trees":[{"name":"a","left":null}],"knot":{"value":1,"next":null}}`, map[string]string{`{"trees":[],"knot":{"value":1,"next":{"value":128,"next":null}}}`: "knot.next.value: 128 is more than the maximum 127"})
	contained[ringC](t, `{"A":{"A":null,"B":null,"C":{"A":null,"B":null,"C":[]},"N":1},"B":null,"C":[]}`,
		map[string]string{`{"A":null,"B":{"A":{"A":null,"B":null,"C":null,"N":0},"B":null,"C":null},"C":[]}`: "B.A.N: 0 is less than the minimum 1"})
	for _, text := range []string{schemaText[ringA](t), schemaText[knot[int]](t)} {
		s, err := tool.ParseSchema(item.JSON(text))
		if err != nil || s.Strict() != nil {
			t.Errorf("%v, %v\n%s", err, s.Strict(), text)
		}
	}
	if _, err := tool.New("f", "d", func(context.Context, ringA) (string, error) { return "", nil }, tool.Strict(true)); err != nil {
		t.Error(err)
	}
}

func schemaText[T any](t *testing.T) string {
	t.Helper()
	text, err := tool.SchemaOf[T]()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// contained checks that a text is accepted, by the schema as it is sent too, and comes back as it was; and the
// problems of others.
func contained[T any](t *testing.T, text string, problems map[string]string) {
	t.Helper()
	s, err := tool.NewSchema[T]()
	if err != nil {
		t.Error(err)
		return
	}
	sent, err := tool.ParseSchema(s.JSON())
	if err != nil {
		t.Error(err)
		return
	}
	var v T
	if err := s.Decode(text, &v); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	for text, want := range problems {
		if err := s.Check(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
		if sent.Check(text) == nil {
			t.Errorf("%s: the schema that is sent accepts it", text)
		}
	}
}

type uuid [4]byte

func (u uuid) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(u[:])), nil }

func (u *uuid) UnmarshalText(text []byte) error {
	_, err := hex.Decode(u[:], text)
	return err
}

type foreign struct {
	Addr  netip.Addr         `json:"addr"`
	UUID  uuid               `json:"uuid"`
	Of    map[netip.Addr]int `json:"of,omitempty"`
	Count *big.Int           `json:"count"`
	Years map[int16]string   `json:"years"`
	At    map[uint]time.Time `json:"at,omitempty"`
}

// Named is embedded by a pointer, so its name is exported.
type Named struct {
	ID string `json:"id"`
}

type embedding struct {
	*Named
	Size int `json:"size"`
}

// Types of other packages whose JSON is a text, maps with whole numbers as keys, and embedded
// pointers have the schema of their JSON. T13
func TestTypesOfOthers(t *testing.T) {
	s, err := tool.NewSchema[foreign]()
	if err != nil {
		t.Fatal(err)
	}
	var v foreign
	text := `{"addr":"::1","uuid":"01020304","of":{"1.2.3.4":1},"count":123456789012345678901234567890,"years":{"-44":"Ides","2026":"now"},"at":{"1":"2026-01-02T03:04:05Z"}}`
	if err := s.Decode(text, &v); err != nil || v.UUID != (uuid{1, 2, 3, 4}) || v.Years[-44] != "Ides" || v.Count.String() != "123456789012345678901234567890" {
		t.Errorf("%+v, %v", v, err)
	}
	for text, want := range map[string]string{
		`{"addr":"x","uuid":"00","count":null,"years":{}}`:                    `the value at /addr does not fit netip.Addr`,
		`{"addr":"::1","uuid":"01020304","count":1,"years":{"44":"","x":""}}`: `years: unknown member "x"`,
		`{"addr":"::1","uuid":"01020304","count":1,"years":{"40000":""}}`:     `the value at /years/40000 does not fit int16`,
		`{"addr":"::1","uuid":"01020304","count":"1","years":{}}`:             `count: type`,
	} {
		if err := s.Decode(text, new(foreign)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	e, err := tool.NewSchema[embedding]()
	if err != nil {
		t.Fatal(err)
	}
	var w embedding
	if err := e.Decode(`{"id":"a","size":1}`, &w); err != nil || w.ID != "a" {
		t.Errorf("%+v, %v", w, err)
	}
	if err := e.Check(`{"size":1}`); err == nil || err.Error() != `missing member "id"` {
		t.Error(err)
	}
	_, err = tool.SchemaOf[struct {
		Rest map[string]any `json:",inline"`
	}]()
	if err == nil || !strings.Contains(err.Error(), "option inline, which is not read here: embed the struct") {
		t.Error(err)
	}
	got, err := tool.SchemaOf[map[uint8]bool]()
	if want := `{"properties":{},"type":"object","propertyNames":{"pattern":"^-?(0|[1-9][0-9]*)$"},"additionalProperties":{"type":"boolean"}}`; err != nil || cmp.Diff(want, string(got)) != "" {
		t.Errorf("%s, %v", got, err)
	}
}
