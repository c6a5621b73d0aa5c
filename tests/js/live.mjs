// The published clients of the wires against a server that runs: node live.mjs SCENARIO ADDRESS
//
// Lines of JSON are written, the last of them what the client has in the end. A client that is to go on in the middle
// of an answer says so by a line {"told": …}, and goes on at once.

import { HttpAgent } from '@ag-ui/client';

const { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } = await import(
  process.env.AI_SDK ?? 'ai'
);

const [scenario, address] = process.argv.slice(2);
const api = `${address}/api/chat`;
console.warn = console.error = console.debug = console.log = () => {}; // stdout is the answers' alone

const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

/** What useChat keeps in React's state. */
class State {
  status = 'ready';
  error = undefined;
  messages = [];
  onChange = () => {};
  pushMessage = (message) => void (this.messages = [...this.messages, message]);
  popMessage = () => void (this.messages = this.messages.slice(0, -1));
  replaceMessage = (index, message) => {
    this.messages = this.messages.with(index, structuredClone(message));
    this.onChange(message);
  };
  snapshot = (thing) => structuredClone(thing);
}

class Chat extends AbstractChat {
  constructor(init) {
    const state = new State();
    super({ id: 't', transport: new DefaultChatTransport({ api }), ...init, state });
    this.kept = state;
  }
}

const textOf = (message) => message.parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
const has = (chat) => ({ status: chat.status, error: chat.error?.message ?? null, messages: chat.messages });

async function until(isSo) {
  while (!isSo()) await new Promise((wake) => setTimeout(wake, 5));
}

/** A chat whose first message has been sent, and which has then been asked; as the AI SDK's own guides set it up. */
async function asked() {
  const chat = new Chat({ sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
  await chat.sendMessage({ text: 'The weather?' });
  return { chat, part: chat.lastMessage.parts.find((part) => part.state === 'approval-requested') };
}

async function answered(approved) {
  const { chat, part } = await asked();
  await chat.addToolApprovalResponse({ id: part.approval.id, approved, reason: approved ? undefined : 'Not today.' });
  await until(() => chat.status === 'ready' || chat.status === 'error');
  return { asked: part, ...has(chat) };
}

/** AG-UI's agent over two runs; its pipeline holds the schemas, verifyEvents and defaultApplyEvents. */
async function agent(initial, then) {
  const errors = [];
  const found = new HttpAgent({ url: api, threadId: 't', initialMessages: [{ id: 'u1', role: 'user', content: initial }] });
  found.subscribe({ onRunErrorEvent: ({ event }) => void errors.push(event.message) });
  let failure = null;
  try {
    await found.runAgent({ runId: 'r1' });
    await found.runAgent(then(found));
  } catch (error) {
    failure = String(error.message ?? error);
  }
  return { failure, errors, interrupts: found.pendingInterrupts, messages: found.messages };
}

const SCENARIOS = {
  async 'ai-turns'() {
    const chat = new Chat({});
    await chat.sendMessage({ text: 'What is the weather in Lisbon?' });
    await chat.sendMessage({ text: 'And in Oslo?' });
    const two = chat.messages.length;
    await chat.regenerate();
    return { two, ...has(chat) };
  },
  'ai-approved': () => answered(true),
  'ai-denied': () => answered(false),
  /** A page that was reloaded in mid-stream has the messages that were sent, and comes back for the rest. */
  async 'ai-resumed'() {
    const first = new Chat({});
    const sending = first.sendMessage({ text: 'Go' });
    await until(() => first.lastMessage?.role === 'assistant' && textOf(first.lastMessage) !== '');
    const second = new Chat({});
    second.messages = [first.messages[0]];
    await first.stop();
    await sending;
    second.kept.onChange = () => {
      second.kept.onChange = () => {};
      say({ told: 'resumed' });
    };
    await second.resumeStream();
    const third = new Chat({});
    third.messages = second.messages;
    await third.resumeStream(); // nothing runs any more: the server says 204, and the chat stays as it is
    return { again: has(third), ...has(second) };
  },
  async 'ai-refused'() {
    const chat = new Chat({});
    await chat.sendMessage({ text: 'x'.repeat(2000) });
    return has(chat);
  },
  'ag-ui-turns': () =>
    agent('What is the weather in Lisbon?', (found) => {
      found.addMessage({ id: 'u2', role: 'user', content: 'And in Oslo?' });
      return { runId: 'r2' };
    }),
  'ag-ui-approved': () =>
    agent('The weather?', (found) => ({
      runId: 'r2',
      resume: [{ interruptId: found.pendingInterrupts[0].id, status: 'resolved', payload: { approved: true } }],
    })),
  'ag-ui-cancelled': () =>
    agent('The weather?', (found) => ({
      runId: 'r2',
      resume: [{ interruptId: found.pendingInterrupts[0].id, status: 'cancelled' }],
    })),
};

say(await SCENARIOS[scenario]());
process.exit(0); // connections that are kept alive hold the process else
