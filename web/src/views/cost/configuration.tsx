// One configuration: a served model or a preset and changes to it, or a config.json.
import { useRef } from 'preact/hooks';
import { Info, Setting } from '../../types';
import { Button, Check, Select, TextField } from '../../ui/controls';

export interface Configuration {
  model: string;
  settings: string; // key=value ...
  config?: string; // a config.json instead of a name
  measure?: boolean;
}

export function settingsOf(text: string): Record<string, string> {
  const pairs = text
    .split(/\s+/)
    .map(word => word.split('=', 2))
    .filter(pair => pair.length === 2 && pair[0] && pair[1] !== '');
  return Object.fromEntries(pairs);
}

export function withSetting(text: string, key: string, value: string): string {
  const settings = settingsOf(text);
  if (value === '') delete settings[key];
  else settings[key] = value;
  return Object.entries(settings)
    .map(([name, each]) => `${name}=${each}`)
    .join(' ');
}

const sizes: [key: string, name: string, placeholder: string][] = [
  ['batch', 'Batch', '1'],
  ['length', 'Tokens', 'auto'],
  ['layers', 'Layers', 'preset'],
  ['heads', 'Heads', 'preset'],
  ['width', 'Width', 'preset'],
  ['image', 'Image', 'auto'],
];

export function ConfigurationForm(props: {
  index: number;
  value: Configuration;
  info: Info;
  keys: Setting[];
  onChange: (value: Configuration) => void;
  onRemove?: () => void;
}) {
  const { value, info } = props;
  const file = useRef<HTMLInputElement>(null);
  const families = [...new Set(info.presets.map(preset => preset.family))];
  const options = [
    ...info.models.map(model => ({ value: model.id, text: `${model.id} (served)` })),
    ...families.flatMap(family =>
      info.presets.filter(preset => preset.family === family).map(preset => ({ value: preset.name, text: preset.name })),
    ),
    ...(value.config ? [{ value: '', text: 'config.json' }] : []),
  ];
  if (value.model && !options.some(each => each.value === value.model)) options.push({ value: value.model, text: value.model });
  const set = settingsOf(value.settings);
  const read = async (chosen: File | undefined) => {
    if (!chosen) return;
    const text = await chosen.text();
    try {
      JSON.parse(text);
      props.onChange({ ...value, model: '', config: text });
    } catch {
      alert('This file is not JSON.');
    }
  };
  const about = info.presets.find(preset => preset.name === value.model)?.summary;
  const kinds = props.keys.find(setting => setting.key === 'attention')?.choices.filter(Boolean) ?? [];
  return (
    <div class="stack tight">
      <div class="row between">
        <span class="badge" style={{ '--dot': `var(--series-${props.index + 1})` }}>
          Model {props.index + 1}
        </span>
        {props.onRemove && <Button kind="plain" icon="close" label={`Remove model ${props.index + 1}`} onClick={props.onRemove} />}
      </div>
      <Select
        name="Model or preset"
        value={value.config ? '' : value.model}
        options={options}
        onChange={model => props.onChange({ ...value, model, config: undefined })}
        help={about}
      />
      <div class="setting-grid small-fields">
        {sizes.map(([key, name, placeholder]) => (
          <TextField
            key={key}
            name={name}
            value={set[key] ?? ''}
            placeholder={placeholder}
            onChange={next => props.onChange({ ...value, settings: withSetting(value.settings, key, next.trim()) })}
          />
        ))}
      </div>
      {kinds.length > 0 && (
        <Select
          name="Attention"
          value={set.attention ?? ''}
          options={[{ value: '', text: 'as in the preset' }, ...kinds]}
          onChange={next => props.onChange({ ...value, settings: withSetting(value.settings, 'attention', next) })}
        />
      )}
      <TextField
        name="Settings"
        value={value.settings}
        onChange={settings => props.onChange({ ...value, settings })}
        placeholder="position=rotary pooling=gap"
        help="key=value, as in heed cost"
      />
      <div class="row between">
        <Check name="Measure the time here" value={!!value.measure} onChange={measure => props.onChange({ ...value, measure })} />
        <input
          ref={file}
          type="file"
          accept=".json,application/json"
          hidden
          aria-label="config.json"
          onChange={event => void read(event.currentTarget.files?.[0])}
        />
        <Button kind="plain" onClick={() => file.current!.click()}>
          Open a config.json
        </Button>
      </div>
    </div>
  );
}
