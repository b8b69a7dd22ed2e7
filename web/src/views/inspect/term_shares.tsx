// How much each of the four terms contributes to the scores of a head, and the same for all heads.
import { percent } from '../../format';
import { HeadTerms, ScoreTerms } from '../../types';
import { drawn, Figure } from '../../figures/figure';
import { HeadsGrid } from './heads_grid';
import { InspectState } from './state';
import { sharesData, terms } from './terms_data';

type Shares = HeadTerms['shares'];

// Parts of a bar of length 1. Those with a negative share work against the others; they are drawn paler.
function parts(shares: Shares) {
  const total = terms.reduce((sum, { name }) => sum + Math.abs(shares[name]), 0);
  let from = 0;
  return terms.map(({ name, colour }) => {
    const length = total > 0 ? Math.abs(shares[name]) / total : 0;
    from += length;
    return { name, colour, from: from - length, length, pale: shares[name] < 0 };
  });
}
const Parts = ({ shares, width, height }: { shares: Shares; width: number; height: number }) => (
  <>
    {parts(shares).map(({ name, colour, from, length, pale }) => (
      <rect key={name} x={from * width} width={length * width} height={height} fill={colour} fill-opacity={pale ? 0.35 : 1} />
    ))}
  </>
);
export const sharesText = (shares: Shares) => terms.map(({ name, text }) => `${text} ${percent(shares[name], 0)}`).join(', ');

export const ShareBar = ({ shares }: { shares: Shares }) => (
  <svg
    class="share-bar"
    viewBox="0 0 100 8"
    preserveAspectRatio="none"
    role="img"
    aria-label={`Shares of the terms: ${sharesText(shares)}`}
  >
    <title>{sharesText(shares)}</title>
    <Parts shares={shares} width={100} height={8} />
  </svg>
);

// The terms with their colours, and the shares of one head.
export const TermLegend = ({ shares, image }: { shares: Shares; image: boolean }) => (
  <ul class="term-legend">
    {terms.map(({ name, text, colour, meaning }) => (
      <li key={name}>
        <i style={{ background: colour, opacity: shares[name] < 0 ? 0.35 : 1 }} />
        <span>{text}</span>
        <span class="muted wide">{image ? meaning.replace('words', 'patches').replace('word', 'patch') : meaning}</span>
        <span class="number">{percent(shares[name])}</span>
      </li>
    ))}
  </ul>
);

const of = (found: ScoreTerms) => ({
  layers: [...new Set(found.heads.map(each => each.layer))],
  heads: [...new Set(found.heads.map(each => each.head))],
});

// For drawings that are saved.
export const ColoursOfTerms = ({ x, y }: { x: number; y: number }) => (
  <g transform={`translate(${x} ${y})`} font-size="11" fill="var(--muted)">
    {terms.map(({ name, text, colour }, t) => (
      <g key={name} transform={`translate(${124 * t} 0)`}>
        <rect width="10" height="10" rx="2" fill={colour} />
        <text x="15" y="9">
          {text}
        </text>
      </g>
    ))}
  </g>
);

// The same as one drawing, to be saved.
function Sheet({ found }: { found: ScoreTerms }) {
  const { layers, heads } = of(found),
    wide = 48,
    high = 20,
    margin = 24,
    width = Math.max(margin + heads.length * (wide + 4), 520);
  return (
    <svg viewBox={`0 0 ${width} ${margin + layers.length * (high + 4) + 24}`} font-size="11" fill="var(--muted)">
      {heads.map((head, h) => (
        <text key={head} x={margin + h * (wide + 4) + wide / 2} y="14" text-anchor="middle">
          {head}
        </text>
      ))}
      {layers.map((layer, l) => (
        <text key={layer} x={margin - 8} y={margin + l * (high + 4) + high / 2 + 4} text-anchor="end">
          {layer}
        </text>
      ))}
      {found.heads.map(({ layer, head, shares }) => (
        <g
          key={`${layer}.${head}`}
          transform={`translate(${margin + heads.indexOf(head) * (wide + 4)} ${margin + layers.indexOf(layer) * (high + 4)})`}
        >
          <Parts shares={shares} width={wide} height={high} />
        </g>
      ))}
      <ColoursOfTerms x={margin} y={margin + layers.length * (high + 4) + 6} />
    </svg>
  );
}

export function SharesOfHeads({ state, found }: { state: InspectState; found: ScoreTerms }) {
  return (
    <Figure title="Shares of the terms, all heads" data={() => sharesData(found)} svg={() => drawn(<Sheet found={found} />)}>
      {() => (
        <HeadsGrid
          state={state}
          maps={of(found)}
          label="Shares of the terms in every head"
          cell={(layer, head) => {
            const { shares } = found.heads.find(each => each.layer === layer && each.head === head)!;
            return { name: `: ${sharesText(shares)}`, className: 'shares', drawing: <ShareBar shares={shares} /> };
          }}
        />
      )}
    </Figure>
  );
}
