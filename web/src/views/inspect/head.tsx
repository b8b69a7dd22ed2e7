// One head of a text or translation model, large: as lines or as a matrix, and the row of the chosen query.
import { useMemo, useState } from 'preact/hooks';
import { Arcs } from '../../figures/arcs';
import { Figure } from '../../figures/figure';
import { Cell, ColourKey, Matrix, matrixGrid } from '../../figures/matrix';
import { csv } from '../../format';
import { setParams } from '../../route';
import { HeadTerms, Inspection } from '../../types';
import { Panel, Probabilities } from '../../ui/blocks';
import { Button, Segments } from '../../ui/controls';
import { headKey, InspectState, mapsOf } from './state';
import { ShareBar } from './term_shares';

export interface Shown {
  title: string;
  queries: string[];
  keys: string[];
  rows: number[][]; // all queries
}

// The weights of the chosen head, or the rollout over all layers.
export function shownHead(state: InspectState, inspection: Inspection): Shown | null {
  const source = state.whole ? inspection : state.one.data;
  const maps = source && mapsOf(source, state.kind === 'rollout' ? '' : state.kind);
  if (!maps) return null;
  if (state.kind === 'rollout') {
    const count = Math.round(Math.sqrt(inspection.rollout.length));
    return {
      title: 'Rollout',
      queries: maps.queries,
      keys: maps.keys,
      rows: maps.queries.map((_, i) => inspection.rollout.slice(i * count, (i + 1) * count)),
    };
  }
  const l = maps.layers.indexOf(state.layer),
    h = maps.heads.indexOf(state.head);
  if (l < 0 || h < 0) return null;
  return { title: `Layer ${state.layer}, head ${state.head}`, queries: maps.queries, keys: maps.keys, rows: maps.weights[l][h] };
}

export const headData = (shown: Shown) => () => ({
  name: shown.title.toLowerCase().replace(/[, ]+/g, '-'),
  json: { queries: shown.queries, keys: shown.keys, weights: shown.rows },
  csv: csv([['query \\ key', ...shown.keys], ...shown.rows.map((row, i) => [shown.queries[i], ...row])]),
});

export function OffButton({ state, kind }: { state: InspectState; kind: string }) {
  const key = headKey(kind, state.layer, state.head),
    off = state.off.includes(key);
  return (
    <Button onClick={() => setParams({ off: (off ? state.off.filter(each => each !== key) : [...state.off, key]).join(',') || null })}>
      {off ? 'Switch on' : 'Switch off'}
    </Button>
  );
}

export function OneHead({
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
  const [over, setOver] = useState(-1),
    [cell, setCell] = useState<Cell | null>(null);
  const shown = shownHead(state, inspection);
  const grid = useMemo(() => (shown ? matrixGrid(shown.rows, { least: 0 }) : null), [shown?.rows]);
  const maps = mapsOf(inspection, state.kind);
  if (!shown || !grid || !maps) return null;
  const query = over >= 0 ? over : (cell?.row ?? Math.min(state.query, shown.rows.length - 1));
  const row = query >= 0 ? shown.rows[query] : null;
  const pick = (next: number) => setParams({ query: next === state.query ? null : String(next) });
  const top = row
    ? row
        .map((score, j) => ({ label: shown.keys[j], score, j }))
        .sort((a, b) => b.score - a.score)
        .slice(0, 6)
        .map(each => ({ ...each, label: `${each.label} (${each.j})` }))
    : [];
  return (
    <Panel
      title={shown.title}
      about={
        state.kind === 'rollout'
          ? 'Attention rollout: the matrices of all layers multiplied (Abnar and Zuidema 2020).'
          : `${maps.kind === 'cross' ? 'Translation (queries) to source (keys)' : 'Queries to keys'}. Point at a query to see its row.`
      }
      actions={
        <>
          {shares && <ShareBar shares={shares} />}
          {state.kind !== 'rollout' && <OffButton state={state} kind={maps.kind} />}
          <Segments label="Draw as" value={view} options={['lines', 'matrix']} onChange={setView} />
        </>
      }
    >
      <div class="head-large">
        <Figure data={headData(shown)}>
          {width =>
            view === 'matrix' ? (
              <>
                <Matrix
                  grid={grid}
                  width={Math.min(width, 620)}
                  rows={shown.queries}
                  columns={shown.keys}
                  down="queries"
                  across="keys"
                  label={shown.title}
                  row={state.query >= 0 ? state.query : undefined}
                  hover={cell}
                  onHover={setCell}
                  onPick={({ row }) => pick(row)}
                />
                <ColourKey least={0} most={grid.most} />
              </>
            ) : (
              <Arcs
                queries={shown.queries}
                keys={shown.keys}
                weight={(i, j) => shown.rows[i][j]}
                query={query}
                onQuery={setOver}
                onPick={pick}
                width={width}
              />
            )
          }
        </Figure>
        <div class="head-row">
          <h3>{row ? `${shown.queries[query]} (${query}) attends to` : 'No query selected'}</h3>
          {row ? <Probabilities labels={top} /> : <p class="muted small">Point at a token on the left or at a cell.</p>}
        </div>
      </div>
    </Panel>
  );
}
