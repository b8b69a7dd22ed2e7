// Parts that pages are made of: headings, panels, empty states, notices, code to copy, statistics.
import { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { ApiError, Loaded } from '../api';
import { Button } from './controls';

export const PageHead = (props: { title: string; about?: ComponentChildren; children?: ComponentChildren }) => (
  <header class="page-head">
    <div>
      <h1 tabIndex={-1}>{props.title}</h1>
      {props.about && <p>{props.about}</p>}
    </div>
    {props.children && <div class="row">{props.children}</div>}
  </header>
);

export const Panel = (props: {
  title?: string;
  about?: ComponentChildren;
  actions?: ComponentChildren;
  flush?: boolean;
  children?: ComponentChildren;
}) => (
  <section class={`panel ${props.flush ? 'flush' : ''}`}>
    {(props.title || props.actions) && (
      <div class="panel-head">
        <div>
          {props.title && <h2>{props.title}</h2>}
          {props.about && <p>{props.about}</p>}
        </div>
        {props.actions && <div class="row">{props.actions}</div>}
      </div>
    )}
    {props.children}
  </section>
);

export function Code({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await copyText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <div class="code">
      <pre tabIndex={0}>{text}</pre>
      <Button kind="plain" icon={copied ? 'check' : 'copy'} label={copied ? 'Copied' : 'Copy'} onClick={copy} />
    </div>
  );
}

// navigator.clipboard needs a secure context; over plain HTTP from another machine there is none.
async function copyText(text: string) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = Object.assign(document.createElement('textarea'), { value: text });
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

// What is missing, and what to run to see something here.
export const Empty = (props: { title: string; children?: ComponentChildren; command?: string }) => (
  <div class="empty">
    <h2>{props.title}</h2>
    <p>{props.children}</p>
    {props.command && <Code text={props.command} />}
  </div>
);

export function Failure({ error, retry }: { error: Error; retry?: () => void }) {
  const unauthorized = error instanceof ApiError && error.status === 401;
  return (
    <div class="notice bad" role="alert">
      <span>{unauthorized ? 'This server needs a token.' : error.message}</span>
      {retry && (
        <Button kind="plain" onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  );
}

// Shows data as soon as it is there; an error otherwise.
export function Await<T>({ from, children }: { from: Loaded<T>; children: (data: T) => ComponentChildren }) {
  return (
    <>
      {from.error && <Failure error={from.error} retry={from.reload} />}
      {from.data !== undefined ? children(from.data) : from.loading && <Waiting />}
    </>
  );
}

export const Waiting = () => (
  <div class="progress" role="status">
    <span class="hidden-text">Loading</span>
  </div>
);

export const Stats = ({ items }: { items: (readonly [string, ComponentChildren] | false | undefined)[] }) => (
  <dl class="stats">
    {items.map(item =>
      item ? (
        <div key={item[0]}>
          <dt>{item[0]}</dt>
          <dd>{item[1]}</dd>
        </div>
      ) : null,
    )}
  </dl>
);

// Labels with their probabilities; a thin line marks what they were before a change. Bars of small probabilities are drawn larger.
export function Probabilities({
  labels,
  before,
  values,
}: {
  labels: { label: string; score: number }[];
  before?: Map<string, number>;
  values?: boolean;
}) {
  const largest = Math.max(...labels.map(each => Math.max(Math.abs(each.score), before?.get(each.label) ?? 0)), 1e-9);
  const full = values ? largest : largest < 0.5 ? 1.25 * largest : 1;
  return (
    <ul class="probabilities">
      {labels.map(({ label, score }) => {
        const was = before?.get(label);
        return (
          <li key={label}>
            <span class="what">{label}</span>
            <span class="bar">
              <i style={{ width: `${(100 * Math.abs(score)) / full}%` }} />
              {was !== undefined && !values && <b style={{ left: `${(100 * was) / full}%` }} />}
            </span>
            <span class="number">{values ? score.toFixed(3) : `${(100 * score).toFixed(1)}%`}</span>
          </li>
        );
      })}
    </ul>
  );
}
