// Translation, as one types.
import { usePost } from '../../api';
import { link, useNumberParam, useParam } from '../../route';
import { ModelInfo, Translated } from '../../types';
import { Await, Panel } from '../../ui/blocks';
import { Select, Slider, TextField } from '../../ui/controls';

const typingPause = 500; // milliseconds

export function Translate({ models }: { models: ModelInfo[] }) {
  const [chosenModel, setModel] = useParam('model');
  const model = models.find(each => each.id === chosenModel) ?? models[0];
  const [text, setText] = useParam('text', 'A man rides a bicycle.'),
    [beams, setBeams] = useNumberParam('beams', 4);
  const lines = text
    .split('\n')
    .map(line => line.trim())
    .filter(Boolean);
  const result = usePost<Translated>('/api/translate', lines.length ? { model: model.id, text: lines, beams } : null, typingPause);
  return (
    <div class="split">
      <div class="columns" style={{ '--least': '280px' }}>
        <TextField name="Text" rows={8} value={text} onChange={setText} help="One sentence per line." />
        <Panel title="Translation">
          <Await from={result}>
            {({ results }) => (
              <ul class="translations">
                {results.map((each, i) => (
                  <li key={i}>
                    <p>{each.text}</p>
                    <a
                      class="small"
                      href={link('inspect', [], { model: model.id, text: lines[i] ?? '', target: each.text, kind: 'cross' })}
                    >
                      Show the alignment
                    </a>
                  </li>
                ))}
              </ul>
            )}
          </Await>
        </Panel>
      </div>
      <aside>
        <Panel>
          <div class="stack tight">
            <Select name="Model" value={model.id} options={models.map(each => each.id)} onChange={setModel} help={model.architecture} />
            <Slider
              name="Beams"
              value={beams}
              least={1}
              most={12}
              step={1}
              onChange={setBeams}
              help="1: greedy search, the most probable token at each step."
            />
          </div>
        </Panel>
      </aside>
    </div>
  );
}
