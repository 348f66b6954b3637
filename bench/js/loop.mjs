// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Runs the loop of the benchmarks: node loop.mjs BASE-URL TURNS. It prints how
// many turns there were and the processor time that they took, in microseconds,
// without the start of the process and a short run to warm up.

import { Agent, MaxTurnsExceededError, run, setDefaultOpenAIClient, setOpenAIAPI, setTracingDisabled, tool } from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';

const [baseURL, turns] = [process.argv[2], Number(process.argv[3])];
setTracingDisabled(true);
setOpenAIAPI('responses');
setDefaultOpenAIClient(new OpenAI({ baseURL, apiKey: 'sk-bench-0123456789' }));

let calls = 0;
const text = 'A line of a file.\n'.repeat(20);
const agent = new Agent({
  name: 'bench',
  model: 'gpt-5.1',
  instructions: 'You are terse. Read what you need, then answer.',
  tools: [
    tool({
      name: 'read_file',
      description: 'Reads a file.',
      parameters: z.object({ path: z.string() }),
      execute: async () => {
        calls++;
        return text;
      },
    }),
  ],
});

// loop has the model asked so often. It calls the tool each time, so that the
// limit is what ends the run.
async function loop(maxTurns) {
  try {
    const stream = await run(agent, 'Read on.', { stream: true, maxTurns });
    for await (const _ of stream);
    await stream.completed;
  } catch (err) {
    if (!(err instanceof MaxTurnsExceededError)) throw err;
  }
}

await loop(5);
calls = 0;
const before = process.cpuUsage();
await loop(turns);
const { user, system } = process.cpuUsage(before);
console.log(JSON.stringify({ turns: calls, cpu: user + system }));
