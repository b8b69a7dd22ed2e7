// Play: use the served models. Complete, chat, translate, classify, embed.
import { useInfo } from '../../info';
import { go, link, useRoute } from '../../route';
import { ModelInfo } from '../../types';
import { Await, Empty, PageHead } from '../../ui/blocks';
import { Segments } from '../../ui/controls';
import { Chat } from './chat';
import { Classify } from './classify';
import { Complete } from './complete';
import { Embed } from './embed';
import { Translate } from './translate';

interface Mode {
  name: string;
  can: (model: ModelInfo) => boolean;
  view: (props: { models: ModelInfo[] }) => preact.JSX.Element;
  missing: string;
  command: string;
}

const modes: Mode[] = [
  {
    name: 'complete',
    can: model => model.task === 'generate',
    view: Complete,
    missing: 'No language model is served',
    command: 'heed train language data=text.txt\nheed serve runs/language/001',
  },
  {
    name: 'chat',
    can: model => model.chat,
    view: Chat,
    missing: 'No model with a chat template is served',
    command: 'heed serve LLAMA-CHAT-FOLDER',
  },
  {
    name: 'translate',
    can: model => model.task === 'translate',
    view: Translate,
    missing: 'No translation model is served',
    command: 'heed train translate data=pairs.tsv\nheed serve runs/translate/001',
  },
  {
    name: 'classify',
    can: model => ['classify', 'tag', 'fill'].includes(model.task),
    view: Classify,
    missing: 'No model that classifies is served',
    command: 'heed demo\nheed serve runs/classify/001',
  },
  {
    name: 'embed',
    can: model => model.embeddings,
    view: Embed,
    missing: 'No embedding model is served',
    command: 'heed serve MINILM-FOLDER',
  },
];

export function Play() {
  const info = useInfo();
  const { path } = useRoute();
  return (
    <>
      <PageHead title="Play" about="Use the served models, and see the alternatives of every token." />
      <Await from={info}>
        {({ models }) => {
          const usable = models.filter(model => !model.error);
          const mode = modes.find(each => each.name === path[0]) ?? modes.find(each => usable.some(each.can)) ?? modes[0];
          const able = usable.filter(mode.can);
          const View = mode.view;
          return (
            <div class="stack">
              <Segments
                label="What to do"
                value={mode.name}
                options={modes.map(each => each.name)}
                onChange={name => go(link('play', [name]))}
              />
              {able.length > 0 ? (
                <View key={mode.name} models={able} />
              ) : (
                <Empty title={mode.missing} command={mode.command}>
                  Serve the folder of a model: a training run, or a checkpoint from the Hugging Face Hub.
                </Empty>
              )}
              {models.some(model => model.error) && (
                <div class="notice bad">
                  {models
                    .filter(model => model.error)
                    .map(model => `${model.id}: ${model.error}`)
                    .join('\n')}
                </div>
              )}
            </div>
          );
        }}
      </Await>
    </>
  );
}
