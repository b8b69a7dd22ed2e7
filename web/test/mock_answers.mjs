// The answers of the mock server: models, texts, maps.
import { softmax, wave } from './mock_functions.mjs';
import { noTerms, scoreTerms } from './mock_terms.mjs';

export * from './mock_runs.mjs';
export * from './mock_compute.mjs';
export * from './mock_lab.mjs';

const model = (id, architecture, task, extra = {}) => ({
  id,
  folder: `models/${id}`,
  architecture,
  task,
  input: 'text',
  embeddings: false,
  chat: false,
  loaded: true,
  parameters: 12e6,
  layers: 6,
  heads: 6,
  max_tokens: 512,
  maps: true,
  ...extra,
});
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

function head(layer, which, N, M, causal, beta = 1) {
  const pull = [-1, 0, 1, -2][which % 4];
  return Array.from({ length: N }, (_, i) =>
    softmax(
      Array.from({ length: M }, (_, j) =>
        causal && j > i
          ? -1e9
          : beta * (2.5 * wave(layer, which, i, j) - (which % 3 ? 0.8 * Math.abs((j * N) / M - i - pull) : j === 0 ? -3 : 0)),
      ),
    ),
  );
}

const labels = (names, shift = 0) =>
  softmax(names.map((_, i) => 3 - 1.3 * i + shift * wave(i))).map((score, i) => ({ label: names[i], id: i, score }));

const pixels =
  'data:image/svg+xml;base64,' +
  Buffer.from(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 28 28"><rect width="28" height="28"/><path d="M8 5h3l3 2 3-2h3l5 6-3 3-2-2v12H8V12l-2 2-3-3z" fill="#bbb"/></svg>',
  ).toString('base64');

export function inspect(request) {
  if (!request.terms) return inspection(request);
  const found = inspection(request);
  if (found.architecture.startsWith('Llama')) return noTerms(found.architecture);
  return { ...found, terms: found.maps.map(scoreTerms), maps: request.maps === false ? [] : found.maps };
}

function inspection({ model, text = '', layers, heads, queries, off = [], beta = 1, hidden = [], shapes }) {
  const known = info.models.find(each => each.id === model),
    changed = off.length > 0 || beta !== 1 || hidden.length > 0;
  const of = (kind, N, M, names, keys, causal) => {
    const which = layers ?? [...Array(known.layers).keys()],
      those = heads ?? [...Array(known.heads).keys()],
      rows = queries ?? [...Array(N).keys()];
    return {
      kind,
      queries: names,
      keys,
      rows,
      layers: which,
      heads: those,
      all_layers: known.layers,
      all_heads: known.heads,
      weights: which.map(l =>
        those.map(h => {
          const all = head(l, h, N, M, causal, beta);
          return rows.map(i => all[i]);
        }),
      ),
    };
  };
  const common = {
    model,
    architecture: known.architecture,
    input: text,
    milliseconds: 12.3,
    ...(shapes && {
      shapes: [
        { name: 'embeddings', shape: [1, 12, 64], dtype: 'f32' },
        { name: 'layer.0.attention.query', shape: [1, 4, 12, 16], dtype: 'f32' },
      ],
    }),
  };
  if (known.input === 'image') {
    const rows = 7,
      columns = 7,
      N = 50,
      names = ['[CLS]', ...Array.from({ length: 49 }, (_, i) => `${Math.floor(i / 7)},${i % 7}`)];
    const classes = ['Shirt', 'T-shirt/top', 'Pullover', 'Coat', 'Dress'];
    return {
      ...common,
      kind: 'image',
      tokens: [],
      predictions: [{ about: 'class', token: null, probabilities: true, labels: labels(classes, changed ? 2 : 0) }],
      before: [{ about: 'class', token: null, probabilities: true, labels: labels(classes) }],
      maps: [of('attention', N, N, names, names)],
      rollout: head(1, 1, N, N).flat(),
      image: { data: pixels, width: 28, height: 28, rows, columns, first: 1 },
    };
  }
  const words = text.split(/\s+/).filter(Boolean),
    source = known.task === 'generate' ? words : ['[CLS]', ...words, '[SEP]'];
  const tokens = source.map((each, i) => ({ id: i, text: each }));
  if (known.task === 'translate') {
    const target = ['Ein', 'Mann', 'fährt', 'Fahrrad', '.', '</s>'],
      N = target.length,
      M = source.length;
    return {
      ...common,
      kind: 'translation',
      tokens,
      target_tokens: target.map((each, i) => ({ id: i, text: each })),
      translation: 'Ein Mann fährt Fahrrad.',
      own_translation: true,
      predictions: [],
      maps: [of('cross', N, M, target, source), of('encoder', M, M, source, source), of('decoder', N, N, target, target, true)],
      rollout: [],
    };
  }
  const N = source.length,
    causal = known.task === 'generate';
  const at = token => ({
    about: causal ? 'next token' : 'class',
    token,
    probabilities: true,
    labels: labels(causal ? ['.', ' and', ',', ' in', ' on'] : ['positive', 'negative'], (changed ? 2 : 0) + (token ?? 0) / 5),
  });
  const before = token => ({
    ...at(token),
    labels: labels(causal ? ['.', ' and', ',', ' in', ' on'] : ['positive', 'negative'], (token ?? 0) / 5),
  });
  const places = causal ? [...Array(N).keys()] : [null];
  return {
    ...common,
    kind: 'text',
    tokens,
    predictions: known.task === 'embed' ? [] : places.map(at),
    before: places.map(before),
    maps: [of('attention', N, N, source, source, causal)],
    rollout: head(2, 1, N, N, causal).flat(),
  };
}

export const classify = ({ model, image }) => ({
  model,
  task: 'classify',
  results: [{ labels: labels(image ? ['Shirt', 'T-shirt/top', 'Pullover', 'Coat', 'Dress', 'Bag'] : ['positive', 'negative']) }],
});
export const translate = ({ model, text }) => ({
  model,
  results: [text].flat().map(line => ({ text: `Übersetzung von „${line}“`, tokens: [], ids: [], score: -0.4 })),
});
export const embeddings = ({ model, input }) => ({
  object: 'list',
  model,
  usage: { prompt_tokens: 9, total_tokens: 9 },
  data: [input].flat().map((text, index) => ({
    object: 'embedding',
    index,
    embedding: Array.from({ length: 32 }, (_, d) => wave(d, Math.floor(index / 3)) - 0.5 + 0.4 * (wave(d, index + 7) - 0.5)),
  })),
});

const story = [
  ',',
  ' there',
  ' was',
  ' a',
  ' small',
  ' model',
  ' that',
  ' attended',
  ' to',
  ' every',
  ' token',
  ' it',
  ' had',
  ' seen',
  '.',
];
const tops = (token, i) => [
  [token, 0.2 + 0.7 * wave(i)],
  [' the', 0.09],
  [' one', 0.05],
  [' in', 0.03],
  ['\n', 0.01],
];
export const completion = ({ max_tokens = 64 }) => [
  ...story.slice(0, max_tokens).map((token, i) => ({
    data: {
      id: 'cmpl-1',
      object: 'text_completion',
      created: 0,
      model: 'gpt2',
      choices: [
        {
          index: 0,
          text: token,
          finish_reason: null,
          logprobs: {
            tokens: [token],
            token_logprobs: [Math.log(tops(token, i)[0][1])],
            top_logprobs: [Object.fromEntries(tops(token, i).map(([each, p]) => [each, Math.log(p)]))],
            text_offset: [0],
          },
        },
      ],
    },
  })),
  { data: '[DONE]' },
];
export const chat = () => [
  ...['Hello', ',', ' I', ' am', ' a', ' small', ' model', '.'].map((token, i) => ({
    data: {
      id: 'chat-1',
      object: 'chat.completion.chunk',
      created: 0,
      model: 'llama-chat',
      choices: [
        {
          index: 0,
          delta: { content: token },
          finish_reason: null,
          logprobs: {
            content: [
              {
                token,
                logprob: Math.log(tops(token, i)[0][1]),
                bytes: [],
                top_logprobs: tops(token, i).map(([each, p]) => ({ token: each, logprob: Math.log(p), bytes: [] })),
              },
            ],
          },
        },
      ],
    },
  })),
  { data: '[DONE]' },
];
