// What is inspected, as the address says, and the requests that follow from it.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { Loaded, usePost } from '../../api';
import { pickModel, useInfo } from '../../info';
import { setParams, useListParam, useNumberParam, useParam } from '../../route';
import { AttentionMaps, Inspection, ModelInfo } from '../../types';

const mostWeights = 600_000; // in one answer; for longer inputs, rows are requested one by one
const charactersPerToken = 3.5;

let lastImage: string | null = null; // survives a change of view

// Models keep [layer, head] pairs as kind:layer.head
export const headKey = (kind: string, layer: number, head: number) => `${kind}:${layer}.${head}`;
function parseHead(text: string) {
  const [kind, place] = text.split(':'),
    [layer, head] = (place ?? '').split('.').map(Number);
  return { kind, layer, head };
}

// A link may name a layer or a head that the model does not have.
const nearest = (index: number, count = Infinity) => Math.min(Math.max(Math.round(index), 0), Math.max(count - 1, 0));

export const sentences: Record<string, string> = {
  generate: 'The cat sat on the mat because it was warm',
  translate: 'A man rides a bicycle.',
  fill: 'The capital of France is [MASK].',
};

export interface InspectState {
  models: ModelInfo[];
  model: ModelInfo | undefined;
  text: string;
  image: string | null;
  setImage: (image: string) => void;
  kind: string;
  layer: number;
  head: number;
  query: number;
  off: string[];
  hidden: number[];
  beta: number;
  terms: string; // how the terms of scores are drawn; empty: not at all
  input: Record<string, string | null>; // parts of the request: text or image,
  changes: Record<string, unknown>; // and how the model differs from the trained one
  whole: boolean; // the overview holds every row
  overview: Loaded<Inspection>;
  one: Loaded<Inspection>; // all rows of the chosen head
}

export function useInspect(): InspectState {
  const { data: info } = useInfo();
  const [chosen] = useParam('model');
  const { models, model } = pickModel(info, chosen, each => each.maps);
  const [text] = useParam('text', sentences[model?.task ?? ''] ?? 'The cat sat on the mat, and it was warm.');
  const [pair] = useParam('pair'),
    [target] = useParam('target');
  const [image, setImageState] = useState(lastImage);
  const [kind] = useParam('kind'),
    [askedLayer] = useNumberParam('layer', 0),
    [askedHead] = useNumberParam('head', 0);
  const [query] = useNumberParam('query', -1);
  const [off] = useListParam('off'),
    [hiddenText] = useListParam('hidden');
  const hidden = useMemo(() => hiddenText.map(Number), [hiddenText]);
  const [beta] = useNumberParam('beta', 1);
  const [shapes] = useParam('shapes'),
    [terms] = useParam('terms');

  const isImage = model?.input === 'image';
  const estimated = model ? model.layers * model.heads * (text.length / charactersPerToken + 4) ** 2 : 0;
  const whole = !isImage && estimated < mostWeights;
  const ready = model && (isImage ? image !== null : text.trim() !== '');
  const changes = { ...(off.length && { off: off.map(parseHead) }), ...(beta !== 1 && { beta }), ...(hidden.length && { hidden }) };
  const input: InspectState['input'] = isImage ? { image } : { text, ...(pair && { pair }), ...(target && { target }) };
  const rows = whole ? {} : { queries: [Math.max(query, 0)] };
  const overview = usePost<Inspection>(
    '/api/inspect',
    ready
      ? {
          model: model.id,
          ...input,
          ...changes,
          ...rows,
          ...(shapes && { shapes: true }),
          ...(model.task === 'generate' && { every_token: true }),
        }
      : null,
    250,
  );
  const maps = overview.data && overview.data.model === model?.id ? mapsOf(overview.data, kind) : undefined;
  const layer = nearest(askedLayer, maps?.layers.length ?? model?.layers),
    head = nearest(askedHead, maps?.heads.length ?? model?.heads);
  useEffect(() => {
    if (!maps) return;
    if (layer !== askedLayer) setParams({ layer: layer ? String(layer) : null });
    if (head !== askedHead) setParams({ head: head ? String(head) : null });
  }, [maps, layer, askedLayer, head, askedHead]);
  const one = usePost<Inspection>(
    '/api/inspect',
    ready && !whole ? { model: model.id, ...input, ...changes, layers: [layer], heads: [head], compare: false } : null,
    250,
  );
  const setImage = (next: string) => setImageState((lastImage = next));
  return { models, model, text, image, setImage, kind, layer, head, query, off, hidden, beta, terms, input, changes, whole, overview, one };
}

export const mapsOf = (inspection: Inspection, kind: string): AttentionMaps | undefined =>
  inspection.maps.find(maps => maps.kind === kind) ?? inspection.maps[0];
