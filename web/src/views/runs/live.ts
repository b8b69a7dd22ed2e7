// Runs that follow their training: loaded once, then kept up to date by the server's events.
import { useEffect, useRef, useState } from 'preact/hooks';
import { get, stream } from '../../api';
import { HeadFrame, Run, RunRow } from '../../types';

const retryAfter = 2000; // milliseconds

function apply(run: Run, kind: string, data: unknown): Run {
  if (kind === 'step') return { ...run, steps: [...run.steps, data as RunRow] };
  if (kind === 'epoch') {
    const row = data as RunRow;
    return { ...run, epochs: [...run.epochs, row], summary: { ...run.summary, epochs: row.epoch } };
  }
  if (kind === 'heads') return { ...run, heads: [...run.heads, data as HeadFrame] };
  if (kind === 'log') return { ...run, log: [...run.log, (data as { line: string }).line].slice(-2000) };
  return run;
}

const pause = (signal: AbortSignal) =>
  new Promise<void>(resolve => (setTimeout(resolve, retryAfter), signal.addEventListener('abort', () => resolve())));

async function follow(id: string, signal: AbortSignal, put: (change: (run: Run | undefined) => Run | undefined) => void) {
  while (!signal.aborted) {
    const run = await get<Run>(`/api/runs/${id}`, signal);
    put(() => run);
    if (run.summary.state !== 'running') return;
    const ended = new AbortController(),
      abort = () => ended.abort();
    signal.addEventListener('abort', abort);
    try {
      await stream(`/api/runs/${id}/events?cursor=${encodeURIComponent(run.cursor)}`, undefined, ended.signal, event => {
        const data = JSON.parse(event.data);
        if (event.event !== 'state') put(old => old && apply(old, event.event, data));
        else if (data.state !== 'running') abort(); // load its evaluation and samples
      });
    } catch {
      // the connection ended: connect again
    }
    signal.removeEventListener('abort', abort);
    if (!signal.aborted) await pause(signal);
  }
}

export interface LiveRuns {
  runs: Map<string, Run>;
  errors: Map<string, Error>;
  reload: () => void;
}

// Events come in bursts; the page is drawn at most four times a second.
export function useLiveRuns(ids: string[]): LiveRuns {
  const runs = useRef(new Map<string, Run>()),
    errors = useRef(new Map<string, Error>());
  const [, redraw] = useState(0);
  const [round, setRound] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const changed = () => (timer ??= setTimeout(() => ((timer = undefined), redraw(count => count + 1)), 250));
    for (const id of [...runs.current.keys()]) if (!ids.includes(id)) runs.current.delete(id);
    errors.current.clear();
    for (const id of ids)
      follow(id, abort.signal, change => {
        const first = !runs.current.has(id),
          next = change(runs.current.get(id));
        if (next) runs.current.set(id, next);
        if (first) redraw(count => count + 1);
        else changed();
      }).catch(error => {
        if (abort.signal.aborted) return;
        errors.current.set(id, error);
        redraw(count => count + 1);
      });
    return () => (abort.abort(), clearTimeout(timer));
  }, [ids.join(), round]);
  return { runs: runs.current, errors: errors.current, reload: () => setRound(round + 1) };
}
