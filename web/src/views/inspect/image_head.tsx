// One head of an image model: its weights over the image, for the patch under the pointer or for the class token.
import { useMemo, useState } from 'preact/hooks';
import { painted } from '../../figures/colours';
import { Figure } from '../../figures/figure';
import { Cell, ColourKey, Matrix, matrixGrid } from '../../figures/matrix';
import { csv, short } from '../../format';
import { setParams } from '../../route';
import { HeadTerms, Inspection } from '../../types';
import { Panel } from '../../ui/blocks';
import { Button, Segments } from '../../ui/controls';
import { headData, OffButton, shownHead } from './head';
import { InspectState, mapsOf } from './state';
import { ShareBar } from './term_shares';

export function OneImageHead({
  state,
  inspection,
  view,
  setView,
  shares,
}: {
  state: InspectState;
  inspection: Inspection;
  view: string;
  setView: (view: string) => void;
  shares?: HeadTerms['shares']; // of the four terms, if they were asked for
}) {
  const shown = shownHead(state, inspection),
    image = inspection.image!,
    maps = mapsOf(inspection, state.kind);
  const [over, setOver] = useState(-1),
    [cell, setCell] = useState<Cell | null>(null);
  const query = over >= 0 ? over : Math.max(state.query, 0);
  const row = shown?.rows[query]?.slice(image.first);
  const grid = useMemo(
    () =>
      row && {
        rows: image.rows,
        columns: image.columns,
        value: (i: number, j: number) => row[i * image.columns + j],
        least: 0,
        most: row.reduce((a, b) => Math.max(a, b), 1e-9),
      },
    [row?.join()],
  );
  const overlay = useMemo(() => grid && painted(grid, 'dark', 0.68), [grid]); // low weights darken the image, in both themes
  const full = useMemo(() => (shown && view === 'matrix' ? matrixGrid(shown.rows, { least: 0 }) : null), [shown?.rows, view]);
  if (!shown || !grid || !maps) return null;
  const name =
    query < image.first
      ? shown.queries[query]
      : `patch ${Math.floor((query - image.first) / image.columns)}, ${(query - image.first) % image.columns}`;
  const data = () =>
    view === 'matrix'
      ? headData(shown)()
      : {
          name: 'overlay',
          json: { query: name, rows: image.rows, columns: image.columns, weights: row },
          csv: csv(Array.from({ length: image.rows }, (_, i) => row!.slice(i * image.columns, (i + 1) * image.columns))),
        };
  return (
    <Panel
      title={shown.title}
      about={
        state.kind === 'rollout'
          ? 'Attention rollout: the matrices of all layers multiplied (Abnar and Zuidema 2020).'
          : `Query: ${name}. Point at a patch to see where it looks; click to select it.`
      }
      actions={
        <>
          {shares && <ShareBar shares={shares} />}
          {state.kind !== 'rollout' && <OffButton state={state} kind={maps.kind} />}
          {image.first > 0 && state.query > 0 && <Button onClick={() => setParams({ query: null })}>Class token</Button>}
          <Segments label="Draw as" value={view} options={['overlay', 'matrix']} onChange={setView} />
        </>
      }
    >
      <Figure data={data}>
        {width => {
          if (full)
            return (
              <Matrix
                grid={full}
                width={Math.min(width, 560)}
                down="queries"
                across="keys"
                label={shown.title}
                hover={cell}
                onHover={setCell}
                row={query}
                onPick={({ row }) => setParams({ query: String(row) })}
              />
            );
          const stacked = width < 420,
            size = Math.min(stacked ? width : (width - 16) / 2, 340),
            high = (size * image.rows) / image.columns,
            step = size / image.columns;
          const [right, down] = stacked ? [0, high + 12] : [size + 16, 0]; // where the second drawing is
          const patchAt = (event: PointerEvent | MouseEvent) => {
            const box = (event.currentTarget as Element).getBoundingClientRect();
            const i = Math.floor(((event.clientY - box.top) / box.height) * image.rows),
              j = Math.floor(((event.clientX - box.left) / box.width) * image.columns);
            return image.first + Math.min(Math.max(i, 0), image.rows - 1) * image.columns + Math.min(Math.max(j, 0), image.columns - 1);
          };
          const place = query - image.first;
          return (
            <>
              <svg
                viewBox={`0 0 ${right + size} ${down + high}`}
                width={right + size}
                height={down + high}
                role="img"
                aria-label={`Attention of ${name} over the image`}
              >
                <image href={image.data} width={size} height={high} preserveAspectRatio="none" />
                <image href={image.data} x={right} y={down} width={size} height={high} preserveAspectRatio="none" />
                <image
                  href={overlay!}
                  x={right}
                  y={down}
                  width={size}
                  height={high}
                  preserveAspectRatio="none"
                  style={{ imageRendering: 'pixelated' }}
                />
                {state.hidden
                  .filter(token => token >= image.first)
                  .map(token => (
                    <rect
                      key={token}
                      x={((token - image.first) % image.columns) * step}
                      y={Math.floor((token - image.first) / image.columns) * step}
                      width={step}
                      height={step}
                      fill="var(--page)"
                      fill-opacity="0.85"
                    />
                  ))}
                {place >= 0 && (
                  <rect
                    x={(place % image.columns) * step}
                    y={Math.floor(place / image.columns) * step}
                    width={step}
                    height={step}
                    fill="none"
                    stroke="var(--series-2)"
                    stroke-width="2"
                  />
                )}
                <rect
                  data-hover
                  width={size}
                  height={high}
                  fill="transparent"
                  style={{ cursor: 'crosshair' }}
                  onPointerMove={event => setOver(patchAt(event))}
                  onPointerLeave={() => setOver(-1)}
                  onClick={event => {
                    const token = patchAt(event);
                    if (event.shiftKey)
                      setParams({
                        hidden:
                          (state.hidden.includes(token) ? state.hidden.filter(each => each !== token) : [...state.hidden, token]).join(
                            ',',
                          ) || null,
                      });
                    else setParams({ query: token === state.query ? null : String(token) });
                  }}
                />
              </svg>
              <p class="muted small below">Shift-click a patch to mask it for every query. Largest weight: {short(grid.most)}.</p>
              <ColourKey least={0} most={grid.most} theme="dark" />
            </>
          );
        }}
      </Figure>
    </Panel>
  );
}
