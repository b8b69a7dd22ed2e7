// A prompt, and its continuation by a language model.
import { useEffect, useRef, useState } from 'preact/hooks';
import { stream } from '../../api';
import { useParam } from '../../route';
import { ModelInfo } from '../../types';
import { Failure, Panel } from '../../ui/blocks';
import { Button, TextField } from '../../ui/controls';
import { Alternatives, Tokens } from './generated';
import { Generated, SamplingControls, useSampling } from './sampling';

interface Chunk {
  choices: {
    text: string;
    finish_reason: string | null;
    logprobs: { tokens: string[]; token_logprobs: (number | null)[]; top_logprobs: Record<string, number>[] | null } | null;
  }[];
}

const alternatives = 10;

function generatedIn(chunk: Chunk): Generated[] {
  const choice = chunk.choices[0];
  if (!choice) return [];
  const logprobs = choice.logprobs;
  if (!logprobs?.tokens?.length) return choice.text ? [{ token: choice.text, logprob: null, top: [] }] : [];
  return logprobs.tokens.map((token, i) => ({
    token,
    logprob: logprobs.token_logprobs[i],
    top: Object.entries(logprobs.top_logprobs?.[i] ?? {}).map(([other, logprob]) => ({ token: other, logprob })),
  }));
}

export function Complete({ models }: { models: ModelInfo[] }) {
  const [chosenModel] = useParam('model');
  const model = models.find(each => each.id === chosenModel) ?? models[0];
  const [prompt, setPrompt] = useParam('prompt', 'Once upon a time');
  const sampling = useSampling();
  const [tokens, setTokens] = useState<Generated[]>([]),
    [asked, setAsked] = useState(''),
    [running, setRunning] = useState(false);
  const [chosen, setChosen] = useState(-1),
    [failure, setFailure] = useState<Error>(),
    [speed, setSpeed] = useState('');
  const abort = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => abort.current?.abort(), []);

  const run = async (text: string) => {
    abort.current?.abort();
    const mine = (abort.current = new AbortController());
    (setTokens([]), setChosen(-1), setFailure(undefined), setRunning(true), setAsked(text), setSpeed(''));
    const begin = performance.now();
    let count = 0;
    try {
      await stream(
        '/v1/completions',
        { model: model.id, prompt: text, ...sampling, logprobs: alternatives, stream: true },
        mine.signal,
        event => {
          if (event.data === '[DONE]') return;
          const next = generatedIn(JSON.parse(event.data));
          count += next.length;
          setTokens(old => [...old, ...next]);
          setSpeed(`${((1000 * count) / (performance.now() - begin)).toFixed(0)} tokens/s`);
        },
      );
    } catch (error) {
      if (!mine.signal.aborted) setFailure(error as Error);
    }
    if (abort.current === mine) setRunning(false);
  };
  // Replaces the chosen token and continues from there.
  const take = (token: string) => {
    const text =
      asked +
      tokens
        .slice(0, chosen)
        .map(each => each.token)
        .join('') +
      token;
    setPrompt(text);
    void run(text);
  };
  return (
    <div class="split">
      <div class="stack">
        <div onKeyDown={event => event.key === 'Enter' && (event.ctrlKey || event.metaKey) && void run(prompt)}>
          <TextField name="Prompt" rows={4} value={prompt} onChange={setPrompt} />
        </div>
        <div class="row">
          {running ? (
            <Button icon="stop" onClick={() => (abort.current?.abort(), setRunning(false))}>
              Stop
            </Button>
          ) : (
            <Button kind="primary" onClick={() => void run(prompt)} disabled={!prompt}>
              Complete
            </Button>
          )}
          <span class="muted small number">{speed}</span>
        </div>
        {failure && <Failure error={failure} />}
        {(tokens.length > 0 || running) && (
          <Panel title="Text" about="The stronger the colour of a token, the less probable it was. Click a token to see its alternatives.">
            <p class="generated" aria-live="polite" aria-busy={running}>
              <span class="muted">{asked}</span>
              <Tokens tokens={tokens} chosen={chosen} onChoose={setChosen} />
              {running && <span class="caret" />}
            </p>
          </Panel>
        )}
      </div>
      <aside class="stack">
        <Panel>
          <SamplingControls models={models} model={model} />
        </Panel>
        {tokens.length > 0 && (
          <Panel title="Alternatives">
            <Alternatives token={tokens[chosen]} sampling={sampling} onTake={take} />
          </Panel>
        )}
      </aside>
    </div>
  );
}
