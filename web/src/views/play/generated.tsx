// Generated text, token by token: the stronger the colour, the more surprising. A click shows what else it could have been.
import { percent } from '../../format';
import { Generated, reweighted, Sampling } from './sampling';

const readable = (token: string) => token.replaceAll('\n', '↵').replace(/^ | $/g, '·') || '∅';

export function Tokens({ tokens, chosen, onChoose }: { tokens: Generated[]; chosen: number; onChoose: (index: number) => void }) {
  return (
    <>
      {tokens.map((each, i) => (
        <button
          key={i}
          type="button"
          class="piece"
          aria-pressed={i === chosen}
          onClick={() => onChoose(i === chosen ? -1 : i)}
          style={{ '--surprise': each.logprob === null ? 0 : 1 - Math.exp(each.logprob) }}
          title={each.logprob === null ? '' : percent(Math.exp(each.logprob))}
        >
          {each.token}
        </button>
      ))}
    </>
  );
}

export function Alternatives({
  token,
  sampling,
  onTake,
}: {
  token: Generated | undefined;
  sampling: Sampling;
  onTake?: (token: string) => void;
}) {
  if (!token) return <p class="muted small">Click a generated token to see its alternatives.</p>;
  const list = reweighted(token.top, sampling.temperature, sampling.top_p);
  return (
    <div class="stack tight">
      <p class="small muted">
        {token.logprob !== null && (
          <>
            The model gave “{readable(token.token)}” a probability of {percent(Math.exp(token.logprob))}.{' '}
          </>
        )}
        Below: the {list.length} most probable tokens at temperature {sampling.temperature} and top-p {sampling.top_p}, with probabilities
        that sum to 100%.
      </p>
      <ul class="alternatives">
        {list.map(({ token: text, p, kept }) => (
          <li key={text} class={kept ? '' : 'cut'}>
            {onTake ? (
              <button type="button" onClick={() => onTake(text)} title="Continue from here with this token">
                {readable(text)}
              </button>
            ) : (
              <span>{readable(text)}</span>
            )}
            <span class="bar">
              <i style={{ width: `${100 * p}%` }} />
            </span>
            <span class="number">{percent(p)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
