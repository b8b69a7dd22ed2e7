// Colour maps with even steps of lightness (OKLab: Ottosson 2020). From the colour of the surface to the far end: no weight, no ink.
import { Theme } from '../theme';

type Stop = [lightness: number, chroma: number, hue: number]; // hue in degrees

const sequentialStops: Record<Theme, Stop[]> = {
  light: [
    [0.995, 0.002, 95],
    [0.88, 0.07, 195],
    [0.7, 0.11, 225],
    [0.48, 0.16, 264],
    [0.25, 0.1, 285],
  ],
  dark: [
    [0.215, 0.006, 260],
    [0.36, 0.12, 275],
    [0.54, 0.17, 262],
    [0.75, 0.12, 205],
    [0.96, 0.1, 105],
  ],
};
const divergingStops: Record<Theme, Stop[]> = {
  light: [
    [0.42, 0.17, 262],
    [0.72, 0.11, 255],
    [0.985, 0.002, 95],
    [0.72, 0.13, 45],
    [0.45, 0.17, 28],
  ],
  dark: [
    [0.8, 0.12, 245],
    [0.52, 0.15, 260],
    [0.215, 0.006, 260],
    [0.52, 0.15, 32],
    [0.8, 0.13, 55],
  ],
};

const lab = ([lightness, chroma, hue]: Stop) => [
  lightness,
  chroma * Math.cos((hue * Math.PI) / 180),
  chroma * Math.sin((hue * Math.PI) / 180),
];

function rgb(lightness: number, a: number, b: number): [number, number, number] {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return linear.map(x => {
    const clamped = Math.min(Math.max(x, 0), 1);
    return Math.round(255 * (clamped <= 0.0031308 ? 12.92 * clamped : 1.055 * clamped ** (1 / 2.4) - 0.055));
  }) as [number, number, number];
}

const size = 256;
function table(stops: Stop[]): Uint8Array {
  const out = new Uint8Array(3 * size);
  for (let i = 0; i < size; i++) {
    const at = (i / (size - 1)) * (stops.length - 1),
      first = Math.min(Math.floor(at), stops.length - 2),
      part = at - first;
    const [from, to] = [lab(stops[first]), lab(stops[first + 1])];
    const mix = (axis: number) => from[axis] * (1 - part) + to[axis] * part;
    out.set(rgb(mix(0), mix(1), mix(2)), 3 * i);
  }
  return out;
}

const tables = new Map<string, Uint8Array>();
export function colourTable(theme: Theme, diverging = false): Uint8Array {
  const key = theme + diverging;
  if (!tables.has(key)) tables.set(key, table((diverging ? divergingStops : sequentialStops)[theme]));
  return tables.get(key)!;
}

// The colour of a value from 0 to 1.
export function colourAt(value: number, theme: Theme, diverging = false): string {
  const at = 3 * Math.round(Math.min(Math.max(value, 0), 1) * (size - 1)),
    colours = colourTable(theme, diverging);
  return `rgb(${colours[at]} ${colours[at + 1]} ${colours[at + 2]})`;
}

export interface Grid {
  rows: number;
  columns: number;
  value: (row: number, column: number) => number | null;
  least: number;
  most: number;
  diverging?: boolean;
}

// Draws one pixel per value; the browser enlarges it without smoothing. Values that are null stay transparent.
export function paint(canvas: HTMLCanvasElement, grid: Grid, theme: Theme, opacity = 1) {
  const { rows, columns } = grid;
  canvas.width = columns;
  canvas.height = rows;
  if (rows === 0 || columns === 0) return;
  const image = new ImageData(columns, rows),
    colours = colourTable(theme, grid.diverging);
  const scale = grid.most > grid.least ? (size - 1) / (grid.most - grid.least) : 0;
  for (let i = 0, at = 0; i < rows; i++)
    for (let j = 0; j < columns; j++, at += 4) {
      const value = grid.value(i, j);
      if (value === null || Number.isNaN(value)) continue;
      const colour = 3 * Math.min(Math.max(Math.round((value - grid.least) * scale), 0), size - 1);
      image.data[at] = colours[colour];
      image.data[at + 1] = colours[colour + 1];
      image.data[at + 2] = colours[colour + 2];
      image.data[at + 3] = 255 * opacity;
    }
  canvas.getContext('2d')!.putImageData(image, 0, 0);
}

export function painted(grid: Grid, theme: Theme, opacity = 1): string {
  const canvas = document.createElement('canvas');
  paint(canvas, grid, theme, opacity);
  return canvas.toDataURL();
}
