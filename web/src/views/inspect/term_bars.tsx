// The terms of the scores of one query as stacked bars, a row per key, or as a table.
import { scaleLinear } from 'd3-scale';
import { short } from '../../format';
import { ColoursOfTerms } from './term_shares';
import { centred, keyName, seenKeys, terms, TermsRow } from './terms_data';

const rowHeight = 22,
  top = 20;
const weightText = (weight: number) => weight.toFixed(3);

// Positive terms to the right of zero, negative ones to the left, each less its mean over the keys. The mark is their sum.
export function TermBars({ row, width, label, legend }: { row: TermsRow; width: number; label: string; legend?: boolean }) {
  const narrow = width < 420,
    names = narrow ? 64 : 110,
    weightBar = narrow ? 0 : 70,
    right = width - weightBar - 48;
  const values = row.values.map(each => centred(each, seenKeys(row))),
    sums = centred(row.scores, seenKeys(row));
  const side = (j: number, sign: number) => values.reduce((sum, each) => sum + Math.max(sign * each[j], 0), 0);
  const least = -Math.max(...row.shown.map(j => side(j, -1)), 1e-9),
    most = Math.max(...row.shown.map(j => side(j, 1)), 1e-9);
  const x = scaleLinear([least, most], [names + 8, right - 12]).nice(4);
  const largest = Math.max(...row.shown.map(j => row.weights[j]), 1e-9);
  const bottom = top + row.shown.length * rowHeight + 4,
    height = bottom + (legend ? 24 : 0);
  const stacked = (j: number) => {
    let below = 0,
      above = 0;
    return terms.map(({ name, text, colour }, t) => {
      const value = values[t][j],
        from = value < 0 ? (below += value) : above;
      if (value > 0) above += value;
      return { name, text, colour, value, from, to: from + Math.abs(value) };
    });
  };
  return (
    <svg viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label={label} font-size="11">
      {x.ticks(narrow ? 3 : 5).map(at => (
        <g key={at}>
          <line x1={x(at)} x2={x(at)} y1={top - 4} y2={bottom} stroke={at === 0 ? 'var(--line-strong)' : 'var(--line)'} />
          <text x={x(at)} y={top - 8} text-anchor="middle" fill="var(--muted)">
            {short(at)}
          </text>
        </g>
      ))}
      {legend && <ColoursOfTerms x={8} y={bottom + 8} />}
      <text x={width} y={top - 8} text-anchor="end" fill="var(--muted)">
        weight
      </text>
      {row.shown.map((j, i) => (
        <g key={j} transform={`translate(0 ${top + i * rowHeight})`}>
          <text x={names} y={rowHeight / 2} dy="0.35em" text-anchor="end" fill="var(--text)" font-weight={j === row.own ? 650 : 400}>
            {keyName(row, j, narrow ? 10 : 16)}
          </text>
          {stacked(j).map(({ name, text, colour, value, from, to }) => (
            <rect key={name} x={x(from)} y="5" width={x(to) - x(from)} height={rowHeight - 10} fill={colour}>
              <title>{`${text}: ${short(value)}`}</title>
            </rect>
          ))}
          <rect x={x(sums[j]) - 2.5} y="2" width="5" height={rowHeight - 4} rx="2" fill="var(--text)" stroke="var(--surface)">
            <title>{`sum: ${short(sums[j])}`}</title>
          </rect>
          {weightBar > 0 && (
            <rect x={right} y="8" width={Math.max((weightBar * row.weights[j]) / largest, 0.5)} height="6" rx="1" fill="var(--muted)" />
          )}
          <text x={width} y={rowHeight / 2} dy="0.35em" text-anchor="end" fill="var(--text)" class="number">
            {weightText(row.weights[j])}
          </text>
        </g>
      ))}
    </svg>
  );
}

export const TermTable = ({ row }: { row: TermsRow }) => (
  <div class="table-wrap tall" tabIndex={0} role="region" aria-label="Terms of the scores">
    <table class="term-table">
      <thead>
        <tr>
          <th scope="col">key</th>
          {terms.map(({ name, text, colour }) => (
            <th key={name} scope="col" class="right">
              <i style={{ background: colour }} />
              <span class="name">{text.replace('-', '-\u200b')}</span>
            </th>
          ))}
          <th scope="col" class="right">
            score
          </th>
          <th scope="col" class="right">
            weight
          </th>
        </tr>
      </thead>
      <tbody>
        {row.shown.map(j => (
          <tr key={j} class={j === row.own ? 'chosen' : undefined}>
            <th scope="row">{keyName(row, j)}</th>
            {row.values.map((values, t) => (
              <td key={t} class="right">
                {values[j].toFixed(2)}
              </td>
            ))}
            <td class="right">{row.scores[j].toFixed(2)}</td>
            <td class="right">{weightText(row.weights[j])}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);
