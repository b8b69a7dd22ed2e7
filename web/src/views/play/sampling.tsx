// Sampling settings, shared by completion and chat, and what they do to the alternatives of a token.
import { useNumberParam, useParam } from '../../route';
import { ModelInfo } from '../../types';
import { Select, Slider } from '../../ui/controls';

export interface Sampling {
  temperature: number;
  top_p: number;
  max_tokens: number;
  seed: number;
}

export function useSampling(): Sampling {
  const [temperature] = useNumberParam('temperature', 0.8),
    [top_p] = useNumberParam('top_p', 0.95),
    [max_tokens] = useNumberParam('max_tokens', 64),
    [seed] = useNumberParam('seed', 1);
  return { temperature, top_p, max_tokens, seed };
}

export function SamplingControls({ models, model }: { models: ModelInfo[]; model: ModelInfo }) {
  const [, setModel] = useParam('model');
  const [temperature, setTemperature] = useNumberParam('temperature', 0.8),
    [topP, setTopP] = useNumberParam('top_p', 0.95),
    [most, setMost] = useNumberParam('max_tokens', 64),
    [seed, setSeed] = useNumberParam('seed', 1);
  return (
    <div class="stack tight">
      <Select name="Model" value={model.id} options={models.map(each => each.id)} onChange={setModel} help={model.architecture} />
      <Slider
        name="Temperature"
        value={temperature}
        least={0}
        most={2}
        step={0.05}
        onChange={setTemperature}
        help="0: always the most probable token."
      />
      <Slider
        name="Top-p"
        value={topP}
        least={0.05}
        most={1}
        step={0.05}
        onChange={setTopP}
        help="Only the most probable tokens with this total probability."
      />
      <Slider
        name="Maximum tokens"
        value={most}
        least={1}
        most={Math.max(256, Math.min(model.max_tokens || 1024, 1024))}
        step={1}
        onChange={setMost}
      />
      <Slider name="Seed" value={seed} least={0} most={100} step={1} onChange={setSeed} help="The same seed gives the same text." />
    </div>
  );
}

export interface Alternative {
  token: string;
  logprob: number;
}
export interface Generated {
  token: string;
  logprob: number | null;
  top: Alternative[];
}

// Probabilities of the alternatives at another temperature, among themselves, and whether top-p keeps them.
export function reweighted(top: Alternative[], temperature: number, topP: number): { token: string; p: number; kept: boolean }[] {
  const sorted = [...top].sort((a, b) => b.logprob - a.logprob);
  if (temperature === 0) return sorted.map((each, i) => ({ token: each.token, p: i === 0 ? 1 : 0, kept: i === 0 }));
  const powers = sorted.map(each => Math.exp((each.logprob - sorted[0].logprob) / temperature)),
    sum = powers.reduce((a, b) => a + b, 0);
  let before = 0;
  return sorted.map((each, i) => {
    const p = powers[i] / sum,
      kept = before < topP;
    before += p;
    return { token: each.token, p, kept };
  });
}
