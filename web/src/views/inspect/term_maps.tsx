// The terms of the scores of one query over the patches of an image: four maps, their sum and the weight, with one scale for all but the weight.
import { useMemo, useState } from 'preact/hooks';
import { Grid, painted } from '../../figures/colours';
import { short } from '../../format';
import { useTheme } from '../../theme';
import { Inspection } from '../../types';
import { centred, terms, TermsRow } from './terms_data';

const gap = 12,
  head = 20;

export function TermMaps({
  row,
  image,
  width,
  label,
}: {
  row: TermsRow;
  image: NonNullable<Inspection['image']>;
  width: number;
  label: string;
}) {
  const theme = useTheme();
  const [over, setOver] = useState(-1);
  const { rows, columns, first } = image;
  const patches = useMemo(() => Array.from({ length: rows * columns }, (_, i) => first + i).filter(j => !row.unseen.has(j)), [row]);
  const { maps, most } = useMemo(() => {
    const values = [...row.values, row.scores].map(each => centred(each, patches));
    const most = Math.max(...values.map(each => Math.max(...patches.map(j => Math.abs(each[j])))), 1e-9);
    const grid = (of: number[], least: number, most: number, diverging: boolean): Grid => ({
      rows,
      columns,
      least,
      most,
      diverging,
      value: (i, j) => (row.unseen.has(first + i * columns + j) ? null : of[first + i * columns + j]),
    });
    const names = [...terms.map(each => each.text), 'score'];
    const maps = values.map((of, t) => ({ name: names[t], values: of, url: painted(grid(of, -most, most, true), theme) }));
    const largest = Math.max(...patches.map(j => row.weights[j]), 1e-9);
    maps.push({ name: `weight, to ${short(largest)}`, values: row.weights, url: painted(grid(row.weights, 0, largest, false), theme) });
    return { maps, most };
  }, [row, theme]);
  const strip = useMemo(
    () => painted({ rows: 1, columns: 64, value: (_, j) => j / 63, least: 0, most: 1, diverging: true }, theme),
    [theme],
  );
  // The terms as in a table of content and position; score and weight beside them, or below if there is no room.
  const across = width < 400 ? 2 : 3,
    places = across === 3 ? [0, 1, 3, 4, 2, 5] : [0, 1, 2, 3, 4, 5];
  const size = Math.min((width - gap * (across - 1)) / across, 190),
    high = (size * rows) / columns,
    step = size / columns;
  const total = (size + gap) * across - gap,
    bottom = (6 / across) * (head + high + gap);
  const cell = (token: number) => ({ x: ((token - first) % columns) * step, y: Math.floor((token - first) / columns) * step });
  const move = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const at = (part: number, count: number) => Math.min(Math.max(Math.floor(part * count), 0), count - 1);
    setOver(first + at((event.clientY - box.top) / box.height, rows) * columns + at((event.clientX - box.left) / box.width, columns));
  };
  return (
    <svg viewBox={`0 0 ${total} ${bottom + 22}`} width={total} height={bottom + 22} role="img" aria-label={label} font-size="11">
      {maps.map(({ name, values, url }, m) => (
        <g
          key={name}
          transform={`translate(${(places[m] % across) * (size + gap)} ${Math.floor(places[m] / across) * (head + high + gap)})`}
        >
          <text y="13" fill="var(--text)">
            {name}
          </text>
          {over >= 0 && (
            <text data-hover x={size} y="13" text-anchor="end" fill="var(--muted)" class="number">
              {short(row.unseen.has(over) ? null : values[over])}
            </text>
          )}
          <g transform={`translate(0 ${head})`}>
            <image href={url} width={size} height={high} preserveAspectRatio="none" style={{ imageRendering: 'pixelated' }} />
            <rect width={size} height={high} fill="none" stroke="var(--line)" />
            {row.query >= first && (
              <rect {...cell(row.query)} width={step} height={step} fill="none" stroke="var(--text)" stroke-width="2" />
            )}
            {over >= 0 && (
              <rect data-hover {...cell(over)} width={step} height={step} fill="none" stroke="var(--muted)" stroke-width="1.5" />
            )}
            <rect
              data-hover
              width={size}
              height={high}
              fill="transparent"
              style={{ cursor: 'crosshair' }}
              onPointerMove={move}
              onPointerLeave={() => setOver(-1)}
            />
          </g>
        </g>
      ))}
      <g transform={`translate(0 ${bottom + 4})`} fill="var(--muted)">
        <text y="9">{short(-most)}</text>
        <image href={strip} x="48" width="120" height="10" preserveAspectRatio="none" />
        <rect x="48" width="120" height="10" fill="none" stroke="var(--line)" />
        <text x="176" y="9">
          {short(most)}
        </text>
      </g>
    </svg>
  );
}
