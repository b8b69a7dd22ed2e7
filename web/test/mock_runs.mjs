// Runs of the mock server: one that trains, one that is finished, one that was stopped.
const classes = ['circle', 'ring', 'moon', 'triangle', 'square', 'cross'];
const summary = (name, state, epochs, best, extra = {}) => ({
  id: `classify/${name}`,
  run: `runs/classify/${name}`,
  task: 'classify',
  name,
  data: 'shapes',
  model: 'vit-tiny',
  state,
  epochs,
  planned: 20,
  metric: 'accuracy',
  best_epoch: epochs,
  best,
  seconds: 61.3 * epochs,
  judged: 'test',
  figures: state === 'finished' ? { accuracy: best - 0.004, loss: 0.3263, f1: best - 0.01, top5: 0.998 } : {},
  damaged: [],
  ...extra,
});
const all = [
  summary('003', 'running', 7, 0.861),
  summary('002', 'finished', 20, 0.888, { model: 'gaussian-small' }),
  summary('001', 'stopped', 12, 0.842),
];
export const runList = { folder: 'runs', runs: all, can_train: true };

const loss = (step, floor) => floor + 2 * Math.exp(-step / 300);
const noise = step => 0.06 * Math.sin(step * 12.9898) * Math.cos(step * 4.1);
const stepRow = (step, floor) => ({
  epoch: Math.floor(step / 100) + 1,
  step,
  figures: {
    train_loss: loss(step, floor) + noise(step),
    train_accuracy: 1 - loss(step, floor) / 2.6 + noise(step) / 3,
    rate: 0.001 * Math.cos((step / 2000) * 1.57),
    gradient_norm: 0.7 + noise(step),
  },
});
const epochRow = (epoch, floor) => ({
  epoch,
  step: 100 * epoch,
  figures: {
    train_loss: loss(100 * epoch, floor),
    train_accuracy: 1 - loss(100 * epoch, floor) / 2.6,
    validation_loss: loss(100 * epoch, floor) + 0.08,
    validation_accuracy: 0.97 - loss(100 * epoch, floor) / 2.6,
  },
});

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAAJElEQVQI12NgYPj//z8DAwMDEwMSwM5hZGRkZGRkgAEGOAAAQ0IHAWdJ0XoAAAAASUVORK5CYII=';
const heads = epochs =>
  Array.from({ length: epochs + 1 }, (_, epoch) => ({
    epoch,
    step: 100 * epoch,
    grid: [8, 8],
    layers: [0, 1, 2].map(layer => ({
      name: `vit.encoder.layer.${layer}.attention`,
      heads: [0, 1, 2, 3].map(head => {
        const turn = head * 1.57 + layer,
          far = 3 * Math.exp(-epoch / (6 + 4 * layer)) + 0.6;
        return {
          center: [far * Math.sin(turn), far * Math.cos(turn)],
          alpha: 1,
          contour_50: [0.83, 0.6, turn],
          contour_90: [1.5, 1.1, turn],
        };
      }),
    })),
  }));

function run(about, floor) {
  const steps = 100 * about.epochs;
  const values = {
    task: 'classify',
    data: 'shapes',
    preset: about.model,
    epochs: '20',
    batch: '64',
    rate: about.name === '002' ? '0.0005' : '0.001',
    position: about.name === '002' ? 'gaussian' : '',
    dropout: '0',
  };
  return {
    summary: about,
    settings: Object.entries(values).map(([key, value]) => ({
      key,
      value,
      group: 'Training',
      meaning: `meaning of ${key}`,
      given: ['data', 'rate', 'position', 'task'].includes(key) && value !== '',
    })),
    epochs: Array.from({ length: about.epochs }, (_, i) => epochRow(i + 1, floor)),
    steps: Array.from({ length: steps / 10 }, (_, i) => stepRow(10 * (i + 1), floor)),
    speed: Array.from({ length: about.epochs }, (_, i) => ({
      epoch: i + 1,
      step: 100 * (i + 1),
      figures: { seconds: 61, samples_per_second: 1050 + 20 * Math.sin(i), share_of_peak: 0.4 },
    })),
    samples: Array.from({ length: 18 }, (_, i) => ({
      truth: classes[i % 6],
      guess: classes[i % 5 === 0 ? (i + 1) % 6 : i % 6],
      score: 0.5 + 0.4 * Math.abs(Math.sin(i)),
      right: i % 5 !== 0 || (i + 1) % 6 === i % 6,
      image: png,
      map_rows: 4,
      map_columns: 4,
      map: Array.from({ length: 16 }, (_, j) => Math.abs(Math.sin(i + j))),
    })),
    classes,
    confusion:
      about.state === 'running'
        ? null
        : classes.map((_, i) => classes.map((_, j) => (i === j ? 180 : Math.round(9 * Math.abs(Math.sin(3 * i + 7 * j)))))),
    evaluation: null,
    costs: null,
    model: null,
    heads: about.model === 'gaussian-small' ? heads(about.epochs) : [],
    log: [
      'classify: 57000 to train on, 3000 to validate on',
      ...Array.from({ length: about.epochs }, (_, i) => `epoch ${i + 1}/20  loss ${loss(100 * (i + 1), floor).toFixed(4)}  1103/s  0:53`),
    ],
    model_folder: `runs/classify/${about.name}/best`,
    cursor: String(steps),
  };
}
export const runs = {
  'classify/003': () => run(all[0], 0.25),
  'classify/002': () => run(all[1], 0.2),
  'classify/001': () => run(all[2], 0.34),
};
export const runEvents = () =>
  [1, 2, 3].map(i => ({
    event: i === 3 ? 'epoch' : 'step',
    id: String(700 + 10 * i),
    data: i === 3 ? epochRow(8, 0.25) : stepRow(700 + 10 * i, 0.25),
  }));

const one = (key, heading, type, value, help, choices = [], extra = {}) => ({
  key,
  heading,
  type,
  default: value,
  help,
  choices,
  least: null,
  most: null,
  with_settings: false,
  ...extra,
});
const tasks = ['classify', 'sentiment', 'pairs', 'translate', 'pretrain', 'language'];
export const settings = task => ({
  tasks: tasks.map(name => ({
    name,
    summary: `Train a model for ${name}`,
    preset: 'vit-tiny',
    presets: ['vit-tiny', 'vit-small', 'gaussian', 'resnet18'],
    examples: [],
  })),
  task,
  settings: [
    one('task', 'Task', 'string', task, 'Training task', tasks),
    one('data', 'Images', 'path', 'shapes', 'Folder with images'),
    one('flip', 'Images', 'boolean', true, 'Random horizontal flips'),
    one('preset', 'The model. Empty, 0 and -1: as in the preset', 'string', 'vit-tiny', 'initial model configuration', [
      'vit-tiny',
      'vit-small',
      'gaussian',
    ]),
    one('layers', 'The model. Empty, 0 and -1: as in the preset', 'integer', 0, 'number of layers', [], { least: 0, most: 1000 }),
    one(
      'position',
      'The model. Empty, 0 and -1: as in the preset',
      'list',
      '',
      'position encodings',
      ['none', 'learned', 'rotary', 'gaussian'],
      { with_settings: true },
    ),
    one('attention', 'The model. Empty, 0 and -1: as in the preset', 'string', '', 'kind of self-attention', [
      'soft',
      'hard',
      'linear',
      'channel',
      'pooled',
    ]),
    one('model.', 'The model. Empty, 0 and -1: as in the preset', 'any', null, 'keys of config.json'),
    one('epochs', 'Training', 'integer', 30, 'passes over the training data'),
    one('batch', 'Training', 'integer', 64, 'batch size'),
    one('rate', 'Training', 'number', 0.001, 'peak learning rate'),
    one('schedule', 'Training', 'string', 'cosine', 'learning rate schedule', ['cosine', 'constant', 'linear']),
  ],
});
