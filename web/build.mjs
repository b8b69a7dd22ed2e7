// Builds src/ into one file, dist/index.html.gz: script, styles and font inside, nothing to fetch but heed's own API.
import { build } from 'esbuild';
import { readFileSync, readdirSync, mkdirSync, writeFileSync } from 'node:fs';
import { gzipSync, constants } from 'node:zlib';

const most = 250_000; // bytes, compressed
const here = new URL('.', import.meta.url).pathname;

// FNV-1a, 64 bits, over the path and the contents of every source. tests/pages/page_sources_test.cc computes the same.
function sourcesHash() {
  const files = readdirSync(here + 'src', { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => (entry.parentPath ?? entry.path).slice(here.length) + '/' + entry.name);
  files.push('build.mjs', 'package.json', 'package-lock.json', 'tsconfig.json');
  let hash = 0xcbf29ce484222325n;
  for (const file of files.sort((a, b) => (a < b ? -1 : 1)))
    for (const bytes of [Buffer.from(file + '\n'), readFileSync(here + file)])
      for (const byte of bytes) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  return hash.toString(16).padStart(16, '0');
}

// The licences of what is bundled ask for their text to come along.
function licences() {
  const names = ['preact', 'uplot', 'd3-array', 'd3-scale', 'd3-shape', '@fontsource-variable/inter'];
  return names.map(name => `${name}\n\n${readFileSync(`${here}node_modules/${name}/LICENSE`, 'utf8').trim()}`).join('\n\n---\n\n');
}

const { outputFiles } = await build({
  entryPoints: [here + 'src/main.tsx'],
  bundle: true,
  minify: true,
  write: false,
  outdir: 'out',
  target: 'es2022',
  format: 'iife',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
  loader: { '.woff2': 'dataurl' },
});
const output = kind => outputFiles.find(file => file.path.endsWith(kind)).text;

const page = readFileSync(here + 'src/index.html', 'utf8')
  .replace('SOURCES', () => sourcesHash())
  .replace('/* STYLES */', () => output('.css'))
  .replace('/* SCRIPT */', () => output('.js').replaceAll('</script', '<\\/script'))
  .replace('LICENCES', () => licences().replaceAll('--', '- -'));

const packed = gzipSync(page, { level: constants.Z_BEST_COMPRESSION });
mkdirSync(here + 'dist', { recursive: true });
writeFileSync(here + 'dist/index.html.gz', packed);
console.log(`web/dist/index.html.gz: ${packed.length} bytes, ${page.length} unpacked`);
if (packed.length > most) {
  console.error(`build.mjs: the page has ${packed.length} bytes, at most ${most} are allowed`);
  process.exit(1);
}
