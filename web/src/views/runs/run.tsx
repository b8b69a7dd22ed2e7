// One run: its state, curves, samples, confusion matrix, heads, settings and log.
import { useEffect, useRef, useState } from 'preact/hooks';
import { post } from '../../api';
import { duration, metric, words } from '../../format';
import { link, useNumberParam, useParam } from '../../route';
import { useInfo } from '../../info';
import { Run } from '../../types';
import { Failure, PageHead, Panel, Stats, Waiting } from '../../ui/blocks';
import { Button, Segments, TextField } from '../../ui/controls';
import { Icon } from '../../ui/icons';
import { CurveControls } from './compare';
import { Confusion } from './confusion';
import { Curves } from './curves';
import { Heads } from './heads';
import { useLiveRuns } from './live';
import { stateKind } from './runs';
import { Samples } from './samples';
import { inOrder } from './series';

export function RunPage({ id }: { id: string }) {
  const live = useLiveRuns([id]);
  const run = live.runs.get(id),
    error = live.errors.get(id);
  const [failure, setFailure] = useState<Error>();
  const { data: info } = useInfo();
  const act = async (what: 'stop' | 'resume') => {
    try {
      setFailure(undefined);
      await post(`/api/runs/${id}/${what}`, {});
      setTimeout(live.reload, 1000);
    } catch (problem) {
      setFailure(problem as Error);
    }
  };
  const state = run?.summary.state;
  return (
    <>
      <a class="back" href={link('runs')}>
        <Icon name="back" />
        All runs
      </a>
      <PageHead title={id} about={run && <RunAbout run={run} />}>
        {info?.can_train && state === 'running' && (
          <Button icon="stop" onClick={() => act('stop')}>
            Stop
          </Button>
        )}
        {info?.can_train && state && ['stopped', 'interrupted', 'failed'].includes(state) && (
          <Button icon="resume" kind="primary" onClick={() => act('resume')}>
            Resume
          </Button>
        )}
        {run && (
          <a class="button" href={link('runs', [], { compare: id })}>
            Compare
          </a>
        )}
      </PageHead>
      {(failure ?? error) && <Failure error={(failure ?? error)!} retry={live.reload} />}
      {run ? <RunBody run={run} /> : !error && <Waiting />}
    </>
  );
}

const RunAbout = ({ run }: { run: Run }) => (
  <span class="row">
    <span class={`badge ${stateKind(run.summary.state)}`}>{run.summary.state}</span>
    <span>
      {run.summary.model} on {run.summary.data}
    </span>
  </span>
);

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

function RunBody({ run }: { run: Run }) {
  const [tab, setTab] = useParam('tab', 'curves');
  const [smoothing] = useNumberParam('smooth', 0);
  const [log] = useParam('log');
  const { summary } = run;
  const tabs = [
    'curves',
    run.samples.length > 0 && 'samples',
    run.confusion && 'confusion',
    run.heads.length > 0 && 'heads',
    'settings',
    'log',
  ].filter(each => typeof each === 'string');
  const step = run.steps.at(-1)?.step ?? run.epochs.at(-1)?.step ?? 0;
  return (
    <div class="stack">
      <Stats
        items={[
          [
            'Epochs',
            <>
              {summary.epochs}
              {summary.planned > 0 && <small>of {summary.planned}</small>}
            </>,
          ],
          ['Steps', step.toLocaleString('en')],
          summary.best_epoch > 0 && [
            `Best ${words(summary.metric)}`,
            <>
              {metric(summary.metric, summary.best)}
              <small>epoch {summary.best_epoch}</small>
            </>,
          ],
          ...inOrder(Object.keys(summary.figures))
            .slice(0, 3)
            .map(name => [capital(`${summary.judged} ${words(name)}`), metric(name, summary.figures[name])] as const),
          ['Time', duration(summary.seconds)],
        ]}
      />
      <Segments label="Part of the run" value={tab} options={tabs} onChange={setTab} />
      {tab === 'curves' && (
        <Panel>
          <div class="stack">
            <CurveControls />
            <Curves runs={[run]} smoothing={smoothing} log={log === '1'} />
          </div>
        </Panel>
      )}
      {tab === 'samples' && <Samples samples={run.samples} />}
      {tab === 'confusion' && run.confusion && <Confusion classes={run.classes} counts={run.confusion} />}
      {tab === 'heads' && run.heads.length > 0 && <Heads frames={run.heads} />}
      {tab === 'settings' && <SettingTable run={run} />}
      {tab === 'log' && <Log lines={run.log} />}
    </div>
  );
}

function SettingTable({ run }: { run: Run }) {
  const [filter, setFilter] = useParam('setting');
  const shown = run.settings.filter(setting =>
    `${setting.key} ${setting.value} ${setting.meaning}`.toLowerCase().includes(filter.toLowerCase()),
  );
  const given = run.settings.filter(setting => setting.given && setting.key !== 'task');
  return (
    <div class="stack">
      <div class="toolbar">
        <TextField name="Find a setting" type="search" value={filter} onChange={setFilter} />
        <a
          class="button"
          href={link('runs', ['new'], {
            task: run.summary.task,
            ...Object.fromEntries(given.map(setting => [`s.${setting.key}`, setting.value])),
          })}
        >
          New run with these settings
        </a>
      </div>
      <Panel flush>
        <div class="table-wrap">
          <table>
            <thead>
              <tr>
                <th>Setting</th>
                <th>Value</th>
                <th class="wide">Meaning</th>
              </tr>
            </thead>
            <tbody>
              {shown.map(setting => (
                <tr key={setting.key}>
                  <th scope="row">
                    <code>{setting.key}</code>
                  </th>
                  <td style={{ fontWeight: setting.given ? 600 : 400, overflowWrap: 'anywhere' }}>
                    {setting.value || <span class="muted">–</span>}
                  </td>
                  <td class="wide muted">{setting.meaning}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </Panel>
    </div>
  );
}

// Stays at the end while lines arrive, unless one has scrolled up.
function Log({ lines }: { lines: string[] }) {
  const box = useRef<HTMLPreElement>(null),
    atEnd = useRef(true);
  useEffect(() => {
    if (atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines.length]);
  return (
    <pre
      class="log"
      ref={box}
      tabIndex={0}
      aria-label="Log"
      onScroll={() => (atEnd.current = box.current!.scrollTop + box.current!.clientHeight > box.current!.scrollHeight - 24)}
    >
      {lines.join('\n') || 'The log is empty.'}
    </pre>
  );
}
