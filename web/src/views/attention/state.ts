// What the playground shows, as the address says: the layout of tokens, β, the terms with their numbers, the chosen weight.
import { useMemo } from 'preact/hooks';
import { setParams, useNumberParam, useParam } from '../../route';
import { Nested, Term, TermChoice } from '../../types';

export interface Playground {
  layout: 'grid' | 'tokens';
  rows: number;
  columns: number;
  tokens: number;
  content: boolean;
  beta: number;
  width: number;
  seed: number;
  hard: boolean;
  terms: TermChoice[];
  query: number;
  key: number;
}

const defaults: Record<Playground['layout'], TermChoice[]> = {
  grid: [{ name: 'gaussian', parameters: { alpha: [0.5], center: [[0, -2]] } }],
  tokens: [{ name: 'causal' }, { name: 'alibi', parameters: { slopes: [0.25] } }],
};

// Where a term starts when it is added: numbers whose effect is easy to see on a few tokens.
const starts: Record<string, Omit<TermChoice, 'name'>> = {
  window: { settings: { before: 2, after: 2 } },
  chunks: { settings: { size: 4 } },
  dilated: { settings: { step: 2 } },
  grid_window: { settings: { rows: 1, columns: 1 } },
  relative: { settings: { reach: 4 } },
  relative_2d: { settings: { rows: 2, columns: 2 } },
  bucketed: { settings: { buckets: 8, far: 16 } },
  soft_cap: { settings: { limit: 5 } },
  alibi: { parameters: { slopes: [0.25] } },
  gaussian: { parameters: { alpha: [0.5], center: [[0, 0]] } },
  gaussian_full: {
    parameters: {
      spread: [
        [
          [0.9, 0],
          [0, 0.4],
        ],
      ],
      center: [[0, 0]],
    },
  },
};
export const startOf = (name: string): TermChoice => ({ name, ...starts[name] });

function parseTerms(text: string, layout: Playground['layout']): TermChoice[] {
  if (text === '') return defaults[layout];
  try {
    return JSON.parse(text);
  } catch {
    return [];
  }
}

export function usePlayground(): Playground {
  const [layoutText] = useParam('layout', 'grid'),
    [termText] = useParam('terms');
  const layout = layoutText === 'tokens' ? 'tokens' : 'grid';
  const [rows] = useNumberParam('rows', 8),
    [columns] = useNumberParam('columns', 8),
    [sequence] = useNumberParam('tokens', 16);
  const [content] = useParam('content', '0');
  const [beta] = useNumberParam('beta', 0.35),
    [width] = useNumberParam('width', 8),
    [seed] = useNumberParam('seed', 1);
  const [hard] = useParam('hard');
  const tokens = layout === 'grid' ? rows * columns : sequence;
  const middle = layout === 'grid' ? Math.floor(rows / 2) * columns + Math.floor(columns / 2) : Math.floor((2 * tokens) / 3);
  const [query] = useNumberParam('query', middle),
    [key] = useNumberParam('key', -1);
  const terms = useMemo(() => parseTerms(termText, layout), [termText, layout]);
  return {
    layout,
    rows,
    columns,
    tokens,
    content: content === '1',
    beta,
    width,
    seed,
    hard: hard === '1',
    terms,
    query: Math.min(query, tokens - 1),
    key: key >= tokens ? -1 : key,
  };
}

export const setTerms = (terms: TermChoice[]) => setParams({ terms: JSON.stringify(terms) });

export function requestOf(state: Playground) {
  return {
    ...(state.layout === 'grid' ? { grid: [state.rows, state.columns] } : { tokens: state.tokens }),
    heads: 1,
    width: state.width,
    seed: state.seed,
    beta: state.content ? state.beta : 0,
    ...(state.hard && { hard: true }),
    terms: state.terms,
    target: { head: 0, query: state.query, key: state.key < 0 ? state.query : state.key },
    include: ['scores'],
  };
}

export const flat = (value: Nested): number[] => (Array.isArray(value) ? value.flatMap(flat) : [value]);
const shapeOf = (value: Nested): number[] => (Array.isArray(value) ? [value.length, ...(value.length ? shapeOf(value[0]) : [])] : []);

// The same nesting with the number at a flat index replaced.
export function replaced(value: Nested, at: number, by: number): Nested {
  let index = 0;
  const walk = (each: Nested): Nested => (Array.isArray(each) ? each.map(walk) : index++ === at ? by : each);
  return walk(value);
}

const number = (value: number) => (Number.isInteger(value) ? `${value}` : `${Number(value.toPrecision(6))}f`);
const tensor = (value: Nested) => {
  return `heed::Tensor::from(std::vector<float>{${flat(value).map(number).join(', ')}}, {${shapeOf(value).join(', ')}}, heed::kCpu)`;
};

// The call of heed::attention that computes the same, with the numbers that the server used. Settings that only size a table are not fields of its struct.
export function cppOf(state: Playground, used: TermChoice[], list: Term[]): string {
  const structs = used.map(choice => {
    const term = list.find(each => each.name === choice.name);
    if (!term) return `/* ${choice.name} */`;
    const tables = term.parameters.some(parameter => parameter.name === 'table');
    const fields = [
      ...term.parameters.map(parameter => `.${parameter.name} = ${tensor(choice.parameters?.[parameter.name] ?? parameter.default)}`),
      ...term.settings
        .filter(setting => (tables ? ['far', 'both_ways'].includes(setting.name) : setting.name !== 'shifted'))
        .sort((a, b) => (tables ? a.name.localeCompare(b.name) : 0))
        .map(setting => {
          const value = choice.settings?.[setting.name] ?? setting.default;
          return `.${setting.name} = ${setting.type === 'flag' ? value !== 0 : number(value)}`;
        }),
      ...(term.needs_grid ? [`.width = ${state.columns}`] : []),
    ];
    return fields.length < 2 && fields.join().length < 60
      ? `heed::${term.struct}{${fields.join(', ')}}`
      : `heed::${term.struct}{\n            ${fields.join(',\n            ')}}`;
  });
  const options = [
    `.beta = ${state.content ? number(state.beta) : '0'}`,
    ...(structs.length ? [`.terms = {\n        ${structs.join(',\n        ')}}`] : []),
    ...(state.hard ? ['.hard = heed::Hard::straight_through'] : []),
  ];
  return `#include <heed/attention/attention.h>\n\n// q, k, v: (1, 1, ${state.tokens}, ${state.width})\nheed::Tensor out = heed::attention(q, k, v, {\n    ${options.join(',\n    ')}});`;
}
