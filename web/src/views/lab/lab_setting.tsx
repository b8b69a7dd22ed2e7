// A setting of an experiment. Numbers have a slider around their default; the field beside it takes any value.
import { Setting } from '../../types';
import { Check, Select, Slider, TextField } from '../../ui/controls';

export function LabSetting({ setting, value, onChange }: { setting: Setting; value?: string; onChange: (value: string) => void }) {
  const current = value ?? String(setting.default ?? '');
  if (setting.type === 'boolean')
    return <Check name={`${setting.key}: ${setting.help}`} value={current === 'true'} onChange={on => onChange(String(on))} />;
  if (setting.choices.length > 0 && setting.type !== 'list')
    return (
      <Select
        name={setting.key}
        value={current}
        options={setting.choices.map(choice => ({ value: choice, text: choice || 'default' }))}
        onChange={onChange}
        help={setting.help}
      />
    );
  if (setting.type === 'integer' || setting.type === 'number') {
    const usual = Number(setting.default) || 1,
      least = Math.max(setting.least ?? 0, -1e6),
      most = Math.min(setting.most ?? Infinity, Math.max(4 * Math.abs(usual), least + 1));
    const log = usual >= 1000 && setting.type === 'integer';
    return (
      <Slider
        name={setting.key}
        help={setting.help}
        value={Number(current)}
        least={log ? Math.max(least, 1) : least}
        most={most}
        log={log}
        step={setting.type === 'integer' ? 1 : undefined}
        onChange={next => onChange(String(next))}
      />
    );
  }
  return <TextField name={setting.key} value={current} onChange={onChange} help={setting.help} />;
}
