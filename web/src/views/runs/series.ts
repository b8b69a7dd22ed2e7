// Which curves a run has: every metric with its training and validation values.
import { Plot, Run, RunRow } from '../../types';

export interface Curve {
  run: string;
  part: string; // train, validation, or empty
  x: number[]; // steps
  y: (number | null)[];
}

const baseOf = (name: string) => name.replace(/^(train|validation)_/, '');
const partOf = (name: string) => /^(train|validation)_/.exec(name)?.[1] ?? '';

function names(rows: RunRow[]): string[] {
  const out = new Set<string>();
  for (const row of rows) for (const name of Object.keys(row.figures)) out.add(name);
  return [...out];
}

// loss, accuracy, ... in the order in which people look at them
const first = ['loss', 'accuracy', 'perplexity', 'bleu', 'f1', 'top5', 'rate', 'gradient_norm', 'samples_per_second'];
const rank = (name: string) => (first.indexOf(name) + first.length + 1) % (first.length + 1);
export const inOrder = (names: string[]) => names.sort((a, b) => rank(a) - rank(b));

export function metricsOf(runs: Run[]): string[] {
  const found = new Set<string>();
  for (const run of runs) for (const rows of [run.epochs, run.steps, run.speed]) for (const name of names(rows)) found.add(baseOf(name));
  return inOrder([...found].filter(name => !['epoch', 'step', 'seconds'].includes(name)));
}

// Exponential moving average, corrected for its start.
export function smoothed(values: (number | null)[], factor: number): (number | null)[] {
  let sum = 0,
    weight = 0;
  return values.map(value => {
    if (value === null || factor === 0) return value;
    sum = factor * sum + (1 - factor) * value;
    weight = factor * weight + (1 - factor);
    return sum / weight;
  });
}

export function curvesOf(run: Run, metric: string, smoothing: number): Curve[] {
  const take = (rows: RunRow[], name: string, factor: number): Curve => {
    const kept = rows.filter(row => row.figures[name] !== undefined);
    return {
      run: run.summary.id,
      part: partOf(name),
      x: kept.map(row => row.step),
      y: smoothed(
        kept.map(row => row.figures[name]),
        factor,
      ),
    };
  };
  const of = (rows: RunRow[]) => names(rows).filter(name => baseOf(name) === metric);
  const steps = of(run.steps),
    epochs = of(run.epochs),
    speed = of(run.speed);
  return [
    ...steps.map(name => take(run.steps, name, smoothing)),
    ...epochs.filter(name => !steps.includes(name)).map(name => take(run.epochs, name, 0)),
    ...(steps.length + epochs.length ? [] : speed.map(name => take(run.speed, name, 0))),
  ].filter(curve => curve.x.length > 0);
}

export function asPlot(metric: string, curves: Curve[], log: boolean): Plot {
  const axis = (name: string, isLog: boolean) => ({ name, log: isLog, least: null, most: null });
  return {
    title: metric,
    kind: 'lines',
    x: axis('step', false),
    y: axis(metric.replaceAll('_', ' '), log),
    series: curves.map(curve => ({
      name: `${curve.run} ${curve.part}`.trim(),
      x: curve.x,
      y: curve.y,
      mark: curve.part === 'train' ? 'dashed' : 'line',
      low: [],
      high: [],
    })),
  };
}
