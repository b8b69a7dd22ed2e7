// The answers of the mock server: models, texts, maps.
export * from './mock_runs.mjs';
export * from './mock_lab.mjs';

const model = (id, architecture, task, extra = {}) => ({ id, folder: `models/${id}`, architecture, task, input: 'text', embeddings: false, chat: false, loaded: true, parameters: 12e6, layers: 6, heads: 6, max_tokens: 512, maps: true, ...extra });
export const info = {
  name: 'heed',
  version: '1.0.0',
  device: 'cpu',
  isa: 'avx512',
  threads: 2,
  runs: 'runs',
  can_train: true,
  models: [
    model('gpt2', 'GPT2LMHeadModel', 'generate', { layers: 12, heads: 12, max_tokens: 1024 }),
    model('llama-chat', 'LlamaForCausalLM', 'generate', { chat: true }),
    model('fashion', 'ViTForImageClassification', 'classify', { input: 'image', layers: 6, heads: 4, max_tokens: 0 }),
    model('sentiment', 'BertForSequenceClassification', 'classify'),
    model('opus-mt-en-de', 'MarianMTModel', 'translate'),
    model('minilm', 'BertModel', 'embed', { embeddings: true }),
    model('broken', '', 'embed', { error: 'models/broken: found no config.json', maps: false }),
  ],
  presets: [
    { name: 'vit-tiny', summary: 'ViT of 6 layers, width 192', family: 'image' },
    { name: 'bert-base', summary: 'BERT of 12 layers, width 768', family: 'text' },
    { name: 'gpt2', summary: 'GPT-2 of 12 layers, width 768', family: 'text' },
  ],
  limits: { max_body: 8388608, max_tokens: 4096, max_seconds: 60 },
};

const wave = (...seeds) => {
  let x = 0.37;
  for (const seed of seeds) x = (Math.sin(x * 127.1 + seed * 311.7) * 43758.5453) % 1;
  return Math.abs(x);
};
const softmax = row => {
  const most = Math.max(...row), powers = row.map(value => Math.exp(value - most)), sum = powers.reduce((a, b) => a + b, 0);
  return powers.map(value => value / sum);
};

function head(layer, which, N, M, causal, beta = 1) {
  const pull = [-1, 0, 1, -2][which % 4];
  return Array.from({ length: N }, (_, i) =>
    softmax(Array.from({ length: M }, (_, j) => (causal && j > i ? -1e9 : beta * (2.5 * wave(layer, which, i, j) - (which % 3 ? 0.8 * Math.abs((j * N) / M - i - pull) : j === 0 ? -3 : 0))))),
  );
}

const labels = (names, shift = 0) => softmax(names.map((_, i) => 3 - 1.3 * i + shift * wave(i))).map((score, i) => ({ label: names[i], id: i, score }));

const pixels = 'data:image/svg+xml;base64,' + Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 28 28"><rect width="28" height="28"/><path d="M8 5h3l3 2 3-2h3l5 6-3 3-2-2v12H8V12l-2 2-3-3z" fill="#bbb"/></svg>').toString('base64');

export function inspect({ model, text = '', layers, heads, queries, off = [], beta = 1, hidden = [], shapes }) {
  const known = info.models.find(each => each.id === model), changed = off.length > 0 || beta !== 1 || hidden.length > 0;
  const of = (kind, N, M, names, keys, causal) => {
    const which = layers ?? [...Array(known.layers).keys()], those = heads ?? [...Array(known.heads).keys()], rows = queries ?? [...Array(N).keys()];
    return { kind, queries: names, keys, rows, layers: which, heads: those, all_layers: known.layers, all_heads: known.heads, weights: which.map(l => those.map(h => { const all = head(l, h, N, M, causal, beta); return rows.map(i => all[i]); })) };
  };
  const common = { model, architecture: known.architecture, input: text, milliseconds: 12.3, ...(shapes && { shapes: [{ name: 'embeddings', shape: [1, 12, 64], dtype: 'f32' }, { name: 'layer.0.attention.query', shape: [1, 4, 12, 16], dtype: 'f32' }] }) };
  if (known.input === 'image') {
    const rows = 7, columns = 7, N = 50, names = ['[CLS]', ...Array.from({ length: 49 }, (_, i) => `${Math.floor(i / 7)},${i % 7}`)];
    const classes = ['Shirt', 'T-shirt/top', 'Pullover', 'Coat', 'Dress'];
    return { ...common, kind: 'image', tokens: [], predictions: [{ about: 'class', token: null, probabilities: true, labels: labels(classes, changed ? 2 : 0) }], before: [{ about: 'class', token: null, probabilities: true, labels: labels(classes) }], maps: [of('attention', N, N, names, names)], rollout: head(1, 1, N, N).flat(), image: { data: pixels, width: 28, height: 28, rows, columns, first: 1 } };
  }
  const words = text.split(/\s+/).filter(Boolean), source = known.task === 'generate' ? words : ['[CLS]', ...words, '[SEP]'];
  const tokens = source.map((each, i) => ({ id: i, text: each }));
  if (known.task === 'translate') {
    const target = ['Ein', 'Mann', 'fährt', 'Fahrrad', '.', '</s>'], N = target.length, M = source.length;
    return { ...common, kind: 'translation', tokens, target_tokens: target.map((each, i) => ({ id: i, text: each })), translation: 'Ein Mann fährt Fahrrad.', own_translation: true, predictions: [], maps: [of('cross', N, M, target, source), of('encoder', M, M, source, source), of('decoder', N, N, target, target, true)], rollout: [] };
  }
  const N = source.length, causal = known.task === 'generate';
  const at = token => ({ about: causal ? 'next token' : 'class', token, probabilities: true, labels: labels(causal ? ['.', ' and', ',', ' in', ' on'] : ['positive', 'negative'], (changed ? 2 : 0) + (token ?? 0) / 5) });
  const before = token => ({ ...at(token), labels: labels(causal ? ['.', ' and', ',', ' in', ' on'] : ['positive', 'negative'], (token ?? 0) / 5) });
  const places = causal ? [...Array(N).keys()] : [null];
  return { ...common, kind: 'text', tokens, predictions: known.task === 'embed' ? [] : places.map(at), before: places.map(before), maps: [of('attention', N, N, source, source, causal)], rollout: head(2, 1, N, N, causal).flat() };
}

export const classify = ({ model, image }) => ({ model, task: 'classify', results: [{ labels: labels(image ? ['Shirt', 'T-shirt/top', 'Pullover', 'Coat', 'Dress', 'Bag'] : ['positive', 'negative']) }] });
export const translate = ({ model, text }) => ({ model, results: [text].flat().map(line => ({ text: `Übersetzung von „${line}“`, tokens: [], ids: [], score: -0.4 })) });
export const embeddings = ({ model, input }) => ({ object: 'list', model, usage: { prompt_tokens: 9, total_tokens: 9 }, data: [input].flat().map((text, index) => ({ object: 'embedding', index, embedding: Array.from({ length: 32 }, (_, d) => wave(d, Math.floor(index / 3)) - 0.5 + 0.4 * (wave(d, index + 7) - 0.5)) })) });

const story = [',', ' there', ' was', ' a', ' small', ' model', ' that', ' attended', ' to', ' every', ' token', ' it', ' had', ' seen', '.'];
const tops = (token, i) => [[token, 0.2 + 0.7 * wave(i)], [' the', 0.09], [' one', 0.05], [' in', 0.03], ['\n', 0.01]];
export const completion = ({ max_tokens = 64 }) => [
  ...story.slice(0, max_tokens).map((token, i) => ({ data: { id: 'cmpl-1', object: 'text_completion', created: 0, model: 'gpt2', choices: [{ index: 0, text: token, finish_reason: null, logprobs: { tokens: [token], token_logprobs: [Math.log(tops(token, i)[0][1])], top_logprobs: [Object.fromEntries(tops(token, i).map(([each, p]) => [each, Math.log(p)]))], text_offset: [0] } }] } })),
  { data: '[DONE]' },
];
export const chat = () => [
  ...['Hello', ',', ' I', ' am', ' a', ' small', ' model', '.'].map((token, i) => ({ data: { id: 'chat-1', object: 'chat.completion.chunk', created: 0, model: 'llama-chat', choices: [{ index: 0, delta: { content: token }, finish_reason: null, logprobs: { content: [{ token, logprob: Math.log(tops(token, i)[0][1]), bytes: [], top_logprobs: tops(token, i).map(([each, p]) => ({ token: each, logprob: Math.log(p), bytes: [] })) }] } }] } })),
  { data: '[DONE]' },
];

const setting = (name, meaning, type, least, value) => ({ name, meaning, type, least, default: value });
const parameter = (name, shape, value) => ({ name, file_name: name, meaning: '', shape, learned: true, default: value });
const term = (name, struct, summary, extra = {}) => ({ name, aliases: [], summary, source: '', struct, file: `${name}.h`, use: 'position', masks: false, needs_grid: false, needs_content: false, in_attend: true, settings: [], parameters: [], ...extra });
export function terms(query) {
  const [rows, columns] = (query.get('grid') ?? '0x0').split('x').map(Number), tokens = rows ? rows * columns : Number(query.get('tokens') ?? 16);
  return {
    tokens,
    grid: rows ? [rows, columns] : null,
    terms: [
      term('causal', 'Causal', 'keeps the keys up to the query: j <= i + offset', { masks: true }),
      term('window', 'Window', 'keeps the keys near the query', { masks: true, source: 'Beltagy et al. 2020', settings: [setting('before', 'keys before the query', 'whole', 0, 2), setting('after', 'keys after the query', 'whole', 0, 2), setting('globals', 'first tokens that see and are seen by all', 'whole', 0, 0)] }),
      term('alibi', 'Alibi', 'subtracts slope |i - j|, a fixed slope per head', { source: 'Press et al. 2022', parameters: [parameter('slopes', '(H)', [0.25])] }),
      term('relative', 'RelativeBias', 'adds a learned number per head and distance up to reach', { settings: [setting('reach', 'the largest distance with a number of its own', 'whole', 1, 4)], parameters: [parameter('table', '(H, 2 reach + 1)', [[-0.4, 0.2, 0.5, 0.9, 1.2, 0.9, 0.1, -0.3, -0.8]])] }),
      term('gaussian', 'Gaussian2d', 'subtracts alpha |offset on the grid - center|^2, per head', { needs_grid: true, source: 'Cordonnier et al. 2020', parameters: [parameter('alpha', '(H)', [1]), parameter('center', '(H, 2)', [[0, 0]])] }),
      term('soft_cap', 'SoftCap', 'holds scores within bounds: limit tanh(s / limit)', { settings: [setting('limit', 'the bound', 'number', 0, 50)] }),
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
          const [c0, c1] = parameters.center?.[0] ?? [0, 0], W = grid[1];
          s -= (parameters.alpha?.[0] ?? 1) * ((Math.floor(i / W) - Math.floor(j / W) - c0) ** 2 + ((i % W) - (j % W) - c1) ** 2);
        }
      }
      return s;
    }),
  );
  const p = scores.map(softmax), t = target ?? { query: 0, key: 0 };
  const gradient = p.map((row, i) => row.map((_, j) => (i === t.query ? p[i][t.key] * ((j === t.key ? 1 : 0) - p[i][j]) : 0)));
  return { tokens: N, grid: grid ?? null, heads: 1, width: 8, beta: beta ?? 0.35, probabilities: [p], scores: [scores.map(row => row.map(value => (Number.isFinite(value) ? value : null)))], terms: chosen.map(each => ({ name: each.name, settings: each.settings ?? {}, parameters: each.parameters ?? {} })), gradients: { loss: p[t.query][t.key], q: [], k: [], v: [], scores: [gradient], beta: [0], terms: chosen.map(each => Object.fromEntries(Object.keys(each.parameters ?? {}).map(name => [name, name === 'center' ? [[0.02, -0.11]] : [0.031]]))) }, command: 'heed attend in.safetensors grid=8x8 content=false probabilities=true -o out.safetensors', milliseconds: 0.42 };
}

export function cost({ model = 'config', settings = {} }) {
  const layers = Number(settings.layers ?? 6), linear = settings.attention === 'linear';
  const one = (name, parameters, multiply_adds) => ({ name, parameters, bytes: 4 * parameters, multiply_adds, moved_bytes: 2 * multiply_adds / 50, activation_bytes: multiply_adds / 60, training_multiply_adds: 3 * multiply_adds, training_moved_bytes: multiply_adds / 10 });
  const modules = [one('vit.embeddings.patch_embeddings.projection', 9408, 589824), ...Array.from({ length: layers }, (_, i) => ['attention.query', 'attention.key', 'attention.value', '(attend)', 'intermediate.dense', 'output.dense'].map((name, j) => one(`vit.encoder.layer.${i}.${name}`, j === 3 ? 0 : 37056, j === 3 ? (linear ? 800000 : 1622400) : 2396160 * (j > 3 ? 4 : 1)))).flat(), one('classifier', 1930, 1920)];
  const sum = key => modules.reduce((total, module) => total + module[key], 0);
  return { model, architecture: 'ViTForImageClassification', parameters: sum('parameters'), learned: sum('parameters'), size: { batch: Number(settings.batch ?? 1), tokens: 65, target: 0, labels: 0 }, inference: { multiply_adds: sum('multiply_adds'), moved_bytes: sum('moved_bytes'), memory_bytes: 11527552, memory: { weights: 10933632, activations: 593920, gradients: 0, optimizer: 0 }, measured: { seconds: 0.00893, share_of_peak: 0.075 } }, training: { multiply_adds: 3 * sum('multiply_adds'), moved_bytes: 1e8, memory_bytes: 43354832, memory: { weights: 10777664, activations: 11028544, gradients: 10777664, optimizer: 21548624 }, optimizer: 'adamw' }, cache_bytes_per_token: 0, step_multiply_adds: 0, memory_bytes_per_source_token: 0, modules };
}
