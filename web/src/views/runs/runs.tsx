// Runs: the list, one run, several side by side, a new one.
import { useEffect } from 'preact/hooks';
import { useGet } from '../../api';
import { duration, lessIsBetter, metric } from '../../format';
import { link, useListParam, useParam, useRoute } from '../../route';
import { RunSummary } from '../../types';
import { useInfo } from '../../info';
import { Await, Empty, PageHead } from '../../ui/blocks';
import { Segments, Select, TextField } from '../../ui/controls';
import { Icon } from '../../ui/icons';
import { Compare } from './compare';
import { NewRun } from './new_run';
import { RunPage } from './run';

interface RunList {
  folder: string;
  runs: RunSummary[];
  can_train: boolean;
}

export function Runs() {
  const { path } = useRoute();
  if (path[0] === 'new') return <NewRun />;
  return path.length >= 2 ? <RunPage id={`${path[0]}/${path[1]}`} /> : <RunTable />;
}

export const stateKind = (state: RunSummary['state']) =>
  ({ running: 'live', finished: 'good', stopped: 'warn', interrupted: 'warn', diverged: 'bad', failed: 'bad' })[state];

function RunTable() {
  const { data: info } = useInfo();
  const list = useGet<RunList>(info?.runs === null ? null : '/api/runs');
  useEffect(() => {
    const timer = setInterval(list.reload, list.data?.runs.some(run => run.state === 'running') ? 3000 : 15000);
    return () => clearInterval(timer);
  });
  return (
    <>
      <PageHead title="Runs" about="Training runs on this machine, running and finished. Select some to compare them.">
        {list.data?.can_train && (
          <a class="button primary" href={link('runs', ['new'])}>
            <Icon name="plus" />
            New run
          </a>
        )}
      </PageHead>
      {info && info.runs === null ? (
        <Empty title="This server has no folder of runs" command="heed serve --runs runs">
          Start it with the folder that heed train writes to.
        </Empty>
      ) : (
        <Await from={list}>
          {({ runs, folder, can_train }) =>
            runs.length === 0 ? (
              <Empty title="No runs yet" command="heed train classify data=shapes epochs=5">
                {can_train
                  ? `Start one with New run, or from a terminal. Runs in ${folder} appear here as they train.`
                  : `Runs in ${folder} appear here as they train.`}
              </Empty>
            ) : (
              <Table runs={runs} />
            )
          }
        </Await>
      )}
    </>
  );
}

// Runs with the same metric together, the best of them first; then those without a value.
function best(a: RunSummary, b: RunSummary): number {
  const without = (run: RunSummary) => Number(run.best_epoch <= 0 || run.best === null);
  if (without(a) || without(b)) return without(a) - without(b);
  if (a.metric !== b.metric) return a.metric.localeCompare(b.metric);
  return lessIsBetter(a.metric) ? a.best! - b.best! : b.best! - a.best!;
}

function Table({ runs }: { runs: RunSummary[] }) {
  const [filter, setFilter] = useParam('filter');
  const [state, setState] = useParam('state', 'all');
  const [sort, setSort] = useParam('sort', 'newest');
  const [compared, setCompared] = useListParam('compare');
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (run: RunSummary) =>
    words.every(word => `${run.id} ${run.model} ${run.data} ${run.state}`.toLowerCase().includes(word)) &&
    (state === 'all' || (state === 'running') === (run.state === 'running'));
  const by: Record<string, (a: RunSummary, b: RunSummary) => number> = {
    newest: () => 0,
    best,
    time: (a, b) => b.seconds - a.seconds,
    name: (a, b) => a.id.localeCompare(b.id),
  };
  const shown = runs.filter(matches).sort(by[sort] ?? by.newest);
  const toggle = (id: string) => setCompared(compared.includes(id) ? compared.filter(each => each !== id) : [...compared, id]);
  const chosen = compared.filter(id => runs.some(run => run.id === id));
  return (
    <div class="stack">
      {chosen.length > 0 && <Compare ids={chosen} onClear={() => setCompared([])} />}
      <div class="toolbar">
        <TextField name="Filter" type="search" value={filter} onChange={setFilter} placeholder="name or model" />
        <Select name="Sort" value={sort} options={['newest', 'best', 'time', 'name']} onChange={setSort} />
        <Segments label="State" value={state} options={['all', 'running', { value: 'past', text: 'ended' }]} onChange={setState} />
      </div>
      <section class="panel flush">
        <div class="table-wrap">
          <table class="runs-table">
            <thead>
              <tr>
                <th>
                  <span class="hidden-text">Compare</span>
                </th>
                <th>Run</th>
                <th>State</th>
                <th class="wide">Model</th>
                <th class="wide">Data</th>
                <th class="right">Epochs</th>
                <th class="right">Best</th>
                <th class="right wide">Time</th>
              </tr>
            </thead>
            <tbody>
              {shown.map(run => (
                <tr key={run.id} class={chosen.includes(run.id) ? 'chosen' : ''}>
                  <td>
                    <input
                      type="checkbox"
                      aria-label={`Compare ${run.id}`}
                      checked={chosen.includes(run.id)}
                      onChange={() => toggle(run.id)}
                    />
                  </td>
                  <th scope="row">
                    <a href={link('runs', run.id.split('/'))}>{run.id}</a>
                  </th>
                  <td>
                    <span class={`badge ${stateKind(run.state)}`}>{run.state}</span>
                  </td>
                  <td class="wide">{run.model}</td>
                  <td class="wide muted">{run.data}</td>
                  <td class="right">
                    {run.epochs}
                    {run.planned > 0 && <span class="muted"> / {run.planned}</span>}
                  </td>
                  <td class="right">
                    {run.best_epoch > 0 ? metric(run.metric, run.best) : '–'}{' '}
                    <span class="muted small">{run.best_epoch > 0 && run.metric}</span>
                  </td>
                  <td class="right wide">{duration(run.seconds)}</td>
                </tr>
              ))}
              {shown.length === 0 && (
                <tr>
                  <td colSpan={8} class="muted">
                    No run matches this filter.
                  </td>
                </tr>
              )}
            </tbody>
          </table>
        </div>
      </section>
    </div>
  );
}
