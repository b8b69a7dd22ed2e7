// Curves of one or several runs, one chart per metric. Drag to zoom, double-click to see all; the cursor is shared by all charts.
import { render } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { Figure } from '../../figures/figure';
import { LinePlot, linesCsv } from '../../figures/lines';
import { metric as metricText, short, words } from '../../format';
import { cssColour, useTheme } from '../../theme';
import { Run } from '../../types';
import { asPlot, Curve, curvesOf, metricsOf } from './series';

const cursors = uPlot.sync('runs');

interface Drawn extends Curve {
  colour: string; // a variable of the theme
}

// One run: validation in the first colour, training in a lighter line. Several: a colour each.
function drawn(runs: Run[], metric: string, smoothing: number): Drawn[] {
  return runs.flatMap((run, r) =>
    curvesOf(run, metric, smoothing).map(curve => ({
      ...curve,
      colour: runs.length > 1 ? `--series-${(r % 8) + 1}` : curve.part === 'train' ? '--series-2' : '--series-1',
    })),
  );
}

const faded = (colour: string) => `color-mix(in srgb, ${colour} 55%, transparent)`;

function Chart({
  curves,
  width,
  log,
  name,
  onCursor,
}: {
  curves: Drawn[];
  width: number;
  log: boolean;
  name: string;
  onCursor: (values: (number | null)[] | null) => void;
}) {
  const holder = useRef<HTMLDivElement>(null),
    plot = useRef<uPlot | undefined>(undefined);
  const theme = useTheme();
  const data = useMemo(() => {
    if (curves.length === 0) return [[]] as unknown as uPlot.AlignedData;
    return uPlot.join(
      curves.map(curve => [curve.x, curve.y.map(value => (log && value !== null && value <= 0 ? null : value))] as uPlot.AlignedData),
    );
  }, [curves, log]);
  const shape = curves.map(curve => curve.run + curve.part + curve.colour).join();
  const latest = useRef(curves);
  latest.current = curves;

  useEffect(() => {
    const [muted, line] = [cssColour('--muted'), cssColour('--line')];
    const axis: uPlot.Axis = {
      stroke: muted,
      grid: { stroke: line, width: 1 },
      ticks: { show: false },
      font: '11px Inter, system-ui, sans-serif',
    };
    const many = curves.length > 2 && new Set(curves.map(curve => curve.run)).size > 1;
    plot.current = new uPlot(
      {
        width,
        height: 220,
        padding: [10, 18, 0, 0],
        legend: { show: false },
        scales: { x: { time: false }, y: { distr: log ? 3 : 1 } },
        axes: [
          {
            ...axis,
            size: 28,
            label: 'step',
            labelSize: 18,
            labelFont: axis.font,
            grid: { show: false },
            values: (_, ticks) => ticks.map(tick => (tick >= 10000 ? `${tick / 1000}k` : String(tick))),
          },
          { ...axis, size: 56, values: (_, ticks) => ticks.map(tick => (tick === null ? '' : short(tick))) },
        ],
        series: [
          {},
          ...curves.map((curve): uPlot.Series => {
            const colour = cssColour(curve.colour),
              train = curve.part === 'train';
            return {
              stroke: train && many ? faded(colour) : colour,
              width: train ? 1.25 : 2,
              spanGaps: true,
              points: { show: curve.x.length < 3, size: 6, fill: colour },
            };
          }),
        ],
        cursor: { sync: { key: cursors.key, setSeries: false }, focus: { prox: -1 }, y: false },
        hooks: {
          setCursor: [
            self => {
              const { idx } = self.cursor;
              if (idx === null || idx === undefined) return onCursor(null);
              const at = self.data[0][idx];
              onCursor(latest.current.map(curve => valueNear(curve, at)));
            },
          ],
        },
      },
      data,
      holder.current!,
    );
    return () => plot.current?.destroy();
  }, [shape, theme, log]);
  // New points move the axis, unless one has zoomed in.
  useEffect(() => {
    const shown = plot.current;
    if (!shown || shown.data === data) return;
    const steps = shown.data[0],
      { min, max } = shown.scales.x;
    const zoomed = typeof min === 'number' && typeof max === 'number' && (min > steps[0] || max < steps[steps.length - 1]);
    shown.setData(data, !zoomed);
    if (zoomed) shown.redraw();
  }, [data]);
  useEffect(() => plot.current?.setSize({ width, height: 220 }), [width]);
  return (
    <div
      ref={holder}
      role="img"
      aria-label={`${words(name)} over steps: ${curves.map(curve => `${curve.run} ${curve.part}`).join(', ')}`}
    />
  );
}

// The last value at or before a step.
function valueNear(curve: Curve, step: number): number | null {
  let last: number | null = null;
  for (let i = 0; i < curve.x.length && curve.x[i] <= step; i++) last = curve.y[i];
  return last;
}

function MetricFigure({ runs, metric, smoothing, log }: { runs: Run[]; metric: string; smoothing: number; log: boolean }) {
  const [at, setAt] = useState<(number | null)[] | null>(null);
  const key = runs.map(run => `${run.summary.id}${run.steps.length}/${run.epochs.length}`).join();
  const curves = useMemo(() => drawn(runs, metric, smoothing), [key, metric, smoothing]);
  const plot = () => asPlot(metric, curves, log);
  const svg = () => {
    const holder = document.createElement('div');
    render(<LinePlot plot={plot()} width={760} height={340} />, holder);
    return holder.querySelector('svg');
  };
  return (
    <Figure title={words(metric)} data={() => ({ name: metric, json: plot(), csv: linesCsv(plot()) })} svg={svg}>
      {width => (
        <>
          <Chart curves={curves} width={width} log={log} name={metric} onCursor={setAt} />
          <ul class="legend">
            {curves.map((curve, i) => (
              <li key={i}>
                <i style={{ borderTopColor: `var(${curve.colour})`, borderTopWidth: curve.part === 'train' ? '1px' : '3px' }} />
                {runs.length > 1 ? `${curve.run} ${curve.part}` : curve.part || words(metric)}
                <b class="number">{metricText(metric, at ? at[i] : curve.y[curve.y.length - 1])}</b>
              </li>
            ))}
          </ul>
        </>
      )}
    </Figure>
  );
}

export function Curves({ runs, smoothing, log, filter }: { runs: Run[]; smoothing: number; log: boolean; filter?: string }) {
  const metrics = metricsOf(runs).filter(metric => !filter || metric.includes(filter));
  if (metrics.length === 0)
    return (
      <p class="muted">
        No values yet. The first appear after{' '}
        {runs.some(run => run.summary.state === 'running') ? 'a few steps' : 'the training has started'}.
      </p>
    );
  return (
    <div class="columns" style={{ '--least': '420px' }}>
      {metrics.map(metric => (
        <MetricFigure key={metric} runs={runs} metric={metric} smoothing={smoothing} log={log} />
      ))}
    </div>
  );
}
