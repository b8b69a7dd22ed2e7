// A form with every setting of every task, and the equivalent command.
import { useState } from 'preact/hooks';
import { post, useGet } from '../../api';
import { go, link, setParams, useParam, useRoute } from '../../route';
import { Setting, SettingList } from '../../types';
import { Await, Code, Failure, PageHead, Panel } from '../../ui/blocks';
import { Button, Check, Field, Segments, Select, TextField } from '../../ui/controls';
import { Icon } from '../../ui/icons';

const prefix = 's.'; // of settings in the address
const basic = ['data', 'preset', 'from', 'epochs', 'batch', 'rate']; // always shown

export function NewRun() {
  const [task, setTask] = useParam('task', 'classify');
  const list = useGet<SettingList>(`/api/settings?task=${encodeURIComponent(task)}`);
  return (
    <>
      <a class="back" href={link('runs')}>
        <Icon name="back" />
        All runs
      </a>
      <PageHead title="New run" about="Every setting has a default; change what you want to try." />
      <Await from={list}>
        {data => (
          <div class="stack">
            <div>
              <Segments label="Task" value={task} options={data.tasks.map(each => each.name)} onChange={setTask} />
              <p class="muted" style={{ marginTop: '8px' }}>
                {data.tasks.find(each => each.name === task)?.summary}
              </p>
            </div>
            {data.task === task && <Form list={data} />}
          </div>
        )}
      </Await>
    </>
  );
}

const quoted = (text: string) => (/^[\w./:,=+-]*$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

function Form({ list }: { list: SettingList }) {
  const { params } = useRoute();
  const [name, setName] = useParam('name');
  const [filter, setFilter] = useState('');
  const [failure, setFailure] = useState<Error>();
  const [starting, setStarting] = useState(false);
  const task = list.tasks.find(each => each.name === list.task)!;
  const given = Object.fromEntries(
    [...params].filter(([key]) => key.startsWith(prefix)).map(([key, value]) => [key.slice(prefix.length), value]),
  );
  const settings = list.settings.filter(setting => setting.key !== 'task');
  const put = (setting: Setting, value: string) =>
    setParams({ [prefix + setting.key]: value === String(setting.default ?? '') ? null : value });
  const shown = (setting: Setting) => `${setting.key} ${setting.help}`.toLowerCase().includes(filter.toLowerCase());
  const headings = [...new Set(settings.map(setting => setting.heading ?? ''))];
  const command = [
    'heed train',
    list.task,
    ...Object.entries(given).map(([key, value]) => `${key}=${quoted(value)}`),
    name && `--name ${quoted(name)}`,
  ]
    .filter(Boolean)
    .join(' ');
  const start = async () => {
    setStarting(true);
    try {
      const { id } = await post<{ id: string }>('/api/runs', { task: list.task, settings: given, ...(name && { name }) });
      go(link('runs', id.split('/')));
    } catch (error) {
      setFailure(error as Error);
      setStarting(false);
    }
  };
  const control = (setting: Setting) => (
    <SettingField
      key={setting.key}
      setting={setting}
      presets={task.presets}
      value={given[setting.key]}
      onChange={value => put(setting, value)}
    />
  );
  return (
    <div class="split">
      <div class="stack">
        <Panel>
          <div class="setting-grid">
            {basic.map(key => settings.find(setting => setting.key === key)).map(setting => setting && control(setting))}
          </div>
        </Panel>
        <TextField
          name="Find a setting"
          type="search"
          value={filter}
          onChange={setFilter}
          placeholder="for example dropout, position, warmup"
        />
        <Panel>
          {headings.map(heading => {
            const those = settings.filter(
              setting =>
                (setting.heading ?? '') === heading && !basic.includes(setting.key) && !setting.key.endsWith('.') && shown(setting),
            );
            const changed = those.filter(setting => setting.key in given).length;
            return (
              those.length > 0 && (
                <details class="group" key={heading} open={filter !== ''}>
                  <summary>
                    {heading.split('. ')[0] || 'Other'}{' '}
                    <span class="muted small">
                      {those.length}
                      {changed > 0 && `, ${changed} changed`}
                    </span>
                  </summary>
                  {heading.includes('. ') && <p class="muted small heading-note">{heading.split('. ').slice(1).join('. ')}</p>}
                  <div class="setting-grid">{those.map(control)}</div>
                </details>
              )
            );
          })}
          {settings.some(setting => setting.key.endsWith('.')) && (
            <OpenSettings prefixes={settings.filter(setting => setting.key.endsWith('.'))} given={given} />
          )}
        </Panel>
      </div>
      <aside class="stack tight">
        <TextField name="Name" value={name} onChange={setName} placeholder="default: the next number" />
        <Code text={command} />
        {failure && <Failure error={failure} />}
        <Button kind="primary" onClick={start} disabled={starting}>
          {starting ? 'Starting' : 'Start training'}
        </Button>
      </aside>
    </div>
  );
}

function SettingField({
  setting,
  value,
  presets,
  onChange,
}: {
  setting: Setting;
  value?: string;
  presets: string[];
  onChange: (value: string) => void;
}) {
  const otherwise = String(setting.default ?? '');
  const current = value ?? otherwise;
  const help = setting.help.replace(/ \([^()]*\)$/, '');
  if (setting.type === 'boolean')
    return (
      <Field name={setting.key} help={help}>
        {id => (
          <span class="check">
            <input id={id} type="checkbox" checked={current === 'true'} onChange={event => onChange(String(event.currentTarget.checked))} />
          </span>
        )}
      </Field>
    );
  const choices = setting.key === 'preset' && presets.length > 0 ? presets : setting.choices;
  if (choices.length > 0 && !['list', 'path'].includes(setting.type) && !setting.with_settings) {
    const options = [...new Set([otherwise, ...choices])].map(choice => ({ value: choice, text: choice || 'as in the preset' }));
    return <Select name={setting.key} value={current} options={options} onChange={onChange} help={help} />;
  }
  const range = [setting.least, setting.most].map(bound => (typeof bound === 'number' && Math.abs(bound) < 1e18 ? bound : undefined));
  const hint = range[0] !== undefined && range[1] !== undefined ? ` From ${range[0]} to ${range[1]}.` : '';
  return (
    <TextField name={setting.key} value={current} onChange={onChange} help={help + hint} list={choices.length > 0 ? choices : undefined} />
  );
}

// Keys below a prefix: model.hidden_size=64
function OpenSettings({ prefixes, given }: { prefixes: Setting[]; given: Record<string, string> }) {
  const [key, setKey] = useState(prefixes[0].key),
    [value, setValue] = useState('');
  const set = Object.entries(given).filter(([name]) => prefixes.some(each => name.startsWith(each.key)));
  const add = () => value && setParams({ [prefix + key]: value });
  return (
    <details class="group">
      <summary>Any other key {set.length > 0 && <span class="muted small">{set.length}</span>}</summary>
      {set.map(([name, text]) => (
        <Check key={name} name={`${name}=${text}`} value onChange={() => setParams({ [prefix + name]: null })} />
      ))}
      <div class="setting-grid">
        <TextField name="Key" value={key} onChange={setKey} help={prefixes[0].help} />
        <TextField name="Value" value={value} onChange={setValue} onEnter={add} />
      </div>
      <div>
        <Button onClick={add} disabled={!value}>
          Set
        </Button>
      </div>
    </details>
  );
}
