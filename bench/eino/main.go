// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Eino runs the loop of the benchmarks with the agent framework of that name:
// eino BASE-URL TURNS. It prints how many turns there were and the processor time
// that they took, in microseconds, without the start of the process and a short
// run to warm up. It is a program of its own, so that what the framework links
// does not weigh on the others.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "eino:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("want a base URL and a number of turns")
	}
	turns, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	if _, err := loop(args[0], 5); err != nil {
		return err
	}
	before := cpuTime()
	calls, err := loop(args[0], turns)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(map[string]int64{"turns": int64(calls), "cpu": cpuTime() - before})
}

type input struct {
	Path string `json:"path"`
}

// loop has the model asked so often. It calls the tool each time, so that the
// limit is what ends the run.
func loop(base string, turns int) (calls int, err error) {
	ctx := context.Background()
	model, err := openai.NewChatModel(ctx, &openai.ChatModelConfig{APIKey: "sk-bench-0123456789", BaseURL: base, Model: "gpt-5.1"})
	if err != nil {
		return 0, err
	}
	text := strings.Repeat("A line of a file.\n", 20)
	read, err := utils.InferTool("read_file", "Reads a file.", func(context.Context, input) (string, error) {
		calls++
		return text, nil
	})
	if err != nil {
		return 0, err
	}
	agent, err := react.NewAgent(ctx, &react.AgentConfig{
		ToolCallingModel:      model,
		ToolsConfig:           compose.ToolsNodeConfig{Tools: []tool.BaseTool{read}},
		MaxStep:               2 * turns, // the model and the tools are a step each
		StreamToolCallChecker: callsTool,
	})
	if err != nil {
		return 0, err
	}
	stream, err := agent.Stream(ctx, []*schema.Message{
		schema.SystemMessage("You are terse. Read what you need, then answer."), schema.UserMessage("Read on."),
	})
	if err == nil {
		stream.Close()
	}
	if err != nil && !errors.Is(err, compose.ErrExceedMaxSteps) {
		return calls, err
	}
	return calls, nil
}

// callsTool reads a reply up to its first call: words may come before.
func callsTool(_ context.Context, reply *schema.StreamReader[*schema.Message]) (bool, error) {
	defer reply.Close()
	for {
		m, err := reply.Recv()
		switch {
		case err == io.EOF:
			return false, nil
		case err != nil:
			return false, err
		case len(m.ToolCalls) > 0:
			return true, nil
		}
	}
}

// cpuTime is the processor time that the process has used, in microseconds.
func cpuTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return (u.Utime.Nano() + u.Stime.Nano()) / 1000
}
