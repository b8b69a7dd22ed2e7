// A figure of an experiment: its plots side by side, and a slider over its frames.
import { Figure } from '../../figures/figure';
import { PlotBody, plotCsv } from '../../figures/plot';
import { useNumberParam } from '../../route';
import { LabResult } from '../../types';
import { Panel } from '../../ui/blocks';
import { Field, Range } from '../../ui/controls';
import { Sentence } from '../../ui/math';

export function LabFigure({ figure, name, index }: { figure: LabResult['figures'][0]; name: string; index: number }) {
  const [chosen, setChosen] = useNumberParam(`figure${index + 1}`, Math.floor(figure.frames.length / 2));
  const at = Math.min(Math.max(Math.round(chosen), 0), figure.frames.length - 1),
    frame = figure.frames[at];
  const least = { lines: '360px', bars: '360px', heat_map: '220px', image: '160px' }[frame.plots[0]?.kind ?? 'lines'];
  return (
    <Panel title={figure.title} about={<Sentence text={figure.caption} />}>
      <div class="stack tight">
        {figure.frames.length > 1 && (
          <Field name={figure.parameter} value={frame.value}>
            {id => (
              <Range
                id={id}
                value={at}
                least={0}
                most={figure.frames.length - 1}
                step={1}
                text={`${figure.parameter} ${frame.value}`}
                onInput={setChosen}
              />
            )}
          </Field>
        )}
        <div class="columns" style={{ '--least': least }}>
          {frame.plots.map((plot, p) => (
            <Figure
              key={p}
              title={plot.title}
              data={() => ({ name: `${name}-${index + 1}${frame.plots.length > 1 ? `-${p + 1}` : ''}`, json: plot, csv: plotCsv(plot) })}
            >
              {width => <PlotBody plot={plot} width={width} />}
            </Figure>
          ))}
        </div>
      </div>
    </Panel>
  );
}
