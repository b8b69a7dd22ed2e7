// The list of terms: add, remove, and sliders for all their settings and parameters, with gradients beside them.
import { useMemo, useState } from 'preact/hooks';
import { Matrix, matrixGrid } from '../../figures/matrix';
import { csv, short } from '../../format';
import { Attended, Nested, Term, TermChoice } from '../../types';
import { Button, Check, Slider } from '../../ui/controls';
import { Figure } from '../../figures/figure';
import { flat, Playground, replaced, setTerms, startOf } from './state';

const fewNumbers = 4; // more are shown as cells, of which one is changed at a time

export function TermControls({ state, list, result }: { state: Playground; list: Term[]; result?: Attended }) {
  const usable = list.filter(
    term => term.in_attend && (state.layout === 'grid' || !term.needs_grid) && !state.terms.some(choice => choice.name === term.name),
  );
  const change = (at: number, choice: TermChoice | null) =>
    setTerms(state.terms.flatMap((each, i) => (i !== at ? [each] : choice ? [choice] : [])));
  return (
    <>
      {state.terms.map((choice, i) => {
        const term = list.find(each => each.name === choice.name);
        return (
          term && (
            <OneTerm
              key={choice.name}
              term={term}
              choice={choice}
              used={result?.terms[i]}
              gradient={result?.gradients?.terms[i]}
              onChange={next => change(i, next)}
            />
          )
        );
      })}
      <div class="group">
        <div class="field">
          <label class="name" for="add-term">
            Add a term
          </label>
          <select
            id="add-term"
            value=""
            disabled={usable.length === 0 || state.terms.length >= 8}
            onChange={event => (setTerms([...state.terms, startOf(event.currentTarget.value)]), (event.currentTarget.value = ''))}
          >
            <option value="">Choose</option>
            {usable.map(term => (
              <option key={term.name} value={term.name}>
                {term.name}: {term.summary.split(/[;:,]/)[0]}
              </option>
            ))}
          </select>
        </div>
      </div>
    </>
  );
}

interface Used {
  settings: Record<string, number>;
  parameters: Record<string, Nested>;
}

function OneTerm({
  term,
  choice,
  used,
  gradient,
  onChange,
}: {
  term: Term;
  choice: TermChoice;
  used?: Used;
  gradient?: Record<string, Nested>;
  onChange: (choice: TermChoice | null) => void;
}) {
  // Tables follow the settings that size them, so a change of a setting drops what was set by hand.
  const setSetting = (name: string, value: number) =>
    onChange({
      name: choice.name,
      settings: { ...choice.settings, [name]: value },
      parameters: term.parameters.every(each => flat(each.default).length <= fewNumbers) ? choice.parameters : undefined,
    });
  const setParameter = (name: string, value: Nested) => onChange({ ...choice, parameters: { ...choice.parameters, [name]: value } });
  return (
    <div class="group">
      <div class="row between">
        <h3>{term.name}</h3>
        <Button kind="plain" icon="close" label={`Remove ${term.name}`} onClick={() => onChange(null)} />
      </div>
      <p class="muted small">
        {term.summary}
        {term.source && ` (${term.source})`}
      </p>
      {term.settings.map(setting => {
        const value = choice.settings?.[setting.name] ?? used?.settings[setting.name] ?? setting.default;
        if (setting.type === 'flag')
          return (
            <Check
              key={setting.name}
              name={`${setting.name}: ${setting.meaning}`}
              value={Number(value) !== 0}
              onChange={on => setSetting(setting.name, on ? 1 : 0)}
            />
          );
        const whole = setting.type === 'whole',
          most = whole ? Math.max(16, 2 * setting.default) : Math.max(10, 2 * setting.default);
        return (
          <Slider
            key={setting.name}
            name={setting.name}
            help={setting.meaning}
            value={Number(value)}
            least={whole ? Math.max(setting.least, 0) : 0.1}
            most={most}
            step={whole ? 1 : undefined}
            onChange={next => setSetting(setting.name, next)}
          />
        );
      })}
      {term.parameters.map(parameter => {
        const value = choice.parameters?.[parameter.name] ?? used?.parameters[parameter.name] ?? parameter.default;
        return (
          <Parameter
            key={parameter.name}
            name={parameter.name}
            value={value}
            gradient={gradient?.[parameter.name]}
            onChange={next => setParameter(parameter.name, next)}
          />
        );
      })}
    </div>
  );
}

const partNames: Record<string, string[]> = {
  center: ['row', 'column'],
  spread: ['row, row', 'row, column', 'column, row', 'column, column'],
};

function Parameter({
  name,
  value,
  gradient,
  onChange,
}: {
  name: string;
  value: Nested;
  gradient?: Nested;
  onChange: (value: Nested) => void;
}) {
  const numbers = flat(value),
    slopes = gradient === undefined ? [] : flat(gradient);
  const help = (i: number) => (slopes[i] === undefined ? undefined : `gradient ${short(slopes[i])}`);
  const range =
    name === 'center' ? [-8, 8] : name === 'spread' ? [-3, 3] : ['alpha', 'slopes', 'scale', 'rate'].includes(name) ? [0, 4] : [-4, 4];
  if (numbers.length > fewNumbers) return <Table name={name} value={value} numbers={numbers} slopes={slopes} onChange={onChange} />;
  return (
    <>
      {numbers.map((each, i) => (
        <Slider
          key={i}
          name={numbers.length > 1 ? `${name} (${partNames[name]?.[i] ?? i})` : name}
          value={each}
          least={range[0]}
          most={range[1]}
          step={0.05}
          help={help(i)}
          onChange={next => onChange(replaced(value, i, next))}
        />
      ))}
    </>
  );
}

// A table of numbers: choose a cell, move its slider.
function Table({
  name,
  value,
  numbers,
  slopes,
  onChange,
}: {
  name: string;
  value: Nested;
  numbers: number[];
  slopes: number[];
  onChange: (value: Nested) => void;
}) {
  const [at, setAt] = useState<number | null>(null);
  let inner = value;
  while (Array.isArray(inner) && inner.length === 1 && Array.isArray(inner[0])) inner = inner[0];
  const columns = Array.isArray(inner) && Array.isArray(inner[0]) ? inner[0].length : numbers.length;
  const rows = useMemo(
    () => Array.from({ length: numbers.length / columns }, (_, i) => numbers.slice(i * columns, (i + 1) * columns)),
    [value],
  );
  const grid = useMemo(() => matrixGrid(rows, { diverging: true }), [rows]);
  const chosen = Math.min(at ?? Math.floor(numbers.length / 2), numbers.length - 1);
  return (
    <div>
      <Figure title={name} data={() => ({ name, json: value, csv: csv(rows) })}>
        {width => (
          <Matrix
            grid={grid}
            width={width}
            maxHeight={220}
            label={`Values of ${name}`}
            row={Math.floor(chosen / columns)}
            column={chosen % columns}
            onPick={cell => setAt(cell.row * columns + cell.column)}
          />
        )}
      </Figure>
      <Slider
        name={`${name}[${rows.length > 1 ? `${Math.floor(chosen / columns)}, ` : ''}${chosen % columns}]`}
        value={numbers[chosen]}
        least={-4}
        most={4}
        step={0.05}
        help={slopes[chosen] === undefined ? undefined : `gradient ${short(slopes[chosen])}`}
        onChange={next => onChange(replaced(value, chosen, next))}
      />
    </div>
  );
}
