// One head as lines from queries (left) to keys (right). The wider the line, the larger the weight.
import { seriesColour } from '../theme';

const lineHeight = 22;
const leastWeight = 0.02; // smaller weights are not drawn

export function Arcs(props: {
  queries: string[];
  keys: string[];
  weight: (query: number, key: number) => number;
  query: number; // chosen; -1: all
  onQuery: (query: number) => void;
  onPick: (query: number) => void;
  width: number;
}) {
  const { queries, keys, weight } = props;
  const side = Math.min(150, props.width * 0.34),
    height = Math.max(queries.length, keys.length) * lineHeight + 12;
  const left = side,
    right = Math.min(props.width, 640) - side,
    middle = (left + right) / 2;
  const y = (index: number) => 6 + (index + 0.5) * lineHeight;
  const clip = (text: string) => (text.length > side / 7.5 ? text.slice(0, Math.floor(side / 7.5) - 1) + '…' : text);
  const shown = props.query < 0 ? queries.map((_, i) => i) : [props.query];
  const total = right + side;
  const keyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    props.onPick(Math.min(Math.max(props.query + step, 0), queries.length - 1));
  };
  return (
    <svg
      viewBox={`0 0 ${total} ${height}`}
      width={total}
      height={height}
      role="img"
      aria-label="Attention as lines from queries to keys. Up and down choose a query."
      class="arcs"
      tabIndex={0}
      onKeyDown={keyDown}
    >
      <g fill="none" stroke={seriesColour(0)} stroke-linecap="round">
        {shown.flatMap(i => {
          // One row alone is drawn on its own scale.
          const most = shown.length === 1 ? keys.reduce((largest, _, j) => Math.max(largest, weight(i, j)), leastWeight) : 1;
          return keys.map((_, j) => {
            const size = weight(i, j);
            if (!(size >= leastWeight)) return null;
            return (
              <path
                key={`${i}.${j}`}
                d={`M${left} ${y(i)}C${middle} ${y(i)} ${middle} ${y(j)} ${right} ${y(j)}`}
                stroke-width={0.75 + 4.5 * size}
                stroke-opacity={Math.min(0.12 + (0.88 * size) / most, 1)}
              />
            );
          });
        })}
      </g>
      <g font-size="12.5" fill="var(--text)">
        {queries.map((text, i) => (
          <g
            key={i}
            onPointerEnter={() => props.onQuery(i)}
            onPointerLeave={() => props.onQuery(-1)}
            onClick={() => props.onPick(i)}
            style={{ cursor: 'pointer' }}
          >
            <rect x="0" y={y(i) - lineHeight / 2} width={left} height={lineHeight} fill="var(--surface)" />
            {props.query === i && (
              <rect x="0" y={y(i) - lineHeight / 2 + 1} width={left - 2} height={lineHeight - 2} rx="5" fill="var(--accent-soft)" />
            )}
            <text x={left - 8} y={y(i)} dy="0.35em" text-anchor="end">
              {clip(text)}
            </text>
          </g>
        ))}
        {keys.map((text, j) => (
          <text
            key={j}
            x={right + 8}
            y={y(j)}
            dy="0.35em"
            font-weight={props.query >= 0 && weight(props.query, j) > 0.2 ? 650 : 400}
            fill-opacity={props.query >= 0 && weight(props.query, j) < leastWeight ? 0.62 : 1}
          >
            {clip(text)}
          </text>
        ))}
      </g>
    </svg>
  );
}
