// Lines, dashed lines, points and bands over a shared x axis, with a legend and the values under the pointer.
import { area, line } from 'd3-shape';
import { bisectCenter } from 'd3-array';
import { useState } from 'preact/hooks';
import { Plot } from '../types';
import { csv, short } from '../format';
import { seriesColour } from '../theme';
import { Axes, makeScale } from './axes';

type Point = [number, number | null];
const numbers = (values: (number | null)[]) => values.filter(value => value !== null) as number[];

export function LinePlot({ plot, width, height = 260 }: { plot: Plot; width: number; height?: number }) {
  const [at, setAt] = useState<number | null>(null);
  const series = plot.series ?? [];
  const frame = { left: 52, right: width - 12, top: plot.y?.name ? 26 : 12, bottom: height - (plot.x?.name ? 46 : 28) };
  const x = makeScale(
    plot.x,
    series.flatMap(each => numbers(each.x)),
    [frame.left, frame.right],
  );
  const y = makeScale(
    plot.y,
    series.flatMap(each => [...numbers(each.y), ...numbers(each.low), ...numbers(each.high)]),
    [frame.bottom, frame.top],
  );
  const usable = (value: number | null, log?: boolean) => value !== null && (!log || value > 0);
  const path = line<Point>()
    .defined(([a, b]) => usable(a, plot.x?.log) && usable(b, plot.y?.log))
    .x(([a]) => x(a))
    .y(([, b]) => y(b!));
  const points = (each: (typeof series)[0]) => each.x.map((value, i): Point => [value!, each.y[i]]);

  const move = (event: PointerEvent) => {
    const box = (event.currentTarget as SVGElement).getBoundingClientRect();
    setAt(x.invert(((event.clientX - box.left) / box.width) * width));
  };
  const near =
    at === null
      ? []
      : series.map(each => bisectCenter(each.x as number[], at)).map((i, s) => ({ x: series[s].x[i], y: series[s].y[i], s }));
  return (
    <svg
      viewBox={`0 0 ${width} ${height}`}
      width={width}
      height={height}
      role="img"
      aria-label={`${plot.title || 'Plot'}: ${series.map(each => each.name).join(', ')}`}
      onPointerMove={move}
      onPointerLeave={() => setAt(null)}
    >
      <Axes x={x} y={y} frame={frame} xName={plot.x?.name} yName={plot.y?.name} />
      {series.map((each, s) => (
        <g key={each.name + s} stroke={seriesColour(s)} fill="none">
          {each.low.length > 0 && (
            <path
              d={
                area<number>()
                  .x(i => x(each.x[i]!))
                  .y0(i => y(each.low[i]!))
                  .y1(i => y(each.high[i]!))(each.x.map((_, i) => i)) ?? ''
              }
              fill={seriesColour(s)}
              fill-opacity="0.14"
              stroke="none"
            />
          )}
          {each.mark !== 'points' && (
            <path
              d={path(points(each)) ?? ''}
              stroke-width="1.75"
              stroke-dasharray={each.mark === 'dashed' ? '5 4' : undefined}
              stroke-linejoin="round"
            />
          )}
          {(each.mark === 'points' || each.mark === 'both') &&
            points(each)
              .filter(([a, b]) => usable(a, plot.x?.log) && usable(b, plot.y?.log))
              .map(([a, b], i) => <circle key={i} cx={x(a)} cy={y(b!)} r="3" fill={seriesColour(s)} stroke="var(--surface)" />)}
        </g>
      ))}
      {near.length > 0 && near[0].x !== null && (
        <g data-hover>
          <line x1={x(near[0].x!)} x2={x(near[0].x!)} y1={frame.top} y2={frame.bottom} stroke="var(--line-strong)" />
          {near.map(
            ({ x: a, y: b, s }) =>
              usable(a, plot.x?.log) &&
              usable(b, plot.y?.log) && (
                <circle key={s} cx={x(a!)} cy={y(b!)} r="4" fill={seriesColour(s)} stroke="var(--surface)" stroke-width="1.5" />
              ),
          )}
        </g>
      )}
    </svg>
  );
}

export const Legend = ({ names, dashed }: { names: string[]; dashed?: boolean[] }) => (
  <ul class="legend">
    {names.map((name, i) => (
      <li key={name + i}>
        <i style={{ borderTopColor: seriesColour(i), borderTopStyle: dashed?.[i] ? 'dashed' : 'solid' }} />
        {name}
      </li>
    ))}
  </ul>
);

export function linesCsv(plot: Plot): string {
  const x = plot.x?.name || 'x';
  return csv([
    ['series', x, plot.y?.name || 'y', 'low', 'high'],
    ...(plot.series ?? []).flatMap(each => each.x.map((value, i) => [each.name, value, each.y[i], each.low[i], each.high[i]])),
  ]);
}

export function BarPlot({ plot, width, height = 260 }: { plot: Plot; width: number; height?: number }) {
  const groups = plot.groups ?? [],
    sets = plot.sets ?? [];
  const crowded = width / Math.max(groups.length, 1) < 64;
  const frame = { left: 52, right: width - 12, top: plot.y?.name ? 26 : 12, bottom: height - (crowded ? 92 : 28) };
  const y = makeScale(
    plot.y,
    sets.flatMap(each => [...numbers(each.values), ...numbers(each.high)]),
    [frame.bottom, frame.top],
    true,
  );
  const floor = plot.y?.log ? frame.bottom : y(0),
    slot = (frame.right - frame.left) / Math.max(groups.length, 1),
    thick = Math.min(44, (slot * 0.72) / Math.max(sets.length, 1)),
    named = Math.ceil(18 / slot); // every how many groups there is room for a name
  return (
    <svg
      viewBox={`0 0 ${width} ${height}`}
      width={width}
      height={height}
      role="img"
      aria-label={`${plot.title || 'Bars'}: ${groups.join(', ')}`}
    >
      <Axes y={y} frame={frame} yName={plot.y?.name} />
      {groups.map((group, g) => {
        const middle = frame.left + (g + 0.5) * slot;
        return (
          <g key={group + g}>
            {sets.map((set, s) => {
              const value = set.values[g];
              if (value === null || (plot.y?.log && value <= 0)) return null;
              const left = middle + (s - sets.length / 2) * thick,
                top = Math.min(y(value), floor);
              return (
                <g key={s}>
                  <rect
                    x={left + 1}
                    y={top}
                    width={Math.max(thick - 2, 1)}
                    height={Math.max(Math.abs(floor - y(value)), 1)}
                    rx="2"
                    fill={seriesColour(s)}
                  >
                    <title>{`${group}${set.name ? ', ' + set.name : ''}: ${short(value, 4)}`}</title>
                  </rect>
                  {set.low[g] !== undefined && set.low[g] !== null && (
                    <line x1={left + thick / 2} x2={left + thick / 2} y1={y(set.low[g]!)} y2={y(set.high[g]!)} stroke="var(--text)" />
                  )}
                </g>
              );
            })}
            {g % named === 0 && (
              <text
                x={middle}
                y={frame.bottom + 16}
                font-size="11"
                fill="var(--muted)"
                text-anchor={crowded ? 'end' : 'middle'}
                transform={crowded ? `rotate(-40 ${middle} ${frame.bottom + 16})` : undefined}
              >
                {group.length > 22 ? group.slice(0, 21) + '…' : group}
              </text>
            )}
          </g>
        );
      })}
    </svg>
  );
}

export const barsCsv = (plot: Plot) =>
  csv([
    ['group', ...(plot.sets ?? []).map(set => set.name || 'value')],
    ...(plot.groups ?? []).map((group, g) => [group, ...(plot.sets ?? []).map(set => set.values[g])]),
  ]);
