// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package nonsense

// exceptions are the functions and methods that are not called, with the reason.
var exceptions = map[string]string{
	"agent.ForkTool":              "panics by contract, if an option contradicts the tool",
	"dialect.Register":            "is for the whole process, and panics by contract",
	"dialect/dialecttest.Run":     "a test of its own, which calls t.Run",
	"endpoint.RegisterAPI":        "is for the whole process, and panics by contract",
	"endpoint.Key.Format":         "package fmt calls it, and never with a nil fmt.State",
	"item.Must":                   "panics by contract",
	"item.SetMaxSize":             "is for the whole process",
	"mcpbridge.Connect":           "starts programs",
	"session/store.Register":      "is for the whole process, and panics by contract",
	"session/storetest.TestStore": "a test of its own, which calls t.Run",
	"sandbox.Enclose":             "takes the rights of the whole process",
	"toolkit.Files.Unlock":        "is fatal without Lock, as that of a sync.Mutex",
	"tool.Must":                   "panics by contract",
}
