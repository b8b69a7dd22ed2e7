// Form controls. All take a value and call back with the next one.
import { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { Icon, IconName } from './icons';
import { short } from '../format';

export function Button(props: {
  onClick?: () => void;
  children?: ComponentChildren;
  kind?: 'primary' | 'plain' | 'danger';
  icon?: IconName;
  label?: string; // for a button without text
  disabled?: boolean;
  type?: 'button' | 'submit';
}) {
  return (
    <button
      type={props.type ?? 'button'}
      class={`button ${props.kind ?? ''}`}
      onClick={props.onClick}
      disabled={props.disabled}
      aria-label={props.label}
      title={props.label}
    >
      {props.icon && <Icon name={props.icon} />}
      {props.children}
    </button>
  );
}

export function Field(props: { name: string; help?: string; value?: string; children: (id: string) => ComponentChildren }) {
  const id = useId();
  return (
    <div class="field">
      <label class="name" for={id}>
        {props.name}
        {props.value !== undefined && <output>{props.value}</output>}
      </label>
      {props.children(id)}
      {props.help && <span class="help">{props.help}</span>}
    </div>
  );
}

export type Option = string | { value: string; text: string };
export function Select(props: { name: string; value: string; options: Option[]; onChange: (value: string) => void; help?: string }) {
  return (
    <Field name={props.name} help={props.help}>
      {id => (
        <select id={id} value={props.value} onChange={event => props.onChange(event.currentTarget.value)}>
          {props.options.map(option => {
            const { value, text } = typeof option === 'string' ? { value: option, text: option } : option;
            return (
              <option key={value} value={value} selected={value === props.value}>
                {text}
              </option>
            );
          })}
        </select>
      )}
    </Field>
  );
}

export function TextField(props: {
  name: string;
  value: string;
  onChange: (value: string) => void;
  help?: string;
  placeholder?: string;
  rows?: number;
  type?: 'text' | 'search' | 'password' | 'number';
  list?: string[];
  onEnter?: () => void;
}) {
  const listId = useId();
  const input = (event: Event) => props.onChange((event.currentTarget as HTMLInputElement).value);
  const keyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || !props.onEnter) return;
    event.preventDefault();
    props.onEnter();
  };
  return (
    <Field name={props.name} help={props.help}>
      {id =>
        props.rows ? (
          <textarea id={id} rows={props.rows} value={props.value} onInput={input} onKeyDown={keyDown} placeholder={props.placeholder} />
        ) : (
          <>
            <input
              id={id}
              type={(props.type ?? 'text') as 'text'}
              value={props.value}
              onInput={input}
              onKeyDown={keyDown}
              placeholder={props.placeholder}
              list={props.list ? listId : undefined}
              autocomplete="off"
              spellcheck={false}
            />
            {props.list && (
              <datalist id={listId}>
                {props.list.map(each => (
                  <option key={each} value={each} />
                ))}
              </datalist>
            )}
          </>
        )
      }
    </Field>
  );
}

// The bare slider; the part below its value is filled.
export function Range(props: {
  id: string;
  value: number;
  least: number;
  most: number;
  step: number;
  text: string;
  onInput: (value: number) => void;
}) {
  const { value, least, most } = props;
  const share = most > least ? Math.min(Math.max((value - least) / (most - least), 0), 1) : 0;
  return (
    <input
      id={props.id}
      type="range"
      min={least}
      max={most}
      step={props.step}
      value={value}
      aria-valuetext={props.text}
      style={{ '--at': `calc(8px + ${share} * (100% - 16px))` }}
      onInput={event => props.onInput(Number(event.currentTarget.value))}
    />
  );
}

const rounded = (value: number) => (Number.isInteger(value) ? value : Number(value.toPrecision(Math.abs(value) < 0.1 ? 3 : 4)));

// A slider with a number beside it. log: the slider moves in powers of ten, for a range above 0
export function Slider(props: {
  name: string;
  value: number;
  least: number;
  most: number;
  step?: number;
  log?: boolean;
  help?: string;
  onChange: (value: number) => void;
}) {
  const { least, most, log } = props;
  const whole = props.step === 1;
  const span = Math.log(most / least);
  const position = log ? Math.log(Math.max(props.value, least) / least) / span : props.value;
  const valueAt = (at: number) => (log ? Number((least * Math.exp(at * span)).toPrecision(3)) : at);
  const put = (value: number) => Number.isFinite(value) && props.onChange(whole ? Math.round(value) : value);
  return (
    <Field name={props.name} help={props.help}>
      {id => (
        <div class="sliderline">
          <Range
            id={id}
            value={position}
            least={log ? 0 : least}
            most={log ? 1 : most}
            step={log ? 0.005 : (props.step ?? (most - least) / 200)}
            text={short(props.value)}
            onInput={at => put(valueAt(at))}
          />
          <input
            type="number"
            aria-label={`${props.name}, as a number`}
            value={rounded(props.value)}
            step={props.step ?? 'any'}
            onChange={event => put(Number(event.currentTarget.value))}
          />
        </div>
      )}
    </Field>
  );
}

export const Check = (props: { name: string; value: boolean; onChange: (value: boolean) => void }) => (
  <label class="check">
    <input type="checkbox" checked={props.value} onChange={event => props.onChange(event.currentTarget.checked)} />
    {props.name}
  </label>
);

// One of a few. Arrow keys move the choice.
export function Segments(props: { label: string; value: string; options: Option[]; onChange: (value: string) => void }) {
  const group = useRef<HTMLDivElement>(null);
  const options = props.options.map(option => (typeof option === 'string' ? { value: option, text: option } : option));
  const keyDown = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const at = (options.findIndex(option => option.value === props.value) + step + options.length) % options.length;
    props.onChange(options[at].value);
    (group.current?.children[at] as HTMLElement)?.focus();
  };
  return (
    <div class="segments" role="radiogroup" aria-label={props.label} ref={group} onKeyDown={keyDown}>
      {options.map(({ value, text }, i) => (
        <button
          key={value}
          type="button"
          role="radio"
          aria-checked={value === props.value}
          tabIndex={value === props.value || (i === 0 && !options.some(o => o.value === props.value)) ? 0 : -1}
          onClick={() => props.onChange(value)}
        >
          {text}
        </button>
      ))}
    </div>
  );
}

export function Menu(props: { label: string; icon: IconName; items: { text: string; run: () => void }[] }) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const close = (event: Event) => {
      if (event instanceof KeyboardEvent ? event.key === 'Escape' : !root.current?.contains(event.target as Node)) setOpen(false);
    };
    addEventListener('pointerdown', close);
    addEventListener('keydown', close);
    return () => (removeEventListener('pointerdown', close), removeEventListener('keydown', close));
  }, [open]);
  return (
    <div class="menu" ref={root}>
      <button
        type="button"
        class="button plain"
        aria-haspopup="menu"
        aria-expanded={open}
        aria-label={props.label}
        title={props.label}
        onClick={() => setOpen(!open)}
      >
        <Icon name={props.icon} />
      </button>
      {open && (
        <div class="menu-list" role="menu">
          {props.items.map(item => (
            <button key={item.text} type="button" role="menuitem" onClick={() => (setOpen(false), item.run())}>
              {item.text}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
