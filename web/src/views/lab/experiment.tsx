// One experiment: its claim, the settings as sliders, the verdict, measured numbers, figures and tables.
import { useEffect, useRef, useState } from 'preact/hooks';
import { stream } from '../../api';
import { duration, short } from '../../format';
import { link, setParams, useRoute } from '../../route';
import { Experiment, LabResult } from '../../types';
import { Code, Failure, PageHead, Panel } from '../../ui/blocks';
import { Button } from '../../ui/controls';
import { Icon } from '../../ui/icons';
import { Formula, Sentence } from '../../ui/math';
import { LabFigure } from './lab_figure';
import { LabSetting } from './lab_setting';
import { verdictKind, verdictText } from './lab';

const slow = ['Learning']; // topics that train models: they wait for a click
const liveSeconds = 3; // experiments that took less follow their sliders
const results = new Map<string, LabResult>(); // by name and settings

export function ExperimentPage({ experiment, previous, next }: { experiment: Experiment; previous?: Experiment; next?: Experiment }) {
  const { params } = useRoute();
  const given = Object.fromEntries(
    experiment.settings.map(each => [each.key, params.get(each.key)]).filter(([, value]) => value !== null),
  ) as Record<string, string>;
  const key = experiment.name + JSON.stringify(given);
  const [shown, setShown] = useState<LabResult | undefined>(results.get(key)),
    [progress, setProgress] = useState(''),
    [running, setRunning] = useState(false),
    [failure, setFailure] = useState<Error>();
  const abort = useRef<AbortController | undefined>(undefined);
  const run = async () => {
    abort.current?.abort();
    const mine = (abort.current = new AbortController());
    (setRunning(true), setFailure(undefined), setProgress(''));
    try {
      await stream(`/api/lab/${experiment.name}`, { settings: given, stream: true }, mine.signal, ({ event, data }) => {
        if (event === 'progress') return setProgress(plainText(data));
        if (event === 'error') return setFailure(new Error(errorText(data)));
        if (event !== 'result') return;
        const result = JSON.parse(data) as LabResult;
        results.set(key, result);
        setShown(result);
      });
    } catch (error) {
      if (!mine.signal.aborted) setFailure(error as Error);
    }
    if (abort.current === mine) (setRunning(false), setProgress(''));
  };
  const follows = shown ? shown.seconds < liveSeconds : !slow.includes(experiment.topic);
  useEffect(() => {
    const known = results.get(key);
    if (known) return setShown(known);
    if (!follows) return;
    const timer = setTimeout(run, 150);
    return () => clearTimeout(timer);
  }, [key]);
  useEffect(() => () => abort.current?.abort(), []);
  const command = ['heed lab', experiment.number, ...Object.entries(given).map(([name, value]) => `${name}=${value}`)].join(' ');
  return (
    <>
      <div class="row between">
        <a class="back" href={link('lab')}>
          <Icon name="back" />
          All experiments
        </a>
        <span class="row small">
          {previous && <a href={link('lab', [previous.number])}>← {previous.number}</a>}
          {next && <a href={link('lab', [next.number])}>{next.number} →</a>}
        </span>
      </div>
      <PageHead title={experiment.title} about={`${experiment.number} · ${experiment.topic}`} />
      <div class="split">
        <div class="stack">
          <section class="claim">
            <p class="large">
              <Sentence text={experiment.claim} />
            </p>
            {experiment.formula && <Formula tex={experiment.formula} />}
            {experiment.published && (
              <p class="notice">
                <span>
                  <b>Published claim:</b> <Sentence text={experiment.published} />
                </span>
              </p>
            )}
          </section>
          {failure && <Failure error={failure} retry={run} />}
          {shown ? (
            <Result result={shown} stale={running} />
          ) : (
            !running && !failure && <p class="muted">This experiment trains models and takes a while. Press Run to start it.</p>
          )}
        </div>
        <aside>
          <Panel
            title="Settings"
            actions={
              Object.keys(given).length > 0 && (
                <Button kind="plain" onClick={() => setParams(Object.fromEntries(Object.keys(given).map(name => [name, null])))}>
                  Reset
                </Button>
              )
            }
          >
            <div class="stack tight">
              {experiment.settings.map(setting => (
                <LabSetting
                  key={setting.key}
                  setting={setting}
                  value={given[setting.key]}
                  onChange={value => setParams({ [setting.key]: value === String(setting.default) ? null : value })}
                />
              ))}
              <div class="row">
                {running ? (
                  <Button icon="stop" onClick={() => (abort.current?.abort(), setRunning(false))}>
                    Stop
                  </Button>
                ) : (
                  <Button kind={follows ? undefined : 'primary'} icon="resume" onClick={run}>
                    Run
                  </Button>
                )}
                <span class="muted small" role="status">
                  {running ? progress || 'Computing' : shown && `Computed in ${duration(shown.seconds)}`}
                </span>
              </div>
              <Code text={command} />
            </div>
          </Panel>
        </aside>
      </div>
    </>
  );
}

// Progress is a text, or an object with one.
function plainText(data: string): string {
  try {
    const value = JSON.parse(data);
    return typeof value === 'string' ? value : (value.line ?? value.text ?? value.message ?? '');
  } catch {
    return data;
  }
}
function errorText(data: string): string {
  try {
    return JSON.parse(data).error?.message ?? data;
  } catch {
    return data;
  }
}

function Result({ result, stale }: { result: LabResult; stale: boolean }) {
  return (
    <div class={stale ? 'stack stale' : 'stack'} aria-busy={stale}>
      <div class="verdict">
        <span class={`badge ${verdictKind[result.verdict]}`}>
          {result.verdict === 'corrected'
            ? 'The published claim is wrong; the corrected claim holds'
            : `The claim ${verdictText[result.verdict]}`}
        </span>
        <p>
          <Sentence text={result.statement} />
        </p>
        {result.error && <p class="notice bad">{result.error}</p>}
      </div>
      {result.figures.map((figure, i) => (
        <LabFigure key={i} figure={figure} name={result.name} index={i} />
      ))}
      {result.measured.length > 0 && (
        <Panel title="Measured" flush>
          <div class="table-wrap">
            <table>
              <thead>
                <tr>
                  <th>Quantity</th>
                  <th class="right">Measured</th>
                  <th class="right">Predicted</th>
                  <th class="right">As predicted</th>
                </tr>
              </thead>
              <tbody>
                {result.measured.map(each => (
                  <tr key={each.name}>
                    <th scope="row">
                      <Sentence text={each.name} />
                      {each.by_clock && <span class="muted small"> wall-clock time</span>}
                    </th>
                    <td class="right">{short(each.measured, 4)}</td>
                    <td class="right">
                      {each.contradicts && <span class="muted">not </span>}
                      {each.prediction}
                    </td>
                    <td class="right">
                      <span class={`badge ${each.passes ? 'good' : 'bad'}`}>{each.passes ? 'yes' : 'no'}</span>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </Panel>
      )}
      {result.tables.map((table, t) => (
        <Panel key={t} title={table.title} flush>
          <div class="table-wrap">
            <table>
              <thead>
                <tr>
                  {table.columns.map((column, i) =>
                    column ? (
                      <th key={i}>
                        <Sentence text={column} />
                      </th>
                    ) : (
                      <td key={i} />
                    ),
                  )}
                </tr>
              </thead>
              <tbody>
                {table.rows.map((row, i) => (
                  <tr key={i}>
                    {row.map((cell, j) => (
                      <td key={j} class={typeof cell === 'number' ? 'number' : ''}>
                        {typeof cell === 'number' ? short(cell, 4) : <Sentence text={cell ?? '–'} />}
                      </td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </Panel>
      ))}
    </div>
  );
}
