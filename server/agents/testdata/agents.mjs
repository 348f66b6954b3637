// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Talks to agents with OpenAI's Agents SDK: an agent there has an agent here as its model.
import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { Agent, OpenAIConversationsSession, hostedMcpTool, run, setDefaultOpenAIClient, setTracingDisabled, tool } from '@openai/agents';
import { png, play } from './play.mjs';

const client = new OpenAI({ baseURL: process.argv[2], apiKey: 'none', maxRetries: 0 });
setDefaultOpenAIClient(client);
setTracingDisabled(true);
const plain = new Agent({ name: 'Plain', instructions: 'Help.', model: 'plain' });
const look = tool({
  name: 'look', description: 'looks', strict: false, execute: async ({ at }) => `a red ${at}`,
  parameters: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'], additionalProperties: true },
});
// It takes requests for approval from servers alone that it knows: this names the agent.
const own = hostedMcpTool({ serverLabel: 'doors', serverUrl: '', requireApproval: 'always' });

await play({
  async 'text, in one piece and streamed'() {
    assert.match((await run(plain, 'Hello.')).finalOutput, /You said: "Hello\."/);
    const r = await run(plain, 'Hello.', { stream: true });
    let text = '';
    for await (const piece of r.toTextStream()) text += piece;
    await r.completed;
    assert.match(text, /You said: "Hello\."/);
  },

  async 'an image'() {
    const r = await run(plain, [{ role: 'user', content: [{ type: 'input_text', text: 'What is it?' }, { type: 'input_image', image: `data:image/png;base64,${png}` }] }]);
    assert.match(r.finalOutput, /image\/png/);
  },

  async 'structured output'() {
    const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'], additionalProperties: false };
    const r = await run(new Agent({ name: 'JSON', model: 'json', outputType: { type: 'json_schema', name: 'answer', strict: true, schema } }), 'Answer.');
    assert.deepEqual(r.finalOutput, { n: 4 });
  },

  async 'on by history, by id and in a conversation'() {
    const first = await run(plain, 'One.');
    const talk = await client.conversations.create({});
    const session = new OpenAIConversationsSession({ client });
    await run(plain, 'One.', { conversationId: talk.id });
    await run(plain, 'One.', { session });
    for (const [input, options] of [
      [[...first.history, { role: 'user', content: 'Two.' }], {}], ['Two.', { previousResponseId: first.lastResponseId }],
      ['Two.', { conversationId: talk.id }], ['Two.', { session }],
    ]) assert.match((await run(plain, input, options)).finalOutput, /Two\./);
    assert.equal((await session.getItems()).length, 4);
  },

  async 'tools of its own beside those of the agent, and an approval'() {
    for (const approve of [true, false]) {
      for (const stream of [false, true]) {
        const doors = new Agent({ name: 'Doors', model: 'doors', tools: [look, own] });
        const go = async (input) => {
          const r = await run(doors, input, { stream });
          if (stream) await r.completed;
          return r;
        };
        const first = await go('Go.');
        assert.equal(first.interruptions.length, 1);
        for (const one of first.interruptions) approve ? first.state.approve(one) : first.state.reject(one);
        const second = await go(first.state);
        assert.match(second.finalOutput, /^Looked: a red door\./);
        assert.equal(second.finalOutput.includes('opened'), approve);
      }
    }
  },

  async 'errors'() {
    await assert.rejects(run(new Agent({ name: 'Nobody', model: 'nobody' }), 'x'), (e) => e.status === 404);
  },
});
