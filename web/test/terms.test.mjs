// The terms of scores in the view Inspect, against the mock server.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { readFileSync } from 'node:fs';
import { startMock } from './mock.mjs';
import { launch, openPage, violations } from './browser.mjs';
import { shirt } from './views.mjs';

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

test('the terms of scores are computed when they are shown, once for all heads', async () => {
  const { page, faults, close } = await open('#/inspect?model=sentiment');
  const asked = [];
  page.on('request', request => request.url().endsWith('/api/inspect') && asked.push(!!request.postDataJSON().terms));
  await page.waitForSelector('.thumb');
  await page.waitForTimeout(500);
  assert.equal(asked.filter(Boolean).length, 0);
  assert.equal(await page.locator('.share-bar').count(), 0);
  const panel = page.locator('.panel', { hasText: 'Content and position' });
  await panel.getByRole('button', { name: 'Show' }).click();
  await panel.getByRole('heading', { name: 'Layer 0, head 0' }).waitFor();
  assert.equal(await page.locator('.panel-head .share-bar').count(), 1);
  const share = await panel.locator('.term-legend .number').last().textContent();

  const heads = panel.getByRole('group', { name: 'Shares of the terms in every head' });
  assert.equal(await heads.getByRole('button').count(), 36);
  await heads.getByRole('button', { name: 'Layer 0, head 0' }).focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowRight');
  await panel.getByRole('heading', { name: 'Layer 1, head 1' }).waitFor();
  assert.notEqual(await panel.locator('.term-legend .number').last().textContent(), share);
  await panel.getByLabel('Query', { exact: true }).selectOption('3');
  await panel.getByRole('radio', { name: 'table' }).click();
  await page.waitForFunction(() => /layer=1&head=1.*&?query=3/.test(location.hash) && location.hash.includes('terms=table'));
  assert.equal(await panel.locator('tr.chosen th').textContent(), 'sat');
  for (const row of await panel
    .locator('tbody tr')
    .evaluateAll(all => all.map(each => [...each.cells].slice(1, 6).map(cell => Number(cell.textContent)))))
    assert.ok(Math.abs(row[0] + row[1] + row[2] + row[3] - row[4]) < 0.03, `${row}`);
  assert.equal(asked.filter(Boolean).length, 1);
  assert.deepEqual(await violations(page), []);
  await page.getByText('--terms --layers 1 --heads 1 --query 3').waitFor();
  await panel.getByRole('button', { name: 'Hide' }).click();
  await page.waitForFunction(() => !location.hash.includes('terms'));
  assert.deepEqual(faults, []);
  await close();
});

test('bars of terms end at their sum, and keys that a query does not see are left out', async () => {
  const { page, close } = await open('#/inspect?model=gpt2&terms=bars&layer=3&head=2&query=6');
  const bars = page.getByRole('img', { name: 'Terms of the scores, layer 3, head 2, query because' });
  await bars.waitFor();
  const rows = await bars.evaluate(svg =>
    [...svg.querySelectorAll('g[transform]')].map(row =>
      [...row.querySelectorAll('title')].map(each => Number(each.textContent.split(': ')[1])),
    ),
  );
  assert.equal(rows.length, 7);
  for (const [a, b, c, d, sum] of rows) assert.ok(Math.abs(a + b + c + d - sum) < 0.03, `${[a, b, c, d, sum]}`);
  assert.ok(Math.abs(rows.reduce((sum, row) => sum + row[4], 0)) < 0.1, 'the mean over the keys is not zero');
  await close();
});

test('a model without absolute positions says why it has no terms', async () => {
  const { page, close } = await open('#/inspect?model=llama-chat&terms=bars', { allowErrors: true });
  await page.getByRole('alert').getByText('need positions that are added to tokens').waitFor();
  assert.equal(await page.locator('.share-bar').count(), 0);
  assert.deepEqual(await violations(page), []);
  await close();
});

test('the terms of scores can be saved', async () => {
  for (const [hash, name] of [
    ['#/inspect?model=gpt2&terms=bars&layer=1&query=4', 'terms-layer-1-head-0-query-4'],
    ['#/inspect?model=gpt2&terms=table', 'terms-layer-0-head-0-query-9'],
    ['#/inspect?model=fashion&terms=maps', 'terms-layer-0-head-0-query-0'],
  ]) {
    const { page, close } = await open(hash);
    if (hash.includes('fashion'))
      await page.setInputFiles('input[type=file]', { name: 'shirt.png', mimeType: 'image/png', buffer: Buffer.from(shirt, 'base64') });
    await page.waitForSelector('.thumb.shares');
    const panel = page.locator('.panel', { hasText: 'Content and position' });
    for (const [figure, file, header] of [
      [0, name, 'key,name,content_content,content_position,position_content,position_position,score,weight\n0,'],
      [1, 'shares-of-terms', 'layer,head,content_content'],
    ])
      for (const [kind, begin] of Object.entries({ SVG: '<svg', PNG: '\u0089PNG', JSON: figure ? '[' : '{', CSV: header })) {
        await panel
          .getByRole('button', { name: /^Export/ })
          .nth(figure)
          .click();
        const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name: kind }).click()]);
        assert.equal(download.suggestedFilename(), `${file}.${kind.toLowerCase()}`);
        const body = readFileSync(await download.path());
        assert.ok((kind === 'PNG' ? body.toString('latin1') : body.toString()).startsWith(begin), `${file} ${kind}`);
        if (kind === 'SVG') assert.ok(!body.toString().includes('var(--'), 'colours of the theme are not resolved');
      }
    await close();
  }
});

test('of a long input, the terms of one query or one head are asked for', async () => {
  const { page, faults, close } = await open(`#/inspect?model=opus-mt-en-de&text=${'word+'.repeat(80)}&kind=encoder&terms=bars&query=5`);
  const body = request => request.url().endsWith('/api/inspect') && request.postDataJSON().terms && request.postDataJSON();
  const asked = [];
  page.on('request', request => body(request) && asked.push(body(request)));
  const panel = page.locator('.panel', { hasText: 'Content and position' });
  const drawing = query => panel.getByRole('img', { name: `Terms of the scores, layer 0, head 0, query ${query}` });
  await drawing('word').waitFor();
  assert.equal(await panel.locator('.thumb.shares').count(), 36);
  await panel.getByText('58 keys with smaller weights').waitFor();
  await panel.getByLabel('Query', { exact: true }).selectOption('81'); // the translation has 6 tokens
  await drawing('[SEP]').waitFor();
  assert.equal(await panel.locator('.thumb.shares').count(), 0);
  assert.deepEqual(asked[0].queries, [5]);
  assert.deepEqual([asked.at(-1).queries, asked.at(-1).layers, asked.at(-1).heads], [undefined, [0], [0]]);
  assert.deepEqual(faults, []);
  await close();
});
