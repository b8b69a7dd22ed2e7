// Experiments of the mock server, one with every kind of figure.
const setting = (key, type, value, help) => ({ key, type, default: value, help, choices: [], least: null, most: null });
const experiment = (number, name, topic, title, claim, extra = {}) => ({
  number,
  name,
  topic,
  title,
  claim,
  formula: '',
  expected: 'holds',
  settings: [
    setting('full', 'boolean', false, 'larger sizes, longer run time'),
    setting('tokens', 'integer', 16, 'number of tokens'),
    setting('beta', 'number', 10000, 'the largest inverse temperature'),
  ],
  ...extra,
});
export const lab = {
  experiments: [
    experiment(
      'L1',
      'softmax-temperature',
      'Temperature, noise and stretched keys',
      'From the mean to one value: the inverse temperature',
      'As the inverse temperature $\\beta$ grows from 0, attention changes from the plain mean of all values to the selection of one.',
      {
        formula:
          'h_i = \\sum_j a_{ij} v_j, \\quad a_{ij} = \\frac{e^{\\beta q_i \\cdot k_j}}{\\sum_m e^{\\beta q_i \\cdot k_m}}, \\quad 0 \\le -\\sum_j a_{ij} \\log a_{ij} \\le \\log N',
      },
    ),
    experiment(
      'L3',
      'stretched-key',
      'Temperature, noise and stretched keys',
      'A key that is scaled up',
      'A key that grows takes the weight of queries that point its way, and loses that of the others.',
      { expected: 'corrected', published: 'A key that is scaled up gets all the weight.' },
    ),
    experiment(
      'L7',
      'dot-product-variance',
      'Statistics of scores',
      'Why scores are divided by √d',
      'The variance of $q \\cdot k$ is $d$, so $\\frac{q \\cdot k}{\\sqrt{d}}$ has variance 1.',
      { expected: 'corrected', published: 'Means of 0 do not matter.' },
    ),
    experiment('L28', 'pooling-heads', 'Learning', 'Four ways to pool tokens', 'All four learn.'),
  ],
};
const axis = (name, log = false) => ({ name, log, least: null, most: null });
const betas = Array.from({ length: 40 }, (_, i) => 10 ** (i / 10 - 2));
export const labResult = name => ({
  ...lab.experiments.find(each => each.name === name),
  statement: 'The entropy falls from $\\log N$ to 0, and the output becomes the value of the best key.',
  verdict: lab.experiments.find(each => each.name === name).expected,
  as_documented: true,
  settings: {},
  seconds: 0.012,
  measured: [
    {
      name: 'entropy at β = 0 (log N)',
      predicted: 2.7726,
      measured: 2.7726,
      prediction: '2.773 ± 1e-5',
      by_clock: false,
      contradicts: false,
      passes: true,
    },
    {
      name: 'entropy at the largest β',
      predicted: 0,
      measured: 0,
      prediction: '0 ± 0.001',
      by_clock: false,
      contradicts: false,
      passes: true,
    },
  ],
  tables: [
    {
      title: 'Numbers',
      columns: ['β', 'entropy'],
      rows: [
        [0, 2.773],
        ['1 / √d', 2.31],
      ],
    },
  ],
  figures: [
    {
      title: 'Entropy of a row',
      caption: 'Mean over queries, from log N down to 0.',
      parameter: '',
      frames: [
        {
          value: '',
          file: 'L1-1',
          plots: [
            {
              title: '',
              kind: 'lines',
              x: axis('β', true),
              y: axis('entropy'),
              series: [
                {
                  name: 'measured',
                  x: betas,
                  y: betas.map(b => 2.77 / (1 + b)),
                  mark: 'line',
                  low: betas.map(b => 2.5 / (1 + b)),
                  high: betas.map(b => 2.9 / (1 + b)),
                },
                { name: 'log N', x: betas, y: betas.map(() => 2.773), mark: 'dashed', low: [], high: [] },
              ],
            },
          ],
        },
      ],
    },
    {
      title: 'The map as β grows',
      caption: "Each row is a query's weights over all keys.",
      parameter: 'β',
      frames: [0, 1, 10].map(b => ({
        value: String(b),
        file: 'L1-2',
        plots: [
          {
            title: 'weights',
            kind: 'heat_map',
            rows: 8,
            columns: 8,
            values: Array.from({ length: 64 }, (_, i) => Math.exp(-b * Math.abs((i % 8) - Math.floor(i / 8)))),
            down: 'queries',
            across: 'keys',
            least: 0,
            most: 1,
            diverging: false,
          },
        ],
      })),
    },
    {
      title: 'Cost',
      caption: 'Multiply-adds.',
      parameter: '',
      frames: [
        {
          value: '',
          file: 'L1-3',
          plots: [
            {
              title: 'bars',
              kind: 'bars',
              y: axis('share'),
              groups: ['soft', 'linear', 'hard'],
              sets: [
                { name: 'forward', values: [3, 1, 2], low: [2.8, 0.9, 1.8], high: [3.2, 1.1, 2.2] },
                { name: 'backward', values: [6, 2, 4], low: [], high: [] },
              ],
            },
          ],
        },
      ],
    },
  ],
});
