// Labels for a text, its words, a missing word or an image.
import { useState } from 'preact/hooks';
import { usePost } from '../../api';
import { link, useParam } from '../../route';
import { Classified, ModelInfo } from '../../types';
import { Await, Panel, Probabilities } from '../../ui/blocks';
import { Select, TextField } from '../../ui/controls';
import { ImageInput } from '../../ui/image_input';

const typingPause = 300; // milliseconds
const texts = {
  classify: 'A fine film with a slow beginning.',
  tag: 'Ada Lovelace lived in London.',
  fill: 'The capital of France is [MASK].',
} as Record<string, string>;

export function Classify({ models }: { models: ModelInfo[] }) {
  const [chosenModel, setModel] = useParam('model');
  const model = models.find(each => each.id === chosenModel) ?? models[0];
  const [text, setText] = useParam('text', texts[model.task]),
    [pair, setPair] = useParam('pair');
  const [image, setImage] = useState<string | null>(null);
  const isImage = model.input === 'image';
  const body = isImage
    ? image && { model: model.id, image, top: 10 }
    : text.trim() && { model: model.id, text, top: 10, ...(pair && { pair }) };
  const result = usePost<Classified>('/api/classify', body || null, typingPause);
  return (
    <div class="columns" style={{ '--least': '300px' }}>
      <div class="stack">
        <Select name="Model" value={model.id} options={models.map(each => each.id)} onChange={setModel} help={model.architecture} />
        {isImage ? (
          <ImageInput image={image} onImage={setImage} />
        ) : (
          <TextField
            name="Text"
            rows={4}
            value={text}
            onChange={setText}
            help={model.task === 'fill' ? 'Write [MASK] for a missing word.' : undefined}
          />
        )}
        {!isImage && model.task === 'classify' && (
          <TextField name="Second text" value={pair} onChange={setPair} placeholder="only for models trained on text pairs" />
        )}
      </div>
      <Panel
        title="Prediction"
        actions={
          model.maps &&
          !isImage && (
            <a class="button" href={link('inspect', [], { model: model.id, text, pair })}>
              Inspect
            </a>
          )
        }
      >
        {body ? (
          <Await from={result}>{data => <Answer result={data.results[0]} />}</Await>
        ) : (
          <p class="muted">{isImage ? 'The labels of the image appear here.' : 'Enter a text.'}</p>
        )}
      </Panel>
    </div>
  );
}

function Answer({ result }: { result: Classified['results'][0] }) {
  if (result.labels) return <Probabilities labels={result.labels} values={result.labels.some(each => each.score < 0 || each.score > 1)} />;
  if (result.words)
    return (
      <p class="tagged">
        {result.words.map((word, i) => (
          <span key={i} class={word.label === 'O' ? '' : 'tag'}>
            {word.text} {word.label !== 'O' && <small>{word.label}</small>}
          </span>
        ))}
      </p>
    );
  if (result.masks?.length)
    return (
      <div>
        {result.masks.map((mask, i) => (
          <div class="group" key={i}>
            <h3>[MASK] {result.masks!.length > 1 && i + 1}</h3>
            <Probabilities labels={mask.labels} />
          </div>
        ))}
      </div>
    );
  return <p class="muted">There is no [MASK] in the text.</p>;
}
