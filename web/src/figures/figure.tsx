// A drawing with its title and a menu that saves it. Children get the width in pixels and draw an <svg>.
import { ComponentChildren, render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Menu } from '../ui/controls';
import { exportItems, FigureData } from './export';

export function useWidth<T extends HTMLElement>(otherwise = 600) {
  const ref = useRef<T>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = ref.current!;
    const measure = () => setWidth(Math.floor(element.clientWidth) || otherwise);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, width] as const;
}

// A drawing that is not on the screen, to be saved.
export function drawn(drawing: ComponentChildren) {
  const holder = document.createElement('div');
  render(drawing, holder);
  return holder.querySelector('svg');
}

export function Figure(props: {
  title?: string;
  data: () => FigureData;
  children: (width: number) => ComponentChildren;
  svg?: () => SVGSVGElement | null; // of a drawing that is not SVG on the screen
}) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const svg = props.svg ?? (() => ref.current!.querySelector('svg'));
  const items = ['SVG', 'PNG', 'JSON', 'CSV'].map((text, i) => ({ text, run: () => exportItems(props.data(), svg)[i].run() }));
  return (
    <figure class={props.title ? 'figure' : 'figure bare'}>
      <figcaption class="figure-head">
        {props.title && <b>{props.title}</b>}
        <span class="row">
          <Menu label={`Export ${props.title ?? 'figure'}`} icon="export" items={items} />
        </span>
      </figcaption>
      <div ref={ref} class="figure-body">
        {width > 0 && props.children(width)}
      </div>
    </figure>
  );
}
