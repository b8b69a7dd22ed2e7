// An animation of heads with Gaussian positions: where each one looks, relative to the query, from epoch to epoch.
import { useEffect, useState } from 'preact/hooks';
import { Figure } from '../../figures/figure';
import { csv, short } from '../../format';
import { useNumberParam } from '../../route';
import { seriesColour } from '../../theme';
import { HeadFrame } from '../../types';
import { Panel } from '../../ui/blocks';
import { Button, Slider } from '../../ui/controls';

const perFrame = 350; // milliseconds

export function Heads({ frames }: { frames: HeadFrame[] }) {
  const last = frames.length - 1;
  const [chosen, setChosen] = useNumberParam('frame', last);
  const [playing, setPlaying] = useState(false);
  const at = Math.min(Math.max(Math.round(chosen), 0), last);
  useEffect(() => {
    if (!playing) return;
    if (at === last) return setPlaying(false);
    const timer = setTimeout(() => setChosen(at + 1), perFrame);
    return () => clearTimeout(timer);
  }, [playing, at]);
  const frame = frames[at];
  const play = () => {
    if (at === last) setChosen(0);
    setPlaying(!playing);
  };
  return (
    <Panel
      title="Heads"
      about="Each ellipse contains half of a head's attention weight; the query is in the middle. Lines show how the centre moved."
      actions={
        <Button icon={playing ? 'stop' : 'resume'} onClick={play}>
          {playing ? 'Stop' : 'Play'}
        </Button>
      }
    >
      <div class="stack">
        <Slider
          name={`Epoch ${frame.epoch}, step ${frame.step}`}
          value={at}
          least={0}
          most={Math.max(last, 1)}
          step={1}
          onChange={value => (setPlaying(false), setChosen(value))}
        />
        <div class="columns" style={{ '--least': '240px' }}>
          {frame.layers.map((layer, l) => (
            <LayerHeads key={layer.name} frames={frames} at={at} layer={l} />
          ))}
        </div>
      </div>
    </Panel>
  );
}

function LayerHeads({ frames, at, layer }: { frames: HeadFrame[]; at: number; layer: number }) {
  const frame = frames[at],
    heads = frame.layers[layer].heads;
  const rows = ['epoch', 'head', 'center row', 'center column'];
  const data = () => ({
    name: `heads-layer-${layer}`,
    json: frames.map(each => ({ epoch: each.epoch, step: each.step, heads: each.layers[layer].heads })),
    csv: csv([rows, ...frames.flatMap(each => each.layers[layer].heads.map((head, h) => [each.epoch, h, ...head.center]))]),
  });
  const reach = Math.max(frame.grid[0], frame.grid[1]);
  return (
    <Figure title={`Layer ${layer}`} data={data}>
      {width => {
        const size = Math.min(width, 320),
          middle = size / 2,
          unit = size / (2 * reach + 1);
        // A head's weight is largest where delta, the query's position minus the key's, is its centre.
        const x = (center: number[]) => middle - center[1] * unit,
          y = (center: number[]) => middle - center[0] * unit;
        return (
          <svg
            viewBox={`0 0 ${size} ${size}`}
            width={size}
            height={size}
            role="img"
            aria-label={`Layer ${layer}: ${heads.map((head, h) => `head ${h} at ${short(-head.center[0])} rows, ${short(-head.center[1])} columns`).join('; ')}`}
          >
            <rect x="0.5" y="0.5" width={size - 1} height={size - 1} rx="6" fill="none" stroke="var(--line)" />
            <path d={`M${middle} 0V${size}M0 ${middle}H${size}`} stroke="var(--line)" />
            <rect x={middle - unit / 2} y={middle - unit / 2} width={unit} height={unit} fill="none" stroke="var(--line-strong)" />
            {heads.map((head, h) => {
              const [long, across, angle] = head.contour_50 ?? [0, 0, 0]; // the longer semi-axis first; angle: of that one
              const way = frames.slice(0, at + 1).map(each => each.layers[layer].heads[h].center);
              return (
                <g key={h} fill="none" stroke={seriesColour(h)}>
                  <polyline points={way.map(center => `${x(center)},${y(center)}`).join(' ')} stroke-opacity="0.6" />
                  <ellipse
                    cx={x(head.center)}
                    cy={y(head.center)}
                    rx={long * unit}
                    ry={across * unit}
                    transform={`rotate(${(angle * 180) / Math.PI} ${x(head.center)} ${y(head.center)})`}
                    fill={seriesColour(h)}
                    fill-opacity="0.12"
                    stroke-width="1.5"
                  />
                  <circle cx={x(head.center)} cy={y(head.center)} r="2.5" fill={seriesColour(h)} stroke="none" />
                </g>
              );
            })}
          </svg>
        );
      }}
    </Figure>
  );
}
