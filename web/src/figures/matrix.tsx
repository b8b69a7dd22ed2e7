// A matrix as cells of colour, with labels where they fit. The pointer or the arrow keys choose a row.
import { useMemo } from 'preact/hooks';
import { Theme, useTheme } from '../theme';
import { short } from '../format';
import { Grid, painted } from './colours';

const characterWidth = 6.2; // pixels, at 11 px
const clip = (text: string, most: number) => (text.length > most ? text.slice(0, most - 1) + '…' : text);

export interface Cell {
  row: number;
  column: number;
}

export function Matrix(props: {
  grid: Grid;
  width: number;
  rows?: string[];
  columns?: string[];
  down?: string; // name of the axes
  across?: string;
  maxHeight?: number;
  row?: number; // chosen
  column?: number;
  mark?: Cell; // a cell alone
  hover?: Cell | null;
  onHover?: (cell: Cell | null) => void;
  onPick?: (cell: Cell) => void;
  label: string;
  under?: string;
}) {
  const { grid, rows = [], columns = [] } = props;
  const theme = useTheme();
  const image = useMemo(() => painted(grid, theme, props.under ? 0.75 : 1), [grid, theme, props.under]);
  const longest = (texts: string[]) =>
    Math.min(
      texts.reduce((most, text) => Math.max(most, text.length), 0),
      14,
    ) * characterWidth;
  const wide = props.width < 420 ? 64 : 96;
  const axis = props.down ? 22 : 0; // for the name of the vertical axis
  let left = axis + (rows.length ? Math.min(longest(rows) + (axis ? 4 : 10), wide) : 0),
    top = columns.length ? Math.min(longest(columns) + 10, 84) : 0;
  const bottom = props.across ? 22 : 0;
  const fit = () => Math.min((props.width - left - 2) / grid.columns, ((props.maxHeight ?? 640) - top - bottom) / grid.rows, 56);
  let cell = fit();
  const labelled = cell >= 10;
  if (!labelled && (rows.length || columns.length)) {
    left = axis;
    top = 0;
    cell = fit();
  }
  const wideCells = cell * grid.columns,
    high = cell * grid.rows;
  const width = left + wideCells + 2,
    height = top + high + bottom + 1;

  const cellAt = (event: MouseEvent): Cell | null => {
    const box = (event.currentTarget as SVGElement).getBoundingClientRect();
    const column = Math.floor((((event.clientX - box.left) / box.width) * width - left) / cell),
      row = Math.floor((((event.clientY - box.top) / box.height) * height - top) / cell);
    return row >= 0 && row < grid.rows && column < grid.columns ? { row, column: Math.max(column, 0) } : null;
  };
  const keyDown = (event: KeyboardEvent) => {
    const [down, across] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] ?? [0, 0];
    if (!props.onPick || (!down && !across)) return;
    event.preventDefault();
    const clamp = (value: number, most: number) => Math.min(Math.max(value, 0), most - 1);
    props.onPick({ row: clamp((props.row ?? 0) + down, grid.rows), column: clamp((props.column ?? 0) + across, grid.columns) });
  };
  const hover = props.hover;
  const value = hover && grid.value(hover.row, hover.column);
  return (
    <svg
      viewBox={`0 0 ${width} ${height}`}
      width={width}
      height={height}
      role="img"
      aria-label={props.label}
      class="matrix"
      tabIndex={props.onPick ? 0 : undefined}
      onKeyDown={keyDown}
      onPointerMove={props.onHover && (event => props.onHover!(cellAt(event)))}
      onPointerLeave={props.onHover && (() => props.onHover!(null))}
      onClick={event => {
        const at = cellAt(event);
        if (at) props.onPick?.(at);
      }}
    >
      {props.under && <image href={props.under} x={left} y={top} width={wideCells} height={high} preserveAspectRatio="none" />}
      <image
        href={image}
        x={left}
        y={top}
        width={wideCells}
        height={high}
        preserveAspectRatio="none"
        style={{ imageRendering: 'pixelated' }}
      />
      <rect x={left} y={top} width={wideCells} height={high} fill="none" stroke="var(--line)" />
      {labelled && (
        <g font-size="11" fill="var(--text)">
          {rows.map((text, i) => (
            <text
              key={i}
              x={left - 6}
              y={top + (i + 0.5) * cell}
              dy="0.35em"
              text-anchor="end"
              font-weight={i === props.row || i === hover?.row ? 650 : 400}
            >
              {clip(text, Math.floor((left - Math.max(axis - 6, 0) - 8) / characterWidth))}
            </text>
          ))}
          {columns.map((text, j) => (
            <text
              key={j}
              transform={`translate(${left + (j + 0.5) * cell + 4} ${top - 6}) rotate(-90)`}
              font-weight={j === hover?.column ? 650 : 400}
            >
              {clip(text, 13)}
            </text>
          ))}
        </g>
      )}
      {props.across && (
        <text x={left + wideCells / 2} y={top + high + 16} font-size="11" fill="var(--muted)" text-anchor="middle">
          {props.across}
        </text>
      )}
      {props.down && (
        <text transform={`translate(12 ${top + high / 2}) rotate(-90)`} font-size="11" fill="var(--muted)" text-anchor="middle">
          {props.down}
        </text>
      )}
      {props.row !== undefined && props.row >= 0 && (
        <rect x={left} y={top + props.row * cell} width={wideCells} height={cell} fill="none" stroke="var(--series-2)" stroke-width="1.5" />
      )}
      {props.column !== undefined && props.row !== undefined && (
        <rect
          x={left + props.column * cell}
          y={top + props.row * cell}
          width={cell}
          height={cell}
          fill="none"
          stroke="var(--series-2)"
          stroke-width="2.5"
        />
      )}
      {props.mark && (
        <rect
          x={left + props.mark.column * cell}
          y={top + props.mark.row * cell}
          width={cell}
          height={cell}
          fill="none"
          stroke="var(--series-2)"
          stroke-width="2"
        />
      )}
      {hover && (
        <g data-hover>
          <rect
            x={left + hover.column * cell}
            y={top + hover.row * cell}
            width={cell}
            height={cell}
            fill="none"
            stroke="var(--text)"
            stroke-width="1.5"
          />
          <title>{`${rows[hover.row] ?? hover.row} → ${columns[hover.column] ?? hover.column}: ${short(value)}`}</title>
        </g>
      )}
    </svg>
  );
}

// The range of the colours, drawn as a narrow strip.
export function ColourKey({ least, most, diverging, theme: fixed }: { least: number; most: number; diverging?: boolean; theme?: Theme }) {
  const current = useTheme(),
    theme = fixed ?? current;
  const strip = useMemo(
    () => painted({ rows: 1, columns: 64, value: (_, j) => j / 63, least: 0, most: 1, diverging }, theme),
    [theme, diverging],
  );
  return (
    <span class="colour-key number">
      {short(least)}
      <img src={strip} alt="" />
      {short(most)}
    </span>
  );
}

export const matrixGrid = (rows: (number | null)[][], range: { least?: number; most?: number; diverging?: boolean } = {}): Grid => {
  let least = Infinity,
    most = -Infinity;
  for (const row of rows) for (const value of row) if (value !== null) ((least = Math.min(least, value)), (most = Math.max(most, value)));
  if (range.diverging) {
    most = Math.max(Math.abs(least), Math.abs(most), 1e-12);
    least = -most;
  }
  return {
    rows: rows.length,
    columns: rows[0]?.length ?? 0,
    value: (i, j) => rows[i]?.[j] ?? null,
    least: range.least ?? least,
    most: range.most ?? most,
    diverging: range.diverging,
  };
};
