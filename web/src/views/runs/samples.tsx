// Samples of a run's evaluation: what was given, what the model answered, and where it looked.
import { useMemo } from 'preact/hooks';
import { painted } from '../../figures/colours';
import { percent } from '../../format';
import { useParam } from '../../route';
import { Sample } from '../../types';
import { Panel } from '../../ui/blocks';
import { Segments } from '../../ui/controls';

export function Samples({ samples }: { samples: Sample[] }) {
  const [which, setWhich] = useParam('samples', 'all');
  const [maps, setMaps] = useParam('maps', 'image');
  const shown = samples.filter(sample => which === 'all' || sample.right === (which === 'right'));
  const hasMaps = samples.some(sample => sample.image && sample.map?.length);
  return (
    <Panel
      title="Samples"
      actions={
        <>
          {hasMaps && <Segments label="Show" value={maps} options={['image', 'attention']} onChange={setMaps} />}
          <Segments label="Which samples" value={which} options={['all', 'right', 'wrong']} onChange={setWhich} />
        </>
      }
    >
      <ul class={samples[0]?.image ? 'samples images' : 'samples'}>
        {shown.map((sample, i) => (
          <li key={i}>
            {sample.image && <SampleImage sample={sample} overlay={maps === 'attention'} />}
            {sample.source && <p class="source">{sample.source}</p>}
            <p class={`badge ${sample.right ? 'good' : 'bad'}`}>{sample.guess || '(empty)'}</p>
            <p class="muted small">
              {!sample.right && <>correct: {sample.truth}; </>}
              {sample.score !== null && sample.score >= 0 && sample.score <= 1 ? percent(sample.score) : sample.score?.toFixed(2)}
            </p>
          </li>
        ))}
      </ul>
      {shown.length === 0 && <p class="muted">No samples to show.</p>}
    </Panel>
  );
}

function SampleImage({ sample, overlay }: { sample: Sample; overlay: boolean }) {
  const map = useMemo(() => {
    if (!overlay || !sample.map?.length) return null;
    const { map, map_rows: rows = 0, map_columns: columns = 0 } = sample;
    return painted({ rows, columns, value: (i, j) => map[i * columns + j], least: 0, most: Math.max(...map) }, 'dark', 0.68);
  }, [sample, overlay]);
  return (
    <span class="overlay">
      <img src={`data:image/png;base64,${sample.image}`} alt={sample.truth} />
      {map && <img src={map} alt="" />}
    </span>
  );
}
