// The shell: navigation, theme, keyboard, token. The view comes from the address.
import { FunctionComponent } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { setToken, useGet } from './api';
import { some } from './format';
import { InfoContext, useInfo } from './info';
import { go, link, useRoute } from './route';
import { setTheme, useTheme } from './theme';
import { Info } from './types';
import { Button, TextField } from './ui/controls';
import { Icon, IconName } from './ui/icons';
import { Attention } from './views/attention/attention';
import { CostView } from './views/cost/cost';
import { Inspect } from './views/inspect/inspect';
import { Lab } from './views/lab/lab';
import { Play } from './views/play/play';
import { Runs } from './views/runs/runs';

const views: { name: string; title: string; view: FunctionComponent }[] = [
  { name: 'runs', title: 'Runs', view: Runs },
  { name: 'inspect', title: 'Inspect', view: Inspect },
  { name: 'play', title: 'Play', view: Play },
  { name: 'attention', title: 'Attention', view: Attention },
  { name: 'lab', title: 'Lab', view: Lab },
  { name: 'cost', title: 'Cost', view: CostView },
];

// With models and no runs, people come to play; otherwise to see runs.
function useHome(info: Info | undefined, view: string) {
  useEffect(() => {
    if (info && !view) go(link(info.runs || info.models.length === 0 ? 'runs' : 'play'), { replace: true });
  }, [info, view]);
}

export function App() {
  const info = useGet<Info>('/api/info');
  const route = useRoute();
  const current = views.find(each => each.name === route.view);
  useHome(info.data, route.view);
  useEffect(() => {
    document.title = current ? `${current.title} · heed` : 'heed';
    scrollTo(0, 0);
  }, [current]);
  const View = current?.view;
  return (
    <InfoContext.Provider value={info}>
      <div class="shell">
        <Side current={route.view} />
        <main id="main">{View ? <View /> : route.view ? <NotFound /> : null}</main>
      </div>
      <Keyboard />
      <TokenDialog />
    </InfoContext.Provider>
  );
}

const NotFound = () => (
  <div class="empty">
    <h1>There is no such page</h1>
    <p>
      <a href="#/runs">Go to the runs</a>
    </p>
  </div>
);

function Side({ current }: { current: string }) {
  const theme = useTheme();
  const { data, error } = useInfo();
  return (
    <header class="side">
      <a class="brand" href="#/" aria-label="heed, home">
        <svg viewBox="0 0 16 16" width="22" height="22" aria-hidden="true">
          <rect width="16" height="16" rx="4" fill="#3451b2" />
          <path d="M4.5 3v10M4.5 8.5q3.5-4 7 0V13" stroke="white" stroke-width="2" fill="none" stroke-linecap="round" />
        </svg>
        heed
      </a>
      <nav class="nav" aria-label="Views">
        {views.map(({ name, title }) => (
          <a key={name} href={link(name)} aria-current={name === current ? 'page' : undefined}>
            <Icon name={name as IconName} />
            {title}
          </a>
        ))}
      </nav>
      <div class="side-foot">
        <button type="button" class="button plain" onClick={() => dispatchEvent(new Event('heed-help'))} aria-label="Keyboard shortcuts">
          <Icon name="help" />
          <span class="label">Keyboard</span>
        </button>
        <button
          type="button"
          class="button plain"
          onClick={() => setTheme(theme === 'dark' ? 'light' : 'dark')}
          aria-label={theme === 'dark' ? 'Light theme' : 'Dark theme'}
        >
          <Icon name={theme === 'dark' ? 'sun' : 'moon'} />
          <span class="label">{theme === 'dark' ? 'Light' : 'Dark'}</span>
        </button>
        <div class="server">
          {error
            ? 'No answer from the server'
            : data && `heed ${data.version} · ${data.device === 'cpu' ? data.isa : data.device} · ${some(data.threads, 'thread')}`}
        </div>
      </div>
    </header>
  );
}

const shortcuts: [string, string][] = [
  ...views.map(({ title }, i): [string, string] => [String(i + 1), title]),
  ['/', 'Focus the first field'],
  ['d', 'Toggle dark mode'],
  ['?', 'Show this list'],
  ['← ↑ ↓ →', 'Move in maps, grids and choices'],
  ['x', 'In Inspect, All heads: switch a head off or on'],
  ['Ctrl Enter', 'Complete the prompt'],
];

function Keyboard() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const open = () => dialog.current?.showModal();
    const keyDown = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || dialog.current?.open)
        return;
      const view = views[Number(event.key) - 1];
      if (view) go(link(view.name));
      else if (event.key === '?') open();
      else if (event.key === 'd') setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark');
      else if (event.key === '/') document.querySelector<HTMLElement>('main textarea, main input')?.focus();
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', keyDown);
    addEventListener('heed-help', open);
    return () => (removeEventListener('keydown', keyDown), removeEventListener('heed-help', open));
  }, []);
  return (
    <dialog ref={dialog} aria-label="Keyboard shortcuts" onClick={event => event.target === dialog.current && dialog.current?.close()}>
      <div class="panel-head">
        <h2>Keyboard</h2>
        <Button kind="plain" icon="close" label="Close" onClick={() => dialog.current?.close()} />
      </div>
      <table>
        <tbody>
          {shortcuts.map(([key, what]) => (
            <tr key={key}>
              <th scope="row">
                <kbd>{key}</kbd>
              </th>
              <td>{what}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </dialog>
  );
}

// A server that was started with --token answers 401 until it gets it.
function TokenDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [token, set] = useState('');
  useEffect(() => {
    const open = () => dialog.current && !dialog.current.open && dialog.current.showModal();
    addEventListener('heed-token', open);
    return () => removeEventListener('heed-token', open);
  }, []);
  const submit = () => {
    setToken(token);
    location.reload(); // repeats every request
  };
  return (
    <dialog ref={dialog} aria-label="Token">
      <form class="stack tight" onSubmit={event => (event.preventDefault(), submit())}>
        <h2>This server needs a token</h2>
        <TextField
          name="Token"
          type="password"
          value={token}
          onChange={set}
          help="The value of --token that heed serve was started with."
        />
        <div class="row end">
          <Button kind="primary" type="submit">
            Continue
          </Button>
        </div>
      </form>
    </dialog>
  );
}
