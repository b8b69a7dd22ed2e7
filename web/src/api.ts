// Requests to the server that this page came from: JSON, and server-sent events over fetch, which can POST and carry a token.
import { useEffect, useRef, useState } from 'preact/hooks';

export class ApiError extends Error {
  constructor(
    public status: number,
    message: string,
  ) {
    super(message);
  }
}

const tokenKey = 'heed.token';
export const hasToken = () => !!sessionStorage.getItem(tokenKey);
export const setToken = (token: string) => sessionStorage.setItem(tokenKey, token);

async function send(url: string, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers);
  const token = sessionStorage.getItem(tokenKey);
  if (token) headers.set('Authorization', `Bearer ${token}`);
  let response: Response;
  try {
    response = await fetch(url, { ...init, headers });
  } catch (error) {
    if ((error as Error).name === 'AbortError') throw error;
    throw new ApiError(0, 'The server does not answer. Is heed serve still running?');
  }
  if (response.ok) return response;
  if (response.status === 401) dispatchEvent(new Event('heed-token'));
  let message = `The server answered ${response.status}.`;
  try {
    const body = await response.json();
    message = body.error?.message ?? body.error ?? message;
  } catch {
    // not JSON: the status says it
  }
  throw new ApiError(response.status, message);
}

export async function get<T>(url: string, signal?: AbortSignal): Promise<T> {
  return (await send(url, { signal })).json();
}

export async function post<T>(url: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const headers = { 'Content-Type': 'application/json' };
  return (await send(url, { method: 'POST', headers, body: JSON.stringify(body), signal })).json();
}

export interface ServerEvent {
  id: string;
  event: string;
  data: string;
}

// Calls back for every event until the stream ends. body: POST if given
export async function stream(url: string, body: unknown, signal: AbortSignal, each: (event: ServerEvent) => void): Promise<void> {
  const init: RequestInit =
    body === undefined
      ? { signal, headers: { Accept: 'text/event-stream' } }
      : {
          signal,
          method: 'POST',
          headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream' },
          body: JSON.stringify(body),
        };
  const reader = (await send(url, init)).body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value.replaceAll('\r', '');
    const parts = text.split('\n\n');
    text = parts.pop()!;
    for (const part of parts) {
      const lines = part.split('\n');
      const field = (name: string) =>
        lines.filter(line => line.startsWith(name + ':')).map(line => line.slice(name.length + 1).trimStart());
      const data = field('data').join('\n');
      if (data) each({ id: field('id')[0] ?? '', event: field('event')[0] ?? 'message', data });
    }
  }
}

export interface Loaded<T> {
  data?: T;
  error?: Error;
  loading: boolean;
  reload: () => void;
}

// Runs `load` whenever the key changes, and keeps the last data on screen while the next is on its way. A null key loads nothing.
export function useLoad<T>(key: string | null, load: (signal: AbortSignal) => Promise<T>, delay = 0): Loaded<T> {
  const [state, setState] = useState<{ data?: T; error?: Error; loading: boolean }>({ loading: key !== null });
  const [round, setRound] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    if (key === null) return setState({ loading: false });
    const abort = new AbortController();
    setState(old => ({ ...old, loading: true }));
    const timer = setTimeout(async () => {
      try {
        const data = await latest.current(abort.signal);
        if (!abort.signal.aborted) setState({ data, loading: false });
      } catch (error) {
        if (!abort.signal.aborted) setState(old => ({ data: old.data, error: error as Error, loading: false }));
      }
    }, delay);
    return () => (clearTimeout(timer), abort.abort());
  }, [key, round]);
  return { ...state, reload: () => setRound(round + 1) };
}

export const useGet = <T>(url: string | null): Loaded<T> => useLoad<T>(url, signal => get<T>(url!, signal));

// POSTs the body again, a moment after it last changed.
export function usePost<T>(url: string, body: unknown | null, delay = 120): Loaded<T> {
  return useLoad<T>(body === null ? null : url + JSON.stringify(body), signal => post<T>(url, body, signal), delay);
}
