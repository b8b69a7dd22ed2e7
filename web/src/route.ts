// The address bar is the state: #/view/path?name=value. Every control of the page reads and writes it, so every link is a deep link.
import { useEffect, useMemo, useState } from 'preact/hooks';

export interface Route {
  view: string;
  path: string[]; // after the view
  params: URLSearchParams;
}

const listeners = new Set<() => void>();

// Browsers limit how often the address may change, and sliders change often: the address follows a moment later.
let here = location.hash;
let pending: ReturnType<typeof setTimeout> | undefined;

function writeAddress() {
  clearTimeout(pending);
  pending = undefined;
  if (location.hash !== here) history.replaceState(null, '', here || '#/');
}

export function currentRoute(): Route {
  const [where, query = ''] = here.replace(/^#\/?/, '').split('?', 2);
  const [view = '', ...path] = where.split('/').filter(Boolean).map(decodeURIComponent);
  return { view, path, params: new URLSearchParams(query) };
}

export function link(view: string, path: string[] = [], params: Record<string, string> = {}): string {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== '')).toString();
  return '#/' + [view, ...path].map(encodeURIComponent).join('/') + (query ? '?' + query : '');
}

function announce() {
  for (const listener of [...listeners]) listener();
}
for (const kind of ['hashchange', 'popstate'])
  addEventListener(kind, () => {
    clearTimeout(pending);
    pending = undefined;
    here = location.hash;
    announce();
  });
addEventListener('pagehide', writeAddress);

export function go(to: string, options: { replace?: boolean } = {}) {
  if (to === here) return;
  if (options.replace) pending ??= setTimeout(writeAddress, 300);
  else {
    writeAddress();
    history.pushState(null, '', to);
  }
  here = to;
  announce();
}

// Changes parameters of the current view; null or the empty text removes one.
export function setParams(changes: Record<string, string | null>) {
  const { view, path, params } = currentRoute();
  for (const [name, value] of Object.entries(changes))
    if (value === null || value === '') params.delete(name);
    else params.set(name, value);
  go(link(view, path, Object.fromEntries(params)), { replace: true });
}

export function useRoute(): Route {
  const [hash, setHash] = useState(here);
  useEffect(() => {
    const listener = () => setHash(here);
    listeners.add(listener);
    listener();
    return () => void listeners.delete(listener);
  }, []);
  return useMemo(currentRoute, [hash]);
}

// A parameter of the address; its default is left out of it.
export function useParam(name: string, otherwise = ''): [string, (value: string) => void] {
  const { params } = useRoute();
  return [params.get(name) ?? otherwise, value => setParams({ [name]: value === otherwise ? null : value })];
}

export function useNumberParam(name: string, otherwise: number): [number, (value: number) => void] {
  const [text, set] = useParam(name);
  const value = text === '' || Number.isNaN(Number(text)) ? otherwise : Number(text);
  return [value, next => set(next === otherwise ? '' : String(next))];
}

// Whole numbers or names, comma-separated.
export function useListParam(name: string): [string[], (values: string[]) => void] {
  const [text, set] = useParam(name);
  return [useMemo(() => (text ? text.split(',') : []), [text]), values => set(values.join(','))];
}
