// Several runs side by side: their curves, and the settings in which they differ.
import { useNumberParam, useParam, link } from '../../route';
import { metric as metricText, words } from '../../format';
import { Run } from '../../types';
import { Failure, Panel, Waiting } from '../../ui/blocks';
import { Button, Check, Slider } from '../../ui/controls';
import { Curves } from './curves';
import { useLiveRuns } from './live';
import { inOrder } from './series';

export function CurveControls() {
  const [smoothing, setSmoothing] = useNumberParam('smooth', 0);
  const [log, setLog] = useParam('log');
  return (
    <div class="curve-controls">
      <Slider name="Smoothing" value={smoothing} least={0} most={0.98} step={0.02} onChange={setSmoothing} />
      <Check name="Logarithmic y axis" value={log === '1'} onChange={on => setLog(on ? '1' : '')} />
    </div>
  );
}

export function Compare({ ids, onClear }: { ids: string[]; onClear: () => void }) {
  const live = useLiveRuns(ids);
  const [smoothing] = useNumberParam('smooth', 0);
  const [log] = useParam('log');
  const runs = ids.map(id => live.runs.get(id)).filter(run => run !== undefined);
  return (
    <>
      <Panel
        title={ids.length === 1 ? ids[0] : `${ids.length} runs`}
        actions={
          <Button kind="plain" icon="close" onClick={onClear}>
            Clear
          </Button>
        }
      >
        {[...live.errors].map(([id, error]) => (
          <Failure key={id} error={new Error(`${id}: ${error.message}`)} />
        ))}
        {runs.length < ids.length && live.errors.size === 0 && <Waiting />}
        {runs.length > 0 && (
          <div class="stack">
            <CurveControls />
            <Curves runs={runs} smoothing={smoothing} log={log === '1'} />
          </div>
        )}
      </Panel>
      {runs.length > 1 && <Differences runs={runs} />}
    </>
  );
}

function Differences({ runs }: { runs: Run[] }) {
  const values = runs.map(run => new Map(run.settings.map(setting => [setting.key, setting.value])));
  const keys = [...new Set(runs.flatMap(run => run.settings.map(setting => setting.key)))].filter(
    key => new Set(values.map(each => each.get(key) ?? '')).size > 1,
  );
  const figures = inOrder([...new Set(runs.flatMap(run => Object.keys(run.summary.figures)))]);
  return (
    <Panel title="Differences" about="Settings in which the runs differ, and the final evaluation." flush>
      <div class="table-wrap">
        <table>
          <thead>
            <tr>
              <th>Setting</th>
              {runs.map(run => (
                <th key={run.summary.id}>
                  <a href={link('runs', run.summary.id.split('/'))}>{run.summary.id}</a>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {keys.map(key => (
              <tr key={key}>
                <th scope="row">
                  <code>{key}</code>
                </th>
                {values.map((each, i) => (
                  <td key={i}>{each.get(key) || <span class="muted">–</span>}</td>
                ))}
              </tr>
            ))}
            {figures.map(name => (
              <tr key={name}>
                <th scope="row">{words(name)}</th>
                {runs.map(run => (
                  <td key={run.summary.id} class="number">
                    {metricText(name, run.summary.figures[name])}
                  </td>
                ))}
              </tr>
            ))}
            {keys.length + figures.length === 0 && (
              <tr>
                <td colSpan={runs.length + 1} class="muted">
                  All settings are the same.
                </td>
              </tr>
            )}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}
