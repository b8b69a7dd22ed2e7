// A conversation. It is part of the address, so a link carries it.
import { useEffect, useRef, useState } from 'preact/hooks';
import { stream } from '../../api';
import { useParam } from '../../route';
import { ModelInfo } from '../../types';
import { Failure, Panel } from '../../ui/blocks';
import { Button, TextField } from '../../ui/controls';
import { Alternatives, Tokens } from './generated';
import { Generated, SamplingControls, useSampling } from './sampling';

interface Message {
  role: 'system' | 'user' | 'assistant';
  content: string;
}
interface ChatChunk {
  choices: {
    delta: { content?: string };
    logprobs: { content: { token: string; logprob: number; top_logprobs: { token: string; logprob: number }[] }[] } | null;
  }[];
}

function generatedIn(chunk: ChatChunk): Generated[] {
  const choice = chunk.choices[0];
  if (!choice) return [];
  if (choice.logprobs?.content?.length)
    return choice.logprobs.content.map(each => ({ token: each.token, logprob: each.logprob, top: each.top_logprobs }));
  return choice.delta.content ? [{ token: choice.delta.content, logprob: null, top: [] }] : [];
}

function parse(text: string): Message[] {
  try {
    return JSON.parse(text || '[]').map(([role, content]: [string, string]) => ({ role: role === 'u' ? 'user' : 'assistant', content }));
  } catch {
    return [];
  }
}
const pack = (messages: Message[]) => (messages.length ? JSON.stringify(messages.map(({ role, content }) => [role[0], content])) : '');

export function Chat({ models }: { models: ModelInfo[] }) {
  const [chosenModel] = useParam('model');
  const model = models.find(each => each.id === chosenModel) ?? models[0];
  const [packed, setPacked] = useParam('chat'),
    [system, setSystem] = useParam('system');
  const messages = parse(packed);
  const sampling = useSampling();
  const [draft, setDraft] = useState(''),
    [answer, setAnswer] = useState<Generated[]>([]),
    [running, setRunning] = useState(false);
  const [chosen, setChosen] = useState(-1),
    [failure, setFailure] = useState<Error>();
  const abort = useRef<AbortController | undefined>(undefined),
    end = useRef<HTMLDivElement>(null);
  useEffect(() => () => abort.current?.abort(), []);
  useEffect(() => end.current?.scrollIntoView({ block: 'nearest' }), [answer.length]);

  const send = async () => {
    if (!draft.trim() || running) return;
    const asked: Message[] = [...messages, { role: 'user', content: draft }];
    (setPacked(pack(asked)), setDraft(''), setAnswer([]), setChosen(-1), setFailure(undefined), setRunning(true));
    const mine = (abort.current = new AbortController());
    let text = '';
    try {
      const all: Message[] = system ? [{ role: 'system', content: system }, ...asked] : asked;
      await stream(
        '/v1/chat/completions',
        { model: model.id, messages: all, ...sampling, logprobs: true, top_logprobs: 10, stream: true },
        mine.signal,
        event => {
          if (event.data === '[DONE]') return;
          const chunk = JSON.parse(event.data) as ChatChunk;
          text += chunk.choices[0]?.delta.content ?? '';
          setAnswer(old => [...old, ...generatedIn(chunk)]);
        },
      );
    } catch (error) {
      if (!mine.signal.aborted) setFailure(error as Error);
    }
    if (text) setPacked(pack([...asked, { role: 'assistant', content: text }]));
    setRunning(false);
  };
  const past = messages.at(-1)?.role === 'assistant' && answer.length > 0 && !running ? messages.slice(0, -1) : messages;
  return (
    <div class="split">
      <div class="stack">
        <div class="chat" role="log" aria-label="Conversation">
          {past.length === 0 && <p class="muted">Write a message to {model.id}.</p>}
          {past.map((message, i) => (
            <div key={i} class={`message ${message.role}`}>
              {message.content}
            </div>
          ))}
          {(answer.length > 0 || running) && (
            <div class="message assistant">
              <Tokens tokens={answer} chosen={chosen} onChoose={setChosen} />
              {running && <span class="caret" />}
            </div>
          )}
          <div ref={end} />
        </div>
        {failure && <Failure error={failure} />}
        <TextField
          name="Message"
          rows={2}
          value={draft}
          onChange={setDraft}
          onEnter={() => void send()}
          help="Enter sends; Shift+Enter starts a new line."
        />
        <div class="row">
          {running ? (
            <Button icon="stop" onClick={() => abort.current?.abort()}>
              Stop
            </Button>
          ) : (
            <Button kind="primary" onClick={() => void send()} disabled={!draft.trim()}>
              Send
            </Button>
          )}
          {messages.length > 0 && !running && (
            <Button kind="plain" onClick={() => (setPacked(''), setAnswer([]))}>
              New conversation
            </Button>
          )}
        </div>
      </div>
      <aside class="stack">
        <Panel>
          <div class="stack tight">
            <TextField name="System message" rows={2} value={system} onChange={setSystem} />
            <SamplingControls models={models} model={model} />
          </div>
        </Panel>
        {answer.length > 0 && (
          <Panel title="Alternatives">
            <Alternatives token={answer[chosen]} sampling={sampling} />
          </Panel>
        )}
      </aside>
    </div>
  );
}
