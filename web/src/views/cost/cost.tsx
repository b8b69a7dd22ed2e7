// Cost: parameters, arithmetic, memory and time of models, side by side, before anything is trained.
import { useMemo } from 'preact/hooks';
import { usePost, useGet, Loaded } from '../../api';
import { bytes, count, duration, percent } from '../../format';
import { useInfo } from '../../info';
import { setParams, useParam } from '../../route';
import { CallCost, Cost, Setting } from '../../types';
import { Await, Code, Failure, PageHead, Panel, Waiting } from '../../ui/blocks';
import { Button } from '../../ui/controls';
import { Configuration, ConfigurationForm, settingsOf } from './configuration';
import { Layers } from './layers';

const mostColumns = 4;

function parse(text: string): Configuration[] {
  try {
    const list = JSON.parse(text);
    if (Array.isArray(list) && list.length > 0) return list.slice(0, mostColumns);
  } catch {
    // an address that was changed by hand
  }
  return [
    { model: 'vit-tiny', settings: '' },
    { model: 'vit-small', settings: '' },
  ];
}

// A hook must be called equally often in every render, so every column sends its request, empty or not.
function useCost(configuration: Configuration | undefined): Loaded<Cost> {
  const body = configuration && {
    ...(configuration.config ? { config: JSON.parse(configuration.config) } : { model: configuration.model }),
    settings: settingsOf(configuration.settings),
    ...(configuration.measure && { measure: true }),
  };
  return usePost<Cost>('/api/cost', body ?? null, 300);
}

export function CostView() {
  const info = useInfo();
  const [packed] = useParam('models');
  const configurations = useMemo(() => parse(packed), [packed]);
  const loaded = [useCost(configurations[0]), useCost(configurations[1]), useCost(configurations[2]), useCost(configurations[3])].slice(
    0,
    configurations.length,
  );
  const settings = useGet<{ settings: Setting[] }>('/api/settings?task=classify');
  const put = (next: Configuration[]) => setParams({ models: JSON.stringify(next) });
  const costs = loaded.map(each => each.data);
  const names = configurations.map((each, i) => label(each, costs[i]));
  return (
    <>
      <PageHead
        title="Cost"
        about="Parameters, arithmetic and memory of any configuration, counted without running it; time, if you measure it here."
      >
        <Button
          icon="plus"
          disabled={configurations.length >= mostColumns}
          onClick={() => put([...configurations, { ...configurations[configurations.length - 1], measure: false }])}
        >
          Add a model
        </Button>
      </PageHead>
      <Await from={info}>
        {data => (
          <div class="stack">
            <div class="cost-forms">
              {configurations.map((each, i) => (
                <Panel key={i}>
                  <ConfigurationForm
                    index={i}
                    value={each}
                    info={data}
                    keys={settings.data?.settings ?? []}
                    onChange={next => put(configurations.map((other, j) => (j === i ? next : other)))}
                    onRemove={configurations.length > 1 ? () => put(configurations.filter((_, j) => j !== i)) : undefined}
                  />
                  {loaded[i].error && <Failure error={loaded[i].error!} />}
                  {loaded[i].loading && (!loaded[i].data || each.measure) && <Waiting />}
                  {loaded[i].loading && each.measure && <p class="muted small">Measuring.</p>}
                </Panel>
              ))}
            </div>
            {costs.some(Boolean) && <Comparison costs={costs} names={names} />}
            {costs.some(Boolean) && <Layers costs={costs} names={names} />}
            {configurations.map(
              (each, i) =>
                !each.config && (
                  <Code
                    key={i}
                    text={['heed cost', each.model, each.settings.trim(), each.measure && 'measure=true'].filter(Boolean).join(' ')}
                  />
                ),
            )}
          </div>
        )}
      </Await>
    </>
  );
}

const label = (configuration: Configuration, cost: Cost | undefined) =>
  configuration.config
    ? (cost?.architecture ?? 'config.json')
    : [configuration.model, configuration.settings.trim()].filter(Boolean).join(' ');

type Row = [string, (cost: Cost) => number | undefined, (value: number) => string];
const call = (kind: 'inference' | 'training', get: (each: CallCost) => number | undefined) => (cost: Cost) => {
  const each = cost[kind];
  return each && get(each);
};
const measured = (name: string) => (each: CallCost) => each.measured?.[name] as number | undefined;

const sections: [string, Row[]][] = [
  [
    'Model',
    [
      ['Parameters', cost => cost.parameters, count],
      ['KV cache per token', cost => cost.cache_bytes_per_token || undefined, bytes],
      ['Tokens', cost => cost.size.tokens, String],
      ['Batch', cost => cost.size.batch, String],
    ],
  ],
  [
    'Inference',
    [
      ['Multiply-adds', call('inference', each => each.multiply_adds), count],
      ['Memory', call('inference', each => each.memory_bytes), bytes],
      ['of which activations', call('inference', each => each.memory.activations), bytes],
      ['Bytes moved', call('inference', each => each.moved_bytes), bytes],
      ['Time, measured', call('inference', measured('seconds')), duration],
      ['Share of the peak', call('inference', measured('share_of_peak')), percent],
    ],
  ],
  [
    'One training step',
    [
      ['Multiply-adds', call('training', each => each.multiply_adds), count],
      ['Memory', call('training', each => each.memory_bytes), bytes],
      ['of which activations', call('training', each => each.memory.activations), bytes],
      ['of which optimizer state', call('training', each => each.memory.optimizer), bytes],
      ['Time, measured', call('training', measured('seconds')), duration],
      ['Share of the peak', call('training', measured('share_of_peak')), percent],
    ],
  ],
];

function Comparison({ costs, names }: { costs: (Cost | undefined)[]; names: string[] }) {
  return (
    <Panel title="Side by side" flush>
      <div class="table-wrap">
        <table class="compare">
          <thead>
            <tr>
              <td />
              {names.map((name, i) => (
                <th key={i} class="right">
                  {name}
                  {i > 0 && <span class="ratio" />}
                </th>
              ))}
            </tr>
          </thead>
          {sections.map(([title, rows]) => {
            const shown = rows.filter(([, get]) => costs.some(cost => cost && get(cost) !== undefined));
            return (
              shown.length > 0 && (
                <tbody key={title}>
                  <tr>
                    <th scope="rowgroup" colSpan={names.length + 1} class="section">
                      {title}
                    </th>
                  </tr>
                  {shown.map(([name, get, write]) => {
                    const values = costs.map(cost => cost && get(cost)),
                      first = values[0];
                    return (
                      <tr key={name}>
                        <th scope="row">{name}</th>
                        {values.map((value, i) => (
                          <td key={i} class="right">
                            {value === undefined ? '–' : write(value)}
                            {i > 0 && (
                              <span class="ratio">
                                {value !== undefined && first && value !== first && write !== String ? ratio(value / first) : ''}
                              </span>
                            )}
                          </td>
                        ))}
                      </tr>
                    );
                  })}
                </tbody>
              )
            );
          })}
        </table>
      </div>
    </Panel>
  );
}

const ratio = (value: number) => `${value >= 10 ? value.toFixed(0) : value.toFixed(2)}×`;
