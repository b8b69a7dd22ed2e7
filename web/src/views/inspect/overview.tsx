// Every head of every layer at a glance. Rows are layers, columns heads; a click shows a head, x switches it off.
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { Grid, paint, painted } from '../../figures/colours';
import { drawn, Figure } from '../../figures/figure';
import { csv } from '../../format';
import { setParams } from '../../route';
import { currentTheme, useTheme } from '../../theme';
import { AttentionMaps, Inspection } from '../../types';
import { Panel } from '../../ui/blocks';
import { HeadsGrid } from './heads_grid';
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
  const toggle = (layer: number, head: number) => {
    const key = headKey(maps.kind, layer, head);
    setParams({ off: (state.off.includes(key) ? state.off.filter(each => each !== key) : [...state.off, key]).join(',') || null });
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
      <Figure data={() => ({ name: 'heads', json: maps, csv: mapsCsv(maps) })} svg={() => drawn(<Sheet grids={grids} maps={maps} />)}>
        {() => (
          <HeadsGrid
            state={state}
            maps={maps}
            label="Heads of every layer"
            onToggle={toggle}
            cell={(layer, head, l, h) => {
              const off = state.off.includes(headKey(maps.kind, layer, head));
              return {
                name: off ? ', off' : '',
                className: `${off ? 'off' : ''} ${inspection.image || state.whole ? '' : 'strip'}`,
                drawing: <Thumbnail grid={grids[l][h]} />,
              };
            }}
          />
        )}
      </Figure>
    </Panel>
  );
}
