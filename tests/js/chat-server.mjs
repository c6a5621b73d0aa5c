// A chat server as the AI SDK's documentation has it, on a free port of this machine, which it prints.
//
// Its model is the AI SDK's own mock: it calls `clock` (which runs here), `weather` (which has no execute: it is the
// client's to run) and `wipe` (about which a person is asked), one after the other, and then says what it was told.

import { createServer } from 'node:http';
import { convertToModelMessages, isStepCount, jsonSchema, streamText, tool } from 'ai';
import { MockLanguageModelV4, convertArrayToReadableStream } from 'ai/test';

const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const anything = (properties = {}) => jsonSchema({ type: 'object', properties });
const tools = {
  clock: tool({ description: 'The time.', inputSchema: anything(), execute: async () => 'noon' }),
  weather: tool({ description: 'The weather.', inputSchema: anything({ city: { type: 'string' } }) }),
  wipe: tool({
    description: 'Wipe it.',
    inputSchema: anything({ disk: { type: 'string' } }),
    execute: async ({ disk }) => `wiped ${disk}`,
  }),
};
const calls = [
  { toolName: 'clock', input: {} },
  { toolName: 'weather', input: { city: 'Oslo' } },
  { toolName: 'wipe', input: { disk: 'sda' } },
];

function answer({ prompt }) {
  const results = prompt.filter((message) => message.role === 'tool').flatMap((message) => message.content);
  const told = results.filter((part) => part.type === 'tool-result');
  const next = calls[told.length];
  const parts = next
    ? [{ type: 'tool-call', toolCallId: `call-${told.length + 1}`, toolName: next.toolName, input: JSON.stringify(next.input) }]
    : [
        { type: 'text-start', id: '1' },
        { type: 'text-delta', id: '1', delta: told.map((part) => JSON.stringify(part.output)).join(' ') },
        { type: 'text-end', id: '1' },
      ];
  const reason = next ? 'tool-calls' : 'stop';
  const finish = { type: 'finish', finishReason: { unified: reason, raw: reason }, usage };
  return { stream: convertArrayToReadableStream([{ type: 'stream-start', warnings: [] }, ...parts, finish]) };
}

const model = new MockLanguageModelV4({ doStream: async (options) => answer(options) });

createServer(async (request, response) => {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  const { messages } = JSON.parse(Buffer.concat(pieces).toString());
  const result = streamText({
    model,
    tools,
    messages: await convertToModelMessages(messages, { tools }),
    stopWhen: isStepCount(5),
    toolApproval: { wipe: 'user-approval' },
  });
  result.pipeUIMessageStreamToResponse(response);
}).listen(0, '127.0.0.1', function () {
  console.log(this.address().port);
});
