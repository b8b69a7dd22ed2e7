// The attention playground: tokens on a grid or in a row, terms with sliders, the map and its gradient as heed computes them.
import { useMemo, useState } from 'preact/hooks';
import { useGet, usePost } from '../../api';
import { Figure } from '../../figures/figure';
import { Cell, ColourKey, Matrix, matrixGrid } from '../../figures/matrix';
import { csv, short } from '../../format';
import { setParams, useParam } from '../../route';
import { Attended, Term } from '../../types';
import { Await, Code, Failure, PageHead, Panel, Waiting } from '../../ui/blocks';
import { Check, Segments, Slider } from '../../ui/controls';
import { cppOf, Playground, requestOf, usePlayground } from './state';
import { TermControls } from './terms';

export function Attention() {
  const state = usePlayground();
  const place = state.layout === 'grid' ? `grid=${state.rows}x${state.columns}` : `tokens=${state.tokens}`;
  const terms = useGet<{ terms: Term[] }>(`/api/terms?${place}`);
  const known = terms.data && state.terms.every(choice => terms.data!.terms.some(term => term.name === choice.name));
  const result = usePost<Attended>('/api/attend', known ? requestOf(state) : null, 60);
  return (
    <>
      <PageHead
        title="Attention"
        about="Build the scores of one head from content and position terms. Point at a query to see its row; click a weight for its gradient."
      />
      <Await from={terms}>
        {list => (
          <div class="split">
            <div class="stack">
              {result.error && <Failure error={result.error} />}
              {result.data && result.data.tokens === state.tokens ? (
                <Maps state={state} result={result.data} />
              ) : (
                !result.error && <Waiting />
              )}
              {result.data && <Copy state={state} result={result.data} terms={list.terms} />}
            </div>
            <aside class="first">
              <Panel>
                <Layout state={state} />
                <TermControls state={state} list={list.terms} result={result.data} />
              </Panel>
            </aside>
          </div>
        )}
      </Await>
    </>
  );
}

function Layout({ state }: { state: Playground }) {
  const set = (name: string) => (value: number) => setParams({ [name]: String(value), query: null, key: null });
  const switchLayout = (layout: string) => setParams({ layout: layout === 'grid' ? null : layout, terms: null, query: null, key: null });
  return (
    <>
      <div class="group">
        <Segments
          label="Tokens"
          value={state.layout}
          options={[
            { value: 'grid', text: 'On a grid' },
            { value: 'tokens', text: 'In a row' },
          ]}
          onChange={switchLayout}
        />
        {state.layout === 'grid' ? (
          <>
            <Slider name="Rows" value={state.rows} least={2} most={16} step={1} onChange={set('rows')} />
            <Slider name="Columns" value={state.columns} least={2} most={16} step={1} onChange={set('columns')} />
          </>
        ) : (
          <Slider name="Tokens" value={state.tokens} least={2} most={64} step={1} onChange={set('tokens')} />
        )}
      </div>
      <div class="group">
        <Check name="Content: β q · k, random tokens" value={state.content} onChange={on => setParams({ content: on ? '1' : null })} />
        {state.content && (
          <>
            <Slider
              name="Inverse temperature β"
              value={state.beta}
              least={0.01}
              most={30}
              log
              onChange={beta => setParams({ beta: String(beta) })}
              help={`1 / √D is ${short(1 / Math.sqrt(state.width))}.`}
            />
            <Slider
              name="Width D"
              value={state.width}
              least={1}
              most={64}
              step={1}
              onChange={width => setParams({ width: String(width) })}
            />
            <Slider name="Seed" value={state.seed} least={1} most={100} step={1} onChange={seed => setParams({ seed: String(seed) })} />
          </>
        )}
        <Check
          name="Hard: one-hot weights (the limit of large β)"
          value={state.hard}
          onChange={on => setParams({ hard: on ? '1' : null })}
        />
      </div>
    </>
  );
}

const matrixData = (name: string, rows: number[][]) => () => ({ name, json: rows, csv: csv(rows) });
const asGrid = (row: number[], columns: number) =>
  Array.from({ length: Math.ceil(row.length / columns) }, (_, i) => row.slice(i * columns, (i + 1) * columns));

function Maps({ state, result }: { state: Playground; result: Attended }) {
  const [what, setWhat] = useParam('show', 'weights');
  const [hover, setHover] = useState<Cell | null>(null),
    [over, setOver] = useState<Cell | null>(null);
  const scores = result.scores?.[0];
  const rows =
    what === 'scores' && scores
      ? scores.map(row => row.map(value => (Number.isFinite(value) ? value : null)))
      : what === 'gradient' && result.gradients
        ? result.gradients.scores[0]
        : result.probabilities[0];
  const diverging = what === 'gradient';
  const grid = useMemo(() => matrixGrid(rows, what === 'weights' ? { least: 0 } : { diverging }), [result, what]);
  const query = state.layout === 'grid' && over ? over.row * state.columns + over.column : (hover?.row ?? state.query);
  const row = result.probabilities[0][query] ?? [];
  const onGrid = useMemo(() => matrixGrid(asGrid(row, state.columns), { least: 0 }), [row, state.columns]);
  const place = (token: number) =>
    state.layout === 'grid' ? `(${Math.floor(token / state.columns)}, ${token % state.columns})` : String(token);
  const entropy = -row.reduce((sum, p) => sum + (p > 0 ? p * Math.log(p) : 0), 0);
  const key = state.key < 0 ? state.query : state.key;
  const about = {
    weights: 'Softmax of the scores. Each row sums to 1.',
    scores: 'Before the softmax. Masked scores are blank.',
    gradient: `Gradient of the weight of key ${place(key)} for query ${place(state.query)} with respect to every score.`,
  }[what];
  return (
    <>
      <Panel
        title={state.layout === 'grid' ? 'One query on the grid' : 'One query'}
        about={`Query ${place(query)}, entropy ${short(entropy)} (at most ${short(Math.log(state.tokens))}), largest weight ${short(row.reduce((a, b) => Math.max(a, b), 0))}.`}
      >
        {state.layout === 'grid' ? (
          <Figure data={matrixData(`query-${query}`, asGrid(row, state.columns))}>
            {width => (
              <>
                <Matrix
                  grid={onGrid}
                  width={Math.min(width, 420)}
                  label={`Weights of query ${place(query)}`}
                  hover={over}
                  onHover={setOver}
                  mark={{ row: Math.floor(query / state.columns), column: query % state.columns }}
                  onPick={({ row, column }) => setParams({ query: String(row * state.columns + column), key: null })}
                />
                <ColourKey least={0} most={onGrid.most} />
              </>
            )}
          </Figure>
        ) : (
          <Figure data={() => ({ name: `query-${query}`, json: row, csv: csv([['key', 'weight'], ...row.map((value, j) => [j, value])]) })}>
            {width => <RowBars row={row} width={width} query={query} />}
          </Figure>
        )}
      </Panel>
      <Panel
        title="All queries"
        about={about}
        actions={<Segments label="Show" value={what} options={['weights', 'scores', 'gradient']} onChange={setWhat} />}
      >
        <Figure data={matrixData(what, rows as number[][])}>
          {width => (
            <>
              <Matrix
                grid={grid}
                width={Math.min(width, 560)}
                down="queries"
                across="keys"
                label={`${what} of all queries`}
                hover={hover}
                onHover={setHover}
                row={state.query}
                column={key}
                onPick={({ row, column }) => setParams({ query: String(row), key: String(column) })}
              />
              <ColourKey least={grid.least} most={grid.most} diverging={diverging} />
            </>
          )}
        </Figure>
      </Panel>
    </>
  );
}

function RowBars({ row, width, query }: { row: number[]; width: number; query: number }) {
  const height = 120,
    step = width / row.length,
    most = row.reduce((a, b) => Math.max(a, b), 1e-9);
  return (
    <svg viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label={`Weights of query ${query}`}>
      {row.map((value, j) => (
        <g key={j}>
          <rect
            x={j * step + 1}
            y={height - 18 - (value / most) * (height - 22)}
            width={Math.max(step - 2, 1)}
            height={(value / most) * (height - 22)}
            rx="2"
            fill={j === query ? 'var(--series-2)' : 'var(--series-1)'}
          >
            <title>{`${j}: ${short(value)}`}</title>
          </rect>
          {step > 16 && (
            <text x={(j + 0.5) * step} y={height - 4} font-size="10.5" text-anchor="middle" fill="var(--muted)">
              {j}
            </text>
          )}
        </g>
      ))}
      <line x1="0" x2={width} y1={height - 17.5} y2={height - 17.5} stroke="var(--line-strong)" />
    </svg>
  );
}

function Copy({ state, result, terms }: { state: Playground; result: Attended; terms: Term[] }) {
  const [as, setAs] = useParam('copy', 'C++');
  return (
    <Panel title="Equivalent code" actions={<Segments label="Language" value={as} options={['C++', 'terminal']} onChange={setAs} />}>
      <Code text={as === 'C++' ? cppOf(state, result.terms, terms) : result.command} />
      <p class="muted small" style={{ marginTop: '8px' }}>
        Computed by heed in {result.milliseconds.toFixed(2)} ms.
      </p>
    </Panel>
  );
}
