// Attention terms, attention and cost of the mock server.
import { softmax, wave } from './mock_functions.mjs';

const setting = (name, meaning, type, least, value) => ({ name, meaning, type, least, default: value });
const parameter = (name, shape, value) => ({ name, file_name: name, meaning: '', shape, learned: true, default: value });
const term = (name, struct, summary, extra = {}) => ({
  name,
  aliases: [],
  summary,
  source: '',
  struct,
  file: `${name}.h`,
  use: 'position',
  masks: false,
  needs_grid: false,
  needs_content: false,
  in_attend: true,
  settings: [],
  parameters: [],
  ...extra,
});
export function terms(query) {
  const [rows, columns] = (query.get('grid') ?? '0x0').split('x').map(Number),
    tokens = rows ? rows * columns : Number(query.get('tokens') ?? 16);
  return {
    tokens,
    grid: rows ? [rows, columns] : null,
    terms: [
      term('causal', 'Causal', 'keeps the keys up to the query: j <= i + offset', { masks: true }),
      term('window', 'Window', 'keeps the keys near the query', {
        masks: true,
        source: 'Beltagy et al. 2020',
        settings: [
          setting('before', 'keys before the query', 'whole', 0, 2),
          setting('after', 'keys after the query', 'whole', 0, 2),
          setting('globals', 'first tokens that see and are seen by all', 'whole', 0, 0),
        ],
      }),
      term('alibi', 'Alibi', 'subtracts slope |i - j|, a fixed slope per head', {
        source: 'Press et al. 2022',
        parameters: [parameter('slopes', '(H)', [0.25])],
      }),
      term('relative', 'RelativeBias', 'adds a learned number per head and distance up to reach', {
        settings: [setting('reach', 'the largest distance with a number of its own', 'whole', 1, 4)],
        parameters: [parameter('table', '(H, 2 reach + 1)', [[-0.4, 0.2, 0.5, 0.9, 1.2, 0.9, 0.1, -0.3, -0.8]])],
      }),
      term('gaussian', 'Gaussian2d', 'subtracts alpha |offset on the grid - center|^2, per head', {
        needs_grid: true,
        source: 'Cordonnier et al. 2020',
        parameters: [parameter('alpha', '(H)', [1]), parameter('center', '(H, 2)', [[0, 0]])],
      }),
      term('soft_cap', 'SoftCap', 'holds scores within bounds: limit tanh(s / limit)', {
        settings: [setting('limit', 'the bound', 'number', 0, 50)],
      }),
    ],
  };
}

export function attend({ grid, tokens = 16, beta, terms: chosen = [], target }) {
  const N = grid ? grid[0] * grid[1] : tokens;
  const scores = Array.from({ length: N }, (_, i) =>
    Array.from({ length: N }, (_, j) => {
      let s = beta ? beta * 6 * (wave(i, j) - 0.5) : 0;
      for (const { name, parameters = {} } of chosen) {
        if (name === 'causal' && j > i) return -Infinity;
        if (name === 'alibi') s -= (parameters.slopes?.[0] ?? 0.25) * Math.abs(i - j);
        if (name === 'gaussian') {
          const [c0, c1] = parameters.center?.[0] ?? [0, 0],
            W = grid[1];
          s -= (parameters.alpha?.[0] ?? 1) * ((Math.floor(i / W) - Math.floor(j / W) - c0) ** 2 + ((i % W) - (j % W) - c1) ** 2);
        }
      }
      return s;
    }),
  );
  const p = scores.map(softmax),
    t = target ?? { query: 0, key: 0 };
  const gradient = p.map((row, i) => row.map((_, j) => (i === t.query ? p[i][t.key] * ((j === t.key ? 1 : 0) - p[i][j]) : 0)));
  return {
    tokens: N,
    grid: grid ?? null,
    heads: 1,
    width: 8,
    beta: beta ?? 0.35,
    probabilities: [p],
    scores: [scores.map(row => row.map(value => (Number.isFinite(value) ? value : null)))],
    terms: chosen.map(each => ({ name: each.name, settings: each.settings ?? {}, parameters: each.parameters ?? {} })),
    gradients: {
      loss: p[t.query][t.key],
      q: [],
      k: [],
      v: [],
      scores: [gradient],
      beta: [0],
      terms: chosen.map(each =>
        Object.fromEntries(Object.keys(each.parameters ?? {}).map(name => [name, name === 'center' ? [[0.02, -0.11]] : [0.031]])),
      ),
    },
    command: 'heed attend in.safetensors grid=8x8 content=false probabilities=true -o out.safetensors',
    milliseconds: 0.42,
  };
}

export function cost({ model = 'config', settings = {} }) {
  const layers = Number(settings.layers ?? 6),
    linear = settings.attention === 'linear';
  const one = (name, parameters, multiply_adds) => ({
    name,
    parameters,
    bytes: 4 * parameters,
    multiply_adds,
    moved_bytes: (2 * multiply_adds) / 50,
    activation_bytes: multiply_adds / 60,
    training_multiply_adds: 3 * multiply_adds,
    training_moved_bytes: multiply_adds / 10,
  });
  const modules = [
    one('vit.embeddings.patch_embeddings.projection', 9408, 589824),
    ...Array.from({ length: layers }, (_, i) =>
      ['attention.query', 'attention.key', 'attention.value', '(attend)', 'intermediate.dense', 'output.dense'].map((name, j) =>
        one(`vit.encoder.layer.${i}.${name}`, j === 3 ? 0 : 37056, j === 3 ? (linear ? 800000 : 1622400) : 2396160 * (j > 3 ? 4 : 1)),
      ),
    ).flat(),
    one('classifier', 1930, 1920),
  ];
  const sum = key => modules.reduce((total, module) => total + module[key], 0);
  return {
    model,
    architecture: 'ViTForImageClassification',
    parameters: sum('parameters'),
    learned: sum('parameters'),
    size: { batch: Number(settings.batch ?? 1), tokens: 65, target: 0, labels: 0 },
    inference: {
      multiply_adds: sum('multiply_adds'),
      moved_bytes: sum('moved_bytes'),
      memory_bytes: 11527552,
      memory: { weights: 10933632, activations: 593920, gradients: 0, optimizer: 0 },
      measured: { seconds: 0.00893, share_of_peak: 0.075 },
    },
    training: {
      multiply_adds: 3 * sum('multiply_adds'),
      moved_bytes: 1e8,
      memory_bytes: 43354832,
      memory: { weights: 10777664, activations: 11028544, gradients: 10777664, optimizer: 21548624 },
      optimizer: 'adamw',
    },
    cache_bytes_per_token: 0,
    step_multiply_adds: 0,
    memory_bytes_per_source_token: 0,
    modules,
  };
}
