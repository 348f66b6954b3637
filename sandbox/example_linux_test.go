// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"

	"github.com/antiphon-go/antiphon/sandbox"
)

func build(ctx context.Context, workspace string) error {
	cmd := exec.Command("/bin/sh", "-c", "echo built > result; echo no > /usr/result")
	cmd.Dir = workspace
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	run, err := sandbox.Command(ctx, sandbox.Workspace(workspace), cmd)
	if err != nil {
		return err // this system cannot confine programs, or the profile is wrong
	}
	if err := run.Start(); err != nil {
		return err
	}
	end, err := run.Wait()
	if err != nil {
		return err // the program did not run, or ctx ended it
	}
	for _, denial := range run.Denials(end, out.String()) {
		fmt.Println(denial.Reason)
	}
	return nil
}

func ExampleCommand() {
	workspace, err := os.MkdirTemp("", "workspace")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(workspace)
	if err := build(context.Background(), workspace); err != nil {
		log.Fatal(err)
	}
	// Output: the sandbox does not allow writing /usr/result
}

// The program may download packages, and reaches nothing else.
func ExampleProfile_hosts() {
	workspace := "/home/ada/project"
	profile := sandbox.Workspace(workspace)
	profile.Hosts = []string{"proxy.golang.org", "*.npmjs.org", "build.example.com:8443"}
	run, err := sandbox.Command(context.Background(), profile, exec.Command("npm", "ci"))
	if err != nil {
		log.Fatal(err) // for example: this system has no namespaces
	}
	defer run.Close()
}
