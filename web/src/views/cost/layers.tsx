// Where the cost is: per layer, and per module.
import { useMemo } from 'preact/hooks';
import { Figure } from '../../figures/figure';
import { BarPlot, barsCsv, Legend } from '../../figures/lines';
import { bytes, count, percent } from '../../format';
import { useParam } from '../../route';
import { Cost, Module, Plot } from '../../types';
import { Panel } from '../../ui/blocks';
import { Segments } from '../../ui/controls';

type Quantity = 'multiply_adds' | 'parameters' | 'activation_bytes' | 'moved_bytes' | 'training_multiply_adds';
const quantities: { value: Quantity; text: string; write: (value: number) => string }[] = [
  { value: 'multiply_adds', text: 'arithmetic', write: count },
  { value: 'parameters', text: 'parameters', write: count },
  { value: 'activation_bytes', text: 'activations', write: bytes },
  { value: 'moved_bytes', text: 'bytes moved', write: bytes },
  { value: 'training_multiply_adds', text: 'training arithmetic', write: count },
];

// vit.encoder.layer.3.attention.query -> layer 3; decoder.layers.0... -> decoder 0; everything else by its first names
function groupOf(name: string): string {
  const layer = /^(.*?)\.?(?:layers?|h|blocks?|layer)\.(\d+)\./.exec(name + '.');
  if (layer)
    return `${/decoder/.test(layer[1]) ? 'decoder' : /encoder/.test(layer[1]) && /model|transformer/.test(layer[1]) ? 'encoder' : 'layer'} ${layer[2]}`;
  return name.split('.').filter(part => !['vit', 'bert', 'transformer', 'model', 'distilbert'].includes(part))[0] ?? name;
}

function grouped(modules: Module[], quantity: Quantity): Map<string, number> {
  const out = new Map<string, number>();
  for (const module of modules) out.set(groupOf(module.name), (out.get(groupOf(module.name)) ?? 0) + module[quantity]);
  return out;
}

export function Layers({ costs, names }: { costs: (Cost | undefined)[]; names: string[] }) {
  const [quantity, setQuantity] = useParam('quantity', 'multiply_adds');
  const [which, setWhich] = useParam('modules', '1');
  const kind = quantities.find(each => each.value === quantity) ?? quantities[0];
  const plot = useMemo((): Plot => {
    const maps = costs.map(cost => (cost ? grouped(cost.modules, kind.value) : new Map<string, number>()));
    const groups = [...new Set(maps.flatMap(map => [...map.keys()]))].filter(group => maps.some(map => (map.get(group) ?? 0) > 0));
    return {
      title: `${kind.text} per layer`,
      kind: 'bars',
      y: { name: kind.text, log: false, least: 0, most: null },
      groups,
      sets: maps.map((map, i) => ({ name: names[i], values: groups.map(group => map.get(group) ?? 0), low: [], high: [] })),
    };
  }, [costs, kind, names.join()]);
  const shown = costs[Number(which) - 1] ?? costs[0];
  return (
    <>
      <Panel title="Per layer" actions={<Segments label="Quantity" value={kind.value} options={quantities} onChange={setQuantity} />}>
        <Figure data={() => ({ name: `cost-${kind.value}`, json: plot, csv: barsCsv(plot) })}>
          {width => (
            <>
              <BarPlot plot={plot} width={width} height={280} />
              {names.length > 1 && <Legend names={names} />}
            </>
          )}
        </Figure>
      </Panel>
      {shown && (
        <Panel
          title="Per module"
          flush
          actions={
            names.length > 1 && (
              <Segments
                label="Model"
                value={which}
                options={names.map((_, i) => ({ value: String(i + 1), text: `Model ${i + 1}` }))}
                onChange={setWhich}
              />
            )
          }
        >
          <Modules cost={shown} quantity={kind.value} write={kind.write} />
        </Panel>
      )}
    </>
  );
}

function Modules({ cost, quantity, write }: { cost: Cost; quantity: Quantity; write: (value: number) => string }) {
  const total = cost.modules.reduce((sum, module) => sum + module[quantity], 0) || 1;
  const most = cost.modules.reduce((largest, module) => Math.max(largest, module[quantity]), 1);
  return (
    <div class="table-wrap tall" tabIndex={0} role="region" aria-label="Modules">
      <table class="modules">
        <tbody>
          {cost.modules.map(module => (
            <tr key={module.name}>
              <th scope="row">
                <code>{module.name}</code>
              </th>
              <td class="wide" style={{ width: '24%' }}>
                <span class="bar">
                  <i style={{ width: `${(100 * module[quantity]) / most}%` }} />
                </span>
              </td>
              <td class="right">{write(module[quantity])}</td>
              <td class="right muted">{percent(module[quantity] / total)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
