// Scales, ticks and axes of plots.
import { scaleLinear, scaleLog, ScaleContinuousNumeric } from 'd3-scale';
import { PlotAxis } from '../types';
import { tick as tickText } from '../format';

export type Scale = ScaleContinuousNumeric<number, number>;
const characterWidth = 6.4; // pixels, of digits at 11 px

export interface Frame {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

export function makeScale(axis: PlotAxis | undefined, values: number[], range: [number, number], withZero = false): Scale {
  const usable = values.filter(value => Number.isFinite(value) && (!axis?.log || value > 0));
  let least = axis?.least ?? usable.reduce((a, b) => Math.min(a, b), Infinity),
    most = axis?.most ?? usable.reduce((a, b) => Math.max(a, b), -Infinity);
  if (!Number.isFinite(least) || !Number.isFinite(most)) [least, most] = axis?.log ? [0.1, 1] : [0, 1];
  if (withZero && !axis?.log) [least, most] = [Math.min(least, 0), Math.max(most, 0)];
  if (least === most) axis?.log ? ([least, most] = [least / 2, most * 2]) : ([least, most] = [least - 0.5, most + 0.5]);
  const scale = axis?.log && least > 0 ? scaleLog() : scaleLinear();
  scale.domain([least, most]).range(range);
  return typeof axis?.least === 'number' && typeof axis.most === 'number' ? scale : scale.nice();
}

function ticksOf(scale: Scale, wanted: number): number[] {
  const ticks = scale.ticks(wanted);
  if (ticks.length <= wanted + 3) return ticks;
  const powers = ticks.filter(tick => Number.isInteger(Number(Math.log10(tick).toFixed(9))));
  const every = Math.ceil(powers.length / wanted);
  return powers.filter((_, i) => i % every === 0);
}

export function Axes(props: { x?: Scale; y: Scale; frame: Frame; xName?: string; yName?: string }) {
  const { x, y, frame } = props;
  return (
    <g font-size="11" fill="var(--muted)">
      {ticksOf(y, Math.max(2, Math.round((frame.bottom - frame.top) / 44))).map(tick => (
        <g key={`y${tick}`} transform={`translate(0 ${y(tick)})`}>
          <line x1={frame.left} x2={frame.right} stroke="var(--line)" />
          <text x={frame.left - 8} dy="0.32em" text-anchor="end">
            {tickText(tick)}
          </text>
        </g>
      ))}
      {x &&
        ticksOf(x, Math.max(2, Math.round((frame.right - frame.left) / 90))).map(tick => (
          <text
            key={`x${tick}`}
            x={Math.min(x(tick), frame.right + 11 - (characterWidth * tickText(tick).length) / 2)}
            y={frame.bottom + 18}
            text-anchor="middle"
          >
            {tickText(tick)}
          </text>
        ))}
      <line x1={frame.left} x2={frame.right} y1={frame.bottom} y2={frame.bottom} stroke="var(--line-strong)" />
      {props.xName && (
        <text x={(frame.left + frame.right) / 2} y={frame.bottom + 38} text-anchor="middle">
          {props.xName}
        </text>
      )}
      {props.yName && (
        <text x={frame.left - 40} y={frame.top - 12} text-anchor="start">
          {props.yName}
        </text>
      )}
    </g>
  );
}
