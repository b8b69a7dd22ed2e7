// The model's answer, with a mark where each probability was before the changes.
import { Inspection, Prediction } from '../../types';
import { Empty, Panel, Probabilities } from '../../ui/blocks';
import { InspectState } from './state';

const tokenText = (label: string) => (label.trim() === '' ? `“${label}”` : label);

function One({ prediction, before, title }: { prediction: Prediction; before?: Prediction; title: string }) {
  const was = before && new Map(before.labels.map(label => [tokenText(label.label), label.score]));
  return (
    <div class="group">
      <h3>{title}</h3>
      <Probabilities
        labels={prediction.labels.map(each => ({ ...each, label: tokenText(each.label) }))}
        before={was}
        values={!prediction.probabilities}
      />
    </div>
  );
}

export function Predictions({ state, inspection }: { state: InspectState; inspection: Inspection }) {
  const changed = state.off.length > 0 || state.hidden.length > 0 || state.beta !== 1;
  const { predictions, before } = inspection;
  if (predictions.length === 0 && !inspection.translation) return <Empty title="No prediction">This model has no prediction head.</Empty>;
  // Of a model that predicts after every token, the prediction after the chosen one, or the last.
  const everyToken = predictions.length > 3 && predictions.every(each => each.about === 'next token');
  const picked = everyToken ? (predictions.find(each => each.token === state.query) ?? predictions[predictions.length - 1]) : null;
  const shown = picked ? [picked] : predictions.slice(0, 12);
  const title = (each: Prediction) => {
    if (each.about === 'next token') return `After ${each.token === null ? 'the text' : `“${inspection.tokens[each.token]?.text ?? ''}”`}`;
    return each.about === 'class' ? 'Class' : each.about;
  };
  return (
    <Panel
      title={inspection.translation !== undefined ? 'Translation' : 'Prediction'}
      about={changed ? 'The vertical marks show the probabilities without your changes.' : undefined}
    >
      {inspection.translation !== undefined && (
        <p class="translation">
          {inspection.translation} {inspection.own_translation === false && <span class="muted small">(as entered)</span>}
        </p>
      )}
      {shown.map((each, i) => (
        <One
          key={i}
          prediction={each}
          title={title(each)}
          before={changed ? before?.find(other => other.token === each.token && other.about === each.about) : undefined}
        />
      ))}
      {everyToken && (
        <p class="muted small" style={{ marginTop: '12px' }}>
          Select a query to see the prediction after that token.
        </p>
      )}
    </Panel>
  );
}
