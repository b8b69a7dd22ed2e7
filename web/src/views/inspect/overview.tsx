// Every head of every layer at a glance. Rows are layers, columns heads; a click shows a head, x switches it off.
import { render } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { Grid, paint, painted } from '../../figures/colours';
import { Figure } from '../../figures/figure';
import { csv } from '../../format';
import { setParams } from '../../route';
import { currentTheme, useTheme } from '../../theme';
import { AttentionMaps, Inspection } from '../../types';
import { Panel } from '../../ui/blocks';
import { headKey, InspectState } from './state';

function Thumbnail({ grid }: { grid: Grid }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  useEffect(() => paint(canvas.current!, grid, theme), [grid, theme]);
  return <canvas ref={canvas} />;
}

// Each map on a scale of its own, so that its pattern shows: queries by keys, or the patches that one query sees.
function thumbnailGrid(rows: number[][], image: Inspection['image']): Grid {
  let most = 1e-9;
  if (image) {
    const row = rows[0].slice(image.first);
    for (const value of row) most = Math.max(most, value);
    return { rows: image.rows, columns: image.columns, value: (i, j) => row[i * image.columns + j], least: 0, most };
  }
  for (const row of rows) for (const value of row) most = Math.max(most, value);
  return { rows: rows.length, columns: rows[0].length, value: (i, j) => rows[i][j], least: 0, most };
}

// The same as one drawing, to be saved.
function Sheet({ grids, maps }: { grids: Grid[][]; maps: AttentionMaps }) {
  const size = 64,
    step = size + 6,
    margin = 24;
  return (
    <svg viewBox={`0 0 ${margin + maps.heads.length * step} ${margin + maps.layers.length * step}`} font-size="11" fill="var(--muted)">
      {maps.heads.map((head, h) => (
        <text key={head} x={margin + h * step + size / 2} y="14" text-anchor="middle">
          {head}
        </text>
      ))}
      {maps.layers.map((layer, l) => (
        <g key={layer} transform={`translate(0 ${margin + l * step})`}>
          <text x={margin - 8} y={size / 2 + 4} text-anchor="end">
            {layer}
          </text>
          {grids[l].map((grid, h) => (
            <image
              key={h}
              href={painted(grid, currentTheme())}
              x={margin + h * step}
              width={size}
              height={size}
              preserveAspectRatio="none"
              style={{ imageRendering: 'pixelated' }}
            />
          ))}
        </g>
      ))}
    </svg>
  );
}

function sheet(grids: Grid[][], maps: AttentionMaps) {
  const holder = document.createElement('div');
  render(<Sheet grids={grids} maps={maps} />, holder);
  return holder.querySelector('svg');
}

function mapsCsv(maps: AttentionMaps): string {
  const rows = maps.layers.flatMap((layer, l) =>
    maps.heads.flatMap((head, h) =>
      maps.rows.flatMap((query, i) => maps.weights[l][h][i].map((weight, key) => [layer, head, query, key, weight])),
    ),
  );
  return csv([['layer', 'head', 'query', 'key', 'weight'], ...rows]);
}

export function Overview({ state, inspection, maps }: { state: InspectState; inspection: Inspection; maps: AttentionMaps }) {
  const grids = useMemo(
    () => maps.weights.map(layer => layer.map(rows => thumbnailGrid(rows, inspection.image))),
    [maps, inspection.image],
  );
  const choose = (layer: number, head: number) =>
    setParams({ layer: layer ? String(layer) : null, head: head ? String(head) : null, kind: state.kind || null });
  const toggle = (layer: number, head: number) => {
    const key = headKey(maps.kind, layer, head);
    setParams({ off: (state.off.includes(key) ? state.off.filter(each => each !== key) : [...state.off, key]).join(',') || null });
  };
  const keyDown = (event: KeyboardEvent) => {
    const [down, across] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] ?? [0, 0];
    if (event.key === 'x') return toggle(state.layer, state.head);
    if (!down && !across) return;
    event.preventDefault();
    const layer = Math.min(Math.max(state.layer + down, 0), maps.layers.length - 1),
      head = Math.min(Math.max(state.head + across, 0), maps.heads.length - 1);
    choose(layer, head);
    (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('button')[layer * maps.heads.length + head]?.focus();
  };
  return (
    <Panel
      title="All heads"
      about={
        inspection.image
          ? 'What the chosen query attends to. Each map has its own colour scale.'
          : state.whole
            ? 'Queries down, keys across. Each map has its own colour scale.'
            : 'The row of the chosen query. Each map has its own colour scale.'
      }
    >
      <Figure data={() => ({ name: 'heads', json: maps, csv: mapsCsv(maps) })} svg={() => sheet(grids, maps)}>
        {() => (
          <div
            class="heads-grid"
            style={{ gridTemplateColumns: `28px repeat(${maps.heads.length}, minmax(26px, ${maps.heads.length <= 4 ? 84 : 64}px))` }}
            onKeyDown={keyDown}
            role="group"
            aria-label="Heads of every layer"
          >
            <span />
            {maps.heads.map(head => (
              <span key={head} class="head-name">
                {head}
              </span>
            ))}
            {maps.layers.map((layer, l) => [
              <span key={`l${layer}`} class="layer-name">
                {layer}
              </span>,
              ...maps.heads.map((head, h) => {
                const chosen = layer === state.layer && head === state.head,
                  off = state.off.includes(headKey(maps.kind, layer, head));
                return (
                  <button
                    key={`${layer}.${head}`}
                    type="button"
                    class={`thumb ${chosen ? 'chosen' : ''} ${off ? 'off' : ''} ${inspection.image || state.whole ? '' : 'strip'}`}
                    aria-pressed={chosen}
                    tabIndex={chosen ? 0 : -1}
                    aria-label={`Layer ${layer}, head ${head}${off ? ', off' : ''}`}
                    onClick={() => choose(layer, head)}
                    onDblClick={() => toggle(layer, head)}
                  >
                    <Thumbnail grid={grids[l][h]} />
                  </button>
                );
              }),
            ])}
          </div>
        )}
      </Figure>
    </Panel>
  );
}
