// Inspect: where the heads of a model look, for one input, and what its answer owes to them.
import { duration, some } from '../../format';
import { setParams, useParam } from '../../route';
import { Inspection } from '../../types';
import { Await, Code, Empty, PageHead, Panel } from '../../ui/blocks';
import { Button, Segments, Select, Slider, TextField } from '../../ui/controls';
import { ImageInput } from '../../ui/image_input';
import { useInfo } from '../../info';
import { OneHead } from './head';
import { OneImageHead } from './image_head';
import { Overview } from './overview';
import { Predictions } from './predictions';
import { InspectState, mapsOf, useInspect } from './state';
import { Terms } from './terms';
import { useTerms } from './terms_data';

export function Inspect() {
  const info = useInfo();
  const state = useInspect();
  return (
    <>
      <PageHead
        title="Inspect"
        about="Give a model an input and see what every head attends to. Switch heads off, change β or mask tokens: the prediction updates."
      />
      <Await from={info}>
        {() =>
          state.model ? (
            <div class="stack">
              <Input state={state} />
              <Await from={state.overview}>{data => <Body state={state} inspection={data} />}</Await>
            </div>
          ) : (
            <Empty title="No model with attention maps is served" command="heed serve MODEL --runs runs">
              Start the server with the folder of a model, or train one and serve its run.
            </Empty>
          )
        }
      </Await>
    </>
  );
}

function Input({ state }: { state: InspectState }) {
  const { model, models } = state;
  const [text, setText] = useParam('text', state.text);
  const [pair, setPair] = useParam('pair'),
    [target, setTarget] = useParam('target');
  const choose = (id: string) => setParams({ model: id, layer: null, head: null, off: null, hidden: null, query: null, kind: null });
  return (
    <div class={model!.input === 'image' ? 'inspect-input image' : 'inspect-input'}>
      <Select
        name="Model"
        value={model!.id}
        options={models.map(each => each.id)}
        onChange={choose}
        help={`${model!.architecture}, ${some(model!.layers, 'layer')}, ${some(model!.heads, 'head')} each`}
      />
      {model!.input === 'image' ? (
        <ImageInput image={state.image} onImage={state.setImage} />
      ) : (
        <div class="stack tight">
          <TextField
            name="Text"
            rows={2}
            value={text}
            onChange={setText}
            help={model!.task === 'fill' ? 'Write [MASK] for a missing word.' : undefined}
          />
          {(model!.task === 'classify' || model!.task === 'fill') && (
            <details class="small" open={pair !== ''}>
              <summary class="muted">Second text</summary>
              <TextField name="Second text" value={pair} onChange={setPair} help="For models that were trained on pairs." />
            </details>
          )}
          {model!.task === 'translate' && (
            <TextField name="Translation" value={target} onChange={setTarget} placeholder="leave empty for the model's own translation" />
          )}
        </div>
      )}
    </div>
  );
}

function Body({ state, inspection }: { state: InspectState; inspection: Inspection }) {
  const maps = mapsOf(inspection, state.kind);
  const [view, setView] = useParam('view', inspection.kind === 'image' ? 'overlay' : 'lines');
  const kinds = inspection.maps.map(each => each.kind as string);
  if (inspection.kind === 'image') kinds.push('rollout');
  else if (inspection.rollout.length > 0) kinds.push('rollout');
  const terms = useTerms(state, inspection);
  return (
    <div class="split weave">
      <div class="stack">
        <div class="row between">
          {kinds.length > 1 ? (
            <Segments label="Attention" value={state.kind || kinds[0]} options={kinds} onChange={kind => setParams({ kind })} />
          ) : (
            <span />
          )}
          <span class="muted small number">{duration(inspection.milliseconds / 1000)}</span>
        </div>
        {inspection.kind === 'image' ? (
          <OneImageHead state={state} inspection={inspection} view={view} setView={setView} shares={terms.head?.shares} />
        ) : (
          <OneHead state={state} inspection={inspection} view={view} setView={setView} shares={terms.head?.shares} />
        )}
        {maps && state.kind !== 'rollout' && <Overview state={state} inspection={inspection} maps={maps} />}
        {maps && state.kind !== 'rollout' && <Terms state={state} inspection={inspection} terms={terms} />}
        <Shapes inspection={inspection} loading={state.overview.loading} />
      </div>
      <aside class="stack">
        <Predictions state={state} inspection={inspection} />
        <Changes state={state} inspection={inspection} />
        <div class="stack tight">
          <h3>In the terminal</h3>
          <Code text={command(state, terms.open ? inspection : undefined, terms.query)} />
        </div>
      </aside>
    </div>
  );
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

function termOptions({ kind, layer, head }: InspectState, { image, maps }: Inspection, query: number) {
  const patch = query - (image?.first ?? 0);
  const place = image ? patch >= 0 && `${Math.floor(patch / image.columns)},${patch % image.columns}` : query;
  const which = maps.length > 1 ? ` --maps ${kind || maps[0].kind}` : '';
  return `${which} --terms --layers ${layer} --heads ${head}${place === false ? '' : ` --query ${place}`}`;
}

// `heed inspect` shows the model as it was trained. With changes, the request that this page sends.
// withTerms: what they are shown of
function command(state: InspectState, withTerms: Inspection | undefined, query: number) {
  const { model, input, changes } = state;
  if (Object.keys(changes).length > 0) {
    const shown = 'image' in input ? { image: 'BASE64' } : input;
    const body = JSON.stringify({ model: model!.id, ...shown, ...changes, ...(withTerms && { terms: true }) });
    return `curl -s ${location.origin}/api/inspect -H 'Content-Type: application/json' -d ${quoted(body)}`;
  }
  const options = ['pair', 'target'].filter(key => input[key]).map(key => ` --${key} ${quoted(input[key]!)}`);
  if (withTerms) options.push(termOptions(state, withTerms, query));
  return `heed inspect ${model!.folder} ${'image' in input ? 'IMAGE.png' : quoted(input.text!)}${options.join('')}`;
}

// What differs from the model as it was trained.
function Changes({ state, inspection }: { state: InspectState; inspection: Inspection }) {
  const setHidden = (hidden: number[]) => setParams({ hidden: hidden.join(',') || null });
  const toggle = (token: number) =>
    setHidden(state.hidden.includes(token) ? state.hidden.filter(each => each !== token) : [...state.hidden, token]);
  const changed = state.off.length > 0 || state.hidden.length > 0 || state.beta !== 1;
  return (
    <Panel
      title="Change the model"
      actions={
        changed && (
          <Button kind="plain" onClick={() => setParams({ off: null, hidden: null, beta: null })}>
            Reset
          </Button>
        )
      }
    >
      <div class="group">
        <Slider
          name="Inverse temperature β, as a factor"
          value={state.beta}
          least={0.05}
          most={20}
          log
          onChange={beta => setParams({ beta: beta === 1 ? null : String(beta) })}
          help="1: as trained. Smaller values spread attention over all keys, larger ones concentrate it on one."
        />
      </div>
      <div class="group">
        <h3>Heads off</h3>
        {state.off.length === 0 ? (
          <p class="muted small">None. Select a head and switch it off, or press x in All heads.</p>
        ) : (
          <div class="row">
            {state.off.map(key => (
              <Button key={key} icon="close" onClick={() => setParams({ off: state.off.filter(each => each !== key).join(',') || null })}>
                {key.replace(/^attention:/, '')}
              </Button>
            ))}
          </div>
        )}
      </div>
      {inspection.tokens.length > 0 && (
        <div class="group">
          <h3>Masked tokens</h3>
          <p class="muted small">Click tokens to mask them for every query.</p>
          <div class="tokens" tabIndex={0} role="group" aria-label="Tokens">
            {inspection.tokens.map((token, i) => (
              <button key={i} type="button" class="token" aria-pressed={state.hidden.includes(i)} onClick={() => toggle(i)}>
                {token.text}
              </button>
            ))}
          </div>
        </div>
      )}
      {inspection.kind === 'image' && state.hidden.length > 0 && (
        <div class="group">
          <p class="muted small">Masked patches: {state.hidden.length}.</p>
        </div>
      )}
    </Panel>
  );
}

function Shapes({ inspection, loading }: { inspection: Inspection; loading: boolean }) {
  const [open, setOpen] = useParam('shapes');
  return (
    <Panel
      title="Shapes"
      about="The shape of every intermediate tensor."
      actions={<Button onClick={() => setOpen(open ? '' : '1')}>{open ? 'Hide' : 'Show'}</Button>}
      flush={!!open}
    >
      {open && (
        <div class="table-wrap tall" tabIndex={0} role="region" aria-label="Shapes">
          <table>
            <tbody>
              {(inspection.shapes ?? []).map((each, i) => (
                <tr key={i}>
                  <th scope="row">
                    <code>{each.name}</code>
                  </th>
                  <td class="right number">{each.shape.join(' × ')}</td>
                  <td class="muted">{each.dtype}</td>
                </tr>
              ))}
              {!inspection.shapes && (
                <tr>
                  <td class="muted">{loading ? 'Computing.' : 'No shapes.'}</td>
                </tr>
              )}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}
