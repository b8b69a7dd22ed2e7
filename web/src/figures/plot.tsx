// A plot of the lab, whatever its kind.
import { useMemo } from 'preact/hooks';
import { Plot } from '../types';
import { csv } from '../format';
import { BarPlot, barsCsv, Legend, LinePlot, linesCsv } from './lines';
import { ColourKey, Matrix, matrixGrid } from './matrix';

function HeatPlot({ plot, width }: { plot: Plot; width: number }) {
  const grid = useMemo(
    () => matrixGrid(rowsOf(plot), { least: plot.least ?? undefined, most: plot.most ?? undefined, diverging: plot.diverging }),
    [plot],
  );
  return (
    <>
      <Matrix
        grid={grid}
        width={Math.min(width, 420)}
        maxHeight={420}
        down={plot.down}
        across={plot.across}
        label={plot.title || 'Heat map'}
        under={plot.under}
      />
      <ColourKey least={grid.least} most={grid.most} diverging={plot.diverging} />
    </>
  );
}

const rowsOf = (plot: Plot) =>
  Array.from({ length: plot.rows ?? 0 }, (_, i) => plot.values!.slice(i * plot.columns!, (i + 1) * plot.columns!));

export function PlotBody({ plot, width }: { plot: Plot; width: number }) {
  if (plot.kind === 'heat_map') return <HeatPlot plot={plot} width={width} />;
  if (plot.kind === 'image')
    return (
      <svg viewBox="0 0 240 240" width={Math.min(width, 240)} height={Math.min(width, 240)} role="img" aria-label={plot.title || 'Image'}>
        <image href={plot.image} width="240" height="240" style={{ imageRendering: 'pixelated' }} />
      </svg>
    );
  const names = plot.kind === 'bars' ? (plot.sets ?? []).map(set => set.name) : (plot.series ?? []).map(each => each.name);
  return (
    <>
      {plot.kind === 'bars' ? <BarPlot plot={plot} width={width} /> : <LinePlot plot={plot} width={width} />}
      {names.filter(Boolean).length > 0 && names.length <= 12 && (
        <Legend names={names} dashed={plot.series?.map(each => each.mark === 'dashed')} />
      )}
    </>
  );
}

export function plotCsv(plot: Plot): string {
  if (plot.kind === 'lines') return linesCsv(plot);
  if (plot.kind === 'bars') return barsCsv(plot);
  return plot.kind === 'heat_map' ? csv(rowsOf(plot)) : '';
}
