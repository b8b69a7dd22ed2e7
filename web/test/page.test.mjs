// The page in Chromium, against the mock server: every view, and what people do in it.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { readFileSync } from 'node:fs';
import { startMock } from './mock.mjs';
import { launch, openPage, violations } from './browser.mjs';
import { shirt, views } from './views.mjs';

let server, browser;
before(async () => {
  server = await startMock();
  browser = await launch();
});
after(async () => {
  await browser.close();
  server.stop();
});

const open = (hash, options) => openPage(browser, server.address, hash, options);

describe('every view', () => {
  for (const [name, hash, ready] of views)
    for (const [width, theme] of [
      [1280, 'light'],
      [390, 'dark'],
    ])
      test(`${name} at ${width} px, ${theme}`, async () => {
        const { page, faults, close } = await open(hash, { width, theme });
        await page.waitForSelector(ready);
        if (name.endsWith('image')) {
          await page.setInputFiles('input[type=file]', { name: 'shirt.png', mimeType: 'image/png', buffer: Buffer.from(shirt, 'base64') });
          await page.waitForSelector('.probabilities');
          if (hash.includes('terms=')) await page.waitForSelector('.thumb.shares');
        }
        await page.waitForTimeout(350);
        assert.equal(
          await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth),
          0,
          'wider than the window',
        );
        assert.deepEqual(await violations(page), []);
        assert.deepEqual(faults, []);
        await close();
      });
});

test('an address without a view goes to the runs', async () => {
  const { page, close } = await open('');
  await page.waitForFunction(() => location.hash === '#/runs');
  await close();
});

test('a link carries the whole state', async () => {
  const { page, close } = await open('#/attention');
  await page.waitForSelector('.matrix');
  await page.getByLabel('alpha', { exact: true }).fill('2');
  await page.getByRole('radio', { name: 'gradient' }).click();
  await page.waitForFunction(() => location.hash.includes('gradient') && location.hash.includes('terms='));
  const address = page.url();
  await page.goto('about:blank');
  await page.goto(address);
  await page.waitForSelector('.matrix');
  assert.equal(await page.getByLabel('alpha', { exact: true }).inputValue(), '2');
  assert.equal(await page.getByRole('radio', { name: 'gradient' }).getAttribute('aria-checked'), 'true');
  await close();
});

test('moving a slider asks for a new map', async () => {
  const { page, close } = await open('#/attention');
  await page.waitForSelector('.matrix');
  const asked = page.waitForRequest(
    request => request.url().endsWith('/api/attend') && request.postDataJSON().terms[0].parameters.alpha[0] === 3,
  );
  await page.getByLabel('alpha', { exact: true }).fill('3');
  await asked;
  await close();
});

test('completion streams, shows alternatives and goes on from one', async () => {
  const { page, close } = await open('#/play/complete?prompt=One');
  await page.getByRole('button', { name: 'Complete' }).click();
  await page.waitForFunction(() => document.querySelectorAll('.piece').length === 15);
  await page.locator('.piece').nth(3).click();
  const asked = page.waitForRequest(
    request => request.url().endsWith('/v1/completions') && request.postDataJSON().prompt === 'One, there was the',
  );
  await page.getByRole('button', { name: '·the' }).click();
  await asked;
  await close();
});

test('a chat is part of the link', async () => {
  const { page, close } = await open('#/play/chat');
  await page.getByLabel('Message', { exact: true }).fill('Hi');
  await page.getByLabel('Message', { exact: true }).press('Enter');
  await page.waitForFunction(() => location.hash.includes('Hello'));
  await page.reload();
  await page.waitForSelector('.message.assistant');
  assert.equal(await page.locator('.message.assistant').textContent(), 'Hello, I am a small model.');
  await close();
});

test('a head that is switched off is asked for without it', async () => {
  const { page, close } = await open('#/inspect?model=sentiment');
  await page.waitForSelector('.thumb');
  await page.getByRole('button', { name: 'Layer 2, head 3' }).click();
  const asked = page.waitForRequest(request => request.url().endsWith('/api/inspect') && request.postDataJSON().off?.[0]?.layer === 2);
  await page.getByRole('button', { name: 'Switch off' }).click();
  assert.deepEqual((await asked).postDataJSON().off, [{ kind: 'attention', layer: 2, head: 3 }]);
  await page.waitForSelector('.thumb.off');
  const command = await page.getByRole('heading', { name: 'In the terminal' }).locator('xpath=..').locator('pre').textContent();
  const body = JSON.parse(/^curl -s http:\S+\/api\/inspect .* -d '(.*)'$/.exec(command)[1]);
  assert.deepEqual(body.off, [{ kind: 'attention', layer: 2, head: 3 }]);
  await close();
});

test('a link to a head that the model does not have shows the nearest one', async () => {
  for (const [hash, title, place] of [
    ['#/inspect?model=gpt2&layer=99&head=-3', 'Layer 11, head 0', 'layer=11'],
    ['#/inspect?model=sentiment&head=1e9&layer=1.6', 'Layer 2, head 5', 'head=5&layer=2'],
    [`#/inspect?model=sentiment&head=6&text=${'word+'.repeat(150)}`, 'Layer 0, head 5', 'head=5'], // the head is a request of its own
  ]) {
    const { page, faults, close } = await open(hash);
    await page.getByRole('heading', { name: title }).waitFor();
    await page.waitForFunction(
      wanted => location.hash.replace(/&?(model|text)=[^&]*/g, '') === `#/inspect?${wanted}`.replace('?', '?&'),
      place,
    );
    assert.deepEqual(faults, []);
    await close();
  }
});

test('a model that a link names is shown, also if it is not served here', async () => {
  const { page, close } = await open('#/cost?models=' + encodeURIComponent(JSON.stringify([{ model: 'elsewhere', settings: '' }])));
  const select = page.getByLabel('Model or preset');
  await page.waitForFunction(() => document.querySelector('select')?.value === 'elsewhere');
  assert.equal(await select.inputValue(), 'elsewhere');
  await close();
});

test('a running training moves on the screen', async () => {
  const { page, close } = await open('#/runs/classify/003');
  await page.waitForSelector('.uplot');
  await page.waitForFunction(() => document.querySelector('.stats').textContent.includes('720'));
  await close();
});

test('curves are drawn, and a zoom stays while points arrive', async () => {
  const { page, close } = await open('#/runs/classify/003');
  await page.waitForSelector('.uplot canvas');
  await page.waitForTimeout(300);
  const coloured = () =>
    page.evaluate(() => {
      const canvas = document.querySelector('.uplot canvas');
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      let count = 0;
      for (let i = 0; i < data.length; i += 4)
        if (data[i + 3] > 200 && Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 60) count++;
      return count;
    });
  assert.ok((await coloured()) > 400, 'no line in the chart');
  const box = await page.locator('.u-over').first().boundingBox();
  await page.mouse.move(box.x + box.width * 0.2, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 60, { steps: 4 });
  await page.mouse.up();
  await page.waitForFunction(() => document.querySelector('.stats').textContent.includes('720'));
  await page.waitForTimeout(400);
  assert.ok((await coloured()) > 300, 'the line is gone after a zoom');
  await close();
});

test('a run starts with the settings of the form', async () => {
  const { page, close } = await open('#/runs/new');
  await page.getByLabel('rate', { exact: true }).fill('0.02');
  await page.getByLabel('Name', { exact: true }).fill('fast');
  await page.getByText('heed train classify rate=0.02 --name fast').waitFor();
  const asked = page.waitForRequest(request => request.method() === 'POST' && request.url().endsWith('/api/runs'));
  await page.getByRole('button', { name: 'Start training' }).click();
  assert.deepEqual((await asked).postDataJSON(), { task: 'classify', settings: { rate: '0.02' }, name: 'fast' });
  await page.waitForFunction(() => location.hash === '#/runs/classify/004');
  await close();
});

test('the best runs come first, also where a smaller value is better', async () => {
  const { page, close } = await open('', { hold: true });
  const { folder, runs, can_train } = await (await fetch(`${server.address}/api/runs`)).json();
  const made = [
    ['language/002', 'loss', 3.1],
    ['language/001', 'loss', 2.4],
    ['classify/005', 'accuracy', 0.7],
    ['language/003', 'loss', null],
    ['classify/006', 'accuracy', 0.9],
  ].map(([id, metric, best]) => ({ ...runs[1], id, metric, best }));
  await page.route('**/api/runs', route => route.fulfill({ json: { folder, runs: made, can_train } }));
  await page.goto(`${server.address}/#/runs?sort=best`);
  await page.waitForSelector('.runs-table tbody tr');
  const order = ['classify/006', 'classify/005', 'language/001', 'language/002', 'language/003'];
  assert.deepEqual(await page.locator('.runs-table tbody th').allTextContents(), order);
  await close();
});

test('a word that is longer than a line is broken', async () => {
  for (const width of [1280, 390]) {
    const { page, close } = await open('', { hold: true, width });
    await page.route('**/api/translate', route => route.fulfill({ json: { results: [{ text: 'undneunzigtausend'.repeat(20) }] } }));
    await page.goto(`${server.address}/#/play/translate`);
    await page.waitForSelector('.translations li');
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0);
    await close();
  }
});

test('a row of formulas wraps, and an index of a function stays with it', async () => {
  const { page, close } = await open('', { hold: true, width: 390 });
  const list = await (await fetch(`${server.address}/api/lab`)).json();
  list.experiments[0].formula = Array(6).fill('h = \\operatorname{x} \\softmax_j(s_{ij})').join(', \\quad ');
  await page.route('**/api/lab', route => route.fulfill({ json: list }));
  await page.goto(`${server.address}/#/lab/L1`);
  await page.waitForSelector('.formula math');
  assert.equal(await page.locator('.formula > math').count(), 6);
  assert.equal(await page.locator('.formula').evaluate(element => element.scrollWidth - element.clientWidth), 0);
  assert.deepEqual(await page.locator('.formula msub').evaluateAll(all => all.map(each => each.children.length)), Array(12).fill(2));
  await close();
});

test('every figure of a page can be saved', async () => {
  const { page, close } = await open('#/lab/L1');
  await page.waitForSelector('.verdict');
  const begins = { SVG: '<svg', PNG: '\u0089PNG', JSON: '{', CSV: 'series,β,entropy' };
  for (const [kind, begin] of Object.entries(begins)) {
    await page
      .getByRole('button', { name: /^Export/ })
      .first()
      .click();
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name: kind }).click()]);
    assert.equal(download.suggestedFilename(), `softmax-temperature-1.${kind.toLowerCase()}`);
    const body = readFileSync(await download.path());
    assert.ok(
      (kind === 'PNG' ? body.toString('latin1') : body.toString()).startsWith(begin),
      `${kind} begins with ${body.subarray(0, 20)}`,
    );
    if (kind === 'SVG') assert.ok(!body.toString().includes('var(--'), 'colours of the theme are not resolved');
  }
  await close();
});

test('keys change views and the theme', async () => {
  const { page, close } = await open('#/lab');
  await page.waitForSelector('.card');
  await page.keyboard.press('6');
  await page.waitForFunction(() => location.hash === '#/cost');
  await page.keyboard.press('d');
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
  await close();
});

test('an error of the server is shown in its words', async () => {
  const { page, close } = await open('#/runs/classify/999', { allowErrors: true });
  await page.getByText('there is no run classify/999').waitFor();
  await close();
});

test('without a server the page says so', async () => {
  const { page, close } = await open('#/runs', { allowErrors: true });
  await page.waitForSelector('table');
  await page.route('**/api/**', route => route.abort());
  await page.goto(`${server.address}/#/lab`);
  await page.getByText('The server does not answer. Is heed serve still running?').waitFor();
  await close();
});

test('a server with a token asks for it', async () => {
  const { page, close } = await open('', { allowErrors: true, hold: true });
  await page.route('**/api/info', route =>
    route.request().headers().authorization === 'Bearer secret'
      ? route.continue()
      : route.fulfill({ status: 401, json: { error: { message: 'no token' } } }),
  );
  await page.goto(`${server.address}/#/cost`);
  await page.locator('dialog[open] input').fill('secret');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.waitForSelector('table.compare td');
  await close();
});
