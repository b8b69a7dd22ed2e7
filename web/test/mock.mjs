// A server with the API of heed serve and made-up answers: every kind of model, a run that trains, so that each view has something to show.
// The answers have the shapes of heed/serve/openapi.json; numbers are functions, not random.
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';
import * as answers from './mock_answers.mjs';

// As heed/serve/api_server.cc has it.
export const policy =
  "default-src 'none'; script-src 'unsafe-inline' 'self' blob:; style-src 'unsafe-inline'; img-src data: blob: 'self'; media-src blob: 'self'; connect-src 'self'; font-src data:; worker-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const page = readFileSync(new URL('../dist/index.html.gz', import.meta.url));

function body(request) {
  return new Promise(resolve => {
    let text = '';
    request.on('data', part => (text += part));
    request.on('end', () => resolve(text ? JSON.parse(text) : {}));
  });
}

const pause = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds));

async function events(response, list, every = 15) {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  for (const { event, id, data } of list) {
    if (response.destroyed) return;
    response.write(
      `${event ? `event: ${event}\n` : ''}${id ? `id: ${id}\n` : ''}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`,
    );
    await pause(every);
  }
  response.end();
}

async function answer(request, response) {
  const url = new URL(request.url, 'http://localhost');
  const json = (value, status = 200) => {
    response.writeHead(status, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(value));
  };
  const input = request.method === 'POST' ? await body(request) : {};
  const path = url.pathname;
  if (path === '/') {
    response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8', 'Content-Encoding': 'gzip', 'Content-Security-Policy': policy });
    return response.end(page);
  }
  if (path === '/api/info') return json(answers.info);
  if (path === '/api/runs' && request.method === 'POST') return json({ id: 'classify/004' }, 201);
  if (path === '/api/runs') return json(answers.runList);
  const run = /^\/api\/runs\/(\w+\/\w+)(\/\w+)?$/.exec(path);
  if (run?.[2] === '/events') return events(response, answers.runEvents(run[1]), 200);
  if (run?.[2]) return json({ id: run[1] }, 202);
  if (run)
    return answers.runs[run[1]]
      ? json(answers.runs[run[1]]())
      : json({ error: { message: `there is no run ${run[1]}`, type: 'not_found_error', param: null, code: null } }, 404);
  if (path === '/api/settings') return json(answers.settings(url.searchParams.get('task') ?? 'classify'));
  if (path === '/api/terms') return json(answers.terms(url.searchParams));
  if (path === '/api/attend') return json(answers.attend(input));
  if (path === '/api/inspect') {
    const found = answers.inspect(input);
    return json(found, found.error ? 400 : 200);
  }
  if (path === '/api/classify') return json(answers.classify(input));
  if (path === '/api/translate') return json(answers.translate(input));
  if (path === '/v1/embeddings') return json(answers.embeddings(input));
  if (path === '/v1/completions') return events(response, answers.completion(input));
  if (path === '/v1/chat/completions') return events(response, answers.chat(input));
  if (path === '/api/lab') return json(answers.lab);
  if (path.startsWith('/api/lab/'))
    return events(response, [
      { event: 'progress', data: 'computing' },
      { event: 'result', data: answers.labResult(path.split('/').pop()) },
    ]);
  if (path === '/api/cost') return json(answers.cost(input));
  json({ error: { message: `not found: ${path}`, type: 'not_found_error', param: null, code: null } }, 404);
}

// -> the address, and how to stop it
export async function startMock(port = 0) {
  const server = createServer((request, response) => void answer(request, response));
  await new Promise(resolve => server.listen(port, '127.0.0.1', resolve));
  return { address: `http://127.0.0.1:${server.address().port}`, stop: () => (server.closeAllConnections(), server.close()) };
}

if (process.argv[1] === new URL(import.meta.url).pathname) console.log((await startMock(8099)).address);
