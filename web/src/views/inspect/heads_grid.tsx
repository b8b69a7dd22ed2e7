// A cell for every head: rows are layers, columns heads. A click or the arrow keys choose a head, x switches it off.
import { ComponentChildren } from 'preact';
import { setParams } from '../../route';
import { InspectState } from './state';

export interface HeadCell {
  name: string; // after "Layer 2, head 3"
  className?: string;
  drawing: ComponentChildren;
}

export function HeadsGrid(props: {
  state: InspectState;
  maps: { layers: number[]; heads: number[] };
  label: string;
  cell: (layer: number, head: number, l: number, h: number) => HeadCell;
  onToggle?: (layer: number, head: number) => void;
}) {
  const { state, onToggle } = props,
    { layers, heads } = props.maps;
  const choose = (layer: number, head: number) =>
    setParams({ layer: layer ? String(layer) : null, head: head ? String(head) : null, kind: state.kind || null });
  const keyDown = (event: KeyboardEvent) => {
    const [down, across] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] ?? [0, 0];
    if (event.key === 'x') return onToggle?.(state.layer, state.head);
    if (!down && !across) return;
    event.preventDefault();
    const layer = Math.min(Math.max(state.layer + down, 0), layers.length - 1),
      head = Math.min(Math.max(state.head + across, 0), heads.length - 1);
    choose(layer, head);
    (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('button')[layer * heads.length + head]?.focus();
  };
  return (
    <div
      class="heads-grid"
      style={{ gridTemplateColumns: `28px repeat(${heads.length}, minmax(26px, ${heads.length <= 4 ? 84 : 64}px))` }}
      onKeyDown={keyDown}
      role="group"
      aria-label={props.label}
    >
      <span />
      {heads.map(head => (
        <span key={head} class="head-name">
          {head}
        </span>
      ))}
      {layers.map((layer, l) => [
        <span key={`l${layer}`} class="layer-name">
          {layer}
        </span>,
        ...heads.map((head, h) => {
          const chosen = layer === state.layer && head === state.head,
            cell = props.cell(layer, head, l, h);
          return (
            <button
              key={`${layer}.${head}`}
              type="button"
              class={`thumb ${chosen ? 'chosen' : ''} ${cell.className ?? ''}`}
              aria-pressed={chosen}
              tabIndex={chosen ? 0 : -1}
              aria-label={`Layer ${layer}, head ${head}${cell.name}`}
              onClick={() => choose(layer, head)}
              onDblClick={() => onToggle?.(layer, head)}
            >
              {cell.drawing}
            </button>
          );
        }),
      ])}
    </div>
  );
}
