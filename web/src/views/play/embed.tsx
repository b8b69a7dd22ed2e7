// Sentences as points: the two directions in which their vectors differ most, and how similar each pair is.
import { useMemo, useState } from 'preact/hooks';
import { usePost } from '../../api';
import { Figure } from '../../figures/figure';
import { Cell, ColourKey, Matrix, matrixGrid } from '../../figures/matrix';
import { csv, percent } from '../../format';
import { useParam } from '../../route';
import { Embeddings, ModelInfo } from '../../types';
import { Await, Panel } from '../../ui/blocks';
import { Select, TextField } from '../../ui/controls';
import { cosines, principal, spread } from './pca';

const examples = [
  'A cat sleeps on the sofa.',
  'A kitten naps on the couch.',
  'Dogs run in the park.',
  'The stock market fell sharply.',
  'Shares lost a tenth of their value.',
  'The bank raised interest rates.',
  'She plays the violin.',
  'He practises the piano every day.',
  'The orchestra performs tonight.',
].join('\n');

export function Embed({ models }: { models: ModelInfo[] }) {
  const [chosenModel, setModel] = useParam('model');
  const model = models.find(each => each.id === chosenModel) ?? models[0];
  const [text, setText] = useParam('sentences', examples);
  const sentences = useMemo(
    () =>
      text
        .split('\n')
        .map(line => line.trim())
        .filter(Boolean)
        .slice(0, 200),
    [text],
  );
  const result = usePost<Embeddings>('/v1/embeddings', sentences.length ? { model: model.id, input: sentences } : null, 500);
  return (
    <div class="split">
      <div class="stack">
        <Await from={result}>{({ data }) => <Maps vectors={data.map(each => each.embedding)} sentences={sentences} />}</Await>
      </div>
      <aside class="first stack tight">
        <Select name="Model" value={model.id} options={models.map(each => each.id)} onChange={setModel} help={model.architecture} />
        <TextField name="Sentences" rows={12} value={text} onChange={setText} help="One per line, at most 200." />
      </aside>
    </div>
  );
}

function Maps({ vectors, sentences }: { vectors: number[][]; sentences: string[] }) {
  const { points, shares } = useMemo(() => principal(vectors), [vectors]);
  const similarity = useMemo(() => cosines(vectors), [vectors]);
  const grid = useMemo(() => matrixGrid(similarity, { least: Math.min(0, ...similarity.flat()), most: 1 }), [similarity]);
  const [hover, setHover] = useState<Cell | null>(null),
    [over, setOver] = useState(-1);
  const names = sentences.slice(0, vectors.length);
  const about = hover
    ? `${names[hover.row]} | ${names[hover.column]}: ${similarity[hover.row]?.[hover.column]?.toFixed(3)}`
    : 'Cosine of the angle between each pair. 1: the same direction.';
  return (
    <>
      <Panel title="Map" about={`The first two principal components, ${percent(shares[0] + shares[1], 0)} of the variance.`}>
        <Figure
          data={() => ({
            name: 'embeddings',
            json: names.map((sentence, i) => ({ sentence, point: points[i], vector: vectors[i] })),
            csv: csv([['sentence', 'first', 'second'], ...names.map((sentence, i) => [sentence, ...points[i]])]),
          })}
        >
          {width => {
            const height = Math.min(440, Math.max(300, width * 0.6)),
              reach =
                points.reduce((most, point) => Math.max(most, Math.abs(point[0]), Math.abs(point[1]) * (width / height)), 1e-9) * 1.12;
            const x = (point: number[]) => width / 2 + (point[0] / reach) * (width / 2 - 24),
              y = (point: number[]) => height / 2 - (point[1] / reach) * (width / 2 - 24);
            const labels = spread(points.map(y), 14);
            return (
              <svg
                viewBox={`0 0 ${width} ${height}`}
                width={width}
                height={height}
                role="img"
                aria-label={`Map of ${names.length} sentences`}
              >
                <path d={`M0 ${height / 2}H${width}M${width / 2} 0V${height}`} stroke="var(--line)" />
                {points.map((point, i) => {
                  const labelY = labels[i];
                  const left = x(point) > width * 0.6;
                  // Beside all points that the text would cover.
                  const covered = points.filter(other => Math.abs(y(other) - labelY) < 11 && Math.abs(x(other) - x(point)) < 120),
                    edges = [point, ...covered].map(x),
                    labelX = left ? Math.min(...edges) - 9 : Math.max(...edges) + 9,
                    room = Math.max(4, Math.floor(Math.min(190, left ? labelX : width - labelX) / 6.3)), // letters
                    text = names[i].length > room ? names[i].slice(0, room - 1) + '…' : names[i];
                  return (
                    <g key={i} onPointerEnter={() => setOver(i)} onPointerLeave={() => setOver(-1)}>
                      <circle
                        cx={x(point)}
                        cy={y(point)}
                        r={i === over ? 6 : 4.5}
                        fill="var(--series-1)"
                        fill-opacity={over >= 0 && i !== over ? 0.35 : 1}
                      />
                      {(names.length <= 40 || i === over) && (
                        <text
                          x={labelX}
                          y={labelY}
                          dy="0.35em"
                          font-size="12"
                          text-anchor={left ? 'end' : 'start'}
                          fill="var(--text)"
                          font-weight={i === over ? 650 : 400}
                        >
                          {text}
                        </text>
                      )}
                    </g>
                  );
                })}
              </svg>
            );
          }}
        </Figure>
      </Panel>
      <Panel title="Similarity" about={about}>
        <Figure
          data={() => ({
            name: 'similarity',
            json: { sentences: names, cosine: similarity },
            csv: csv([['', ...names], ...similarity.map((row, i) => [names[i], ...row])]),
          })}
        >
          {width => (
            <>
              <Matrix grid={grid} width={Math.min(width, 560)} rows={names} label="Cosine similarity" hover={hover} onHover={setHover} />
              <ColourKey least={grid.least} most={1} />
            </>
          )}
        </Figure>
      </Panel>
    </>
  );
}
