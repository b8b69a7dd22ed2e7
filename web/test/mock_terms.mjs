// The four terms of scores of the mock server: heads of the first layers look at places, later ones at words.
import { wave } from './mock_functions.mjs';

const names = ['content_content', 'content_position', 'position_content', 'position_position'];

// maps: as in the answer, with the weights of `rows`
export const scoreTerms = ({ kind, queries, keys, rows, layers, heads, weights }) => ({
  kind,
  queries,
  keys,
  rows,
  heads: layers.flatMap((layer, l) =>
    heads.map((head, h) => {
      const content = (layer + 0.5 * head) / (layers.length + 1);
      const size = { content_content: 4 * content, content_position: 0.6, position_content: 0.8, position_position: 5 * (1 - content) };
      const value = (name, i, j) =>
        name === 'position_position'
          ? size[name] * (Math.exp(-((j - i + 1 + head) ** 2) / 3) + 2)
          : size[name] * (wave(layer, head, i, j) - 0.5);
      const terms = Object.fromEntries(names.map(name => [name, rows.map(i => keys.map((_, j) => value(name, i, j)))]));
      return {
        layer,
        head,
        shares: {
          content_content: content * 1.1,
          content_position: 0.06 - 0.1 * (head % 2),
          position_content: 0.04 + 0.1 * (head % 2),
          position_position: 0.9 - content * 1.1,
        },
        terms,
        scores: rows.map((_, r) => keys.map((_, j) => names.reduce((sum, name) => sum + terms[name][r][j], 0))),
        weights: weights[l][h],
      };
    }),
  ),
});

export const noTerms = architecture => ({
  error: {
    message: `inspect: the four terms of scores need positions that are added to tokens (learned, learned_2d, sinusoidal, sinusoidal_2d); ${architecture} has rotary`,
    type: 'invalid_request_error',
    param: null,
    code: null,
  },
});
