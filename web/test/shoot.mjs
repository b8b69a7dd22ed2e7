// Screenshots of every view at the width of a laptop and of a phone: node test/shoot.mjs OUT [VIEW...] [--address URL] [--dark]
import { chromium } from 'playwright-core';
import { mkdirSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { startMock } from './mock.mjs';
import { shirt, views } from './views.mjs';

const words = process.argv.slice(2),
  option = name => (words.includes(name) ? words.splice(words.indexOf(name), 2)[1] : undefined);
const address = option('--address'),
  dark = words.includes('--dark');
const [out, ...names] = words.filter(word => !word.startsWith('--'));
mkdirSync(out, { recursive: true });
const server = address ? { address, stop() {} } : await startMock();
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
for (const width of [1280, 390]) {
  const context = await browser.newContext({
    viewport: { width, height: width === 390 ? 844 : 860 },
    colorScheme: dark ? 'dark' : 'light',
  });
  const page = await context.newPage();
  if (address)
    await page.route(
      url => url.pathname === '/',
      route =>
        route.fulfill({
          body: gunzipSync(readFileSync(new URL('../dist/index.html.gz', import.meta.url))),
          contentType: 'text/html; charset=utf-8',
        }),
    );
  page.on('console', message => message.type() === 'error' && console.log('console:', message.text()));
  page.on('pageerror', error => console.log('error:', error.stack?.slice(0, 600)));
  for (const [name, hash, ready] of views.filter(([name]) => names.length === 0 || names.includes(name))) {
    await page.goto('about:blank');
    await page.goto(`${server.address}/${hash}`);
    await page.waitForSelector(ready, { timeout: 8000 }).catch(() => console.log(`${name}: no ${ready}`));
    if (name.endsWith('image')) {
      await page.setInputFiles('input[type=file]', { name: 'shirt.png', mimeType: 'image/png', buffer: Buffer.from(shirt, 'base64') });
      await page.waitForTimeout(900);
    }
    if (name === 'complete') {
      await page.click('button.primary');
      await page.waitForTimeout(700);
      await page.locator('.piece').nth(5).click();
    }
    if (name === 'chat') {
      await page.fill('textarea >> nth=0', 'Hello');
      await page.press('textarea >> nth=0', 'Enter');
      await page.waitForTimeout(500);
    }
    await page.waitForTimeout(300);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (overflow > 0) console.log(`${name} at ${width}: ${overflow} px too wide`);
    await page.screenshot({ path: `${out}/${name}-${width}.png`, fullPage: true });
  }
  await context.close();
}
await browser.close();
server.stop();
