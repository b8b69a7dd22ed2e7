// Numbers as people read them.
const trimmed = (text: string) => (text.includes('.') ? text.replace(/\.?0+$/, '') : text);

// Three significant digits: 0.001234 -> 0.00123, 12345 -> 12,345
export function short(value: number | null | undefined, digits = 3): string {
  if (value === null || value === undefined) return '–';
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7))
    return value
      .toExponential(digits - 1)
      .replace('e+', 'e')
      .replace(/\.?0+e/, 'e');
  if (size >= 10 ** digits) return Math.round(value).toLocaleString('en');
  return trimmed(value.toPrecision(digits));
}

// On an axis: 25 M instead of 2.5e7
export function tick(value: number): string {
  if (Math.abs(value) >= 1e5 && Math.abs(value) < 1e18) return count(value);
  return Number.isInteger(value) && Math.abs(value) < 1e5 ? value.toLocaleString('en') : short(value, 4);
}

function scaled(value: number, base: number, units: string[]): string {
  let unit = 0;
  while (Math.abs(value) >= base && unit + 1 < units.length) ((value /= base), unit++);
  return `${unit === 0 ? Math.round(value) : trimmed(value.toPrecision(3))}${units[unit] ? ' ' + units[unit] : ''}`;
}
export const bytes = (value: number) => scaled(value, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB']);
export const count = (value: number) => scaled(value, 1000, ['', 'K', 'M', 'G', 'T', 'P']);
export const percent = (value: number | null | undefined, digits = 1) =>
  value === null || value === undefined ? '–' : `${(100 * value).toFixed(digits)}%`;

export function duration(seconds: number): string {
  if (seconds === 0) return '0 s';
  if (seconds < 1e-3) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${trimmed((seconds * 1e3).toPrecision(3))} ms`;
  if (seconds < 60) return `${trimmed(seconds.toPrecision(3))} s`;
  const minutes = Math.floor(seconds / 60);
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0');
  return minutes < 60 ? `${minutes}:${two(seconds % 60)} min` : `${Math.floor(minutes / 60)}:${two(minutes % 60)} h`;
}

// 1 layer, 2 layers
export const some = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`;

// train_loss -> train loss
export const words = (name: string) => name.replaceAll('_', ' ');

// Metrics that are written in percent, and those of which less is better (as in heed/train/scores.cc).
const isShare = (name: string) => /accuracy|top5|f1|precision|recall|exact|calibration|share/.test(name);
export const metric = (name: string, value: number | null | undefined) =>
  isShare(name) && value !== null && value !== undefined && value <= 1 ? percent(value) : short(value, 4);
export const lessIsBetter = (name: string) => /(loss|perplexity|error|bits_per_byte)$/.test(name);

export function csv(rows: (string | number | null | undefined)[][]): string {
  const cell = (value: string | number | null | undefined) => {
    const text = value === null || value === undefined ? '' : String(value);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map(row => row.map(cell).join(',')).join('\n') + '\n';
}
