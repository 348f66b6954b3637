// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package shell_test

import (
	"fmt"
	"log"

	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit"
	"github.com/antiphon-go/antiphon/toolkit/shell"
)

// A policy is about the programs that run, not about how the command begins.
func ExampleCommand_Approval() {
	files, err := toolkit.Open(toolkit.Root{Path: "."})
	if err != nil {
		log.Fatal(err)
	}
	defer files.Close()
	run, err := shell.RunCommand("run_command", files, shell.Options{
		Policy: shell.Policy{Deny: []shell.Rule{{"rm"}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, arguments := range []string{
		`{"command":["env","LANG=C","rm","-rf","x"]}`,
		`{"command":["sh","-c","echo $(r\\m x)"]}`,
		`{"command":["sh","-c","$tool x"]}`,
		`{"command":["grep","rm","x"]}`,
	} {
		verdict, reason := run.Approval(tool.Call{Name: "run_command", Arguments: arguments}, nil)
		fmt.Printf("%q %s\n", verdict, reason)
	}
	// Output:
	// "deny" the rule "rm" denies "rm -rf x"
	// "deny" the rule "rm" denies "rm x"
	// "ask" the command cannot be analysed: the program is named by what is only known when it runs ("… x")
	// "" no rule is about "grep rm x"
}
