// The four terms of the scores, content and position of the query with those of the key: the request, and the numbers that are drawn.
import { Loaded, usePost } from '../../api';
import { csv } from '../../format';
import { HeadTerms, Inspection, ScoreTerms, TermName } from '../../types';
import { InspectState, mapsOf } from './state';

const mostNumbers = 1_000_000; // in one answer
const mostKeys = 24; // that are drawn for one query

// meaning: what a large share tells about a head
export const terms: { name: TermName; text: string; colour: string; meaning: string }[] = [
  { name: 'content_content', text: 'content-content', colour: 'var(--series-1)', meaning: 'which words look at which' },
  { name: 'content_position', text: 'content-position', colour: 'var(--series-3)', meaning: 'which places a word looks at' },
  { name: 'position_content', text: 'position-content', colour: 'var(--series-4)', meaning: 'which words are looked at from a place' },
  { name: 'position_position', text: 'position-position', colour: 'var(--series-2)', meaning: 'which places look at which' },
];

// One head and one query.
export interface TermsRow {
  query: number;
  own: number; // the key of the same token; -1 in cross-attention
  keys: string[];
  shown: number[]; // keys to draw: seen by the query, and with the largest weights if there are many
  unseen: Set<number>;
  values: number[][]; // term, key
  scores: number[];
  weights: number[];
}

export interface TermsState {
  open: boolean;
  query: number;
  found?: ScoreTerms; // of every head or one; all queries or one
  head?: HeadTerms; // the chosen one
  row?: TermsRow;
  loaded: Loaded<Inspection>;
}

export function useTerms(state: InspectState, inspection: Inspection): TermsState {
  const maps = state.kind === 'rollout' ? undefined : mapsOf(inspection, state.kind);
  const N = maps?.queries.length ?? 0,
    causal = maps?.kind === 'decoder' || (maps?.kind === 'attention' && state.model?.task === 'generate');
  const query = state.query >= 0 ? Math.min(state.query, N - 1) : causal ? N - 1 : 0;
  const size = (each: Inspection['maps'][0]) => each.layers.length * each.heads.length * each.queries.length * each.keys.length;
  const numbers = 6 * inspection.maps.reduce((sum, each) => sum + size(each), 0);
  // Of long inputs the chosen query alone, or, if some of a translation's maps are too short to have it, the chosen head.
  const fewest = Math.min(...inspection.maps.map(each => each.queries.length));
  const part = query < fewest ? { queries: [query] } : { layers: [state.layer], heads: [state.head] };
  const open = state.terms !== '' && maps !== undefined;
  const loaded = usePost<Inspection>(
    '/api/inspect',
    open
      ? {
          model: state.model!.id,
          ...state.input,
          ...state.changes,
          terms: true,
          maps: false,
          compare: false,
          ...(numbers > mostNumbers && part),
        }
      : null,
    300,
  );
  // The last answer stays on the screen while the next is on its way, unless it is that of another input.
  const answer = loaded.data?.model === state.model?.id ? loaded.data?.terms?.find(each => each.kind === maps?.kind) : undefined;
  const found =
    answer && maps && answer.queries.join() === maps.queries.join() && answer.keys.join() === maps.keys.join() ? answer : undefined;
  const head = found?.heads.find(each => each.layer === state.layer && each.head === state.head);
  const hidden = maps?.kind === 'decoder' ? [] : state.hidden;
  return { open, query, found, head, row: found && head && rowOf(found, head, query, causal, hidden), loaded };
}

function rowOf(found: ScoreTerms, head: HeadTerms, query: number, causal: boolean, hidden: number[]): TermsRow {
  const at = Math.max(found.rows.indexOf(query), 0),
    weights = head.weights[at];
  const unseen = new Set(found.keys.map((_, j) => j).filter(j => hidden.includes(j) || (causal && j > found.rows[at])));
  const seen = found.keys.map((_, j) => j).filter(j => !unseen.has(j));
  const largest = [...seen].sort((a, b) => weights[b] - weights[a]).slice(0, mostKeys);
  return {
    query: found.rows[at],
    own: found.kind === 'cross' ? -1 : found.rows[at],
    keys: found.keys,
    shown: largest.sort((a, b) => a - b),
    unseen,
    values: terms.map(({ name }) => head.terms[name][at]),
    scores: head.scores[at],
    weights,
  };
}

// With its place if some keys are left out.
export const keyName = ({ keys, shown, unseen }: TermsRow, j: number, most = Infinity) => {
  const place = shown.length + unseen.size < keys.length ? ` (${j})` : '';
  return (keys[j].length + place.length > most ? keys[j].slice(0, most - place.length - 1) + '…' : keys[j]) + place;
};

// Less the mean over some of the keys: a constant does not change the weights.
export function centred(values: number[], keys: number[]): number[] {
  const mean = keys.reduce((sum, j) => sum + values[j], 0) / Math.max(keys.length, 1);
  return values.map(value => value - mean);
}
export const seenKeys = (row: TermsRow) => row.keys.map((_, j) => j).filter(j => !row.unseen.has(j));

export const rowData = (row: TermsRow, head: HeadTerms, queries: string[]) => ({
  name: `terms-layer-${head.layer}-head-${head.head}-query-${row.query}`,
  json: {
    layer: head.layer,
    head: head.head,
    query: row.query,
    query_name: queries[row.query],
    shares: head.shares,
    keys: row.keys,
    terms: Object.fromEntries(terms.map(({ name }, t) => [name, row.values[t]])),
    scores: row.scores,
    weights: row.weights,
  },
  csv: csv([
    ['key', 'name', ...terms.map(({ name }) => name), 'score', 'weight'],
    ...row.keys.map((key, j) => [j, key, ...row.values.map(values => values[j]), row.scores[j], row.weights[j]]),
  ]),
});

export const sharesData = (found: ScoreTerms) => ({
  name: 'shares-of-terms',
  json: found.heads.map(({ layer, head, shares }) => ({ layer, head, ...shares })),
  csv: csv([
    ['layer', 'head', ...terms.map(({ name }) => name)],
    ...found.heads.map(each => [each.layer, each.head, ...terms.map(({ name }) => each.shares[name])]),
  ]),
});
