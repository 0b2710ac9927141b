// Builds the page: one HTML file with script and style inside, each allowed by its hash and nothing else.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const mark = '@@covary-data@@';

async function bundle(entry) {
  const result = await build({
    absWorkingDir: here,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    target: 'es2022',
    charset: 'utf8',
    legalComments: 'none',
    jsx: 'automatic',
    jsxImportSource: 'preact',
  });
  return result.outputFiles[0].text.trim();
}

const hash = (text) => `'sha256-${createHash('sha256').update(text, 'utf8').digest('base64')}'`;

export async function page() {
  const [script, style] = await Promise.all([bundle('src/main.tsx'), bundle('src/style.css')]);
  if (/<\/script|<!--/i.test(script) || /<\/style/i.test(style)) throw new Error('the code would end its element');
  const policy = [
    "default-src 'none'",
    `script-src ${hash(script)}`,
    `style-src ${hash(style)}`,
    'img-src data: blob:',
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  const html = readFileSync(join(here, 'src/page.html'), 'utf8')
    .replace('{{policy}}', () => policy)
    .replace('{{style}}', () => style)
    .replace('{{script}}', () => script);
  if (html.split(mark).length !== 2) throw new Error('the page must have one place for data');
  return html;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const target = process.argv[2] ?? join(here, '../crates/report/assets/page.html');
  mkdirSync(dirname(target), { recursive: true });
  const html = await page();
  writeFileSync(target, html);
  console.log(`${target}: ${html.length} bytes`);
}
