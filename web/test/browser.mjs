// Chromium of the system, pages that record what goes wrong in them, and axe's verdict.
import { chromium } from 'playwright-core';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { gunzipSync } from 'node:zlib';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);

export const launch = () => chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });

// PAGE=dist shows the page that was just built, whatever page the program holds.
const useBuiltPage = route =>
  route.fulfill({
    body: gunzipSync(readFileSync(new URL('../dist/index.html.gz', import.meta.url))),
    contentType: 'text/html; charset=utf-8',
  });

// faults: console errors, exceptions, and requests to other hosts. hold: the caller goes there itself
export async function openPage(browser, address, hash, { width = 1280, theme = 'light', allowErrors = false, hold = false } = {}) {
  const context = await browser.newContext({
    viewport: { width, height: width < 500 ? 844 : 860 },
    colorScheme: theme,
    acceptDownloads: true,
    reducedMotion: 'reduce',
  });
  const page = await context.newPage(),
    faults = [];
  page.setDefaultTimeout(15_000);
  if (!allowErrors) {
    page.on('console', message => message.type() === 'error' && faults.push(`console: ${message.text()}`));
    page.on('pageerror', error => faults.push(`exception: ${error.stack}`));
  }
  page.on('request', request => {
    const url = new URL(request.url());
    if (!['data:', 'blob:', 'about:'].includes(url.protocol) && url.origin !== new URL(address).origin) faults.push(`outside: ${url}`);
  });
  if (process.env.PAGE === 'dist') await page.route(url => url.pathname === '/', useBuiltPage);
  if (!hold) await page.goto(`${address}/${hash}`);
  return { page, faults, close: () => context.close() };
}

// WCAG 2.1 A and AA. -> one line per violation
export async function violations(page) {
  await page.evaluate(axe);
  const { violations: found } = await page.evaluate(() =>
    globalThis.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'] }),
  );
  return found.map(
    each =>
      `${each.id}: ${each.help}: ${each.nodes
        .map(node => `${node.target} (${node.any[0]?.message ?? node.all[0]?.message ?? ''})`)
        .slice(0, 3)
        .join(' | ')}`,
  );
}
