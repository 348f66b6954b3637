// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Talks to two rehearsal servers with OpenAI's own client: the first only says
// what it was asked, the second calls a tool first. It ends with an error where
// the client, or what it returns, is not as with the real endpoint.
'use strict';
const assert = require('node:assert/strict');
const { default: OpenAI, BadRequestError, NotFoundError } = require('openai');

const connect = (baseURL) => new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0 });
const plain = connect(process.argv[2]);
const calling = connect(process.argv[3]);
const model = 'rehearsal';
const look = {
  type: 'function', name: 'look', description: 'looks', strict: false,
  parameters: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] },
};

const steps = {
  async 'one piece'() {
    const r = await plain.responses.create({ model, input: 'Hello.' });
    assert.equal(r.output_text, 'You: Hello.');
    assert.equal(r.status, 'completed');
    assert.equal(r.usage.total_tokens, r.usage.input_tokens + r.usage.output_tokens);
    assert.equal(r.previous_response_id, null);
  },

  async 'a stream'() {
    const types = [];
    let text = '', number = 0;
    for await (const e of await plain.responses.create({ model, input: 'Hello there.', stream: true })) {
      assert.equal(e.sequence_number, number++);
      types.push(e.type);
      if (e.type === 'response.output_text.delta') text += e.delta;
    }
    assert.equal(text, 'You: Hello there.');
    assert.deepEqual(types.slice(0, 2), ['response.created', 'response.in_progress']);
    assert.equal(types.at(-1), 'response.completed');
  },

  async 'what the client makes of a stream'() {
    const stream = plain.responses.stream({ model, input: 'Hello again.' });
    let text = '';
    stream.on('response.output_text.delta', (e) => { text += e.delta; });
    const r = await stream.finalResponse();
    assert.equal(text, 'You: Hello again.');
    assert.equal(r.output_text, text);
    assert.deepEqual((await plain.responses.retrieve(r.id)).output, r.output.map(({ ...o }) => {
      delete o.parsed;
      o.content = o.content.map(({ parsed, ...part }) => part);
      return o;
    }));
  },

  async 'a tool, and on from the response before'() {
    for (const stream of [false, true]) {
      const ask = async (params) => {
        if (!stream) return calling.responses.create(params);
        return calling.responses.stream(params).finalResponse();
      };
      const first = await ask({ model, input: 'What is it?', tools: [look], reasoning: { effort: 'low', summary: 'auto' } });
      const call = first.output.find((o) => o.type === 'function_call');
      assert.deepEqual(JSON.parse(call.arguments), { at: 'it' });
      assert.equal(first.output.find((o) => o.type === 'reasoning').summary[0].text, 'Hm.');
      const second = await ask({
        model, previous_response_id: first.id, tools: [look],
        input: [{ type: 'function_call_output', call_id: call.call_id, output: 'blue' }],
      });
      assert.equal(second.output_text, 'You: What is it?; it: blue');
      assert.equal(second.previous_response_id, first.id);
      const third = await ask({ model, previous_response_id: second.id, input: 'Sure?' });
      assert.equal(third.output_text, 'Then Sure?');
      const whole = await ask({ // the same history, as items
        model, tools: [look],
        input: [{ role: 'user', content: 'What is it?' }, ...first.output, { type: 'function_call_output', call_id: call.call_id, output: 'blue' }],
      });
      assert.equal(whole.output_text, second.output_text);
    }
  },

  async 'what is stored'() {
    const r = await plain.responses.create({ model, input: 'Keep this.' });
    assert.deepEqual((await plain.responses.retrieve(r.id)).output, r.output);
    const items = [];
    for await (const it of await plain.responses.inputItems.list(r.id)) items.push(it.type);
    assert.deepEqual(items, ['message']);
    await plain.responses.delete(r.id);
    await assert.rejects(plain.responses.retrieve(r.id), NotFoundError);
    const gone = await plain.responses.create({ model, input: 'Not this.', store: false });
    assert.equal(gone.store, false);
    await assert.rejects(plain.responses.retrieve(gone.id), NotFoundError);
  },

  async 'in the background'() {
    let r = await plain.responses.create({ model, input: 'Later.', background: true });
    assert.equal(r.status, 'queued');
    while (r.status === 'queued' || r.status === 'in_progress') r = await plain.responses.retrieve(r.id);
    assert.equal(r.output_text, 'You: Later.');
    let id, last; // a stream that is left, and taken up again
    for await (const e of await plain.responses.create({ model, input: 'Later still.', background: true, stream: true })) {
      id ??= e.response.id;
      last = e.sequence_number;
      if (last === 3) break;
    }
    const events = [];
    for await (const e of await plain.responses.retrieve(id, { stream: true, starting_after: last })) events.push(e);
    assert.equal(events[0].sequence_number, 4);
    assert.equal(events.at(-1).response.output[0].content[0].text, 'You: Later still.');
  },

  async 'a conversation'() {
    const talk = await plain.conversations.create({ items: [{ type: 'message', role: 'user', content: 'Before.' }] });
    const r = await plain.responses.create({ model, conversation: talk.id, input: 'And now.' });
    assert.equal(r.conversation.id, talk.id);
    let n = 0;
    for await (const _ of await plain.conversations.items.list(talk.id)) n++;
    assert.equal(n, 3);
    await plain.conversations.delete(talk.id);
  },

  async 'counts and compaction'() {
    const count = await plain.responses.inputTokens.count({ model, input: 'How long is this?' });
    assert.ok(count.input_tokens > 0);
    const packed = await plain.responses.compact({ model, input: [{ role: 'user', content: 'a' }, { role: 'assistant', content: 'b' }] });
    assert.equal(packed.output.at(-1).type, 'compaction');
    const r = await plain.responses.create({ model, input: [...packed.output, { role: 'user', content: 'On.' }] });
    assert.equal(r.output_text, 'You: On.');
  },

  async 'errors'() {
    await assert.rejects(plain.responses.create({ model, input: 'x', previous_response_id: 'resp_none' }), (e) => {
      assert.ok(e instanceof BadRequestError || e instanceof NotFoundError, String(e));
      assert.equal(e.code, 'previous_response_not_found');
      return true;
    });
    await assert.rejects(plain.responses.create({ model, input: [{ type: 'function_call_output', call_id: 'c', output: 'x' }] }), BadRequestError);
    await assert.rejects(plain.responses.create({ input: 'x' }), (e) => e.code === 'missing_required_parameter');
  },

  async 'chat completions'() {
    const messages = [{ role: 'user', content: 'Hello.' }];
    const r = await plain.chat.completions.create({ model, messages });
    assert.equal(r.choices[0].message.content, 'You: Hello.');
    const stream = plain.chat.completions.stream({ model, messages, stream_options: { include_usage: true } });
    assert.equal(await stream.finalContent(), 'You: Hello.');
    assert.ok((await stream.totalUsage()).total_tokens > 0);
    const tools = [{ type: 'function', function: { name: 'look', parameters: look.parameters } }];
    const first = await calling.chat.completions.create({ model, messages, tools });
    const call = first.choices[0].message.tool_calls[0];
    assert.equal(first.choices[0].finish_reason, 'tool_calls');
    const second = await calling.chat.completions.create({
      model, tools, messages: [...messages, first.choices[0].message, { role: 'tool', tool_call_id: call.id, content: 'blue' }],
    });
    assert.equal(second.choices[0].message.content, 'You: Hello.; it: blue');
    const runner = calling.chat.completions.runTools({
      model, messages, stream: true,
      tools: [{ type: 'function', function: { name: 'look', parameters: look.parameters, parse: JSON.parse, function: ({ at }) => `${at} is blue` } }],
    });
    assert.equal(await runner.finalContent(), 'You: Hello.; it: it is blue');
  },

  async 'models'() {
    const names = [];
    for await (const m of await plain.models.list()) names.push(m.id);
    assert.ok(names.includes(model));
  },
};

(async () => {
  for (const [name, step] of Object.entries(steps)) {
    try {
      await step();
      console.log(`ok ${name}`);
    } catch (e) {
      console.log(`FAILED ${name}: ${e.stack}`);
      process.exitCode = 1;
    }
  }
})();
